//! Floor 2: the first stage, from decoded records to cell sums per stream and pane.
//!
//! [`event`] names what comes in and how each record ends; [`counters`] counts
//! every disposition.

pub mod counters;
pub mod event;

pub use counters::{Counters, SourceCounters};
pub use event::{Disposition, Event, Origin, Reason, Refusal};
