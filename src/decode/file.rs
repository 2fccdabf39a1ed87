//! Files of events for `replay`: JSON lines or CSV, plain, gzip or zstd.
//!
//! A line of JSON goes through the same [`Decoder`] as a Kafka record. A row of CSV goes through the same
//! checks by column name: the column's name is the field path. A cell has no type of its own, so `0.7`
//! is a number where a number is wanted and text where text is; an empty cell is a missing field. A
//! vector is a cell holding a JSON array; a class map is a cell holding a JSON object, or one column a
//! class, named `path.class`.
//!
//! One line or row is in memory at a time; a line longer than `record_bytes_max` is skipped to its end
//! and rejected as too large.

use super::decoder::Decoder;
use super::options::{DecodeOptions, DecodeOptionsError, Packing, PredictionField};
use super::path::Paths;
use super::rejection::Rejection;
use super::shape::{Buffers, Shape, Value};
use crate::collect::{Event, Reason};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads a file of events, one after the other.
pub struct FileReader {
    path: PathBuf,
    read: Arc<AtomicU64>,
    rows: Rows,
}

enum Rows {
    Json(Box<Json>),
    Csv(Box<Csv>),
}

/// A line or row of a file: its number, from 1, and the event or why it is none.
pub struct Row<'a> {
    /// Line on which it begins.
    pub line: u64,
    /// The event.
    pub event: Result<Event<'a>, Rejection>,
}

/// Why a file cannot be read; the text names the file and, where there is one, the line.
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
    /// Opens `path`: `.csv` is CSV with a header, all else JSON lines; `.gz` and `.zst` are unpacked.
    pub fn open(path: &Path, options: &DecodeOptions) -> Result<FileReader, FileError> {
        // Frames, envelopes and several events in one record are matters of topics.
        let options = &DecodeOptions {
            packing: Packing::default(),
            ..options.clone()
        };
        let read = Arc::new(AtomicU64::new(0));
        let file = File::open(path)
            .map_err(|e| FileError::Io(format!("cannot open {}: {e}", path.display())))?;
        let counted = BufReader::new(Counted {
            file,
            read: Arc::clone(&read),
        });
        let name = path.to_string_lossy().to_ascii_lowercase();
        let (input, inner): (Box<dyn Read>, &str) = if let Some(inner) = name.strip_suffix(".gz") {
            (
                Box::new(flate2::bufread::MultiGzDecoder::new(counted)),
                inner,
            )
        } else if let Some(inner) = name.strip_suffix(".zst") {
            let unpacked = zstd::stream::read::Decoder::with_buffer(counted)
                .map_err(|e| FileError::Io(format!("cannot unpack {}: {e}", path.display())))?;
            (Box::new(unpacked), inner)
        } else {
            (Box::new(counted), name.as_str())
        };
        let rows = if inner.ends_with(".csv") {
            Rows::Csv(Box::new(Csv::new(input, path, options)?))
        } else {
            Rows::Json(Box::new(Json::new(input, options)?))
        };
        Ok(FileReader {
            path: path.to_path_buf(),
            read,
            rows,
        })
    }

    /// The next line or row; `None` at the end. Empty lines are passed over. An error of the file itself
    /// names the line and ends the reading.
    pub fn read(&mut self) -> Result<Option<Row<'_>>, FileError> {
        match &mut self.rows {
            Rows::Json(json) => json.read(&self.path),
            Rows::Csv(csv) => csv.read(&self.path),
        }
    }

    /// Bytes of the file, as stored, read so far; for a progress bar.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

fn failed(path: &Path, line: u64, error: &dyn std::fmt::Display) -> FileError {
    FileError::Io(format!("{}:{line}: {error}", path.display()))
}

struct Json {
    input: BufReader<Box<dyn Read>>,
    decoder: Decoder,
    bytes_max: usize,
    line: Vec<u8>,
    number: u64,
}

impl Json {
    fn new(input: Box<dyn Read>, options: &DecodeOptions) -> Result<Json, FileError> {
        Ok(Json {
            input: BufReader::with_capacity(1 << 16, input),
            decoder: Decoder::new(options)?,
            bytes_max: options.record_bytes_max,
            line: Vec::new(),
            number: 0,
        })
    }

