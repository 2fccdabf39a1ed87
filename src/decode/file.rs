//! Reads files of events for `replay`: JSON lines or CSV, plain, gzip or zstd.
//!
//! A line of JSON goes through the same [`Decoder`] as a Kafka record. A row of CSV goes through
//! the same checks, with column names as field paths. A cell has no type of its own: `0.7` is a
//! number in a number field and text in a text field; an empty cell is a missing field. A vector is
//! a cell with a JSON array. A class map is a cell with a JSON object, or one column per class,
//! named `path.class`.
//!
//! Only one line or row is in memory at a time. A line longer than `record_bytes_max` is skipped
//! and rejected as too large. A row of CSV longer than a mebibyte ends the file with an error: an
//! open quote takes in all rows that follow, so there is no next row to continue with.
//!
//! A file contains events, or separate outcomes, or both. In a file with both, a row without a
//! prediction is an outcome, as on a topic that carries both. [`FileReader::advance`] and
//! [`FileReader::row`] are separate, so that a merge of files by time can examine a row before its
//! turn.

use super::decoder::{Decoder, LabelDecoder};
use super::options::{
    DecodeOptions, DecodeOptionsError, LabelOptions, Packing, PredictionField, RECORD_BYTES_MAX,
};
use super::path::Paths;
use super::rejection::Rejection;
use super::shape::{Buffers, Shape, Value};
use crate::collect::{Event, Label, Reason};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads a file of events or outcomes row by row.
pub struct FileReader {
    path: PathBuf,
    read: Arc<AtomicU64>,
    rows: Rows,
}

enum Rows {
    Json(Box<Json>),
    Csv(Box<Csv>),
}

/// Content of a row.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// A prediction, possibly with its outcome.
    Event(Event<'a>),
    /// A separate outcome.
    Outcome(Label<'a>),
}

impl Content<'_> {
    /// Its event time.
    pub fn time_ms(&self) -> i64 {
        match self {
            Content::Event(event) => event.time_ms,
            Content::Outcome(label) => label.time_ms,
        }
    }
}

/// A line or row of a file: its number, from 1, and its content or rejection.
pub struct Row<'a> {
    /// Line on which it starts.
    pub line: u64,
    /// Its content.
    pub content: Result<Content<'a>, Rejection>,
}

/// Why a file cannot be read. The text names the file and, if known, the line.
#[derive(Debug)]
pub enum FileError {
    /// Opening or reading failed, or the compression is damaged.
    Io(String),
    /// The options do not fit the file: a column is missing.
    Options(DecodeOptionsError),
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FileError::Io(e) => f.write_str(e),
            FileError::Options(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for FileError {}

impl From<DecodeOptionsError> for FileError {
    fn from(e: DecodeOptionsError) -> FileError {
        FileError::Options(e)
    }
}

impl FileReader {
    /// Opens `path`: `.csv` is CSV with a header, anything else JSON lines; `.gz` and `.zst` are
    /// decompressed. It is read for events, for outcomes, or for both.
    pub fn open(
        path: &Path,
        events: Option<&DecodeOptions>,
        outcomes: Option<&LabelOptions>,
    ) -> Result<FileReader, FileError> {
        // Frames, envelopes and several events in one record are matters of topics.
        let packing = Packing::default;
        let events = events.map(|o| DecodeOptions {
            packing: packing(),
            ..o.clone()
        });
        let outcomes = outcomes.map(|o| LabelOptions {
            packing: packing(),
            ..o.clone()
        });
        let read = Arc::new(AtomicU64::new(0));
        let (input, csv) = unpacked(path, &read)?;
        let rows = if csv {
            Rows::Csv(Box::new(Csv::new(input, path, events, outcomes)?))
        } else {
            Rows::Json(Box::new(Json::new(input, events, outcomes)?))
        };
        Ok(FileReader {
            path: path.to_path_buf(),
            read,
            rows,
        })
    }

    /// Advances to the next line or row; `false` at the end. Skips empty lines. An error of the
    /// file itself names the line and ends the reading.
    pub fn advance(&mut self) -> Result<bool, FileError> {
        match &mut self.rows {
            Rows::Json(json) => json.advance(&self.path),
            Rows::Csv(csv) => csv.advance(&self.path),
        }
    }

    /// The current line or row. It can be read repeatedly.
    pub fn row(&mut self) -> Row<'_> {
        match &mut self.rows {
            Rows::Json(json) => json.row(),
            Rows::Csv(csv) => csv.row(),
        }
    }

    /// The next line or row; `None` at the end.
    pub fn read(&mut self) -> Result<Option<Row<'_>>, FileError> {
        Ok(self.advance()?.then(|| self.row()))
    }

