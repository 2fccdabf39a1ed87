//! Layer 3: stored state.
//!
//! * On disk: [`file`](mod@file) writes a [`Snapshot`](crate::monitor::Snapshot) so that it
//!   survives a crash, and [`journal`] adds the pending predictions. [`mod@inspect`] lists a state
//!   directory, and [`transfer`] exports and imports it.
//! * In the state topic: [`checkpoint`] is the state of one partition and its format, [`reader`]
//!   finds the newest one, and [`topic_report`] inspects a whole topic. With a separate judge a
//!   checkpoint also carries the deltas since the previous one.
//! * [`event_log`] stores posted events, for use without Kafka.
//! * [`history`] holds past values of windows. It is derived, and no verdict depends on it.
//! * [`mod@spill`] holds pending predictions that exceed memory. It is scratch space, not state.
//!
//! [`mod@format`] has the version of the format and the errors.

pub mod checkpoint;
pub mod event_log;
pub mod file;
pub mod format;
pub mod history;
pub mod inspect;
pub mod journal;
pub mod reader;
pub mod spill;
pub mod topic_report;
pub mod transfer;

pub use file::{Loaded, keep_refused, load, load_checked, load_other, load_with_journals, save};
pub use format::{FormatError, StoreError};
