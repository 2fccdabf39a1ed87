//! Shows pairs of prediction and outcome as they form, for people who want to see what is counted.
//!
//! When off, a tap costs one comparison a record. When on, it takes as many pairs as it has room
//! for, and counts those that it let pass. So its cost does not depend on the traffic. A tap does
//! not change what is counted.

use super::event::Disposition;
use crate::stats::view::View;

/// A prediction with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Name of the model.
    pub model: String,
    /// Its version.
    pub version: String,
    /// Its segment, as the stream that counts it is called.
    pub segment: String,
    /// The prediction's id; where it is not text, its bytes that are not are replaced.
    pub id: String,
    /// Event time of the prediction; where that came apart from its outcome.
    pub time_ms: i64,
    /// Event time of the outcome, where that is one of its own.
    pub outcome_ms: Option<i64>,
    /// For each view of the model the score.
    pub scores: Vec<(View, f64)>,
    /// The class that happened; of a binary outcome, 0 or 1.
    pub outcome: u32,
    /// How it ended: `observed`, `matched` or `revised`.
    pub how: Disposition,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Tap {
    room: usize,
    pairs: Vec<Pair>,
    passed: u64,
}

impl Tap {
    /// With room for so many pairs.
    pub fn new(room: usize) -> Tap {
        Tap {
            room,
            ..Tap::default()
        }
    }

    /// What was taken, and how many pairs passed without.
    pub fn into_pairs(self) -> (Vec<Pair>, u64) {
        (self.pairs, self.passed)
    }

    /// Takes a pair, if there is room.
    pub fn take(&mut self, pair: impl FnOnce() -> Option<Pair>) {
        if self.pairs.len() >= self.room {
            self.passed += 1;
        } else {
            self.pairs.extend(pair());
        }
    }
}
