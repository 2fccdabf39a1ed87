//! `deploy/guide/json.md` against the outputs of the program: the page names every field of each,
//! and every field that it names exists.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::support::json_page::JsonPage;
use crate::support::published::{Chance, id, populated, publish_alerts, publish_vectors, sample};
use crate::support::server::Server;
use crate::support::service::{LIMIT, Service};
use crate::support::wait_for;
use serde_json::{Value, json};
use trueline::judge::detector::{Hold, HoldReason};
use trueline::judge::detector_report::WaitingAlarm;
use trueline::monitor::activity::Unjudged;
use trueline::notify::notification::{FiringStream, Links};
use trueline::notify::options::Texts;
use trueline::notify::template::Template;
use trueline::notify::{Notification, webhook};
use trueline::report;
use trueline::stats::clusters::Clusters;
use trueline::stats::kernel::window::{KernelOptions, KernelSums, evaluate as evaluate_kernel};
use trueline::stats::overdispersion::Overdispersion;
use trueline::stats::repeats::RepeatedScores;
use trueline::stats::view::View;
use trueline::telemetry::facts::Role;
use trueline::telemetry::{Limits, Published};

#[test]
fn the_page_about_json_names_every_field_of_every_output_and_no_other() {
    let mut page = JsonPage::read();
    of_published(&mut page);
    of_rare_parts(&mut page);
    of_a_service(&mut page);
    of_evaluate(&mut page);
    of_replay(&mut page);
    // Those of Kafka and of `reproduce` are held against their outputs where these are made.
    let elsewhere = ["state-topic", "claim", "reproduce"];
    page.finish(|section| !elsewhere.contains(&section));
}

const OVERDISPERSION: Overdispersion = Overdispersion {
    factor: 1.2,
    low: 1.1,
    high: 1.3,
    degrees: 40.0,
    panes: 41,
};

/// Everything that is answered about streams, with a part of each kind.
fn of_published(page: &mut JsonPage) {
    let published = populated();
    publish_vectors(&published);
    for report in crate::http::api::judged_vectors().reports() {
        published.publish(report);
    }
    let rare = id("rare", "", "", View::Class(3));
    let mut report = (*published.report(&rare).expect("a stream")).clone();
    (report.due_ms, report.overdispersion) = (Some(1), Some(OVERDISPERSION));
    let mut detector = (**report.detector.as_ref().expect("a detector")).clone();
    let why = HoldReason::FewOutcomes;
    detector.hold = Some(Hold { since_ms: 1, why });
    detector.waiting = Some(WaitingAlarm {
        since_ms: 1,
        until_ms: 2,
    });
    report.detector = Some(Arc::new(detector));
    published.publish(&Arc::new(report));
    publish_alerts(&published);
    crate::pages::rejecting(&published);
    published.update(|facts| {
        facts.unjudged.push(Unjudged {
            model: rare.model.clone(),
            version: String::new(),
            segment: String::new(),
            events: 1,
            until_ms: None,
            late: 0,
        });
    });
    published.not_ready("kafka", "the broker is away");
    let server = Server::start(published);
    let streams = server.json("/api/v1/streams");
    page.check("streams", &streams);
    for stream in streams["streams"].as_array().expect("streams") {
        let link = |name: &str| server.json(stream["links"][name].as_str().expect("a link"));
        page.check("one-stream", &link("self"));
        page.check("reliability", &link("reliability"));
        page.check("recalibration", &link("recalibration"));
        page.check("history", &link("history"));
        page.check("comparisons", &link("comparison"));
    }
    for (section, path) in [
        ("sources", "/api/v1/sources"),
        ("alerts", "/api/v1/alerts?all=1"),
        ("ledger", "/api/v1/ledger"),
        ("comparisons", "/api/v1/comparisons"),
        ("addresses", "/api/v1"),
    ] {
        page.check(section, &server.json(path));
    }
    for (section, path) in [("errors", "/nothing"), ("probes", "/ready")] {
        page.check(section, &parsed(&server.get(path).body));
    }
    let worker = Published::default();
    worker.update(|facts| facts.role = Role::Worker);
    let worker = Server::start(Arc::new(worker));
    page.check("streams", &worker.json("/api/v1/streams"));
    page.check("alerts", &worker.json("/api/v1/alerts"));
    let silent = Published::new(Limits {
        live_within: Duration::ZERO,
        ..Limits::default()
    });
    silent.beat("engine");
    std::thread::sleep(Duration::from_millis(20));
    let silent = Server::start(Arc::new(silent));
    page.check("probes", &parsed(&silent.get("/live").body));
}

