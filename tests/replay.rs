//! `trueline replay` as a process: files in, verdict changes and a report out.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use trueline::demo::chance::Chance;

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
    let mut chance = Chance::new(5);
    let mut text = String::new();
    for i in 0..6000 {
        let score = chance.uniform();
        let outcome = chance.coin(score * score);
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
    let hour = report[0]["windows"]
        .as_array()
        .and_then(|all| all.iter().find(|w| w["window"] == "1h"))
        .expect("the window of an hour");
    assert_eq!(hour["n"], 6000);
    assert_eq!(hour["verdict"], "miscalibrated");
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
fn a_file_that_is_missing_or_holds_no_event_ends_with_65() {
    assert_eq!(replay(&["no-such-file.csv"]).status.code(), Some(65));
    let path = file("empty.jsonl", "nonsense\n");
    assert_eq!(
        replay(&[&path.display().to_string()]).status.code(),
        Some(65)
    );
}