    /// Stored bytes of the file read so far, for a progress bar.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

/// The decompressed bytes of a file, with a count of the stored bytes, and whether they are CSV.
fn unpacked(path: &Path, read: &Arc<AtomicU64>) -> Result<(Box<dyn Read>, bool), FileError> {
    let failed = |what, e| FileError::Io(format!("cannot {what} {}: {e}", path.display()));
    let file = File::open(path).map_err(|e| failed("open", e))?;
    let counted = BufReader::new(Counted {
        file,
        read: Arc::clone(read),
    });
    let name = path.to_string_lossy().to_ascii_lowercase();
    let (input, inner): (Box<dyn Read>, &str) = if let Some(inner) = name.strip_suffix(".gz") {
        (
            Box::new(flate2::bufread::MultiGzDecoder::new(counted)),
            inner,
        )
    } else if let Some(inner) = name.strip_suffix(".zst") {
        let unpacked = zstd::stream::read::Decoder::with_buffer(counted);
        (Box::new(unpacked.map_err(|e| failed("unpack", e))?), inner)
    } else {
        (Box::new(counted), name.as_str())
    };
    let csv = inner.ends_with(".csv");
    Ok((input, csv))
}

fn failed(path: &Path, line: u64, error: &dyn std::fmt::Display) -> FileError {
    FileError::Io(format!("{}:{line}: {error}", path.display()))
}

struct Json {
    input: BufReader<Box<dyn Read>>,
    events: Option<Decoder>,
    outcomes: Option<LabelDecoder>,
    bytes_max: usize,
    line: Vec<u8>,
    number: u64,
}

impl Json {
    fn new(
        input: Box<dyn Read>,
        events: Option<DecodeOptions>,
        outcomes: Option<LabelOptions>,
    ) -> Result<Json, FileError> {
        let most = events.as_ref().map(|o| o.record_bytes_max);
        let most = most.max(outcomes.as_ref().map(|o| o.record_bytes_max));
        Ok(Json {
            input: BufReader::with_capacity(1 << 16, input),
            events: events.as_ref().map(Decoder::new).transpose()?,
            outcomes: outcomes.as_ref().map(LabelDecoder::new).transpose()?,
            bytes_max: most.unwrap_or(RECORD_BYTES_MAX),
            line: Vec::new(),
            number: 0,
        })
    }

    fn advance(&mut self, path: &Path) -> Result<bool, FileError> {
        loop {
            self.number += 1;
            self.line.clear();
            // One byte more than allowed tells a line that is too long from one that just fits.
            let limit = self.bytes_max as u64 + 2;
            let n = (&mut self.input)
                .take(limit)
                .read_until(b'\n', &mut self.line)
                .map_err(|e| failed(path, self.number, &e))?;
            if n == 0 {
                return Ok(false);
            }
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
            } else if n as u64 == limit {
                skip_line(&mut self.input).map_err(|e| failed(path, self.number, &e))?;
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    fn row(&mut self) -> Row<'_> {
        Row {
            line: self.number,
            content: self.content(),
        }
    }

    fn content(&mut self) -> Result<Content<'_>, Rejection> {
        if let Some(events) = &mut self.events {
            // Whether it is an event is asked first: what it borrows cannot be let go of again.
            let joined = self.outcomes.is_some();
            let other = joined
                && events
                    .decode(&self.line, None, None)
                    .err()
                    .is_some_and(|e| e.reason == Reason::MissingField)
                && !events.saw_prediction();
            if !other {
                return events.decode(&self.line, None, None).map(Content::Event);
            }
        }
        match &mut self.outcomes {
            Some(outcomes) => outcomes
                .decode(&self.line, None, None)
                .map(Content::Outcome),
            None => Err(nothing()),
        }
    }
}

/// A file that is read neither for events nor for outcomes, which is not possible.
fn nothing() -> Rejection {
    Rejection::new(
        Reason::MissingField,
        "nothing is looked for in the file".to_owned(),
    )
}

/// Skips to the end of the line.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let chunk = input.fill_buf()?;
        let end = chunk.iter().position(|&b| b == b'\n');
        let n = end.map_or(chunk.len(), |i| i + 1);
        input.consume(n);
        if end.is_some() || n == 0 {
            return Ok(());
        }
    }
}

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

struct Csv {
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
}

impl Csv {
    fn new(
        input: Box<dyn Read>,
        path: &Path,
        events: Option<DecodeOptions>,
        outcomes: Option<LabelOptions>,
    ) -> Result<Csv, FileError> {
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
        })
    }

    fn advance(&mut self, path: &Path) -> Result<bool, FileError> {
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

    fn row(&mut self) -> Row<'_> {
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

/// Counts the bytes read from a file.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
