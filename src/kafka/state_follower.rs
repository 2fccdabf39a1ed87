//! Follows all partitions of the state topic from their start, without joining a group.
//!
//! It also requests the ends of topics, so that the judge knows which records the checkpoints do
//! not contain yet. One request per broker returns all ends ([`super::list_offsets`]).

use super::client::{Ends, FollowState, Followed, TopicPartition};
use super::client_callbacks::{ClientCallbacks, create, reader_config};
use super::list_offsets::offsets;
use super::state_topic::{GROUP_DENIED, count, poll_idle};
use super::{KafkaError, KafkaOptions};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError as Native;
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};
use std::time::Duration;

/// Reads the state topic continuously.
pub struct StateFollower {
    topic: String,
    client: BaseConsumer<ClientCallbacks>,
    /// A client that sees beyond open transactions.
    uncommitted: BaseConsumer<ClientCallbacks>,
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
}

impl FollowState for StateFollower {
    fn begin(&self, partitions: i32) -> Result<(), KafkaError> {
        let mut list = TopicPartitionList::new();
        for partition in 0..partitions {
            list.add_partition_offset(&self.topic, partition, Offset::Beginning)?;
        }
        Ok(self.client.assign(&list)?)
    }

    fn poll(
        &self,
        within: Duration,
        each: &mut dyn FnMut(Followed<'_>),
    ) -> Result<bool, KafkaError> {
        ClientCallbacks::rebootstrap(self.client.client());
        match self.client.poll(within) {
            None => return Ok(false),
            Some(Err(Native::PartitionEOF(state_partition))) => {
                each(Followed::End(state_partition))
            }
            Some(Err(error)) if error.rdkafka_error_code() == Some(GROUP_DENIED) => {}
            Some(Err(error)) => return Err(error.into()),
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

    fn partitions(&self, topic: &str) -> Result<Option<i32>, KafkaError> {
        count(&self.client, topic, &self.topic)
    }

    fn ends(&self, of: &[TopicPartition], within: Duration) -> Result<Ends, KafkaError> {
        poll_idle(&self.uncommitted);
        offsets(&self.uncommitted, of, Offset::End, within)
    }

    fn stable_ends(&self, of: &[TopicPartition], within: Duration) -> Result<Ends, KafkaError> {
        offsets(&self.client, of, Offset::End, within)
    }

    fn begins(&self, of: &[TopicPartition], within: Duration) -> Result<Ends, KafkaError> {
        offsets(&self.client, of, Offset::Beginning, within)
    }
}
