//! The whole application in this process, from records on a (mock) broker to what HTTP says: every
//! metric of the table has data, a restart shows its numbers at once, offsets belong to topics by
//! name.

use crate::support::scrape;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;
use trueline::app::{App, Setup, Stop};
use trueline::config::Config;
use trueline::config::value::Outside;
use trueline::telemetry::metrics::{Kind, TABLE};

const PATIENCE: Duration = Duration::from_secs(60);

/// A running application; it ends in order when told to.
struct Daemon {
    address: SocketAddr,
    stop: Stop,
    thread: JoinHandle<()>,
}

impl Daemon {
    fn start(text: &str, linger: Duration) -> Daemon {
        let outside = Outside {
            variable: &|_| None,
            directory: PathBuf::new(),
        };
        let config = Config::parse(text, "daemon.toml", &outside).expect("a sound configuration");
        let mut setup = Setup::of(config);
        setup.linger = linger;
        let app = App::bind(setup).expect("the application binds");
        let address = app.address().expect("an address");
        let stop = Stop::new();
        let flag = stop.clone();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(app.run(flag)).expect("an orderly end");
        });
        Daemon {
            address,
            stop,
            thread,
        }
    }

    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
        scrape::assert_conserved(path, body);
        (status.expect("a status"), body.to_owned())
    }

    /// Asks until `answer` is content with the body, and returns what it made of it.
    fn wait<T>(&self, path: &str, answer: impl Fn(&str) -> Result<T, String>) -> T {
        let start = Instant::now();
        loop {
            let (_, body) = self.get(path);
            match answer(&body) {
                Ok(found) => return found,
                Err(why) if start.elapsed() > PATIENCE => panic!("{path}: {why}"),
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Waits until the metric, over all samples with these labels, is `value`.
    fn wait_for(&self, name: &str, labels: &str, value: f64) {
        self.wait("/metrics", |text| {
            let now = sum(text, name, labels);
            (now == Some(value))
                .then_some(())
                .ok_or_else(|| format!("{name} {labels} is {now:?}, not {value}"))
        });
    }

    fn end(self) {
        self.stop.now();
        self.thread.join().expect("no panic");
    }
}

/// Sum of the samples of a metric whose labels hold all of `labels`, separated by spaces.
fn sum(text: &str, name: &str, labels: &str) -> Option<f64> {
    let mut rows = text.lines().filter(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.split(' ').all(|label| line.contains(label))
    });
    let value = |line: &str| line.rsplit(' ').next().and_then(|v| v.parse::<f64>().ok());
    let first = value(rows.next()?)?;
    Some(first + rows.filter_map(value).sum::<f64>())
}

/// A fresh directory.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("daemon-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

/// Each start has a group of its own: where to go on is the snapshot's to say, and to leave a group
/// and join it again takes the mock seconds.
fn config(brokers: &str, state: &Path, sources: &str) -> String {
    static GROUPS: AtomicU32 = AtomicU32::new(0);
    let group = GROUPS.fetch_add(1, Ordering::Relaxed);
    format!(
        r#"version = 1
[kafka]
brokers = "{brokers}"
group = "group{group}"
statistics_interval = "300ms"
{sources}
[[model]]
name = "*"
windows = ["6s", "36s"]
lateness = "2s"
[model.test]
min_events = 200
[model.alert]
window_alerts = true
[[sink]]
name = "nobody"
kind = "kafka"
dry_run = true
[http]
listen = "127.0.0.1:0"
[state]
directory = '{}'
interval = "1s"
"#,
        state.display()
    )
}

fn source(topics: &str) -> String {
    format!(
        "[[source]]\ntopics = {topics}\nclasses = [\"false\", \"true\"]\n[source.fields]\ntime = \"time_ms\"\nscore = \"score\"\n"
    )
}

/// 2023-11-14, a multiple of every slide.
const BEGIN_MS: i64 = 1_700_000_064_000;

/// `n` events of a model, ten milliseconds apart, whose outcomes come more seldom than they are
/// said to.
fn produce(brokers: &str, topic: &str, model: &str, n: i64, score: impl Fn(i64) -> f64) {
    let payloads = (0..n).map(|i| {
        let score = score(i);
        // As even as can be: the fraction of the golden ratio.
        let draw = (i as f64 * 0.618_033_988_749).fract();
        format!(
            r#"{{"model":"{model}","time_ms":{},"score":{score},"outcome":{}}}"#,
            BEGIN_MS + i * 10,
            draw < 0.7 * score
        )
    });
    send(brokers, topic, payloads);
}

fn send(brokers: &str, topic: &str, payloads: impl Iterator<Item = String>) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .create()
        .expect("a producer");
    for payload in payloads {
        let record = BaseRecord::<(), str>::to(topic)
            .payload(&payload)
            .partition(0);
        producer.send(record).expect("room in the queue");
    }
    producer
        .flush(Duration::from_secs(20))
        .expect("all delivered");
}

