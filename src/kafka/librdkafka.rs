//! The client of the program: librdkafka.

use super::client::{Brokers, FollowState, ReadState, WriteState};
use super::group_client::{GroupClient, GroupMember};
use super::state_follower::StateFollower;
use super::state_topic::StateTopic;
use super::state_writer::StateWriter;
use super::{KafkaError, KafkaOptions};
use std::sync::Arc;

/// The client of the program.
#[derive(Debug, Clone, Copy)]
pub struct Librdkafka;

impl Brokers for Librdkafka {
    fn join(&self, options: &KafkaOptions) -> Result<Box<dyn GroupClient>, KafkaError> {
        Ok(Box::new(GroupMember::new(options)?))
    }

    fn state_reader(
        &self,
        options: &KafkaOptions,
        topic: &str,
        record_bytes: usize,
    ) -> Result<Box<dyn ReadState>, KafkaError> {
        Ok(Box::new(StateTopic::new(options, topic, record_bytes)?))
    }

    fn state_writer(
        &self,
        options: &KafkaOptions,
        topic: &str,
    ) -> Result<Arc<dyn WriteState>, KafkaError> {
        Ok(Arc::new(StateWriter::new(options, topic)?))
    }

    fn state_follower(
        &self,
        options: &KafkaOptions,
        topic: &str,
    ) -> Result<Box<dyn FollowState>, KafkaError> {
        Ok(Box::new(StateFollower::new(options, topic)?))
    }
}
