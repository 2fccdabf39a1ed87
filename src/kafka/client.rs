//! The interface to a Kafka client, as far as this program needs it.
//!
//! [`Librdkafka`](super::Librdkafka) is the client of the program. The rest of this module is built
//! on these traits: where a partition starts, where it ends, what is lost, which record may be
//! handed over. So a broker that exists only in memory, with its own clock, can drive it.

use super::group_client::GroupClient;
use super::{KafkaError, KafkaOptions};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// Makes clients.
pub trait Brokers: Debug + Send + Sync {
    /// A member of a consumer group, which begins to join.
    fn join(&self, options: &KafkaOptions) -> Result<Box<dyn GroupClient>, KafkaError>;

    /// A reader of the state topic, with values of at most `record_bytes`.
    fn state_reader(
        &self,
        options: &KafkaOptions,
        topic: &str,
        record_bytes: usize,
    ) -> Result<Box<dyn ReadState>, KafkaError>;

    /// A writer of the state topic.
    fn state_writer(
        &self,
        options: &KafkaOptions,
        topic: &str,
    ) -> Result<Arc<dyn WriteState>, KafkaError>;

    /// A follower of the state topic.
    fn state_follower(
        &self,
        options: &KafkaOptions,
        topic: &str,
    ) -> Result<Box<dyn FollowState>, KafkaError>;
}

/// A record of the state topic: its key, and its value or `None` to delete the key.
pub type StateRecord = (String, Option<Vec<u8>>);

/// Takes the key and the value of a record.
pub type EachRecord<'a> = &'a mut dyn FnMut(&[u8], Option<&[u8]>);

/// Takes the offset, the key and the value of a record.
pub type EachAt<'a> = &'a mut dyn FnMut(i64, &[u8], Option<&[u8]>);

/// Reads the state topic and administers it. Blocks the thread of its caller, each call with a
/// deadline.
pub trait ReadState: Send {
    /// The state partition that contains the state of partition `of` of any topic. Creates the
    /// topic if it is missing, with as many partitions as the largest of `sources`. It is an error
    /// if the topic is not compacted.
    fn state_partition(&mut self, of: i32, sources: &[String]) -> Result<i32, KafkaError>;

    /// The number of partitions of the topic. If it is missing, it is created with `at_creation`
    /// partitions. A topic of judges keeps obsolete records for a while, so that a judge that is
    /// away for a shorter time finds every delta.
    fn partitions(&mut self, at_creation: i32) -> Result<i32, KafkaError>;

    /// The offset that a group has committed for a partition of a source, if any.
    fn committed(
        &mut self,
        group: &str,
        topic: &str,
        partition: i32,
    ) -> Result<Option<i64>, KafkaError>;

    /// Hands over all records of a partition up to and including `until`, in order: key, and value
    /// unless the key was deleted. Calls `alive` at least once a second meanwhile.
    fn read(
        &self,
        partition: i32,
        until: i64,
        within: Duration,
        alive: &dyn Fn(),
        each: EachRecord<'_>,
    ) -> Result<(), KafkaError>;

    /// Hands over all records of a partition after an offset, each with its offset, up to and
    /// including `until`; without `until`, up to the current end.
    fn read_after(
        &self,
        partition: i32,
        from: i64,
        until: Option<i64>,
        within: Duration,
        each: EachAt<'_>,
    ) -> Result<(), KafkaError>;
}

/// Writes to the state topic, for one caller at a time.
pub trait WriteState: Send + Sync {
    /// Writes records to their partitions and waits until the broker has all of them. It is an
    /// error if the broker accepted none for `within`. After an error each record may or may not be
    /// in the topic. Returns their offsets. Calls `alive` at least once a second meanwhile.
    fn put(
        &self,
        records: &[(i32, &StateRecord)],
        within: Duration,
        alive: &dyn Fn(),
    ) -> Result<Vec<i64>, KafkaError>;
}

/// An event of the state topic.
#[derive(Debug, Clone, Copy)]
pub enum Followed<'a> {
    /// A record of a partition.
    Record {
        /// Partition of the state topic.
        state_partition: i32,
        /// Its offset.
        offset: i64,
        /// Its timestamp in ms since 1970.
        at_ms: Option<i64>,
        /// Key.
        key: &'a [u8],
        /// Value; `None` if the key was deleted.
        value: Option<&'a [u8]>,
    },
    /// A partition was read to its current end.
    End(i32),
}

/// A partition with the name of its topic.
pub type TopicPartition = (String, i32);

/// Offsets by topic and partition.
pub type Ends = BTreeMap<TopicPartition, i64>;

/// Reads the state topic continuously.
pub trait FollowState: Send {
    /// Starts at the first record of all `partitions`.
    fn begin(&self, partitions: i32) -> Result<(), KafkaError>;

    /// Hands over the next event, if one comes within the time.
    fn poll(
        &self,
        within: Duration,
        each: &mut dyn FnMut(Followed<'_>),
    ) -> Result<bool, KafkaError>;

    /// Number of partitions of a topic; `None` if it does not exist.
    fn partitions(&self, topic: &str) -> Result<Option<i32>, KafkaError>;

    /// End offsets of these partitions, open transactions included, without those that no broker
    /// reports in time; 0 for a partition that does not exist. It is an error if none is reported.
    fn ends(&self, of: &[TopicPartition], within: Duration) -> Result<Ends, KafkaError>;

    /// Like [`FollowState::ends`], but the offsets before which no transaction is open.
    fn stable_ends(&self, of: &[TopicPartition], within: Duration) -> Result<Ends, KafkaError>;

    /// First offsets of these partitions, with the same exceptions as [`FollowState::ends`].
    fn begins(&self, of: &[TopicPartition], within: Duration) -> Result<Ends, KafkaError>;
}
