//! `trueline backtest` and `replay` of ranges of topics of a real Kafka: what they say is what they
//! say of the same records in files, every time, and nothing is left behind.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::broker::{Broker, unique};
use crate::support::late;
use serde_json::Value;
use trueline::stats::rng::Rng;

/// An hour of events, ten a second; after half of it outcomes are rarer than said.
const BEGIN_MS: i64 = 1_700_000_100_000;
const EVENTS: i64 = 36_000;
const PARTITIONS: i32 = 3;

/// Event time and text of each record.
fn events() -> Vec<(i64, String)> {
    let mut draws = Rng::new(3);
    let event = |i: i64| {
        let (at, z) = (BEGIN_MS + i * 100, draws.uniform());
        let rate = if i >= EVENTS / 2 { z * z } else { z };
        let outcome = u8::from(draws.uniform() < rate);
        let text = format!(r#"{{"model":"m","time":{at},"score":{z},"outcome":{outcome}}}"#);
        (at, text)
    };
    (0..EVENTS).map(event).collect()
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", unique()));
    std::fs::write(&path, text).expect("a file");
    path
}

fn lines<'a>(texts: impl Iterator<Item = &'a String>) -> String {
    texts.fold(String::new(), |mut all, text| {
        let _ = writeln!(all, "{text}");
        all
    })
}

fn policy(brokers: &str, topic: &str, tolerance: f64) -> PathBuf {
    let text = format!(
        r#"
version = 1
[kafka]
brokers = "{brokers}"
group = "group-of-{topic}"
[[source]]
topics = ["{topic}"]
fields = {{ time = "time", score = "score" }}
[[model]]
name = "*"
windows = ["5m"]
[detector]
budget = "none"
[model.test]
tolerance = {tolerance}
[model.alert]
window_alerts = true
"#
    );
    file("policy.toml", &text)
}

fn trueline(verb: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
    let output = command.arg(verb).args(args).env_remove("TRUELINE_CONFIG");
    output.output().expect("it starts")
}

/// What `backtest --json` says, which must be sound.
fn backtest(args: &[&str]) -> (Value, Vec<u8>) {
    let mut all = vec!["--json"];
    all.extend(args);
    let output = trueline("backtest", &all);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    let json = serde_json::from_slice(&output.stdout).expect("json");
    (json, output.stdout)
}

/// What a policy did, without what says where its records lay.
fn done(all: &Value, policy: usize) -> Value {
    let mut one = all["policies"][policy].clone();
    let fields = one.as_object_mut().expect("an object");
    fields.remove("offsets");
    fields.remove("incomplete");
    one
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// A time as the command line takes it.
fn clock(ms: i64) -> String {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms as u64);
    humantime::format_rfc3339_millis(at).to_string()
}

