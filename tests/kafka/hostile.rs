//! Records and requests that are made to harm, and snapshots that are broken, on a real Kafka: each
//! costs itself.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::broker::{Broker, unique};
use crate::support::encode::frame;
use crate::support::late::now_ms;
use crate::support::registry::TestRegistry;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;

/// Events of every model over `topic`, and `more` sections.
fn config(broker: &Broker, topic: &str, more: &str) -> String {
    format!(
        r#"
version = 1
[kafka]
brokers = "{}"
group = "{topic}"
[kafka.options]
"session.timeout.ms" = "6000"
[[source]]
name = "scores"
topics = ["{topic}"]
dead_letter = "{topic}.dead"
[source.fields]
score = "score"
time = "time_ms"
version = "version"
segments = ["country"]
{more}
[[model]]
name = "*"
windows = [{{ width = "10h", slide = "10m" }}]
lateness = "30m"
"#,
        broker.bootstrap
    )
}

fn event(model: &str, version: &str, country: &str, i: u64, time_ms: i64) -> Vec<u8> {
    let event = serde_json::json!({
        "model": model, "version": version, "country": country,
        "score": 0.5, "outcome": i % 2, "time_ms": time_ms,
    });
    event.to_string().into_bytes()
}

fn wait_counted(service: &Service, disposition: &str, n: u64) {
    wait_for(
        &format!("{n} records that are {disposition}"),
        LIMIT,
        || (service.counted(disposition) == Some(n as f64)).then_some(()),
    );
}

/// Names that a shell, a browser, a query or a terminal would take for something else.
const NAMES: [&str; 29] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' OR 1=1 --",
    "$(reboot)",
    "`id`",
    "${jndi:ldap://x}",
    "../../etc/passwd",
    "..\\..\\windows",
    "a/b",
    "a?b=c#d",
    "%2e%2e%2f",
    "{{7*7}}",
    "a\"b",
    "a\\b",
    "a\nb",
    "a\r\nSet-Cookie: x",
    "a\tb",
    "\u{1b}[31mred",
    "\u{202e}evil",
    "\u{200b}",
    "\u{feff}bom",
    "a\u{0}b",
    "NaN",
    "null",
    " ",
    "Côte d'Ivoire",
    "名前",
    "🙂",
    "k=v,a=b",
];

/// Forty records, each with two fields of the next one: no byte, 2^40 visits.
fn multiplying() -> String {
    let mut text = r#"{"type":"record","name":"R40","fields":[]}"#.to_owned();
    for i in (0..40).rev() {
        let next = i + 1;
        text = format!(
            r#"{{"type":"record","name":"R{i}","fields":[{{"name":"a","type":{text}}},{{"name":"b","type":"R{next}"}}]}}"#
        );
    }
    text
}

