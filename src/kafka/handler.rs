//! What a consumer reads, and the handler that receives it.

use super::{Headers, KafkaError, Partition};
use std::ops::Range;
use std::time::Duration;

/// One record, borrowed from the client for the duration of the call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record<'a> {
    /// Position of the topic in [`super::KafkaOptions::topics`].
    pub topic: u16,
    /// Number of the partition in its topic.
    pub partition: i32,
    /// Offset.
    pub offset: i64,
    /// Kafka timestamp in ms since 1970, if the record has one.
    pub timestamp_ms: Option<i64>,
    /// Key, if there is one.
    pub key: Option<&'a [u8]>,
    /// Value; empty for a tombstone.
    pub payload: &'a [u8],
    /// Headers.
    pub headers: Headers<'a>,
}

impl Record<'_> {
    /// Its partition.
    #[inline]
    pub fn in_partition(&self) -> Partition {
        (self.topic, self.partition).into()
    }
}

/// A record of a batch, or the error of a partition.
#[derive(Debug, Clone, Copy)]
pub struct Fetched<'a> {
    /// The record. For an error, its offset is the one that was requested, negative if there was
    /// none, and its value is a text.
    pub record: Record<'a>,
    /// 0 for a record, otherwise the error code of librdkafka.
    pub error: i32,
}

/// The start of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// The offset to read first.
    pub offset: i64,
    /// The offset up to which the group has read the partition before, if its sums are missing.
    pub without_sums_of: Option<i64>,
}

/// Receives records and events of a consumer, in order. All calls come from
/// [`super::Consumer::poll`], on the thread of its caller.
pub trait Handler {
    /// Records of assigned partitions that were fetched together, in order. Offsets of a partition
    /// only increase.
    fn records(&mut self, batch: &[Record<'_>]);

    /// A rebalance assigns partitions: [`Handler::assigned`] follows for each.
    fn assigning(&mut self) {}

    /// A topic has no partition, and none is assigned: it does not exist, or may not be read.
    /// Called at each count that finds this.
    fn missing(&mut self, _topic: u16) {}

    /// A partition was assigned. Returns the offset to read first, usually that of the snapshot.
    /// `None` means that no position is known: [`Handler::begins`] follows once the start is found,
    /// or [`Handler::suspended`].
    fn assigned(&mut self, partition: Partition) -> Option<i64>;

    /// Whether positions of other partitions of this topic were known before this assignment: a
    /// partition without a position was then added since.
    fn was_read(&self, _topic: u16) -> bool {
        false
    }

    /// The offset up to which records of this partition are stored, if that is less than
    /// [`Handler::assigned`] returned. Commits must not go further.
    fn stored(&self, _partition: Partition) -> Option<i64> {
        None
    }

    /// A partition without a position is read from here on. [`super::Consumer::poll`] returns
    /// before the first record, so that the caller can store the start.
    fn begins(&mut self, partition: Partition, begin: Begin);

    /// Whether a partition that was just assigned stays suspended: assigned but not read.
    fn is_suspended(&self, _partition: Partition) -> bool {
        false
    }

    /// Where this partition, whose position is known, ended at the last [`Handler::truncated`];
    /// `None` if it was rewound since.
    fn truncated_at(&self, _partition: Partition) -> Option<i64> {
        None
    }

    /// A rebalance revokes these partitions: [`Handler::revoked`] follows for each.
    fn revoking(&mut self, _partitions: &[Partition]) {}

    /// A partition was revoked; no record of it follows. `lost` says that another member already
    /// owns it, so that nothing about it may be written.
    fn revoked(&mut self, partition: Partition, lost: bool);

    /// No record before this offset is still to come. Records just before it were never handed
    /// over: control records, records of an aborted transaction, or records that were
    /// [lost](Handler::lost).
    fn passed(&mut self, _partition: Partition, _offset: i64) {}

    /// All records that the broker had for this partition at that moment were handed over.
    fn end_of_partition(&mut self, partition: Partition);

    /// The log has grown since the end was reported; a transaction may hide the new records.
    fn grown(&mut self, _partition: Partition) {}

    /// A transaction that begins at this offset has hidden all later records for this long.
    /// Reported once.
    fn hidden(&mut self, _partition: Partition, _offset: i64, _waited: Duration) {}

    /// The broker deleted the records of these offsets before they were read. Reading continues
    /// after them.
    fn lost(&mut self, partition: Partition, offsets: Range<i64>);

    /// The partition is shorter than what was read of it, and is read from this offset on, as
    /// [`KafkaOptions::truncated`](super::KafkaOptions::truncated) says. Its records may reuse
    /// offsets.
    fn rewound(&mut self, partition: Partition, offset: i64);

    /// The partition ends here, before the position, and nothing says where to continue:
    /// [`Handler::suspended`] follows. This must be stored with the position: once the log is
    /// longer than the position, nothing else shows that its records are different ones.
    fn truncated(&mut self, _partition: Partition, _end: i64) {}

    /// The partition stays assigned but is no longer read, for this reason. A partition that does
    /// not exist [begins](Handler::begins) once it is added.
    fn suspended(&mut self, partition: Partition, why: &str);

    /// The group assigns a partition that does not exist. Reported at each assignment, or more
    /// often.
    fn gone(&mut self, _: Partition) {}

    /// An error occurred. Consumption continues unless [`KafkaError::is_fatal`]. The same error is
    /// reported at most once every 30 seconds.
    fn error(&mut self, error: KafkaError);
}
