//! Looks keys up before their turn.
//!
//! A look-up among millions of predictions waits for memory twice: for the slot of the table, then
//! for the row. Look-ups of different operations are independent, but the other work between them
//! makes them wait one after the other. If the slots and rows of many operations are read in one
//! go, their waits overlap, and the data is in the caches when each operation runs.

use super::Joiner;
use crate::collect::join::operation::{Op, OutcomeOp, PredictOp};

impl Joiner {
    /// Brings what these operations look up into the caches.
    pub(super) fn touch_all(&self, ops: &[Op<'_>]) {
        for op in ops {
            if let Op::Predict(PredictOp { key, .. }) | Op::Outcome(OutcomeOp { key, .. }) = op {
                self.predictions.touch(*key);
            }
        }
        for op in ops {
            if let Op::Outcome(outcome) = op {
                self.predictions.touch_row(outcome.key);
            }
        }
    }
}