/// Parts that only some samples have.
fn of_rare_parts(page: &mut JsonPage) {
    let mut e = sample(100, |u| u, |z| z);
    e.overdispersion = Some(OVERDISPERSION);
    e.repeated = Some(RepeatedScores {
        share: 0.1,
        weighted_share: 0.1,
        repeats: 10,
        agreement: None,
        alike: false,
        by_chance: 1e-3,
    });
    e.clusters = Some(Clusters {
        buckets: 9,
        effective: 8.0,
        factor: 1.0,
        patterns: 999,
        by_score: false,
    });
    page.check("evaluation", &report::evaluation::json(&e));
    let options = KernelOptions {
        sample: 100,
        nu: Some(0.5),
        features: 64,
        seed: 0,
    };
    let mut sums = KernelSums::new(3, options).expect("three classes");
    let mut chance = Chance(1);
    for rank in 0..600 {
        let a = 0.9 * chance.uniform();
        assert!(sums.observe(rank, &[a, 0.98 - a, 0.02], 1.0, (rank % 3) as u32));
    }
    sums.close();
    let kernel = evaluate_kernel(&sums, 0.05, 0.9).expect("enough events");
    page.check("kernel-window", &report::kernel::window_json(&kernel));
    let links = Links::default();
    let mut sent = Notification::trial(0, links);
    let error = json!({
        "quantity": "kce", "estimate": 0.1, "lower": 0.0, "upper": 0.2, "contains_zero": true,
        "confidence": 0.9, "most": 0.05,
    });
    sent.error = serde_json::from_value(error).expect("an error");
    sent.verdict = "undecided(stale)".to_owned();
    sent.streams.push(FiringStream {
        stream: "m///binary".to_owned(),
        severity: sent.severity,
        since_ms: 0,
        what: String::new(),
        n: 1,
        error: sent.error,
        ece_lower: None,
        ece_upper: None,
        page: String::new(),
    });
    let deployment = json!({ "model": "m", "version": "2", "at_ms": 1, "by": "ci", "note": "" });
    sent.deployment = serde_json::from_value(deployment).expect("a deployment");
    let text = || Template::parse("{model}").expect("a template");
    let texts = Texts {
        summary: text(),
        description: text(),
    };
    let body = parsed(&webhook::body(&sent, &texts));
    assert_eq!(
        (&body["verdict"], &body["reason"]),
        (&json!("undecided"), &json!("stale"))
    );
    page.check("notification", &body);
}

const HOUR_MS: i64 = 3_600_000;

const SERVICE: &str = r#"version = 1
[[source]]
input = "http"
topics = ["scores"]
fields = { id = "id", time = "at", model = "m", score = "p", outcome = "y" }
[[model]]
name = "*"
windows = [{ width = "1h", slide = "1h" }]
lateness = "1m"
[model.alert]
window_alerts = true
for = "0s"
stale_after = "30d"
[http]
listen = "LISTEN"
[state]
directory = 'STATE'
interval = "1s"
"#;

