//! Files of predictions whose outcomes are records of their own.

use super::{file, joined, replay};
use std::fs;
use std::path::Path;
use trueline::stats::rng::Rng;

/// Time and text of records.
type Timed = Vec<(i64, String)>;

/// Ten minutes of predictions, ten a second, and their outcomes, up to a minute later, in order of
/// time. The two in JSON lines, apart.
fn predictions_and_outcomes() -> (Timed, Timed) {
    let mut draws = Rng::new(8);
    let (mut predictions, mut outcomes) = (Vec::new(), Vec::new());
    for i in 0..6000 {
        let (at, score) = (1_700_000_100_000 + i * 100, draws.uniform());
        let outcome = u8::from(draws.uniform() < score);
        let prediction = format!(r#"{{"model":"m","id":"{i}","time":{at},"score":{score}}}"#);
        predictions.push((at, prediction));
        let at = at + (draws.uniform() * 60_000.0) as i64;
        outcomes.push((
            at,
            format!(r#"{{"id":"{i}","time":{at},"outcome":{outcome}}}"#),
        ));
    }
    outcomes.sort();
    (predictions, outcomes)
}

#[test]
fn outcomes_are_read_from_files_of_their_own_or_from_among_the_predictions() {
    let config = joined("joined.toml");
    let config = config.to_str().expect("a path");
    let (predictions, outcomes) = predictions_and_outcomes();
    let text = |all: &[(i64, String)]| {
        let lines = all.iter().map(|(_, line)| format!("{line}\n"));
        lines.collect::<String>()
    };
    let (p, o) = (
        file("joined-p.jsonl", &text(&predictions)),
        file("joined-o.jsonl", &text(&outcomes)),
    );
    let (p, o) = (p.to_str().expect("a path"), o.to_str().expect("a path"));
    let apart = replay(&["--json", "--config", config, p, "--outcomes", o]);
    let said = String::from_utf8_lossy(&apart.stderr).into_owned();
    assert!(apart.status.success(), "{said}");
    // The last prediction is of 10 minutes after the first and the last outcome of a minute later:
    // those of the first six minutes are mature, in whole panes.
    assert!(said.contains("12000 records: 3"), "{said}");
    assert!(said.contains("6000 matched"), "{said}");
    assert!(said.contains("pending"), "{said}");

    // A rejected outcome before each costs no prediction.
    let open = outcomes.iter().map(|(at, line)| {
        let (id, _) = line.split_once(r#","outcome""#).expect("an outcome");
        (*at, format!(r#"{id},"outcome":null}}"#))
    });
    let mut twice: Timed = open.chain(outcomes.iter().cloned()).collect();
    twice.sort_by_key(|(at, _)| *at);
    let twice = file("joined-twice.jsonl", &text(&twice));
    let twice = twice.to_str().expect("a path");
    let rejected = replay(&["--json", "--config", config, p, "--outcomes", twice]);
    let said = String::from_utf8_lossy(&rejected.stderr).into_owned();
    assert!(rejected.status.success(), "{said}");
    assert!(said.contains("6000 missing_field"), "{said}");

    let mut both = [predictions.clone(), outcomes.clone()].concat();
    both.sort_by_key(|(at, _)| *at);
    let both = file("joined-both.jsonl", &text(&both));
    let mixed = replay(&["--json", "--config", config, both.to_str().expect("a path")]);
    assert_eq!(mixed.stdout, apart.stdout);
    assert_eq!(mixed.stderr, apart.stderr);

    // The same as CSV, where a row without a score is an outcome.
    let mut csv = String::from("model,id,time,score,outcome\n");
    let mut rows: Vec<(i64, String)> = Vec::new();
    for (at, line) in predictions.iter().chain(&outcomes) {
        let v: serde_json::Value = serde_json::from_str(line).expect("json");
        let (id, score, outcome) = (&v["id"], &v["score"], &v["outcome"]);
        let id = id.as_str().expect("an id");
        let cell = |v: &serde_json::Value| {
            if v.is_null() {
                String::new()
            } else {
                v.to_string()
            }
        };
        rows.push((
            *at,
            format!("m,{id},{at},{},{}\n", cell(score), cell(outcome)),
        ));
    }
    rows.sort_by_key(|(at, _)| *at);
    rows.iter().for_each(|(_, row)| csv.push_str(row));
    let csv = file("joined.csv", &csv);
    let from_csv = replay(&["--json", "--config", config, csv.to_str().expect("a path")]);
    assert_eq!(from_csv.stdout, apart.stdout, "{from_csv:?}");
    assert_eq!(from_csv.stderr, apart.stderr);
}

#[test]
fn late_outcomes_that_no_slide_follows_are_counted_beside_the_report() {
    let config = joined("revised.toml");
    let text = fs::read_to_string(&config).expect("the configuration");
    fs::write(
        &config,
        text.replace("on_missing", "revise = true\non_missing"),
    )
    .expect("a file");
    let (predictions, outcomes) = predictions_and_outcomes();
    let is_late = |id: i64| (1000..1003).contains(&id);
    let mut all = predictions;
    for (at, line) in outcomes {
        let v: serde_json::Value = serde_json::from_str(&line).expect("json");
        let id = v["id"].as_str().expect("an id").parse().expect("a number");
        if !is_late(id) {
            all.push((at, line));
        }
    }
    // The last slide is of 350 s after the first prediction, as of both records at 690 s.
    let at = 1_700_000_100_000 + 690_000;
    all.sort_by_key(|(at, _)| *at);
    let last = format!(r#"{{"model":"m","id":"last","time":{at},"score":0.5}}"#);
    all.push((at, last));
    let late = ["last", "1000", "1001", "1002"];
    all.extend(late.map(|id| (at, format!(r#"{{"id":"{id}","time":{at},"outcome":1}}"#))));
    let lines: String = all.iter().map(|(_, line)| format!("{line}\n")).collect();
    let all = file("revised.jsonl", &lines);
    let [config, all] = [&config, &all].map(|path| path.to_str().expect("a path"));
    let told = replay(&["--config", config, all]);
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(said.contains("3 revised"), "{said}");
    assert!(said.contains("not in every verdict: 3 of m/"), "{said}");
}

#[test]
fn a_row_whose_columns_of_class_probabilities_are_all_empty_is_an_outcome() {
    let text = fs::read_to_string(joined("joined-classes.toml")).expect("written");
    let text = text
        .replace("score = \"score\"", "class_probabilities = \"p\"")
        .replace(
            "[[model]]",
            "[[model]]\nclasses = [\"no\", \"yes\"]\nviews = [\"class:1\"]",
        );
    let config = file("joined-classes.toml", &text);
    let config = config.to_str().expect("a path");
    let (predictions, outcomes) = predictions_and_outcomes();
    let (mut json, mut csv) = (
        String::new(),
        String::from("model,id,time,p.no,p.yes,outcome\n"),
    );
    let mut all: Timed = predictions.into_iter().chain(outcomes).collect();
    all.sort_by_key(|(at, _)| *at);
    for (at, line) in all {
        let v: serde_json::Value = serde_json::from_str(&line).expect("json");
        let id = v["id"].as_str().expect("an id");
        match v["score"].as_f64() {
            Some(yes) => {
                let no = 1.0 - yes;
                json += &format!(
                    r#"{{"model":"m","id":"{id}","time":{at},"p":{{"no":{no},"yes":{yes}}}}}"#
                );
                csv += &format!("m,{id},{at},{no},{yes},\n");
            }
            None => {
                json += &line;
                csv += &format!("m,{id},{at},,,{}\n", v["outcome"]);
            }
        }
        json.push('\n');
    }
    // Other names of the columns are told with those that are wanted.
    let other = file(
        "classes-other.csv",
        &csv.replace("p.no,p.yes", "p_no,p_yes"),
    );
    let told = replay(&["--config", config, other.to_str().expect("a path")]);
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(
        said.contains("or name a column for each class: p.no, p.yes"),
        "{said}"
    );
    let (json, csv) = (file("classes.jsonl", &json), file("classes.csv", &csv));
    let told = |p: &Path| replay(&["--json", "--config", config, p.to_str().expect("a path")]);
    let (from_json, from_csv) = (told(&json), told(&csv));
    let said = String::from_utf8_lossy(&from_csv.stderr).into_owned();
    assert!(said.contains("6000 matched"), "{said}");
    assert_eq!(from_csv.stdout, from_json.stdout);
    assert_eq!(from_csv.stderr, from_json.stderr);
}
