//! From the values of the wanted fields to a checked event; the same for JSON and CSV.
//!
//! Every check that needs only the record is made here, so that its words can name the field. The order
//! of the checks is fixed: model, version, segments, id, time, prediction, outcome, weight; a record is refused
//! for the first that fails.

use super::number;
use super::options::{
    DecodeOptions, DecodeOptionsError, FieldOrConst, IdField, LabelOptions, PredictionField,
    TimeUnit,
};
use super::path::Paths;
use super::rejection::{Rejection, shorten};
use super::scan::{Kind, Scanner, unescape};
use super::time;
use crate::collect::{Event, Label, Reason};
use crate::stats::view::{Outcome, Prediction, SUM_TOLERANCE};
use crate::stats::weight::Weight;
use std::collections::HashMap;

/// The value of a wanted field, borrowed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Missing,
    Null,
    Bool(bool),
    /// In JSON's grammar.
    Number(&'a str),
    NotFinite(&'a str),
    /// Without quotes, escapes undone.
    Text(&'a str),
    /// A checked JSON array with its brackets.
    Array(&'a str),
    /// A checked JSON object with its braces.
    Object(&'a str),
    /// A CSV cell: whatever its reader takes it for.
    Cell(&'a str),
}

/// Where a name comes from.
enum Source {
    Const(String),
    Slot(usize),
}

enum Id {
    None,
    Key,
    Slot(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The record is an outcome alone.
    Absent,
    Score,
    Vector,
    ClassMap,
}

/// [`DecodeOptions`] with slots for paths.
pub(super) struct Shape {
    model: Source,
    version: Source,
    /// Key and slot.
    segments: Vec<(String, usize)>,
    id: Id,
    time: Option<(usize, TimeUnit)>,
    form: Form,
    /// Slot of the prediction; in a shape of outcomes, none has this number.
    pub prediction: usize,
    outcome: usize,
    weight: Option<usize>,
    /// Paths of the slots.
    names: Vec<String>,
    classes: HashMap<String, u32>,
    time_earliest_ms: i64,
    time_latest_ms: i64,
    ahead_ms_max: Option<i64>,
}

/// What an event borrows that does not stand in the record as it is.
#[derive(Default)]
pub(super) struct Buffers {
    segment: String,
    vector: Vec<f64>,
}

type Checked<T> = Result<T, Rejection>;

impl Shape {
    /// Compiles the options; the paths are left in `paths`.
    pub fn new(o: &DecodeOptions, paths: &mut Paths) -> Result<Shape, DecodeOptionsError> {
        let model = source(&o.model, paths)?;
        let version = match &o.version {
            Some(v) => source(v, paths)?,
            None => Source::Const(String::new()),
        };
        let mut segments = Vec::new();
        for s in &o.segments {
            segments.push((s.clone(), paths.slot(s)?));
        }
        let id = match &o.id {
            None => Id::None,
            Some(IdField::Key) => Id::Key,
            Some(IdField::Path(p)) => Id::Slot(paths.slot(p)?),
        };
        let time = match &o.time {
            None => None,
            Some(t) => Some((paths.slot(&t.path)?, t.unit)),
        };
        let (form, path) = match &o.prediction {
            PredictionField::Score(p) => (Form::Score, p),
            PredictionField::Vector(p) => (Form::Vector, p),
            PredictionField::ClassMap(p) => (Form::ClassMap, p),
        };
        let prediction = paths.slot(path)?;
        let outcome = paths.slot(&o.outcome)?;
        let weight = match &o.weight {
            None => None,
            Some(p) => Some(paths.slot(p)?),
        };
        if outcome == prediction {
            return Err(DecodeOptionsError(format!(
                "prediction and outcome are both `{path}`; they must be two fields"
            )));
        }
        Ok(Shape {
            model,
            version,
            segments,
            id,
            time,
            form,
            prediction,
            outcome,
            weight,
            names: paths.names.clone(),
            classes: classes(&o.classes, form)?,
            time_earliest_ms: o.time_earliest_ms,
            time_latest_ms: o.time_latest_ms,
            ahead_ms_max: o.ahead_ms_max,
        })
    }

    /// The same for records that are outcomes alone.
    pub fn of_labels(o: &LabelOptions, paths: &mut Paths) -> Result<Shape, DecodeOptionsError> {
        let id = match &o.id {
            IdField::Key => Id::Key,
            IdField::Path(p) => Id::Slot(paths.slot(p)?),
        };
        let time = match &o.time {
            None => None,
            Some(t) => Some((paths.slot(&t.path)?, t.unit)),
        };
        let model = match &o.model {
            None => Source::Const(String::new()),
            Some(p) => Source::Slot(paths.slot(p)?),
        };
        let outcome = paths.slot(&o.outcome)?;
        Ok(Shape {
            model,
            version: Source::Const(String::new()),
            segments: Vec::new(),
            id,
            time,
            form: Form::Absent,
            prediction: usize::MAX,
            outcome,
            weight: None,
            names: paths.names.clone(),
            classes: classes(&o.classes, Form::Absent)?,
            time_earliest_ms: o.time_earliest_ms,
            time_latest_ms: o.time_latest_ms,
            ahead_ms_max: o.ahead_ms_max,
        })
    }

    /// The outcome that the values make.
    #[inline]
    pub fn label<'a>(
        &'a self,
        value: impl Fn(usize) -> Value<'a>,
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
    ) -> Checked<Label<'a>> {
        let model = match self.model {
            Source::Const(_) => None,
            Source::Slot(_) => Some(self.name(&self.model, &value)?),
        };
        let id = self.id(&value, key)?;
        let time_ms = self.time(&value, timestamp_ms)?;
        let outcome = value(self.outcome);
        let Some(class) = self.class(outcome, usize::MAX)? else {
            return Err(Rejection::missing(&self.names[self.outcome], "the outcome"));
        };
        Ok(Label {
            model,
            id,
            time_ms,
            arrival_ms: timestamp_ms,
            outcome: Outcome::Class(class),
        })
    }

    /// The event that the values make.
    #[inline]
    pub fn event<'a>(
        &'a self,
        value: impl Fn(usize) -> Value<'a>,
        buffers: &'a mut Buffers,
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
    ) -> Checked<Event<'a>> {
        let model = self.name(&self.model, &value)?;
        if model.is_empty() {
            return Err(Rejection::new(
                Reason::EmptyKey,
                "the model's name is empty; every record must name its model".to_string(),
            ));
        }
        let version = self.name(&self.version, &value)?;
        self.join_segments(&value, &mut buffers.segment)?;
        let id = self.id(&value, key)?;
        let time_ms = self.time(&value, timestamp_ms)?;
        let prediction = value(self.prediction);
        let prediction = match self.form {
            Form::Score | Form::Absent => {
                Prediction::Score(self.score(self.prediction, prediction)?)
            }
            Form::Vector => {
                self.vector(prediction, &mut buffers.vector)?;
                Prediction::Vector(&buffers.vector)
            }
            Form::ClassMap => {
                self.class_map(prediction, &mut buffers.vector)?;
                Prediction::Vector(&buffers.vector)
            }
        };
        let outcome = self.outcome(value(self.outcome), &prediction)?;
        let weight = match self.weight {
            None => None,
            Some(slot) => Some(self.weight(slot, value(slot))?),
        };
        Ok(Event {
            model,
            version,
            segment: &buffers.segment,
            id,
            time_ms,
            arrival_ms: timestamp_ms,
            prediction,
            outcome,
            weight,
        })
    }

    /// A number above 0; nothing is taken for 1 because it is missing.
    fn weight(&self, slot: usize, value: Value<'_>) -> Checked<Weight> {
        let field = &self.names[slot];
        let bad = |shown: &str, remedy| Rejection::value(Reason::BadWeight, field, shown, remedy);
        let number = "write the weight as a number above 0, without quotes";
        let (w, shown) = match value {
            Value::Number(t) => (number::parse(t), t),
            Value::Cell(t) => (t.trim().parse().map_err(|_| bad(t, number))?, t),
            Value::NotFinite(t) => (f64::NAN, t),
            Value::Missing | Value::Null => return Err(Rejection::missing(field, "its weight")),
            Value::Text(t) => return Err(bad(&format!("\"{}\"", shorten(t)), number)),
            Value::Array(t) | Value::Object(t) => return Err(bad(t, number)),
            Value::Bool(_) => return Err(bad("a boolean", number)),
        };
        Weight::new(w).map_err(|e| bad(shown, e.remedy()))
    }

    #[inline]
    fn name<'a>(
        &'a self,
        source: &'a Source,
        value: &impl Fn(usize) -> Value<'a>,
    ) -> Checked<&'a str> {
        match source {
            Source::Const(c) => Ok(c),
            Source::Slot(slot) => self.text(*slot, value(*slot)),
        }
    }

    /// Text, or a number as it is written.
    #[inline]
    fn text<'a>(&self, slot: usize, value: Value<'a>) -> Checked<&'a str> {
        match value {
            Value::Text(t) | Value::Number(t) | Value::Cell(t) => Ok(t),
            Value::Bool(true) => Ok("true"),
            Value::Bool(false) => Ok("false"),
            Value::Missing | Value::Null => Err(Rejection::missing(&self.names[slot], "it")),
            Value::Array(t) | Value::Object(t) | Value::NotFinite(t) => Err(Rejection::value(
                Reason::Malformed,
                &self.names[slot],
                t,
                "write it as a string",
            )),
        }
    }

    /// `k=v,k=v`; within a key or value `%`, `,` and `=` are written `%25`, `%2C`, `%3D`, so that two
    /// different lists never join to one text.
    fn join_segments<'a>(
        &self,
        value: &impl Fn(usize) -> Value<'a>,
        joined: &mut String,
    ) -> Checked<()> {
        joined.clear();
        for (key, slot) in &self.segments {
            if !joined.is_empty() {
                joined.push(',');
            }
            push_escaped(joined, key);
            joined.push('=');
            push_escaped(joined, self.text(*slot, value(*slot))?);
        }
        Ok(())
    }

    #[inline]
    fn id<'a>(
        &self,
        value: &impl Fn(usize) -> Value<'a>,
        key: Option<&'a [u8]>,
    ) -> Checked<&'a [u8]> {
        match self.id {
            Id::None => Ok(b""),
            Id::Key => match key {
                Some(k) if !k.is_empty() => Ok(k),
                _ => Err(Rejection::new(
                    Reason::EmptyKey,
                    "the record has no key, from which its id should come; set a key or take the id from a field"
                        .to_string(),
                )),
            },
            Id::Slot(slot) => {
                let id = self.text(slot, value(slot))?;
                if id.is_empty() {
                    return Err(Rejection::value(
                        Reason::EmptyKey,
                        &self.names[slot],
                        "empty",
                        "give each event an id",
                    ));
                }
                Ok(id.as_bytes())
            }
        }
    }

    #[inline]
    fn time<'a>(
        &self,
        value: &impl Fn(usize) -> Value<'a>,
        timestamp_ms: Option<i64>,
    ) -> Checked<i64> {
        let (time_ms, field) = match self.time {
            None => match timestamp_ms {
                Some(t) => (t, "the Kafka timestamp"),
                None => {
                    return Err(Rejection::new(
                        Reason::BadTime,
                        "the record has no timestamp; name the field that holds the event time"
                            .to_string(),
                    ));
                }
            },
            Some((slot, unit)) => (
                self.time_field(slot, unit, value(slot))?,
                self.names[slot].as_str(),
            ),
        };
        if !(self.time_earliest_ms..=self.time_latest_ms).contains(&time_ms) {
            return Err(self.time_outside(field, time_ms));
        }
        match (self.ahead_ms_max, timestamp_ms) {
            // A record without a real timestamp of its own (0) cannot be compared with.
            (Some(max), Some(arrival)) if arrival > 0 && time_ms - arrival > max => {
                Err(Rejection::new(
                    Reason::TimeOutOfRange,
                    format!(
                        "field `{field}` is {} s after the record's own timestamp; check the producer's clock, time zone and unit",
                        (time_ms - arrival) / 1000
                    ),
                ))
            }
            _ => Ok(time_ms),
        }
    }

    #[inline]
    fn time_field(&self, slot: usize, unit: TimeUnit, value: Value<'_>) -> Checked<i64> {
        let (time, shown) = match (value, unit) {
            (Value::Missing | Value::Null, _) => {
                return Err(Rejection::missing(&self.names[slot], "its time"));
            }
            (Value::Text(t) | Value::Cell(t), TimeUnit::Rfc3339) => (time::from_rfc3339(t), t),
            (Value::Number(t) | Value::Cell(t), _) => (time::from_number(t, unit), t),
            (Value::Text(t) | Value::Array(t) | Value::Object(t) | Value::NotFinite(t), _) => {
                (None, t)
            }
            (Value::Bool(_), _) => (None, "a boolean"),
        };
        time.ok_or_else(|| {
            let remedy = match unit {
                TimeUnit::Milliseconds => {
                    "write a number of milliseconds since 1970, or set the unit"
                }
                TimeUnit::Seconds => "write a number of seconds since 1970, or set the unit",
                TimeUnit::Microseconds => {
                    "write a number of microseconds since 1970, or set the unit"
                }
                TimeUnit::Rfc3339 => "write RFC 3339, such as \"2026-11-21T14:30:00Z\"",
            };
            Rejection::value(Reason::BadTime, &self.names[slot], shown, remedy)
        })
    }

    #[cold]
    fn time_outside(&self, field: &str, time_ms: i64) -> Rejection {
        let remedy = if time_ms < self.time_earliest_ms {
            "before the earliest time that is believed; is it in seconds, or unset?"
        } else {
            "after the latest time that is believed; is it in microseconds?"
        };
        Rejection::value(
            Reason::TimeOutOfRange,
            field,
            &format!("{time_ms} ms since 1970"),
            remedy,
        )
    }

    /// A number in [0, 1].
    #[inline]
    fn score(&self, slot: usize, value: Value<'_>) -> Checked<f64> {
        let field = &self.names[slot];
        let (z, shown) = match value {
            Value::Number(t) => (number::parse(t), t),
            Value::Cell(t) => match t.trim().parse::<f64>() {
                Ok(z) => (z, t),
                Err(_) => return Err(not_a_number(field, t)),
            },
            Value::NotFinite(t) => (f64::NAN, t),
            Value::Missing | Value::Null => {
                return Err(Rejection::missing(field, "the model's prediction"));
            }
            Value::Text(t) => return Err(not_a_number(field, &format!("\"{}\"", shorten(t)))),
            Value::Array(t) | Value::Object(t) => return Err(not_a_number(field, t)),
            Value::Bool(b) => return Err(not_a_number(field, if b { "true" } else { "false" })),
        };
        if (0.0..=1.0).contains(&z) {
            return Ok(z);
        }
        Err(if z.is_finite() {
            Rejection::value(
                Reason::ScoreOutOfRange,
                field,
                shown,
                "a probability lies between 0 and 1; nothing is clamped",
            )
        } else {
            Rejection::value(
                Reason::ScoreNotFinite,
                field,
                shown,
                "a probability is a finite number between 0 and 1",
            )
        })
    }

    fn vector(&self, value: Value<'_>, p: &mut Vec<f64>) -> Checked<()> {
        let slot = self.prediction;
        let text = match value {
            Value::Array(t) => t,
            Value::Cell(t) if check_json(t, b'[') => t,
            other => return Err(self.not_this(other, "an array of probabilities")),
        };
        p.clear();
        let mut s = Scanner {
            bytes: text.as_bytes(),
            at: 1,
        };
        s.space();
        while s.peek() != Some(b']') {
            let z = self.score(slot, self.next_value(&mut s, text)?)?;
            p.push(z);
            s.space();
            s.eat(b',');
            s.space();
        }
        let expected = self.classes.len();
        if p.len() < 2 || (expected > 0 && p.len() != expected) {
            return Err(Rejection::new(
                Reason::VectorLength,
                format!(
                    "field `{}` has {} probabilities; expected {}",
                    self.names[slot],
                    p.len(),
                    if expected > 0 {
                        format!("one for each of the {expected} classes")
                    } else {
                        "at least 2".to_string()
                    }
                ),
            ));
        }
        self.check_sum(p)
    }

    fn class_map(&self, value: Value<'_>, p: &mut Vec<f64>) -> Checked<()> {
        let slot = self.prediction;
        let text = match value {
            Value::Object(t) => t,
            Value::Cell(t) if check_json(t, b'{') => t,
            // Columns of a CSV file, put in the order of the classes by its reader.
            Value::Array(_) => return self.vector(value, p),
            other => return Err(self.not_this(other, "an object from class to probability")),
        };
        p.clear();
        p.resize(self.classes.len(), f64::NAN);
        let mut s = Scanner {
            bytes: text.as_bytes(),
            at: 1,
        };
        s.space();
        while s.peek() != Some(b'}') {
            let key = s.key().map_err(|f| Rejection::fault(f, text.as_bytes()))?;
            let raw = &text[key.start..key.end];
            let class = match key.kind {
                Kind::EscapedText => self.classes.get(&unescape(raw.as_bytes())),
                _ => self.classes.get(raw),
            };
            let Some(&k) = class else {
                return Err(self.unknown_class(slot, raw));
            };
            let z = self.score(slot, self.next_value(&mut s, text)?)?;
            if !p[k as usize].is_nan() {
                return Err(Rejection::value(
                    Reason::Malformed,
                    &self.names[slot],
                    text,
                    "a class comes twice; name each once",
                ));
            }
            p[k as usize] = z;
            s.space();
            s.eat(b',');
            s.space();
        }
        if p.iter().any(|z| z.is_nan()) {
            return Err(Rejection::value(
                Reason::VectorLength,
                &self.names[slot],
                text,
                "a class has no probability; name every class, with 0 where it is 0",
            ));
        }
        self.check_sum(p)
    }

    /// The next value of an array or object that was checked before.
    fn next_value<'t>(&self, s: &mut Scanner<'_>, text: &'t str) -> Checked<Value<'t>> {
        let found = s
            .value(true, 0)
            .map_err(|f| Rejection::fault(f, text.as_bytes()))?;
        let span = &text[found.start..found.end];
        Ok(match found.kind {
            Kind::Missing => Value::Missing,
            Kind::Null => Value::Null,
            Kind::True => Value::Bool(true),
            Kind::False => Value::Bool(false),
            Kind::Number => Value::Number(span),
            Kind::NotFinite => Value::NotFinite(span),
            Kind::Text | Kind::EscapedText => Value::Text(span),
            Kind::Array => Value::Array(span),
            Kind::Object => Value::Object(span),
        })
    }

    fn check_sum(&self, p: &[f64]) -> Checked<()> {
        let sum: f64 = p.iter().sum();
        if (sum - 1.0).abs() <= SUM_TOLERANCE {
            return Ok(());
        }
        Err(Rejection::new(
            Reason::VectorSum,
            format!(
                "field `{}` sums to {sum}, not to 1; send probabilities of all classes, not logits or independent scores",
                self.names[self.prediction]
            ),
        ))
    }

    #[cold]
    fn not_this(&self, value: Value<'_>, what: &str) -> Rejection {
        let field = &self.names[self.prediction];
        match value {
            Value::Missing | Value::Null => Rejection::missing(field, "the model's prediction"),
            Value::Number(t)
            | Value::NotFinite(t)
            | Value::Text(t)
            | Value::Cell(t)
            | Value::Array(t)
            | Value::Object(t) => {
                Rejection::value(Reason::WrongShape, field, t, &format!("expected {what}"))
            }
            Value::Bool(_) => Rejection::value(
                Reason::WrongShape,
                field,
                "a boolean",
                &format!("expected {what}"),
            ),
        }
    }

    #[cold]
    fn unknown_class(&self, slot: usize, class: &str) -> Rejection {
        Rejection::value(
            Reason::UnknownClass,
            &self.names[slot],
            class,
            &if self.classes.is_empty() {
                "which is no class of the prediction; list the class names in `classes`".to_string()
            } else {
                format!(
                    "which is none of the {} `classes`; add it or correct the producer",
                    self.classes.len()
                )
            },
        )
    }

    #[inline]
    fn outcome(&self, value: Value<'_>, prediction: &Prediction<'_>) -> Checked<Option<Outcome>> {
        let slot = self.outcome;
        let classes = match prediction {
            Prediction::Score(_) => 2,
            Prediction::Vector(p) => p.len(),
        };
        let Some(class) = self.class(value, classes)? else {
            return Ok(None);
        };
        match prediction {
            Prediction::Score(_) if class <= 1 => Ok(Some(Outcome::Binary(class == 1))),
            Prediction::Vector(p) if (class as usize) < p.len() => Ok(Some(Outcome::Class(class))),
            Prediction::Score(_) => Err(Rejection::value(
                Reason::BadOutcome,
                &self.names[slot],
                &class.to_string(),
                "with a single score an outcome is true, false, 0 or 1",
            )),
            Prediction::Vector(_) => Err(self.unknown_class(slot, &class.to_string())),
        }
    }

    /// The class that an outcome names, among `classes`; `usize::MAX` where their number is not known.
    #[inline]
    fn class(&self, value: Value<'_>, classes: usize) -> Checked<Option<u32>> {
        let slot = self.outcome;
        let two = classes == 2 || classes == usize::MAX;
        let class = match value {
            Value::Missing | Value::Null => return Ok(None),
            Value::Bool(b) if two => Ok(u32::from(b)),
            Value::Bool(b) => Err(if b { "true" } else { "false" }),
            Value::Number(t) => index(t).ok_or(t),
            Value::Text(t) => match self.classes.get(t) {
                Some(&k) => Ok(k),
                None => return Err(self.unknown_class(slot, t)),
            },
            Value::Cell(t) => match self.classes.get(t) {
                Some(&k) => Ok(k),
                None => cell_outcome(t, two).ok_or(t),
            },
            Value::Array(t) | Value::Object(t) | Value::NotFinite(t) => Err(t),
        };
        let class = class.map_err(|shown| {
            let remedy = if two {
                "an outcome is true, false, 0, 1 or a class"
            } else {
                "an outcome is the name or the index of a class"
            };
            Rejection::value(Reason::BadOutcome, &self.names[slot], shown, remedy)
        })?;
        Ok(Some(class))
    }
}

