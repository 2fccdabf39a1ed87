//! The state directory: one process at a time, snapshots written beside the pipe.
//!
//! The engine's thread takes the snapshot (a copy in memory, at one moment, sums and offsets together);
//! another thread writes it, since an fsync may take longer than a Kafka session does. At most one is
//! being written: while the disk is slow, the next interval's is skipped, not queued, so that memory is
//! bounded by two copies. Journals of pending predictions are appended to before the snapshot that marks
//! them; what could not be written waits for the next. Only after a snapshot is on disk are its offsets committed to the broker, as a
//! courtesy to lag tools; restarts seek to the snapshot, never to the commit.
//!
//! A failure at the start (the directory cannot be made, written or locked) is a fault with a message;
//! a failure later is an error line and a metric, and everything goes on in memory.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::clock;
use super::fault::Fault;
use crate::collect::Origin;
use crate::collect::join::{JoinState, JournalDelta, JournalError, JournalMark};
use crate::notify::JOURNAL as ALERT_JOURNAL;
use crate::store::file::KEEP;
use crate::store::journal::{self, Needed};
use crate::store::{self, Loaded, Snapshot, StoreError};

/// Name of the file whose lock says that a process lives in the directory.
const LOCK: &str = "lock";

/// A directory that is ours until this is dropped.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    _lock: File,
}

