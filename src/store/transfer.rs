//! A snapshot with its journals as one text file, and back.
//!
//! One JSON object a line, in this order; the last line proves that the file is whole:
//!
//! ```text
//! {"head":{"trueline_state":1,"snapshot_format":7}}
//! {"topics":[…]} {"partitions":…} {"counters":…} {"models":[…]} {"joins":[…]} {"ledger":…}
//! {"subject":{…}}                 one for each
//! {"compared":{…}}                one for each model whose versions are compared
//! {"version":{…}}                 one for each version with vector views
//! {"journal":{"join":0,"partition":4,"segment":7,"offset":0,"bytes":"…"}}      pieces of at most 1 MiB
//! {"end":{"lines":42,"crc":"9f86d081"}}
//! ```
//!
//! Packed sums and journals are hexadecimal. What is imported is the same snapshot to the bit: the same
//! file under another number, and journals that are as long as their marks.

use super::file::{Loaded, StoreError, VERSION, at, load_named, save};
use super::journal;
use super::snapshot::{ComparedState, ModelState, Snapshot, SubjectState, VersionState};
use crate::collect::join::{JoinState, JournalDelta};
use crate::collect::{Counters, Partitions};
use crate::judge::LedgerState;
use crate::window::hex::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

/// Version of this form.
const FORM: u32 = 1;

/// Bytes of a journal in one line.
const PIECE: usize = 1 << 20;

/// Why a file was not exported or imported.
#[derive(Debug)]
pub enum TransferError {
    /// The state directory.
    Store(StoreError),
    /// The file.
    Io(io::Error),
    /// There is nothing to export.
    Empty(PathBuf),
    /// The directory to import into has state already.
    Occupied(PathBuf),
    /// A line of the file cannot be used; its number and why.
    Line(u64, String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Head(Head),
    Topics(Vec<String>),
    Partitions(Partitions),
    Counters(Counters),
    Models(Vec<ModelState>),
    Joins(Vec<JoinState>),
    Ledger(LedgerState),
    Subject(Box<SubjectState>),
    Compared(Box<ComparedState>),
    Version(Box<VersionState>),
    Journal(Piece),
    End(End),
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    trueline_state: u32,
    snapshot_format: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Piece {
    join: u16,
    partition: i32,
    segment: u64,
    offset: u64,
    bytes: Bytes,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    lines: u64,
    crc: String,
}

/// Counts lines and sums them up on their way.
struct Pen<'a> {
    to: &'a mut dyn Write,
    lines: u64,
    crc: crc32fast::Hasher,
}

impl Pen<'_> {
    fn write(&mut self, line: &Line) -> Result<(), TransferError> {
        let mut text = serde_json::to_vec(line).map_err(io::Error::from)?;
        text.push(b'\n');
        self.crc.update(&text);
        self.lines += 1;
        self.to.write_all(&text).map_err(TransferError::Io)
    }
}

/// Writes the newest whole snapshot of `dir`, with its journals; returns what was written.
pub fn export(dir: &Path, to: &mut dyn Write) -> Result<Loaded, TransferError> {
    let loaded = load_named(dir)?.ok_or_else(|| TransferError::Empty(dir.to_owned()))?;
    let mut pen = Pen {
        to,
        lines: 0,
        crc: crc32fast::Hasher::new(),
    };
    let s = &loaded.snapshot;
    pen.write(&Line::Head(Head {
        trueline_state: FORM,
        snapshot_format: VERSION,
    }))?;
    pen.write(&Line::Topics(s.topics.clone()))?;
    pen.write(&Line::Partitions(s.partitions.clone()))?;
    pen.write(&Line::Counters(s.counters.clone()))?;
    pen.write(&Line::Models(s.models.clone()))?;
    pen.write(&Line::Joins(s.joins.clone()))?;
    pen.write(&Line::Ledger(s.ledger.clone()))?;
    for subject in &s.subjects {
        pen.write(&Line::Subject(Box::new(subject.clone())))?;
    }
    for compared in &s.compared {
        pen.write(&Line::Compared(Box::new(compared.clone())))?;
    }
    for version in &s.vectors {
        pen.write(&Line::Version(Box::new(version.clone())))?;
    }
    for (state, segments) in s.joins.iter().zip(&loaded.segments) {
        for (mark, bytes) in state.marks.iter().zip(segments) {
            for (i, piece) in bytes.chunks(PIECE).enumerate() {
                pen.write(&Line::Journal(Piece {
                    join: state.join,
                    partition: state.partition,
                    segment: mark.segment,
                    offset: (i * PIECE) as u64,
                    bytes: Bytes(piece.to_vec()),
                }))?;
            }
        }
    }
    let end = End {
        lines: pen.lines,
        crc: format!("{:08x}", pen.crc.clone().finalize()),
    };
    pen.write(&Line::End(end))?;
    pen.to.flush()?;
    Ok(loaded)
}

