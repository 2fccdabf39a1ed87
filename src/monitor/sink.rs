//! What counts the records of a partition, wherever its stages are placed.

use super::engine::Engine;
use super::local_shard::LocalShard;
use super::partition_event::PartitionEvent;
use crate::collect::{Disposition, Event, Label, Origin, PartitionId, Reason};

/// Takes the records of one partition, in order. Each record ends in exactly one disposition.
pub trait RecordSink {
    /// Takes a decoded record.
    fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition;
    /// Takes an outcome that came separately from its prediction.
    fn label(&mut self, origin: Origin, label: &Label<'_>) -> Disposition;
    /// Takes a record that could not be decoded, and when it arrived.
    fn reject(&mut self, origin: Origin, arrival_ms: Option<i64>, reason: Reason) -> Disposition;
    /// What is taken next is one more event of the record at `origin`.
    fn next_row(&mut self, origin: Origin);
    /// Takes what happened to the partition.
    fn on_partition(&mut self, at: PartitionId, what: PartitionEvent);
}

macro_rules! record_sink {
    ($sink:ty) => {
        impl RecordSink for $sink {
            #[inline]
            fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition {
                <$sink>::observe(self, origin, event)
            }
            #[inline]
            fn label(&mut self, origin: Origin, label: &Label<'_>) -> Disposition {
                <$sink>::label(self, origin, label)
            }
            fn reject(
                &mut self,
                origin: Origin,
                arrival_ms: Option<i64>,
                reason: Reason,
            ) -> Disposition {
                <$sink>::reject(self, origin, arrival_ms, reason)
            }
            fn next_row(&mut self, origin: Origin) {
                <$sink>::next_row(self, origin);
            }
            fn on_partition(&mut self, at: PartitionId, what: PartitionEvent) {
                <$sink>::on_partition(self, at, what);
            }
        }
    };
}

record_sink!(Engine);
record_sink!(LocalShard);
