//! The peak of a real process against what `trueline check` prints: the bound holds, and the
//! estimate is near.
//!
//! Small in CI. With `TRUELINE_MEMORY=1` the same with 10, 200 and 1000 streams, with another
//! number with so many streams; the table in `deploy/guide/operation.md` is its output.

use std::time::Duration;

use trueline::config::Config;
use trueline::config::bounds::{Expected, MemoryBound, human};
use trueline::config::value::Outside;
use trueline::stats::rng::Rng;

use crate::support::broker::{Broker, unique};
use crate::support::late::{self, of_environment, send};
use crate::support::sender::Sender;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;

/// Event time of the first events: it moves by itself, so that hours take seconds.
const BEGIN_MS: i64 = 1_700_000_000_000;
/// How near the estimate is to what is measured, as a factor.
const NEAR: f64 = 2.5;

/// What a process reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// All partitions advance together.
    InStep,
    /// One partition is held, the other is ahead by the whole window.
    OutOfStep,
    /// Everything lies there when the process starts.
    CatchUp,
    /// In step, with clusters.
    Clusters,
    /// Out of step, with the state in a topic.
    Topic,
}

#[derive(Debug, Clone, Copy)]
struct Load {
    case: Case,
    streams: u64,
    /// Per pane and stream.
    events: u64,
    /// Of the longest window.
    hours: u64,
}

const CASES: [Case; 5] = [
    Case::InStep,
    Case::OutOfStep,
    Case::CatchUp,
    Case::Clusters,
    Case::Topic,
];

const PARTITIONS: i32 = 2;
/// A tenth of the shortest window.
const PANE_MS: u64 = 60_000;

impl Load {
    fn panes(&self) -> u64 {
        self.hours * 3_600_000 / PANE_MS
    }

    fn config(&self, brokers: &str, topic: &str) -> String {
        let cluster = match self.case {
            Case::Clusters => "cluster = \"user\"\n",
            _ => "",
        };
        let state = match self.case {
            Case::Topic => format!("topic = \"{topic}-state\""),
            _ => String::new(),
        };
        format!(
            r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}"
statistics_interval = "1s"
[[source]]
topics = ["{topic}"]
[source.fields]
score = "score"
time = "time_ms"
{cluster}
[[model]]
name = "*"
windows = [{{ width = "10m", slide = "1m" }}, {{ width = "{}h", slide = "{}m" }}]
lateness = "1m"
[limits]
streams_max = {}
[http]
listen = "LISTEN"
[state]
directory = "STATE"
interval = "2s"
{state}
"#,
            self.hours, self.hours, self.streams
        )
    }

    /// Sends the events of one pane of event time to a partition.
    fn send_pane(&self, sender: &mut Sender, topic: &str, at: (i32, u64), rng: &mut Rng) {
        let (partition, pane) = at;
        for i in 0..self.events * self.streams {
            let time =
                BEGIN_MS + (pane * PANE_MS + i * PANE_MS / (self.events * self.streams)) as i64;
            let (score, user) = (rng.uniform(), (rng.uniform() * 5_000.0) as u64);
            let outcome = rng.uniform() < score;
            let event = format!(
                r#"{{"model":"m{}","score":{score:.4},"outcome":{outcome},"time_ms":{time},"user":"u{user}"}}"#,
                i % self.streams
            );
            sender.send_at(topic, partition, time, event.as_bytes());
        }
    }
}

/// What the configuration says without an environment.
fn config_of(service: &Service) -> Config {
    let text = std::fs::read_to_string(service.config()).expect("the configuration");
    let outside = Outside {
        variable: &|_| None,
        directory: std::path::PathBuf::new(),
    };
    Config::parse(&text, "memory.toml", &outside).expect("a sound configuration")
}

/// Bytes in readable form, of what was measured, printed and expected.
fn judge(what: &str, service: &Service, expected: Expected) -> Vec<String> {
    let config = config_of(service);
    let bound = MemoryBound::of(&config);
    let most = match config.state.topic {
        None => bound.total(),
        Some(_) => bound.moving(PARTITIONS as u64),
    };
    let peak = service.peak_bytes();
    let estimate = bound.estimate(&config, expected);
    let engine = service.metric("trueline_state_bytes", &[]) as u64;
    println!(
        "{what}: peak {}, of it the engine {}, estimate {}, bound {} ({:.1} times the peak)",
        human(peak),
        human(engine),
        human(estimate),
        human(most),
        most as f64 / peak as f64,
    );
    let factor = estimate as f64 / peak as f64;
    let mut wrong = Vec::new();
    if peak > most {
        wrong.push(format!("{what}: more than the bound {bound:?}"));
    }
    if !(1.0 / NEAR..=NEAR).contains(&factor) {
        wrong.push(format!("{what}: estimate off by {factor}"));
    }
    wrong
}

