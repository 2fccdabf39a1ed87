//! Rows of a table in columns as events or outcomes, for `replay`.
//!
//! Column names are field paths. A class map is a struct, or one column per class, named
//! `path.class`. A column of times has its own unit and is converted to the configured one: text
//! for `rfc3339`, otherwise the number of that unit since 1970. A time without a time zone counts
//! as UTC.

use super::super::file::places::Places;
use super::super::file::row::{FileError, Row, Rows};
use super::super::options::{DecodeOptions, OutcomeOptions, TimeUnit};
use super::super::value::{Kind, Value};
use super::{Batches, Opened, value};
use std::path::Path;

/// The value of a column in the current row.
#[derive(Clone)]
struct Slot {
    kind: Kind,
    text: String,
}

pub(in super::super) struct Columnar {
    batches: Batches,
    /// Number of the row in the file.
    number: u64,
    /// Number of rows in all, if the file has it.
    total: Option<u64>,
    /// The configured unit of each column of times, by column.
    times: Vec<Option<TimeUnit>>,
    slots: Vec<Slot>,
    places: Places,
    /// Rows that were kept, with their numbers.
    kept: Vec<(u64, Vec<Slot>)>,
}

impl Columnar {
    pub(in super::super) fn new(
        file: Opened,
        path: &Path,
        events: Option<&DecodeOptions>,
        outcomes: Option<&OutcomeOptions>,
    ) -> Result<Columnar, FileError> {
        let mut wanted: Vec<String> = Vec::new();
        let mut column = |name: &str| {
            let known = wanted.iter().position(|path| path == name);
            known.or_else(|| {
                file.has(name).then(|| wanted.push(name.to_owned()))?;
                Some(wanted.len() - 1)
            })
        };
        let missing = |name: &str| {
            format!(
                "{}: no column `{name}`; the file has {}",
                path.display(),
                file.names().join(", ")
            )
        };
        let places = Places::new(events, outcomes, &mut column, &missing)?;
        let times = [
            events.and_then(|o| o.time.as_ref()),
            outcomes.and_then(|o| o.time.as_ref()),
        ];
        let unit = |path: &String| {
            let mut times = times.into_iter().rev().flatten();
            times.find(|t| t.path == *path).map(|t| t.unit)
        };
        let total = file.rows;
        let slot = Slot {
            kind: Kind::Missing,
            text: String::new(),
        };
        Ok(Columnar {
            slots: vec![slot; wanted.len()],
            batches: file.read(&wanted).map_err(FileError::Io)?,
            number: 0,
            total,
            times: wanted.iter().map(unit).collect(),
            places,
            kept: Vec::new(),
        })
    }
}

impl Rows for Columnar {
    fn advance(&mut self, _: &Path) -> Result<bool, FileError> {
        let Some((columns, row)) = self.batches.next_row().map_err(FileError::Io)? else {
            return Ok(false);
        };
        for ((column, slot), unit) in columns.iter().zip(&mut self.slots).zip(&self.times) {
            slot.text.clear();
            slot.kind = match unit.and_then(|unit| Some((unit, column.time_ms(row)?))) {
                Some((unit, (ms, zoned))) => write_time(ms, zoned, unit, &mut slot.text),
                None => column.write(row, &mut slot.text),
            };
        }
        self.number = self.batches.number(row);
        Ok(true)
    }

    fn row(&mut self) -> Row<'_> {
        let slots = &self.slots;
        Row {
            line: self.number,
            content: self.places.content(|column| slots[column].value()),
        }
    }

    fn keep(&mut self) {
        self.kept.push((self.number, self.slots.clone()));
    }

    fn recall(&mut self, kept: usize) {
        (self.number, self.slots) = std::mem::take(&mut self.kept[kept]);
    }

    fn share(&self) -> Option<f64> {
        let total = self.total.filter(|t| *t > 0);
        Some(total.map_or(0.0, |total| self.number as f64 / total as f64))
    }
}

impl Slot {
    fn value(&self) -> Value<'_> {
        // Only values in arrays and objects are escaped.
        Value::of(self.kind, self.text.as_bytes(), None)
    }
}

/// Writes a time in the configured unit.
fn write_time(ms: i64, zoned: bool, unit: TimeUnit, text: &mut String) -> Kind {
    use super::super::sink;
    match unit {
        TimeUnit::Rfc3339 => sink::string(&value::rfc3339(ms, zoned), false, text),
        TimeUnit::Milliseconds => sink::integer(ms, text),
        TimeUnit::Microseconds => sink::integer(ms.saturating_mul(1000), text),
        TimeUnit::Seconds => sink::decimal(i128::from(ms), 3, text),
    }
}
