//! The key-value store that pending predictions spill to.
//!
//! The core does no IO, so it only declares what it needs; `store::spill` implements it. The store
//! extends memory and does nothing else: it starts empty with the process and is filled again while
//! journals are replayed. It need not survive a crash, and nothing waits for its disk to sync.

use std::fmt;

/// Why a table failed, and what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpillError(pub String);

/// Names with their values, or with `None` for a name to delete; ascending, each name once.
pub type SpillEntries<'a> = dyn Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + 'a;

/// The table of one joiner; dropping it deletes its content.
pub trait SpillTable: fmt::Debug + Send {
    /// Writes and deletes entries; a new value replaces the old one.
    fn write(&mut self, entries: &mut SpillEntries<'_>) -> Result<(), SpillError>;

    /// Reads the value of a name into `value`; returns whether there is one.
    fn read(&mut self, name: &[u8], value: &mut Vec<u8>) -> Result<bool, SpillError>;
}

/// Opens tables.
pub trait SpillBackend: fmt::Debug + Send + Sync {
    /// Opens an empty table.
    fn open(&self) -> Result<Box<dyn SpillTable>, SpillError>;
}
