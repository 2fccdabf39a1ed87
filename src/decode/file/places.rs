//! Finds the fields of events and outcomes in a table, whose columns are named by their paths.
//!
//! A class map is one column, or one column per class, named `path.class`. In a table of both kinds
//! a row without a prediction is an outcome.

use super::super::options::{DecodeOptions, DecodeOptionsError, OutcomeOptions, PredictionField};
use super::super::path::Paths;
use super::super::rejection::Rejection;
use super::super::shape::{Buffers, Shape};
use super::super::value::Value;
use super::row::{Content, nothing};

/// The fields of one kind of record, by column.
struct Looked {
    shape: Shape,
    /// Column of each slot; `None` if the table does not have it.
    columns: Vec<Option<usize>>,
}

#[derive(Default)]
pub(in crate::decode) struct Places {
    events: Option<Looked>,
    outcomes: Option<Looked>,
    /// Columns of a class map with one column per class, in the order of the classes.
    spread: Vec<usize>,
    /// The class map, written as a JSON array.
    vector: String,
    buffers: Buffers,
}

/// Most class columns to name in a message.
const CLASSES_SHOWN: usize = 4;

impl Places {
    /// Finds the column of each path. `missing` makes the error for a path that has no column but
    /// needs one.
    pub fn new(
        events: Option<&DecodeOptions>,
        outcomes: Option<&OutcomeOptions>,
        column: &mut dyn FnMut(&str) -> Option<usize>,
        missing: &dyn Fn(&str) -> String,
    ) -> Result<Places, DecodeOptionsError> {
        let mut places = Places::default();
        let absent = |at: &[Option<usize>], optional: &dyn Fn(usize) -> bool| {
            (0..at.len()).find(|&slot| at[slot].is_none() && !optional(slot))
        };
        if let Some(options) = events {
            let mut paths = Paths::new();
            let shape = Shape::new(options, &mut paths)?;
            let columns: Vec<_> = paths.names.iter().map(|name| column(name)).collect();
            if let PredictionField::ClassMap(path) = &options.prediction
                && columns[shape.prediction].is_none()
            {
                let classes = options.classes.iter();
                let all = classes.map(|class| column(&format!("{path}.{class}")));
                places.spread = all.collect::<Option<_>>().unwrap_or_default();
            }
            let absent = absent(&columns, &|slot| {
                let is_spread = slot == shape.prediction && !places.spread.is_empty();
                is_spread || paths.names[slot] == options.outcome
            });
            if let Some(slot) = absent {
                let mut why = missing(&paths.names[slot]);
                if slot == shape.prediction {
                    why += &or_columns(&options.prediction, &options.classes);
                }
                return Err(DecodeOptionsError(why));
            }
            places.events = Some(Looked { shape, columns });
        }
        if let Some(options) = outcomes {
            let mut paths = Paths::new();
            let shape = Shape::of_outcomes(options, &mut paths)?;
            let columns: Vec<_> = paths.names.iter().map(|name| column(name)).collect();
            if let Some(slot) = absent(&columns, &|_| false) {
                return Err(DecodeOptionsError(missing(&paths.names[slot])));
            }
            places.outcomes = Some(Looked { shape, columns });
        }
        Ok(places)
    }

    /// The event or the outcome in a row with these values, by column.
    pub fn content<'a>(
        &'a mut self,
        value: impl Fn(usize) -> Value<'a>,
    ) -> Result<Content<'a>, Rejection> {
        self.join_spread(&value);
        let is_there = |&c: &usize| !matches!(value(c), Value::Missing | Value::Null);
        if let Some(Looked { shape, columns }) = &self.events {
            let prediction = shape.prediction;
            let mut candidates = self.spread.iter().chain(&columns[prediction]);
            if candidates.any(is_there) || self.outcomes.is_none() {
                let (vector, is_spread) = (&self.vector, !self.spread.is_empty());
                let value = |slot: usize| match columns[slot] {
                    Some(c) => value(c),
                    None if is_spread && slot == prediction => Value::Array(vector),
                    None => Value::Missing,
                };
                let event = shape.event(value, &mut self.buffers, None, None);
                return event.map(Content::Event);
            }
        }
        let Some(Looked { shape, columns }) = &self.outcomes else {
            return Err(nothing());
        };
        let value = |slot: usize| columns[slot].map_or(Value::Missing, &value);
        let record = shape.outcome_record(value, None, None);
        record.map(Content::Outcome)
    }

    /// Joins the columns of a class map into a JSON array. A value that is not a number is quoted,
    /// so that the usual check refuses it.
    fn join_spread<'a>(&mut self, value: impl Fn(usize) -> Value<'a>) {
        if self.spread.is_empty() {
            return;
        }
        self.vector.clear();
        for &c in &self.spread {
            self.vector
                .push(if self.vector.is_empty() { '[' } else { ',' });
            match value(c) {
                Value::Number(n) => self.vector.push_str(n.text()),
                Value::NotFinite(text) => self.vector.push_str(text),
                Value::Cell(cell) => match cell.trim().parse::<f64>() {
                    Ok(x) if x.is_finite() => self.vector.push_str(&x.to_string()),
                    Ok(_) => self.vector.push_str("NaN"),
                    Err(_) => self.vector.push_str("\"\""),
                },
                _ => self.vector.push_str("\"\""),
            }
        }
        self.vector.push(']');
    }
}

/// The columns that may replace the single column of a class map, for messages.
fn or_columns(prediction: &PredictionField, classes: &[String]) -> String {
    let PredictionField::ClassMap(path) = prediction else {
        return String::new();
    };
    let shown = classes.iter().take(CLASSES_SHOWN);
    let mut columns: Vec<String> = shown.map(|class| format!("{path}.{class}")).collect();
    if classes.len() > CLASSES_SHOWN {
        columns.push("…".to_owned());
    }
    format!("; or name a column for each class: {}", columns.join(", "))
}
