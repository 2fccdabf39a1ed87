//! Alerts from records on a broker to those who are told, with the process, the receivers and the broker's topic going away in between.
//!
//! What must hold: every change of an alert is told to every sink once, in order; consumption never waits for a sink; an
//! alert that fired before a crash fires after it and is not told anew. `TRUELINE_OUTAGE` is how long the sinks are away, in seconds.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::broker::{Broker, unique};
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;
use trueline::collect::{Event, Origin};
use trueline::config::Config;
use trueline::config::value::Outside;
use trueline::monitor::{Engine, Plan};
use trueline::notify::webhook::signature;
use trueline::report::record::Record;
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction};

/// 2023-11-14, a multiple of every slide.
pub const BEGIN_MS: i64 = 1_700_000_064_000;
/// Events of each model in a phase, 10 ms apart.
const PHASE: i64 = 2_000;
const SECRET: &str = "between us";

pub fn config(brokers: &str, topic: &str, snapshot: &str, sinks: &str) -> String {
    format!(
        r#"version = 1
[kafka]
brokers = "{brokers}"
group = "{topic}"
statistics_interval = "300ms"
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

/// Produces the records of each partition, a few of each in turn: a partition that is read to its end holds
/// back no other, so one that got its records much later than the other would find them late.
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

/// A receiver of posts: takes them, refuses them with 503, or is not there.
pub struct Receiver {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<(String, Value)>>>,
    refuses: Arc<AtomicBool>,
    away: Arc<AtomicBool>,
}

impl Receiver {
    pub fn start(away: bool) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let receiver = Receiver {
            address: listener.local_addr().expect("its address"),
            posts: Arc::default(),
            refuses: Arc::default(),
            away: Arc::new(AtomicBool::new(away)),
        };
        let (posts, refuses) = (Arc::clone(&receiver.posts), Arc::clone(&receiver.refuses));
        let away = Arc::clone(&receiver.away);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Away: the connection is closed at once, as by a proxy without anybody behind it.
                if !away.load(Ordering::Relaxed) {
                    let status = if refuses.load(Ordering::Relaxed) {
                        503
                    } else {
                        200
                    };
                    let taken = take(stream, status).filter(|_| status == 200);
                    posts.lock().expect("posts").extend(taken);
                }
            }
        });
        receiver
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn of(&self, path: &str) -> Vec<Value> {
        let posts = self.posts.lock().expect("posts");
        let ours = posts.iter().filter(|(at, _)| at == path);
        ours.map(|(_, body)| body.clone()).collect()
    }
}

