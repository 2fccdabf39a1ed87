//! Kafka: a consumer group member that reads in batches ([`Consumer`]), a reader of offset ranges
//! outside of any group ([`RangeReader`]), the dead-letter producer, the alerts topic, and the
//! compacted topic for checkpoints of partitions ([`StateTopic`]).

mod client;
mod client_callbacks;
mod consumer;
mod contact;
mod context;
mod dead_letter;
mod error;
mod group_client;
mod handler;
mod headers;
mod librdkafka;
mod list_offsets;
#[cfg(test)]
mod mock;
mod native;
mod offsets;
mod options;
mod owned_record;
mod partition_ends;
mod peer;
mod probe;
mod process_start;
mod producer;
mod range;
mod range_reader;
mod rebootstrap;
mod start_offsets;
mod state_follower;
mod state_topic;
mod state_writer;
mod throttle;
mod token;
mod topic;
mod topics;

pub use client::{Brokers, Ends, FollowState, Followed, ReadState, TopicPartition, WriteState};
pub use consumer::Consumer;
pub use context::{Events, PartitionStats, Rebalance};
pub use dead_letter::{DeadLetter, DeadLetterCounts};
pub use error::KafkaError;
pub use group_client::GroupClient;
pub use handler::{Begin, Fetched, Handler, Record};
pub use headers::Headers;
pub use librdkafka::Librdkafka;
pub use options::{
    KafkaOptions, MissingState, OWNED, QUEUE_KBYTES_MAX, Security, StartAt, Truncated, is_secret,
};
pub use owned_record::OwnedRecord;
pub use partition_ends::Hidden;
pub use peer::Peer;
pub use probe::{Probe, probe, probe_of_judge, probe_of_sink};
pub use process_start::ProcessStart;
pub use range::{Bound, Gap, OffsetBounds, Span, resolve};
pub use range_reader::{RangeReader, Step};
pub use state_topic::StateTopic;
pub use topic::Topic;
pub use topics::Partition;
