//! A running `trueline` under its operators' hands: reload, `top`, `tap`, `state`. The broker is
//! one in the test's process; the service is a process of its own.

use std::process::{Command, Output};
use std::time::Duration;

use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;

const CONFIG: &str = r#"version = 1
[kafka]
brokers = "BROKERS"
[[source]]
topics = ["scored"]
[source.fields]
id = "id"
time = "time_ms"
score = "score"
segments = ["k"]
[[model]]
name = "*"
windows = ["6s", "36s"]
lateness = "2s"
[model.test]
min_events = 200
tolerance = 0.9
[http]
listen = "LISTEN"
[state]
directory = 'STATE'
interval = "1s"
"#;

/// 2023-11-14, a multiple of every slide.
const BEGIN_MS: i64 = 1_700_000_064_000;

/// Nobody is there; it does not matter to a reload.
const NOWHERE: &str = "127.0.0.1:1";

fn service(brokers: &str) -> Service {
    let service = Service::start(&CONFIG.replace("BROKERS", brokers));
    wait_for("an answer", LIMIT, || service.get("/live"));
    service
}

/// Events of two segments, ten milliseconds apart, whose outcomes come more seldom than they are
/// said to.
fn produce(brokers: &str, from: i64, n: i64) {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .create()
        .expect("a producer");
    for i in from..from + n {
        let score = (i as f64 * 0.414_213_562_373).fract();
        let happened = (i as f64 * 0.618_033_988_749).fract() < 0.5 * score;
        let payload = format!(
            r#"{{"model":"net","id":"r{i}","time_ms":{},"score":{score},"outcome":{happened},"k":"{}"}}"#,
            BEGIN_MS + i * 10,
            i % 2
        );
        let record = BaseRecord::<(), str>::to("scored")
            .payload(&payload)
            .partition(0);
        producer.send(record).expect("room in the queue");
    }
    producer
        .flush(Duration::from_secs(20))
        .expect("all delivered");
}

fn trueline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(arguments)
        .output()
        .expect("trueline starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(body: &str) -> Value {
    serde_json::from_str(body).expect("JSON")
}

fn reload(service: &Service) -> (u16, Value) {
    let (status, body) = service.ask("POST", "/-/reload").expect("an answer");
    (status, json(&body))
}

fn words(list: &Value) -> Vec<String> {
    let all = list.as_array().expect("a list").iter();
    all.map(|v| v.as_str().expect("text").to_owned()).collect()
}

#[test]
fn a_reload_applies_what_may_change_and_names_what_needs_a_restart() {
    let service = service(NOWHERE);
    assert_eq!(service.metric("trueline_config_info", &[]), 1.0);
    let (status, same) = reload(&service);
    assert_eq!((status, &same["reloaded"]), (200, &Value::Bool(true)));
    assert!(words(&same["applied"]).is_empty() && words(&same["needs_restart"]).is_empty());
    service.rewrite(|t| {
        t.replace("tolerance = 0.9", "tolerance = 0.1\nalpha = 0.01")
            .replace(
                "lateness = \"2s\"",
                "lateness = \"4s\"\nsegments_max = 3\n[model.alert]\nfor = \"7s\"",
            )
            .replace("\"scored\"", "\"scored\", \"more\"")
            + "[log]\nlevel = \"debug\"\n[limits]\nseries_max = 77\n"
    });
    let (status, changed) = reload(&service);
    assert_eq!(status, 200, "{changed}");
    let applied = [
        "limits.series_max",
        "log.level",
        "model.*.alert.for",
        "model.*.segments_max",
        "model.*.test.alpha",
        "model.*.test.tolerance",
    ];
    assert_eq!(words(&changed["applied"]), applied);
    let restart = ["model.*.lateness", "source.scored.topics"];
    assert_eq!(words(&changed["needs_restart"]), restart);
    assert_ne!(changed["hash"], same["hash"]);
    let waiting = || service.metric("trueline_config_keys_need_restart", &[]);
    assert_eq!(waiting(), 2.0);
    // What was applied is no news the next time, what needs a restart still is.
    let (_, again) = reload(&service);
    assert!(words(&again["applied"]).is_empty());
    assert_eq!(words(&again["needs_restart"]), restart);
    service.rewrite(|t| t.replace("\"4s\"", "\"2s\"").replace(", \"more\"", ""));
    assert!(words(&reload(&service).1["needs_restart"]).is_empty());
    assert_eq!(waiting(), 0.0);
    let (status, refused) = service.get("/-/reload").expect("an answer");
    assert!(status == 405 && refused.contains("POST"), "{refused}");
}

