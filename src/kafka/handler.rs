//! To whom a consumer hands what it reads.

use super::group_client::Record;
use super::{KafkaError, Partition};
use std::ops::Range;
use std::time::Duration;

/// The start of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// The offset to read first.
    pub offset: i64,
    /// The group has read the partition up to here before, and its sums are missing.
    pub without_sums_of: Option<i64>,
}

/// Receives records and events of a consumer, in order. All calls come from
/// [`super::Consumer::poll`], on the thread of its caller.
pub trait Handler {
    /// A record of an assigned partition. Offsets of a partition only increase.
    fn record(&mut self, record: Record<'_>);

    /// Records that were fetched together, in order.
    fn records(&mut self, batch: &[Record<'_>]) {
        for record in batch {
            self.record(*record);
        }
    }

    /// A rebalance assigns partitions: [`Handler::assigned`] follows for each.
    fn assigning(&mut self) {}

    /// A partition was assigned. Returns the offset to read first, usually that of the snapshot.
    /// `None`: no position is known. [`Handler::begins`] follows once the start is found, or
    /// [`Handler::suspended`].
    fn assigned(&mut self, partition: Partition) -> Option<i64>;

    /// Whether positions of other partitions of this topic were known before this assignment: a
    /// partition without one was added since.
    fn was_read(&self, topic: u16) -> bool {
        let _ = topic;
        false
    }

    /// The offset up to which records of this partition are stored, if that is less than what
    /// [`Handler::assigned`] said. Only that may be committed.
    fn stored(&self, partition: Partition) -> Option<i64> {
        let _ = partition;
        None
    }

    /// A partition without a position is read from here on. [`super::Consumer::poll`] returns
    /// before the first record, for the caller to store it.
    fn begins(&mut self, partition: Partition, begin: Begin);

    /// Whether a partition that was just assigned stays suspended: assigned but not read.
    fn is_suspended(&self, partition: Partition) -> bool {
        let _ = partition;
        false
    }

    /// A rebalance revokes these partitions: [`Handler::revoked`] follows for each.
    fn revoking(&mut self, partitions: &[Partition]) {
        let _ = partitions;
    }

    /// A partition was revoked; no record of it follows. `lost`: another member already owns it, so
    /// nothing about it may be written any more.
    fn revoked(&mut self, partition: Partition, lost: bool);

    /// All records that the broker had for this partition at that moment were handed over.
    fn end_of_partition(&mut self, partition: Partition);

    /// The log has grown since the end was reported; the new records may be hidden by a
    /// transaction.
    fn grown(&mut self, partition: Partition) {
        let _ = partition;
    }

    /// A transaction that begins at this offset has hidden all that follows for so long. Reported
    /// once.
    fn hidden(&mut self, partition: Partition, offset: i64, waited: Duration) {
        let _ = (partition, offset, waited);
    }

    /// The broker deleted the records of these offsets before they were read. Reading continues
    /// after them.
    fn lost(&mut self, partition: Partition, offsets: Range<i64>);

    /// The partition is shorter than what was read of it, and is read from this offset on, as
    /// [`KafkaOptions::truncated`](super::KafkaOptions::truncated) says. Its records may reuse
    /// offsets.
    fn rewound(&mut self, partition: Partition, offset: i64);

    /// The partition stays assigned but is no longer read, for this reason. One that does not exist
    /// [begins](Handler::begins) once it is added.
    fn suspended(&mut self, partition: Partition, why: &str);

    /// The group assigns a partition that does not exist. Reported at each assignment, or more
    /// often.
    fn gone(&mut self, _: Partition) {}

    /// An error occurred. Consumption continues unless [`KafkaError::is_fatal`]. The same error is
    /// reported at most once in 30 seconds.
    fn error(&mut self, error: KafkaError);
}
