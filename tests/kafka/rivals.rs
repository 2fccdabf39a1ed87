//! Two processes where there may be one, on a real Kafka: both say so, the later one stops, a
//! restart that overlaps with its predecessor stops nobody, and a process that lost its name to
//! nobody takes it back. A process that its group refuses says so.

use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::support::broker::{Broker, unique};
use crate::support::late::now_ms;
use crate::support::sender::Sender;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;

/// Longer than a session of 6 s and what the grace period has beyond it.
const GRACE: Duration = Duration::from_secs(20);

fn config(brokers: &str, topic: &str, kafka: &str, state: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}"
statistics_interval = "1s"
{kafka}
[kafka.options]
"session.timeout.ms" = "6000"
[[source]]
topics = ["{topic}"]
on_missing_state = "earliest"
fields = {{ score = "score" }}
[[model]]
name = "fraud"
windows = [{{ width = "10s", slide = "2s" }}]
lateness = "2s"
[http]
listen = "LISTEN"
[state]
directory = "STATE"
interval = "1s"
{state}
"#
    )
}

struct Stage {
    topic: String,
    sender: Sender,
}

impl Stage {
    fn new(broker: &Broker) -> Stage {
        let topic = format!("trueline-rivals-{}", unique());
        broker.create_topics(&[(&topic, 2)]);
        Stage {
            topic,
            sender: broker.producer(),
        }
    }

    fn send(&mut self, n: u64) {
        for i in 0..n {
            let event = format!(
                r#"{{"model":"fraud","score":0.5,"outcome":{}}}"#,
                i.is_multiple_of(2)
            );
            let partition = (i % 2) as i32;
            self.sender
                .send_at(&self.topic, partition, now_ms(), event.as_bytes());
        }
        self.sender.flush();
    }
}

fn observed(service: &Service) -> f64 {
    service.counted("observed").unwrap_or(0.0)
}

/// The first one says what it shares, the second one stops by name, and the first one has
/// everything again.
fn the_later_stops(stage: &mut Stage, config: &str, said: &str) {
    let first = Service::start(config);
    first.wait_ready();
    let mut second = Service::start(config);
    let why = first.wait_not_ready(&[said, "that started at"]);
    println!("{why}");
    wait_for("the first to count the second", LIMIT, || {
        (first.metric("trueline_group_rivals", &[]) >= 1.0).then_some(())
    });
    assert_eq!(second.wait_end(), Some(77));
    let line = second.wait_for_line(&["error:", "which was there first, so this process stops"]);
    println!("{line}");
    first.wait_ready();
    assert_eq!(first.metric("trueline_group_rivals", &[]), 0.0);
    let before = observed(&first);
    stage.send(100);
    wait_for("the first to read all partitions", LIMIT, || {
        (observed(&first) >= before + 100.0).then_some(())
    });
    first.wait_ready();
}

#[test]
fn of_two_processes_in_a_group_without_a_state_topic_the_later_one_stops() {
    let name = "of_two_processes_in_a_group_without_a_state_topic_the_later_one_stops";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let mut stage = Stage::new(&broker);
    stage.send(100);
    let config = config(&broker.bootstrap, &stage.topic, "", "");
    the_later_stops(&mut stage, &config, "group of trueline-rivals");
}

#[test]
fn of_two_processes_with_one_instance_the_later_one_stops() {
    let name = "of_two_processes_with_one_instance_the_later_one_stops";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let mut stage = Stage::new(&broker);
    stage.send(100);
    let state = format!("topic = \"{}-state\"", stage.topic);
    let config = config(
        &broker.bootstrap,
        &stage.topic,
        "instance = \"same\"",
        &state,
    );
    the_later_stops(&mut stage, &config, "instance same");
}