/// Makes the state directory `dir`, which must hold none, of a file that [`export`] wrote. The file is
/// read twice: nothing is written before it is known to be whole.
pub fn import(file: &Path, dir: &Path) -> Result<Loaded, TransferError> {
    if load_named(dir)?.is_some() || dir.join(journal::FOLDER).exists() {
        return Err(TransferError::Occupied(dir.to_owned()));
    }
    prove(file)?;
    let taken = take(file, dir);
    let loaded = taken.and_then(|snapshot| {
        save(dir, &snapshot)?;
        load_named(dir)?.ok_or_else(|| TransferError::Empty(dir.to_owned()))
    });
    if loaded.is_err() {
        // The journals of a snapshot that could not be made; there were none before.
        let _ = fs::remove_dir_all(dir.join(journal::FOLDER));
    }
    loaded
}

/// Reads the file to its last line, which says how many there were and their checksum.
fn prove(file: &Path) -> Result<(), TransferError> {
    let (mut before, mut number) = (crc32fast::Hasher::new(), 0);
    let mut end = None;
    each_line(file, |n, text| {
        number = n;
        if end.is_some() {
            return Err(TransferError::Line(n, "a line after the end".to_owned()));
        }
        if text.starts_with(b"{\"end\"") {
            end = Some(parse(n, text)?);
        } else {
            before.update(text);
        }
        if n == 1 {
            head(&parse(n, text)?)?;
        }
        Ok(())
    })?;
    let whole = End {
        lines: number.saturating_sub(1),
        crc: format!("{:08x}", before.finalize()),
    };
    match end {
        Some(Line::End(said)) if said == whole => Ok(()),
        Some(_) => {
            let what = "the lines before are not those that were exported".to_owned();
            Err(TransferError::Line(number, what))
        }
        None => Err(TransferError::Line(
            number,
            "the file ends before its last line".to_owned(),
        )),
    }
}

fn head(line: &Line) -> Result<(), TransferError> {
    let wrong = |what: String| Err(TransferError::Line(1, what));
    match line {
        Line::Head(h) if h.trueline_state != FORM => wrong(format!(
            "form {}, this program reads {FORM}",
            h.trueline_state
        )),
        Line::Head(h) if h.snapshot_format != VERSION => wrong(format!(
            "snapshot format {}, this program reads {VERSION}; import it with the program that exported it",
            h.snapshot_format
        )),
        Line::Head(_) => Ok(()),
        _ => wrong("not a state that trueline exported".to_owned()),
    }
}

/// Writes the journals and gathers the snapshot.
fn take(file: &Path, dir: &Path) -> Result<Snapshot, TransferError> {
    let mut snapshot = Snapshot::default();
    each_line(file, |n, text| {
        match parse(n, text)? {
            Line::Head(_) | Line::End(_) => {}
            Line::Topics(topics) => snapshot.topics = topics,
            Line::Partitions(partitions) => snapshot.partitions = partitions,
            Line::Counters(counters) => snapshot.counters = counters,
            Line::Models(models) => snapshot.models = models,
            Line::Joins(joins) => snapshot.joins = joins,
            Line::Ledger(ledger) => snapshot.ledger = ledger,
            Line::Subject(subject) => snapshot.subjects.push(*subject),
            Line::Compared(compared) => snapshot.compared.push(*compared),
            Line::Version(version) => snapshot.vectors.push(*version),
            Line::Journal(piece) => {
                let delta = JournalDelta {
                    join: piece.join,
                    partition: piece.partition,
                    segment: piece.segment,
                    offset: piece.offset,
                    bytes: piece.bytes.0,
                };
                journal::append(dir, &[delta])?;
            }
        }
        Ok(())
    })?;
    Ok(snapshot)
}

fn each_line(
    file: &Path,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let opened = fs::File::open(file).map_err(at("opening", file))?;
    let mut reader = io::BufReader::new(opened);
    let (mut text, mut number) = (Vec::new(), 0);
    while reader.read_until(b'\n', &mut text)? > 0 {
        number += 1;
        each(number, &text)?;
        text.clear();
    }
    Ok(())
}

fn parse(number: u64, text: &[u8]) -> Result<Line, TransferError> {
    serde_json::from_slice(text).map_err(|e| TransferError::Line(number, e.to_string()))
}

impl From<StoreError> for TransferError {
    fn from(error: StoreError) -> TransferError {
        TransferError::Store(error)
    }
}

impl From<io::Error> for TransferError {
    fn from(error: io::Error) -> TransferError {
        TransferError::Io(error)
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::Store(error) => error.fmt(f),
            TransferError::Io(error) => write!(f, "the exported file: {error}"),
            TransferError::Empty(dir) => write!(
                f,
                "no snapshot in {}; name the [state] directory of a trueline that has run",
                dir.display()
            ),
            TransferError::Occupied(dir) => write!(
                f,
                "{} holds state already; import into an empty directory",
                dir.display()
            ),
            TransferError::Line(number, why) => {
                write!(f, "line {number} of the exported file: {why}")
            }
        }
    }
}

impl std::error::Error for TransferError {}
