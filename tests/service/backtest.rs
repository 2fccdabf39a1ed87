//! `trueline backtest` as a process: two configurations over a file of a model that drifts.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use trueline::stats::rng::Rng;

const BEGIN_MS: i64 = 1_700_000_100_000;
/// Event time of the drift: after half an hour.
const DRIFT_MS: i64 = BEGIN_MS + 1_800_000;

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("a file");
    path
}

/// An hour of events, ten a second; after half of it outcomes are rarer than said, by z − z²; at
/// the end of `until` minutes they are as said again.
fn drift(name: &str, until: i64) -> PathBuf {
    let mut draws = Rng::new(3);
    let mut text = String::from("model,time,score,outcome\n");
    for i in 0..36_000 {
        let (at, z) = (BEGIN_MS + i * 100, draws.uniform());
        let drifted = (DRIFT_MS..BEGIN_MS + until * 60_000).contains(&at);
        let rate = if drifted { z * z } else { z };
        let _ = writeln!(text, "m,{at},{z},{}", u8::from(draws.uniform() < rate));
    }
    file(name, &text)
}

/// A policy that tolerates so much.
fn policy(name: &str, tolerance: f64, hold: &str) -> PathBuf {
    let text = format!(
        r#"
version = 1
[kafka]
brokers = "none:0"
[[source]]
topics = ["events"]
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
for = "{hold}"
"#
    );
    file(name, &text)
}

fn backtest(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
    command
        .arg("backtest")
        .args(args)
        .output()
        .expect("it starts")
}

fn both(strict: &Path, loose: &Path, events: &Path, more: &[&str]) -> Output {
    let paths = [strict, loose, events].map(|p| p.to_str().expect("a path").to_owned());
    let mut args = vec!["--config", &paths[0], "--config", &paths[1], &paths[2]];
    args.extend(more);
    backtest(&args)
}

#[test]
fn of_two_policies_exactly_the_one_that_tolerates_less_fires_and_after_the_drift() {
    let (strict, loose) = (
        policy("bt-strict.toml", 0.05, "0s"),
        policy("bt-loose.toml", 0.5, "0s"),
    );
    let output = both(&strict, &loose, &drift("bt-drift.csv", 60), &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let all: Value = serde_json::from_slice(&output.stdout).expect("json");
    let (strict, loose) = (&all["policies"][0], &all["policies"][1]);
    assert_eq!(strict["fired"], 1, "{strict:#}");
    assert_eq!(loose["fired"], 0, "{loose:#}");
    assert_eq!(strict["observed"], 36_000);
    let span = &strict["signals"][0]["spans"][0];
    let begun = span["start_ms"].as_i64().expect("a time");
    assert!((DRIFT_MS..DRIFT_MS + 360_000).contains(&begun), "{begun}");
    assert_eq!(span["end_ms"], Value::Null);
    assert!(
        span["sentence"]
            .as_str()
            .is_some_and(|s| s.contains("firing"))
    );
    let lasted = strict["firing_ms"].as_i64().expect("a time");
    assert_eq!(
        lasted,
        strict["last_event_ms"].as_i64().expect("a time") - begun
    );
}

#[test]
fn the_same_policy_fires_as_replay_says() {
    let strict = policy("bt-same.toml", 0.05, "2m");
    let events = drift("bt-same.csv", 45);
    let output = both(&strict, &strict, &events, &["--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).expect("json");
    assert_eq!(all["policies"][0], all["policies"][1]);
    let replay = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["replay", "--config"])
        .args([&strict, &events])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&replay.stdout).into_owned();
    let told = said
        .lines()
        .filter(|l| l.contains("is firing (was"))
        .count();
    assert_eq!(all["policies"][0]["fired"], told, "{said}");
    let end = &all["policies"][0]["signals"][0]["spans"][0]["end_ms"];
    assert!(end.is_i64(), "it ends when the model is well again: {end}");
}

#[test]
fn the_table_stands_the_policies_side_by_side() {
    let (strict, loose) = (
        policy("bt-t-strict.toml", 0.05, "0s"),
        policy("bt-t-loose.toml", 0.5, "0s"),
    );
    let output = both(&strict, &loose, &drift("bt-table.csv", 60), &[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("bt-t-strict.toml: fires 1 time ("), "{said}");
    assert!(said.contains(", becomes a page 0 times, on 1 of"), "{said}");
    assert!(said.contains("bt-t-loose.toml: nothing fires"), "{said}");
    assert!(said.contains("A fired  A pages  A first (UTC)"), "{said}");
    let row = said
        .lines()
        .find(|l| l.starts_with("m///binary"))
        .expect("a row");
    assert!(row.contains("still") && row.contains("  0  "), "{row}");
    let output = both(&loose, &loose, &drift("bt-quiet.csv", 60), &[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("nothing would have fired"), "{said}");
}

/// Half of a file or more that does not count ends both commands with 65, with the remedy.
#[test]
fn a_file_whose_records_are_mostly_in_conflict_refused_or_rejected_ends_with_65() {
    let sound = fs::read_to_string(policy("bt-mostly.toml", 0.05, "0s")).expect("written");
    let mut draws = Rng::new(4);
    let (mut text, mut percent) = (
        String::from("model,user,time,score,outcome\n"),
        String::from("model,time,score,outcome\n"),
    );
    for i in 0..1000_i64 {
        let (at, z) = (BEGIN_MS + i * 100, draws.uniform());
        let outcome = u8::from(draws.uniform() < z);
        let _ = writeln!(text, "m{},u{},{at},{z},{outcome}", i % 4, i % 20);
        let _ = writeln!(percent, "m,{at},{},{outcome}", i % 100);
    }
    let (events, percent) = (
        file("bt-mostly.csv", &text),
        file("bt-percent.csv", &percent),
    );
    let users = sound.replace("{ time =", "{ id = \"user\", time =");
    let few = format!("{sound}[limits]\nstreams_max = 1\n");
    for (name, config, events, words) in [
        (
            "users",
            &users,
            &events,
            [
                "980 of 1000 records are rejected",
                "name another field as `fields.id`",
            ],
        ),
        (
            "few",
            &few,
            &events,
            ["750 of 1000 records are rejected", "raise `streams_max`"],
        ),
        (
            "percent",
            &sound,
            &percent,
            ["980 of 1000 records are rejected", "score_out_of_range"],
        ),
    ] {
        let config = file(&format!("bt-mostly-{name}.toml"), config);
        for command in ["replay", "backtest"] {
            let output = Command::new(env!("CARGO_BIN_EXE_trueline"))
                .args([command, "--config"])
                .args([&config, events])
                .output()
                .expect("it starts");
            assert_eq!(output.status.code(), Some(65), "{name} {command}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(words.iter().all(|w| said.contains(w)), "{command}: {said}");
        }
    }
}

#[test]
fn what_is_wrong_ends_with_its_code() {
    let good = policy("bt-good.toml", 0.05, "0s");
    let good = good.to_str().expect("a path");
    let bad = file("bt-bad.toml", "version = 1\nnonsense = 2\n");
    let events = file("bt-none.csv", "model,time,score,outcome\n");
    let events = events.to_str().expect("a path");
    assert_eq!(backtest(&[events]).status.code(), Some(64));
    assert_eq!(
        backtest(&["--config", bad.to_str().expect("a path"), events])
            .status
            .code(),
        Some(78)
    );
    assert_eq!(
        backtest(&["--config", good, events]).status.code(),
        Some(65)
    );
    assert_eq!(
        backtest(&["--config", good, "no-such.csv"]).status.code(),
        Some(66)
    );
}
