//! `trueline replay` as a process: files in, verdict changes and a report out.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use trueline::stats::rng::Rng;

mod outcomes;

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("a file");
    path
}

fn replay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trueline"))
        .arg("replay")
        .args(args)
        .env_remove("TRUELINE_CONFIG")
        .output()
        .expect("the binary starts")
}

/// Ten minutes of events, ten a second; the outcomes come with the square of the score.
fn rows(mut row: impl FnMut(&mut String, i64, f64, bool)) -> String {
    let mut draws = Rng::new(5);
    let mut text = String::new();
    for i in 0..6000 {
        let score = draws.uniform();
        let outcome = draws.uniform() < score * score;
        row(&mut text, 1_700_000_000_000 + i * 100, score, outcome);
    }
    text
}

#[test]
fn json_lines_and_csv_with_the_same_events_give_the_same_report() {
    let json = rows(|text, at, score, outcome| {
        let _ = writeln!(
            text,
            r#"{{"model":"m","time":{at},"score":{score},"outcome":{}}}"#,
            u8::from(outcome)
        );
    });
    let csv = rows(|text, at, score, outcome| {
        if text.is_empty() {
            text.push_str("model,time,score,outcome\n");
        }
        let _ = writeln!(text, "m,{at},{score},{}", u8::from(outcome));
    });
    let (json, csv) = (file("same.jsonl", &json), file("same.csv", &csv));
    let from_json = replay(&["--json", &json.display().to_string()]);
    let from_csv = replay(&["--json", &csv.display().to_string()]);
    assert!(from_json.status.success(), "{from_json:?}");
    assert_eq!(from_json.stdout, from_csv.stdout);
    let report: serde_json::Value = serde_json::from_slice(&from_json.stdout).expect("json");
    let hour = report["streams"][0]["windows"]
        .as_array()
        .and_then(|all| all.iter().find(|w| w["window"] == "1h"))
        .expect("the window of an hour");
    assert_eq!(hour["n"], 6000);
    assert_eq!(hour["verdict"], "miscalibrated");
}

#[test]
fn a_dump_of_one_partition_after_the_other_is_sorted_and_standard_input_is_a_file() {
    let text = rows(|text, at, score, outcome| {
        let _ = writeln!(
            text,
            r#"{{"model":"m","time":{at},"score":{score},"outcome":{outcome}}}"#
        );
    });
    let lines: Vec<&str> = text.lines().collect();
    let part = |k: usize| lines.iter().skip(k).step_by(3).copied();
    let dump: Vec<&str> = (0..3).flat_map(part).collect();
    let (whole, dumped) = (
        file("whole.jsonl", &text),
        file("dumped.jsonl", &(dump.join("\n") + "\n")),
    );
    let parts: Vec<String> = (0..3)
        .map(|k| {
            let part: Vec<&str> = part(k).collect();
            let path = file(&format!("part{k}.jsonl"), &(part.join("\n") + "\n"));
            path.display().to_string()
        })
        .collect();
    let (whole, dumped) = (whole.display().to_string(), dumped.display().to_string());
    let wanted = replay(&["--json", &whole]);
    assert!(wanted.status.success(), "{wanted:?}");
    // As it is, two thirds of it come late, and the remedy is told.
    let late = replay(&["--json", &dumped]);
    assert_eq!(late.status.code(), Some(65), "{late:?}");
    let told = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(
        late.stdout != wanted.stdout && told.contains("add --sort"),
        "{told}"
    );
    let sorted = replay(&["--json", "--sort", &dumped]);
    assert_eq!(sorted.stdout, wanted.stdout, "{sorted:?}");
    let told = String::from_utf8_lossy(&sorted.stderr).into_owned();
    assert!(!told.contains("add --sort"), "{told}");
    let merged = replay(&["--json", "--sort", &parts[2], &parts[0], &parts[1]]);
    assert_eq!(merged.stdout, wanted.stdout, "{merged:?}");

    let piped = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["replay", "--json", "-"])
        .env_remove("TRUELINE_CONFIG")
        .stdin(fs::File::open(&whole).expect("a file"))
        .output()
        .expect("the binary starts");
    assert_eq!(piped.stdout, wanted.stdout, "{piped:?}");
    let unknown = replay(&["--source", "nobody", &whole]);
    let told = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        !unknown.status.success() && told.contains("no source `nobody`"),
        "{told}"
    );
}

