//! The checks of a prediction, an outcome and a weight.

use super::super::classes::{index, integer, of_cell};
use super::super::rejection::{Rejection, outside, shorten};
use super::super::scan::{Scanner, unescape};
use super::super::value::{Kind, Value};
use super::{Checked, Shape};
use crate::collect::Reason;
use crate::stats::view::{Outcome, Prediction, SUM_TOLERANCE};
use crate::stats::weight::Weight;

impl Shape {
    /// Checks a weight, which is a number above 0. A missing weight does not count as 1.
    pub(super) fn weight(&self, slot: usize, value: Value<'_>) -> Checked<Weight> {
        let field = &self.names[slot];
        let bad = |shown: &str, remedy| Rejection::value(Reason::BadWeight, field, shown, remedy);
        let number = "write the weight as a number above 0, without quotes";
        let (w, shown) = match value {
            Value::Number(n) => (n.double(), n.text()),
            Value::Cell(t) => (t.trim().parse().map_err(|_| bad(t, number))?, t),
            Value::NotFinite(t) => (f64::NAN, t),
            Value::Missing | Value::Null => return Err(Rejection::missing(field, "its weight")),
            Value::Text(t) => return Err(bad(&format!("\"{}\"", shorten(t.as_str())), number)),
            Value::Array(t) | Value::Object(t) => return Err(bad(t, number)),
            Value::Bool(_) => return Err(bad("a boolean", number)),
        };
        Weight::new(w).map_err(|e| bad(shown, e.remedy()))
    }

    /// Checks a score, which is a number in [0, 1].
    #[inline]
    pub(super) fn score(&self, slot: usize, value: Value<'_>) -> Checked<f64> {
        let field = &self.names[slot];
        let (z, shown) = match value {
            Value::Number(n) => match n.double() {
                z if (0.0..=1.0).contains(&z) => return Ok(z),
                z => (z, n.text()),
            },
            Value::Cell(t) => match t.trim().parse::<f64>() {
                Ok(z) => (z, t),
                Err(_) => return Err(not_a_number(field, t)),
            },
            Value::NotFinite(t) => (f64::NAN, t),
            Value::Missing => return Err(Rejection::missing(field, "the model's prediction")),
            Value::Null => {
                let remedy = "every record must carry the model's prediction";
                let reason = Reason::MissingField;
                return Err(Rejection::value(reason, field, "null", remedy));
            }
            Value::Text(t) => {
                return Err(not_a_number(field, &format!("\"{}\"", shorten(t.as_str()))));
            }
            Value::Array(t) | Value::Object(t) => {
                let remedy = "name a list in `probabilities`, and an object in `class_probabilities`, instead of `score`";
                return Err(Rejection::value(Reason::ScoreNotNumber, field, t, remedy));
            }
            Value::Bool(b) => return Err(not_a_number(field, truth(b))),
        };
        if (0.0..=1.0).contains(&z) {
            return Ok(z);
        }
        let (reason, remedy) = match z.is_finite() {
            true => (Reason::ScoreOutOfRange, outside(z)),
            false => (
                Reason::ScoreNotFinite,
                "a probability is a finite number between 0 and 1",
            ),
        };
        Err(Rejection::value(reason, field, shown, remedy))
    }

    /// Checks an array of probabilities and puts them into `p`.
    pub(super) fn vector(&self, value: Value<'_>, p: &mut Vec<f64>) -> Checked<()> {
        let slot = self.prediction;
        let text = match value {
            Value::Array(t) => t,
            Value::Cell(t) if check_json(t, b'[') => t,
            other => return Err(self.wrong_shape(other, "an array of probabilities")),
        };
        p.clear();
        let mut s = Scanner {
            bytes: text.as_bytes(),
            at: 1,
        };
        s.each(b']', |s| -> Checked<()> {
            p.push(self.score(slot, self.next_value(s, text)?)?);
            Ok(())
        })?;
        let expected = self.classes.len();
        if p.len() < 2 || (expected > 0 && p.len() != expected) {
            let wanted = match expected {
                0 => "at least 2".to_owned(),
                n => format!("one for each of the {n} classes"),
            };
            let (field, n) = (&self.names[slot], p.len());
            let why = format!("field `{field}` has {n} probabilities; expected {wanted}");
            return Err(Rejection::new(Reason::VectorLength, why));
        }
        self.check_sum(p)
    }

