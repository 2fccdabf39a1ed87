//! Snapshots in the state directory, written by a worker.
//!
//! The engine's thread takes the snapshot: a copy in memory of sums and offsets at one moment. A
//! worker writes it, because an fsync may take longer than a Kafka session. At most one snapshot is
//! being written. While the disk is slow the next one is skipped and not queued, so memory is
//! bounded by two copies. Journals of pending predictions are appended before the snapshot that
//! marks them; bytes that could not be written wait for the next snapshot. Offsets are committed to
//! the broker only once their snapshot is on disk, and only for lag tools: a restart seeks to the
//! offsets of the snapshot. For the logs of posted events the worker itself stores the offsets, and
//! the logs delete what no snapshot needs. Before a write, the logs leave room for it.
//!
//! A failure is logged as an error and counted in a metric, and counting continues in memory. A
//! second worker checks whether the directory is still there: on a hanging disk this check hangs
//! too, and a write may take long.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fs::{self, Metadata};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::state_dir::{DirWatch, LOCK, StateDir};
use crate::app::Workers;
use crate::app::clock;
use crate::app::error::AppError;
use crate::app::events::{EventLogs, read_up_to};
use crate::app::worker::Background;
use crate::collect::Origin;
use crate::collect::join::JournalDelta;
use crate::monitor::Snapshot;
use crate::notify::JOURNAL as ALERT_JOURNAL;
use crate::store::file::KEEP;
use crate::store::journal::{self, Needed};
use crate::store::{self, StoreError};

/// The result of writing a snapshot, or a batch of checkpoints.
#[derive(Debug)]
pub struct Written {
    /// The offsets to commit, or why nothing was written.
    pub result: Result<Vec<Origin>, String>,
    /// How long writing took.
    pub took: Duration,
    /// When writing ended, milliseconds since 1970.
    pub at_ms: i64,
    /// Size of the newest file in the directory, and of all journals; or of the checkpoints that
    /// were written, 0 if nothing has changed since the previous ones.
    pub bytes: u64,
    /// Bytes of journals that wait in memory because they could not be written.
    pub unwritten: usize,
}

/// The worker that writes snapshots.
pub struct SnapshotStore {
    writing: Background<Written>,
    writer: Arc<Mutex<SnapshotWriter>>,
    directory: DirWatch,
    /// Checks whether the directory can still be used.
    looking: Background<Option<String>>,
}

impl SnapshotStore {
    /// Starts the workers; the lock of the directory is held until the store is dropped.
    pub fn start(
        dir: StateDir,
        logs: EventLogs,
        workers: &dyn Workers,
    ) -> Result<SnapshotStore, AppError> {
        let writer = SnapshotWriter {
            dir,
            logs,
            appended: 0,
            unwritten: Vec::new(),
            needed: VecDeque::new(),
        };
        writer.leave_room();
        let dir = &writer.dir;
        Ok(SnapshotStore {
            writing: Background::new(workers.worker("snapshots")?),
            directory: dir.watch().clone(),
            looking: Background::new(workers.worker("state directory")?),
            writer: Arc::new(Mutex::new(writer)),
        })
    }

    /// Why the directory can no longer be used, if a check since the previous call found a fault.
    /// Starts the next check.
    pub fn directory_fault(&mut self) -> Option<String> {
        let found = self.looking.result().flatten();
        if !self.looking.busy() {
            let directory = self.directory.clone();
            self.looking.start(move || directory.fault());
        }
        found
    }

    /// Whether a snapshot is being written.
    pub fn is_writing(&self) -> bool {
        self.writing.busy()
    }

    /// Hands over a snapshot with its offsets, and the journal bytes since the previous one. It is
    /// an error to call this while [`is_writing`](SnapshotStore::is_writing).
    pub fn write(&mut self, snapshot: Snapshot, positions: Vec<Origin>, deltas: Vec<JournalDelta>) {
        let writer = Arc::clone(&self.writer);
        self.writing.start(move || {
            // A write that panicked has been printed, and left what it could not write.
            let mut writer = writer.lock();
            writer.write(&snapshot, positions, deltas)
        });
    }

    /// The result of the last snapshot, once it is known.
    pub fn result(&mut self) -> Option<Written> {
        self.writing.result()
    }

    /// Waits this long for the snapshot that is being written.
    pub fn wait(&mut self, within: Duration) -> Option<Written> {
        self.writing.wait(within)
    }
}

/// The state of the worker between snapshots.
#[derive(Debug)]
struct SnapshotWriter {
    dir: StateDir,
    /// The logs of posted events.
    logs: EventLogs,
    /// Journal bytes that the last snapshot had to append.
    appended: u64,
    /// Journal bytes that could not be written; the next snapshot depends on them.
    unwritten: Vec<JournalDelta>,
    /// The journal segments that each kept snapshot needs, newest last.
    needed: VecDeque<Needed>,
}

