//! The memory that the pending predictions of a shard take.

use super::Shard;
use crate::collect::join::{SpillBackend, SpillError};
use std::sync::Arc;

impl Shard {
    /// From now on pending predictions spill that memory has no room for; so many shards share the memory
    /// that the plan allows.
    pub fn spill_to(&mut self, spills: Arc<dyn SpillBackend>, shared_by: usize) {
        self.collector.joins_mut().spill_to(spills, shared_by);
    }

    /// How many shards share the memory that the plan allows pending predictions and ids.
    pub fn share_memory(&mut self, by: usize) {
        self.collector.share_ids(by);
        self.collector.joins_mut().share(by);
    }

    /// Moves some of the predictions out of memory for which there is no more room; answers whether there
    /// were any.
    pub fn spill_some(&mut self) -> bool {
        self.collector.joins_mut().reduce_memory()
    }

    /// Why the store of predictions that memory has no room for failed, if it did. From then on the shard
    /// lacks predictions: nothing of it may be stored or shown.
    pub fn fault(&self) -> Option<&SpillError> {
        self.collector.joins().fault()
    }

    /// Retained predictions that are not in memory, and bytes that those take which are.
    pub fn spilled(&self) -> (usize, usize) {
        let joins = self.collector.joins();
        (joins.spilled(), joins.memory())
    }
}
