//! Floor 3: state on disk. [`snapshot`] says what is stored, [`file`](mod@file) how it survives a crash.

pub mod file;
pub mod snapshot;

pub use file::{Fault, Loaded, StoreError, load, load_named, save};
pub use snapshot::Snapshot;
