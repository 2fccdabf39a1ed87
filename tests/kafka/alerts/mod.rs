//! Alerts from records on a broker to those who are notified, with the process, the receivers and
//! the broker's topic going away in between.
//!
//! Each change of an alert is sent to each sink once, in order; consumption never waits for a sink;
//! an alert that fired before a crash fires after it, and nobody is notified of it twice.

mod alertmanager;
mod commands;
mod kills;
mod outages;
mod partitions;
pub mod receiver;
mod records;
mod reloads;

use crate::support::service::Service;
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

/// 2023-11-14, a multiple of every slide.
pub const BEGIN_MS: i64 = 1_700_000_064_000;

/// Events of each model in a phase, 10 ms apart.
const PHASE: i64 = 2_000;

pub fn config(brokers: &str, topic: &str, snapshot: &str, sinks: &str) -> String {
    format!(
        r#"version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}"
statistics_interval = "300ms"
# The mock broker keeps a killed member for one or two of these.
options = {{ "session.timeout.ms" = "6000" }}
[[source]]
topics = ["{topic}"]
[source.fields]
time = "time_ms"
score = "score"
[[model]]
name = "*"
windows = ["6s"]
lateness = "1s"
[model.test]
alpha = 0.001
tolerance = 0.05
min_events = 200
# Phases of twenty seconds, good and bad in turn, are no clusters here.
overdispersion = "show"
[model.alert]
window_alerts = true
keep_firing_for = "2s"
flap_within = "0s"
stale_after = "1h"
[detector]
budget = "none"
[notify]
external_url = "http://monitor:9464"
# The events are years old.
max_age = "3650d"
{sinks}
[http]
listen = "LISTEN"
[state]
directory = 'STATE'
interval = "{snapshot}"
"#
    )
}

/// A mock cluster with the topic `scored`, and its address.
pub fn scored() -> (MockCluster<'static, DefaultProducerContext>, String) {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    (cluster, brokers)
}

/// The records of a phase: each model's scores are true, or twice as high as what happens.
pub fn phase(models: &[&str], number: i64, good: bool) -> Vec<String> {
    let mut records = Vec::new();
    for i in number * PHASE..(number + 1) * PHASE {
        for model in models {
            let score = (i as f64 * 0.414_213_562_373).fract();
            let chance = if good { score } else { 0.5 * score };
            let happened = (i as f64 * 0.618_033_988_749).fract() < chance;
            let time_ms = BEGIN_MS + i * 10;
            records.push(format!(
                r#"{{"model":"{model}","time_ms":{time_ms},"score":{score},"outcome":{happened}}}"#
            ));
        }
    }
    records
}

pub fn produce(brokers: &str, topic: &str, records: &[String]) {
    produce_to(brokers, topic, &[records]);
}

/// Produces the records of each partition, a few of each in turn: a partition that is read to its
/// end holds back no other, so one that got its records much later than the other would find them
/// late.
fn produce_to(brokers: &str, topic: &str, partitions: &[&[String]]) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("enable.idempotence", "true")
        .create()
        .expect("a producer");
    let all = || {
        producer
            .flush(Duration::from_secs(60))
            .expect("all delivered")
    };
    for i in 0..partitions.iter().map(|p| p.len()).max().unwrap_or(0) {
        for (partition, records) in (0..).zip(partitions) {
            let Some(payload) = records.get(i) else {
                continue;
            };
            let record = BaseRecord::<(), str>::to(topic)
                .payload(payload)
                .partition(partition);
            producer.send(record).expect("room in the queue");
        }
        if partitions.len() > 1 && i % 50 == 0 {
            all();
        }
    }
    all();
}

/// Keys of notices, which must be told once each, and for each alert in turns of firing and
/// resolved, later each time.
pub fn keys_in_order(what: &str, notices: &[Value]) -> Vec<String> {
    let text = |n: &Value, key: &str| n[key].as_str().expect(key).to_owned();
    let mut last: BTreeMap<String, (String, i64)> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for notice in notices {
        let (key, status) = (text(notice, "key"), text(notice, "status"));
        assert!(seen.insert(key.clone()), "{what}: {key} came twice");
        let at_ms = notice["at_ms"].as_i64().expect("a moment");
        let before = last.insert(text(notice, "fingerprint"), (status.clone(), at_ms));
        let (was, was_ms) = before.unwrap_or(("resolved".to_owned(), i64::MIN));
        assert!(
            was != status && was_ms < at_ms,
            "{what}: {key} out of order"
        );
    }
    notices.iter().map(|n| text(n, "key")).collect()
}

/// Fingerprints of what fires, and since when.
fn firing(service: &Service) -> Vec<(String, i64)> {
    let Some((200, body)) = service.get("/api/v1/alerts") else {
        return Vec::new();
    };
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    let alerts = answer["alerts"].as_array().expect("alerts").iter();
    let firing = alerts.filter(|a| a["state"] == "firing");
    let firing = firing.map(|a| {
        let fingerprint = a["fingerprint"].as_str().expect("a fingerprint");
        (
            fingerprint.to_owned(),
            a["since_ms"].as_i64().expect("since when"),
        )
    });
    firing.collect()
}

pub fn trueline(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(arguments)
        .output()
        .expect("trueline starts");
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}