fn source(f: &FieldOrConst, paths: &mut Paths) -> Result<Source, DecodeOptionsError> {
    Ok(match f {
        FieldOrConst::Const(c) => Source::Const(c.clone()),
        FieldOrConst::Field(p) => Source::Slot(paths.slot(p)?),
    })
}

fn classes(names: &[String], form: Form) -> Result<HashMap<String, u32>, DecodeOptionsError> {
    let mut map = HashMap::new();
    for (k, name) in (0u32..).zip(names) {
        if map.insert(name.clone(), k).is_some() {
            return Err(DecodeOptionsError(format!(
                "class `{name}` comes twice in `classes`; name each once"
            )));
        }
    }
    match (form, map.len()) {
        (Form::ClassMap, 0 | 1) => Err(DecodeOptionsError(
            "a class map needs the names of its classes; list at least two in `classes`".into(),
        )),
        (Form::Score, n) if n != 0 && n != 2 => Err(DecodeOptionsError(format!(
            "a single score goes with two classes, not {n}; list the negative and the positive one in `classes`"
        ))),
        (Form::Vector, 1) => Err(DecodeOptionsError(
            "one class is no choice; list at least two in `classes`, or none".into(),
        )),
        _ => Ok(map),
    }
}

#[cold]
fn not_a_number(field: &str, shown: &str) -> Rejection {
    Rejection::value(
        Reason::ScoreNotNumber,
        field,
        shown,
        "write probabilities as JSON numbers, without quotes",
    )
}