#[test]
fn a_bad_file_changes_nothing_says_what_check_says_and_sets_a_metric() {
    let service = service(NOWHERE);
    let loaded = || service.metric("trueline_config_last_load_success", &[]);
    let at = || service.metric("trueline_config_loaded_timestamp_seconds", &[]);
    let (before, first) = (reload(&service).1["hash"].clone(), at());
    assert_eq!(loaded(), 1.0);
    service.rewrite(|t| t.replace("tolerance = 0.9", "tolerence = 0.1\nalpha = 2"));
    let (status, refused) = reload(&service);
    assert_eq!((status, &refused["reloaded"]), (422, &Value::Bool(false)));
    let problems = words(&refused["problems"]);
    assert_eq!(problems.len(), 2, "{problems:?}");
    let (code, said) = service.check();
    assert_eq!(code, Some(78));
    for problem in &problems {
        assert!(said.contains(problem), "{problem}\nis not in\n{said}");
    }
    assert_eq!((loaded(), at()), (0.0, first));
    // By a signal it is the same, and the log says it.
    service.signal("HUP");
    service.wait_for_line(&["configuration not reloaded", "tolerence"]);
    service.rewrite(|t| t.replace("tolerence = 0.1\nalpha = 2", "tolerance = 0.9"));
    service.signal("HUP");
    service.wait_for_line(&["configuration reloaded"]);
    wait_for("the metric", LIMIT, || (loaded() == 1.0).then_some(()));
    assert_eq!(reload(&service).1["hash"], before);
    assert!(at() >= first);
}

/// Anyone who can connect can send these, so their lines are few, and say what was wrong.
#[test]
fn requests_that_are_refused_do_not_fill_the_log() {
    let service = service(NOWHERE);
    for _ in 0..100 {
        let kind = [("content-type", "text/plain")];
        let refused = service.post("/-/reload", &kind, "").expect("an answer");
        assert_eq!(refused.0, 415);
    }
    let line = service.wait_for_line(&["http request refused"]);
    for part in ["WARN", "415", "/-/reload", "could come from any page"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    // Two periods, should the requests lie on both sides of an end of one.
    let lines = service.lines_with("/-/reload");
    assert!((1..=10).contains(&lines), "{lines} lines");
    // What is done is always logged.
    assert_eq!(reload(&service).0, 200);
    service.wait_for_line(&["http request to change something", "200"]);
}

#[test]
fn a_tolerance_that_is_reloaded_judges_from_the_next_slide_on_and_top_tells() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let service = service(&brokers);
    produce(&brokers, 0, 3_000);
    let verdict = |n: u64, verdict: &str| {
        wait_for(verdict, LIMIT, || {
            let (_, body) = service.get("/api/v1/streams/net%2F%2F%2A%2Fbinary")?;
            let answer: Value = serde_json::from_str(&body).ok()?;
            let window = answer["windows"].as_array()?.first()?.clone();
            (window["n"] == n && window["verdict"] == verdict).then_some(())
        });
    };
    verdict(600, "calibrated");
    service.rewrite(|t| t.replace("tolerance = 0.9", "tolerance = 0.05"));
    assert_eq!(
        words(&reload(&service).1["applied"]),
        ["model.*.test.tolerance"]
    );
    produce(&brokers, 3_000, 1_000);
    verdict(600, "miscalibrated");

    let top = trueline(&["top", "--once", "--url", &service.url(), "--window", "6s"]);
    let table = text(&top.stdout);
    assert!(top.status.success(), "{}", text(&top.stderr));
    let rows: Vec<&str> = table.lines().collect();
    // The roll-up and its two segments, worst first.
    assert_eq!(rows.len(), 5, "{table}");
    assert!(
        rows[1].contains("verdict") && rows[1].contains("age"),
        "{table}"
    );
    assert!(
        rows[2..].iter().all(|r| r.contains("miscalibrated")),
        "{table}"
    );
    assert!(table.contains("net//*/binary") && table.contains("net//k=0/binary"));
    assert!(!table.contains('\x1b'), "plain where it is no terminal");
    let none = trueline(&["top", "--once", "--url", &service.url(), "--model", "nope"]);
    assert_eq!(none.status.code(), Some(1), "{}", text(&none.stdout));
    assert!(text(&none.stderr).contains("no window of model `nope`"));
    let gone = trueline(&["top", "--once", "--url", "http://127.0.0.1:1"]);
    assert_eq!(gone.status.code(), Some(69));
    // Lag in seconds is known, and none at the end.
    wait_for("a lag in seconds", LIMIT, || {
        let (_, metrics) = service.get("/metrics")?;
        let mut lag = metrics.lines();
        let found = lag.find(|l| l.starts_with("trueline_partition_lag_seconds{"));
        found.filter(|l| l.ends_with(" 0")).map(|_| ())
    });
}

