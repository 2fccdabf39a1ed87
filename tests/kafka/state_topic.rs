//! The settings of a state topic.

use std::time::Duration;

use crate::support::broker::{Broker, unique};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use trueline::kafka::{KafkaOptions, ReadState, StateTopic};

#[test]
fn a_topic_that_may_be_compacted_before_a_judge_has_read_it_is_named_and_ours_is_not() {
    let test = "a_topic_that_may_be_compacted_before_a_judge_has_read_it_is_named_and_ours_is_not";
    let Some(broker) = Broker::any(test) else {
        return;
    };
    let options = KafkaOptions {
        brokers: broker.bootstrap.clone(),
        ..KafkaOptions::default()
    };
    let state = |name: &str| StateTopic::new(&options, name, 1 << 10).expect("a client");
    let mut ours = state(&format!("trueline-state-{}", unique()));
    ours.state_partition(0, &[]).expect("it is made");
    assert_eq!(ours.misconfigured(true), Ok(None));

    let name = format!("trueline-state-{}", unique());
    let mut client = ClientConfig::new();
    client.set("bootstrap.servers", &broker.bootstrap);
    let admin: AdminClient<DefaultClientContext> = client.create().expect("an admin client");
    let old = NewTopic::new(&name, 1, TopicReplication::Fixed(1)).set("cleanup.policy", "compact");
    let wait = AdminOptions::new().operation_timeout(Some(Duration::from_secs(20)));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let made = runtime.block_on(admin.create_topics([&old], &wait));
    made.expect("an answer")[0].as_ref().expect("it is made");
    let theirs = state(&name);
    assert_eq!(theirs.misconfigured(false), Ok(None));
    let said = theirs.misconfigured(true).expect("an answer");
    let said = said.expect("it has no such setting").to_string();
    assert!(said.contains("set min.compaction.lag.ms=60000"), "{said}");
}
