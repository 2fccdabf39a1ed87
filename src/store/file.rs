//! Snapshots on disk.
//!
//! A snapshot is written to a temporary file, synced and renamed into place, and the directory is
//! synced. So after a crash at any moment the directory holds whole older files, and at most one
//! part of a new one under a name that is never read. The newest [`KEEP`] files are kept. Loading
//! takes the newest whole file, and reports newer ones that it refuses. A process that continues
//! without them renames them ([`keep_refused`]): otherwise the next saves would remove them, as the
//! oldest.
//!
//! ```text
//! snapshot-00000000000000000042.trueline, or with `.refused` at its end
//! "TRUELINE" · version u32 · length u64 · crc32 of the body u32 · body (postcard), little-endian
//! ```
//!
//! A file with another magic is foreign, and one with a higher version is from the future. Neither
//! is ever overwritten.

use super::format::{FormatError, StoreError, VERSION, after_version, at};
use super::journal;
use crate::collect::join::JoinState;
use crate::files::{self, REFUSED};
use crate::monitor::Snapshot;
use std::fs;
use std::io::{self, BufWriter, IntoInnerError, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Files that are kept: the newest, one in case the newest is torn, and one for operator errors.
pub const KEEP: usize = 3;

/// Bytes that are written to the file at a time.
const BUFFER: usize = 1 << 20;
const MAGIC: &[u8; 8] = b"TRUELINE";
const HEADER: usize = 24;
const PREFIX: &str = "snapshot-";
const SUFFIX: &str = ".trueline";

/// A snapshot, and the newer files that cannot be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The newest whole snapshot.
    pub snapshot: Snapshot,
    /// Its file.
    pub path: PathBuf,
    /// The journal segments that each of its joins marks; empty if [`load_checked`] loaded it.
    pub segments: Vec<Vec<Vec<u8>>>,
    /// Newer files that were refused, journals among them.
    pub refused: Vec<(PathBuf, FormatError)>,
    /// Newer snapshots that need one of these journals.
    pub without_journal: Vec<PathBuf>,
}

/// Writes the snapshot into `dir`, which is created if it is missing, and removes all but the
/// newest [`KEEP`] files. Returns the path of the new file.
pub fn save(dir: &Path, snapshot: &Snapshot) -> Result<PathBuf, StoreError> {
    fs::create_dir_all(dir).map_err(at("creating the state directory", dir))?;
    let earlier = list(dir)?;
    let number = earlier.last().map_or(0, |(n, _)| n + 1);
    let path = dir.join(format!("{PREFIX}{number:020}{SUFFIX}"));
    let aside = path.with_extension(files::EXTENSION);
    files::replace_with(&path, &aside, |file| encode(snapshot, file))
        .map_err(at("writing snapshot", &path))?;
    for (_, old) in earlier.iter().rev().skip(KEEP - 1) {
        // The new file is safe; an old one that cannot be removed does no harm.
        let _ = fs::remove_file(old);
    }
    Ok(path)
}

/// Renames a snapshot that was refused, so that no save removes it and no start reads it. Of these
/// files, the newest [`KEEP_REFUSED`](files::KEEP_REFUSED) stay. Returns its new path; `None` for
/// another file, such as a journal.
pub fn keep_refused(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    if !is_snapshot(path) {
        return Ok(None);
    }
    let kept = files::keep_refused(path, PREFIX).and_then(|kept| match path.exists() {
        true => fs::remove_file(path).map(|()| kept),
        false => Ok(kept),
    });
    let kept = kept.map_err(at("renaming a refused snapshot", path))?;
    Ok(Some(kept))
}

/// The newest whole snapshot in `dir`, whose journals are checked too; `None` without any file.
pub fn load(dir: &Path) -> Result<Option<Snapshot>, StoreError> {
    Ok(load_with_journals(dir)?.map(|l| l.snapshot))
}

