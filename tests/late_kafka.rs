//! Predictions and outcomes on two topics of a real Kafka, with the process killed at random moments: the
//! sums, counters and verdicts must be those of a pass that nobody disturbed, bit for bit.
//!
//! `TRUELINE_KILLS` and `TRUELINE_EVENTS` make it as long as wanted; in CI it is short.

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use support::broker::{Broker, Sender, unique};
use support::service::{LIMIT, Service};
use support::wait_for;
use trueline::collect::SourceCounters;
use trueline::stats::rng::Rng;
use trueline::store::snapshot::SubjectState;

const PARTITIONS: i32 = 4;
const MINUTE: i64 = 60_000;

fn of_environment(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|v| v.parse().ok());
    given.unwrap_or(default)
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock after 1970").as_millis() as i64
}

/// One record, and where it goes.
struct Record {
    time_ms: i64,
    outcome: bool,
    partition: i32,
    text: String,
}

/// Predictions over the 100 minutes that ended ten minutes ago, a fifth without outcome, some outcomes twice
/// and some later than the five minutes that they have, some predictions twice.
fn records(n: u64) -> Vec<Record> {
    let mut rng = Rng::new(20_261_121);
    let begin = now_ms() - 110 * MINUTE;
    let step = (100 * MINUTE) as f64 / n as f64;
    let mut all = Vec::new();
    for id in 0..n {
        let partition = (id % PARTITIONS as u64) as i32;
        let at = begin + (id as f64 * step) as i64;
        let (score, model) = (rng.uniform(), id % 3);
        let happened = rng.uniform() < score;
        let mut put = |time_ms: i64, outcome: bool, text: String| {
            all.push(Record {
                time_ms,
                outcome,
                partition,
                text,
            });
        };
        let prediction = |time_ms: i64, score: f64| {
            format!(r#"{{"id":"{id}","model":"m{model}","time_ms":{time_ms},"score":{score}}}"#)
        };
        put(at, false, prediction(at, score));
        if rng.uniform() < 0.02 {
            let again = at + 1 + (rng.uniform() * 20_000.0) as i64;
            let other = if rng.uniform() < 0.5 {
                score
            } else {
                1.0 - score
            };
            put(again, false, prediction(again, other));
        }
        let mut delay = || (-(1.0 - rng.uniform()).ln() * MINUTE as f64 * 1.5) as i64;
        let (first, second) = (at + delay(), at + delay());
        let outcome =
            |time_ms: i64, y: bool| format!(r#"{{"id":"{id}","time_ms":{time_ms},"outcome":{y}}}"#);
        let draw = rng.uniform();
        if draw >= 0.2 {
            put(first, true, outcome(first, happened));
        }
        if draw >= 0.95 {
            put(second, true, outcome(second, !happened));
        }
    }
    all.sort_by_key(|r| r.time_ms);
    all
}

fn config(brokers: &str, instance: &str, topics: &[String; 2]) -> String {
    let [predictions, outcomes] = topics;
    format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{predictions}-{instance}"
instance = "{instance}"
statistics_interval = "1s"
[kafka.options]
"session.timeout.ms" = "10000"
[[source]]
topics = ["{predictions}"]
[source.fields]
id = "id"
time = "time_ms"
score = "score"
[source.outcomes]
topics = ["{outcomes}"]
maturity = "5m"
time = "time_ms"
on_missing = "negative"
revise = true
[[model]]
name = "*"
windows = [{{ width = "30m", slide = "10m" }}, {{ width = "10h", slide = "10m" }}]
lateness = "30m"
[model.alert]
stale_after = "7d"
[http]
listen = "LISTEN"
[state]
directory = "STATE"
interval = "1s"
"#
    )
}

/// Moves the watermark of every partition of both topics past all others.
fn close(sender: &mut Sender, topics: &[String; 2]) {
    let time_ms = now_ms() + 45 * MINUTE;
    for partition in 0..PARTITIONS {
        let id = format!("clock{partition}");
        let prediction =
            format!(r#"{{"id":"{id}","model":"clock","time_ms":{time_ms},"score":0.5}}"#);
        let outcome = format!(r#"{{"id":"{id}","time_ms":{time_ms},"outcome":true}}"#);
        sender.send(&topics[0], partition, prediction.as_bytes());
        sender.send(&topics[1], partition, outcome.as_bytes());
    }
    sender.flush();
}

/// What a process knows in the end, but for the wall clock's part in it and the order of first arrival.
type Known = (
    BTreeMap<(u16, i32), i64>,
    Vec<SourceCounters>,
    BTreeMap<String, SubjectState>,
);

fn known(service: &Service) -> Known {
    let snapshot = trueline::store::load(&service.state())
        .expect("a snapshot that can be read")
        .expect("a snapshot");
    let positions = snapshot.partitions.positions();
    let subjects = snapshot.subjects.into_iter().map(|mut subject| {
        subject.seen_ms = None;
        subject.slot = 0;
        (subject.name.clone(), subject)
    });
    let counters = snapshot.counters.sources();
    (
        positions
            .map(|p| ((p.source, p.partition), p.offset))
            .collect(),
        counters.map(|(_, c)| c.clone()).collect(),
        subjects.collect(),
    )
}

/// Waits until all records were read and everything before the clock is mature.
fn settle(service: &Service, records: u64) {
    let read = || {
        let (_, text) = service.get("/metrics")?;
        let sum = |name: &str| -> f64 {
            let lines = text.lines().filter(|l| l.starts_with(name));
            lines
                .filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok())
                .sum()
        };
        let open = sum("trueline_records_open{") as u64;
        // The predictions of the clock are never mature here.
        let done =
            sum("trueline_records_read_total{") as u64 == records && open == PARTITIONS as u64;
        done.then_some(())
    };
    wait_for("all records to be read and mature", 2 * LIMIT, read);
}

#[test]
fn kills_at_random_moments_leave_the_sums_of_one_undisturbed_pass() {
    let name = "kills_at_random_moments_leave_the_sums_of_one_undisturbed_pass";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let kills = of_environment("TRUELINE_KILLS", 6);
    let records = records(of_environment("TRUELINE_EVENTS", 60_000));
    let topics = ["predictions", "outcomes"].map(|t| format!("trueline-late-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], PARTITIONS), (&topics[1], PARTITIONS)]);
    let mut sender = broker.producer();
    let mut service = Service::start(&config(&broker.bootstrap, "one", &topics));
    service.wait_ready();

    let mut rng = Rng::new(7);
    let share = records.len() / kills as usize + 1;
    for part in records.chunks(share) {
        // About two seconds of traffic, and the kill somewhere in it.
        let kill = (rng.uniform() * 20.0) as usize;
        for (i, chunk) in part.chunks(part.len().div_ceil(20)).enumerate() {
            for r in chunk {
                let topic = &topics[usize::from(r.outcome)];
                sender.send(topic, r.partition, r.text.as_bytes());
            }
            std::thread::sleep(Duration::from_millis(100));
            if i == kill {
                service.end("KILL");
                service.start_again();
            }
        }
    }
    close(&mut sender, &topics);
    let all = records.len() as u64 + 2 * PARTITIONS as u64;
    settle(&service, all);
    assert_eq!(service.end("TERM"), Some(0));

    let mut undisturbed = Service::start(&config(&broker.bootstrap, "two", &topics));
    settle(&undisturbed, all);
    assert_eq!(undisturbed.end("TERM"), Some(0));

    let (ours, theirs) = (known(&service), known(&undisturbed));
    assert_eq!(ours.0, theirs.0, "offsets");
    assert_eq!(ours.1, theirs.1, "counters");
    let total = &ours.1[1];
    assert!(
        total.matched > 1000 && total.revised > 100 && total.duplicate > 100,
        "{total:?}"
    );
    assert!(ours.1.iter().all(|c| c.records == c.disposed()));
    assert_eq!(ours.2.len(), 4, "three models and the clock");
    for (model, state) in &ours.2 {
        assert!(*state == theirs.2[model], "state of {model} differs");
    }
}
