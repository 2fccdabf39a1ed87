//! Floor 3: state on disk and in topics.
//!
//! [`file`](mod@file) says how a snapshot survives a crash, [`journal`] what pending predictions add to it;
//! [`mod@inspect`] looks into a directory, and [`transfer`] carries its state elsewhere. A [`parcel`] carries
//! the state of one partition from process to process; [`shelves`] looks into a topic of them. What memory
//! has no room for goes to [`mod@spill`], which is no state.

pub mod file;
pub mod inspect;
pub mod journal;
pub mod parcel;
pub mod shelves;
pub mod spill;
pub mod transfer;

pub use file::{Fault, Loaded, StoreError, load, load_checked, load_named, save};