    fn read(&mut self, path: &Path) -> Result<Option<Row<'_>>, FileError> {
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
                return Ok(None);
            }
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
            } else if n as u64 == limit {
                skip_line(&mut self.input).map_err(|e| failed(path, self.number, &e))?;
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(Some(Row {
            line: self.number,
            event: self.decoder.decode(&self.line, None, None),
        }))
    }
}

/// Reads to the end of the line without keeping it.
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

struct Csv {
    input: csv::Reader<Box<dyn Read>>,
    row: csv::StringRecord,
    shape: Shape,
    buffers: Buffers,
    /// Column of each slot; `None` for one that the file lacks.
    columns: Vec<Option<usize>>,
    /// Columns of a class map that is spread over them, in the order of the classes.
    spread: Vec<usize>,
    /// The same as a JSON array.
    vector: String,
}

impl Csv {
    fn new(input: Box<dyn Read>, path: &Path, options: &DecodeOptions) -> Result<Csv, FileError> {
        let mut paths = Paths::new();
        let shape = Shape::new(options, &mut paths)?;
        let mut input = csv::ReaderBuilder::new().flexible(true).from_reader(input);
        let header = input.headers().map_err(|e| failed(path, 1, &e))?.clone();
        let column = |name: &str| header.iter().position(|h| h.trim() == name);
        let columns: Vec<Option<usize>> = paths.names.iter().map(|n| column(n)).collect();
        let spread = match &options.prediction {
            PredictionField::ClassMap(p) if columns[shape.prediction].is_none() => options
                .classes
                .iter()
                .map_while(|c| column(&format!("{p}.{c}")))
                .collect(),
            _ => Vec::new(),
        };
        let is_spread = !spread.is_empty() && spread.len() == options.classes.len();
        for (slot, name) in paths.names.iter().enumerate() {
            let optional = *name == options.outcome || (slot == shape.prediction && is_spread);
            if columns[slot].is_none() && !optional {
                let known: Vec<&str> = header.iter().collect();
                return Err(FileError::Options(DecodeOptionsError(format!(
                    "{}:1: no column `{name}`; the header has {}",
                    path.display(),
                    known.join(", ")
                ))));
            }
        }
        Ok(Csv {
            input,
            row: csv::StringRecord::new(),
            shape,
            buffers: Buffers::default(),
            columns,
            spread: if is_spread { spread } else { Vec::new() },
            vector: String::new(),
        })
    }

    fn read(&mut self, path: &Path) -> Result<Option<Row<'_>>, FileError> {
        let line = self.input.position().line();
        match self.input.read_record(&mut self.row) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(e) => match e.into_kind() {
                csv::ErrorKind::Utf8 { pos, err } => {
                    return Ok(Some(Row {
                        line: pos.map_or(line, |p| p.line()),
                        event: Err(Rejection::new(
                            Reason::Malformed,
                            format!("not UTF-8: {err}"),
                        )),
                    }));
                }
                csv::ErrorKind::Io(e) => return Err(failed(path, line, &e)),
                other => return Err(failed(path, line, &format!("{other:?}"))),
            },
        }
        let line = self.row.position().map_or(line, |p| p.line());
        self.join_spread();
        let (row, columns, vector) = (&self.row, &self.columns, &self.vector);
        let (spread, prediction) = (!self.spread.is_empty(), self.shape.prediction);
        let value = move |slot: usize| match columns[slot].and_then(|c| row.get(c)) {
            None if spread && slot == prediction => Value::Array(vector),
            None | Some("") => Value::Missing,
            Some(cell) => Value::Cell(cell),
        };
        Ok(Some(Row {
            line,
            event: self.shape.event(value, &mut self.buffers, None, None),
        }))
    }

    /// The columns of a class map as a JSON array; a cell that is no number is quoted, so that it is
    /// refused by the same check as anywhere.
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

/// Counts the bytes that are read of a file.
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
