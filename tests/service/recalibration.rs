//! The map that would mend a miscalibrated stream: through the engine, over HTTP, and for files.

use crate::support::records::{EVENT, origin};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use crate::support::server::Server;
use serde_json::Value;
use trueline::collect::{Event, Segmenting};
use trueline::judge::{JudgeOptions, Recalibration, StreamReport, Verdict};
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::telemetry::Published;
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_040_000;

fn plan() -> Plan {
    let window = vec![WindowSpec::time("1m", 60_000)];
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Segmenting::default(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(window, 0).unwrap(),
            grid: Grid::new(Axis::Linear, 12),
            judge: JudgeOptions::plain(),
        }],
        ..Plan::default()
    }
}

/// Events of these seconds, a hundred a second; `truth` is the rate at a score.
fn feed(engine: &mut Engine, seconds: std::ops::Range<i64>, truth: fn(f64) -> f64) {
    let mut draws = Rng::new(seconds.start as u64 + 9);
    for i in seconds.start * 100..seconds.end * 100 {
        let score = draws.uniform();
        let event = Event {
            model: "m",
            version: "1",
            time_ms: BEGIN_MS + i * 10,
            prediction: Prediction::Score(score),
            outcome: Some(Outcome::Binary(draws.uniform() < truth(score))),
            ..EVENT
        };
        let origin = origin(0, 0, i);
        engine.observe(origin, &event);
    }
}

fn squared(z: f64) -> f64 {
    z * z
}

fn started() -> Engine {
    let mut engine = Engine::new(plan());
    engine.assign((0, 0).into());
    engine
}

fn report(engine: &Engine) -> Arc<StreamReport> {
    engine.reports().next().unwrap().clone()
}

fn recalibration(engine: &Engine) -> Option<Arc<Recalibration>> {
    report(engine).windows[0].recalibration.clone()
}

#[test]
fn a_map_is_fitted_at_once_and_judged_on_the_following_window() {
    let mut engine = started();
    feed(&mut engine, 0..61, squared);
    let first = recalibration(&engine).unwrap();
    assert!(first.judged.is_none());
    feed(&mut engine, 61..131, squared);
    let found = recalibration(&engine).unwrap();
    let (map, judged) = found.advised().unwrap();
    assert_eq!(judged.start_ms, judged.fitted.end_ms);
    let off = (1..100).map(|i| f64::from(i) / 100.0);
    let off = off.map(|z| (map.rate(z) - z * z).abs()).fold(0.0, f64::max);
    assert!(off < 0.08, "{off}");
    let trial = judged.judgement.trial(map.method()).unwrap();
    assert!(judged.judgement.original.lower > 0.1);
    assert!(trial.recalibrated.ece_l2() < 0.03 && trial.recalibrated.p_value > 0.01);
}

#[test]
fn a_model_that_is_mended_is_asked_for_nothing_more() {
    let mut engine = started();
    feed(&mut engine, 0..131, squared);
    assert!(recalibration(&engine).is_some());
    feed(&mut engine, 131..261, |z| z);
    let report = report(&engine);
    assert_eq!(report.windows[0].verdict, Verdict::Calibrated);
    assert!(report.windows[0].recalibration.is_none());
}

#[test]
fn a_restart_between_fit_and_trial_changes_no_bit_of_either() {
    let mut whole = started();
    feed(&mut whole, 0..95, squared);
    let mut again = Engine::restore(plan(), whole.snapshot()).unwrap();
    assert_eq!(recalibration(&again), recalibration(&whole));
    again.assign((0, 0).into());
    for engine in [&mut whole, &mut again] {
        feed(engine, 95..161, squared);
    }
    assert!(recalibration(&whole).unwrap().judged.is_some());
    assert_eq!(recalibration(&again), recalibration(&whole));
    let third = Engine::restore(plan(), again.snapshot()).unwrap();
    assert_eq!(recalibration(&third), recalibration(&whole));
}

