//! What goes into a joiner, and what comes out of it.

use super::cohort::stored_ms;
use super::key::Key;
use super::matured::Matured;
use super::spill_backend::SpillBackend;
use crate::stats::fixed::Score;

/// A prediction that arrives.
#[derive(Debug, Clone, Copy)]
pub struct NewPrediction<'a> {
    /// Key of the prediction.
    pub key: Key,
    /// Index of the model's plan.
    pub model: u16,
    /// Slot of the stream.
    pub slot: u32,
    /// Start of the pane.
    pub start_ms: i64,
    /// Event time.
    pub time_ms: i64,
    /// Event time up to which its outcome is on time; the same for the whole pane.
    pub due_ms: i64,
    /// For each view the score and the class that makes its outcome true; then the other entries of
    /// its [layout](super::RowLayout).
    pub views: &'a [(Score, u32)],
    /// Index of the first entry of the [full vector](super::full_vector) and the number of its
    /// entries; 0 entries if there is none.
    pub full_vector: (usize, usize),
    /// Number of classes that an outcome may have; 0 if any class is allowed.
    pub classes: u32,
}

/// A retained prediction.
#[derive(Debug, Clone, Copy)]
pub struct Retained<'a> {
    /// Slot of the stream.
    pub slot: u32,
    /// Event time.
    pub time_ms: i64,
    /// The score for each view.
    pub scores: &'a [f64],
    /// Event time and class of the outcome.
    pub outcome: Option<(i64, u32)>,
    /// Whether it is mature.
    pub matured: bool,
}

impl Retained<'_> {
    /// Whether it has this outcome.
    pub fn has(&self, time_ms: i64, class: u32) -> bool {
        self.outcome == Some((stored_ms(self.time_ms, time_ms), class))
    }
}

/// A prediction that an earlier one of the same key has replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// Slot of its stream.
    pub slot: u32,
    /// Whether the scores differ.
    pub differs: bool,
    /// Whether its outcome waits again, because it is late for the earlier prediction and no
    /// sibling has it.
    pub waits: bool,
}

/// What became of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicted {
    /// It is pending.
    Pending {
        /// What became of an outcome that was waiting for it.
        met: Option<OutcomeResult>,
        /// The later prediction of the same key that it replaced.
        instead: Option<Replaced>,
    },
    /// An earlier prediction of the same key has the same scores.
    Duplicate,
    /// An earlier prediction of the same key has other scores.
    Conflict,
    /// The cap on retained predictions is reached; or the cap on waiting outcomes, and the later
    /// prediction that it would replace has an outcome that would have to wait.
    Refused,
}

/// What became of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeResult {
    /// It is attached to its prediction.
    Matched,
    /// Its prediction has not come, or was due before the outcome.
    Waiting,
    /// Its prediction has another outcome, or this one already.
    Duplicate,
    /// Its prediction has another outcome, and the plan rejects that.
    Contradiction,
    /// Its prediction has no such class.
    UnknownClass,
    /// Its prediction was mature: the sums must be corrected.
    Revised,
    /// The cap on waiting outcomes is reached.
    Refused,
}

/// A late outcome of a mature prediction.
#[derive(Debug, Clone, Copy)]
pub struct Revision<'a> {
    /// The prediction with its new outcome.
    pub now: Matured<'a>,
    /// The class of the outcome that came before, if one did.
    pub before: Option<u32>,
    /// Event time of the new outcome.
    pub late_ms: i64,
    /// If the prediction was given up, how many it stands for; nothing is corrected then.
    pub given_up: Option<u64>,
}

/// What happens when a pane matures.
#[derive(Debug, Clone, Copy)]
pub enum MaturityEvent<'a> {
    /// A prediction is mature.
    Matured(Matured<'a>),
    /// A late outcome that was already there revises a prediction, or meets one that was given up.
    Revised(Revision<'a>),
    /// What became of that late outcome.
    Ended(OutcomeResult),
}

/// How much memory a joiner may use while panes mature.
#[derive(Debug, Clone, Copy)]
pub struct SpillBudget<'a> {
    /// Where predictions beyond it go.
    pub backend: &'a dyn SpillBackend,
    /// Bytes of predictions in memory.
    pub bytes: usize,
}