#[test]
fn a_range_of_a_topic_says_what_the_same_records_in_a_file_say() {
    let name = "a_range_of_a_topic_says_what_the_same_records_in_a_file_say";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-range-{}", unique());
    broker.create_topics(&[(&topic, PARTITIONS)]);
    let (mut sender, events) = (broker.producer(), events());
    for (i, (at, text)) in (0i32..).zip(&events) {
        sender.send_at(&topic, i % PARTITIONS, *at, text.as_bytes());
    }
    sender.flush();
    let strict = policy(&broker.bootstrap, &topic, 0.05);
    let loose = policy(&broker.bootstrap, &topic, 0.5);
    let configs = ["--config", text(&strict), "--config", text(&loose)];

    let whole = file("whole.jsonl", &lines(events.iter().map(|e| &e.1)));
    let of_file = backtest(&[&configs[..], &[text(&whole)]].concat()).0;
    let range = [&configs[..], &["--from", "earliest"]].concat();
    let (of_topic, bytes) = backtest(&range);
    for policy in [0, 1] {
        assert_eq!(done(&of_topic, policy), done(&of_file, policy));
    }
    assert!(
        of_topic["policies"][0]["fired"].as_u64() > Some(0),
        "it bites"
    );
    assert_eq!(of_topic["policies"][1]["fired"], 0);
    assert_eq!(bytes, backtest(&range).1, "the same range says the same");

    // A part of it by time, and the same part by the offsets that were printed.
    let (from, to) = (BEGIN_MS + 600_000, BEGIN_MS + 3_000_000);
    let inside = events.iter().filter(|e| (from..to).contains(&e.0));
    let part = file("part.jsonl", &lines(inside.map(|e| &e.1)));
    let of_file = backtest(&[&configs[..], &[text(&part)]].concat()).0;
    let times = [clock(from), clock(to)];
    let by_time = ["--from", &times[0], "--to", &times[1]];
    let of_topic = backtest(&[&configs[..], &by_time].concat()).0;
    assert_eq!(done(&of_topic, 0), done(&of_file, 0));
    assert_eq!(of_topic["policies"][0]["observed"], 24_000);
    let last = ["--last", "40m", "--to", &times[1]];
    let of_last = backtest(&[&configs[..], &last].concat()).0;
    assert_eq!(of_last, of_topic);
    let offsets = of_topic["policies"][0]["offsets"].as_object();
    let bounds = |end: usize| {
        let all = offsets.expect("offsets").iter();
        let all: Vec<String> = all.map(|(p, o)| format!("{p}={}", o[end])).collect();
        format!("offset:{}", all.join(","))
    };
    let (from, to) = (bounds(0), bounds(1));
    let by_offset = ["--from", &from, "--to", &to];
    assert_eq!(backtest(&[&configs[..], &by_offset].concat()).0, of_topic);

    // Replay reads it the same way.
    let args = ["--json", "--config", text(&strict)];
    let of_topic = trueline("replay", &[&args[..], &by_offset].concat());
    let of_file = trueline("replay", &[&args[..], &[text(&part)]].concat());
    assert!(of_topic.status.success(), "{of_topic:?}");
    assert_eq!(of_topic.stdout, of_file.stdout);

    let groups = broker.groups();
    assert!(!groups.iter().any(|g| g.contains(&topic)), "{groups:?}");
}

#[test]
fn what_retention_has_deleted_of_a_range_is_said_and_read_only_when_asked() {
    let name = "what_retention_has_deleted_of_a_range_is_said_and_read_only_when_asked";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topic = format!("trueline-gap-{}", unique());
    broker.create_topics(&[(&topic, 2)]);
    let (mut sender, events) = (broker.producer(), events());
    for (i, (at, text)) in (0i32..).zip(&events) {
        sender.send_at(&topic, i % 2, *at, text.as_bytes());
    }
    sender.flush();
    // Ten minutes of the first partition.
    broker.delete_records(&topic, 0, 3000);
    let config = policy(&broker.bootstrap, &topic, 0.05);
    let config = ["--config", text(&config)];
    let begin = clock(BEGIN_MS);
    let by_time = [&config[..], &["--from", &begin]].concat();
    let output = trueline("backtest", &by_time);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(65), "{said}");
    let gap = format!("{topic}/0: the oldest remaining record is offset 3000 at ");
    assert!(
        said.contains(&gap) && said.contains("10m after the start"),
        "{said}"
    );
    assert!(!said.contains(&format!("{topic}/1")), "{said}");

    let output = trueline(
        "backtest",
        &[&config[..], &["--from", "offset:1000"]].concat(),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(65), "{said}");
    assert!(
        said.contains(&format!(
            "{topic}/0: 2000 records before offset 3000 are deleted"
        )),
        "{said}"
    );

    let all = backtest(&[&by_time[..], &["--incomplete"]].concat()).0;
    assert_eq!(all["policies"][0]["records"], EVENTS - 3000);
    let gaps = all["policies"][0]["incomplete"].as_array().map(Vec::len);
    assert_eq!(gaps, Some(1));
    // Whoever asks for what is left asks for no more, and a begin behind the gap lacks nothing.
    let all = backtest(&[&config[..], &["--from", "earliest"]].concat()).0;
    assert_eq!(all["policies"][0]["records"], EVENTS - 3000);
    let later = clock(BEGIN_MS + 600_000);
    backtest(&[&config[..], &["--from", &later]].concat());
}

