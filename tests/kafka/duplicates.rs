//! Records that a real Kafka holds twice, read by a process that is killed on the way: its sums,
//! verdicts and windows are those of a topic that holds each record once.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::support::broker::{Broker, unique};
use crate::support::events::{Events, MODELS};
use crate::support::sender::Sender;
use crate::support::service::Service;
use trueline::monitor::snapshot::StreamState;

const PARTITIONS: i32 = 4;
const RECORDS: u64 = 60_000;

fn config(brokers: &str, topic: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}"
instance = "one"
[kafka.options]
"session.timeout.ms" = "10000"
[[source]]
name = "events"
topics = ["{topic}"]
[source.fields]
id = "id"
score = "score"
time = "time_ms"
[[model]]
name = "*"
windows = [{{ width = "30m", slide = "10m" }}, {{ width = "10h", slide = "10m" }}]
lateness = "30m"
[model.alert]
stale_after = "7d"
"#
    )
}

/// One record in fifty comes again after up to a hundred others of its partition.
struct Topics {
    once: String,
    twice: String,
    sender: Sender,
    events: Events,
    sent: u64,
    again: BTreeMap<(u64, u64), (i32, String)>,
    repeats: u64,
}

impl Topics {
    fn send(&mut self, count: u64) {
        for i in self.sent..self.sent + count {
            let record = self.events.next_record();
            let record = record.replacen('{', &format!("{{\"id\":\"r{i}\","), 1);
            // In each partition the models take turns in the same order.
            let partition = (i / MODELS.len() as u64 % PARTITIONS as u64) as i32;
            self.sender.send(&self.once, partition, record.as_bytes());
            self.sender.send(&self.twice, partition, record.as_bytes());
            if i % 50 == 7 {
                self.again
                    .insert((i + i * 31 % 400, i), (partition, record));
            }
            while let Some((&(due, _), _)) = self.again.first_key_value()
                && due <= i
                && let Some((_, (partition, record))) = self.again.pop_first()
            {
                self.sender.send(&self.twice, partition, record.as_bytes());
                self.repeats += 1;
            }
        }
        self.sent += count;
    }

    fn close(&mut self, at_ms: i64) {
        let record = Events::clock_record(at_ms).replacen('{', "{\"id\":\"clock\",", 1);
        for topic in [&self.once, &self.twice] {
            for partition in 0..PARTITIONS {
                self.sender.send(topic, partition, record.as_bytes());
            }
        }
        self.sender.flush();
    }
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock after 1970").as_millis() as i64
}

/// The state of each model but for the wall clock's part in it and the order of first arrival.
fn streams(service: &Service) -> BTreeMap<String, StreamState> {
    let snapshot = trueline::store::load(&service.state()).expect("a snapshot that can be read");
    let streams = snapshot.expect("a snapshot").streams.into_iter();
    let timeless = streams.map(|mut stream| {
        stream.slot = None;
        (stream.name.clone(), stream)
    });
    timeless.collect()
}

#[test]
fn a_topic_with_repeats_gives_the_sums_of_one_without_although_the_reader_is_killed() {
    let name = "a_topic_with_repeats_gives_the_sums_of_one_without_although_the_reader_is_killed";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let [once, twice] = ["once", "twice"].map(|t| format!("trueline-{t}-{}", unique()));
    broker.create_topics(&[(&once, PARTITIONS), (&twice, PARTITIONS)]);
    let begin = now_ms() - 155 * 60_000;
    let step = 100 * 60_000 / RECORDS as i64;
    let mut topics = Topics {
        once,
        twice,
        sender: broker.producer(),
        events: Events::new(20_261_122, begin, step),
        sent: 0,
        again: BTreeMap::new(),
        repeats: 0,
    };
    let mut service = Service::start(&config(&broker.bootstrap, &topics.twice));
    service.wait_ready();
    for _ in 0..3 {
        // Two seconds of traffic, so that the kill meets records in flight and a snapshot behind.
        for _ in 0..20 {
            topics.send(RECORDS / 60);
            std::thread::sleep(Duration::from_millis(100));
        }
        service.end("KILL");
        service.start_again();
    }
    topics.close(now_ms());
    assert!(topics.repeats > RECORDS / 60);
    let each = RECORDS / MODELS.len() as u64;
    for model in MODELS {
        service.wait_for_n(model, "10h", each);
    }
    assert_eq!(service.counted("duplicate"), Some(topics.repeats as f64));
    assert_eq!(service.metric("trueline_ids_evicted_total", &[]), 0.0);
    assert_eq!(service.end("TERM"), Some(0));

    let mut clean = Service::start(&config(&broker.bootstrap, &topics.once));
    for model in MODELS {
        clean.wait_for_n(model, "10h", each);
    }
    assert_eq!(clean.end("TERM"), Some(0));
    let (ours, theirs) = (streams(&service), streams(&clean));
    assert!(ours.len() > MODELS.len(), "the models and the clock");
    assert!(ours == theirs, "states differ:\n{ours:?}\n{theirs:?}");
}
