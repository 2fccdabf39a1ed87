//! Segments of join journals on disk, beside the snapshots that mark how much of them is theirs.
//!
//! ```text
//! journal/JOIN-PARTITION-SEGMENT.log      operations in the form of collect::join::journal
//! ```
//!
//! A segment is appended to and synced before the snapshot that marks it is written, so a snapshot
//! on disk never marks more than the file holds. Bytes behind the mark are newer than the snapshot;
//! they are overwritten when the program resumes from that snapshot. A segment is removed when no
//! kept snapshot marks it.

use super::format::{FormatError, StoreError, at};
use crate::collect::join::{JoinState, JournalDelta, JournalMark};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Directory of the journals in the state directory.
pub(super) const FOLDER: &str = "journal";
const SUFFIX: &str = "log";

/// Bytes that are read at a time to compute a checksum.
const CHECKED_BYTES: usize = 1 << 18;

/// The first segment that a snapshot needs, by join and partition.
pub type Needed = BTreeMap<(u16, i32), u64>;

/// Writes new bytes and syncs them. Writing the same bytes again changes nothing.
pub fn append(dir: &Path, deltas: &[JournalDelta]) -> Result<(), StoreError> {
    if deltas.is_empty() {
        return Ok(());
    }
    let folder = dir.join(FOLDER);
    fs::create_dir_all(&folder).map_err(at("creating the journal directory", &folder))?;
    let of = |d: &JournalDelta| (d.join, d.partition, d.segment);
    for deltas in deltas.chunk_by(|a, b| of(a) == of(b)) {
        let (join, partition, segment) = of(&deltas[0]);
        let path = path_of(dir, join, partition, segment);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(at("opening journal", &path))?;
        let mut write = |delta: &JournalDelta| {
            file.seek(SeekFrom::Start(delta.offset))?;
            file.write_all(&delta.bytes)
        };
        let written = deltas.iter().try_for_each(&mut write);
        written
            .and_then(|()| file.sync_data())
            .map_err(at("writing journal", &path))?;
    }
    let synced = File::open(&folder).and_then(|d| d.sync_all());
    synced.map_err(at("syncing the journal directory", &folder))
}

/// The checked segments of a snapshot, each up to its mark. An error names the file.
pub fn read(dir: &Path, state: &JoinState) -> Result<Vec<Vec<u8>>, (PathBuf, FormatError)> {
    let marks = state.marks.iter();
    marks.map(|mark| segment(dir, state, mark)).collect()
}

/// Checks the segments of a snapshot without keeping their bytes.
pub fn check(dir: &Path, state: &JoinState) -> Result<(), (PathBuf, FormatError)> {
    let mut buffer = vec![0; CHECKED_BYTES];
    state.marks.iter().try_for_each(|mark| {
        let path = path_of(dir, state.join, state.partition, mark.segment);
        match checksum(&path, mark.len, &mut buffer) {
            Ok(crc) if crc == mark.crc => Ok(()),
            Ok(_) => Err((path, FormatError::Checksum)),
            Err(error) => Err((path, unread(&error))),
        }
    })
}

fn unread(error: &io::Error) -> FormatError {
    match error.kind() {
        io::ErrorKind::NotFound => FormatError::Missing,
        io::ErrorKind::UnexpectedEof => FormatError::Torn,
        _ => FormatError::Unreadable(error.to_string()),
    }
}

/// The checksum of the first `len` bytes of a file; an error if it has fewer.
fn checksum(path: &Path, len: u64, buffer: &mut [u8]) -> io::Result<u32> {
    let (mut file, mut rest) = (File::open(path)?, len);
    let mut crc = crc32fast::Hasher::new();
    while rest > 0 {
        let most = buffer
            .len()
            .min(usize::try_from(rest).unwrap_or(usize::MAX));
        let part = &mut buffer[..most];
        file.read_exact(part)?;
        crc.update(part);
        rest -= most as u64;
    }
    Ok(crc.finalize())
}

/// One segment of a snapshot, up to its mark.
pub fn segment(
    dir: &Path,
    state: &JoinState,
    mark: &JournalMark,
) -> Result<Vec<u8>, (PathBuf, FormatError)> {
    let path = path_of(dir, state.join, state.partition, mark.segment);
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|f| {
        // Allocates no more than the file has, whatever the mark says.
        let len = f.metadata()?.len().min(mark.len);
        bytes.reserve_exact(usize::try_from(len).unwrap_or(0));
        f.take(mark.len).read_to_end(&mut bytes)
    });
    match read {
        Ok(n) if n as u64 == mark.len && crc32fast::hash(&bytes) == mark.crc => Ok(bytes),
        Ok(n) if n as u64 == mark.len => Err((path, FormatError::Checksum)),
        Ok(_) => Err((path, FormatError::Torn)),
        Err(error) => Err((path, unread(&error))),
    }
}