#[test]
fn records_that_no_producer_should_send_cost_only_themselves() {
    let name = "records_that_no_producer_should_send_cost_only_themselves";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-hostile-{}", unique());
    let (dead, avro) = (format!("{topic}.dead"), format!("{topic}.avro"));
    broker.create_topic_of_any_time(&topic, 2);
    broker.create_topics(&[(&dead, 1), (&avro, 1)]);
    let registry = TestRegistry::start();
    let sound = r#"{"type":"record","name":"P","fields":[{"name":"score","type":"double"},{"name":"outcome","type":"boolean"}]}"#;
    registry.put(1, "AVRO", sound, &[]);
    registry.put(2, "AVRO", &multiplying(), &[]);
    registry.refuse(3, 422);
    let more = format!(
        r#"
[[source]]
name = "framed"
topics = ["{avro}"]
model = "framed"
format = "avro"
[source.fields]
score = "score"
[registry]
url = "{}"
"#,
        registry.url
    );
    let mut service = Service::start(&config(&broker, &topic, &more));
    service.wait_ready();
    let mut sender = broker.producer();
    let now = now_ms();
    let (mut observed, mut rejected) = (0, 0);
    for i in 0..3000 {
        let partition = (i % 2) as i32;
        sender.send(&topic, partition, &event("m", "1", "de", i, now));
        observed += 1;
        if i % 10 == 0 {
            sender.send_tombstone(&topic, partition, "gone");
            rejected += 1;
        }
    }
    for (i, name) in (0..).zip(NAMES) {
        for (model, version, country) in [(name, "1", "de"), ("m", name, "de"), ("m", "1", name)] {
            sender.send(&topic, 0, &event(model, version, country, i, now));
            observed += 1;
        }
    }
    let long = "x".repeat(600);
    sender.send(&topic, 0, &event(&long, "1", "de", 0, now));
    // The begin of time, and clocks far ahead.
    for time_ms in [1, -1, i64::MAX, now + 400 * 86_400_000] {
        sender.send(&topic, 1, &event("m", "1", "de", 0, time_ms));
    }
    rejected += 5;
    // A sound frame, a schema that multiplies, an id that the registry refuses, and no frame.
    let score = [&0.25f64.to_le_bytes()[..], &[1]].concat();
    for i in 0..100 {
        let bad = [frame(2, &[0; 8]), frame(3, &score), vec![i; 3]];
        sender.send(&avro, 0, &frame(1, &score));
        bad.iter().for_each(|bad| sender.send(&avro, 0, bad));
        observed += 1;
        rejected += bad.len() as u64;
    }
    sender.flush();
    wait_counted(&service, "observed", observed);
    wait_counted(&service, "rejected", rejected);
    assert_eq!(sender.sent, observed + rejected);
    let labels = ["reason=\"tombstone\""];
    assert_eq!(service.metric("trueline_records_total", &labels), 300.0);
    // One letter for each, as it came.
    let of_scores = rejected - 300;
    wait_for("the dead letters", LIMIT, || {
        (broker.read_all(&dead).len() as u64 == of_scores).then_some(())
    });
    // Each line of metrics was parsed and is conserved (`Service::get`); the page runs nothing.
    let page = service.get("/").expect("the page").1;
    assert!(!page.contains("<script>") && !page.contains("<img src=x"));
    for stream in service.streams().expect("streams") {
        let link = stream["links"]["page"].as_str().expect("a link");
        let (status, page) = service.get(link).expect("a page");
        assert_eq!(status, 200, "{link}");
        assert!(!page.contains("<img src=x"), "{link}");
    }
    assert_eq!(service.end("TERM"), Some(0));
}

/// What a connection answers to these bytes: its status.
fn status(service: &Service, bytes: &[u8]) -> Option<u16> {
    let mut stream = service.connect()?;
    let timeout = Some(Duration::from_secs(10));
    stream.set_read_timeout(timeout).ok()?;
    // One that is refused before its end was read hangs up.
    let _ = stream.write_all(bytes);
    let mut answer = vec![0; 64];
    let n = stream.read(&mut answer).ok()?;
    let text = String::from_utf8_lossy(&answer[..n]).into_owned();
    text.split(' ').nth(1)?.parse().ok()
}

