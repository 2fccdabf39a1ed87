//! Exports a snapshot with its journals as one text file, and imports it.
//!
//! The file has one JSON object per line, in this order. The last line proves that the file is
//! whole:
//!
//! ```text
//! {"head":{"trueline_state":2,"snapshot_format":31}}
//! {"topics":[…]} {"partitions":…} {"counters":…} {"models":[…]} {"joins":[…]} {"ledger":…}
//! {"followed":{…}}                of a process that judges what others count
//! {"stream": {…}}                 one per stream
//! {"compared":{…}}                one per model whose versions are compared
//! {"version":{…}}                 one per version with vector views
//! {"journal":{"join":0,"partition":4,"segment":7,"offset":0,"bytes":"…"}}      at most 1 MiB each
//! {"alerts":{…}}                  silences, acknowledgements and what was notified
//! {"end":{"lines":42,"crc":"9f86d081"}}
//! ```
//!
//! Packed sums and journals are hexadecimal. The imported snapshot equals the exported one to the
//! bit: the same file under another number, with journals that end at their marks. Only the caller
//! knows the form of the alerts.

use super::file::{Loaded, load_with_journals, save};
use super::format::{StoreError, VERSION, at};
use super::journal;
use crate::collect::join::{JoinState, JournalDelta};
use crate::collect::{Counters, Partitions};
use crate::judge::LedgerState;
use crate::monitor::snapshot::{
    ComparedState, FollowedState, ModelState, Snapshot, StreamState, VersionState,
};
use crate::window::hex::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

/// Version of the layout of the exported file. Version 1 had no alerts.
const LAYOUT: u32 = 2;

/// Bytes of a journal in one line.
const CHUNK_BYTES: usize = 1 << 20;

/// Why an export or import failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The state directory cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The exported file cannot be read or written.
    #[error("the exported file: {0}")]
    Io(#[from] io::Error),
    /// The directory has no snapshot to export.
    #[error("no snapshot in {0}; name the [state] directory of a trueline process that has run")]
    Empty(PathBuf),
    /// The target directory already has state.
    #[error("{0} holds state already; import into an empty directory")]
    Occupied(PathBuf),
    /// A line of the file is unusable: its number and the reason.
    #[error("line {0} of the exported file: {1}")]
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
    Followed(FollowedState),
    Stream(Box<StreamState>),
    Compared(Box<ComparedState>),
    Version(Box<VersionState>),
    Journal(JournalLine),
    Alerts(Box<RawValue>),
    End(End),
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    trueline_state: u32,
    snapshot_format: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct JournalLine {
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

/// Writes lines, counts them and takes their checksum.
struct LineWriter<'a> {
    to: &'a mut dyn Write,
    lines: u64,
    crc: crc32fast::Hasher,
}

impl LineWriter<'_> {
    fn write(&mut self, line: &Line) -> Result<(), TransferError> {
        let mut text = serde_json::to_vec(line).map_err(io::Error::from)?;
        text.push(b'\n');
        self.crc.update(&text);
        self.lines += 1;
        self.to.write_all(&text).map_err(TransferError::Io)
    }
}

