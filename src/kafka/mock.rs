//! librdkafka's mock broker, for tests.

use super::KafkaOptions;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::{Offset, TopicPartitionList};

/// A broker with this topic of one partition, and options of a client for it.
pub(super) fn broker(topic: &str) -> (MockCluster<'static, DefaultProducerContext>, KafkaOptions) {
    let mock = MockCluster::new(1).expect("a broker");
    mock.create_topic(topic, 1, 1).expect("a topic");
    let options = KafkaOptions {
        brokers: mock.bootstrap_servers(),
        ..KafkaOptions::default()
    };
    (mock, options)
}

/// Reads the topic from its first record on.
pub(super) fn reader(options: &KafkaOptions, topic: &str) -> BaseConsumer {
    let mut config = options.client_config();
    let consumer: BaseConsumer = config.set("group.id", "g").create().expect("a consumer");
    let mut list = TopicPartitionList::new();
    let begun = list.add_partition_offset(topic, 0, Offset::Beginning);
    begun.expect("an offset");
    consumer.assign(&list).expect("assigned");
    consumer
}
