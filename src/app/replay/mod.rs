//! Records of the past through the engine: of files, or of a range of topics.
//!
//! The engine knows no clock but the one it is told; here it is told the newest event time, so that a
//! replay of last month says what `run` would have said last month. What is not mature at the end of the outcomes
//! stays pending, as it would in `run`: calling it an outcome that never came would be a verdict on data that is not
//! there.

pub mod backtest;
mod files;
mod session;
pub mod stats;
pub mod topics;

use std::path::PathBuf;

use crate::app::engine::Engine;
use crate::app::fault::Fault;
use crate::config::Config;
use crate::judge::Change;
use crate::kafka::Watermarks;
pub use session::Progress;
use stats::Tally;
use topics::Range;

/// What is replayed.
#[derive(Debug)]
pub enum Input<'a> {
    /// Files, read with the fields of the configuration's first source.
    Files {
        /// Of predictions, or of both kinds of records.
        events: &'a [PathBuf],
        /// Of outcomes alone.
        outcomes: &'a [PathBuf],
    },
    /// The topics of all sources of the configuration.
    Topics {
        /// From where to where.
        range: &'a Range,
        /// What was found of their logs, so that every configuration reads the same.
        seen: &'a mut Watermarks,
    },
}

/// Replays the input under a configuration. Changes go to `told` as they come.
pub fn replay(
    config: Config,
    input: &mut Input<'_>,
    told: &mut dyn FnMut(&Change),
    progress: Progress<'_>,
) -> Result<(Engine, Tally), Fault> {
    match input {
        Input::Files { events, outcomes } => {
            files::replay(config, events, outcomes, told, progress)
        }
        Input::Topics { range, seen } => topics::replay(config, range, seen, told, progress),
    }
}
