//! Replays past records: from files, or from a range of topics.
//!
//! The engine's only clock is its argument, here the newest event time, so a replay of last month
//! gives the verdicts that `run` gave last month. Predictions that are not mature at the end of the
//! input stay pending, as in `run`: their outcomes may come after the end of the data, so a verdict
//! must not count them as missing.

pub mod backtest;
mod files;
mod session;
pub mod stats;
pub mod topics;

use super::error::AppError;
use crate::config::Config;
use crate::kafka::OffsetBounds;
use crate::monitor::Engine;
pub use files::FileInput;
pub use session::{Listeners, Progress, Tally};
use topics::Range;

/// What is replayed.
#[derive(Debug)]
pub enum Input<'a> {
    /// Files.
    Files(FileInput<'a>),
    /// The topics of all sources of the configuration.
    Topics {
        /// The range to read.
        range: &'a Range,
        /// The offset bounds found so far, so that every configuration reads the same range.
        seen: &'a mut OffsetBounds,
    },
}

/// Replays the input under a configuration.
pub fn replay(
    config: Config,
    input: &mut Input<'_>,
    listeners: Listeners<'_>,
    progress: Progress<'_>,
) -> Result<(Engine, Tally), AppError> {
    match input {
        Input::Files(files) => files::replay(config, files, listeners, progress),
        Input::Topics { range, seen } => topics::replay(config, range, seen, listeners, progress),
    }
}
