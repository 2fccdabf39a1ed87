//! The state directory, used by one process at a time.
//!
//! Two locks keep a second process out. The file `lock` is locked on any system. A deleted file
//! cannot keep a process out, so on Linux the process also holds a kernel name that only one
//! process can hold at a time. The name is made of the directory's name and its parent. It works
//! even if the directory is deleted, and ends with the process.
//!
//! A directory that is deleted or replaced under a running process is not written again: its
//! snapshots and journals belong together, and half of them are gone. [`DirWatch`] notices it.
//!
//! A failure at the start (the directory cannot be created, written or locked) ends the program
//! with a message.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::app::error::AppError;
use crate::collect::join::{JoinState, JournalError, JournalMark};
use crate::files;
use crate::store::inspect::{FileRole, inspect};
use crate::store::journal;
use crate::store::{self, FormatError, Loaded};

/// Name of the file whose lock shows that a process uses the directory.
pub(super) const LOCK: &str = "lock";

/// A locked state directory. Dropping it releases the lock.
#[derive(Debug)]
pub struct StateDir {
    watch: DirWatch,
    _lock: File,
    _name: Option<NameLock>,
}

impl StateDir {
    /// Creates the directory if it is missing, checks that it is writable, and locks it.
    pub fn open(path: &Path) -> Result<StateDir, AppError> {
        let shown = path.display();
        let cannot = |doing: &str, error: std::io::Error| {
            let remedy = remedy(error.kind());
            AppError::Unavailable(format!(
                "cannot {doing} the state directory {shown}: {error}; {remedy}"
            ))
        };
        create(path).map_err(|error| cannot("create", error))?;
        let lock = File::create(path.join(LOCK)).map_err(|error| cannot("write to", error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use_by_another(path, "")),
            Err(TryLockError::Error(error)) => return Err(cannot("lock", error)),
        }
        let name = match NameLock::take(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                let hint = format!("; if none runs, another program has taken its {error}");
                return Err(in_use_by_another(path, &hint));
            }
            // If the system grants no such names, the lock file alone must suffice.
            name => name.ok(),
        };
        files::remove_all(path);
        let probe = path.join("probe");
        fs::write(&probe, b"probe").map_err(|error| cannot("write to", error))?;
        fs::remove_file(&probe).map_err(|error| cannot("remove files from", error))?;
        let held = lock.metadata().map_err(|error| cannot("lock", error))?;
        Ok(StateDir {
            watch: DirWatch {
                path: path.to_owned(),
                held: identity(&held),
            },
            _lock: lock,
            _name: name,
        })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.watch.path
    }

    /// Shows whether the directory is still there.
    pub fn watch(&self) -> &DirWatch {
        &self.watch
    }

    /// The newest usable snapshot, and newer files that are not usable. Its journals are only
    /// checked; [`StateDir::segment`] reads them.
    pub fn load(&self) -> Result<Option<Loaded>, AppError> {
        self.load_other(Vec::new())
    }

    /// Like [`StateDir::load`], without the files that the caller has refused.
    pub fn load_other(
        &self,
        refused: Vec<(PathBuf, FormatError)>,
    ) -> Result<Option<Loaded>, AppError> {
        store::load_other(self.path(), refused)
            .map_err(|error| AppError::Unavailable(error.to_string()))
    }

    /// Moves snapshots and pending predictions to a new folder of the directory, named after `now`,
    /// so that a start begins without them. Silences, acknowledgements, what people were notified
    /// of, and the records of alerts stay. Returns the folder; `None` if there was nothing.
    pub fn set_aside(&self, now: &str) -> Result<Option<PathBuf>, AppError> {
        let shown = self.path().display();
        let failed = |error: &dyn std::fmt::Display| {
            AppError::Unavailable(format!("cannot set the state in {shown} aside: {error}"))
        };
        let found = inspect(self.path()).map_err(|error| failed(&error))?;
        let state = [
            FileRole::Snapshot,
            FileRole::Refused,
            FileRole::Journal,
            FileRole::Part,
        ];
        let files = found.files.iter().filter(|f| state.contains(&f.role));
        let files: Vec<&Path> = files.map(|f| f.path.as_path()).collect();
        if files.is_empty() {
            return Ok(None);
        }
        let name = format!("set-aside-{now}");
        let (mut folder, mut nth) = (self.path().join(&name), 1);
        while folder.exists() {
            // A folder of the same second stays as it is.
            nth += 1;
            folder = self.path().join(format!("{name}-{nth}"));
        }
        for file in files {
            let to = folder.join(file.strip_prefix(self.path()).unwrap_or(file));
            let parent = to.parent().unwrap_or(&folder);
            fs::create_dir_all(parent).map_err(|error| failed(&error))?;
            fs::rename(file, &to).map_err(|error| failed(&error))?;
        }
        files::sync_folder(&folder).map_err(|error| failed(&error))?;
        Ok(Some(folder))
    }

    /// One segment of a snapshot's journals.
    pub fn segment(&self, state: &JoinState, mark: &JournalMark) -> Result<Vec<u8>, JournalError> {
        // The load has checked it.
        journal::segment(self.path(), state, mark).map_err(|_| JournalError::Torn)
    }
}

/// Creates a directory for this user alone, because events, ids and names of models will be in it.
/// An existing directory keeps its mode, which its creator (systemd, a volume) chose. Missing
/// parents are ordinary directories, which others may need too.
fn create(path: &Path) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// The remedy if the directory cannot be created or written.
fn remedy(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free space there, or set [state] directory to a disk with room"
        }
        ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f, LimitFSIZE=)",
        _ => "make it writable for this user or set [state] directory to one that is",
    }
}