fn continuous(i: i64) -> f64 {
    (i as f64 * 0.414_213_562_373).fract()
}

/// Metrics that are there only with a state topic, or where something cannot be read.
const ONLY_WITH_STATE_TOPIC: [&str; 8] = [
    "trueline_checkpoints_total",
    "trueline_checkpoint_written_bytes_total",
    "trueline_claims_superseded_total",
    "trueline_checkpoint_deltas_cut_total",
    "trueline_checkpoint_read_bytes_total",
    "trueline_checkpoint_timestamp_seconds",
    "trueline_checkpoint_restore_seconds",
    "trueline_partition_suspended",
];

#[test]
fn every_metric_of_the_table_has_data_in_a_running_service() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    cluster.create_topic("coins", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    // Too few for a verdict, and first, so that none of them is late.
    produce(&brokers, "scored", "seldom", 50, continuous);
    produce(&brokers, "scored", "net", 4_000, continuous);
    produce(&brokers, "coins", "coin", 4_000, |i| {
        f64::from(i as i32 % 8) / 8.0
    });
    // So rare that the ratio of observed to expected outcomes is tested.
    cluster.create_topic("rare", 1, 1).expect("a topic");
    produce(&brokers, "rare", "rare", 4_000, |_| 0.02);
    // Outcomes are records of their own; one in ten never comes.
    let asked = (0..8_000).filter(|i| i % 20 != 1).map(|i| {
        let (id, time_ms) = (i / 2, BEGIN_MS + i * 5);
        match i % 2 {
            0 => format!(
                r#"{{"id":"{id}","time_ms":{time_ms},"score":{}}}"#,
                continuous(id)
            ),
            _ => format!(
                r#"{{"id":"{id}","time_ms":{time_ms},"outcome":{}}}"#,
                id % 3 == 0
            ),
        }
    });
    cluster.create_topic("asked", 1, 1).expect("a topic");
    send(&brokers, "asked", asked);
    // Requests that two versions scored.
    let twice = (0..4_000).map(|i| {
        let (id, version) = (i / 2, i % 2);
        format!(
            r#"{{"model":"twice","version":"{version}","id":"{id}","time_ms":{},"score":{},"outcome":{}}}"#,
            BEGIN_MS + id * 20,
            continuous(i),
            id % 3 == 0
        )
    });
    cluster.create_topic("twice", 1, 1).expect("a topic");
    send(&brokers, "twice", twice);
    // Whole vectors.
    let vectors = (0..4_000).map(|i| {
        let (a, b) = (continuous(i) / 2.0, continuous(i + 7) / 2.0);
        format!(
            r#"{{"time_ms":{},"p":[{a},{b},{}],"outcome":{}}}"#,
            BEGIN_MS + i * 10,
            1.0 - a - b,
            i % 3
        )
    });
    cluster.create_topic("vectors", 1, 1).expect("a topic");
    send(&brokers, "vectors", vectors);
    let whole = "[[source]]\ntopics = [\"vectors\"]\nmodel = \"whole\"\n[source.fields]\n\
                 time = \"time_ms\"\nprobabilities = \"p\"\n[[model]]\nname = \"whole\"\nclasses = [\"0\", \"1\", \"2\"]\n\
                 views = [\"top_label\", \"class:0\", \"class:1\", \"kernel\"]\n\
                 windows = [\"6s\", \"36s\"]\nlateness = \"2s\"\n";
    let compared = "[[source]]\ntopics = [\"twice\"]\nclasses = [\"false\", \"true\"]\n[source.fields]\nid = \"id\"\nversion = \"version\"\n\
                    time = \"time_ms\"\nscore = \"score\"\n[[model]]\nname = \"twice\"\n\
                    windows = [\"6s\", \"36s\"]\nlateness = \"2s\"\ncompare = { enabled = true, wait = \"4s\" }\n";
    let joined = "[[source]]\ntopics = [\"asked\"]\nmodel = \"asked\"\n[source.fields]\nid = \"id\"\n\
                  time = \"time_ms\"\nscore = \"score\"\n[source.outcomes]\nmaturity = \"1s\"\n\
                  time = \"time_ms\"\n";
    let posted =
        "[[source]]\ninput = \"http\"\ntopics = [\"posted\"]\n[source.fields]\nscore = \"p\"\n";
    let sources = source("[\"scored\"]")
        + &source("[\"coins\", \"rare\"]")
        + joined
        + compared
        + whole
        + posted;
    let daemon = Daemon::start(
        &config(&brokers, &scratch("table"), &sources),
        Duration::ZERO,
    );
    let text = daemon.wait("/metrics", |text| {
        let found = |name: &str| text.lines().any(|l| l.starts_with(name));
        let missing: Vec<&str> = TABLE
            .iter()
            .map(|row| row.name)
            // Those of a state topic, which need a real broker: tests/kafka/moves/broken.rs.
            .filter(|name| !ONLY_WITH_STATE_TOPIC.contains(name))
            // And of one judge of many: tests/kafka/workers_and_judge.rs.
            .filter(|name| !name.starts_with("trueline_judge_"))
            .filter(|name| *name != "trueline_process_role")
            // Of windows that show neither an error nor its absence: `window_samples` of the
            // series.
            .filter(|name| *name != "trueline_more_events")
            // Of transactions that stay open, which a broker in this process does not have, and of
            // a watermark that a partition holds: `kafka frozen::` shows both.
            .filter(|name| *name != "trueline_partition_transaction_seconds")
            .filter(|name| *name != "trueline_watermark_held_seconds")
            // Of weighted models alone.
            .filter(|name| *name != "trueline_window_events_effective")
            .filter(|name| !found(&format!("{name}{{")) && !found(&format!("{name} ")))
            .filter(|name| !found(&format!("{name}_bucket{{")))
            .collect();
        let evaluated = sum(text, "trueline_evaluation_seconds_count", "").unwrap_or(0.0);
        let idle = sum(text, "trueline_partition_idle", "").unwrap_or(0.0);
        // Six models, one of two versions, one of four views; sizes come once a second.
        let streams = sum(text, "trueline_streams", "").unwrap_or(0.0);
        let all = evaluated > 0.0 && idle == 7.0 && streams == 5.0 + 2.0 + 4.0;
        if missing.is_empty() && all {
            Ok(text.to_owned())
        } else {
            Err(format!(
                "missing: {missing:?}; {evaluated} evaluations, {idle} idle, {streams} streams"
            ))
        }
    });
    // Not only there, but true.
    let newest = (BEGIN_MS + 39_990) as f64 / 1000.0;
    let watermark = |topic: &str| {
        sum(
            &text,
            "trueline_partition_watermark_timestamp_seconds",
            topic,
        )
    };
    assert_eq!(watermark("\"scored\""), Some(newest - 2.0));
    assert_eq!(watermark("\"coins\""), Some(newest - 2.0));
    assert!(sum(&text, "trueline_panes", "") >= Some(8.0), "{text}");
    assert!(sum(&text, "trueline_snapshot_bytes", "") > Some(0.0));
    for row in TABLE.iter().filter(|row| row.kind == Kind::Histogram) {
        let count = sum(&text, &format!("{}_count", row.name), "");
        assert!(count > Some(0.0), "{}", row.name);
    }
    daemon.end();
}

