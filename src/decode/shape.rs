//! Turns the values of the wanted fields into a checked event, for JSON and CSV alike.
//!
//! All checks that need only the record are here, so that their texts can name the field. Their
//! order is fixed: model, version, segments, id, time, prediction, outcome, weight, cluster. The
//! first check that fails rejects the record.

mod checks;
mod compile;

use super::number::Number;
use super::options::TimeUnit;
use super::rejection::Rejection;
use super::time;
use super::value::{Value, Values};
use crate::collect::{EVENT_TIMES_MS, Event, OutcomeRecord, Reason};
use crate::stats::clusters::Bucket;
use crate::stats::view::{Outcome, Prediction};
use std::collections::HashMap;

/// The origin of a name.
enum Source {
    Const(String),
    Slot(usize),
}

impl Source {
    /// The bit of its slot. There are at most 64 slots.
    #[inline]
    fn bit(&self) -> u64 {
        match self {
            Source::Const(_) => 0,
            Source::Slot(slot) => 1 << (slot & 63),
        }
    }
}

enum Id {
    None,
    Key,
    Slot(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The record is only an outcome.
    Absent,
    Score,
    Vector,
    ClassMap,
}

/// The slot and format of the event time.
#[derive(Clone, Copy)]
struct TimeSlot {
    slot: usize,
    unit: TimeUnit,
    /// Time zone of a text without an offset, in seconds east of UTC.
    zone_s: Option<i64>,
}

/// Compiled options: paths are replaced by slots.
pub(super) struct Shape {
    model: Source,
    version: Source,
    /// Key with its equals sign, escaped, and slot.
    segments: Vec<(String, usize)>,
    /// A bit for each of their slots.
    segment_bits: u64,
    id: Id,
    time: Option<TimeSlot>,
    form: Form,
    /// Slot of the prediction; not a slot in a shape of outcomes.
    pub prediction: usize,
    outcome: usize,
    weight: Option<usize>,
    cluster: Option<usize>,
    /// Paths of the slots.
    names: Vec<String>,
    classes: HashMap<String, u32>,
    /// The class that `outcome_map` gives each outcome text.
    meanings: HashMap<String, u32>,
    /// The names of all classes are whole numbers, so a number names a class and is not its index.
    numbers_are_names: bool,
    ahead_ms_max: Option<i64>,
}

/// Buffers for the parts of an event that cannot be borrowed from the record.
#[derive(Default)]
pub struct Buffers {
    pub(super) segment: String,
    pub(super) vector: Vec<f64>,
}

type Checked<T> = Result<T, Rejection>;

impl Shape {
    /// Makes the outcome from these values.
    #[inline]
    pub fn outcome_record<'a>(
        &'a self,
        values: impl Values<'a>,
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
    ) -> Checked<OutcomeRecord<'a>> {
        let model = match self.model {
            Source::Const(_) => None,
            Source::Slot(_) => Some(self.name(&self.model, &values)?),
        };
        let id = self.id(&values, key)?;
        let time_ms = self.time(&values, timestamp_ms)?;
        let outcome = values.value(self.outcome);
        let Some(class) = self.class(outcome, usize::MAX)? else {
            return Err(Rejection::missing(&self.names[self.outcome], "the outcome"));
        };
        Ok(OutcomeRecord {
            model,
            id,
            time_ms,
            arrival_ms: timestamp_ms,
            outcome: Outcome::Class(class),
        })
    }

    /// Makes the event from these values.
    #[inline]
    pub fn event<'a>(
        &'a self,
        values: impl Values<'a>,
        buffers: &'a mut Buffers,
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
    ) -> Checked<Event<'a>> {
        let Buffers { segment, vector } = buffers;
        let names = self.names(&values, segment)?;
        self.event_named(names, values, vector, key, timestamp_ms, |event| event)
    }

    /// Reads model, version and segment.
    #[inline]
    pub fn names<'a>(
        &'a self,
        values: &impl Values<'a>,
        segment: &'a mut String,
    ) -> Checked<[&'a str; 3]> {
        self.names_beside(0, [""; 3], values, segment)
    }

    /// Reads model, version and segment. `known` has those of a previous record, `same` the bits of
    /// the slots whose values equal its values.
    #[inline(always)]
    pub fn names_beside<'a>(
        &'a self,
        same: u64,
        known: [&'a str; 3],
        values: &impl Values<'a>,
        segment: &'a mut String,
    ) -> Checked<[&'a str; 3]> {
        let is_same = |bits: u64| same & bits == bits && bits != 0;
        let model = match is_same(self.model.bit()) {
            true => known[0],
            false => self.name(&self.model, values)?,
        };
        if model.is_empty() {
            return Err(Rejection::new(
                Reason::EmptyKey,
                "the name of the model is empty; every record must name its model".to_string(),
            ));
        }
        let version = match is_same(self.version.bit()) {
            true => known[1],
            false => self.name(&self.version, values)?,
        };
        if is_same(self.segment_bits) {
            return Ok([model, version, known[2]]);
        }
        self.join_segments(values, segment)?;
        Ok([model, version, segment])
    }

    /// A bit for each slot of a name.
    pub fn name_slots(&self) -> u64 {
        self.model.bit() | self.version.bit() | self.segment_bits
    }

    /// Makes the event from these values and names and passes it to `content`. It is not returned,
    /// because copying it costs a thirtieth of the time per record.
    #[inline]
    pub fn event_named<'a, T>(
        &'a self,
        [model, version, segment]: [&'a str; 3],
        values: impl Values<'a>,
        vector: &'a mut Vec<f64>,
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
        content: impl FnOnce(Event<'a>) -> T,
    ) -> Checked<T> {
        let id = self.id(&values, key)?;
        let time_ms = self.time(&values, timestamp_ms)?;
        let prediction = values.value(self.prediction);
        let prediction = match self.form {
            Form::Score | Form::Absent => {
                Prediction::Score(self.score(self.prediction, prediction)?)
            }
            Form::Vector => {
                self.vector(prediction, vector)?;
                Prediction::Vector(vector)
            }
            Form::ClassMap => {
                self.class_map(prediction, vector)?;
                Prediction::Vector(vector)
            }
        };
        let outcome = self.outcome(values.value(self.outcome), &prediction)?;
        let weight = match self.weight {
            None => None,
            Some(slot) => Some(self.weight(slot, values.value(slot))?),
        };
        let cluster = match self.cluster {
            None => None,
            Some(slot) => Some(self.cluster(slot, values.value(slot))?),
        };
        Ok(content(Event {
            model,
            version,
            segment,
            id,
            time_ms,
            arrival_ms: timestamp_ms,
            prediction,
            outcome,
            weight,
            cluster,
        }))
    }

    #[inline]
    fn name<'a>(&'a self, source: &'a Source, values: &impl Values<'a>) -> Checked<&'a str> {
        match source {
            Source::Const(c) => Ok(c),
            Source::Slot(slot) => self.text(*slot, values.value(*slot)),
        }
    }

    /// Text, or a number as written.
    #[inline(always)]
    fn text<'a>(&self, slot: usize, value: Value<'a>) -> Checked<&'a str> {
        match value {
            Value::Text(t) => Ok(t.as_str()),
            Value::Cell(t) => Ok(t),
            Value::Number(n) => Ok(n.text()),
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

    /// The bucket of the cluster named by a text or number.
    fn cluster<'a>(&self, slot: usize, value: Value<'a>) -> Checked<Bucket> {
        let field = &self.names[slot];
        if let Value::Missing | Value::Null = value {
            return Err(Rejection::missing(field, "its cluster"));
        }
        let name = self.text(slot, value)?;
        if name.is_empty() {
            let remedy = "name the cluster of each event; one that shares none names itself";
            return Err(Rejection::value(Reason::EmptyKey, field, "empty", remedy));
        }
        Ok(Bucket::of(name.as_bytes()))
    }

    /// Joins the segments as `k=v,k=v`. In keys and values `%`, `,` and `=` become `%25`, `%2C` and
    /// `%3D`, so that two different lists never have the same text. A value that is missing or null
    /// is the empty text: data have gaps, and events without the value form their own segment.
    fn join_segments<'a>(&self, values: &impl Values<'a>, joined: &mut String) -> Checked<()> {
        joined.clear();
        for (key, slot) in &self.segments {
            if !joined.is_empty() {
                joined.push(',');
            }
            joined.push_str(key);
            match values.value(*slot) {
                Value::Missing | Value::Null => {}
                value => push_escaped(joined, self.text(*slot, value)?),
            }
        }
        Ok(())
    }

    #[inline]
    fn id<'a>(&self, values: &impl Values<'a>, key: Option<&'a [u8]>) -> Checked<&'a [u8]> {
        match self.id {
            Id::None => Ok(b""),
            Id::Key => match key {
                Some(k) if !k.is_empty() => Ok(k),
                _ => Err(Rejection::new(
                    Reason::EmptyKey,
                    "the record has no key, which should be its id; set a key or take the id from a field"
                        .to_string(),
                )),
            },
            Id::Slot(slot) => {
                let id = match values.value(slot) {
                    Value::Text(t) => t.0,
                    other => self.text(slot, other)?.as_bytes(),
                };
                if id.is_empty() {
                    let (field, remedy) = (&self.names[slot], "give each event an id");
                    return Err(Rejection::value(Reason::EmptyKey, field, "empty", remedy));
                }
                Ok(id)
            }
        }
    }

    /// The event time in ms since 1970.
    #[inline]
    fn time<'a>(&self, values: &impl Values<'a>, timestamp_ms: Option<i64>) -> Checked<i64> {
        let (time_ms, field) = match self.time {
            None => match timestamp_ms {
                Some(t) => (t, "the Kafka timestamp"),
                None => {
                    return Err(Rejection::new(
                        Reason::BadTime,
                        "the record has no timestamp; name the field with the event time"
                            .to_string(),
                    ));
                }
            },
            Some(time) => (
                self.time_field(time, values.value(time.slot))?,
                self.names[time.slot].as_str(),
            ),
        };
        if !EVENT_TIMES_MS.contains(&time_ms) {
            return Err(self.time_outside(field, time_ms));
        }
        match (self.ahead_ms_max, timestamp_ms) {
            // A timestamp of 0 is not a real one.
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
    fn time_field(&self, time: TimeSlot, value: Value<'_>) -> Checked<i64> {
        let TimeSlot { slot, unit, zone_s } = time;
        let time = match (value, unit) {
            (Value::Missing | Value::Null, _) => {
                return Err(Rejection::missing(&self.names[slot], "its time"));
            }
            (Value::Text(t), TimeUnit::Rfc3339) => time::from_text(t.as_str(), zone_s),
            (Value::Cell(t), TimeUnit::Rfc3339) => time::from_text(t, zone_s),
            (Value::Number(n), _) => time::from_number(n, unit),
            (Value::Cell(t), _) => time::from_number(Number::new(t.as_bytes(), None), unit),
            _ => None,
        };
        time.ok_or_else(|| {
            let shown = value.shown();
            if shown.trim().is_empty() {
                let remedy = "give each event its time";
                return Rejection::value(Reason::BadTime, &self.names[slot], "empty", remedy);
            }
            let is_date = || time::from_text(shown, Some(0)).is_some();
            let in_quotes = matches!(value, Value::Text(_)) && unit != TimeUnit::Rfc3339;
            let is_number =
                || time::from_number(Number::new(shown.as_bytes(), None), unit).is_some();
            let remedy: &str = match unit {
                TimeUnit::Rfc3339 if time::lacks_offset(shown) => {
                    "it has no time zone; write an offset or Z, or set `time_zone`"
                }
                TimeUnit::Rfc3339 if shown.bytes().all(|b| b.is_ascii_digit()) => {
                    "it is a number: set `time_unit` to \"s\", \"ms\" or \"us\", or write RFC 3339, such as \
                     \"2026-11-21T14:30:00Z\""
                }
                TimeUnit::Rfc3339 => "write RFC 3339, such as \"2026-11-21T14:30:00Z\"",
                _ if is_date() => "it is a date: set `time_unit = \"rfc3339\"`",
                _ if in_quotes && is_number() => "write the number without quotes",
                unit => {
                    let unit = unit.as_ref();
                    &format!("write a number of {unit} since 1970, or set `time_unit`")
                }
            };
            let quoted = || format!("\"{shown}\"");
            let shown = if in_quotes { &quoted() } else { shown };
            Rejection::value(Reason::BadTime, &self.names[slot], shown, remedy)
        })
    }

    #[cold]
    fn time_outside(&self, field: &str, time_ms: i64) -> Rejection {
        let side = match time_ms < EVENT_TIMES_MS.start {
            true => "before the earliest",
            false => "after the latest",
        };
        let shown = format!("{time_ms} ms since 1970");
        if self.time.is_none() {
            let why = format!(
                "{field} is {shown}; {side} accepted time; check the producer's clock, or name the field with the event time"
            );
            return Rejection::new(Reason::TimeOutOfRange, why);
        }
        let accepted = |ms: i64| EVENT_TIMES_MS.contains(&ms);
        let unit = match self.time.as_ref().map(|time| time.unit) {
            // The time was converted with the configured unit, so a wrong one is off by powers of
            // 1000.
            Some(TimeUnit::Milliseconds) if accepted(time_ms.saturating_mul(1000)) => "seconds",
            Some(TimeUnit::Milliseconds) if accepted(time_ms / 1000) => "microseconds",
            Some(TimeUnit::Milliseconds) if accepted(time_ms / 1_000_000) => "nanoseconds",
            Some(TimeUnit::Seconds) if accepted(time_ms / 1000) => "milliseconds",
            Some(TimeUnit::Seconds) if accepted(time_ms / 1_000_000) => "microseconds",
            Some(TimeUnit::Microseconds) if accepted(time_ms.saturating_mul(1000)) => {
                "milliseconds"
            }
            Some(TimeUnit::Microseconds) if accepted(time_ms / 1000) => "nanoseconds",
            _ => "",
        };
        let remedy = match unit {
            "" => format!("{side} accepted time; check the producer's clock and `time_unit`"),
            "nanoseconds" => format!(
                "{side} accepted time; it looks like nanoseconds: divide it by 1000, and set `time_unit = \"us\"`"
            ),
            unit => format!("{side} accepted time; it looks like {unit}: set `time_unit`"),
        };
        Rejection::value(Reason::TimeOutOfRange, field, &shown, &remedy)
    }
}

fn push_escaped(joined: &mut String, text: &str) {
    if !text.bytes().any(|b| matches!(b, b'%' | b',' | b'=')) {
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
