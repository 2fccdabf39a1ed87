//! Reads files of events for `replay`: JSON lines or CSV, plain, gzip or zstd; Parquet or Arrow
//! ([`super::columnar`]).
//!
//! A line of JSON goes through the same [`Decoder`] as a Kafka record. A row of CSV goes through
//! the same checks, with column names as field paths. A cell has no type of its own: `0.7` is a
//! number in a number field and text in a text field; an empty cell is a missing field. A vector is
//! a cell with a JSON array. A class map is a cell with a JSON object, or one column per class,
//! named `path.class`.
//!
//! Only one line or row is in memory at a time. A line longer than `record_bytes_max` is skipped
//! and rejected as too large. A row of CSV longer than a mebibyte ends the file with an error: an
//! open quote takes in all following rows, so there is no next row to continue with.
//!
//! A file contains events, or separate outcomes, or both. In a file with both, a row without a
//! prediction is an outcome, as on a topic that carries both. [`FileReader::advance`] and
//! [`FileReader::row`] are separate, so that a merge of files by time can look ahead at a row.

mod csv;
mod json;
pub(super) mod places;
pub(super) mod row;

use super::columnar::container_of;
#[cfg(feature = "columnar")]
use super::columnar::{Opened, events::Columnar};
use super::options::{DecodeOptions, OutcomeOptions, Packing};
use super::scores::unpack;
use csv::Csv;
use json::Json;
use row::Rows;
pub use row::{Content, FileError, Row};
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads a file of events or outcomes row by row.
pub struct FileReader {
    path: PathBuf,
    read: Arc<AtomicU64>,
    rows: Box<dyn Rows>,
    /// All kept rows in the order of event time: time and place.
    sorted: Option<std::vec::IntoIter<(i64, usize)>>,
}

impl FileReader {
    /// Opens `path`. Parquet and Arrow are detected by their first bytes. `.csv` is CSV with a
    /// header; `.json`, `.jsonl` and `.ndjson` are JSON lines. For other names, pipes and standard
    /// input (`-`), a first byte `{` or `[` means JSON lines, anything else CSV. gzip and zstd are
    /// decompressed. The file is read for events, for outcomes, or for both.
    pub fn open(
        path: &Path,
        events: Option<&DecodeOptions>,
        outcomes: Option<&OutcomeOptions>,
    ) -> Result<FileReader, FileError> {
        // Frames, envelopes and several events in one record occur only on topics.
        let packing = Packing::default;
        let events = events.map(|o| DecodeOptions {
            packing: packing(),
            ..o.clone()
        });
        let outcomes = outcomes.map(|o| OutcomeOptions {
            packing: packing(),
            ..o.clone()
        });
        let read = Arc::new(AtomicU64::new(0));
        let (events, outcomes) = (events.as_ref(), outcomes.as_ref());
        let rows: Box<dyn Rows> = match container_of(path) {
            #[cfg(feature = "columnar")]
            Some(container) => {
                let file = Opened::new(path, container).map_err(FileError::Io)?;
                Box::new(Columnar::new(file, path, events, outcomes)?)
            }
            #[cfg(not(feature = "columnar"))]
            Some(_) => return Err(FileError::Io(super::columnar::container::refusal(path))),
            None => match unpacked(path, &read)? {
                (input, true) => Box::new(Csv::new(input, path, events, outcomes)?),
                (input, false) => Box::new(Json::new(input, events, outcomes)?),
            },
        };
        Ok(FileReader {
            path: path.to_path_buf(),
            read,
            rows,
            sorted: None,
        })
    }

    /// Advances to the next line or row; `false` at the end. Skips empty lines. A damaged file ends
    /// the reading with an error that names the line.
    pub fn advance(&mut self) -> Result<bool, FileError> {
        let Some(sorted) = &mut self.sorted else {
            return self.rows.advance(&self.path);
        };
        let next = sorted.next();
        if let Some((_, kept)) = next {
            self.rows.recall(kept);
        }
        Ok(next.is_some())
    }

    /// The current line or row. It can be read repeatedly.
    pub fn row(&mut self) -> Row<'_> {
        self.rows.row()
    }

    /// Reads the whole file into memory and sorts it by event time, before the first
    /// [`FileReader::advance`]. A row that cannot be read keeps its place after the previous row.
    pub fn sort(&mut self) -> Result<(), FileError> {
        let (mut order, mut time_ms) = (Vec::new(), i64::MIN);
        while self.rows.advance(&self.path)? {
            time_ms = self.row().content.map_or(time_ms, |c| c.time_ms());
            order.push((time_ms, order.len()));
            self.rows.keep();
        }
        order.sort_unstable();
        self.sorted = Some(order.into_iter());
        Ok(())
    }

    /// Stored bytes of the file read so far, for a progress bar.
    pub fn bytes_read(&self) -> u64 {
        let Some(share) = self.rows.share() else {
            return self.read.load(Ordering::Relaxed);
        };
        let bytes = self.path.metadata().map_or(0, |m| m.len());
        (bytes as f64 * share) as u64
    }
}

/// The decompressed bytes of a file or of standard input, counting the stored bytes in `read`, and
/// whether they are CSV: by the name of the file, or by the first byte for standard input, a pipe,
/// and a name without a known ending.
fn unpacked(path: &Path, read: &Arc<AtomicU64>) -> Result<(Box<dyn Read>, bool), FileError> {
    let failed = |what, e| FileError::Io(format!("cannot {what} {}: {e}", path.display()));
    let (input, is_file): (Box<dyn Read>, bool) = if path == Path::new("-") {
        (Box::new(io::stdin()), false)
    } else {
        let file = File::open(path).map_err(|e| failed("open", e))?;
        let metadata = file.metadata().map_err(|e| failed("open", e))?;
        if metadata.is_dir() {
            let name = path.display();
            let why = format!("{name} is a directory; name one file in it");
            return Err(FileError::Io(why));
        }
        (Box::new(file), metadata.is_file())
    };
    let counted = Counted {
        input,
        read: Arc::clone(read),
    };
    let name = path.display().to_string();
    let mut input = unpack(&name, counted).map_err(FileError::Io)?;
    if let Some(csv) = named_kind(path).filter(|_| is_file) {
        return Ok((Box::new(input), csv));
    }
    let start = input.fill_buf().map_err(|e| failed("read", e))?;
    let start = start.strip_prefix(json::BYTE_ORDER_MARK).unwrap_or(start);
    let csv = !matches!(start.trim_ascii_start().first(), Some(b'{' | b'['));
    Ok((Box::new(input), csv))
}

/// Whether the name of a file says that it is CSV, or that it is JSON lines; `None` for other
/// names.
fn named_kind(path: &Path) -> Option<bool> {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let packed = [".gz", ".zst"]
        .iter()
        .find_map(|end| name.strip_suffix(end));
    let end = packed.unwrap_or(&name).rsplit_once('.')?.1;
    match end {
        "csv" => Some(true),
        "json" | "jsonl" | "ndjson" => Some(false),
        _ => None,
    }
}

/// Counts the bytes read from a file.
struct Counted {
    input: Box<dyn Read>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
