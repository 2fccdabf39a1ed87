//! Segments: the files of a log, each named by the offset of its first event.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::frame::{self, Frame, HEAD};
use super::{LogError, failed};
use crate::files::sync_folder;

/// First bytes of each file, which identify its format.
pub(super) const MAGIC: &[u8; 8] = b"TLEVNT1\n";
/// Extension of the file names.
const EXTENSION: &str = "events";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Offset of its first event.
    pub base: u64,
    /// Offset after its last event.
    pub end: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Time of the first frame, in ms since 1970; 0 while the segment is empty.
    pub first_ms: i64,
    /// Time of the last frame, in ms since 1970; 0 while the segment is empty.
    pub last_ms: i64,
}

impl Segment {
    /// Creates an empty segment as a new file.
    pub fn create(directory: &Path, base: u64) -> Result<(Segment, File), LogError> {
        let path = path(directory, base);
        let creating = failed("create", &path);
        let mut options = OpenOptions::new();
        // An existing file has no whole frame: it was begun before a crash.
        let file = options.write(true).create(true).truncate(true).open(&path);
        let mut file = file.map_err(&creating)?;
        file.write_all(MAGIC).map_err(&creating)?;
        file.sync_all().map_err(&creating)?;
        sync_folder(&path).map_err(&creating)?;
        let bytes = MAGIC.len() as u64;
        Ok((Segment::begun(base, bytes), file))
    }

    fn begun(base: u64, bytes: u64) -> Segment {
        Segment {
            base,
            end: base,
            bytes,
            first_ms: 0,
            last_ms: 0,
        }
    }

    /// Counts a frame appended to the end.
    pub fn add(&mut self, frame: &Frame<'_>, bytes: u64) {
        if self.first_ms == 0 {
            self.first_ms = frame.at_ms;
        }
        self.last_ms = frame.at_ms;
        self.end += frame.events();
        self.bytes += bytes;
    }

    /// Reads a file and passes each frame to `each`. In the `last` segment, bytes after the last
    /// whole frame were never acknowledged and are cut off. Any other damage is an error.
    pub fn read(
        directory: &Path,
        base: u64,
        last: bool,
        each: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<Segment, LogError> {
        let path = path(directory, base);
        let bytes = fs::read(&path).map_err(failed("read", &path))?;
        let Some(segment) = Segment::scan(&path, &bytes, base, last, each)? else {
            return Ok(Segment::create(directory, base)?.0);
        };
        let at = segment.bytes as usize;
        if at == bytes.len() {
            return Ok(segment);
        }
        let cut = bytes.len() - at;
        tracing::warn!(file = %path.display(), bytes = cut, "an unfinished write, which was never acknowledged, is cut off");
        let file = OpenOptions::new().write(true).open(&path);
        let done = file.and_then(|file| file.set_len(at as u64).and_then(|()| file.sync_all()));
        done.map_err(failed("cut", &path))?;
        Ok(segment)
    }

    /// Passes each frame of a file to `each`, up to the last whole one. Returns `None` for a file
    /// that was only begun.
    fn scan(
        path: &Path,
        bytes: &[u8],
        base: u64,
        last: bool,
        each: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<Option<Segment>, LogError> {
        let damaged = |at: usize| LogError::Damaged {
            path: path.to_path_buf(),
            at: at as u64,
        };
        let mut segment = Segment::begun(base, MAGIC.len() as u64);
        let mut at = MAGIC.len();
        if !bytes.starts_with(MAGIC) {
            if !last || !MAGIC.starts_with(bytes) {
                return Err(damaged(0));
            }
            return Ok(None);
        }
        while at < bytes.len() {
            let Some((frame, next)) = frame::at(bytes, at) else {
                break;
            };
            if frame.base != segment.end {
                return Err(damaged(at));
            }
            segment.add(&frame, (next - at) as u64);
            each(&frame);
            at = next;
        }
        match at < bytes.len() && (!last || frame::any_whole(bytes, at)) {
            true => Err(damaged(at)),
            false => Ok(Some(segment)),
        }
    }
}

/// Whether a start can read this file of a log; files that are not segments count as readable.
/// Changes nothing.
pub fn check(path: &Path) -> Result<(), LogError> {
    let directory = path.parent().unwrap_or(path);
    let bases = bases(directory)?;
    let base = bases
        .iter()
        .find(|&&base| self::path(directory, base) == path);
    let Some(&base) = base else {
        return Ok(());
    };
    let bytes = fs::read(path).map_err(failed("read", path))?;
    let last = bases.last() == Some(&base);
    Segment::scan(path, &bytes, base, last, &mut |_| {}).map(drop)
}

pub(super) fn path(directory: &Path, base: u64) -> PathBuf {
    directory.join(format!("{base:020}.{EXTENSION}"))
}

/// Bases of all segments of a directory, in order.
pub(super) fn bases(directory: &Path) -> Result<Vec<u64>, LogError> {
    let listing = failed("list", directory);
    let mut bases = Vec::new();
    for entry in fs::read_dir(directory).map_err(&listing)? {
        let name = entry.map_err(&listing)?.file_name();
        let name = name.to_str().and_then(|n| n.strip_suffix(EXTENSION));
        let base: Option<u64> = name.and_then(|n| n.strip_suffix('.')?.parse().ok());
        bases.extend(base);
    }
    bases.sort_unstable();
    Ok(bases)
}

/// Position of the first frame in a file.
pub(super) const FIRST: u64 = MAGIC.len() as u64;

/// Reads the frame at `at` of an open file into `bytes`, unchecked; the body follows the first
/// [`HEAD`] bytes. Returns the checksum of the body, and the position of the next frame.
pub(super) fn frame_at(file: &File, at: u64, bytes: &mut Vec<u8>) -> io::Result<(u32, u64)> {
    bytes.resize(HEAD, 0);
    file.read_exact_at(bytes, at)?;
    let no_frame = || io::Error::new(io::ErrorKind::InvalidData, "no frame begins there");
    let (length, sum) = frame::head(bytes).ok_or_else(no_frame)?;
    bytes.resize(HEAD + length, 0);
    file.read_exact_at(&mut bytes[HEAD..], at + HEAD as u64)?;
    Ok((sum, at + (HEAD + length) as u64))
}
