//! Rows of a table in columns as events or outcomes, for `replay`.
//!
//! Column names are field paths. A class map is a struct, or one column per class, named `path.class`. A column of times
//! knows its unit, so it becomes what the configured unit asks for: text for `rfc3339`, else the number of that unit
//! since 1970 (of a wall clock without a time zone as if it were UTC).

use super::super::file::row::{Content, FileError, Row, nothing};
use super::super::options::{
    DecodeOptions, DecodeOptionsError, LabelOptions, PredictionField, TimeUnit,
};
use super::super::path::Paths;
use super::super::rejection::Rejection;
use super::super::shape::{Buffers, Shape};
use super::super::value::{Kind, Value};
use super::column::Column;
use super::{Batches, Opened, value};
use std::collections::VecDeque;
use std::path::Path;

/// The wanted fields of one kind of record.
struct Looked {
    shape: Shape,
    /// Place of each slot among the columns that are read; `None` if the file does not have it.
    columns: Vec<Option<usize>>,
}

/// What a slot holds in the current row.
#[derive(Clone)]
struct Slot {
    kind: Kind,
    text: String,
}

/// See the module.
pub(in super::super) struct Columnar {
    batches: Batches,
    batch: Vec<Column>,
    /// Row of the batch, and its number in the file.
    row: usize,
    number: u64,
    /// Rows in all, where the file says so.
    total: Option<u64>,
    /// Unit in which a column of times is asked for, by column.
    times: Vec<Option<TimeUnit>>,
    slots: Vec<Slot>,
    events: Option<Looked>,
    outcomes: Option<Looked>,
    /// Columns of a class map with one column per class, in the order of the classes.
    spread: Vec<usize>,
    /// The class map as a JSON array.
    vector: String,
    buffers: Buffers,
    sorted: Option<VecDeque<(i64, u64, Vec<Slot>)>>,
}

/// Columns that are read, by their paths.
#[derive(Default)]
struct Wanted {
    paths: Vec<String>,
    times: Vec<Option<TimeUnit>>,
}

impl Wanted {
    fn place(&mut self, path: &str) -> usize {
        let known = self.paths.iter().position(|p| p == path);
        known.unwrap_or_else(|| {
            self.paths.push(path.to_owned());
            self.times.push(None);
            self.paths.len() - 1
        })
    }

    /// The places of all slots; a path that the file does not have must be optional.
    fn places(
        &mut self,
        file: &Opened,
        (path, paths): (&Path, &Paths),
        optional: &dyn Fn(usize, &str) -> bool,
    ) -> Result<Vec<Option<usize>>, FileError> {
        let mut places = Vec::with_capacity(paths.names.len());
        for (slot, name) in paths.names.iter().enumerate() {
            let has = file.has(name);
            if !has && !optional(slot, name) {
                return Err(FileError::Options(DecodeOptionsError(format!(
                    "{}: no column `{name}`; the file has {}",
                    path.display(),
                    file.names().join(", ")
                ))));
            }
            places.push(has.then(|| self.place(name)));
        }
        Ok(places)
    }

    fn time(&mut self, path: &str, unit: TimeUnit) {
        if let Some(place) = self.paths.iter().position(|p| p == path) {
            self.times[place] = Some(unit);
        }
    }
}

impl Columnar {
    pub(in super::super) fn new(
        file: Opened,
        path: &Path,
        events: Option<DecodeOptions>,
        outcomes: Option<LabelOptions>,
    ) -> Result<Columnar, FileError> {
        let mut wanted = Wanted::default();
        let mut spread = Vec::new();
        let events = match events {
            None => None,
            Some(options) => {
                let mut paths = Paths::new();
                let shape = Shape::new(&options, &mut paths)?;
                let prediction = &paths.names[shape.prediction];
                let apart = spread_of(&options, prediction, &file);
                let optional = |slot: usize, name: &str| {
                    name == options.outcome || (slot == shape.prediction && !apart.is_empty())
                };
                let columns = wanted.places(&file, (path, &paths), &optional)?;
                spread = apart.iter().map(|name| wanted.place(name)).collect();
                if let Some(time) = &options.time {
                    wanted.time(&time.path, time.unit);
                }
                Some(Looked { shape, columns })
            }
        };
        let outcomes = match outcomes {
            None => None,
            Some(options) => {
                let mut paths = Paths::new();
                let shape = Shape::of_labels(&options, &mut paths)?;
                let columns = wanted.places(&file, (path, &paths), &|_, _| false)?;
                if let Some(time) = &options.time {
                    wanted.time(&time.path, time.unit);
                }
                Some(Looked { shape, columns })
            }
        };
        let total = file.rows;
        let slot = Slot {
            kind: Kind::Missing,
            text: String::new(),
        };
        Ok(Columnar {
            slots: vec![slot; wanted.paths.len()],
            batches: file.read(&wanted.paths).map_err(FileError::Io)?,
            batch: Vec::new(),
            row: 0,
            number: 0,
            total,
            times: wanted.times,
            events,
            outcomes,
            spread,
            vector: String::new(),
            buffers: Buffers::default(),
            sorted: None,
        })
    }

