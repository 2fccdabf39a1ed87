//! The history on disk: a file that grows by frames, and is rewritten when most of it is old.
//!
//! ```text
//! history.log:  "TLHIST2\n"  frame*        frame:  length u32, CRC-32 u32, postcard
//! ```
//!
//! A frame holds new entries of one stream and, unless there are none, the further verdicts that
//! each point stands for. Later frames replace or thin earlier ones, by the rules of [`History`]. A
//! damaged frame is skipped. Anything after the last sound frame is cut off: a torn frame, and all
//! bytes after an impossible length. A file of another format is renamed to [`REFUSED`], which
//! replaces an earlier such file. The file is not synced, because a lost tail only leaves a gap in
//! a drawing.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files;
use crate::judge::{HistoryPoint, StreamId, Verdicts};
use crate::telemetry::history::{History, HistoryAlert};

/// Name of the file in the state directory.
pub const FILE: &str = "history.log";

/// Name of a file of another format, such as that of another version of trueline.
pub const REFUSED: &str = "history.log.refused";

const MAGIC: &[u8; 8] = b"TLHIST2\n";
/// Longer frames count as damaged: a stream has a few windows of a few hundred points.
const FRAME_BYTES_MAX: usize = 4 << 20;
/// The file is rewritten when it is this many bytes larger than twice its size after the last
/// rewrite.
const SLACK_BYTES: u64 = 4 << 20;

/// New entries of one stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The stream.
    pub stream: StreamId,
    /// Points with the names of their windows.
    pub points: Vec<(String, HistoryPoint)>,
    /// Changes of its alert.
    pub alerts: Vec<HistoryAlert>,
}

/// The open file.
#[derive(Debug)]
pub struct HistoryFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Bytes of the file after it was last rewritten.
    whole_bytes: u64,
    /// Bytes that could not be read on opening.
    unread: u64,
    /// A write failed: entries are missing, or the file ends with half a frame, after which nothing
    /// would be read.
    torn: bool,
}

impl HistoryFile {
    /// Opens the file of a state directory, or begins it, and reads it into `history`.
    pub fn open(directory: &Path, history: &History) -> io::Result<HistoryFile> {
        let path = directory.join(FILE);
        let mut file = appending(&path)?;
        let mut whole = Vec::new();
        file.read_to_end(&mut whole)?;
        // A prefix of the magic means that the first write was torn.
        if !whole.starts_with(MAGIC) && !MAGIC.starts_with(&whole) {
            files::rename(&path, &directory.join(REFUSED))?;
            file = appending(&path)?;
        }
        let (sound, unread) = match whole.strip_prefix(MAGIC) {
            Some(frames) => {
                let (end, bytes) = read(frames, history);
                (MAGIC.len() + end, frames.len() - bytes)
            }
            None => (0, whole.len()),
        };
        file.set_len(sound as u64)?;
        let mut open = HistoryFile {
            path,
            file,
            bytes: sound as u64,
            whole_bytes: sound as u64,
            unread: unread as u64,
            torn: false,
        };
        if sound == 0 {
            open.file.write_all(MAGIC)?;
            open.bytes = MAGIC.len() as u64;
        }
        Ok(open)
    }

    /// Bytes that could not be read on opening: torn, damaged, or of another format.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Appends new entries.
    pub fn append(&mut self, entries: &[HistoryEntry]) -> io::Result<()> {
        let mut frames = Vec::new();
        for entry in entries {
            frame(entry, &mut frames)?;
        }
        self.torn = true;
        self.file.write_all(&frames)?;
        (self.torn, self.bytes) = (false, self.bytes + frames.len() as u64);
        Ok(())
    }

    /// Makes the next write a rewrite, because entries were left out.
    pub fn require_rewrite(&mut self) {
        self.torn = true;
    }

