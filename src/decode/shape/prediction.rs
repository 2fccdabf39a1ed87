//! The checks of a prediction and of a weight.

use super::super::found::{self, Kind};
use super::super::rejection::{Rejection, shorten};
use super::super::scan::{Scanner, unescape};
use super::super::value::Value;
use super::{Checked, Shape};
use crate::collect::Reason;
use crate::stats::view::SUM_TOLERANCE;
use crate::stats::weight::Weight;

impl Shape {
    /// A weight is a number above 0. A missing weight does not count as 1.
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

    /// A score is a number in [0, 1].
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
                return Err(Rejection::value(
                    Reason::MissingField,
                    field,
                    "null",
                    remedy,
                ));
            }
            Value::Text(t) => {
                return Err(not_a_number(field, &format!("\"{}\"", shorten(t.as_str()))));
            }
            Value::Array(t) | Value::Object(t) => {
                let remedy = "name a list in `probabilities`, and an object in `class_probabilities`, instead of `score`";
                return Err(Rejection::value(Reason::ScoreNotNumber, field, t, remedy));
            }
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

    /// Checks an object from class to probability and puts the probabilities into `p`.
    pub(super) fn class_map(&self, value: Value<'_>, p: &mut Vec<f64>) -> Checked<()> {
        let slot = self.prediction;
        let text = match value {
            Value::Object(t) => t,
            Value::Cell(t) if check_json(t, b'{') => t,
            // Columns of a CSV file, which its reader has put into the order of the classes.
            Value::Array(_) => return self.vector(value, p),
            other => return Err(self.wrong_shape(other, "an object from class to probability")),
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
                    "a class appears twice; name each class once",
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

    /// The next value of an array or object that was already checked.
    fn next_value<'t>(&self, s: &mut Scanner<'_>, text: &'t str) -> Checked<Value<'t>> {
        let found = s
            .value(true, 0)
            .map_err(|f| Rejection::fault(f, text.as_bytes()))?;
        let span = &text.as_bytes()[found.start..found.end];
        Ok(found::value(found.kind, span, None))
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
    fn wrong_shape(&self, value: Value<'_>, what: &str) -> Rejection {
        let field = &self.names[self.prediction];
        match value {
            Value::Missing | Value::Null => Rejection::missing(field, "the model's prediction"),
            other => {
                let shown = other.shown();
                Rejection::value(
                    Reason::WrongShape,
                    field,
                    shown,
                    &format!("expected {what}"),
                )
            }
        }
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

/// Whether a CSV cell contains one JSON array or object.
fn check_json(cell: &str, first: u8) -> bool {
    let mut s = Scanner {
        bytes: cell.as_bytes(),
        at: 0,
    };
    s.peek() == Some(first) && s.value(true, 0).is_ok_and(|f| f.end == cell.len())
}