#[test]
fn requests_that_are_made_to_harm_change_nothing_and_probes_are_answered() {
    let name = "requests_that_are_made_to_harm_change_nothing_and_probes_are_answered";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-doors-{}", unique());
    broker.create_topics(&[(&topic, 1)]);
    let mut service = Service::start(&config(&broker, &topic, ""));
    service.wait_ready();
    let mut sender = broker.producer();
    let now = now_ms();
    let refused = |bytes: &[u8]| {
        let answer = status(&service, bytes);
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let is = answer.is_none_or(|code| (400..600).contains(&code));
        assert!(is, "{head}: {answer:?}");
    };
    let line = "GET /metrics HTTP/1.1\r\nhost: trueline\r\n";
    let many: String = (0..1000).map(|i| format!("h{i}: x\r\n")).collect();
    refused(format!("{line}x: {}\r\n\r\n", "a".repeat(1 << 20)).as_bytes());
    refused(format!("{line}{many}\r\n").as_bytes());
    refused(b"GET /metrics HTTP/1.1\r\nhost: evil.example\r\n\r\n");
    refused(b"GET /../../etc/passwd HTTP/1.1\r\nhost: trueline\r\n\r\n");
    refused(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    let post = "POST /api/v1/silences HTTP/1.1\r\nhost: trueline\r\n";
    refused(format!("{post}origin: http://evil.example\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}").as_bytes());
    refused(format!("{post}content-type: text/plain\r\ncontent-length: 2\r\n\r\n{{}}").as_bytes());
    refused(format!("{post}content-type: application/json\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /x").as_bytes());
    let deep = "[".repeat(100_000);
    let length = deep.len();
    refused(
        format!("{post}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{deep}")
            .as_bytes(),
    );

    // Connections that are held, more than there are places, while events come.
    let held: Vec<_> = (0..1000).filter_map(|_| service.connect()).collect();
    for second in 0..5 {
        for i in 0..200 {
            sender.send(&topic, 0, &event("m", "1", "de", i, now));
        }
        sender.flush();
        for path in ["/live", "/ready", "/metrics"] {
            let begun = Instant::now();
            let answer = service.get(path).map(|(status, _)| status);
            assert_eq!(answer, Some(200), "{path}, second {second}");
            assert!(begun.elapsed() < Duration::from_secs(1), "{path}");
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    drop(held);
    wait_counted(&service, "observed", 1000);
    let silences = service.get("/api/v1/silences").expect("an answer").1;
    assert!(!silences.contains("\"id\""), "{silences}");
    assert_eq!(service.end("TERM"), Some(0));
}

/// The snapshots of a service that has ended, newest first. A kill may leave the part of one more,
/// which no start reads.
fn snapshots(service: &Service) -> Vec<PathBuf> {
    let files = std::fs::read_dir(service.state()).expect("a state directory");
    let files = files.map(|file| file.expect("an entry").path());
    let is = |path: &PathBuf| {
        let name = path.file_name().map(|n| n.to_string_lossy());
        name.is_some_and(|n| n.starts_with("snapshot-") && n.ends_with(".trueline"))
    };
    let mut all: Vec<PathBuf> = files.filter(is).collect();
    all.sort_unstable();
    all.reverse();
    all
}

fn change(path: &PathBuf, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("a snapshot");
    how(&mut bytes);
    std::fs::write(path, bytes).expect("it can be written");
}

#[test]
fn a_broken_snapshot_is_passed_over_and_without_a_whole_one_the_process_stops_by_name() {
    let name = "a_broken_snapshot_is_passed_over_and_without_a_whole_one_the_process_stops_by_name";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-broken-{}", unique());
    broker.create_topics(&[(&topic, 1)]);
    let mut service = Service::start(&config(&broker, &topic, ""));
    service.wait_ready();
    let mut sender = broker.producer();
    let now = now_ms();
    let mut sent = 0;
    let breaks: [fn(&mut Vec<u8>); 3] = [
        |bytes| {
            let at = bytes.len() / 2;
            bytes[at] ^= 1;
        },
        |bytes| bytes.truncate(bytes.len() / 2),
        Vec::clear,
    ];
    for how in breaks {
        for _ in 0..3 {
            for i in 0..100 {
                sender.send(&topic, 0, &event("m", "1", "de", i, now));
            }
            sender.flush();
            sent += 100;
            wait_counted(&service, "observed", sent);
            std::thread::sleep(Duration::from_millis(1500));
        }
        assert_eq!(service.end("KILL"), None);
        let all = snapshots(&service);
        assert!(all.len() > 1, "{all:?}");
        change(&all[0], how);
        service.start_again();
        wait_counted(&service, "observed", sent);
        assert!(service.metric("trueline_snapshots_refused_total", &[]) >= 1.0);
    }
    assert_eq!(service.end("KILL"), None);
    let all = snapshots(&service);
    all.iter().for_each(|path| change(path, Vec::clear));
    service.start_again();
    assert_eq!(service.wait_end(), Some(69));
    let newest = all[0].file_name().expect("a name").to_string_lossy();
    service.wait_for_line(&[&*newest]);
}
