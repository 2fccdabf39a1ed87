//! From a real Kafka topic to verdicts over HTTP, with the process stopped, killed and cut off on
//! the way.
//!
//! The truth is known in each test: which models are calibrated, how many events each one had,
//! which records were bad. A last event of a model `clock` in every partition moves the watermark
//! past all others, so that the widest window ends up holding every event exactly once, whatever
//! happened on the way: an event lost or counted twice is a wrong n.

use crate::support;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::broker::{Broker, unique};
use crate::support::events::{BAD, Events, MODELS};
use crate::support::sender::Sender;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use trueline::monitor::snapshot::StreamState;

/// Partitions of the topics under test.
const PARTITIONS: i32 = 4;

/// The topics of one test and what was put into them.
struct Stage {
    topic: String,
    dead: String,
    sender: Sender,
    events: Events,
    /// Good events of the three models.
    good: u64,
    /// Bad records, as sent.
    bad: Vec<String>,
}

impl Stage {
    /// New topics; events will span the 100 minutes that ended 10 minutes ago.
    fn new(broker: &Broker, events: u64) -> Stage {
        let topic = format!("trueline-test-{}", unique());
        let dead = format!("{topic}.dead");
        broker.create_topics(&[(&topic, PARTITIONS), (&dead, 1)]);
        let begin = now_ms() - 155 * 60_000;
        let step = 100 * 60_000 / events as i64;
        let (sender, events) = (broker.producer(), Events::new(20_261_121, begin, step));
        Stage {
            topic,
            dead,
            sender,
            events,
            good: 0,
            bad: Vec::new(),
        }
    }

    /// In each partition the models take turns in the same order: a stream's share of the budget of
    /// false alarms goes by which was first seen, and which partition is read first is the broker's
    /// affair.
    fn send_good(&mut self, count: u64) {
        for _ in 0..count {
            let record = self.events.next_record();
            let turn = self.good / MODELS.len() as u64;
            let partition = (turn % PARTITIONS as u64) as i32;
            self.sender.send(&self.topic, partition, record.as_bytes());
            self.good += 1;
        }
    }

    fn send_bad(&mut self) {
        let record = self.events.bad_record(self.bad.len());
        let partition = (self.bad.len() % PARTITIONS as usize) as i32;
        self.sender.send(&self.topic, partition, record.as_bytes());
        self.bad.push(record);
    }

    /// Moves the watermark of every partition past all events, which ended 55 minutes ago, and
    /// waits for the broker to have all.
    fn close(&mut self) {
        let record = Events::clock_record(now_ms());
        for partition in 0..PARTITIONS {
            self.sender.send(&self.topic, partition, record.as_bytes());
        }
        self.sender.flush();
    }

    /// Events that each of the three models had. It is an error to ask when they are not equal.
    fn each(&self) -> u64 {
        assert_eq!(self.good % 3, 0);
        self.good / 3
    }

    fn config(&self, broker: &Broker) -> String {
        config(&broker.bootstrap, "one", &self.topic, &self.dead)
    }
}

/// A configuration whose group is `topic-instance`. Event time runs a thousand times faster here
/// than in the world, so the lateness is longer as well.
fn config(brokers: &str, instance: &str, topic: &str, dead: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}-{instance}"
instance = "{instance}"
statistics_interval = "1s"
[kafka.options]
"session.timeout.ms" = "10000"
"reconnect.backoff.max.ms" = "1000"
[[source]]
name = "events"
topics = ["{topic}"]
dead_letter = "{dead}"
[source.fields]
score = "score"
time = "time_ms"
[[model]]
name = "*"
windows = [{{ width = "30m", slide = "10m" }}, {{ width = "10h", slide = "10m" }}]
lateness = "30m"
[model.alert]
window_alerts = true
stale_after = "7d"
"#
    )
}

