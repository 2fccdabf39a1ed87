//! Pending predictions that memory has no room for, in an embedded store beside the snapshots.
//!
//! The store is fjall 3, a log-structured merge tree in Rust, chosen by measurement among those that are kept
//! up: redb took five times as long to fill and twice as long in use, and rocksdb, as fast, needs libclang and
//! half an hour to build. It is used for what it does best: sorted batches that go straight into tables (no
//! write-ahead log, no second sort), and look-ups that a bloom filter answers when there is nothing.
//!
//! The folder is overflow of memory: removed and made anew whenever the process starts, so what a crash
//! leaves in it is of no consequence. It is made when something spills for the first time; until then there
//! is no folder, no thread and no file. Each joiner has a keyspace of its own, which goes with the joiner.
//!
//! A failure (disk full, a file that cannot be read) is told with the folder and what to do, and it lasts: a
//! store that failed once is not asked again, for what it would say could be old.

use crate::collect::join::{SpillBackend, SpillEntries, SpillError, SpillTable};
use fjall::config::{BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the folder in the state directory.
pub const FOLDER: &str = "spill";
/// Memory for blocks, indexes and filters that were read.
pub const CACHE_BYTES: u64 = 32 << 20;
/// Most bytes that wait in memory for a table.
const MEMTABLE_BYTES: u64 = 1 << 20;
/// Threads that merge tables.
const WORKERS: usize = 1;

/// See the module.
#[derive(Debug)]
pub struct SpillStore {
    folder: PathBuf,
    database: Mutex<Option<Arc<Held>>>,
    /// Number of the next keyspace.
    next: AtomicU64,
}

/// The open database; its folder goes with it.
struct Held {
    database: Database,
    folder: PathBuf,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "database in {}", self.folder.display())
    }
}

/// What one joiner has there.
#[derive(Debug)]
struct Corner {
    held: Arc<Held>,
    /// `None` once it is given up.
    keyspace: Option<Rows>,
}

struct Rows(Keyspace);

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "keyspace {}", self.0.id())
    }
}

impl SpillStore {
    /// A store in the state directory, empty: what an earlier process left is removed.
    pub fn new(directory: &Path) -> Result<SpillStore, SpillError> {
        let folder = directory.join(FOLDER);
        match fs::remove_dir_all(&folder) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let shown = folder.display();
                return Err(SpillError(format!(
                    "cannot remove {shown}, which an earlier process left: {error}; remove it or give its files \
                     to this user"
                )));
            }
        }
        Ok(SpillStore {
            folder,
            database: Mutex::new(None),
            next: AtomicU64::new(0),
        })
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        let held = self.database.lock();
        let held = held.unwrap_or_else(PoisonError::into_inner);
        let bytes = held.as_ref().map(|h| h.database.disk_space());
        bytes.and_then(Result::ok).unwrap_or(0)
    }

    fn held(&self) -> Result<Arc<Held>, SpillError> {
        let held = self.database.lock();
        let mut held = held.unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = &*held {
            return Ok(Arc::clone(held));
        }
        let database = Database::builder(&self.folder)
            .cache_size(CACHE_BYTES)
            .manual_journal_persist(true)
            .worker_threads(WORKERS)
            .open();
        let made = Arc::new(Held {
            database: database.map_err(|error| failed(&self.folder, "opened", &error))?,
            folder: self.folder.clone(),
        });
        *held = Some(Arc::clone(&made));
        Ok(made)
    }
}

impl SpillBackend for SpillStore {
    fn open(&self) -> Result<Box<dyn SpillTable>, SpillError> {
        let held = self.held()?;
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(MEMTABLE_BYTES)
                .manual_journal_persist(true)
                .filter_policy(FilterPolicy::all(bloom))
        };
        let keyspace = held.database.keyspace(&name, options);
        let keyspace = keyspace.map_err(|error| failed(&held.folder, "extended", &error))?;
        Ok(Box::new(Corner {
            held,
            keyspace: Some(Rows(keyspace)),
        }))
    }
}

impl SpillTable for Corner {
    fn write(&mut self, entries: &mut SpillEntries<'_>) -> Result<(), SpillError> {
        let Some(Rows(keyspace)) = &self.keyspace else {
            return Ok(());
        };
        let write = || {
            // A worker that failed says so here, and nowhere else.
            self.held.database.persist(PersistMode::Buffer)?;
            let mut tables = keyspace.start_ingestion()?;
            for (name, value) in entries {
                match value {
                    Some(value) => tables.write(name, value)?,
                    None => tables.write_tombstone(name)?,
                }
            }
            tables.finish()
        };
        let result: fjall::Result<()> = write();
        result.map_err(|error| failed(&self.held.folder, "written", &error))
    }

    fn read(&mut self, name: &[u8], value: &mut Vec<u8>) -> Result<bool, SpillError> {
        let Some(Rows(keyspace)) = &self.keyspace else {
            return Ok(false);
        };
        let found = keyspace.get(name);
        let found = found.map_err(|error| failed(&self.held.folder, "read", &error))?;
        value.clear();
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }
}

impl Drop for Corner {
    fn drop(&mut self) {
        if let Some(Rows(keyspace)) = self.keyspace.take() {
            // What stays is in nobody's way, and goes at the next start.
            let _ = self.held.database.delete_keyspace(keyspace);
        }
    }
}

fn failed(folder: &Path, doing: &str, error: &fjall::Error) -> SpillError {
    let shown = folder.display();
    SpillError(format!(
        "the store of pending predictions that memory has no room for, {shown}, cannot be {doing}: {error}; free \
         space on its disk or mend it, or raise pending_memory so that less spills, and start again: nothing is \
         lost, for snapshots and journals do not depend on it"
    ))
}
