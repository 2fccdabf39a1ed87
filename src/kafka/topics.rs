//! The topics of a consumer and their partitions, by name and by number.
//!
//! The first topics are subscribed to. The others are copartitioned: partition p of such a topic is
//! assigned together with partition p of the subscribed topic at the same index.

use super::KafkaOptions;
use rdkafka::TopicPartitionList;

/// A partition of one of the consumer's topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// Position of the topic in [`super::KafkaOptions::topics`].
    pub topic: u16,
    /// Number of the partition in its topic.
    pub partition: i32,
}

impl From<(u16, i32)> for Partition {
    #[inline]
    fn from((topic, partition): (u16, i32)) -> Partition {
        Partition { topic, partition }
    }
}

/// Names of all topics, and how many of them are subscribed.
#[derive(Clone)]
pub(super) struct Topics {
    pub names: Vec<String>,
    subscribed: usize,
}

impl Topics {
    /// The topics of these options.
    pub fn new(options: &KafkaOptions) -> Topics {
        Topics {
            names: options.topics.clone(),
            subscribed: options.subscribed().len(),
        }
    }

    /// Number of a topic.
    pub fn number(&self, name: &str) -> Option<u16> {
        let i = self.names.iter().position(|t| t == name)?;
        u16::try_from(i).ok()
    }

    /// Name of the topic of a partition.
    pub fn name(&self, p: Partition) -> &str {
        &self.names[usize::from(p.topic)]
    }

    /// Number of subscribed topics, which are the first ones.
    pub fn subscribed(&self) -> u16 {
        u16::try_from(self.subscribed).unwrap_or(u16::MAX)
    }

    /// Whether the group itself assigns this partition, because its topic is subscribed.
    pub fn is_subscribed(&self, p: Partition) -> bool {
        usize::from(p.topic) < self.subscribed
    }

    /// The subscribed topic with which this partition's topic is assigned.
    pub fn lead(&self, p: Partition) -> u16 {
        p.topic % self.subscribed().max(1)
    }

    /// The partitions of a rebalance, each with its copartitions.
    pub fn with_copartitions(&self, list: &TopicPartitionList) -> Vec<Partition> {
        let mut all = Vec::new();
        for e in list.elements() {
            let Some(topic) = self.number(e.topic()) else {
                continue;
            };
            let partition = e.partition();
            for topic in (usize::from(topic)..self.names.len()).step_by(self.subscribed.max(1)) {
                let topic = topic as u16;
                all.push(Partition { topic, partition });
            }
        }
        all
    }

    /// These partitions as a list of librdkafka.
    pub fn list(&self, partitions: &[Partition]) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for &p in partitions {
            list.add_partition(self.name(p), p.partition);
        }
        list
    }
}