    /// Share of the rows that were read, where the file says how many there are.
    pub(in super::super) fn share(&self) -> f64 {
        let total = self.total.filter(|t| *t > 0);
        total.map_or(0.0, |total| self.number as f64 / total as f64)
    }

    pub(in super::super) fn advance(&mut self) -> Result<bool, FileError> {
        if let Some(sorted) = &mut self.sorted {
            let Some((_, number, slots)) = sorted.pop_front() else {
                return Ok(false);
            };
            (self.number, self.slots) = (number, slots);
            self.join_spread();
            return Ok(true);
        }
        self.row += 1;
        if self.row >= self.batches.rows() {
            let Some(batch) = self.batches.advance().map_err(FileError::Io)? else {
                return Ok(false);
            };
            (self.batch, self.row) = (batch, 0);
        }
        self.number = self.batches.number(self.row);
        for ((column, slot), unit) in self.batch.iter().zip(&mut self.slots).zip(&self.times) {
            slot.text.clear();
            slot.kind = match unit.and_then(|unit| Some((unit, column.time_ms(self.row)?))) {
                Some((unit, time)) => write_time(time, unit, &mut slot.text),
                None => column.write(self.row, &mut slot.text),
            };
        }
        self.join_spread();
        Ok(true)
    }

    /// Reads all rows into memory and sorts them by event time. A row that cannot be read stays behind
    /// the one before it.
    pub(in super::super) fn sort(&mut self) -> Result<(), FileError> {
        let (mut rows, mut time_ms) = (Vec::new(), i64::MIN);
        while self.advance()? {
            time_ms = self.row().content.map_or(time_ms, |c| c.time_ms());
            rows.push((time_ms, self.number, self.slots.clone()));
        }
        rows.sort_by_key(|(time_ms, ..)| *time_ms);
        self.sorted = Some(rows.into());
        Ok(())
    }

    pub(in super::super) fn row(&mut self) -> Row<'_> {
        Row {
            line: self.number,
            content: self.content(),
        }
    }

    fn content(&mut self) -> Result<Content<'_>, Rejection> {
        let (slots, vector) = (&self.slots, &self.vector);
        let at = move |looked: &Looked, slot: usize| {
            looked.columns[slot].map_or(Value::Missing, |c| slots[c].value())
        };
        let is_there = |value: Value<'_>| !matches!(value, Value::Missing | Value::Null);
        if let Some(events) = &self.events {
            let shape = &events.shape;
            let spread = !self.spread.is_empty();
            let saw = self.spread.iter().any(|&c| is_there(slots[c].value()))
                || (!spread && is_there(at(events, shape.prediction)));
            if saw || self.outcomes.is_none() {
                let value = move |slot: usize| match spread && slot == shape.prediction {
                    true => Value::Array(vector),
                    false => at(events, slot),
                };
                let event = shape.event(value, &mut self.buffers, None, None);
                return event.map(Content::Event);
            }
        }
        let Some(outcomes) = &self.outcomes else {
            return Err(nothing());
        };
        let label = outcomes
            .shape
            .label(move |slot| at(outcomes, slot), None, None);
        label.map(Content::Outcome)
    }

    /// The columns of a class map as a JSON array; what is no number is quoted, so that it is refused by the same
    /// check as anywhere.
    fn join_spread(&mut self) {
        if self.spread.is_empty() {
            return;
        }
        self.vector.clear();
        self.vector.push('[');
        for (i, &c) in self.spread.iter().enumerate() {
            if i > 0 {
                self.vector.push(',');
            }
            match self.slots[c].kind {
                Kind::Number | Kind::NotFinite => self.vector.push_str(&self.slots[c].text),
                _ => self.vector.push_str("\"\""),
            }
        }
        self.vector.push(']');
    }
}

impl Slot {
    fn value(&self) -> Value<'_> {
        // Nothing is escaped outside of arrays and objects.
        Value::of(self.kind, self.text.as_bytes(), None)
    }
}

/// A time as the unit asks for it.
fn write_time((ms, zoned): (i64, bool), unit: TimeUnit, text: &mut String) -> Kind {
    use super::super::sink;
    match unit {
        TimeUnit::Rfc3339 => sink::string(&value::rfc3339((ms, zoned)), false, text),
        TimeUnit::Milliseconds => sink::integer(ms, text),
        TimeUnit::Microseconds => sink::integer(ms.saturating_mul(1000), text),
        TimeUnit::Seconds => sink::decimal(i128::from(ms), 3, text),
    }
}

/// The columns `path.class` of a class map, if the prediction has no column of its own and all are there.
fn spread_of(options: &DecodeOptions, prediction: &str, file: &Opened) -> Vec<String> {
    let PredictionField::ClassMap(path) = &options.prediction else {
        return Vec::new();
    };
    let columns: Vec<String> = (options.classes.iter())
        .map(|c| format!("{path}.{c}"))
        .collect();
    match !file.has(prediction) && columns.iter().all(|c| file.has(c)) {
        true => columns,
        false => Vec::new(),
    }
}
