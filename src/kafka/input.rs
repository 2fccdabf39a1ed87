//! What a consumer hands to its caller.

use super::{Headers, KafkaError};
use std::ops::Range;

/// One record, borrowed from librdkafka for the length of the call.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Position of the topic in [`super::KafkaOptions::topics`].
    pub topic: u16,
    /// Partition.
    pub partition: i32,
    /// Offset.
    pub offset: i64,
    /// The record's Kafka timestamp, milliseconds since 1970, where it has one.
    pub timestamp_ms: Option<i64>,
    /// Key, where there is one.
    pub key: Option<&'a [u8]>,
    /// Value; empty for a tombstone.
    pub payload: &'a [u8],
    /// Headers.
    pub headers: Headers<'a>,
}

/// A partition of one of the consumer's topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// Position of the topic in [`super::KafkaOptions::topics`].
    pub topic: u16,
    /// Partition.
    pub partition: i32,
}

/// Receives what a consumer reads, in the order in which it happened. All calls come from within
/// [`super::Consumer::poll`], on its caller's thread.
pub trait Handler {
    /// One record of a partition that is assigned; offsets of a partition only grow.
    fn record(&mut self, record: Record<'_>);

    /// A partition is now ours. Answers the offset to read first, usually the snapshot's; `None` leaves
    /// it to the committed offset and, without one, to [`super::StartAt`].
    fn assigned(&mut self, partition: Partition) -> Option<i64>;

    /// Whether a partition that was just assigned is to be left unread, though it stays ours.
    fn bars(&self, partition: Partition) -> bool {
        let _ = partition;
        false
    }

    /// A partition is no longer ours; no record of it follows. `lost`: the broker has already given it
    /// to another member, so nothing about it may be written any more.
    fn revoked(&mut self, partition: Partition, lost: bool);

    /// Every record of the partition that the broker had at that moment has been handed over.
    fn end_of_partition(&mut self, partition: Partition);

    /// The broker deleted the records of these offsets before they were read; reading goes on after them.
    fn lost(&mut self, partition: Partition, offsets: Range<i64>);

    /// The partition was shorter than what had been read of it, and is read from this offset on, as
    /// [`KafkaOptions::truncated`](super::KafkaOptions::truncated) says: its records may have offsets that others had before.
    fn rewound(&mut self, partition: Partition, offset: i64);

    /// The partition stays ours and is not read any more, for this reason.
    fn stopped(&mut self, partition: Partition, why: &str);

    /// Something failed; consumption goes on unless [`KafkaError::is_fatal`]. The same failure is not
    /// told more than once in 30 seconds.
    fn error(&mut self, error: KafkaError);
}
