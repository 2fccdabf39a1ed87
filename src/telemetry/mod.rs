//! Reports of the program about itself: published state, metrics, logs.
//!
//! Loops write into [`Published`]. [`scrape`] turns it into metric families, with the names of
//! the one table in [`metrics`]. [`log`] sets up `tracing` and limits what frequent call sites may
//! write. Every layer above the core may use this module; it uses none of the other edges.

pub mod concerns;
pub mod control;
pub mod facts;
pub mod history;
pub mod log;
pub mod metrics;
pub mod published;
pub mod scrape;
mod series;
pub mod taps;

pub use published::{Limits, Published, now_ms};
