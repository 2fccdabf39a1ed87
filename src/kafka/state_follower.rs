//! Follows all partitions of the state topic from their start, without joining a group.
//!
//! It also requests the ends of topics, so that the judge knows which records the checkpoints do
//! not contain yet. One request per broker returns all ends.

use super::state_topic::{Quiet, create, poll_idle, reader_config};
use super::{KafkaError, KafkaOptions};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError as Native;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest duration of one request.
const REQUEST: Duration = Duration::from_secs(10);

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

/// Offsets by topic and partition.
pub type Ends = BTreeMap<(String, i32), i64>;

/// Reads the state topic continuously.
pub struct StateFollower {
    topic: String,
    client: BaseConsumer<Quiet>,
    /// Sees behind open transactions.
    uncommitted: BaseConsumer<Quiet>,
}

impl StateFollower {
    /// A follower that reads nothing yet and sends no request.
    pub fn new(options: &KafkaOptions, topic: &str) -> Result<StateFollower, KafkaError> {
        let mut config = reader_config(options, &options.group);
        config.set("enable.partition.eof", "true");
        let client = create(&config, options)?;
        config.set("isolation.level", "read_uncommitted");
        Ok(StateFollower {
            topic: topic.to_owned(),
            client,
            uncommitted: create(&config, options)?,
        })
    }

    /// Starts at the first record of all `partitions`.
    pub fn begin(&self, partitions: i32) -> Result<(), KafkaError> {
        let mut list = TopicPartitionList::new();
        for partition in 0..partitions {
            list.add_partition_offset(&self.topic, partition, Offset::Beginning)
                .map_err(KafkaError::from_native)?;
        }
        self.client.assign(&list).map_err(KafkaError::from_native)
    }

    /// Hands over the next event, if one comes within the time.
    pub fn poll(
        &self,
        within: Duration,
        each: &mut dyn FnMut(Followed<'_>),
    ) -> Result<bool, KafkaError> {
        Quiet::rebootstrap(self.client.client());
        match self.client.poll(within) {
            None => return Ok(false),
            Some(Err(Native::PartitionEOF(state_partition))) => {
                each(Followed::End(state_partition))
            }
            Some(Err(error)) => return Err(KafkaError::from_native(error)),
            Some(Ok(message)) => each(Followed::Record {
                state_partition: message.partition(),
                offset: message.offset(),
                at_ms: message.timestamp().to_millis(),
                key: message.key().unwrap_or_default(),
                value: message.payload(),
            }),
        }
        Ok(true)
    }

    /// Number of partitions of a topic; `None` if it does not exist.
    pub fn partitions(&self, topic: &str) -> Result<Option<i32>, KafkaError> {
        poll_idle(&self.client);
        let metadata = self.client.fetch_metadata(Some(topic), REQUEST);
        let metadata = metadata.map_err(KafkaError::from_native)?;
        let found = metadata.topics().iter().find(|t| t.name() == topic);
        let n = found.map_or(0, |t| t.partitions().len());
        Ok((n > 0).then_some(n as i32))
    }

    /// End offsets of these partitions, open transactions included, without those that the brokers do not report.
    pub fn ends(&self, of: &[(String, i32)]) -> Result<Ends, KafkaError> {
        poll_idle(&self.uncommitted);
        offsets(&self.uncommitted, of, Offset::End)
    }

    /// The same up to the first open transaction.
    pub fn stable_ends(&self, of: &[(String, i32)]) -> Result<Ends, KafkaError> {
        offsets(&self.client, of, Offset::End)
    }

    /// First offsets of these partitions, without those that the brokers do not report.
    pub fn begins(&self, of: &[(String, i32)]) -> Result<Ends, KafkaError> {
        offsets(&self.client, of, Offset::Beginning)
    }
}

/// Requests first or end offsets. Brokers accept the names of both in place of a time.
fn offsets(
    client: &BaseConsumer<Quiet>,
    of: &[(String, i32)],
    which: Offset,
) -> Result<Ends, KafkaError> {
    if of.is_empty() {
        return Ok(Ends::new());
    }
    let mut list = TopicPartitionList::new();
    for (topic, partition) in of {
        list.add_partition_offset(topic, *partition, which)
            .map_err(KafkaError::from_native)?;
    }
    let found = client.offsets_for_times(list, REQUEST);
    let found = found.map_err(KafkaError::from_native)?;
    let entry = |e: &rdkafka::topic_partition_list::TopicPartitionListElem<'_>| match e.offset() {
        Offset::Offset(offset) if e.error().is_ok() => {
            Some(((e.topic().to_owned(), e.partition()), offset))
        }
        _ => None,
    };
    Ok(found.elements().iter().filter_map(entry).collect())
}
