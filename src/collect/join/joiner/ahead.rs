//! Looks keys up before their turn.
//!
//! A look-up among millions of predictions waits for memory three times, each time for what the last
//! one found: the table's bytes, the location, the row. Nothing of another record's look-up depends on
//! it, but between two of them lies all the rest of the work, so they wait one after the other. Keys that
//! are looked up directly after one another wait together, and find it in the caches when their turn
//! comes.

use super::Joiner;
use crate::collect::join::key::Key;
use crate::collect::join::operation::Op;

impl Joiner {
    /// Brings what a look-up of this key reads into the caches.
    #[inline]
    pub fn touch(&self, key: Key) {
        self.predictions.touch(key);
    }

    /// The same for what these operations look up.
    pub(in super::super) fn touch_all(&self, ops: &[Op<'_>]) {
        for op in ops {
            if let Op::Predict { key, .. } | Op::Outcome { key, .. } = op {
                self.touch(*key);
            }
        }
    }
}