#[test]
fn over_http_the_fix_comes_as_json_as_a_table_and_on_the_page() {
    let mut engine = started();
    feed(&mut engine, 0..131, squared);
    let published = Arc::new(Published::default());
    published.publish(&report(&engine));
    let server = Server::start(published);
    let base = "/api/v1/streams/m/1//binary/recalibration";
    let all = server.json(base);
    let fix = &all["windows"][0]["recalibration"];
    let method = fix["advice"]["apply"].as_str().unwrap();
    let words = fix["advice"]["words"].as_str().unwrap();
    assert!(
        words.contains(&format!("apply the {method} map")) && words.contains("standard error"),
        "{words}"
    );
    let judged = &fix["judged"]["on"];
    let loss = |v: &Value| v["log_loss"].as_f64().unwrap();
    assert!(loss(&judged["recalibrated"][method]) < loss(&judged["original"]));
    assert!(fix["awaiting_trial"]["maps"]["logistic"]["slope"].is_f64());

    let table = server.get(&format!("{base}?format=csv"));
    assert!(table.head.contains("text/csv"), "{}", table.head);
    assert!(table.head.contains("attachment"), "{}", table.head);
    let mut lines = table.body.lines();
    assert_eq!(lines.next(), Some("# stream=m/1//binary window=1m"));
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with(&format!("# method={method} "))
    );
    assert_eq!(lines.next(), Some("score,recalibrated"));
    assert!(lines.count() > 256);
    let isotonic = server.get(&format!("{base}?format=csv&window=1m&method=isotonic"));
    assert!(isotonic.body.contains("# method=isotonic blocks="));

    for (query, status) in [
        ("?window=2m", 404),
        ("?format=csv&window=2m", 404),
        ("?format=csv&method=cubic", 400),
        ("?format=xml", 400),
    ] {
        let answer = server.get(&format!("{base}{query}"));
        assert_eq!(answer.status, status, "{query}");
        assert!(answer.body.contains("hint"), "{query}");
    }
    let page = server.get("/streams/m/1//binary");
    assert!(
        page.body
            .contains(&format!("Recalibration: apply the {method} map"))
    );
    assert!(page.body.contains("polyline class=map"));
}

#[test]
fn without_an_advised_map_there_is_no_table_but_a_reason() {
    let mut engine = started();
    feed(&mut engine, 0..61, squared);
    let published = Arc::new(Published::default());
    published.publish(&report(&engine));
    let server = Server::start(published);
    let base = "/api/v1/streams/m/1//binary/recalibration";
    let fix = server.json(base)["windows"][0]["recalibration"].clone();
    assert_eq!(fix["advice"]["apply"], Value::Null);
    assert_eq!(fix["advice"]["reason"], "await_trial");
    assert_eq!(server.get(&format!("{base}?format=csv")).status, 404);
    // Who asks for one by name gets it before its trial.
    let table = server.get(&format!("{base}?format=csv&method=logistic"));
    assert_eq!(table.status, 200);
}

