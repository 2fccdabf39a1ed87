//! Snapshots on disk.
//!
//! A snapshot is written aside, synced, renamed into place, and the directory synced; so at any moment
//! of a crash the directory holds whole older files and at most one part of a new one under a name that
//! is never read. The newest [`KEEP`] are kept. Loading takes the newest that is whole; those that are
//! not are left where they are, for someone to look at, and named.
//!
//! ```text
//! snapshot-00000000000000000042.trueline
//! "TRUELINE" · version u32 · length u64 · crc32 of the body u32 · body (postcard), all little-endian
//! ```
//!
//! A file with another magic is foreign, one with a newer version is from the future; neither is ever
//! overwritten, since numbers only grow.

use super::journal;
use crate::monitor::Snapshot;
use crate::collect::join::JoinState;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Files that are kept: the newest, one before in case it is torn, and one for the operator's error.
pub const KEEP: usize = 3;

/// Version of the format that is written; older ones are not read, for there are none.
pub const VERSION: u32 = 14;

const MAGIC: &[u8; 8] = b"TRUELINE";
const HEADER: usize = 24;
const PREFIX: &str = "snapshot-";
const SUFFIX: &str = ".trueline";

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Shorter than it says.
    Torn,
    /// Not a snapshot.
    Foreign,
    /// Written by a newer version.
    Future(u32),
    /// Written by a version whose format is no longer read.
    Past(u32),
    /// The checksum does not fit the body.
    Checksum,
    /// The body cannot be decoded.
    Body(String),
}

/// Why a snapshot was not written or read. The message names the path and the remedy.
#[derive(Debug)]
pub enum StoreError {
    /// The operating system refused.
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// There are snapshots, and none can be used. Starting afresh would silently lose their sums.
    Refused(Vec<(PathBuf, Fault)>),
}

/// A snapshot with what was passed over to find it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The newest that is whole.
    pub snapshot: Snapshot,
    /// Its file.
    pub path: PathBuf,
    /// The journal segments that it marks, for each of its joins; none of [`load_checked`].
    pub segments: Vec<Vec<Vec<u8>>>,
    /// Newer files that were refused.
    pub refused: Vec<(PathBuf, Fault)>,
}

/// Writes the snapshot into `dir`, which is made if it is not there, and drops all but the newest
/// [`KEEP`]. Returns the file.
pub fn save(dir: &Path, snapshot: &Snapshot) -> Result<PathBuf, StoreError> {
    fs::create_dir_all(dir).map_err(at("creating the state directory", dir))?;
    let files = list(dir)?;
    let number = files.last().map_or(0, |(n, _)| n + 1);
    let path = dir.join(format!("{PREFIX}{number:020}{SUFFIX}"));
    let aside = path.with_extension("part");
    write_synced(&aside, &encode(snapshot)?).map_err(at("writing snapshot", &aside))?;
    fs::rename(&aside, &path).map_err(at("renaming snapshot into place", &path))?;
    let synced = File::open(dir).and_then(|d| d.sync_all());
    synced.map_err(at("syncing the state directory", dir))?;
    for (_, old) in files.iter().rev().skip(KEEP - 1) {
        // The new one is safe; an old one that stays is in nobody's way.
        let _ = fs::remove_file(old);
    }
    Ok(path)
}

/// The newest snapshot in `dir` that is whole; `None` where there is no file. See [`load_named`].
pub fn load(dir: &Path) -> Result<Option<Snapshot>, StoreError> {
    Ok(load_named(dir)?.map(|l| l.snapshot))
}

/// The newest snapshot in `dir` that is whole, with the newer ones that were refused.
pub fn load_named(dir: &Path) -> Result<Option<Loaded>, StoreError> {
    newest(dir, journal::read)
}

/// The same with journals that were checked and not kept: they may be larger than memory. They are read one
/// [`segment`](journal::segment) after the other.
pub fn load_checked(dir: &Path) -> Result<Option<Loaded>, StoreError> {
    newest(dir, |dir, state| {
        journal::check(dir, state).map(|()| Vec::new())
    })
}

fn newest(
    dir: &Path,
    read_journal: impl Fn(&Path, &JoinState) -> Result<Vec<Vec<u8>>, (PathBuf, Fault)>,
) -> Result<Option<Loaded>, StoreError> {
    if !dir.exists() {
        return Ok(None);
    }
    let mut refused = Vec::new();
    for (_, path) in list(dir)?.into_iter().rev() {
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
                }));
            }
            Err(fault) => refused.push(fault),
        }
    }
    if refused.is_empty() {
        Ok(None)
    } else {
        Err(StoreError::Refused(refused))
    }
}

pub(super) fn at<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Whether the file is named as a snapshot is.
pub(super) fn is_snapshot(path: &Path) -> bool {
    number(path).is_some()
}

fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    number.parse().ok()
}

/// The version of the format that a file says, if it is ours.
pub(super) fn format_of(bytes: &[u8]) -> Option<u32> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (version, _) = rest.split_first_chunk::<4>()?;
    (magic == MAGIC).then(|| u32::from_le_bytes(*version))
}