impl SnapshotWriter {
    fn write(
        &mut self,
        snapshot: &Snapshot,
        positions: Vec<Origin>,
        deltas: Vec<JournalDelta>,
    ) -> Written {
        let started = Instant::now();
        self.unwritten.extend(deltas);
        self.appended = bytes_of(&self.unwritten) as u64;
        let result = self.try_write(snapshot);
        if result.is_ok() {
            // Only now, because until the snapshot is on disk a start needs the events.
            self.consume(snapshot);
        }
        Written {
            result: result.map(|()| positions),
            took: started.elapsed(),
            at_ms: clock::now_ms(),
            bytes: newest_bytes(self.dir.path()) + journal::bytes(self.dir.path()),
            unwritten: bytes_of(&self.unwritten),
        }
    }

    /// Makes the logs of posted events leave room for the next snapshot, because a new copy of any
    /// file may be written beside the old one.
    fn leave_room(&self) {
        let largest = files(self.dir.path()).map(|(_, bytes)| bytes).max();
        for log in self.logs.values() {
            if let Err(error) = log.leave_room(largest.unwrap_or(0) + self.appended) {
                crate::warn_limited!(%error, "the event log keeps what it could delete");
            }
        }
    }

    /// Passes to the logs of posted events the offsets up to which this snapshot has their events.
    fn consume(&self, snapshot: &Snapshot) {
        for (log, offset) in read_up_to(&self.logs, &snapshot.topics, &snapshot.partitions) {
            if let Err(error) = log.consume(offset) {
                crate::warn_limited!(%error, "the event log keeps what it could delete");
            }
        }
    }

    fn try_write(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        if let Some(why) = self.dir.watch().fault() {
            return Err(why);
        }
        self.leave_room();
        self.try_store(snapshot).map_err(|error| error.to_string())
    }

    fn try_store(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        journal::append(self.dir.path(), &self.unwritten)?;
        self.unwritten.clear();
        store::save(self.dir.path(), snapshot)?;
        self.needed.push_back(journal::needed(&snapshot.joins));
        // Snapshots from before the start may need older segments.
        if self.needed.len() > KEEP {
            self.needed.pop_front();
        }
        if self.needed.len() == KEEP {
            journal::prune(self.dir.path(), self.needed.iter());
        }
        Ok(())
    }
}

/// Size of the newest file; 0 without one.
fn newest_bytes(dir: &Path) -> u64 {
    files(dir).max().map_or(0, |(_, bytes)| bytes)
}

/// For each file of a directory, except the lock and the journal of notifications: when it was
/// written, and its size.
fn files(dir: &Path) -> impl Iterator<Item = (SystemTime, u64)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let named = entries.filter(|e| e.file_name() != LOCK && e.file_name() != ALERT_JOURNAL);
    let files = named.filter_map(|e| e.metadata().ok().filter(Metadata::is_file));
    files.filter_map(|file| Some((file.modified().ok()?, file.len())))
}

fn bytes_of(deltas: &[JournalDelta]) -> usize {
    deltas.iter().map(|d| d.bytes.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::worker::{Job, Worker};
    use tempfile::TempDir;

    /// Workers on a disk that hangs: they do no job until the test runs it.
    #[derive(Clone, Default)]
    struct Hung(Arc<Mutex<Vec<Job>>>);

    impl std::fmt::Debug for Hung {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Hung")
        }
    }

    impl Workers for Hung {
        fn worker(&self, _: &str) -> Result<Box<dyn Worker>, AppError> {
            Ok(Box::new(self.clone()))
        }
    }

    impl Worker for Hung {
        fn start(&mut self, job: Job) -> bool {
            self.0.lock().push(job);
            true
        }

        fn ends_within(&mut self, _: Duration) -> bool {
            false
        }
    }

    #[test]
    fn the_caller_does_not_wait_for_a_disk_that_hangs_to_say_whether_the_directory_is_there() {
        let folder = TempDir::with_prefix("trueline-hung-").expect("a folder");
        let dir = StateDir::open(&folder.path().join("state")).expect("a directory");
        let path = dir.path().to_owned();
        let workers = Hung::default();
        let mut store = SnapshotStore::start(dir, EventLogs::new(), &workers).expect("it starts");
        let done = || {
            let jobs = std::mem::take(&mut *workers.0.lock());
            jobs.into_iter().map(|job| job()).count()
        };
        assert_eq!((store.directory_fault(), done()), (None, 1));
        fs::remove_dir_all(&path).expect("it is there");
        for _ in 0..3 {
            assert_eq!(store.directory_fault(), None);
        }
        // Only one of three calls has started a check, because none has ended.
        assert_eq!(done(), 1);
        let why = store.directory_fault().expect("it is gone");
        assert!(why.contains("was deleted"), "{why}");
    }
}
