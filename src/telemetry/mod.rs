//! What the program says of itself: published state, metrics, logs.
//!
//! The loops write into [`Published`]; [`metrics`] holds the one table of metric names and turns
//! published state into families at scrape; [`log`] sets up `tracing` and limits what hot sites may
//! write. Every floor above the core may use this module; it uses none of its neighbours.

pub mod collector;
mod comparisons;
pub mod control;
mod detectors;
pub mod log;
pub mod metrics;
mod process;
pub mod published;
pub mod taps;

pub use published::{Limits, Published};