/// The newest whole snapshot in `dir` with its journals, and the newer files that were refused.
pub fn load_with_journals(dir: &Path) -> Result<Option<Loaded>, StoreError> {
    newest(dir, journal::read, Vec::new())
}

/// Like [`load_with_journals`], but only checks the journals, because they may exceed memory. The
/// caller reads them one [`segment`](journal::segment) at a time.
pub fn load_checked(dir: &Path) -> Result<Option<Loaded>, StoreError> {
    load_other(dir, Vec::new())
}

/// Like [`load_checked`], but skips the files that the caller has `refused`. The result lists them
/// as refused too.
pub fn load_other(
    dir: &Path,
    refused: Vec<(PathBuf, FormatError)>,
) -> Result<Option<Loaded>, StoreError> {
    let check = |dir: &Path, state: &JoinState| journal::check(dir, state).map(|()| Vec::new());
    newest(dir, check, refused)
}

fn newest(
    dir: &Path,
    read_journal: impl Fn(&Path, &JoinState) -> Result<Vec<Vec<u8>>, (PathBuf, FormatError)>,
    mut refused: Vec<(PathBuf, FormatError)>,
) -> Result<Option<Loaded>, StoreError> {
    if !dir.exists() {
        return Ok(None);
    }
    let mut without_journal = Vec::new();
    for (_, path) in list(dir)?.into_iter().rev() {
        if refused.iter().any(|(known, _)| *known == path) {
            continue;
        }
        let bytes = fs::read(&path).map_err(at("reading snapshot", &path))?;
        let snapshot = match read(&bytes) {
            Ok(snapshot) => snapshot,
            Err(fault) => {
                refused.push((path, fault));
                continue;
            }
        };
        let segments = snapshot.joins.iter().map(|j| read_journal(dir, j));
        match segments.collect() {
            Ok(segments) => {
                return Ok(Some(Loaded {
                    snapshot,
                    path,
                    segments,
                    refused,
                    without_journal,
                }));
            }
            Err(fault) => {
                without_journal.push(path);
                // Several snapshots may need the same journal.
                if !refused.contains(&fault) {
                    refused.push(fault);
                }
            }
        }
    }
    if refused.is_empty() {
        Ok(None)
    } else {
        Err(StoreError::Refused(refused))
    }
}

/// Whether the name is that of a snapshot.
pub(super) fn is_snapshot(path: &Path) -> bool {
    number(path).is_some()
}

/// Whether the name is that of a snapshot that was refused at a start.
pub(super) fn is_refused(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(REFUSED))
}

fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    number.parse().ok()
}

/// The format version in the header of a file, if it is ours.
pub(super) fn format_of(bytes: &[u8]) -> Option<u32> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (version, _) = rest.split_first_chunk::<4>()?;
    (magic == MAGIC).then(|| u32::from_le_bytes(*version))
}

/// The paths in a directory, in order.
pub(super) fn paths(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(dir).and_then(|all| all.map(|e| Ok(e?.path())).collect());
    let mut paths: Vec<PathBuf> = entries.map_err(at("listing the state directory", dir))?;
    paths.sort();
    Ok(paths)
}

/// Snapshot files with their numbers, ascending.
fn list(dir: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let paths = paths(dir)?.into_iter();
    let mut files: Vec<_> = paths
        .filter_map(|path| Some((number(&path)?, path)))
        .collect();
    files.sort();
    Ok(files)
}

/// A body being written, with the fields of its header.
struct Body<'a, W> {
    to: &'a mut W,
    length: u64,
    crc: crc32fast::Hasher,
    /// The error of a failed write, which the encoder does not report.
    failed: Option<io::Error>,
}

impl<W: Write> Write for Body<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.to.write_all(bytes);
        done.map_err(|error| io::Error::from(self.failed.insert(error).kind()))?;
        self.length += bytes.len() as u64;
        self.crc.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Leaves room for the header, writes the body and then the header, so that the body needs no