/// Reads one post, answers, and checks its signature where it has a timestamp.
fn take(stream: TcpStream, status: u16) -> Option<(String, Value)> {
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .ok()?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let header = |name: &str| {
        let mut lines = head.lines();
        let line = lines.find(|l| l.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        line.split_once(':').map(|(_, v)| v.trim().to_owned())
    };
    let mut body = vec![0; header("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    if path.starts_with("/hook") {
        let timestamp = header("trueline-timestamp").expect("a timestamp");
        let wanted = signature(SECRET, &timestamp, &body);
        assert_eq!(header("trueline-signature"), Some(wanted), "{head}");
    }
    let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
    reader.get_mut().write_all(answer.as_bytes()).ok()?;
    Some((path, serde_json::from_str(&body).ok()?))
}

pub fn webhook(receiver: &Receiver) -> String {
    let url = receiver.url("/hook");
    format!(
        "[[sink]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"{url}\"\nsecret = \"{SECRET}\"\n\
         retry_max = \"1s\"\ntimeout = \"2s\"\n"
    )
}

/// A real Alertmanager, gone when dropped.
struct Alertmanager {
    child: Child,
    address: String,
    folder: PathBuf,
}

impl Alertmanager {
    /// One on this address, or `None` after saying that it is not installed.
    fn start(test: &str, address: &str) -> Option<Alertmanager> {
        let program = "prometheus-alertmanager";
        let known = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !known.is_ok_and(|s| s.success()) {
            let lacks =
                "prometheus-alertmanager is not on the path; Debian has a package of that name";
            support::skip(
                &format!("tests/kafka/alerts.rs {test}, its Alertmanager"),
                lacks,
            );
            return None;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("am-{}", unique()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("alertmanager.yml");
        let text = "route: {receiver: none, group_wait: 0s}\nreceivers: [{name: none}]\n";
        std::fs::write(&file, text).expect("a file");
        let child = Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.path={}", folder.display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--cluster.listen-address=")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        Some(Alertmanager {
            child,
            address: address.to_owned(),
            folder,
        })
    }

    /// Its active alerts; `None` while it does not answer.
    fn active(&self) -> Option<Vec<Value>> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let path = "/api/v2/alerts?active=true";
        write!(stream, "GET {path} HTTP/1.0\r\nhost: x\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").to_string()
}

/// Keys of notices, which must be told once each, and for each alert in turns of firing and resolved, later each time.
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

#[test]
fn sinks_that_were_away_get_every_alert_once_in_order_and_nothing_waits() {
    let name = "sinks_that_were_away_get_every_alert_once_in_order_and_nothing_waits";
    let Some(broker) = Broker::own(name) else {
        return;
    };
    let outage = std::env::var("TRUELINE_OUTAGE")
        .ok()
        .and_then(|v| v.parse().ok());
    let outage = Duration::from_secs(outage.unwrap_or(8));
    let topic = format!("alerts-{}", unique());
    let told = format!("{topic}.told");
    broker.create_topics(&[(&topic, 1)]);
    let (receiver, manager) = (Receiver::start(true), free_address());
    let sinks = format!(
        "{}[[sink]]\nname = \"chat\"\nkind = \"slack\"\nurl = \"{}\"\nretry_max = \"1s\"\ntimeout = \"2s\"\n\
         [[sink]]\nname = \"manager\"\nkind = \"alertmanager\"\nurl = \"http://{manager}\"\nretry_max = \"1s\"\n\
         resend = \"2s\"\ntimeout = \"2s\"\n\
         [[sink]]\nname = \"topic\"\nkind = \"kafka\"\ntopic = \"{told}\"\nretry_max = \"1s\"\ntimeout = \"2s\"\n",
        webhook(&receiver),
        receiver.url("/chat"),
    );
    let service = Service::start(&config(&broker.bootstrap, &topic, "1s", &sinks));
    service.wait_ready();

    // Nobody is there: the webhook hangs up, no Alertmanager listens, the topic does not exist.
    let models = ["a", "b", "c", "d"];
    let begun = Instant::now();
    let cycles = 4;
    let mut sent = 0;
    for cycle in 0..cycles {
        for (half, good) in [(0, false), (1, true)] {
            let records = phase(&models, 2 * cycle + half, good);
            produce(&broker.bootstrap, &topic, &records);
            sent += records.len();
        }
    }
    // One that still fires at the end; the others go on well.
    let mut last = phase(&["a"], 2 * cycles, false);
    last.extend(phase(&models[1..], 2 * cycles, true));
    last.sort_by_key(|r| {
        let value: Value = serde_json::from_str(r).expect("JSON");
        value["time_ms"].as_i64()
    });
    produce(&broker.bootstrap, &topic, &last);
    sent += last.len();
    let mut silence: f64 = 0.0;
    wait_for("all records while the sinks are away", LIMIT, || {
        silence = silence.max(service.metric("trueline_loop_silence_seconds", &["engine"]));
        let observed = service.metric("trueline_records_total", &["observed"]);
        (observed == sent as f64).then_some(())
    });
    println!(
        "{sent} records read in {:?} while no sink was there",
        begun.elapsed()
    );
    let wanted = models.len() as f64 * cycles as f64 * 2.0 + 1.0;
    for sink in ["hook", "chat", "manager", "topic"] {
        let of = format!("sink=\"{sink}\"");
        wait_for(&format!("notices that wait for {sink}"), LIMIT, || {
            let queued = service.metric("trueline_notifications_queued", &[&of]);
            (queued == wanted).then_some(())
        });
        assert_eq!(
            service.metric("trueline_notifications_sent_total", &[&of]),
            0.0
        );
    }
    while begun.elapsed() < outage {
        silence = silence.max(service.metric("trueline_loop_silence_seconds", &["engine"]));
        std::thread::sleep(Duration::from_millis(250));
    }
    assert!(silence < 5.0, "the engine stood still for {silence} s");

    // They come back, one of them halfway first.
    receiver.refuses.store(true, Ordering::Relaxed);
    receiver.away.store(false, Ordering::Relaxed);
    std::thread::sleep(Duration::from_secs(2));
    receiver.refuses.store(false, Ordering::Relaxed);
    broker.create_topics(&[(&told, 1)]);
    let manager = Alertmanager::start(name, &manager);
    let back = Instant::now();
    let mut there = vec!["hook", "chat", "topic"];
    there.extend(manager.as_ref().map(|_| "manager"));
    for sink in there {
        let of = format!("sink=\"{sink}\"");
        wait_for(&format!("all notices at {sink}"), LIMIT, || {
            let sent = service.metric("trueline_notifications_sent_total", &[&of]);
            (sent == wanted).then_some(())
        });
        assert!(service.metric("trueline_notification_retries_total", &[&of]) > 0.0);
        for lost in [
            "trueline_notifications_failed_total",
            "trueline_notifications_dropped_total",
        ] {
            assert_eq!(service.metric(lost, &[&of]), 0.0, "{sink} {lost}");
        }
    }
    println!(
        "{wanted} alerts each told {:?} after the sinks were back",
        back.elapsed()
    );

    let hooked = keys_in_order("webhook", &receiver.of("/hook"));
    assert_eq!(hooked.len() as f64, wanted);
    assert_eq!(receiver.of("/chat").len() as f64, wanted);
    let values = broker.read_all(&told).into_iter();
    let values: Vec<Value> = values
        .map(|r| serde_json::from_slice(&r.payload).expect("JSON"))
        .collect();
    assert_eq!(
        keys_in_order("topic", &values),
        hooked,
        "both are told the same in one order"
    );
    for value in &values {
        fits_schema(value);
    }
    let firing = values.iter().filter(|v| v["status"] == "firing");
    for value in firing {
        assert!(value["ece_lower"].as_f64() > Some(0.05), "{value}");
        assert_eq!(
            value["page"],
            format!(
                "http://monitor:9464/streams/{}///binary",
                value["model"].as_str().expect("a model")
            )
        );
    }
    let Some(manager) = manager else { return };
    let active = wait_for("the one that fires at the Alertmanager", LIMIT, || {
        manager.active().filter(|all| all.len() == 1)
    });
    assert_eq!(active[0]["labels"]["model"], "a", "{active:?}");
    assert_eq!(active[0]["labels"]["severity"], "warn");
    assert!(active[0]["annotations"]["ece_lower"].is_string());
    assert_eq!(
        active[0]["annotations"]["runbook_url"],
        "http://monitor:9464/runbooks/TruelineMiscalibrated.md"
    );
    // It is said again and again, or it would be over.
    let ends = active[0]["endsAt"].clone();
    wait_for("a later end", LIMIT, || {
        let active = manager.active()?;
        (active.first()?["endsAt"] != ends).then_some(())
    });
    produce(
        &broker.bootstrap,
        &topic,
        &phase(&models, 2 * cycles + 1, true),
    );
    wait_for("no active alert at the Alertmanager", LIMIT, || {
        manager.active().filter(Vec::is_empty)
    });
}

/// What the schema says of a notice: these keys, all of them, of these kinds.
fn fits_schema(value: &Value) {
    let schema = trueline::notify::schema::schema();
    let properties = schema["properties"].as_object().expect("properties");
    let value = value.as_object().expect("an object");
    assert_eq!(
        value.keys().collect::<Vec<_>>(),
        properties.keys().collect::<Vec<_>>()
    );
    for (name, wanted) in properties {
        let is = &value[name];
        let fits = |kind: &str| match kind {
            "string" => is.is_string(),
            "integer" => is.is_i64(),
            "number" => is.is_number(),
            "null" => is.is_null(),
            "array" => is.is_array(),
            "object" => is.is_object(),
            _ => false,
        };
        let fits = match (&wanted["type"], &wanted["enum"]) {
            (Value::String(kind), _) => fits(kind),
            (Value::Array(kinds), _) => kinds.iter().any(|k| fits(k.as_str().expect("a kind"))),
            (_, Value::Array(words)) => words.contains(is),
            _ => false,
        };
        assert!(fits, "{name} is {is}, the schema wants {wanted}");
    }
}

/// Kills the process while an alert fires, with a snapshot that knows of it or one that does not, and starts it again.
fn killed_while_firing(snapshot: &str) {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let receiver = Receiver::start(false);
    let hook = webhook(&receiver);
    let mut service = Service::start(&config(&brokers, "scored", snapshot, &hook));
    produce(&brokers, "scored", &phase(&["a", "b"], 0, false));
    wait_for("two alerts", LIMIT, || {
        (receiver.of("/hook").len() == 2).then_some(())
    });
    // What it told is on disk before it told it; that it was told is there soon after.
    wait_for("the journal", LIMIT, || {
        let journal = std::fs::read_to_string(service.state().join("alerts.journal")).ok()?;
        (journal.matches("\"delivered\":true").count() == 2).then_some(())
    });
    if snapshot == "1s" {
        std::thread::sleep(Duration::from_millis(2_500));
    }
    let before = firing(&service);
    assert_eq!(before.len(), 2);
    service.end("KILL");
    service.start_again();
    let after = wait_for("both alerts after the restart", LIMIT, || {
        Some(firing(&service)).filter(|f| f.len() == 2)
    });
    assert_eq!(after, before, "they fire since when they did");
    let told = service.metric("trueline_notifications_sent_total", &["hook"]);
    assert_eq!(
        (told, receiver.of("/hook").len()),
        (0.0, 2),
        "and nobody is told anew"
    );
    // Their end is told, once, and a new begin too.
    produce(&brokers, "scored", &phase(&["a", "b"], 1, true));
    produce(&brokers, "scored", &phase(&["a", "b"], 2, false));
    wait_for("four more changes", LIMIT, || {
        (receiver.of("/hook").len() >= 6).then_some(())
    });
    std::thread::sleep(Duration::from_secs(1));
    let keys = keys_in_order("webhook", &receiver.of("/hook"));
    assert_eq!(keys.len(), 6, "{keys:?}");
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

#[test]
fn a_kill_while_an_alert_fires_notifies_nobody_twice() {
    killed_while_firing("1s");
}

#[test]
fn a_kill_with_an_older_snapshot_notifies_nobody_twice() {
    killed_while_firing("1h");
}

#[test]
fn alerts_move_with_their_partitions_and_are_notified_once() {
    let name = "alerts_move_with_their_partitions_and_are_notified_once";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let (topic, brokers) = (format!("trueline-moved-{}", unique()), &broker.bootstrap);
    broker.create_topics(&[(&topic, 2)]);
    let receiver = Receiver::start(false);
    let config = config(brokers, &topic, "1s", &webhook(&receiver)).replace(
        "interval = \"1s\"",
        &format!("interval = \"1s\"\ntopic = \"{topic}-state\""),
    );
    let config = config.replace(
        "[[source]]",
        "[kafka.options]\n\"session.timeout.ms\" = \"6000\"\n[[source]]",
    );
    let phase = |number: i64, good: bool| {
        let [a, b] = ["a", "b"].map(|model| phase(&[model], number, good));
        produce_to(brokers, &topic, &[&a, &b]);
    };
    let told = || receiver.of("/hook");
    let wait_told = |n: usize| {
        wait_for("notices", LIMIT, || (told().len() >= n).then_some(()));
        // Long enough for what fires and was not told here to be found.
        std::thread::sleep(Duration::from_millis(2_500));
        assert_eq!(told().len(), n, "{:#?}", told());
    };
    let journal = |service: &Service| {
        std::fs::read_to_string(service.state().join("alerts.journal")).unwrap_or_default()
    };

    let mut one = Service::start(&config);
    one.wait_ready();
    phase(0, false);
    wait_told(2);
    let before: BTreeMap<String, i64> = firing(&one).into_iter().collect();
    assert_eq!(before.len(), 2);

    // Half of it goes to another process.
    let mut other = Service::start(&config);
    wait_for("an alert in each process", LIMIT, || {
        let parts = [firing(&one), firing(&other)];
        let all: BTreeMap<String, i64> = parts.concat().into_iter().collect();
        (parts.iter().all(|p| p.len() == 1) && all == before).then_some(())
    });
    wait_told(2);
    assert!(journal(&one).contains("\"released\""), "{}", journal(&one));
    assert!(
        journal(&other).contains("\"acquired\""),
        "{}",
        journal(&other)
    );
    phase(1, true);
    wait_told(4);
    phase(2, false);
    wait_told(6);

    // It dies, and the first has all again; then that one goes, and the other comes back.
    other.end("KILL");
    wait_for("both alerts in the first process", LIMIT, || {
        (firing(&one).len() == 2).then_some(())
    });
    wait_told(6);
    assert_eq!(one.end("TERM"), Some(0));
    other.start_again();
    wait_for("both alerts in the other process", LIMIT, || {
        (firing(&other).len() == 2).then_some(())
    });
    wait_told(6);
    phase(3, true);
    wait_told(8);
    let keys = keys_in_order("webhook", &told());
    assert_eq!(keys.len(), 8, "{keys:?}");
    let ends = told().iter().filter(|n| n["status"] == "resolved").count();
    assert_eq!(ends, 4);
}

#[test]
fn a_notification_that_nobody_took_before_a_kill_is_sent_after_it() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let receiver = Receiver::start(true);
    let mut service = Service::start(&config(&brokers, "scored", "1s", &webhook(&receiver)));
    let history = [false, true, false];
    for (number, good) in (0..).zip(history) {
        produce(&brokers, "scored", &phase(&["a"], number, good));
    }
    wait_for("three notices that wait", LIMIT, || {
        let queued = service.metric("trueline_notifications_queued", &["hook"]);
        (queued == 3.0).then_some(())
    });
    std::thread::sleep(Duration::from_millis(2_500));
    service.end("KILL");
    service.start_again();
    receiver.away.store(false, Ordering::Relaxed);
    wait_for("all three", LIMIT, || {
        (receiver.of("/hook").len() >= 3).then_some(())
    });
    std::thread::sleep(Duration::from_secs(1));
    let notices = receiver.of("/hook");
    keys_in_order("webhook", &notices);
    let told: Vec<&str> = notices
        .iter()
        .filter_map(|n| n["status"].as_str())
        .collect();
    assert_eq!(told, ["firing", "resolved", "firing"]);
}

/// Records of a fleet that goes bad and well again, made by the engine alone: every one that changed an alert can be recomputed to the bit.
#[test]
fn a_reloaded_sink_goes_on_where_the_old_one_stopped() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let (away, there) = (Receiver::start(true), Receiver::start(false));
    let mut service = Service::start(&config(&brokers, "scored", "1s", &webhook(&away)));
    let phase = |number: i64, good: bool| {
        produce(&brokers, "scored", &phase(&["a"], number, good));
    };
    for (number, good) in [(0, false), (1, true), (2, false)] {
        phase(number, good);
    }
    wait_for("three notices that wait", LIMIT, || {
        let queued = service.metric("trueline_notifications_queued", &["hook"]);
        (queued == 3.0).then_some(())
    });
    let reload = |service: &Service| {
        let (status, body) = service.ask("POST", "/-/reload").expect("an answer");
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(
            answer["needs_restart"],
            Value::Array(Vec::new()),
            "{answer}"
        );
        answer["applied"].clone()
    };
    let more = webhook(&there).replace("\"hook\"", "\"more\"");
    let more = more.replace("/hook", "/more");
    service.rewrite(|text| {
        let text = text.replace(&away.url("/hook"), &there.url("/hook"));
        text.replace("[http]", &format!("{more}[http]"))
    });
    let applied = reload(&service);
    assert_eq!(applied, serde_json::json!(["sink.hook.url", "sink.more"]));
    let told = |n: usize, m: usize| {
        wait_for("notices", LIMIT, || {
            let all = (there.of("/hook").len(), there.of("/more").len());
            (all.0 >= n && all.1 >= m).then_some(())
        });
        std::thread::sleep(Duration::from_secs(1));
        let all = (there.of("/hook").len(), there.of("/more").len());
        assert_eq!(all, (n, m));
    };
    // What waited, in order; the new sink gets what fires, once.
    told(3, 1);
    phase(3, true);
    told(4, 2);
    phase(4, false);
    told(5, 3);
    service.rewrite(|text| text.replace(&more, ""));
    assert_eq!(reload(&service), serde_json::json!(["sink.more"]));
    phase(5, true);
    told(6, 3);
    service.end("KILL");
    service.start_again();
    phase(6, false);
    told(7, 3);
    keys_in_order("webhook", &there.of("/hook"));
    assert!(away.of("/hook").is_empty());
}

#[test]
fn a_hundred_changes_of_alerts_are_recomputed_from_their_records_to_the_bit() {
    let mut engine = Engine::new(fleet());
    let mut changes = Vec::new();
    let mut rng = Rng::new(20_261_121);
    for i in 0..120_000_i64 {
        let model = format!("m{}", i % 5);
        let bad = (i / 6_000) % 2 == 1;
        let z = rng.uniform();
        let score = if i % 5 == 4 {
            (8.0 * z).round() / 8.0
        } else {
            z
        };
        let truth = if bad { score * 0.6 } else { score };
        let event = Event {
            model: &model,
            version: "1",
            segment: "",
            id: b"",
            time_ms: BEGIN_MS + i * 10,
            arrival_ms: None,
            prediction: Prediction::Score(score),
            outcome: Some(Outcome::Binary(rng.uniform() < truth)),
            weight: None,
            cluster: None,
        };
        let origin = Origin {
            source: 0,
            partition: 0,
            offset: i,
        };
        engine.observe(origin, &event);
        if i % 500 == 0 {
            changes.extend(engine.tick(BEGIN_MS));
        }
    }
    // Data stop, and nothing can be said any more.
    changes.extend(engine.tick(BEGIN_MS + 10_000_000));
    changes.extend(engine.tick(BEGIN_MS + 20_000_000));
    let offsets = || vec![("t".to_owned(), 0, 120_000)];
    let of_alerts = changes.iter();
    let of_alerts = of_alerts.filter_map(|c| Record::of(c, "0123456789abcdef", offsets()));
    let records: Vec<Record> = of_alerts.collect();
    let (mut judged, mut detected, mut pages) = (0, 0, 0);
    for record in &records {
        let text = serde_json::to_string(record).expect("a record");
        let read = Record::read(&text).expect("it reads back");
        let checked = read.recompute();
        assert!(
            checked.different.is_empty(),
            "{}: {checked:?}",
            read.words()
        );
        judged += usize::from(checked.equal.iter().any(|p| p.ends_with("evaluation")));
        detected += usize::from(checked.equal.iter().any(|p| p == "detector"));
        pages += usize::from(read.key.ends_with("-page"));
        assert!(read.words().contains("window 6s"));
    }
    let all = records.len();
    println!(
        "{all} records recomputed: {judged} with windows, {detected} with the detector, {pages} pages"
    );
    assert!(all >= 100 && judged >= 50 && detected >= 100 && pages > 0);
    // One bit elsewhere is found.
    let (mut found, mut tried) = (0, 0);
    for record in &records {
        let mut value = serde_json::to_value(record).expect("a record");
        let Some(sums) = value["windows"][0]["sums"].as_str().map(str::to_owned) else {
            continue;
        };
        let last = if sums.ends_with('0') { "1" } else { "0" };
        value["windows"][0]["sums"] = Value::from(sums[..sums.len() - 1].to_owned() + last);
        let other = Record::read(&value.to_string()).expect("it reads back");
        (found, tried) = (
            found + usize::from(!other.recompute().different.is_empty()),
            tried + 1,
        );
    }
    assert_eq!(
        found, tried,
        "a record that was changed is told from one that was not"
    );
}

fn fleet() -> Plan {
    let text = r#"version = 1
[kafka]
brokers = "b:1"
[[source]]
topics = "t"
[source.fields]
score = "s"
[[model]]
name = "*"
windows = ["6s", "30s"]
lateness = "1s"
[model.test]
tolerance = 0.02
overdispersion = "show"
min_events = 200
[model.alert]
window_alerts = true
budget = "2000 events"
for = "2s"
keep_firing_for = "3s"
stale_after = "1h"
[[model]]
name = "m1"
axis = "logit"
axis_low = 0.001
axis_high = 0.999
[[model]]
name = "m2"
test = { critical = "monte_carlo", replicates = 99, distances = "cheap", discrete = "off" }
[[model]]
name = "m3"
alert = { window_alerts = true, budget = "5% ever", for = "0s", keep_firing_for = "1s" }
"#;
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::new(),
    };
    let config = Config::parse(text, "fleet.toml", &outside);
    config.expect("a sound configuration").plan
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

#[test]
fn people_silence_and_acknowledge_and_a_restart_remembers_it() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let receiver = Receiver::start(false);
    let mut service = Service::start(&config(&brokers, "scored", "1s", &webhook(&receiver)));
    wait_for("an answer", LIMIT, || service.get("/live"));
    let url = service.url();
    let ask = |arguments: &[&str]| {
        let mut all = vec!["alert"];
        all.extend(arguments);
        all.extend(["--url", &url]);
        trueline(&all)
    };
    let (code, said) = ask(&[
        "silence", "model=b", "--for", "1h", "--by", "ann", "--note", "release",
    ]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = ask(&["silence", "modle=b"]);
    assert!(
        code == Some(65) && said.contains("model, version"),
        "{code:?} {said}"
    );
    produce(&brokers, "scored", &phase(&["a", "b"], 0, false));
    wait_for("one alert", LIMIT, || {
        (receiver.of("/hook").len() == 1).then_some(())
    });
    let of_a = receiver.of("/hook")[0].clone();
    assert_eq!(of_a["model"], "a");
    let fingerprint = of_a["fingerprint"].as_str().expect("a fingerprint");
    let record = of_a["record"].as_str().expect("a record");
    let (code, said) = ask(&["ack", fingerprint, "--by", "bob", "--note", "rolling back"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, _) = ask(&["ack", "no-such-alert", "--by", "bob"]);
    assert_eq!(code, Some(65));
    std::thread::sleep(Duration::from_millis(2_500));
    service.end("KILL");
    service.start_again();
    let said = wait_for("both alerts", LIMIT, || {
        let (_, said) = ask(&["list"]);
        (said.matches("firing").count() == 2).then_some(said)
    });
    assert!(
        said.contains("acknowledged by bob") && said.contains("silenced by ann"),
        "{said}"
    );
    let (_, said) = ask(&["silence"]);
    assert!(
        said.contains("model=b") && said.contains("release"),
        "{said}"
    );
    assert_eq!(receiver.of("/hook").len(), 1);
    // Lifted, what still fires is told.
    let (code, said) = ask(&["silence", "--lift", "1"]);
    assert_eq!(code, Some(0), "{said}");
    wait_for("the other alert", LIMIT, || {
        (receiver.of("/hook").len() == 2).then_some(())
    });
    assert_eq!(receiver.of("/hook")[1]["model"], "b");
    // What happened can be told from the record, and made again.
    let state = service.state().display().to_string();
    let (code, said) = trueline(&["explain", record, "--state", &state]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("fires (warn)") && said.contains("window 6s: evaluation"),
        "{said}"
    );
    // The alert that notifications name has the newest record of its streams.
    let alert = receiver.of("/hook")[0]["fingerprint"].clone();
    let alert = alert.as_str().expect("a fingerprint");
    let (code, said) = trueline(&["explain", alert, "--state", &state]);
    assert!(code == Some(0) && said.contains("window 6s"), "{said}");
    let path = format!("/api/v1/explanations/{alert}");
    let (status, said) = service.ask("GET", &path).expect("an answer");
    assert!(status == 200 && said.contains("window 6s"), "{said}");
    let (code, said) = trueline(&["explain", "--state", &state]);
    assert!(code == Some(0) && said.lines().count() >= 2, "{said}");
    let (code, _) = trueline(&["explain", "0123", "--state", &state]);
    assert_eq!(code, Some(66));
    let (status, _) = service.ask("POST", "/api/v1/silences").expect("an answer");
    assert_eq!(
        status, 415,
        "a page of another site cannot silence anything"
    );
    let (status, _) = service
        .ask("DELETE", "/api/v1/silences/99")
        .expect("an answer");
    assert_eq!(status, 404);
}

#[test]
fn a_test_alert_goes_through_each_sink_and_what_came_back_is_said() {
    let receiver = Receiver::start(false);
    let nobody = "[[sink]]\nname = \"gone\"\nkind = \"slack\"\nurl = \"http://127.0.0.1:1/x\"\ntimeout = \"1s\"\n\
                  [[sink]]\nname = \"dry\"\nkind = \"kafka\"\ndry_run = true\n";
    let text = config("127.0.0.1:1", "t", "1s", &(webhook(&receiver) + nobody));
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("try-{}", unique()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join("t.toml");
    std::fs::write(&path, text.replace("LISTEN", "127.0.0.1:0")).expect("a file");
    let path = path.display().to_string();
    let (code, said) = trueline(&["alert", "test", "--config", &path]);
    assert_eq!(code, Some(69), "{said}");
    assert!(said.contains("hook (webhook): accepted: 200 ok"), "{said}");
    assert!(said.contains("gone (slack): failed"), "{said}");
    assert!(said.contains("dry (kafka): accepted: dry run"), "{said}");
    let told: Vec<Value> = receiver.of("/hook");
    assert_eq!(
        (told.len(), &told[1]["status"]),
        (2, &Value::from("resolved"))
    );
    let (code, said) = trueline(&["alert", "test", "--config", &path, "--sink", "hook"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = trueline(&["alert", "test", "--config", &path, "--sink", "hok"]);
    assert!(
        code == Some(78) && said.contains("hook, gone, dry"),
        "{said}"
    );
    let _ = std::fs::remove_dir_all(dir);
}
