//! Floor 3: snapshots on disk.

pub mod snapshot;

pub use snapshot::{Snapshot, StoreError, load, save};
