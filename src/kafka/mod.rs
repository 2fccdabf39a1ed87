//! Kafka: a consumer group member that reads in batches, a reader of ranges that joins no group, the dead-letter
//! producer, and the topic that state moves through.

mod astray;
mod consumer;
mod context;
mod dead_letter;
mod error;
mod headers;
mod input;
mod lifeline;
mod native;
mod options;
mod owned;
mod probe;
mod range;
mod range_reader;
mod state_follower;
mod state_topic;
mod token;
mod topic;

pub use consumer::Consumer;
pub use dead_letter::{DeadLetter, DeadLetterCounts};
pub use error::KafkaError;
pub use headers::Headers;
pub use input::{Handler, Partition, Record};
pub use options::{KafkaOptions, OWNED, QUEUE_KBYTES_MAX, Security, StartAt, Truncated, is_secret};
pub use owned::Owned;
pub use probe::{Probe, probe};
pub use range::{Bound, Gap, Span, Watermarks, resolve};
pub use range_reader::{RangeReader, Step};
pub use state_follower::{Ends, Followed, StateFollower};
pub use state_topic::{StateTopic, StateWriter};
pub use topic::Topic;