#[test]
fn a_real_topic_becomes_the_right_verdicts_and_every_record_one_counter() {
    let name = "a_real_topic_becomes_the_right_verdicts_and_every_record_one_counter";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let mut stage = Stage::new(&broker, 201_000);
    let service = Service::start(&stage.config(&broker));
    for _ in 0..201 {
        stage.send_good(1000);
        stage.send_bad();
    }
    stage.close();
    service.wait_ready();

    for (model, verdict) in MODELS
        .iter()
        .zip(["calibrated", "miscalibrated", "miscalibrated"])
    {
        let window = service.wait_for_n(model, "10h", stage.each());
        assert_eq!(window["verdict"], verdict, "{model}: {window}");
    }
    let direction = service.window("boaster", "10h").expect("a window")["direction"].to_string();
    assert!(direction.contains("over"), "{direction}");
    let direction = service.window("rare", "10h").expect("a window")["direction"].to_string();
    assert!(direction.contains("too_low"), "{direction}");

    let read = service.metric("trueline_records_read_total", &[]);
    assert_eq!(read, stage.sender.sent as f64);
    assert_eq!(
        service.metric("trueline_records_total", &[]),
        read,
        "dispositions add up"
    );
    let rejected = service.metric("trueline_records_total", &[r#"disposition="rejected""#]);
    assert_eq!(rejected, stage.bad.len() as f64);
    for (_, reason) in BAD {
        let label = format!("reason=\"{reason}\"");
        let expected = (0..stage.bad.len())
            .filter(|i| BAD[i % BAD.len()].1 == reason)
            .count();
        assert_eq!(
            service.metric("trueline_records_total", &[&label]),
            expected as f64,
            "{reason}"
        );
    }

    let dead = wait_for("the dead letters", LIMIT, || {
        Some(broker.read_all(&stage.dead)).filter(|dead| dead.len() >= stage.bad.len())
    });
    let mut kept: Vec<&[u8]> = dead.iter().map(|d| d.payload.as_slice()).collect();
    let mut sent: Vec<&[u8]> = stage.bad.iter().map(|b| b.as_bytes()).collect();
    kept.sort_unstable();
    sent.sort_unstable();
    assert!(kept == sent, "the dead letters are not the bad records");
    let told = |d: &support::broker::Read| d.headers.iter().any(|h| h.1.contains(&stage.topic));
    assert!(
        dead.iter().all(told),
        "a dead letter does not name the topic it came from"
    );
}

#[test]
fn ending_and_killing_it_in_mid_stream_loses_nothing_and_counts_nothing_twice() {
    let name = "ending_and_killing_it_in_mid_stream_loses_nothing_and_counts_nothing_twice";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let mut stage = Stage::new(&broker, 99_000);
    let mut service = Service::start(&stage.config(&broker));
    service.wait_ready();
    for signal in ["TERM", "KILL", "TERM", "KILL"] {
        // Two seconds of traffic, so that the signal meets records in flight and a snapshot behind.
        for _ in 0..20 {
            stage.send_good(900);
            std::thread::sleep(Duration::from_millis(100));
        }
        let code = service.end(signal);
        if signal == "TERM" {
            assert_eq!(code, Some(0), "an orderly end\n{}", service.log_tail());
        }
        service.start_again();
    }
    stage.send_good(27_000);
    stage.close();
    for model in MODELS {
        service.wait_for_n(model, "10h", stage.each());
    }
    assert_eq!(service.end("TERM"), Some(0));

    // One that reads the same topic without interruption ends with the same sums, verdicts,
    // offsets.
    let again = config(&broker.bootstrap, "two", &stage.topic, &stage.dead);
    let mut uninterrupted = Service::start(&again);
    for model in MODELS {
        uninterrupted.wait_for_n(model, "10h", stage.each());
    }
    assert_eq!(uninterrupted.end("TERM"), Some(0));
    let (ours, theirs) = (last_state(&service), last_state(&uninterrupted));
    assert_eq!(ours.0.len() as i32, PARTITIONS);
    assert!(ours.1.len() > MODELS.len(), "the models and the clock");
    assert!(ours == theirs, "states differ:\n{ours:?}\n{theirs:?}");
}

/// Offsets by partition, and the state of each model but for the wall clock's part in it.
fn last_state(service: &Service) -> (BTreeMap<i32, i64>, BTreeMap<String, StreamState>) {
    let snapshot = trueline::store::load(&service.state())
        .expect("a snapshot that can be read")
        .expect("a snapshot");
    let offsets = snapshot.partitions.positions();
    let streams = snapshot.streams.into_iter().map(|mut stream| {
        // Which model came first is the brokers' affair.
        stream.slot = None;
        (stream.name.clone(), stream)
    });
    (
        offsets.map(|at| (at.partition, at.offset)).collect(),
        streams.collect(),
    )
}

#[test]
fn a_broker_that_freezes_and_restarts_costs_no_event() {
    let name = "a_broker_that_freezes_and_restarts_costs_no_event";
    let Some(mut broker) = Broker::own(name) else {
        return;
    };
    let mut stage = Stage::new(&broker, 90_000);
    let mut service = Service::start(&stage.config(&broker));
    service.wait_ready();
    stage.send_good(30_000);
    broker.signal("STOP");
    // Longer than a session: the group is lost before the broker is gone.
    std::thread::sleep(Duration::from_secs(12));
    assert!(
        service.get("/metrics").is_some(),
        "metrics are answered while the broker is frozen"
    );
    broker.signal("CONT");
    stage.send_good(30_000);
    stage.sender.flush();
    broker.stop();
    // Down long enough for several attempts to reconnect.
    std::thread::sleep(Duration::from_secs(3));
    broker.start();
    stage.send_good(30_000);
    stage.close();
    for model in MODELS {
        service.wait_for_n(model, "10h", stage.each());
    }
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn a_broker_that_is_down_at_the_start_is_named_and_read_once_it_comes() {
    let name = "a_broker_that_is_down_at_the_start_is_named_and_read_once_it_comes";
    let Some(mut broker) = Broker::own(name) else {
        return;
    };
    let mut stage = Stage::new(&broker, 30_000);
    stage.send_good(30_000);
    stage.close();
    broker.stop();
    let mut service = Service::start(&stage.config(&broker));
    let said = service.wait_not_ready(&[&broker.bootstrap]);
    assert!(
        said.contains("still trying: check `brokers` and the network"),
        "{said}"
    );
    broker.start();
    service.wait_ready();
    for model in MODELS {
        service.wait_for_n(model, "10h", stage.each());
    }
    assert_eq!(service.end("TERM"), Some(0));
}

#[test]
fn a_topic_that_is_missing_is_named_and_is_read_once_it_is_made() {
    let name = "a_topic_that_is_missing_is_named_and_is_read_once_it_is_made";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-test-{}", unique());
    let dead = format!("{topic}.dead");
    let refreshed = "[kafka.options]\n\"topic.metadata.refresh.interval.ms\" = \"2000\"";
    let text = config(&broker.bootstrap, "one", &topic, &dead);
    let service = Service::start(&text.replace("[kafka.options]", refreshed));
    let remedy = format!("kafka topic `{topic}`");
    let said = service.wait_not_ready(&[&remedy]);
    assert!(said.contains("create it or correct `topics`"), "{said}");
    service.wait_for_line(&["ERROR", &remedy]);
    let (code, said) = service.check();
    assert_eq!(code, Some(69), "{said}");
    assert!(
        said.contains(&remedy) && said.contains("create it or correct `topics`"),
        "{said}"
    );

    broker.create_topics(&[(&topic, PARTITIONS), (&dead, 1)]);
    let mut sender = broker.producer();
    sender.send(&topic, 0, Events::clock_record(now_ms()).as_bytes());
    sender.flush();
    service.wait_ready();
    wait_for("the record", LIMIT, || {
        (service.metric("trueline_records_read_total", &[]) == 1.0).then_some(())
    });
}

#[test]
fn refused_credentials_are_reported_with_the_remedy_and_right_ones_work() {
    let name = "refused_credentials_are_reported_with_the_remedy_and_right_ones_work";
    let Some(broker) = Broker::own(name) else {
        return;
    };
    let topic = format!("trueline-test-{}", unique());
    let dead = format!("{topic}.dead");
    broker.create_topics(&[(&topic, 1), (&dead, 1)]);
    let text = |password: &str| {
        let sasl = format!(
            "[kafka.sasl]\nmechanism = \"PLAIN\"\nusername = \"trueline\"\npassword = \"{password}\"\n[kafka.options]"
        );
        config(&broker.sasl(), "one", &topic, &dead).replace("[kafka.options]", &sasl)
    };
    let wrong = Service::start(&text("wrong-password"));
    let said = wrong.wait_not_ready(&["refused the credentials"]);
    assert!(said.contains("`username` and `password`"), "{said}");
    wrong.wait_for_line(&["ERROR", "refused the credentials"]);
    let (code, said) = wrong.check();
    assert_eq!(code, Some(69), "{said}");
    assert!(
        said.contains("refused the credentials") && said.contains("`username` and `password`"),
        "{said}"
    );
    assert!(!said.contains("wrong-password"), "{said}");
    drop(wrong);
    Service::start(&text("right")).wait_ready();
}

#[test]
fn a_record_of_ten_mebibytes_is_counted_and_dead_lettered_and_the_rest_goes_on() {
    let name = "a_record_of_ten_mebibytes_is_counted_and_dead_lettered_and_the_rest_goes_on";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let mut stage = Stage::new(&broker, 3_000);
    stage.topic += ".large";
    stage.dead += ".large";
    broker.create_topics_for(&[(&stage.topic, PARTITIONS), (&stage.dead, 1)], 12 << 20);
    let service = Service::start(&stage.config(&broker));
    stage.send_good(1_500);
    let mut large = Events::clock_record(now_ms());
    large.truncate(large.len() - 1);
    large += &format!(r#","note":"{}"}}"#, "x".repeat(10 << 20));
    stage.sender.send(&stage.topic, 1, large.as_bytes());
    stage.send_good(1_500);
    stage.close();
    for model in MODELS {
        service.wait_for_n(model, "10h", stage.each());
    }
    let too_large = [r#"reason="too_large""#];
    assert_eq!(service.metric("trueline_records_total", &too_large), 1.0);
    service.wait_for_line(&["too_large", "raise the limit", &stage.topic]);
    let dead = wait_for("the dead letter", LIMIT, || {
        broker.read_all(&stage.dead).pop()
    });
    assert!(
        dead.payload == large.as_bytes(),
        "the dead letter is not the record"
    );
    assert!(dead.headers.iter().any(|h| h.1 == "too_large"));
}

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_millis() as i64
}