#[test]
fn a_topic_that_is_not_there_is_named() {
    let name = "a_topic_that_is_not_there_is_named";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let config = policy(&broker.bootstrap, "trueline-no-such-topic", 0.05);
    let output = trueline("backtest", &["--config", text(&config), "--last", "1h"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("trueline-no-such-topic"), "{said}");
}

#[test]
fn predictions_and_outcomes_on_two_topics_say_what_they_say_in_two_files() {
    let name = "predictions_and_outcomes_on_two_topics_say_what_they_say_in_two_files";
    let Some(broker) = Broker::any(name) else {
        return;
    };
    let topics = ["predictions", "outcomes"].map(|t| format!("trueline-joined-{t}-{}", unique()));
    broker.create_topics(&[(&topics[0], PARTITIONS), (&topics[1], PARTITIONS)]);
    let mut records = late::records(60_000, PARTITIONS);
    // Nothing is newer than what makes the last predictions mature, wherever the clock has put the
    // panes.
    let predictions = records.iter().filter(|r| !r.outcome);
    let newest = predictions.map(|r| r.time_ms).max().expect("predictions");
    records.retain(|r| r.time_ms < newest + 4 * late::MINUTE);
    let mut sender = broker.producer();
    for r in &records {
        let topic = &topics[usize::from(r.outcome)];
        sender.send_at(topic, r.partition, r.time_ms, r.text.as_bytes());
    }
    sender.flush();
    let group = format!("group-of-{}", topics[0]);
    let config = late::config(&broker.bootstrap, &group, &topics, "", "");
    let config = config
        .replace("LISTEN", "127.0.0.1:0")
        .replace("STATE", "none");
    let config = file("late.toml", &config);
    let of = |outcome: bool| {
        let mine = records.iter().filter(|r| r.outcome == outcome);
        let name = if outcome {
            "outcomes.jsonl"
        } else {
            "predictions.jsonl"
        };
        file(name, &lines(mine.map(|r| &r.text)))
    };
    let (predictions, outcomes) = (of(false), of(true));
    let args = ["--json", "--config", text(&config)];
    let files = [text(&predictions), "--outcomes", text(&outcomes)];
    let of_files = trueline("replay", &[&args[..], &files].concat());
    let range = [&args[..], &["--from", "earliest"]].concat();
    let of_topics = trueline("replay", &range);
    let said = String::from_utf8_lossy(&of_topics.stderr);
    assert!(of_topics.status.success(), "{said}");
    assert_eq!(of_topics.stdout, of_files.stdout, "{said}");
    assert_eq!(of_topics.stderr, of_files.stderr, "the same dispositions");
    assert!(
        said.contains("matched") && said.contains("revised"),
        "{said}"
    );
    // The last five minutes are not mature, and are not called negative.
    assert!(said.contains("pending"), "{said}");
    assert_eq!(trueline("replay", &range).stdout, of_topics.stdout);

    // A range that ends at a time takes in the outcomes of its predictions that came later.
    let middle = records[records.len() / 2].time_ms;
    let end = clock(middle);
    let args = [
        "--json",
        "--config",
        text(&config),
        "--from",
        "earliest",
        "--to",
        &end,
    ];
    let all: Value = serde_json::from_slice(&trueline("backtest", &args).stdout).expect("json");
    let of_policy = &all["policies"][0];
    assert!(of_policy["others"]["pending"].is_null(), "{of_policy:#}");
    let before = records
        .iter()
        .filter(|r| !r.outcome && r.time_ms < middle)
        .count() as u64;
    let late = of_policy["others"]["duplicate"].as_u64().unwrap_or(0);
    assert!(
        of_policy["observed"].as_u64() > Some(before - late - before / 20),
        "{of_policy:#}"
    );
}
