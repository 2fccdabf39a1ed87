//! The history on disk: a file that grows by frames, and is written again when most of it is old.
//!
//! ```text
//! history.log:  "TLHIST1\n"  frame*        frame:  length u32, CRC-32 u32, postcard
//! ```
//!
//! A frame holds what one stream gained. Frames that come later replace or thin those before, by
//! the rules of [`History`]. A frame that is torn or damaged ends the file: what follows is not
//! read, and the next frame begins there. The file is not synced, because a lost tail is a gap in a
//! drawing and nothing else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::judge::{HistoryPoint, StreamId};
use crate::telemetry::history::{History, HistoryAlert};

/// Name of the file in the state directory.
pub const FILE: &str = "history.log";

const MAGIC: &[u8; 8] = b"TLHIST1\n";
/// Longer frames are damaged: a stream has a few windows of a few hundred points.
const FRAME_BYTES_MAX: usize = 4 << 20;
/// The file is written again when it has this many bytes more than twice what it had after that.
const SLACK_BYTES: u64 = 4 << 20;

/// What a stream gained.
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
    /// Bytes after it was last written as a whole.
    whole_bytes: u64,
}

impl HistoryFile {
    /// Opens the file of a state directory, or begins it, and reads it into `history`.
    pub fn open(directory: &Path, history: &History) -> io::Result<HistoryFile> {
        let path = directory.join(FILE);
        let mut file = appending(&path)?;
        let mut whole = Vec::new();
        file.read_to_end(&mut whole)?;
        let sound = match whole.strip_prefix(MAGIC) {
            Some(frames) => MAGIC.len() + read(frames, history),
            None => 0,
        };
        file.set_len(sound as u64)?;
        let mut open = HistoryFile {
            path,
            file,
            bytes: sound as u64,
            whole_bytes: sound as u64,
        };
        if sound == 0 {
            open.file.write_all(MAGIC)?;
            open.bytes = MAGIC.len() as u64;
        }
        Ok(open)
    }

    /// Appends what streams gained.
    pub fn append(&mut self, entries: &[HistoryEntry]) -> io::Result<()> {
        let mut frames = Vec::new();
        for entry in entries {
            frame(entry, &mut frames)?;
        }
        self.file.write_all(&frames)?;
        self.bytes += frames.len() as u64;
        Ok(())
    }

    /// Whether most of the file is old.
    pub fn is_long(&self) -> bool {
        self.bytes > 2 * self.whole_bytes + SLACK_BYTES
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the file again, from what is kept.
    pub fn rewrite(&mut self, history: &History) -> io::Result<()> {
        let temporary = self.path.with_extension("part");
        let mut out = BufWriter::new(File::create(&temporary)?);
        out.write_all(MAGIC)?;
        let mut bytes = MAGIC.len() as u64;
        let mut streams = Vec::new();
        history.each(|stream, _| streams.push(stream.clone()));
        for stream in streams {
            // A copy, so that nobody waits for the disk.
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
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        fs::rename(&temporary, &self.path)?;
        (self.file, self.bytes, self.whole_bytes) = (appending(&self.path)?, bytes, bytes);
        Ok(())
    }
}

/// Opens or creates the file; what is written goes to its end.
fn appending(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).open(path)
}

fn frame(entry: &HistoryEntry, out: &mut Vec<u8>) -> io::Result<()> {
    let body = postcard::to_stdvec(entry).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    out.extend_from_slice(&body);
    Ok(())
}

/// Reads frames until the first that is not whole; answers how many bytes were.
fn read(frames: &[u8], history: &History) -> usize {
    let mut at = 0;
    while let Some((entry, next)) = next(frames, at) {
        for (window, point) in &entry.points {
            history.observe(&entry.stream, window, *point);
        }
        for alert in entry.alerts {
            history.alert(&entry.stream, alert);
        }
        at = next;
    }
    at
}

fn next(frames: &[u8], at: usize) -> Option<(HistoryEntry, usize)> {
    let word = |from: usize| {
        let bytes = frames.get(from..from + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let (length, sum) = (word(at)? as usize, word(at + 4)?);
    let end = at + 8 + length;
    let body = frames.get(at + 8..end)?;
    let sound = length <= FRAME_BYTES_MAX && crc32fast::hash(body) == sum;
    let entry = sound.then(|| postcard::from_bytes(body).ok()).flatten()?;
    Some((entry, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Verdict;
    use crate::stats::view::View;

    fn entry(model: &str, end_ms: i64) -> HistoryEntry {
        let point = HistoryPoint {
            end_ms,
            n: 7,
            verdict: Verdict::Calibrated,
            error: None,
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

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("trueline-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        path
    }

    fn points(directory: &Path) -> (usize, u64) {
        let history = History::default();
        let file = HistoryFile::open(directory, &history).expect("it opens");
        (history.points(), file.bytes())
    }

    #[test]
    fn a_restart_reads_what_was_written_and_a_torn_frame_costs_only_itself() {
        let path = directory("history-torn");
        let history = History::default();
        let mut file = HistoryFile::open(&path, &history).expect("a new file");
        for i in 0..5 {
            file.append(&[entry("a", i), entry("b", i)])
                .expect("written");
        }
        assert_eq!(points(&path), (10, file.bytes()));
        let whole = fs::read(path.join(FILE)).expect("the file");
        fs::write(path.join(FILE), &whole[..whole.len() - 3]).expect("torn");
        assert_eq!(points(&path).0, 9);
        // The tail is gone, so that what is appended now is read.
        let mut file = HistoryFile::open(&path, &history).expect("it opens");
        file.append(&[entry("b", 9)]).expect("written");
        assert_eq!(points(&path).0, 10);
        let mut damaged = fs::read(path.join(FILE)).expect("the file");
        damaged[40] ^= 1;
        fs::write(path.join(FILE), &damaged).expect("damaged");
        assert!(points(&path).0 < 2);
        fs::write(path.join(FILE), b"another format").expect("written");
        assert_eq!(points(&path), (0, 8));
        fs::remove_dir_all(path).expect("it is there");
    }

    #[test]
    fn a_file_that_is_mostly_old_is_written_again_without_loss() {
        let path = directory("history-long");
        let history = History::default();
        let mut file = HistoryFile::open(&path, &history).expect("a new file");
        let one = entry("a", 1);
        history.observe(&one.stream, "5m", one.points[0].1);
        while !file.is_long() {
            file.append(&vec![one.clone(); 1000]).expect("written");
        }
        file.rewrite(&history).expect("written");
        assert!(file.bytes() < 200 && !file.is_long());
        file.append(&[entry("a", 2)]).expect("written");
        assert_eq!(points(&path), (2, file.bytes()));
        fs::remove_dir_all(path).expect("it is there");
    }
}
