//! Streams that expired, found while a journal is replayed.

use std::collections::BTreeSet;

/// Slots whose streams ended while a journal is replayed.
#[derive(Debug, Default)]
pub(super) struct EndedStreams {
    /// By slot: whether restored predictions may still be there.
    seen: Vec<bool>,
    /// Slots whose predictions are to be removed.
    slots: BTreeSet<u32>,
}

impl EndedStreams {
    /// Notes that a prediction of the stream in this slot was restored.
    pub fn saw(&mut self, slot: u32) {
        let at = slot as usize;
        if at >= self.seen.len() {
            self.seen.resize(at + 1, false);
        }
        self.seen[at] = true;
    }

    /// Notes that a stream ended. Usually none of its predictions was restored, and none need a
    /// visit.
    pub fn end(&mut self, slot: u32) {
        let seen = self.seen.get_mut(slot as usize);
        if seen.is_some_and(std::mem::take) {
            self.slots.insert(slot);
        }
    }

    /// The slots whose predictions are to be removed now.
    pub fn take(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.slots)
    }
}
