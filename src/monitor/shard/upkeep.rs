//! What the holder of a shard does with it, besides giving it records.

use super::{DeltaSink, Shard};
use crate::collect::join::{JournalDelta, SpillBackend};
use crate::collect::{Pair, Passed, Wanted};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct ShardUpkeep<'a>(&'a mut Shard);

impl Shard {
    /// The shard, for upkeep.
    pub fn upkeep(&mut self) -> ShardUpkeep<'_> {
        ShardUpkeep(self)
    }
}

impl ShardUpkeep<'_> {
    /// See [`Partitions::resume`](crate::collect::Partitions::resume).
    pub fn resume(&mut self) {
        self.0.collector.partitions_mut().resume();
    }

    /// From now on, pending predictions that do not fit into memory go to disk; `shared_by` shards
    /// share the memory that the plan allows.
    pub fn spill_to(&mut self, spills: Arc<dyn SpillBackend>, shared_by: usize) {
        self.0.collector.joins_mut().spill_to(spills, shared_by);
    }

    /// How many shards share the memory that the plan allows pending predictions and ids.
    pub fn share_memory(&mut self, by: usize) {
        self.0.collector.share_ids(by);
        self.0.collector.joins_mut().share(by);
    }

    /// Moves some predictions out of memory if they take more than they may; returns whether it
    /// moved any.
    pub fn spill_some(&mut self) -> bool {
        self.0.collector.joins_mut().reduce_memory()
    }

    /// The events of joins and the new ids since the last call. Write them to their journals before
    /// the next snapshot. It is an error to call this before corrections were handed over.
    pub fn take_journals(&mut self) -> Vec<JournalDelta> {
        self.0.collector.take_journals()
    }

    /// Makes room for the `wanted` pairs of prediction and outcome until the next call; see
    /// [`Collector::tap`](crate::collect::Collector::tap).
    pub fn tap(&mut self, wanted: Wanted) -> (Vec<Pair>, Passed) {
        self.0.collector.tap(wanted)
    }

    /// See [`Collector::hold_ahead`](crate::collect::collector::Collector::hold_ahead).
    pub fn hold_ahead(&mut self, common_ms: Option<Vec<i64>>) {
        self.0.collector.hold_ahead(common_ms);
    }

    /// Hands over the sums of open panes that other shards no longer wait for. Others do not wait
    /// for a shard that is read to its end, or beyond the time that its uncounted records show. One
    /// engine over all partitions would seal these panes with those of the others. Here the panes
    /// stay open, and later events leave as further deltas; the sums are the same.
    ///
    /// Models whose outcomes come separately are left out: they would have to correct panes that
    /// are not sealed.
    pub(in crate::monitor) fn hand_over(&mut self, sink: &mut impl DeltaSink) {
        let idle = self.0.collector.partitions().are_idle();
        for (model, reached_ms) in self.0.view().reached_ms().into_iter().enumerate() {
            if self.0.collector.models()[model].maturity_ms > 0 {
                continue;
            }
            let until_ms = if idle { i64::MAX } else { reached_ms };
            let handed_ms = &mut self.0.handed_until_ms[model];
            if until_ms == *handed_ms {
                continue;
            }
            *handed_ms = until_ms;
            self.0.take_panes(model, until_ms, sink);
        }
    }
}