/// buffer.
fn encode<W: Write + Seek>(snapshot: &Snapshot, to: &mut W) -> io::Result<()> {
    to.write_all(&[0; HEADER])?;
    let body = Body {
        to,
        length: 0,
        crc: crc32fast::Hasher::new(),
        failed: None,
    };
    let mut body = BufWriter::with_capacity(BUFFER, body);
    let encoded = postcard::to_io(snapshot, &mut body).err();
    let error = encoded.map(io::Error::other);
    if let Some(error) = error.or_else(|| body.flush().err()) {
        let failed = body.get_mut().failed.take();
        return Err(failed.unwrap_or(error));
    }
    let body = body.into_inner().map_err(IntoInnerError::into_error)?;
    let Body {
        to, length, crc, ..
    } = body;
    to.seek(SeekFrom::Start(0))?;
    to.write_all(MAGIC)?;
    to.write_all(&VERSION.to_le_bytes())?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&crc.finalize().to_le_bytes())
}

pub(super) fn read(bytes: &[u8]) -> Result<Snapshot, FormatError> {
    let rest = after_version(bytes, MAGIC, VERSION)?;
    let (length, rest) = rest.split_first_chunk::<8>().ok_or(FormatError::Torn)?;
    let (checksum, body) = rest.split_first_chunk::<4>().ok_or(FormatError::Torn)?;
    if body.len() as u64 != u64::from_le_bytes(*length) {
        return Err(FormatError::Torn);
    }
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return Err(FormatError::Checksum);
    }
    postcard::from_bytes(body).map_err(|e| FormatError::Body(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn folder() -> TempDir {
        TempDir::with_prefix("trueline-store-").unwrap()
    }

    /// Error number of a full disk.
    const NO_ROOM: i32 = 28;

    /// A disk with room for this many bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.0);
            self.0 -= n;
            match n {
                0 if !bytes.is_empty() => Err(io::Error::from_raw_os_error(NO_ROOM)),
                _ => Ok(n),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Full {
        fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
            Ok(0)
        }
    }

    #[test]
    fn a_disk_that_fills_up_within_a_body_is_named() {
        let mut long = numbered(7);
        long.topics = vec!["t".repeat(BUFFER + 1)];
        for snapshot in [numbered(7), long] {
            let failed = encode(&snapshot, &mut Full(HEADER + 1)).unwrap_err();
            assert_eq!(failed.raw_os_error(), Some(NO_ROOM), "{failed}");
        }
    }

    fn numbered(n: u64) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.counters.evaluations = n;
        snapshot
    }

    #[test]
    fn the_newest_of_three_is_loaded_and_older_ones_are_dropped() {
        let folder = folder();
        let dir = folder.path().join("state");
        assert_eq!(load(&dir).unwrap(), None);
        for n in 0..5 {
            save(&dir, &numbered(n)).unwrap();
        }
        assert_eq!(load(&dir).unwrap(), Some(numbered(4)));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), KEEP);
    }

    #[test]
    fn torn_damaged_foreign_and_future_files_are_refused_by_name_and_the_older_one_used() {
        let mut whole = io::Cursor::new(Vec::new());
        encode(&numbered(7), &mut whole).unwrap();
        let whole = whole.into_inner();
        let damage = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            bytes
        };
        let mut future = whole.clone();
        future[8] = VERSION as u8 + 1;
        let last = whole.len() - 1;
        let cases = [
            (whole[..last].to_vec(), FormatError::Torn),
            ([&whole[..], b"more"].concat(), FormatError::Torn),
            (whole[..10].to_vec(), FormatError::Torn),
            (Vec::new(), FormatError::Torn),
            (damage(0), FormatError::Foreign),
            (damage(last), FormatError::Checksum),
            (future, FormatError::Future(VERSION + 1)),
        ];
        for (bytes, fault) in cases {
            let dir = folder();
            save(dir.path(), &numbered(1)).unwrap();
            let newest = save(dir.path(), &numbered(2)).unwrap();
            fs::write(&newest, &bytes).unwrap();
            let loaded = load_with_journals(dir.path()).unwrap().unwrap();
            assert_eq!(loaded.snapshot, numbered(1), "{fault:?}");
            assert_eq!(loaded.refused, [(newest.clone(), fault)]);
            // The next snapshot does not overwrite the bad one.
            assert!(save(dir.path(), &numbered(3)).unwrap() > newest);
            assert_eq!(load(dir.path()).unwrap(), Some(numbered(3)));
        }
    }

    #[test]
    fn a_refused_snapshot_outlives_the_saves_that_follow_and_there_are_few_of_them() {
        let dir = folder();
        save(dir.path(), &numbered(0)).unwrap();
        let refused = || {
            let mut all = paths(dir.path()).unwrap();
            all.retain(|path| is_refused(path));
            all
        };
        for n in 1..=5 {
            let newest = save(dir.path(), &numbered(n)).unwrap();
            fs::write(&newest, format!("not a snapshot, {n}")).unwrap();
            let loaded = load_with_journals(dir.path()).unwrap().unwrap();
            for (path, _) in &loaded.refused {
                let kept = keep_refused(path).unwrap().unwrap();
                assert!(!path.exists() && kept.exists());
            }
            for _ in 0..2 * KEEP {
                save(dir.path(), &numbered(100)).unwrap();
            }
            assert_eq!(load(dir.path()).unwrap(), Some(numbered(100)));
            let kept = refused().into_iter();
            let mut kept: Vec<_> = kept.map(|path| fs::read_to_string(path).unwrap()).collect();
            kept.sort();
            let first = (n + 1).saturating_sub(files::KEEP_REFUSED as u64).max(1);
            let newest = (first..=n).map(|n| format!("not a snapshot, {n}"));
            assert_eq!(kept, newest.collect::<Vec<_>>());
        }
        // Two refused files of the same number are both kept.
        let one = dir.path().join("snapshot-00000000000000000099.trueline");
        for text in ["one", "two"] {
            fs::write(&one, text).unwrap();
            keep_refused(&one).unwrap();
        }
        let kept = refused().into_iter();
        let kept: Vec<_> = kept.map(|path| fs::read_to_string(path).unwrap()).collect();
        assert!(kept.contains(&"one".to_owned()) && kept.contains(&"two".to_owned()));
        // A journal stays where it is.
        let journal = dir.path().join("journal");
        assert_eq!(keep_refused(&journal).unwrap(), None);
    }

    #[test]
    fn when_no_file_is_usable_the_load_fails_with_every_path() {
        let dir = folder();
        let path = save(dir.path(), &numbered(1)).unwrap();
        fs::write(&path, b"something else entirely").unwrap();
        let message = load(dir.path()).unwrap_err().to_string();
        assert!(message.contains(&path.display().to_string()), "{message}");
        assert!(message.contains("foreign"), "{message}");
    }

    #[test]
    fn a_part_left_by_a_crash_is_not_read() {
        let dir = folder();
        save(dir.path(), &numbered(1)).unwrap();
        let part = dir.path().join("snapshot-00000000000000000009.part");
        fs::write(part, b"half").unwrap();
        assert_eq!(load(dir.path()).unwrap(), Some(numbered(1)));
    }

    /// Every write to this file fails, as on a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_snapshot_that_finds_the_disk_full_takes_no_room() {
        let dir = folder();
        let aside = dir.path().join("snapshot-00000000000000000000.part");
        std::os::unix::fs::symlink("/dev/full", &aside).unwrap();
        assert!(save(dir.path(), &numbered(1)).is_err());
        assert!(fs::symlink_metadata(&aside).is_err());
    }

    #[test]
    fn a_state_directory_that_cannot_be_made_is_named() {
        let dir = folder();
        let file = dir.path().join("file");
        fs::write(&file, b"a file where the directory should be").unwrap();
        let message = save(&file, &numbered(1)).unwrap_err().to_string();
        assert!(message.contains("state directory"), "{message}");
    }
}
