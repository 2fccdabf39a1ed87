//! Follows the topic of parcels: all its partitions from their begin on, and on and on, as a reader that is in no group.
//!
//! It also says how long topics are, so that whoever follows knows what the parcels do not hold yet. All ends are asked for in
//! one request to each broker.

use super::state_topic::{Quiet, create, listen, reader_config};
use super::{KafkaError, KafkaOptions};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError as Native;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long one question to the brokers may take.
const REQUEST: Duration = Duration::from_secs(10);

/// What comes of the topic.
#[derive(Debug, Clone, Copy)]
pub enum Followed<'a> {
    /// A record of a partition.
    Record {
        /// Partition of the topic.
        home: i32,
        /// Its offset.
        offset: i64,
        /// Its timestamp, milliseconds since 1970.
        at_ms: Option<i64>,
        /// Key.
        key: &'a [u8],
        /// Value; nothing where the key was taken away.
        value: Option<&'a [u8]>,
    },
    /// A partition was read to its end, for now.
    End(i32),
}

/// Topic and partition, with an offset.
pub type Ends = BTreeMap<(String, i32), i64>;

/// See the module.
pub struct StateFollower {
    topic: String,
    client: BaseConsumer<Quiet>,
}

impl StateFollower {
    /// One that reads nothing yet and asks nothing of the broker.
    pub fn new(options: &KafkaOptions, topic: &str) -> Result<StateFollower, KafkaError> {
        let mut config = reader_config(options, &options.group);
        config.set("enable.partition.eof", "true");
        Ok(StateFollower {
            topic: topic.to_owned(),
            client: create(&config, options)?,
        })
    }

    /// Begins at the begin of all `homes` partitions.
    pub fn begin(&self, homes: i32) -> Result<(), KafkaError> {
        let mut list = TopicPartitionList::new();
        for home in 0..homes {
            list.add_partition_offset(&self.topic, home, Offset::Beginning)
                .map_err(KafkaError::from_native)?;
        }
        self.client.assign(&list).map_err(KafkaError::from_native)
    }

    /// Hands over what comes next, if it comes within the time.
    pub fn poll(
        &self,
        within: Duration,
        each: impl FnOnce(Followed<'_>),
    ) -> Result<bool, KafkaError> {
        Quiet::tend(self.client.client());
        match self.client.poll(within) {
            None => return Ok(false),
            Some(Err(Native::PartitionEOF(home))) => each(Followed::End(home)),
            Some(Err(error)) => return Err(KafkaError::from_native(error)),
            Some(Ok(message)) => each(Followed::Record {
                home: message.partition(),
                offset: message.offset(),
                at_ms: message.timestamp().to_millis(),
                key: message.key().unwrap_or_default(),
                value: message.payload(),
            }),
        }
        Ok(true)
    }

    /// Number of partitions of a topic; `None` where there is no such topic.
    pub fn partitions(&self, topic: &str) -> Result<Option<i32>, KafkaError> {
        listen(&self.client);
        let metadata = self.client.fetch_metadata(Some(topic), REQUEST);
        let metadata = metadata.map_err(KafkaError::from_native)?;
        let found = metadata.topics().iter().find(|t| t.name() == topic);
        let n = found.map_or(0, |t| t.partitions().len());
        Ok((n > 0).then_some(n as i32))
    }

    /// Where the logs of these partitions end; one that the brokers do not tell is left out.
    pub fn ends(&self, of: &[(String, i32)]) -> Result<Ends, KafkaError> {
        self.offsets(of, Offset::End)
    }

    /// Where they begin.
    pub fn begins(&self, of: &[(String, i32)]) -> Result<Ends, KafkaError> {
        self.offsets(of, Offset::Beginning)
    }

    /// Brokers take the words for begin and end in place of a time.
    fn offsets(&self, of: &[(String, i32)], word: Offset) -> Result<Ends, KafkaError> {
        if of.is_empty() {
            return Ok(Ends::new());
        }
        let mut list = TopicPartitionList::new();
        for (topic, partition) in of {
            list.add_partition_offset(topic, *partition, word)
                .map_err(KafkaError::from_native)?;
        }
        let told = self.client.offsets_for_times(list, REQUEST);
        let told = told.map_err(KafkaError::from_native)?;
        let entry = |e: &rdkafka::topic_partition_list::TopicPartitionListElem<'_>| match e.offset()
        {
            Offset::Offset(offset) if e.error().is_ok() => {
                Some(((e.topic().to_owned(), e.partition()), offset))
            }
            _ => None,
        };
        Ok(told.elements().iter().filter_map(entry).collect())
    }
}
