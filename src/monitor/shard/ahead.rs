//! A shard that is ahead of others.

use super::Shard;

impl Shard {
    /// See [`Collector::hold_ahead`](crate::collect::collector::Collector::hold_ahead).
    pub(in crate::monitor) fn hold_ahead(&mut self, common_ms: Option<Vec<i64>>) {
        self.collector.hold_ahead(common_ms);
    }
}
