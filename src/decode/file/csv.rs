//! A file of CSV with a header.

use super::super::line_ends::LineEnds;
use super::super::options::{
    DecodeOptions, DecodeOptionsError, LabelOptions, PredictionField, RECORD_BYTES_MAX,
};
use super::super::path::Paths;
use super::super::rejection::Rejection;
use super::super::shape::{Buffers, Shape};
use super::super::value::Value;
use super::row::{Content, FileError, Row, failed, nothing};
use crate::collect::Reason;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::Path;

/// The wanted fields of a table, by column.
struct Looked {
    shape: Shape,
    /// Column of each slot; `None` if the file does not have it.
    columns: Vec<Option<usize>>,
}

/// A reader that ends a row that is too long: an open quote would take in the rest of the file.
struct RowLimit {
    input: Box<dyn Read>,
    /// Bytes since the row began. The reader above it takes blocks of 8 KiB, so this is about.
    taken: usize,
}

impl Read for RowLimit {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken > RECORD_BYTES_MAX {
            return Err(io::Error::other(format!(
                "a row of more than {RECORD_BYTES_MAX} bytes; is a quote open?"
            )));
        }
        let n = self.input.read(buffer)?;
        self.taken += n;
        Ok(n)
    }
}

/// See the module.
pub(super) struct Csv {
    input: csv::Reader<RowLimit>,
    row: csv::StringRecord,
    /// Line of the row, and why it cannot be read.
    at: (u64, Option<String>),
    events: Option<Looked>,
    outcomes: Option<Looked>,
    buffers: Buffers,
    /// Columns of a class map with one column per class, in the order of the classes.
    spread: Vec<usize>,
    /// The class map as a JSON array.
    vector: String,
    /// All rows by their event times.
    sorted: Option<VecDeque<SortedRow>>,
}

/// Event time of a row, its line and why it cannot be read, and the row.
type SortedRow = (i64, (u64, Option<String>), csv::StringRecord);

impl Csv {
    pub(super) fn new(
        input: Box<dyn Read>,
        path: &Path,
        events: Option<DecodeOptions>,
        outcomes: Option<LabelOptions>,
    ) -> Result<Csv, FileError> {
        let input: Box<dyn Read> = Box::new(LineEnds::new(input));
        let input = RowLimit { input, taken: 0 };
        let mut input = csv::ReaderBuilder::new().flexible(true).from_reader(input);
        let header = input.headers().map_err(|e| failed(path, 1, &e))?.clone();
        let column = |name: &str| header.iter().position(|h| h.trim() == name);
        let needed = |paths: &Paths, optional: &dyn Fn(usize, &str) -> bool| {
            let columns: Vec<Option<usize>> = paths.names.iter().map(|n| column(n)).collect();
            for (slot, name) in paths.names.iter().enumerate() {
                if columns[slot].is_none() && !optional(slot, name) {
                    let known: Vec<&str> = header.iter().collect();
                    return Err(FileError::Options(DecodeOptionsError(format!(
                        "{}:1: no column `{name}`; the header has {}",
                        path.display(),
                        known.join(", ")
                    ))));
                }
            }
            Ok(columns)
        };
        let mut spread = Vec::new();
        let events = match events {
            None => None,
            Some(options) => {
                let mut paths = Paths::new();
                let shape = Shape::new(&options, &mut paths)?;
                spread = spread_of(&options, &paths.names[shape.prediction], &column);
                let optional = |slot: usize, name: &str| {
                    name == options.outcome || (slot == shape.prediction && !spread.is_empty())
                };
                let columns = needed(&paths, &optional)?;
                Some(Looked { shape, columns })
            }
        };
        let outcomes = match outcomes {
            None => None,
            Some(options) => {
                let mut paths = Paths::new();
                let shape = Shape::of_labels(&options, &mut paths)?;
                let columns = needed(&paths, &|_, _| false)?;
                Some(Looked { shape, columns })
            }
        };
        Ok(Csv {
            input,
            row: csv::StringRecord::new(),
            at: (0, None),
            events,
            outcomes,
            buffers: Buffers::default(),
            spread,
            vector: String::new(),
            sorted: None,
        })
    }