fn file(name: &str, seed: u64, n: usize, truth: fn(f64) -> f64) -> PathBuf {
    let mut draws = Rng::new(seed);
    let mut text = String::from("score,label\n");
    for _ in 0..n {
        let z = draws.uniform();
        let _ = writeln!(text, "{z},{}", u8::from(draws.uniform() < truth(z)));
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn evaluate(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
    command.arg("evaluate").args(args).output().unwrap()
}

#[test]
fn a_file_is_mended_by_the_map_of_another() {
    let (fit, rest) = (
        file("fix-fit.csv", 1, 4000, squared),
        file("fix-rest.csv", 2, 8000, squared),
    );
    let (fit, rest) = (fit.to_str().unwrap(), rest.to_str().unwrap());
    let out = evaluate(&["--json", "--recalibrate", "advised", "--fit", fit, rest]);
    assert!(out.status.success(), "{out:?}");
    let all: Value = serde_json::from_slice(&out.stdout).unwrap();
    let applied = &all["recalibration"]["applied"];
    assert!(applied.is_string());
    assert_eq!(applied, &all["recalibration"]["advice"]["apply"]);
    let before: Value = serde_json::from_slice(&evaluate(&["--json", rest]).stdout).unwrap();
    assert_eq!(before["reject"], true);
    let squared = |v: &Value| v["interval"]["estimate_squared"].as_f64().unwrap();
    // Below a twentieth of the squared error: what is left is what a fit to 4000 events is off.
    assert!(
        squared(&all) < squared(&before) / 20.0,
        "{} {}",
        squared(&all),
        squared(&before)
    );
    let original = &all["recalibration"]["judged"]["original"];
    for (ours, theirs) in [
        ("log_loss", "log_loss"),
        ("ece_l1", "ece_l1"),
        ("brier", "brier"),
    ] {
        let off = original[ours].as_f64().unwrap() - before[theirs].as_f64().unwrap();
        assert!(off.abs() < 1e-9, "{ours} {off}");
    }
    let same = original["ece_l2"]["estimate_squared"].as_f64().unwrap()
        - before["interval"]["estimate_squared"].as_f64().unwrap();
    assert!(same.abs() < 1e-9, "{same}");
}

#[test]
fn the_table_that_is_written_mends_as_the_map_does() {
    let (fit, rest) = (
        file("map-fit.csv", 3, 4000, squared),
        file("map-rest.csv", 4, 4000, squared),
    );
    let map = Path::new(env!("CARGO_TARGET_TMPDIR")).join("map.csv");
    let args = [
        "--recalibrate",
        "isotonic",
        "--fit",
        fit.to_str().unwrap(),
        "--map",
        map.to_str().unwrap(),
        rest.to_str().unwrap(),
    ];
    let out = evaluate(&args);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{out:?}");
    assert!(text.contains("recalibrated by the isotonic map"), "{text}");
    assert!(
        text.contains("recalibration, fitted to 4000 events and judged on 4000"),
        "{text}"
    );
    let table = std::fs::read_to_string(&map).unwrap();
    assert!(table.starts_with("# method=isotonic"), "{table}");
    let rows = table.lines().skip(2).map(|l| l.split_once(',').unwrap().1);
    let rates: Vec<f64> = rows.map(|q| q.parse().unwrap()).collect();
    assert!(
        rates.windows(2).all(|w| w[0] <= w[1]) && rates[0] > 0.0 && rates[rates.len() - 1] < 1.0
    );
}

#[test]
fn calibrated_files_and_small_ones_advise_no_map() {
    let (fit, rest) = (
        file("good-fit.csv", 5, 4000, |z| z),
        file("good-rest.csv", 6, 8000, |z| z),
    );
    let small = file("small-fit.csv", 7, 150, squared);
    for (fit, reason) in [(fit, "no_gain"), (small, "too_few_to_fit")] {
        let out = evaluate(&[
            "--json",
            "--recalibrate",
            "advised",
            "--fit",
            fit.to_str().unwrap(),
            rest.to_str().unwrap(),
        ]);
        let all: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(all["recalibration"]["advice"]["reason"], reason);
        assert_eq!(all["recalibration"]["applied"], Value::Null);
    }
}

#[test]
fn a_map_replaces_no_input_no_page_and_no_device() {
    let (fit, rest) = (
        file("kept-fit.csv", 8, 1000, squared),
        file("kept-rest.csv", 9, 1000, squared),
    );
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    let before = (text(&fit), text(&rest));
    let page = rest.with_file_name("kept-page.html");
    let _ = std::fs::remove_file(&page);
    for (map, words) in [
        (fit.as_path(), "is the input"),
        (&rest, "is the input"),
        (&page, "name two files"),
        (Path::new("/dev/null"), "is no file"),
    ] {
        let (map, page) = (map.to_str().unwrap(), page.to_str().unwrap());
        let (fit, rest) = (fit.to_str().unwrap(), rest.to_str().unwrap());
        let fitted = ["--recalibrate", "isotonic", "--fit", fit];
        let out = evaluate(&[&fitted[..], &["--map", map, "--report", page, rest]].concat());
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(64), "{map}: {said}");
        assert!(said.contains(words), "{map}: {said}");
    }
    assert_eq!((text(&fit), text(&rest)), before);
    assert!(!page.exists());
}

#[test]
fn flags_that_need_each_other_say_so() {
    let out = evaluate(&["--recalibrate", "beta", "x.csv"]);
    assert_eq!(out.status.code(), Some(64));
    let out = evaluate(&["--fit", "y.csv", "x.csv"]);
    assert_eq!(out.status.code(), Some(64));
}
