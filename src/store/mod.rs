//! Floor 3: state on disk. [`snapshot`] says what is stored, [`file`](mod@file) how it survives a crash,
//! [`journal`] what pending predictions add to it; [`mod@inspect`] looks into a directory, [`transfer`] carries
//! its state elsewhere, and a [`parcel`] that of one partition from process to process, with
//! what was [`laid`] out of it since the one before where another process judges; [`shelves`] looks into a topic of them. What memory has no
//! room for goes to [`mod@spill`], which is no state.

pub mod file;
pub mod inspect;
pub mod journal;
pub mod laid;
pub mod parcel;
pub mod shelves;
pub mod snapshot;
pub mod spill;
pub mod transfer;

pub use file::{Fault, Loaded, StoreError, load, load_checked, load_named, save};
pub use snapshot::Snapshot;