    pub(super) fn advance(&mut self, path: &Path) -> Result<bool, FileError> {
        if let Some(sorted) = &mut self.sorted {
            let Some((_, at, row)) = sorted.pop_front() else {
                return Ok(false);
            };
            (self.at, self.row) = (at, row);
            self.join_spread();
            return Ok(true);
        }
        let line = self.input.position().line();
        self.input.get_mut().taken = 0;
        self.at = match self.input.read_record(&mut self.row) {
            Ok(true) => (self.row.position().map_or(line, |p| p.line()), None),
            Ok(false) => return Ok(false),
            Err(e) => match e.into_kind() {
                csv::ErrorKind::Utf8 { pos, err } => {
                    let why = format!("not UTF-8: {err}");
                    (pos.map_or(line, |p| p.line()), Some(why))
                }
                csv::ErrorKind::Io(e) => return Err(failed(path, line, &e)),
                other => return Err(failed(path, line, &format!("{other:?}"))),
            },
        };
        self.join_spread();
        Ok(true)
    }

    /// Reads all rows into memory and sorts them by event time. A row that cannot be read stays behind
    /// the one before it.
    pub(super) fn sort(&mut self, path: &Path) -> Result<(), FileError> {
        let (mut rows, mut time_ms) = (Vec::new(), i64::MIN);
        while self.advance(path)? {
            time_ms = self.row().content.map_or(time_ms, |c| c.time_ms());
            rows.push((time_ms, self.at.clone(), self.row.clone()));
        }
        rows.sort_by_key(|(time_ms, ..)| *time_ms);
        self.sorted = Some(rows.into());
        Ok(())
    }

    pub(super) fn row(&mut self) -> Row<'_> {
        Row {
            line: self.at.0,
            content: self.content(),
        }
    }

    fn content(&mut self) -> Result<Content<'_>, Rejection> {
        if let Some(why) = &self.at.1 {
            return Err(Rejection::new(Reason::Malformed, why.clone()));
        }
        let (row, vector, is_spread) = (&self.row, &self.vector, !self.spread.is_empty());
        let cell = |looked: &Looked, slot: usize| {
            looked.columns[slot].and_then(|c| row.get(c)).unwrap_or("")
        };
        if let Some(events) = &self.events {
            let shape = &events.shape;
            let is_vector = |slot: usize| {
                is_spread && slot == shape.prediction && events.columns[slot].is_none()
            };
            let is_there = |&c: &usize| row.get(c).is_some_and(|cell| !cell.is_empty());
            let saw =
                self.spread.iter().any(is_there) || !cell(events, shape.prediction).is_empty();
            if saw || self.outcomes.is_none() {
                let value = move |slot: usize| match cell(events, slot) {
                    _ if is_vector(slot) => Value::Array(vector),
                    "" => Value::Missing,
                    cell => Value::Cell(cell),
                };
                let event = shape.event(value, &mut self.buffers, None, None);
                return event.map(Content::Event);
            }
        }
        let Some(outcomes) = &self.outcomes else {
            return Err(nothing());
        };
        let value = move |slot: usize| match cell(outcomes, slot) {
            "" => Value::Missing,
            cell => Value::Cell(cell),
        };
        let label = outcomes.shape.label(value, None, None);
        label.map(Content::Outcome)
    }

    /// The columns of a class map as a JSON array; a cell that is no number is quoted, so that it
    /// is refused by the same check as anywhere.
    fn join_spread(&mut self) {
        self.vector.clear();
        self.vector.push('[');
        for (i, &c) in self.spread.iter().enumerate() {
            if i > 0 {
                self.vector.push(',');
            }
            match self.row.get(c).map(|cell| cell.trim().parse::<f64>()) {
                Some(Ok(x)) if x.is_finite() => self.vector.push_str(&x.to_string()),
                Some(Ok(_)) => self.vector.push_str("NaN"),
                _ => self.vector.push_str("\"\""),
            }
        }
        self.vector.push(']');
    }
}

/// The columns `path.class` of a class map, if the prediction has no column of its own.
fn spread_of(
    options: &DecodeOptions,
    prediction: &str,
    column: &dyn Fn(&str) -> Option<usize>,
) -> Vec<usize> {
    let all: Vec<usize> = match &options.prediction {
        PredictionField::ClassMap(p) if column(prediction).is_none() => {
            let classes = options.classes.iter();
            classes.map_while(|c| column(&format!("{p}.{c}"))).collect()
        }
        _ => Vec::new(),
    };
    match all.len() == options.classes.len() {
        true => all,
        false => Vec::new(),
    }
}
