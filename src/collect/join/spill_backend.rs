//! Where pending predictions go that memory has no room for: a store of names and values, handed in.
//!
//! The core does no IO, so it says here what it needs of a store, and the floor of stores has one
//! (`store::spill`). The store is overflow of memory and nothing else: it begins empty with the process and is
//! filled again while journals are replayed, so it need not outlive a crash, and nothing waits for its disk to
//! sync.

use std::fmt;

/// Why a store failed, with what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillError(pub String);

impl fmt::Display for SpillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpillError {}

/// Names with their values, or with none where the name is to go; ascending, no name twice.
pub type SpillEntries<'a> = dyn Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + 'a;

/// The store of one joiner; what it holds goes when it is dropped.
pub trait SpillTable: fmt::Debug + Send {
    /// Takes in entries; what a name had before is gone.
    fn write(&mut self, entries: &mut SpillEntries<'_>) -> Result<(), SpillError>;

    /// Puts the value of a name into `value`; answers whether there is one.
    fn read(&mut self, name: &[u8], value: &mut Vec<u8>) -> Result<bool, SpillError>;
}

/// Where stores come from.
pub trait SpillBackend: fmt::Debug + Send + Sync {
    /// An empty store.
    fn open(&self) -> Result<Box<dyn SpillTable>, SpillError>;
}
