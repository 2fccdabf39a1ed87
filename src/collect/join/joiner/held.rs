//! What a joiner holds: how many predictions and outcomes, in how many bytes.

use super::Joiner;
use crate::collect::join::key::Key;
use crate::collect::join::spill_backend::SpillError;

impl Joiner {
    /// Predictions that are not mature.
    pub fn pending(&self) -> usize {
        self.predictions.pending()
    }

    /// Mature predictions that are retained for revisions.
    pub fn matured(&self) -> usize {
        self.predictions.matured()
    }

    /// Outcomes that wait for their predictions.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Keys of the outcomes that wait, in no order.
    pub(in super::super) fn waiting_keys(&self) -> impl Iterator<Item = Key> {
        self.waiting.keys()
    }

    /// Keys of the outcomes that wait, with their times, in no order.
    pub(in super::super) fn waiting_times(&self) -> impl Iterator<Item = (Key, i64)> {
        self.waiting.times()
    }

    /// Whether a prediction of this id is in memory.
    pub(in super::super) fn has_prediction(&self, key: Key) -> bool {
        self.predictions.has(key)
    }

    /// Retained predictions that are not in memory.
    pub fn spilled(&self) -> usize {
        self.predictions.spilled()
    }

    /// Why the spill table failed, if it did. The joiner has lost predictions then, and no snapshot
    /// may be taken.
    pub fn fault(&self) -> Option<&SpillError> {
        self.predictions.fault()
    }

    /// Bytes that predictions and their index entries take in memory.
    #[inline]
    pub fn memory(&self) -> usize {
        self.predictions.memory()
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        self.predictions.bytes()
            + self.waiting.bytes()
            + self.journal.bytes()
            + self.given_up.bytes()
            + size_of::<Joiner>()
    }

    /// Bytes that the journal wrote since it was last taken.
    pub fn journal_bytes(&self) -> usize {
        self.journal.bytes()
    }
}
