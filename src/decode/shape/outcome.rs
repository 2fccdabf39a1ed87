//! The checks of an outcome.

use super::super::rejection::Rejection;
use super::super::value::Value;
use super::{Checked, Shape};
use crate::collect::Reason;
use crate::stats::view::{Outcome, Prediction};

impl Shape {
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

    /// The class of an outcome among `classes`, which is `usize::MAX` if their number is not known.
    #[inline]
    pub(super) fn class(&self, value: Value<'_>, classes: usize) -> Checked<Option<u32>> {
        let slot = self.outcome;
        let two = classes == 2 || classes == usize::MAX;
        if let Some(class) = self.meaning(value) {
            return Ok(Some(class));
        }
        let class = match value {
            Value::Missing | Value::Null => return Ok(None),
            Value::Bool(b) if two => Ok(u32::from(b)),
            Value::Bool(b) => Err(if b { "true" } else { "false" }),
            Value::Number(n) if self.numbers_are_names => match self.named_by(n.text()) {
                Some(k) => Ok(k),
                None => return Err(self.unknown_class(slot, n.text())),
            },
            Value::Number(n) => match n.whole().map(u32::try_from) {
                Some(Ok(k)) => Ok(k),
                _ => index(n.text()).ok_or_else(|| n.text()),
            },
            Value::Text(text) => {
                let t = text.as_str();
                match self.classes.get(t) {
                    Some(&k) => Ok(k),
                    None if self.classes.is_empty() && two => match cell_outcome(t, two) {
                        Some(k @ (0 | 1)) => Ok(k),
                        _ => return Err(self.unknown_class(slot, &format!("\"{t}\""))),
                    },
                    None => return Err(self.unknown_class(slot, &format!("\"{t}\""))),
                }
            }
            Value::Cell(t) => match self.classes.get(t) {
                Some(&k) => Ok(k),
                None if self.numbers_are_names => match self.named_by(t.trim()) {
                    Some(k) => Ok(k),
                    None => return Err(self.unknown_class(slot, &format!("\"{t}\""))),
                },
                None => match cell_outcome(t, two) {
                    Some(k) => Ok(k),
                    None if t.trim().parse::<f64>().is_ok() => Err(t),
                    None => return Err(self.unknown_class(slot, &format!("\"{t}\""))),
                },
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

    /// What `outcome_map` says of an outcome.
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
            Value::Bool(b) => {
                if b {
                    "true"
                } else {
                    "false"
                }
            }
            _ => return None,
        };
        self.meanings.get(text).copied()
    }

    /// The class that a number names, written as the name or as an integral number such as `2.0`.
    fn named_by(&self, t: &str) -> Option<u32> {
        let named = self.classes.get(t).copied();
        named.or_else(|| {
            let x: f64 = t.parse().ok()?;
            // The cast is exact: an integer below 2⁵³.
            let whole = x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0;
            let name = whole.then(|| (x as i64).to_string())?;
            self.classes.get(&name).copied()
        })
    }

    #[cold]
    pub(super) fn unknown_class(&self, slot: usize, class: &str) -> Rejection {
        Rejection::value(
            Reason::UnknownClass,
            &self.names[slot],
            class,
            &if self.classes.is_empty() {
                "it is no class of the prediction; list the class names in `classes`, or say what it means in \
                 `outcome_map`"
                    .to_string()
            } else {
                format!(
                    "it is none of the {} `classes`; add it, say what it means in `outcome_map`, or correct the \
                     producer",
                    self.classes.len()
                )
            },
        )
    }
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

#[cfg(test)]
mod tests {
    use super::super::super::options::DecodeOptions;
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
}
