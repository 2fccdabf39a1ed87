//! Floor 3: state on disk. [`snapshot`] says what is stored, [`file`](mod@file) how it survives a crash,
//! [`journal`] what pending predictions add to it.

pub mod file;
pub mod journal;
pub mod snapshot;

pub use file::{Fault, Loaded, StoreError, load, load_named, save};
pub use snapshot::Snapshot;