    /// Whether the file must be rewritten: most of it is old, or a write failed.
    pub fn needs_rewrite(&self) -> bool {
        self.torn || self.bytes > 2 * self.whole_bytes + SLACK_BYTES
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Rewrites the file with the kept history.
    pub fn rewrite(&mut self, history: &History) -> io::Result<()> {
        let aside = self.path.with_extension(files::EXTENSION);
        // If the open file has lost its name, nothing may be appended to it.
        self.torn = true;
        let bytes = files::replace_with(&self.path, &aside, |file| write_all(file, history))?;
        (self.file, self.bytes, self.whole_bytes) = (appending(&self.path)?, bytes, bytes);
        self.torn = false;
        Ok(())
    }
}

/// Writes the kept history to a file, and returns its bytes.
fn write_all(file: &mut File, history: &History) -> io::Result<u64> {
    let mut out = BufWriter::new(file);
    out.write_all(MAGIC)?;
    let mut bytes = MAGIC.len() as u64;
    let mut streams = Vec::new();
    history.each(|stream, _| streams.push(stream.clone()));
    for stream in streams {
        // Copies the stream, so that nobody waits for the disk.
        let Some(kept) = history.stream(&stream) else {
            continue;
        };
        let windows = kept.windows.iter();
        let points = windows.flat_map(|(name, all)| all.iter().map(|p| (name.clone(), *p)));
        let entry = HistoryEntry {
            points: points.collect(),
            alerts: kept.alerts.iter().cloned().collect(),
            stream,
        };
        let mut one = Vec::new();
        frame(&entry, &mut one)?;
        out.write_all(&one)?;
        bytes += one.len() as u64;
    }
    out.flush()?;
    Ok(bytes)
}

/// Opens or creates the file for appending.
fn appending(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).open(path)
}

fn frame(entry: &HistoryEntry, out: &mut Vec<u8>) -> io::Result<()> {
    let mut body = postcard::to_stdvec(entry).map_err(io::Error::other)?;
    let besides: Vec<Verdicts> = entry.points.iter().map(|(_, p)| p.besides).collect();
    if besides.iter().any(|b| b.total() > 0) {
        body = postcard::to_extend(&besides, body).map_err(io::Error::other)?;
    }
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    out.extend_from_slice(&body);
    Ok(())
}

/// Bytes of a file that a start cannot read: torn, damaged, or of another format.
pub fn unread(bytes: &[u8]) -> u64 {
    let Some(frames) = bytes.strip_prefix(MAGIC) else {
        return bytes.len() as u64;
    };
    let (mut at, mut sound) = (0, 0);
    while let Some((entry, end)) = next(frames, at) {
        sound += if entry.is_some() { end - at } else { 0 };
        at = end;
    }
    (frames.len() - sound) as u64
}

/// Reads the sound frames. Returns the end of the last one, and their total bytes.
fn read(frames: &[u8], history: &History) -> (usize, usize) {
    let (mut at, mut end, mut bytes) = (0, 0, 0);
    while let Some((entry, next)) = next(frames, at) {
        if let Some(entry) = entry {
            for (window, point) in &entry.points {
                history.observe(&entry.stream, window, *point);
            }
            for alert in entry.alerts {
                history.alert(&entry.stream, alert);
            }
            (end, bytes) = (next, bytes + next - at);
        }
        at = next;
    }
    (end, bytes)
}