/// A class index: digits, or an integral number such as `1.0`.
#[inline]
fn index(t: &str) -> Option<u32> {
    match t {
        "0" => Some(0),
        "1" => Some(1),
        _ => t.parse().ok().or_else(|| {
            let x: f64 = t.parse().ok()?;
            // The cast is exact: an integer below 2³².
            (x.fract() == 0.0 && (0.0..4_294_967_296.0).contains(&x)).then_some(x as u32)
        }),
    }
}

fn cell_outcome(t: &str, two: bool) -> Option<u32> {
    let t = t.trim();
    if two && t.eq_ignore_ascii_case("true") {
        Some(1)
    } else if two && t.eq_ignore_ascii_case("false") {
        Some(0)
    } else {
        index(t)
    }
}

/// Whether a CSV cell holds one JSON array or object.
fn check_json(cell: &str, first: u8) -> bool {
    let mut s = Scanner {
        bytes: cell.as_bytes(),
        at: 0,
    };
    s.peek() == Some(first) && s.value(true, 0).is_ok_and(|f| f.end == cell.len())
}

fn push_escaped(joined: &mut String, text: &str) {
    if !text.contains(['%', ',', '=']) {
        joined.push_str(text);
        return;
    }
    for c in text.chars() {
        match c {
            '%' => joined.push_str("%25"),
            ',' => joined.push_str("%2C"),
            '=' => joined.push_str("%3D"),
            c => joined.push(c),
        }
    }
}
