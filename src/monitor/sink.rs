//! One way to give records to a partition's shard, wherever the stages are placed.
//!
//! Every holder of a shard takes records in the same way: the shard counts a record, and the same
//! call seals the panes that the watermark has then passed.

use super::shard::{PartitionEvent, Shard};
use crate::collect::{Disposition, Event, Label, Origin, PartitionId, Reason};

/// Takes the records of one partition, in order. Each record ends in exactly one disposition.
pub trait RecordSink {
    /// Takes a decoded record.
    fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition;
    /// Takes an outcome that came separately from its prediction.
    fn label(&mut self, origin: Origin, label: &Label<'_>) -> Disposition;
    /// Takes a record that could not be decoded, and when it arrived.
    fn reject(&mut self, origin: Origin, arrival_ms: Option<i64>, reason: Reason) -> Disposition;
    /// What is taken next is one more event of the record at `origin`. See [`Shard::next_row`].
    fn next_row(&mut self, origin: Origin);
    /// Takes what happened to the partition.
    fn on_partition(&mut self, at: PartitionId, what: PartitionEvent);
}

/// Who holds a shard, and takes out what it seals.
pub(super) trait ShardHolder {
    /// The shard.
    fn shard(&mut self) -> &mut Shard;

    /// Seals what the watermark has passed.
    fn seal(&mut self);

    /// The same where others do not wait for a partition from now on.
    fn let_others_go(&mut self) {
        self.seal();
    }

    /// Seals what the record that ended so has made due.
    #[inline]
    fn seal_after(&mut self, end: Disposition) -> Disposition {
        if self.shard().due() {
            self.seal();
        }
        end
    }
}

impl<H: ShardHolder> RecordSink for H {
    #[inline]
    fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition {
        let end = self.shard().observe(origin, event);
        self.seal_after(end)
    }

    fn label(&mut self, origin: Origin, label: &Label<'_>) -> Disposition {
        let end = self.shard().label(origin, label);
        self.seal_after(end)
    }

    fn reject(&mut self, origin: Origin, arrival_ms: Option<i64>, reason: Reason) -> Disposition {
        let end = self.shard().reject(origin, arrival_ms, reason);
        self.seal_after(end)
    }

    fn next_row(&mut self, origin: Origin) {
        self.shard().next_row(origin);
    }

    fn on_partition(&mut self, at: PartitionId, what: PartitionEvent) {
        self.shard().on_partition(at, what);
        if what.lets_others_go() {
            self.let_others_go();
        }
    }
}