impl StateDir {
    /// Makes the directory if it is missing, proves that it can be written, and locks it.
    pub fn open(path: &Path) -> Result<StateDir, Fault> {
        let shown = path.display();
        let cannot = |doing: &str, error: std::io::Error| {
            Fault::Unavailable(format!(
                "cannot {doing} the state directory {shown}: {error}; make it writable for this user or set \
                 [state] directory to one that is"
            ))
        };
        fs::create_dir_all(path).map_err(|error| cannot("create", error))?;
        let probe = path.join("probe");
        fs::write(&probe, b"probe").map_err(|error| cannot("write to", error))?;
        fs::remove_file(&probe).map_err(|error| cannot("remove files from", error))?;
        let lock = File::create(path.join(LOCK)).map_err(|error| cannot("write to", error))?;
        match lock.try_lock() {
            Ok(()) => Ok(StateDir {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(Fault::Unavailable(format!(
                "the state directory {shown} is in use by another running trueline; give each process its own"
            ))),
            Err(TryLockError::Error(error)) => Err(cannot("lock", error)),
        }
    }

    /// The newest snapshot that can be read, with the newer files that cannot; its journals are checked, and
    /// read by [`StateDir::segment`].
    pub fn load(&self) -> Result<Option<Loaded>, Fault> {
        store::load_checked(&self.path).map_err(|error| Fault::Unavailable(error.to_string()))
    }
}

impl StateDir {
    /// One segment of a snapshot's journals.
    pub fn segment(&self, state: &JoinState, mark: &JournalMark) -> Result<Vec<u8>, JournalError> {
        // It was checked a moment ago.
        journal::segment(&self.path, state, mark).map_err(|_| JournalError::Torn)
    }
}

/// Whether a process lives in the directory; asked without disturbing it.
pub fn in_use(path: &Path) -> bool {
    let lock = File::open(path.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// What became of a snapshot.
#[derive(Debug)]
pub struct Written {
    /// Offsets in the snapshot, to be committed; or why it was not written.
    pub result: Result<Vec<Origin>, String>,
    /// How long writing took.
    pub took: Duration,
    /// When it was complete, milliseconds since 1970.
    pub at_ms: i64,
    /// Size of the newest file in the directory, and of all journals.
    pub bytes: u64,
    /// Bytes of journals that could not be written and wait in memory.
    pub unwritten: usize,
}

/// A snapshot, the offsets in it, and what the join journals have since the one before, on the way to
/// the disk.
type Letter = (Snapshot, Vec<Origin>, Vec<JournalDelta>);

/// The thread that writes.
#[derive(Debug)]
pub struct Keeper {
    letters: Option<SyncSender<Letter>>,
    answers: Receiver<Written>,
    thread: Option<JoinHandle<()>>,
    /// Whether a snapshot is on its way.
    busy: bool,
}

impl Keeper {
    /// Starts the thread; it keeps the directory's lock until it ends.
    pub fn start(dir: StateDir) -> Result<Keeper, Fault> {
        let (letters, inbox) = sync_channel::<Letter>(1);
        let (outbox, answers) = sync_channel::<Written>(2);
        let thread = thread::Builder::new()
            .name("snapshots".to_owned())
            .spawn(move || {
                let mut desk = Desk::new(dir);
                for (snapshot, positions, deltas) in inbox {
                    if outbox
                        .send(desk.write(&snapshot, positions, deltas))
                        .is_err()
                    {
                        return;
                    }
                }
            })
            .map_err(|error| Fault::Unavailable(format!("cannot start a thread: {error}")))?;
        Ok(Keeper {
            letters: Some(letters),
            answers,
            thread: Some(thread),
            busy: false,
        })
    }

    /// Whether one is being written.
    pub fn busy(&self) -> bool {
        self.busy
    }

    /// Hands over a snapshot. It is an error to do so while [`busy`](Keeper::busy).
    pub fn write(&mut self, snapshot: Snapshot, positions: Vec<Origin>, deltas: Vec<JournalDelta>) {
        if let Some(letters) = &self.letters {
            self.busy = letters.try_send((snapshot, positions, deltas)).is_ok();
        }
    }

    /// What became of the last one, once, if it is known.
    pub fn answer(&mut self) -> Option<Written> {
        match self.answers.try_recv() {
            Ok(written) => {
                self.busy = false;
                Some(written)
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }

    /// Waits for the one under way.
    pub fn wait(&mut self) -> Option<Written> {
        if !self.busy {
            return None;
        }
        self.busy = false;
        self.answers.recv().ok()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.letters = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed already.
            let _ = thread.join();
        }
    }
}

/// What the writing thread keeps from one snapshot to the next.
#[derive(Debug)]
struct Desk {
    dir: StateDir,
    /// Journal deltas that are not on disk, since writing failed: the next snapshot builds on them.
    unwritten: Vec<JournalDelta>,
    /// What the kept snapshots need of the journals, newest last.
    needed: VecDeque<Needed>,
}

impl Desk {
    fn new(dir: StateDir) -> Desk {
        Desk {
            dir,
            unwritten: Vec::new(),
            needed: VecDeque::new(),
        }
    }

    fn write(
        &mut self,
        snapshot: &Snapshot,
        positions: Vec<Origin>,
        deltas: Vec<JournalDelta>,
    ) -> Written {
        let started = Instant::now();
        self.unwritten.extend(deltas);
        let result = self.try_write(snapshot);
        Written {
            result: match result {
                Ok(()) => Ok(positions),
                Err(error) => Err(error.to_string()),
            },
            took: started.elapsed(),
            at_ms: clock::now_ms(),
            bytes: newest_bytes(&self.dir.path) + journal::bytes(&self.dir.path),
            unwritten: self.unwritten.iter().map(|d| d.bytes.len()).sum(),
        }
    }

    fn try_write(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        journal::append(&self.dir.path, &self.unwritten)?;
        self.unwritten.clear();
        store::save(&self.dir.path, snapshot)?;
        self.needed.push_back(journal::needed(&snapshot.joins));
        // Snapshots that were there before the start may need more than ours.
        if self.needed.len() > KEEP {
            self.needed.pop_front();
        }
        if self.needed.len() == KEEP {
            journal::prune(&self.dir.path, self.needed.iter());
        }
        Ok(())
    }
}

/// Size of the newest file that is neither lock nor alerts journal; 0 when there is none.
fn newest_bytes(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name() != LOCK && entry.file_name() != ALERT_JOURNAL)
        .filter_map(|entry| entry.metadata().ok())
        .filter(|meta| meta.is_file())
        .filter_map(|meta| Some((meta.modified().ok()?, meta.len())))
        .max()
        .map_or(0, |(_, bytes)| bytes)
}