/// Windows of a model by name, from the list of streams.
fn windows(body: &str, model: &str) -> Result<Vec<Value>, String> {
    let all: Value = serde_json::from_str(body).map_err(|e| e.to_string())?;
    let streams = all["streams"].as_array().cloned().unwrap_or_default();
    let stream = streams.iter().find(|s| s["model"] == model);
    let windows = stream.and_then(|s| s["windows"].as_array().cloned());
    windows.ok_or_else(|| format!("no {model} in {body}"))
}

#[test]
fn a_restart_shows_every_window_at_once_and_passes_over_a_damaged_snapshot() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    produce(&brokers, "scored", "net", 6_000, continuous);
    let state = scratch("restart");
    let text = config(&brokers, &state, &source("[\"scored\"]"));
    let daemon = Daemon::start(&text, Duration::ZERO);
    daemon.wait_for("trueline_records_total", "observed", 6_000.0);
    daemon.wait_for("trueline_partition_idle", "", 1.0);
    let before = daemon.wait("/api/v1/streams", |body| {
        let all = windows(body, "net")?;
        let judged = all.iter().all(|w| w["verdict"] == "miscalibrated");
        judged.then_some(all).ok_or_else(|| body.to_owned())
    });
    daemon.end();
    let damaged = state.join("snapshot-00000000000000099999.trueline");
    std::fs::write(&damaged, b"TRUELINE and then nothing").expect("a damaged file");
    // No broker: whatever is shown was restored.
    let text = text.replace(&brokers, "127.0.0.1:1");
    let daemon = Daemon::start(&text, Duration::ZERO);
    let after = daemon.wait("/api/v1/streams", |body| windows(body, "net"));
    assert_eq!(before, after);
    assert!(after.iter().all(|w| w["p_value"].is_number()), "{after:?}");
    daemon.wait_for("trueline_snapshots_refused_total", "", 1.0);
    let list: Value = serde_json::from_str(&daemon.get("/api/v1/streams").1).expect("json");
    let link = list["streams"][0]["links"]["page"].as_str();
    let (_, page) = daemon.get(link.expect("a link"));
    assert!(!page.contains("Restarted since"), "{page}");
    daemon.end();
    let kept = state.join("snapshot-00000000000000099999.trueline.refused");
    let text = std::fs::read(&kept).expect("what was refused is left for someone to look at");
    assert_eq!(text, b"TRUELINE and then nothing");
}