/// Waits until so many records were read and written.
fn wait_read(service: &Service, n: u64) {
    wait_for("all events to be counted", 4 * LIMIT, || {
        let scrape = service.scrape()?;
        (scrape.sum("trueline_records_read_total", &[]) >= n as f64).then_some(())
    });
    // A snapshot or two of all of it.
    std::thread::sleep(Duration::from_secs(5));
}

fn run(broker: &Broker, load: Load) -> Vec<String> {
    let topic = format!("trueline-memory-{}", unique());
    broker.create_topic_of_any_time(&topic, PARTITIONS);
    let config = load.config(&broker.bootstrap, &topic);
    let mut rng = Rng::new(7);
    let mut sender = broker.producer();
    let held = match load.case {
        Case::OutOfStep | Case::Topic => {
            load.send_pane(&mut sender, &topic, (1, 0), &mut rng);
            sender.flush();
            let held = broker.transactional(&topic);
            held.begin();
            Some(held)
        }
        _ => None,
    };
    if let Some(mut held) = held {
        load.send_pane(&mut held, &topic, (1, 1), &mut rng);
        held.flush();
        let service = Service::start(&config);
        service.wait_ready();
        for pane in 0..load.panes() {
            load.send_pane(&mut sender, &topic, (0, pane), &mut rng);
        }
        sender.flush();
        let wrong = finish(
            &service,
            load,
            (load.panes() + 1) * load.events * load.streams,
        );
        held.end(false);
        return wrong;
    }
    let early = (load.case != Case::CatchUp).then(|| Service::start(&config));
    early.iter().for_each(Service::wait_ready);
    for pane in 0..load.panes() {
        load.send_pane(&mut sender, &topic, ((pane % 2) as i32, pane), &mut rng);
    }
    sender.flush();
    let service = early.unwrap_or_else(|| Service::start(&config));
    finish(&service, load, load.panes() * load.events * load.streams)
}

fn finish(service: &Service, load: Load, n: u64) -> Vec<String> {
    wait_read(service, n);
    let seconds = PANE_MS as f64 / 1000.0;
    let expected = Expected {
        streams: load.streams,
        rate: (load.events * load.streams) as f64 / seconds,
    };
    judge(&format!("{load:?}"), service, expected)
}

#[test]
fn the_peak_of_a_process_stays_below_the_bound_and_near_the_estimate() {
    let name = "the_peak_of_a_process_stays_below_the_bound_and_near_the_estimate";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let streams = match of_environment("TRUELINE_MEMORY", 0) {
        0 => vec![20],
        1 => vec![10, 200, 1000],
        streams => vec![streams],
    };
    let mut wrong = Vec::new();
    for streams in streams {
        for case in CASES {
            let load = Load {
                case,
                streams,
                events: 20,
                hours: if streams == 20 { 2 } else { 3 },
            };
            wrong.extend(run(&broker, load));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn predictions_that_spill_stay_below_the_bound() {
    let name = "predictions_that_spill_stay_below_the_bound";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let partitions = 2;
    let records = late::records(of_environment("TRUELINE_EVENTS", 60_000), partitions);
    let topics = ["predictions", "outcomes"].map(|t| format!("trueline-spilling-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], partitions), (&topics[1], partitions)]);
    let config = late::config(&broker.bootstrap, &topics[0], &topics, "", "");
    let service = Service::start(&late::spilling(&config));
    service.wait_ready();
    let mut sender = broker.producer();
    let mut spilled: f64 = 0.0;
    let mut counted = || {
        let scrape = service.scrape()?;
        spilled = spilled.max(scrape.sum("trueline_predictions_spilled", &[]));
        Some(scrape.sum("trueline_records_read_total", &[]))
    };
    // While they are sent: a fast process is done soon after.
    for some in records.chunks(records.len() / 30) {
        send(&mut sender, &topics, some);
        sender.flush();
        counted();
    }
    wait_for("all records to be counted", LIMIT, || {
        (counted()? >= records.len() as f64).then_some(())
    });
    let (peak, bound) = (service.peak_bytes(), MemoryBound::of(&config_of(&service)));
    println!(
        "spilling: peak {}, bound {}, {spilled} on disk",
        human(peak),
        human(bound.total())
    );
    assert!(spilled > 1000.0, "{spilled}");
    assert!(peak <= bound.total(), "{peak}: {bound:?}");
}