    /// Checks an object from class to probability and puts the probabilities into `p`.
    pub(super) fn class_map(&self, value: Value<'_>, p: &mut Vec<f64>) -> Checked<()> {
        let (slot, field) = (self.prediction, &self.names[self.prediction]);
        let text = match value {
            Value::Object(t) => t,
            Value::Cell(t) if check_json(t, b'{') => t,
            // Class columns of a CSV file, which its reader has put into the order of the classes.
            Value::Array(_) => return self.vector(value, p),
            other => return Err(self.wrong_shape(other, "an object from class to probability")),
        };
        p.clear();
        p.resize(self.classes.len(), f64::NAN);
        let mut s = Scanner {
            bytes: text.as_bytes(),
            at: 1,
        };
        s.each(b'}', |s| -> Checked<()> {
            let key = s.key().map_err(|f| Rejection::fault(f, text.as_bytes()))?;
            let raw = &text[key.start..key.end];
            let class = match key.kind {
                Kind::EscapedText => self.classes.get(&unescape(raw.as_bytes())),
                _ => self.classes.get(raw),
            };
            let Some(&k) = class else {
                return Err(self.unknown_class(slot, raw));
            };
            let z = self.score(slot, self.next_value(s, text)?)?;
            if !p[k as usize].is_nan() {
                let remedy = "a class appears twice; name each class once";
                return Err(Rejection::value(Reason::Malformed, field, text, remedy));
            }
            p[k as usize] = z;
            Ok(())
        })?;
        if p.iter().any(|z| z.is_nan()) {
            let remedy = "a class has no probability; name every class, with 0 where it is 0";
            return Err(Rejection::value(Reason::VectorLength, field, text, remedy));
        }
        self.check_sum(p)
    }

    /// The next value of an array or object that was already checked.
    fn next_value<'t>(&self, s: &mut Scanner<'_>, text: &'t str) -> Checked<Value<'t>> {
        let found = s
            .value(true, 0)
            .map_err(|f| Rejection::fault(f, text.as_bytes()))?;
        let span = &text.as_bytes()[found.start..found.end];
        Ok(Value::of(found.kind, span, None))
    }

    fn check_sum(&self, p: &[f64]) -> Checked<()> {
        let sum: f64 = p.iter().sum();
        if (sum - 1.0).abs() <= SUM_TOLERANCE {
            return Ok(());
        }
        let field = &self.names[self.prediction];
        let why = format!(
            "field `{field}` sums to {sum}, not to 1; send probabilities of all classes, not logits or independent scores"
        );
        Err(Rejection::new(Reason::VectorSum, why))
    }

    #[cold]
    fn wrong_shape(&self, value: Value<'_>, what: &str) -> Rejection {
        let field = &self.names[self.prediction];
        match value {
            Value::Missing | Value::Null => Rejection::missing(field, "the model's prediction"),
            other => {
                let remedy = format!("expected {what}");
                Rejection::value(Reason::WrongShape, field, other.shown(), &remedy)
            }
        }
    }