#[test]
fn verdict_changes_are_printed_before_the_table() {
    let csv = rows(|text, at, score, outcome| {
        if text.is_empty() {
            text.push_str("model,time,score,outcome\n");
        }
        let _ = writeln!(text, "m,{at},{score},{}", u8::from(outcome));
    });
    let path = file("changes.csv", &csv);
    let output = replay(&[&path.display().to_string()]);
    let said = String::from_utf8_lossy(&output.stdout);
    let change = said
        .find("2023-11-14T")
        .expect("a change with its event time");
    let table = said.find("p-value").expect("the table");
    assert!(change < table, "{said}");
    assert!(said.contains("miscalibrated"), "{said}");
}

#[test]
fn broken_records_are_counted_by_reason_and_the_first_is_named() {
    let mut text = rows(|text, at, score, outcome| {
        let _ = writeln!(
            text,
            r#"{{"model":"m","time":{at},"score":{score},"outcome":{}}}"#,
            u8::from(outcome)
        );
    });
    text.push_str(
        "{\"model\":\"m\",\"time\":1700000000000,\"score\":1.2,\"outcome\":1}\nnonsense\n",
    );
    let path = file("broken.jsonl", &text);
    let output = replay(&[&path.display().to_string()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("6002 records: 6000 observed"), "{said}");
    assert!(said.contains("1 malformed, 1 score_out_of_range"), "{said}");
    assert!(said.contains("broken.jsonl:6001"), "{said}");
}

#[test]
fn a_file_of_which_half_is_rejected_ends_with_65_after_its_report() {
    let of = |percents: usize| {
        let mut i = 0;
        let text = rows(|text, at, score, outcome| {
            let score = if i < percents { 2.0 + score } else { score };
            let _ = writeln!(
                text,
                r#"{{"model":"m","time":{at},"score":{score},"outcome":{outcome}}}"#
            );
            i += 1;
        });
        let path = file("percents.jsonl", &text);
        let out = replay(&["--json", &path.display().to_string()]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.stdout.starts_with(b"{"), "{said}");
        (out.status.code(), said)
    };
    let (code, said) = of(2999);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = of(3000);
    assert_eq!(code, Some(65), "{said}");
    assert!(
        said.contains("3000 of 6000 records are rejected, late"),
        "{said}"
    );
}

#[test]
fn a_file_that_is_missing_ends_with_66_and_one_that_holds_no_event_with_65() {
    let missing = replay(&["no-such-file.csv"]);
    assert_eq!(missing.status.code(), Some(66), "{missing:?}");
    for (name, text, why) in [
        ("void.jsonl", "", "the input holds no record"),
        ("void.csv", "", "void.csv is empty"),
    ] {
        let said = replay(&[&file(name, text).display().to_string()]);
        assert_eq!(said.status.code(), Some(65), "{said:?}");
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains(why), "{said}");
    }
    let path = file("empty.jsonl", "nonsense\n");
    assert_eq!(
        replay(&[&path.display().to_string()]).status.code(),
        Some(65)
    );
}

/// A configuration with separate records of outcomes, which come within five minutes.
fn joined(name: &str) -> PathBuf {
    let text = r#"
version = 1
[kafka]
brokers = "none:0"
[[source]]
topics = ["predictions"]
fields = { id = "id", time = "time", score = "score" }
[source.outcomes]
topics = ["outcomes"]
maturity = "5m"
time = "time"
on_missing = "drop"
[[model]]
name = "*"
windows = ["5m"]
"#;
    file(name, text)
}