/// The first segment that each state needs.
pub fn needed(states: &[JoinState]) -> Needed {
    let first = |s: &JoinState| Some(((s.join, s.partition), s.marks.first()?.segment));
    states.iter().filter_map(first).collect()
}

/// Removes the segments that precede all needed ones. A file that cannot be removed does no harm.
pub fn prune<'n>(dir: &Path, needed: impl Iterator<Item = &'n Needed> + Clone) {
    let Ok(entries) = fs::read_dir(dir.join(FOLDER)) else {
        return;
    };
    for path in entries.flatten().map(|e| e.path()) {
        let Some((join, partition, segment)) = parse(&path) else {
            continue;
        };
        let mut first = needed.clone().map(|n| n.get(&(join, partition)).copied());
        // A snapshot without the journal needs no segment of it.
        if first.all(|first| first.is_none_or(|first| segment < first)) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Bytes of all segments.
pub fn bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir.join(FOLDER)).into_iter().flatten();
    let files = entries.flatten().filter_map(|e| e.metadata().ok());
    files.map(|m| m.len()).sum()
}

fn path_of(dir: &Path, join: u16, partition: i32, segment: u64) -> PathBuf {
    dir.join(FOLDER)
        .join(format!("{join}-{partition}-{segment:010}.{SUFFIX}"))
}

/// Whether the name is that of a segment.
pub(super) fn is_segment(path: &Path) -> bool {
    parse(path).is_some()
}

fn parse(path: &Path) -> Option<(u16, i32, u64)> {
    let name = path
        .file_name()?
        .to_str()?
        .strip_suffix(&format!(".{SUFFIX}"))?;
    let mut parts = name.splitn(3, '-');
    let join = parts.next()?.parse().ok()?;
    let partition = parts.next()?.parse().ok()?;
    Some((join, partition, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn delta(segment: u64, offset: u64, bytes: &[u8]) -> JournalDelta {
        JournalDelta {
            join: 1,
            partition: 2,
            segment,
            offset,
            bytes: bytes.to_vec(),
        }
    }

    fn state(segment: u64, bytes: &[u8]) -> JoinState {
        JoinState {
            join: 1,
            partition: 2,
            outcomes: 1,
            marks: vec![JournalMark {
                segment,
                len: bytes.len() as u64,
                crc: crc32fast::hash(bytes),
                until_ms: 0,
            }],
            ..JoinState::default()
        }
    }

    #[test]
    fn a_mark_reads_its_part_whatever_was_written_behind_it() {
        let folder = TempDir::with_prefix("trueline-journal-").unwrap();
        let dir = &folder.path().join("state");
        append(dir, &[delta(0, 0, b"abc")]).unwrap();
        append(dir, &[delta(0, 3, b"defgh")]).unwrap();
        assert_eq!(read(dir, &state(0, b"abc")).unwrap(), [b"abc".to_vec()]);
        // The program resumed from the first mark: bytes behind it are overwritten.
        append(dir, &[delta(0, 3, b"XY")]).unwrap();
        assert_eq!(read(dir, &state(0, b"abcXY")).unwrap(), [b"abcXY".to_vec()]);
        let fault = read(dir, &state(0, b"abcdefghijkl")).unwrap_err();
        assert_eq!(fault.1, FormatError::Torn);
        assert_eq!(
            read(dir, &state(0, b"abd")).unwrap_err().1,
            FormatError::Checksum
        );
        let missing = state(7, b"abc");
        assert_eq!(read(dir, &missing).unwrap_err().1, FormatError::Missing);
        assert_eq!(check(dir, &missing).unwrap_err().1, FormatError::Missing);
        // A segment that cannot be read is not torn.
        fs::create_dir(path_of(dir, 1, 2, 7)).unwrap();
        for fault in [
            read(dir, &missing).unwrap_err().1,
            check(dir, &missing).unwrap_err().1,
        ] {
            assert!(matches!(fault, FormatError::Unreadable(_)), "{fault}");
        }
    }

    #[test]
    fn only_segments_that_no_snapshot_needs_are_removed() {
        let folder = TempDir::with_prefix("trueline-journal-").unwrap();
        let dir = folder.path();
        let all = [delta(0, 0, b"a"), delta(1, 0, b"b"), delta(2, 0, b"c")];
        append(dir, &all).unwrap();
        let (old, new) = (needed(&[state(1, b"b")]), needed(&[state(2, b"c")]));
        prune(dir, [&old, &new].into_iter());
        assert!(read(dir, &state(0, b"a")).is_err());
        assert!(read(dir, &state(1, b"b")).is_ok());
        prune(dir, [&new].into_iter());
        assert!(read(dir, &state(1, b"b")).is_err());
        assert!(read(dir, &state(2, b"c")).is_ok());
    }
}