    /// The outcome of an event; `None` if it has none yet.
    #[inline]
    pub(super) fn outcome(
        &self,
        value: Value<'_>,
        prediction: &Prediction<'_>,
    ) -> Checked<Option<Outcome>> {
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

    /// The class of an outcome among `classes`, which is `usize::MAX` if their number is unknown.
    #[inline]
    pub(super) fn class(&self, value: Value<'_>, classes: usize) -> Checked<Option<u32>> {
        let slot = self.outcome;
        let two = classes == 2 || (classes == usize::MAX && self.classes.len() <= 2);
        if let Some(class) = self.meaning(value) {
            return Ok(Some(class));
        }
        let class = match value {
            Value::Missing | Value::Null => return Ok(None),
            Value::Bool(b) if two => Ok(u32::from(b)),
            Value::Bool(b) => Err(truth(b)),
            Value::Number(n) if self.numbers_are_names => {
                let named = self.named_by(n.text());
                Ok(named.ok_or_else(|| self.unknown_class(slot, n.text()))?)
            }
            Value::Number(n) => match n.whole().map(u32::try_from) {
                Some(Ok(k)) => Ok(k),
                _ => index(n.text()).ok_or_else(|| n.text()),
            },
            Value::Text(text) => {
                let t = text.as_str();
                let may_be_true = self.classes.is_empty() && two;
                let of_truth = || of_cell(t, two).filter(|k| may_be_true && *k <= 1);
                let class = self.classes.get(t).copied().or_else(of_truth);
                Ok(class.ok_or_else(|| self.unknown_class(slot, &format!("\"{t}\"")))?)
            }
            Value::Cell(t) => {
                let class = self.classes.get(t).copied();
                let class = class.or_else(|| match self.numbers_are_names {
                    true => self.named_by(t.trim()),
                    false => of_cell(t, two),
                });
                match class {
                    Some(class) => Ok(class),
                    None if !self.numbers_are_names && t.trim().parse::<f64>().is_ok() => Err(t),
                    None => return Err(self.unknown_class(slot, &format!("\"{t}\""))),
                }
            }
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

    /// The class that `outcome_map` gives for an outcome.
    #[inline(always)]
    fn meaning(&self, value: Value<'_>) -> Option<u32> {
        match self.meanings.is_empty() {
            true => None,
            false => self.mapped(value),
        }
    }

    #[inline(never)]
    fn mapped(&self, value: Value<'_>) -> Option<u32> {
        let text = match value {
            Value::Text(t) => t.as_str(),
            Value::Number(n) => n.text(),
            Value::Cell(t) => t.trim(),
            Value::Bool(b) => truth(b),
            _ => return None,
        };
        let mapped = self.meanings.get(text).copied();
        // `1.0` is 1, and the text `True` is true, unless it is the name of a class.
        mapped.or_else(|| {
            let text = Some(text.trim()).filter(|t| !self.classes.contains_key(*t))?;
            let plain = match text.to_ascii_lowercase() {
                lower if lower == "true" || lower == "false" => lower,
                _ => integer(text)?,
            };
            self.meanings.get(&plain).copied()
        })
    }

    /// The class named by a number, which is written like the name or as an integral number such as
    /// `2.0`.
    fn named_by(&self, t: &str) -> Option<u32> {
        let named = self.classes.get(t).copied();
        named.or_else(|| self.classes.get(&integer(t)?).copied())
    }

    #[cold]
    pub(super) fn unknown_class(&self, slot: usize, class: &str) -> Rejection {
        let remedy = match self.classes.len() {
            0 => "it is no class of the prediction; list the class names in `classes`, or say what it means in \
                  `outcome_map`"
                .to_owned(),
            n => format!(
                "it is none of the {n} `classes`; add it, say what it means in `outcome_map`, or correct the \
                 producer"
            ),
        };
        Rejection::value(Reason::UnknownClass, &self.names[slot], class, &remedy)
    }
}

/// The text of a truth value.
fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
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

/// Whether a CSV cell contains one JSON array or object.
fn check_json(cell: &str, first: u8) -> bool {
    let mut s = Scanner {
        bytes: cell.as_bytes(),
        at: 0,
    };
    s.peek() == Some(first) && s.value(true, 0).is_ok_and(|f| f.end == cell.len())
}

#[cfg(test)]
mod tests {
    use super::super::super::options::{DecodeOptions, TimeField, TimeUnit};
    use super::super::super::path::Paths;
    use super::*;

    #[test]
    fn a_cell_that_is_no_class_is_quoted_with_what_to_write() {
        let mut paths = Paths::new();
        let shape = Shape::new(&DecodeOptions::default(), &mut paths).expect("a shape");
        let said = |cell: &str| shape.class(Value::Cell(cell), 2);
        let rejected = said("yes").expect_err("no class");
        assert_eq!(rejected.reason, Reason::UnknownClass);
        assert!(rejected.detail.contains(" is \"yes\"; "), "{rejected:?}");
        assert!(rejected.detail.contains("`outcome_map`"), "{rejected:?}");
        let rejected = said("0.5").expect_err("no class");
        assert_eq!(rejected.reason, Reason::BadOutcome);
        assert_eq!(said(" TRUE "), Ok(Some(1)));
        assert_eq!(said("1.0"), Ok(Some(1)));
    }

    #[test]
    fn a_time_that_is_empty_or_of_the_broker_has_a_remedy_that_fits() {
        let detail = |time: Option<TimeField>, arrival_ms: i64| {
            let options = DecodeOptions {
                time,
                ..DecodeOptions::default()
            };
            let shape = Shape::new(&options, &mut Paths::new()).expect("a shape");
            let values = |_: usize| Value::Cell("");
            shape.time(&values, Some(arrival_ms)).expect_err("no time")
        };
        let field = TimeField {
            path: "at".into(),
            unit: TimeUnit::Rfc3339,
            zone_s: None,
        };
        let empty = detail(Some(field), 0).detail;
        assert_eq!(empty, "field `at` is empty; give each event its time");
        let early = detail(None, 1).detail;
        assert!(early.starts_with("the Kafka timestamp is 1 ms"), "{early}");
        assert!(!early.contains("time_unit"), "{early}");
    }

    #[test]
    fn an_outcome_is_mapped_however_its_number_or_truth_value_is_written() {
        let options = DecodeOptions {
            outcome_map: ["0=1", "1=0", "true=0", "false=1"]
                .map(|meaning| meaning.split_once('=').expect("a class"))
                .map(|(text, class)| (text.to_owned(), class.to_owned()))
                .to_vec(),
            ..DecodeOptions::default()
        };
        let shape = Shape::new(&options, &mut Paths::new()).expect("a shape");
        let said = |value: Value<'_>| shape.class(value, 2);
        for (one, zero) in [("1", "0"), ("1.0", "-0.0"), ("1e0", "0e5")] {
            for (text, class) in [(one, 0), (zero, 1)] {
                let number = Value::of(Kind::Number, text.as_bytes(), None);
                assert_eq!(said(number), Ok(Some(class)), "{text}");
                assert_eq!(said(Value::Cell(text)), Ok(Some(class)), "{text}");
                let quoted = Value::of(Kind::Text, text.as_bytes(), None);
                assert_eq!(said(quoted), Ok(Some(class)), "{text}");
            }
        }
        for (text, class) in [("true", 0), (" True", 0), ("FALSE ", 1)] {
            assert_eq!(said(Value::Cell(text)), Ok(Some(class)), "{text}");
            let quoted = Value::of(Kind::Text, text.as_bytes(), None);
            assert_eq!(said(quoted), Ok(Some(class)), "{text}");
        }
        assert_eq!(said(Value::Bool(true)), Ok(Some(0)));
    }

    #[test]
    fn a_name_of_a_class_is_not_mapped_as_the_truth_value_that_it_resembles() {
        let options = DecodeOptions {
            classes: ["True", "False"].map(str::to_owned).to_vec(),
            outcome_map: vec![("true".to_owned(), "False".to_owned())],
            ..DecodeOptions::default()
        };
        let shape = Shape::new(&options, &mut Paths::new()).expect("a shape");
        assert_eq!(shape.class(Value::Cell("True"), 2), Ok(Some(0)));
        assert_eq!(shape.class(Value::Cell("TRUE"), 2), Ok(Some(1)));
    }
}