#[test]
fn a_restart_that_overlaps_with_its_predecessor_stops_nobody() {
    let name = "a_restart_that_overlaps_with_its_predecessor_stops_nobody";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    for kafka in ["", "instance = \"same\""] {
        let mut stage = Stage::new(&broker);
        stage.send(100);
        let state = match kafka {
            "" => String::new(),
            _ => format!("topic = \"{}-state\"", stage.topic),
        };
        let config = config(&broker.bootstrap, &stage.topic, kafka, &state);
        let mut first = Service::start(&config);
        first.wait_ready();
        let second = Service::start(&config);
        first.wait_not_ready(&["that started at"]);
        assert_eq!(first.end("TERM"), Some(0));
        let begun = Instant::now();
        second.wait_ready();
        let before = observed(&second);
        stage.send(100);
        wait_for("the second to read all partitions", LIMIT, || {
            (observed(&second) >= before + 100.0).then_some(())
        });
        std::thread::sleep(GRACE.saturating_sub(begun.elapsed()));
        second.wait_ready();
    }
}

/// While the process is frozen, another client joins its group with another assignor, and the group
/// then refuses the process.
#[test]
fn a_process_that_its_group_refuses_says_so_until_it_is_let_in() {
    let name = "a_process_that_its_group_refuses_says_so_until_it_is_let_in";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let mut stage = Stage::new(&broker);
    stage.send(100);
    let (topic, bootstrap) = (stage.topic.clone(), &broker.bootstrap);
    let state = format!("topic = \"{topic}-state\"");
    let service = Service::start(&config(bootstrap, &topic, "", &state));
    service.wait_ready();
    wait_for("the first records", LIMIT, || {
        (observed(&service) >= 100.0).then_some(())
    });
    service.signal("STOP");
    let other: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", &topic)
        .set("session.timeout.ms", "6000")
        .set("partition.assignment.strategy", "range")
        .set("enable.auto.commit", "false")
        .create()
        .expect("a consumer");
    other.subscribe(&[&topic]).expect("subscribed");
    wait_for("the other client to have the partitions", LIMIT, || {
        let _ = other.poll(Duration::from_millis(100));
        (other.assignment().ok()?.count() == 2).then_some(())
    });
    service.signal("CONT");
    let part = format!("kafka {topic}");
    let why = service.wait_not_ready(&[&part, "took all partitions away"]);
    println!("{why}");
    drop(other);
    service.wait_ready();
    let before = observed(&service);
    stage.send(100);
    wait_for("all partitions to be read", LIMIT, || {
        (observed(&service) >= before + 100.0).then_some(())
    });
}

/// A member that takes the name and says nothing more is what a network failure leaves: librdkafka
/// joins twice where the first answer is lost.
#[test]
fn a_process_alone_takes_its_instance_back_from_a_silent_member() {
    let name = "a_process_alone_takes_its_instance_back_from_a_silent_member";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let mut stage = Stage::new(&broker);
    stage.send(100);
    let (topic, bootstrap) = (stage.topic.clone(), &broker.bootstrap);
    let state = format!("topic = \"{topic}-state\"");
    let config = config(bootstrap, &topic, "instance = \"same\"", &state);
    let service = Service::start(&config);
    service.wait_ready();
    let silent: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", &topic)
        .set("group.instance.id", "same")
        .set("session.timeout.ms", "6000")
        .set("partition.assignment.strategy", "cooperative-sticky")
        .set("enable.auto.commit", "false")
        .create()
        .expect("a consumer");
    silent.subscribe(&[&topic]).expect("subscribed");
    let why = wait_for("the process to lose its name", LIMIT, || {
        let _ = silent.poll(Duration::from_millis(100));
        let (status, body) = service.get("/ready")?;
        (status != 200).then_some(body)
    });
    assert!(why.contains("or this one when it came back"), "{why}");
    // Its session ends by itself: a member with an `instance` does not leave.
    drop(silent);
    service.wait_ready();
    let before = observed(&service);
    stage.send(100);
    wait_for("all partitions to be read", LIMIT, || {
        (observed(&service) >= before + 100.0).then_some(())
    });
    service.wait_for_line(&["taking the `instance` back"]);
}
