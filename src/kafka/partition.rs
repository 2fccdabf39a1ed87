//! A partition, by the numbers of a consumer.

/// A partition of one of the consumer's topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// Position of the topic in [`super::KafkaOptions::topics`].
    pub topic: u16,
    /// Number of the partition in its topic.
    pub partition: i32,
}