/// Whether a process uses the directory. Does not disturb that process.
pub fn in_use(path: &Path) -> bool {
    let lock = File::open(path.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn in_use_by_another(path: &Path, hint: &str) -> AppError {
    let shown = path.display();
    AppError::Unavailable(format!(
        "the state directory {shown} is in use by another running trueline; stop that one, or give each process its own{hint}"
    ))
}

/// A directory and the lock file that was taken in it.
#[derive(Debug, Clone)]
pub struct DirWatch {
    path: PathBuf,
    held: (u64, u64),
}

impl DirWatch {
    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why the directory can no longer be used, if it cannot.
    pub fn fault(&self) -> Option<String> {
        let lost = match fs::metadata(self.path.join(LOCK)) {
            Ok(file) => identity(&file) != self.held,
            // A network volume that does not answer now may answer later; otherwise writes report
            // it.
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        lost.then(|| {
            format!(
                "the state directory {} was deleted or replaced under this process; what was read since is in memory \
                 only, and nothing is written or committed any more: restart with the directory as it was, or set \
                 on_missing_state to begin without it",
                self.path.display()
            )
        })
    }
}

/// Device and number of a file.
#[cfg(unix)]
fn identity(file: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino())
}

/// Without file numbers, only the absence of the file is noticed.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// A name that the kernel gives to one process at a time.
#[derive(Debug)]
struct NameLock {
    #[cfg(target_os = "linux")]
    _socket: std::os::unix::net::UnixDatagram,
}

impl NameLock {
    /// The name holds device and inode of the parent directory, because containers have different
    /// directories under the same path. Any user can take a name, so errors show it.
    #[cfg(target_os = "linux")]
    fn take(path: &Path) -> std::io::Result<NameLock> {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixDatagram};
        let path = fs::canonicalize(path)?;
        let (device, number) = identity(&fs::metadata(path.parent().unwrap_or(&path))?);
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let name = crc32fast::hash(name);
        let name = format!("trueline-state/{device}/{number}/{name:08x}");
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?);
        let named = |error: std::io::Error| {
            let what = format!("socket @{name}, see /proc/net/unix");
            std::io::Error::new(error.kind(), what)
        };
        Ok(NameLock {
            _socket: socket.map_err(named)?,
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn take(_: &Path) -> std::io::Result<NameLock> {
        Ok(NameLock {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_directory_that_is_deleted_is_noticed_and_lets_no_second_process_in() {
        let folder = TempDir::with_prefix("trueline-deleted-").expect("a folder");
        let path = folder.path().join("state");
        let held = StateDir::open(&path).expect("a new directory");
        assert_eq!(held.watch().fault(), None);
        let second = || StateDir::open(&path).map(drop);
        assert!(second().is_err_and(|e| e.to_string().contains("in use by another")));
        fs::remove_dir_all(&path).expect("it is there");
        assert!(
            held.watch()
                .fault()
                .is_some_and(|why| why.contains("was deleted"))
        );
        #[cfg(target_os = "linux")]
        {
            let why = second().expect_err("its name is taken").to_string();
            assert!(why.contains("in use by another"), "{why}");
            assert!(why.contains("socket @trueline-state/"), "{why}");
        }
        // A directory that a second process has created is not ours either.
        assert!(held.watch().fault().is_some());
        drop(held);
        second().expect("nobody uses it");
    }

    #[test]
    fn a_full_disk_is_not_called_a_matter_of_rights() {
        assert!(remedy(ErrorKind::StorageFull).starts_with("free space"));
        assert!(remedy(ErrorKind::FileTooLarge).contains("ulimit -f"));
        assert!(remedy(ErrorKind::PermissionDenied).starts_with("make it writable"));
    }

    #[cfg(unix)]
    #[test]
    fn a_new_directory_is_for_its_user_alone_and_another_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = TempDir::with_prefix("trueline-mode-").expect("a folder");
        let mode_of = |path: &Path| {
            let metadata = fs::metadata(path).expect("it is there");
            metadata.permissions().mode() & 0o777
        };
        let (parent, ordinary) = (folder.path().join("parent"), folder.path().join("other"));
        fs::create_dir(&ordinary).expect("created");
        let path = parent.join("state");
        let mode = || {
            let held = StateDir::open(&path).expect("a directory");
            mode_of(held.path())
        };
        assert_eq!(mode(), 0o700);
        assert_eq!(mode_of(&parent), mode_of(&ordinary));
        let shared = fs::Permissions::from_mode(0o750);
        fs::set_permissions(&path, shared).expect("changed");
        assert_eq!(mode(), 0o750);
    }

    #[test]
    fn states_that_are_set_aside_in_one_second_keep_folders_of_their_own() {
        let folder = TempDir::with_prefix("trueline-aside-").expect("a folder");
        let held = StateDir::open(folder.path()).expect("a new directory");
        let snapshot = || folder.path().join("snapshot-00000000000000000001.trueline");
        let aside = |text: &str| {
            fs::write(snapshot(), text).expect("written");
            let folder = held.set_aside("now").expect("set aside").expect("a state");
            folder.join(snapshot().file_name().expect("a name"))
        };
        let (first, second) = (aside("first"), aside("second"));
        assert_eq!(fs::read_to_string(first).expect("kept"), "first");
        assert_eq!(fs::read_to_string(second).expect("kept"), "second");
    }
}