/// Writes the newest whole snapshot of `dir` with its journals, and what `alerts` reads; returns
/// what was written. Alerts are read after the snapshot: if they were older, people would be
/// notified again of changes that only the snapshot has.
pub fn export(
    dir: &Path,
    alerts: impl FnOnce() -> io::Result<Option<Box<RawValue>>>,
    to: &mut dyn Write,
) -> Result<Loaded, TransferError> {
    let loaded = load_with_journals(dir)?.ok_or_else(|| TransferError::Empty(dir.to_owned()))?;
    let alerts = alerts()?;
    let mut writer = LineWriter {
        to,
        lines: 0,
        crc: crc32fast::Hasher::new(),
    };
    let s = &loaded.snapshot;
    writer.write(&Line::Head(Head {
        trueline_state: LAYOUT,
        snapshot_format: VERSION,
    }))?;
    writer.write(&Line::Topics(s.topics.clone()))?;
    writer.write(&Line::Partitions(s.partitions.clone()))?;
    writer.write(&Line::Counters(s.counters.clone()))?;
    writer.write(&Line::Models(s.models.clone()))?;
    writer.write(&Line::Joins(s.joins.clone()))?;
    writer.write(&Line::Ledger(s.ledger.clone()))?;
    if let Some(followed) = &s.followed {
        writer.write(&Line::Followed(followed.clone()))?;
    }
    for stream in &s.streams {
        writer.write(&Line::Stream(Box::new(stream.clone())))?;
    }
    for compared in &s.compared {
        writer.write(&Line::Compared(Box::new(compared.clone())))?;
    }
    for version in &s.vectors {
        writer.write(&Line::Version(Box::new(version.clone())))?;
    }
    for (state, segments) in s.joins.iter().zip(&loaded.segments) {
        for (mark, bytes) in state.marks.iter().zip(segments) {
            for (i, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
                writer.write(&Line::Journal(JournalLine {
                    join: state.join,
                    partition: state.partition,
                    segment: mark.segment,
                    offset: (i * CHUNK_BYTES) as u64,
                    bytes: Bytes(chunk.to_vec()),
                }))?;
            }
        }
    }
    if let Some(alerts) = alerts {
        writer.write(&Line::Alerts(alerts))?;
    }
    let end = End {
        lines: writer.lines,
        crc: format!("{:08x}", writer.crc.clone().finalize()),
    };
    writer.write(&Line::End(end))?;
    writer.to.flush()?;
    Ok(loaded)
}

/// Creates the state in `dir`, which must hold none, from a file that [`export`] wrote. Passes its
/// alerts to `alerts`, which returns what is wrong with them. The file is read twice, so that
/// nothing is written before the file is known to be whole.
pub fn import(
    file: &Path,
    dir: &Path,
    mut alerts: impl FnMut(&RawValue) -> Result<(), String>,
) -> Result<Loaded, TransferError> {
    if load_with_journals(dir)?.is_some() || dir.join(journal::FOLDER).exists() {
        return Err(TransferError::Occupied(dir.to_owned()));
    }
    verify(file)?;
    let loaded = import_lines(file, dir, &mut alerts).and_then(|snapshot| {
        save(dir, &snapshot)?;
        load_with_journals(dir)?.ok_or_else(|| TransferError::Empty(dir.to_owned()))
    });
    if loaded.is_err() {
        // There were no journals before, so these belong to the snapshot that failed.
        let _ = fs::remove_dir_all(dir.join(journal::FOLDER));
    }
    loaded
}

/// Compares the number of lines and their checksum with the last line.
pub fn verify(file: &Path) -> Result<(), TransferError> {
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
            check_head(&parse(n, text)?)?;
        }
        Ok(())
    })?;
    if number == 0 {
        let what = "the file is empty; a state that trueline exported has lines".to_owned();
        return Err(TransferError::Line(1, what));
    }
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

fn check_head(line: &Line) -> Result<(), TransferError> {
    let wrong = |what: String| Err(TransferError::Line(1, what));
    match line {
        Line::Head(h) if !(1..=LAYOUT).contains(&h.trueline_state) => wrong(format!(
            "layout {}, this program reads up to {LAYOUT}",
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

/// Writes the journals, passes on the alerts, and collects the snapshot.
fn import_lines(
    file: &Path,
    dir: &Path,
    alerts: &mut dyn FnMut(&RawValue) -> Result<(), String>,
) -> Result<Snapshot, TransferError> {
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
            Line::Followed(followed) => snapshot.followed = Some(followed),
            Line::Stream(stream) => snapshot.streams.push(*stream),
            Line::Compared(compared) => snapshot.compared.push(*compared),
            Line::Version(version) => snapshot.vectors.push(*version),
            Line::Journal(line) => {
                let delta = JournalDelta {
                    join: line.join,
                    partition: line.partition,
                    segment: line.segment,
                    offset: line.offset,
                    bytes: line.bytes.0,
                };
                journal::append(dir, &[delta])?;
            }
            Line::Alerts(text) => alerts(&text).map_err(|why| TransferError::Line(n, why))?,
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
