//! Looks keys up before their turn.
//!
//! A look-up among millions of predictions waits for memory twice: for the slot of the table, then
//! for the row. Nothing of another operation's look-up depends on it, but between two of them lies
//! all the rest of the work, so they wait one after the other. What is read directly after one
//! another is waited for once, and is in the caches when its turn comes.

use super::Joiner;
use crate::collect::join::operation::Op;

impl Joiner {
    /// Brings what these operations look up into the caches.
    pub(super) fn touch_all(&self, ops: &[Op<'_>]) {
        for op in ops {
            if let Op::Predict { key, .. } | Op::Outcome { key, .. } = op {
                self.predictions.touch(*key);
            }
        }
        for op in ops {
            if let Op::Outcome { key, .. } = op {
                self.predictions.touch_row(*key);
            }
        }
    }
}