/// What a running service is asked to do, and what it leaves.
fn of_a_service(page: &mut JsonPage) {
    let mut service = Service::start(SERVICE);
    service.wait_ready();
    let ask = |path: &str, body: &Value| {
        let (status, body) = service
            .post(path, &[], &body.to_string())
            .expect("an answer");
        (status, parsed(&body))
    };
    let url = service.url();
    let tap = std::thread::spawn(move || {
        trueline(&["tap", "--url", &url, "--rate", "1", "--count", "3"])
    });
    wait_for("a listener", LIMIT, || {
        (service.metric("trueline_tap_listeners", &[]) == 1.0).then_some(())
    });
    let hour = (crate::support::published::now_ms() / HOUR_MS - 6) * HOUR_MS;
    let event =
        |i: i64, at: i64| json!({ "id": i, "at": at, "m": "m", "p": 0.02, "y": i % 20 == 0 });
    let wrong = Value::from_iter((0..1000).map(|i| event(i, hour + i)));
    let (status, posted) = ask("/v1/events", &wrong);
    assert_eq!(status, 200, "{posted}");
    page.check("posted-events", &posted);
    let late = Value::from_iter((1000..1005).map(|i| event(i, hour + 2 * HOUR_MS + i)));
    let waiting = wait_for("events that wait", LIMIT, || {
        let (_, body) = service.get("/api/v1/streams/m///binary")?;
        Some(parsed(&body)).filter(|stream| stream["waiting"].is_object())
    });
    page.check("one-stream", &waiting);
    page.check("posted-events", &ask("/v1/events?dry_run=1", &late).1);
    page.check("errors", &ask("/v1/events", &json!({ "m": "m" })).1);
    assert_eq!(ask("/v1/events", &late).0, 200);
    let mut lines = 0;
    // The last events go on until the tap has its pairs.
    while !tap.is_finished() {
        let more = Value::from_iter((0..5).map(|i| {
            event(
                2000 + lines * 5 + i,
                hour + 2 * HOUR_MS + 2000 + lines * 5 + i,
            )
        }));
        assert_eq!(ask("/v1/events", &more).0, 200);
        lines += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    for line in tap.join().expect("no panic").lines() {
        page.check("tap", &parsed(line));
    }

    let path = |what: &str| format!("/api/v1/alerts/m/{what}");
    let said = |by: &str| json!({ "by": by, "note": "a test" });
    let get = |path: &str| parsed(&service.get(path).expect("an answer").1);
    wait_for("an alert", LIMIT, || {
        (get("/api/v1/alerts")["alerts"][0]["state"] == "firing").then_some(())
    });
    page.check("acknowledgements", &ask(&path("ack"), &said("ann")).1);
    let deploy = json!({ "version": "2", "by": "ci" });
    let silence = json!({ "matchers": ["model=m"], "for": "2h", "by": "bob" });
    page.check("silence", &ask("/api/v1/silences", &silence).1);
    page.check("silences", &get("/api/v1/silences"));
    page.check("alerts", &get("/api/v1/alerts"));
    let explained = wait_for("a record", LIMIT, || {
        let (status, body) = service.get("/api/v1/explanations/m")?;
        (status == 200).then(|| parsed(&body))
    });
    page.check("explanation", &explained);
    page.check("history", &get("/api/v1/streams/m///binary/history"));
    page.check("done", &ask(&path("close"), &said("ann")).1);
    page.check(
        "deployment",
        &ask("/api/v1/models/m/deployments", &deploy).1,
    );
    page.check("deployments", &get("/api/v1/deployments"));
    page.check("alerts", &get("/api/v1/alerts?all=1"));
    let reload = || parsed(&service.ask("POST", "/-/reload").expect("an answer").1);
    page.check("reload", &reload());
    service.rewrite(|text| text.replace("[model.alert]", "nonsense = 1\n[model.alert]"));
    page.check("reload", &reload());
    assert_eq!(service.end("TERM"), Some(0));
    let state = service.state().display().to_string();
    let inspected = trueline(&["state", "inspect", "--json", &state]);
    page.check("state-directory", &parsed(&inspected));
}

/// Every kind of sample, and every test.
fn of_evaluate(page: &mut JsonPage) {
    let (scores, weights) = (scores("scores", "", 3), scores("weights", "weight", 3));
    let others = self::scores("others", "", 4);
    let (clusters, vectors) = (
        self::scores("clusters", "cluster", 3),
        vectors("vectors", ""),
    );
    let heavy = self::vectors("heavy", ",weight");
    let alike = file("alike.csv", "score,label\n0.5,1\n0.6,1\n0.7,1\n");
    let run = |args: &[&str], file: &Path| {
        let file = file.to_str().expect("a path");
        parsed(&trueline(
            &[&["evaluate", "--json"], args, &[file]].concat(),
        ))
    };
    for (section, args, file) in [
        (
            "evaluate",
            &["--estimators", "--compare-intervals", "20"][..],
            &scores,
        ),
        ("evaluate", &["--negatives-kept", "0.5"], &scores),
        (
            "evaluate",
            &["--method", "paper", "--discrete", "on"],
            &scores,
        ),
        ("evaluate", &["--as-window", "--tolerance", "5%"], &scores),
        (
            "evaluate",
            &["--recalibrate", "advised", "--fit", path(&others)],
            &scores,
        ),
        (
            "evaluate",
            &["--recalibrate", "advised", "--fit", path(&alike)],
            &scores,
        ),
        ("evaluate", &[], &weights),
        ("evaluate", &[], &clusters),
        (
            "evaluation-of-vectors",
            &["--view", "full", "--estimators"],
            &vectors,
        ),
        ("evaluation-of-vectors", &["--view", "top_k:2"], &heavy),
        ("classes", &["--view", "classes"], &vectors),
        (
            "kernel-test",
            &["--view", "kernel", "--estimators"],
            &vectors,
        ),
        ("kernel-test", &["--view", "kernel"], &heavy),
        ("one-test", &["--test", "known-smoothness"], &scores),
        ("one-test", &["--test", "composite"], &scores),
        ("one-test", &["--test", "splitting"], &scores),
        ("one-test", &["--test", "splitting-adaptive"], &scores),
        ("one-test", &["--test", "cross-fitting"], &scores),
        ("one-test", &["--test", "consistency"], &scores),
    ] {
        page.check(section, &run(args, file));
    }
    let binned = run(&["--test", "consistency", "--view", "full"], &vectors);
    page.check("binned-errors-of-vectors", &binned["detail"]);
}

/// A replay and a backtest with comparisons, alarms and alerts.
fn of_replay(page: &mut JsonPage) {
    let config = file(
        "replayed.toml",
        r#"version = 1
[kafka]
brokers = "b:1"
[[source]]
topics = ["events"]
fields = { time = "time", score = "score", model = "model", version = "version", id = "id", outcome = "outcome" }
[[model]]
name = "*"
windows = ["1h"]
[model.compare]
enabled = true
[model.alert]
for = "0s"
"#,
    );
    let mut events = String::from("model,version,id,time,score,outcome\n");
    let mut chance = Chance(7);
    for i in 0..6000_i64 {
        let (score, at) = (chance.uniform(), 1_700_000_000_000 + i * 1000);
        let happened = u8::from(chance.uniform() < score);
        for (version, score) in [("1", score), ("2", 0.5 * score)] {
            let _ = writeln!(events, "m,{version},{i},{at},{score},{happened}");
        }
    }
    // One of them is rejected.
    events += "m,1,x,1700000000000,2,1\n";
    let events = file("replayed.csv", &events);
    let args = ["--json", "--config", path(&config), path(&events)];
    let of = |verb: &str| parsed(&trueline(&[&[verb], &args[..]].concat()));
    page.check("replay", &of("replay"));
    page.check("backtest", &of("backtest"));
}

/// Scores, a tenth of them the same, with a column more.
fn scores(name: &str, column: &str, seed: u64) -> PathBuf {
    let mut chance = Chance(seed);
    let comma = if column.is_empty() { "" } else { "," };
    let mut text = format!("score,label{comma}{column}\n");
    for i in 0..600 {
        let z = chance.uniform();
        let z = if i % 10 == 0 { 0.25 } else { z };
        let happened = u8::from(chance.uniform() < z * z);
        let more = match column {
            "weight" => format!(",{}", 0.5 + z),
            "cluster" => format!(",c{}", i % 100),
            _ => String::new(),
        };
        let _ = writeln!(text, "{z},{happened}{more}");
    }
    file(&format!("{name}.csv"), &text)
}

/// Vectors of three classes with a column more.
fn vectors(name: &str, column: &str) -> PathBuf {
    let mut chance = Chance(5);
    let mut text = format!("p0,p1,p2,label{column}\n");
    for i in 0..600 {
        let (a, b) = (0.5 * chance.uniform(), 0.5 * chance.uniform());
        let weight = if column.is_empty() { "" } else { ",1.5" };
        let _ = writeln!(text, "{a},{b},{},{}{weight}", 1.0 - a - b, i % 3);
    }
    file(&format!("{name}.csv"), &text)
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("json-{name}"));
    std::fs::write(&path, text).expect("a file");
    path
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// What the program prints.
fn trueline(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
    let out = command.args(args).env_remove("TRUELINE_CONFIG").output();
    let out = out.expect("it starts");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{args:?}: {said}");
    String::from_utf8(out.stdout).expect("text")
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}