#[test]
fn the_tap_shows_pairs_at_its_rate_and_says_what_it_left_out() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let service = service(&brokers);
    let url = service.url();
    let tap = std::thread::spawn(move || {
        trueline(&[
            "tap", "--url", &url, "--model", "net", "--rate", "50", "--count", "120",
        ])
    });
    wait_for("a listener", LIMIT, || {
        (service.metric("trueline_tap_listeners", &[]) == 1.0).then_some(())
    });
    // Traffic until the tap has enough.
    let mut sent = 0;
    while !tap.is_finished() && sent < 100_000 {
        produce(&brokers, sent, 1_000);
        sent += 1_000;
        std::thread::sleep(Duration::from_millis(100));
    }
    let done = tap.join().expect("no panic");
    assert!(done.status.success(), "{}", text(&done.stderr));
    let lines: Vec<Value> = text(&done.stdout).lines().map(json).collect();
    let (missed, pairs): (Vec<&Value>, Vec<&Value>) =
        lines.iter().partition(|l| l.get("missed").is_some());
    assert_eq!(pairs.len(), 120);
    assert!((1..20).contains(&missed.len()), "{missed:?}");
    for pair in pairs {
        let id = pair["id"].as_str().expect("an id");
        let i: i64 = id.trim_start_matches('r').parse().expect("a number");
        assert_eq!(pair["time_ms"], BEGIN_MS + i * 10);
        assert_eq!(pair["segment"], format!("k={}", i % 2));
        assert_eq!(pair["how"], "observed");
        let score = pair["scores"]["binary"].as_f64().expect("a score");
        assert!((score - (i as f64 * 0.414_213_562_373).fract()).abs() < 1e-12);
    }
    // It counted all the same, and nobody listens any more.
    wait_for("the records", LIMIT, || {
        (service.metric("trueline_records_read_total", &[]) == sent as f64).then_some(())
    });
    let other = service.get("/api/v1/tap?rate=many").expect("an answer");
    assert_eq!(other.0, 400);
}

#[test]
fn the_history_of_a_window_outlives_an_end_and_a_kill() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let mut service = service(&brokers);
    produce(&brokers, 0, 4_000);
    let past = |service: &Service| {
        let (status, body) = service.get("/api/v1/streams/net//%2A/binary/history")?;
        let body = (status == 200).then(|| json(&body))?;
        let points = body["windows"][0]["points"].as_array()?.clone();
        (points.len() > 5).then_some(points)
    };
    wait_for("the records", LIMIT, || {
        (service.metric("trueline_records_read_total", &[]) == 4_000.0).then_some(())
    });
    wait_for("a history", LIMIT, || past(&service));
    assert_eq!(service.end("TERM"), Some(0));
    service.start_again();
    let before = wait_for("the history again", LIMIT, || past(&service));
    wait_for("its size", LIMIT, || {
        (service.metric("trueline_history_points", &[]) >= before.len() as f64).then_some(())
    });
    for point in &before {
        assert!(point["end_ms"].as_i64() > Some(BEGIN_MS) && !point["verdict"].is_null());
    }
    service.end("KILL");
    service.start_again();
    let after = wait_for("the history after a kill", LIMIT, || past(&service));
    assert_eq!(before, after);
    assert_eq!(service.metric("trueline_history_refused_total", &[]), 0.0);
    assert_eq!(service.metric("trueline_history_errors_total", &[]), 0.0);
}