#[test]
fn outcomes_without_a_join_and_ranges_without_a_configuration_are_refused() {
    let events = file("plain.jsonl", "{}\n");
    let events = events.to_str().expect("a path");
    assert_eq!(
        replay(&[events, "--outcomes", events]).status.code(),
        Some(78)
    );
    assert_eq!(replay(&["--last", "7d"]).status.code(), Some(64));
    assert_eq!(replay(&["--to", "2026-11-01"]).status.code(), Some(64));
    assert_eq!(replay(&["--last", "7d", events]).status.code(), Some(64));
    assert_eq!(replay(&["--from", "7d"]).status.code(), Some(64));
    let config = joined("unreachable.toml");
    let config = config.to_str().expect("a path");
    let output = replay(&["--config", config, "--last", "1h"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(
        said.contains("no kafka broker answers at `none:0`"),
        "{said}"
    );
}

/// Twelve hours of a model whose outcomes turn rare after six: the detector alarms.
#[test]
fn json_has_the_alarms_of_detectors_the_budgets_and_comparisons() {
    let mut draws = Rng::new(8);
    let mut text = String::new();
    for i in 0..8640_i64 {
        let at = 1_700_000_000_000 + i * 5000;
        let score = draws.uniform();
        let rate = if i < 4320 { score } else { score * score };
        let outcome = u8::from(draws.uniform() < rate);
        for (version, score) in [("1", score), ("2", 0.5 * score + 0.25)] {
            let _ = writeln!(
                text,
                r#"{{"model":"m","version":"{version}","id":"{i}","time":{at},"score":{score},"outcome":{outcome}}}"#
            );
        }
    }
    let events = file("alarms.jsonl", &text).display().to_string();
    let config = file(
        "alarms.toml",
        r#"
version = 1
[kafka]
brokers = "none:0"
[[source]]
topics = ["events"]
fields = { time = "time", score = "score", model = "model", version = "version", id = "id", outcome = "outcome" }
[[model]]
name = "*"
windows = ["1h"]
[model.compare]
enabled = true
"#,
    )
    .display()
    .to_string();
    let out = replay(&["--json", "--config", &config, &events]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{said}");
    let all: serde_json::Value = serde_json::from_slice(&out.stdout).expect("json");
    let streams = all["streams"].as_array().expect("an array");
    let alarms: Vec<_> = (streams.iter())
        .filter_map(|entry| entry["alarms"].as_array())
        .flatten()
        .collect();
    assert!(!alarms.is_empty(), "{all:#?}");
    assert!(
        alarms
            .iter()
            .all(|a| a["at_ms"].is_i64() && a["sentence"].is_string())
    );
    assert!(streams.len() >= 2 && streams.iter().all(|s| s["stream"].is_string()));
    assert!(
        streams
            .iter()
            .all(|s| s["detector"]["log_threshold"].is_f64())
    );
    let account = &all["ledger"][0];
    assert!(
        account["alarms"].as_u64().is_some_and(|n| n > 0),
        "{account:#}"
    );
    let comparisons = all["comparisons"].as_array().expect("an array");
    assert!(
        comparisons
            .iter()
            .any(|c| c["pairs"].as_u64().is_some_and(|n| n > 0))
    );

    let out = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["backtest", "--json", "--config", &config, &events])
        .output()
        .expect("it starts");
    let tested: serde_json::Value = serde_json::from_slice(&out.stdout).expect("json");
    let policy = &tested["policies"][0];
    assert_eq!(policy["ledger"][0], *account, "{policy:#}");
    assert!(
        policy["comparisons"][0]["pairs"]
            .as_u64()
            .is_some_and(|n| n > 0)
    );
    let signals = policy["signals"].as_array().expect("signals");
    let detector = |s: &&serde_json::Value| s["window"] == "detector" && s["fired"] != 0;
    assert!(signals.iter().any(|s| detector(&s)), "{policy:#}");
}

#[test]
fn parquet_comes_by_standard_input_too() {
    let events = "tests/decode/columnar/events.parquet";
    let events = Path::new(env!("CARGO_MANIFEST_DIR")).join(events);
    let config = r#"version = 1
[kafka]
brokers = "b:1"
[[source]]
topics = "t"
[source.fields]
id = "payload.user"
time = "at"
time_unit = "rfc3339"
score = "payload.score"
outcome = "happened"
"#;
    let config = file("events.toml", config).display().to_string();
    let args = ["--json", "--sort", "--config", &config];
    let wanted = replay(&[&args[..], &[&events.display().to_string()]].concat());
    assert!(wanted.status.success(), "{wanted:?}");
    let piped = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .arg("replay")
        .args(args)
        .arg("-")
        .stdin(fs::File::open(events).expect("a file"))
        .output()
        .expect("the binary starts");
    assert_eq!(piped.stdout, wanted.stdout, "{piped:?}");
}
