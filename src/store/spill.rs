//! Pending predictions that exceed memory, in an embedded store beside the snapshots.
//!
//! The store is fjall 3, a log-structured merge tree in Rust. It was chosen by measurement: redb
//! took five times as long to fill and twice as long in use; rocksdb is as fast but needs libclang
//! and half an hour to build. fjall is used for its strengths: sorted batches that become tables
//! directly (without a write-ahead log or a second sort), and look-ups that a bloom filter answers
//! when the key is absent.
//!
//! The folder extends memory. It is removed and recreated at every start, so what a crash leaves in
//! it is irrelevant. It is created when the first prediction spills; before that there is no
//! folder, thread or file. Each joiner has its own keyspace, which is deleted with the joiner.
//!
//! An error (disk full, a file that cannot be read) names the folder and the remedy, and it is
//! permanent: a store that failed once is not used again, because its answers could be stale.

use crate::collect::join::{SpillBackend, SpillEntries, SpillError, SpillTable};
use fjall::config::{BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, fs};

/// Name of its folder in the state directory.
pub const FOLDER: &str = "spill";
/// Memory for cached blocks, indexes and filters.
pub const CACHE_BYTES: u64 = 32 << 20;
/// Maximum bytes in memory before they are written to a table.
const MEMTABLE_BYTES: u64 = 1 << 20;
/// Threads that merge tables.
const WORKERS: usize = 1;

/// The store of one process.
pub struct SpillStore {
    folder: PathBuf,
    database: Mutex<Option<Database>>,
    /// Number of the next keyspace.
    next: AtomicU64,
}

/// The keyspace of one joiner.
struct JoinerSpill {
    keyspace: Keyspace,
    database: Database,
    folder: PathBuf,
}

impl fmt::Debug for SpillStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spill store in {}", self.folder.display())
    }
}

impl fmt::Debug for JoinerSpill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "keyspace {} in {}",
            self.keyspace.id(),
            self.folder.display()
        )
    }
}

impl SpillStore {
    /// Makes an empty store in the state directory. Removes the files of an earlier process.
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
        let open = self.database.lock();
        let bytes = open.as_ref().map(|database| database.disk_space());
        bytes.and_then(Result::ok).unwrap_or(0)
    }

    fn open_database(&self) -> Result<Database, SpillError> {
        let mut open = self.database.lock();
        if let Some(open) = &*open {
            return Ok(open.clone());
        }
        let database = Database::builder(&self.folder)
            .cache_size(CACHE_BYTES)
            .manual_journal_persist(true)
            .worker_threads(WORKERS)
            .open();
        let made = database.map_err(|error| failed(&self.folder, "opened", &error))?;
        Ok(open.insert(made).clone())
    }
}

impl SpillBackend for SpillStore {
    fn open(&self) -> Result<Box<dyn SpillTable>, SpillError> {
        let database = self.open_database()?;
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(MEMTABLE_BYTES)
                .manual_journal_persist(true)
                .filter_policy(FilterPolicy::all(bloom))
        };
        let keyspace = database.keyspace(&name, options);
        Ok(Box::new(JoinerSpill {
            keyspace: keyspace.map_err(|error| failed(&self.folder, "extended", &error))?,
            database,
            folder: self.folder.clone(),
        }))
    }
}

impl SpillTable for JoinerSpill {
    fn write(&mut self, entries: &mut SpillEntries<'_>) -> Result<(), SpillError> {
        let write = || {
            // The error of a failed worker thread surfaces only here.
            self.database.persist(PersistMode::Buffer)?;
            let mut tables = self.keyspace.start_ingestion()?;
            for (name, value) in entries {
                match value {
                    Some(value) => tables.write(name, value)?,
                    None => tables.write_tombstone(name)?,
                }
            }
            tables.finish()
        };
        let result: fjall::Result<()> = write();
        result.map_err(|error| failed(&self.folder, "written", &error))
    }

    fn read(&mut self, name: &[u8], value: &mut Vec<u8>) -> Result<bool, SpillError> {
        let found = self.keyspace.get(name);
        let found = found.map_err(|error| failed(&self.folder, "read", &error))?;
        value.clear();
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }
}

impl Drop for JoinerSpill {
    fn drop(&mut self) {
        // Files that remain are removed at the next start.
        let _ = self.database.delete_keyspace(self.keyspace.clone());
    }
}

fn failed(folder: &Path, doing: &str, error: &fjall::Error) -> SpillError {
    let shown = folder.display();
    SpillError(format!(
        "the store of pending predictions that memory has no room for, {shown}, cannot be {doing}: {error}; free \
         space on its disk or repair it, or raise pending_memory so that less spills, and start again: nothing is \
         lost, for snapshots and journals do not depend on it"
    ))
}