/// The frame at a position, or `None` in its place if it is damaged, and the position of the next
/// one. `None` if no whole frame can be there.
fn next(frames: &[u8], at: usize) -> Option<(Option<HistoryEntry>, usize)> {
    let word = |from: usize| {
        let bytes = frames.get(from..from + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let (length, sum) = (word(at)? as usize, word(at + 4)?);
    let end = at + 8 + length;
    let body = frames.get(at + 8..end)?;
    let whole = crc32fast::hash(body) == sum;
    let entry = whole.then(|| decode(body)).flatten();
    (length <= FRAME_BYTES_MAX).then_some((entry, end))
}

fn decode(body: &[u8]) -> Option<HistoryEntry> {
    let (mut entry, rest) = postcard::take_from_bytes::<HistoryEntry>(body).ok()?;
    if !rest.is_empty() {
        let besides: Vec<Verdicts> = postcard::from_bytes(rest).ok()?;
        for ((_, point), besides) in entry.points.iter_mut().zip(besides) {
            point.besides = besides;
        }
    }
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Verdict;
    use crate::stats::view::View;
    use std::fs;
    use tempfile::TempDir;

    fn entry(model: &str, end_ms: i64) -> HistoryEntry {
        let point = HistoryPoint {
            end_ms,
            n: 7,
            verdict: Verdict::Calibrated,
            error: None,
            ratio: None,
            besides: Verdicts::default(),
        };
        HistoryEntry {
            stream: StreamId {
                model: model.to_owned(),
                version: "1".to_owned(),
                segment: String::new(),
                view: View::Binary,
            },
            points: vec![("5m".to_owned(), point)],
            alerts: vec![HistoryAlert {
                at_ms: end_ms,
                state: "firing".to_owned(),
                severity: "warn".to_owned(),
                sentence: "it fires".to_owned(),
            }],
        }
    }

    fn points(directory: &Path) -> (usize, u64) {
        let history = History::default();
        let file = HistoryFile::open(directory, &history).expect("it opens");
        (history.points(), file.bytes())
    }

    #[test]
    fn a_restart_reads_what_was_written_and_a_torn_frame_costs_only_itself() {
        let folder = TempDir::with_prefix("trueline-history-").expect("a folder");
        let path = folder.path();
        let history = History::default();
        let mut file = HistoryFile::open(path, &history).expect("a new file");
        for i in 0..5 {
            file.append(&[entry("a", i), entry("b", i)])
                .expect("written");
        }
        assert_eq!(points(path), (10, file.bytes()));
        let whole = fs::read(path.join(FILE)).expect("the file");
        fs::write(path.join(FILE), &whole[..whole.len() - 3]).expect("torn");
        assert_eq!(points(path).0, 9);
        // The tail was cut off, so entries appended now can be read.
        let mut file = HistoryFile::open(path, &history).expect("it opens");
        file.append(&[entry("b", 9)]).expect("written");
        assert_eq!(points(path).0, 10);
        let mut damaged = fs::read(path.join(FILE)).expect("the file");
        damaged[40] ^= 1;
        fs::write(path.join(FILE), &damaged).expect("damaged");
        // The damaged frame in the middle is skipped but stays, and the frames after it are read.
        assert_eq!(points(path), (9, damaged.len() as u64));
        let file = HistoryFile::open(path, &history).expect("it opens");
        let first = u32::from_le_bytes(damaged[8..12].try_into().expect("four bytes"));
        assert_eq!(file.unread(), u64::from(first) + 8);
        // After an impossible length nothing is read.
        damaged[11] ^= 0xff;
        fs::write(path.join(FILE), &damaged).expect("damaged");
        let file = HistoryFile::open(path, &history).expect("it opens");
        assert_eq!(file.unread(), damaged.len() as u64 - 8);
        assert_eq!(points(path), (0, 8));
        fs::write(path.join(FILE), b"another format").expect("written");
        assert_eq!(points(path), (0, 8));
        let kept = fs::read(path.join(REFUSED)).expect("it is kept");
        assert_eq!(kept, b"another format");
        fs::write(path.join(FILE), &MAGIC[..3]).expect("torn");
        assert_eq!(points(path), (0, 8));
        assert_eq!(fs::read(path.join(REFUSED)).expect("it is kept"), kept);
    }

    #[test]
    fn verdicts_of_a_step_survive_a_restart_and_frames_without_them_are_read() {
        let folder = TempDir::with_prefix("trueline-history-").expect("a folder");
        let path = folder.path();
        let besides = Verdicts {
            calibrated: 19,
            undecided: 2,
            miscalibrated: 1,
        };
        let mut step = entry("a", 1);
        step.points[0].1.besides = besides;
        let history = History::default();
        let mut file = HistoryFile::open(path, &history).expect("a new file");
        file.append(&[entry("b", 1), step]).expect("written");
        let read = History::default();
        HistoryFile::open(path, &read)
            .and_then(|mut file| file.rewrite(&read))
            .expect("read and written");
        let again = History::default();
        let file = HistoryFile::open(path, &again).expect("it opens");
        let besides_of = |model| {
            let stream = again.stream(&entry(model, 1).stream).expect("it is there");
            stream.windows[0].1[0].besides
        };
        assert_eq!((besides_of("a"), besides_of("b").total()), (besides, 0));
        assert_eq!(file.unread(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_write_that_fails_is_mended_by_the_next_one() {
        let folder = TempDir::with_prefix("trueline-history-").expect("a folder");
        let path = folder.path();
        let history = History::default();
        let mut file = HistoryFile::open(path, &history).expect("a new file");
        let one = entry("a", 1);
        history.observe(&one.stream, "5m", one.points[0].1);
        file.file = appending(Path::new("/dev/full")).expect("a full disk");
        assert!(file.append(std::slice::from_ref(&one)).is_err());
        assert!(file.needs_rewrite());
        file.rewrite(&history).expect("there is room again");
        assert!(!file.needs_rewrite());
        file.append(&[entry("a", 2)]).expect("written");
        assert_eq!(points(path), (2, file.bytes()));
    }

    #[test]
    fn a_file_that_is_mostly_old_is_written_again_without_loss() {
        let folder = TempDir::with_prefix("trueline-history-").expect("a folder");
        let path = folder.path();
        let history = History::default();
        let mut file = HistoryFile::open(path, &history).expect("a new file");
        let one = entry("a", 1);
        history.observe(&one.stream, "5m", one.points[0].1);
        while !file.needs_rewrite() {
            file.append(&vec![one.clone(); 1000]).expect("written");
        }
        file.rewrite(&history).expect("written");
        assert!(file.bytes() < 200 && !file.needs_rewrite());
        file.append(&[entry("a", 2)]).expect("written");
        assert_eq!(points(path), (2, file.bytes()));
    }
}