/// Files of snapshots with their numbers, ascending.
fn list(dir: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(at("listing the state directory", dir))? {
        let path = entry
            .map_err(at("listing the state directory", dir))?
            .path();
        if let Some(number) = number(&path) {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}

fn encode(snapshot: &Snapshot) -> Result<Vec<u8>, StoreError> {
    let body = postcard::to_stdvec(snapshot)
        .map_err(io::Error::other)
        .map_err(at("encoding snapshot", Path::new("")))?;
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(crc32fast::hash(&body).to_le_bytes());
    bytes.extend(body);
    Ok(bytes)
}

/// The snapshot in a file's bytes.
pub(super) fn read(bytes: &[u8]) -> Result<Snapshot, Fault> {
    let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(Fault::Torn)?;
    if magic != MAGIC {
        return Err(Fault::Foreign);
    }
    let (version, rest) = rest.split_first_chunk::<4>().ok_or(Fault::Torn)?;
    match u32::from_le_bytes(*version) {
        VERSION => {}
        0 => return Err(Fault::Foreign),
        older if older < VERSION => return Err(Fault::Past(older)),
        newer => return Err(Fault::Future(newer)),
    }
    let (length, rest) = rest.split_first_chunk::<8>().ok_or(Fault::Torn)?;
    let (checksum, body) = rest.split_first_chunk::<4>().ok_or(Fault::Torn)?;
    if body.len() as u64 != u64::from_le_bytes(*length) {
        return Err(Fault::Torn);
    }
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return Err(Fault::Checksum);
    }
    postcard::from_bytes(body).map_err(|e| Fault::Body(e.to_string()))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Torn => f.write_str("torn: its length is not what it says"),
            Fault::Foreign => f.write_str("foreign: not a snapshot of trueline"),
            Fault::Future(v) => write!(
                f,
                "from the future: format {v}, this program reads {VERSION}; upgrade it"
            ),
            Fault::Past(v) => write!(
                f,
                "from the past: format {v}, this program reads {VERSION}; start afresh in another directory"
            ),
            Fault::Checksum => f.write_str("damaged: the checksum does not fit"),
            Fault::Body(why) => write!(f, "undecodable: {why}"),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Io {
                doing,
                path,
                source,
            } => write!(f, "{doing} {}: {source}", path.display()),
            StoreError::Refused(files) => {
                write!(f, "no usable snapshot: ")?;
                for (path, fault) in files {
                    write!(f, "{}: {fault}; ", path.display())?;
                }
                write!(f, "move them away to start afresh")
            }
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io { source, .. } => Some(source),
            StoreError::Refused(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own for each test, gone when the test is.
    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Dir {
            let name = format!("trueline-store-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&dir);
            Dir(dir)
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn numbered(n: u64) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.counters.evaluations = n;
        snapshot
    }

    #[test]
    fn the_newest_of_three_is_loaded_and_older_ones_are_dropped() {
        let dir = Dir::new("keep");
        assert_eq!(load(&dir.0).unwrap(), None);
        for n in 0..5 {
            save(&dir.0, &numbered(n)).unwrap();
        }
        assert_eq!(load(&dir.0).unwrap(), Some(numbered(4)));
        assert_eq!(fs::read_dir(&dir.0).unwrap().count(), KEEP);
    }

    #[test]
    fn torn_damaged_foreign_and_future_files_are_refused_by_name_and_the_older_one_used() {
        let whole = encode(&numbered(7)).unwrap();
        let damage = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            bytes
        };
        let mut future = whole.clone();
        future[8] = VERSION as u8 + 1;
        let last = whole.len() - 1;
        let cases = [
            (whole[..last].to_vec(), Fault::Torn),
            (whole[..10].to_vec(), Fault::Torn),
            (Vec::new(), Fault::Torn),
            (damage(0), Fault::Foreign),
            (damage(last), Fault::Checksum),
            (future, Fault::Future(VERSION + 1)),
        ];
        for (bytes, fault) in cases {
            let dir = Dir::new("faults");
            save(&dir.0, &numbered(1)).unwrap();
            let newest = save(&dir.0, &numbered(2)).unwrap();
            fs::write(&newest, &bytes).unwrap();
            let loaded = load_named(&dir.0).unwrap().unwrap();
            assert_eq!(loaded.snapshot, numbered(1), "{fault:?}");
            assert_eq!(loaded.refused, [(newest.clone(), fault)]);
            // The next snapshot goes beside the bad one, not over it.
            assert!(save(&dir.0, &numbered(3)).unwrap() > newest);
            assert_eq!(load(&dir.0).unwrap(), Some(numbered(3)));
        }
    }

    #[test]
    fn when_no_file_is_usable_the_load_fails_with_every_path() {
        let dir = Dir::new("none");
        let path = save(&dir.0, &numbered(1)).unwrap();
        fs::write(&path, b"something else entirely").unwrap();
        let message = load(&dir.0).unwrap_err().to_string();
        assert!(message.contains(&path.display().to_string()), "{message}");
        assert!(message.contains("foreign"), "{message}");
    }

    #[test]
    fn a_part_left_by_a_crash_is_not_read() {
        let dir = Dir::new("part");
        save(&dir.0, &numbered(1)).unwrap();
        fs::write(dir.0.join("snapshot-00000000000000000009.part"), b"half").unwrap();
        assert_eq!(load(&dir.0).unwrap(), Some(numbered(1)));
    }

    #[test]
    fn a_state_directory_that_cannot_be_made_is_named() {
        let dir = Dir::new("blocked");
        fs::write(&dir.0, b"a file where the directory should be").unwrap();
        let message = save(&dir.0, &numbered(1)).unwrap_err().to_string();
        assert!(message.contains("state directory"), "{message}");
        fs::remove_file(&dir.0).unwrap();
    }
}