#[test]
fn state_is_inspected_exported_and_imported_to_the_bit() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("scored", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let mut service = service(&brokers);
    produce(&brokers, 0, 2_000);
    wait_for("the records", LIMIT, || {
        (service.metric("trueline_records_read_total", &[]) == 2_000.0).then_some(())
    });
    let state = service.state();
    let path = state.display().to_string();
    let look = |more: &[&str]| {
        let mut arguments = vec!["state", "inspect", &path];
        arguments.extend(more);
        let done = trueline(&arguments);
        (done.status.code(), text(&done.stdout))
    };
    wait_for("a snapshot", LIMIT, || {
        look(&[]).1.contains("in use by a running").then_some(())
    });
    assert_eq!(service.end("TERM"), Some(0));
    let (code, said) = look(&[]);
    assert_eq!(code, Some(0));
    for words in [
        "not in use",
        "a start restores it",
        "scored[0]: next offset 2000",
        "model *: binary over 6s, 36s",
        "stream net//*: ",
        "stream net//k=1: ",
    ] {
        assert!(said.contains(words), "{words}\nis not in\n{said}");
    }
    let found = json(&look(&["--json"]).1);
    assert_eq!(found["newest"]["partitions"][0]["offset"], 2_000);
    assert_eq!(found["newest"]["observed"], 2_000);

    // A time that event time has not come to moves nothing back.
    let bytes = |path: &str| std::fs::read(path).expect("a snapshot");
    let newest = found["newest"]["path"].as_str().expect("a path");
    let before = bytes(newest);
    let ahead = ["state", "reset-watermark", &path, "--to", "2099-01-01"];
    let done = trueline(&ahead);
    assert_eq!(done.status.code(), Some(64), "{}", text(&done.stderr));
    assert!(
        text(&done.stderr).contains("nothing is changed"),
        "{}",
        text(&done.stderr)
    );
    let after = json(&look(&["--json"]).1);
    assert_eq!(after["newest"], found["newest"]);
    assert!(bytes(newest) == before, "the snapshot has changed");

    let journal = |directory: &str| {
        let lines = std::fs::read(format!("{directory}/alerts.journal")).expect("a journal");
        trueline::notify::journal::read(&lines).0
    };
    let silenced = r#"{"silenced":{"id":7,"matchers":["model=m"],"from_ms":1,"until_ms":2,"by":"ann","note":""}}"#;
    let lines = std::fs::read_to_string(state.join("alerts.journal")).expect("a journal");
    std::fs::write(state.join("alerts.journal"), format!("{lines}{silenced}\n")).expect("written");
    let file = state.with_extension("jsonl");
    let file = file.display().to_string();
    let done = trueline(&["state", "export", &path, &file]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let elsewhere = state.with_extension("new").display().to_string();
    let done = trueline(&["state", "import", &file, &elsewhere]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let copied = format!("{elsewhere}/snapshot-00000000000000000000.trueline");
    assert!(bytes(newest) == bytes(&copied), "not the same bits");
    assert_eq!(journal(&elsewhere), journal(&path));
    assert_eq!(journal(&elsewhere).silences.silences[0].id, 7);
    // Not over state that is there, and nothing of a file that is cut short.
    let done = trueline(&["state", "import", &file, &elsewhere]);
    assert_eq!(done.status.code(), Some(69));
    assert!(text(&done.stderr).contains("holds state already"));
    let whole = std::fs::read_to_string(&file).expect("the export");
    let cut = state.with_extension("cut");
    let last = whole.trim_end().rfind('\n').expect("lines");
    for (damaged, why) in [
        (whole[..=last].to_owned(), "ends before its last line"),
        (
            whole.replacen("scored", "scared", 1),
            "not those that were exported",
        ),
        (
            whole.replacen("\"snapshot_format\":", "\"snapshot_format\":9", 1),
            "snapshot format 9",
        ),
        (String::new(), "the file is empty"),
    ] {
        std::fs::write(&cut, damaged).expect("a file");
        let target = state.with_extension("void").display().to_string();
        let done = trueline(&["state", "import", &cut.display().to_string(), &target]);
        assert_eq!(done.status.code(), Some(65));
        assert!(text(&done.stderr).contains(why), "{}", text(&done.stderr));
        assert!(!std::path::Path::new(&target).exists());
    }
    // A fault is named with its file.
    let mut torn = bytes(newest);
    torn.pop();
    std::fs::write(newest, torn).expect("a torn snapshot");
    let (code, said) = look(&[]);
    let name = newest.rsplit('/').next().expect("a name");
    let line = said.lines().find(|l| l.contains(name)).expect("a line");
    assert!(line.contains("torn"), "{line}");
    assert_eq!(code, Some(0), "an older one is used");
}

#[test]
#[cfg(unix)]
fn a_log_that_nobody_reads_stops_nothing() {
    let mut service = service(NOWHERE);
    assert_eq!(service.end("TERM"), Some(0));
    // Its log becomes a pipe that this test holds open and does not read.
    let log = service.config().with_file_name("log");
    std::fs::remove_file(&log).expect("a log");
    let made = Command::new("mkfifo").arg(&log).status();
    assert!(made.expect("mkfifo").success());
    let pipe = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&log);
    let pipe = pipe.expect("a pipe");
    service.start_again();
    wait_for("an answer", LIMIT, || service.get("/live"));
    // Each is a line of some 200 bytes; a pipe takes 65,536.
    for i in 0..600 {
        let refused = service.post("/api/v1/silences", &[], "{}");
        assert!(refused.is_some(), "request {i} has no answer");
    }
    assert_eq!(service.get("/live").map(|(status, _)| status), Some(200));
    assert_eq!(service.end("TERM"), Some(0));
    drop(pipe);
}

#[test]
#[cfg(unix)]
fn a_second_signal_ends_the_process_at_once_and_the_lines_that_wait_are_written() {
    let linger = ("TRUELINE_LINGER", "5m".to_owned());
    let mut service = Service::start_with(&CONFIG.replace("BROKERS", NOWHERE), vec![linger]);
    wait_for("an answer", LIMIT, || service.get("/live"));
    service.signal("TERM");
    service.wait_for_line(&["last snapshot written"]);
    // What comes at once is taken for the same signal.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(service.end("TERM"), Some(130));
    assert_eq!(service.lines_with("a second signal"), 1);
}
