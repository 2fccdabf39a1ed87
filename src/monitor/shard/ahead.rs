//! A shard that is ahead of others, or that they do not wait for.

use super::Shard;
use crate::monitor::delta::Delta;

impl Shard {
    /// See [`Collector::hold_ahead`](crate::collect::collector::Collector::hold_ahead).
    pub(in crate::monitor) fn hold_ahead(&mut self, common_ms: Option<Vec<i64>>) {
        self.collector.hold_ahead(common_ms);
    }

    /// Takes out what lies in open panes that others do not wait for any more: they do not wait for a shard
    /// that is read to its end, nor longer than its records say that are not counted. One engine over all
    /// partitions seals these panes with those of the others. Here they stay open, and what still comes is a
    /// delta of its own; sums of both are the same.
    ///
    /// Nothing of models whose outcomes come separately: they would have to correct what is not sealed.
    pub(in crate::monitor) fn hand_over(&mut self) -> Vec<Delta> {
        let mut deltas = Vec::new();
        let idle = self.is_idle();
        for (model, reached_ms) in self.reached_ms().into_iter().enumerate() {
            if self.collector.models()[model].maturity_ms > 0 {
                continue;
            }
            let until_ms = if idle { i64::MAX } else { reached_ms };
            let handed_ms = &mut self.handed_until_ms[model];
            if until_ms == *handed_ms {
                continue;
            }
            *handed_ms = until_ms;
            self.take_panes(model, until_ms, &mut deltas);
        }
        deltas
    }
}