#[test]
fn offsets_belong_to_topics_by_name_when_topics_are_added_moved_and_taken_away() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    for topic in ["apples", "pears", "plums"] {
        cluster.create_topic(topic, 1, 1).expect("a topic");
    }
    let brokers = cluster.bootstrap_servers();
    produce(&brokers, "apples", "a", 300, continuous);
    produce(&brokers, "pears", "p", 500, continuous);
    produce(&brokers, "plums", "q", 700, continuous);
    let state = scratch("topics");
    // By topic, the position and what this process has read.
    let run = |sources: &str, expected: &[(&str, f64, f64)]| {
        let daemon = Daemon::start(&config(&brokers, &state, sources), Duration::ZERO);
        for (topic, position, read) in expected {
            let of = format!("topic=\"{topic}\"");
            daemon.wait_for("trueline_partition_position_offset", &of, *position);
            let source = format!("source=\"{topic}\"");
            daemon.wait_for("trueline_records_read_total", &source, *read);
            let replayed = format!("source=\"{topic}\" \"replayed\"");
            daemon.wait_for("trueline_records_total", &replayed, 0.0);
        }
        daemon.end();
    };
    run(
        &source("[\"pears\", \"apples\"]"),
        &[("apples", 300.0, 300.0), ("pears", 500.0, 500.0)],
    );
    // One added in front of the others, which change places and belong to other sources.
    run(
        &(source("[\"plums\", \"apples\"]") + &source("[\"pears\"]")),
        &[
            ("plums", 700.0, 700.0),
            ("apples", 300.0, 0.0),
            ("pears", 500.0, 0.0),
        ],
    );
    // Taken away for a while, and back again: nothing is read twice.
    run(&source("[\"plums\"]"), &[("plums", 700.0, 0.0)]);
    produce(&brokers, "pears", "p", 50, continuous);
    run(
        &source("[\"apples\", \"plums\", \"pears\"]"),
        &[
            ("apples", 300.0, 0.0),
            ("plums", 700.0, 0.0),
            ("pears", 550.0, 50.0),
        ],
    );
}

#[test]
fn while_draining_ready_says_503_and_the_last_values_are_still_served() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    produce(&brokers, "scored", "net", 4_000, continuous);
    let text = config(&brokers, &scratch("drain"), &source("[\"scored\"]"));
    let daemon = Daemon::start(&text, Duration::from_secs(5));
    daemon.wait_for("trueline_records_total", "observed", 4_000.0);
    daemon.wait("/ready", |body| {
        let (status, _) = daemon.get("/ready");
        (status == 200).then_some(()).ok_or(body.to_owned())
    });
    daemon.stop.now();
    let said = daemon.wait("/ready", |body| {
        body.contains("the program is stopping")
            .then(|| body.to_owned())
            .ok_or_else(|| "still ready".to_owned())
    });
    assert_eq!(daemon.get("/ready").0, 503, "{said}");
    let (status, metrics) = daemon.get("/metrics");
    assert_eq!(status, 200);
    let observed = sum(&metrics, "trueline_records_total", "observed");
    assert_eq!(observed, Some(4_000.0));
    assert_eq!(
        daemon.get("/live").0,
        200,
        "stopping in order is not a failure"
    );
    daemon.end();
}
