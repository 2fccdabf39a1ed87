//! `trueline evaluate` as a process, on files of class probabilities: every view answers, and says
//! what it lacks.

use crate::support::file;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempPath;
use trueline::stats::rng::Rng;

/// A file of `n` vectors of three classes; `pushed` of the outcomes are class 0 whatever was said.
fn vectors(n: usize, pushed: f64) -> TempPath {
    let mut rng = Rng::new(4);
    let mut text = String::from("p0,p1,p2,label\n");
    for _ in 0..n {
        let p: Vec<f64> = (0..3).map(|_| -(1.0 - rng.uniform()).ln()).collect();
        let sum: f64 = p.iter().sum();
        let (a, b) = (p[0] / sum, p[1] / sum);
        let x = rng.uniform();
        let y = if rng.uniform() < pushed || x < a {
            0
        } else if x < a + b {
            1
        } else {
            2
        };
        text += &format!("{a},{b},{},{y}\n", 1.0 - a - b);
    }
    file("vectors.csv", text.as_bytes())
}

fn evaluate(path: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
    command
        .arg("evaluate")
        .args(args)
        .arg(path)
        .output()
        .unwrap()
}

fn json(path: &Path, view: &str) -> Value {
    let out = evaluate(path, &["--json", "--view", view]);
    assert!(
        out.status.success(),
        "{view}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn every_view_of_a_file_of_vectors_finds_what_is_wrong_and_nothing_else() {
    let (good, bad) = (vectors(2000, 0.0), vectors(2000, 0.3));
    for view in [
        "top_label",
        "class:0",
        "classes",
        "top_k:2",
        "full",
        "kernel",
    ] {
        assert_eq!(json(&bad, view)["reject"], true, "{view}");
        assert_eq!(json(&good, view)["reject"], false, "{view}");
        let table = evaluate(&bad, &["--view", view]);
        let text = String::from_utf8(table.stdout).unwrap();
        assert!(text.starts_with("calibration rejected"), "{view}: {text}");
    }
    // Without a view: the top label, with its distances.
    let out = evaluate(&bad, &["--json"]);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(report["distances"]["smooth"]["value"].as_f64().unwrap() > 0.0);
    let failed = evaluate(&bad, &["--view", "kernel", "--fail-on-miscalibrated"]);
    assert_eq!(failed.status.code(), Some(1));
    let missing = evaluate(&bad, &["--view", "class:3"]);
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        !missing.status.success() && said.contains("its classes are 0 to 2"),
        "{said}"
    );
    let unknown = evaluate(&bad, &["--view", "best"]);
    assert!(!unknown.status.success());
}

#[test]
fn a_gate_passes_on_evidence_alone() {
    let scores = |n: usize, truth: fn(f64) -> f64| {
        let mut rng = Rng::new(7);
        let mut text = String::from("score,label\n");
        for _ in 0..n {
            let z = rng.uniform();
            text += &format!("{z},{}\n", u8::from(rng.uniform() < truth(z)));
        }
        file("gate.csv", text.as_bytes())
    };
    let code = |path: &Path, args: &[&str]| evaluate(path, args).status.code();
    let gate = ["--tolerance", "0.1", "--fail-unless-calibrated"];
    for n in [1, 12, 40] {
        let few = scores(n, |z| z);
        assert_eq!(code(&few, &gate), Some(1), "{n}");
        assert_eq!(code(&few, &["--fail-on-miscalibrated"]), Some(0), "{n}");
    }
    assert_eq!(code(&scores(20_000, |z| z), &gate), Some(0));
    let wrong = scores(20_000, |z| z * z * z);
    assert_eq!(code(&wrong, &gate), Some(1));
    // What gives no such verdict cannot pass.
    let several = vectors(200, 0.0);
    for view in ["kernel", "full", "classes"] {
        let args = ["--view", view, "--fail-unless-calibrated"];
        assert_eq!(code(&several, &args), Some(64), "{view}");
    }
    let args = ["--test", "consistency", "--fail-unless-calibrated"];
    assert_eq!(code(&wrong, &args), Some(64));
}

#[test]
fn the_papers_other_tests_answer_for_scores_and_for_all_classes() {
    let (good, bad) = (vectors(2000, 0.0), vectors(3000, 0.6));
    let run = |path: &Path, view: &str, test: &str| -> Value {
        let out = evaluate(path, &["--json", "--view", view, "--test", test]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{view} {test}: {said}");
        serde_json::from_slice(&out.stdout).unwrap()
    };
    for (view, tests) in [
        (
            "class:0",
            &[
                "known-smoothness",
                "composite",
                "splitting",
                "splitting-adaptive",
                "consistency",
            ][..],
        ),
        (
            "full",
            &["known-smoothness", "splitting", "splitting-adaptive"][..],
        ),
    ] {
        for test in tests {
            let found = run(&bad, view, test);
            assert_eq!(found["reject"], true, "{view} {test} {found:#}");
            assert_eq!(found["test"], *test);
            let found = run(&good, view, test);
            assert_eq!(found["reject"], false, "{view} {test} {found:#}");
            let table = evaluate(&bad, &["--view", view, "--test", test]);
            let text = String::from_utf8(table.stdout).unwrap();
            assert!(text.starts_with("calibration rejected"), "{text}");
        }
    }
    // What is tolerated is not rejected; what a test cannot do is said.
    let wide = [
        "--view",
        "class:0",
        "--test",
        "composite",
        "--tolerance",
        "0.6",
        "--json",
    ];
    let report: Value = serde_json::from_slice(&evaluate(&bad, &wide).stdout).unwrap();
    assert_eq!(report["reject"], false);
    let failed = evaluate(&bad, &["--view", "top_k:2", "--test", "consistency"]);
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(
        !failed.status.success() && said.contains("needs single scores"),
        "{said}"
    );
}

#[test]
fn intervals_of_others_stand_beside_ours_where_they_are_asked_for() {
    let path = vectors(3000, 0.4);
    let asked = ["--compare-intervals", "200", "--interval-cells", "16"];
    let run = |more: &[&str]| evaluate(&path, &[&asked[..], more].concat());
    let out = run(&["--json", "--view", "class:0"]);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let all = &report["intervals"];
    assert_eq!(
        (&all["cells"], &all["replicates"]),
        (&16.into(), &200.into())
    );
    let of = |v: &Value, key: &str| v[key].as_f64().unwrap();
    // The same estimate in floats of scores as ours in integers of cells.
    let ours = &report["interval"];
    assert!((of(all, "estimate_squared") - of(ours, "estimate_squared")).abs() < 1e-9);
    let estimate = of(ours, "estimate_squared").sqrt();
    for name in ["bootstrap", "subsampling", "hulc"] {
        let (low, high) = (of(&all[name], "lower"), of(&all[name], "upper"));
        assert!(
            low < high && low < 1.1 * estimate && high > 0.9 * estimate,
            "{name}: {all}"
        );
    }
    // The bootstrap of an error that is far from 0 is as wide as our interval, about.
    let width = |v: &Value| of(v, "upper") - of(v, "lower");
    let ratio = width(&all["bootstrap"]) / width(ours);
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
    assert_eq!(run(&["--json", "--view", "class:0"]).stdout, out.stdout);
    let other = run(&["--json", "--view", "class:0", "--seed", "3"]);
    assert_ne!(other.stdout, out.stdout);
    let text = String::from_utf8(run(&["--view", "class:0"]).stdout).unwrap();
    assert!(
        text.contains("other 90 % intervals") && text.contains("\nHulC"),
        "{text}"
    );
    for args in [
        &["--view", "full"][..],
        &["--view", "class:0", "--test", "composite"],
    ] {
        let refused = run(args);
        assert_eq!(refused.status.code(), Some(64), "{args:?}");
    }
    let plain: Value = serde_json::from_slice(&evaluate(&path, &["--json"]).stdout).unwrap();
    assert!(plain.get("intervals").is_none());
}

#[test]
fn a_table_has_the_columns_and_labels_that_people_have() {
    let path = vectors(4000, 0.0);
    let text = std::fs::read_to_string(&path).expect("a file");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|h| *h == name).expect(name);
    let (p1, label) = (column("p1"), column("label"));
    let rows: Vec<(String, bool)> = lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[p1].to_owned(), cells[label] == "1")
        })
        .collect();
    let json_lines: String = rows
        .iter()
        .map(|(p, y)| {
            let y = if *y { "spam" } else { "ham" };
            format!("{{\"id\":\"x\",\"prediction\":{{\"p\":{p}}},\"y\":\"{y}\"}}\n")
        })
        .collect();
    let pandas: String = rows
        .iter()
        .map(|(p, y)| format!("{p},{}\n", if *y { "True" } else { "False" }))
        .collect();
    let plain: String = rows
        .iter()
        .map(|(p, y)| format!("{p},{}\n", u8::from(*y)))
        .collect();
    let usual = file("usual.csv", format!("score,label\n{plain}").as_bytes());
    let wanted = evaluate(&usual, &["--json"]);
    assert!(wanted.status.success(), "{wanted:?}");
    let own = file("own.jsonl", json_lines.as_bytes());
    let table = file("pandas.csv", format!("y_prob,y_true\n{pandas}").as_bytes());
    let columns = [
        "--score",
        "prediction.p",
        "--label",
        "y",
        "--positive",
        "spam",
    ];
    let from_json = evaluate(&own, &[&["--json"], &columns[..]].concat());
    assert_eq!(from_json.stdout, wanted.stdout, "{from_json:?}");
    let columns = ["--json", "--score", "y_prob", "--label", "y_true"];
    assert_eq!(evaluate(&table, &columns).stdout, wanted.stdout);
    let piped = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .arg("evaluate")
        .args(columns)
        .arg("-")
        .stdin(std::fs::File::open(&table).expect("a file"))
        .output()
        .expect("the binary starts");
    assert_eq!(piped.stdout, wanted.stdout, "{piped:?}");
    let wrong = evaluate(&table, &["--score", "y_prob"]);
    let told = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        told.contains("no column named 'label' among [y_prob, y_true]"),
        "{told}"
    );
}

#[test]
fn parquet_and_arrow_come_by_standard_input_too() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decode/columnar");
    for name in [
        "plain.parquet",
        "plain.feather",
        "plain.arrows",
        "vectors.parquet",
    ] {
        let path = folder.join(name);
        let score = ["--score", "probs"];
        let columns = if name == "vectors.parquet" {
            &score[..]
        } else {
            &[]
        };
        for window in [&["--as-window"][..], &[]] {
            let args = [&["--json"], columns, window].concat();
            let wanted = evaluate(&path, &args);
            assert!(wanted.status.success(), "{wanted:?}");
            let piped = Command::new(env!("CARGO_BIN_EXE_trueline"))
                .arg("evaluate")
                .args(&args)
                .arg("-")
                .stdin(std::fs::File::open(&path).expect("a file"))
                .output()
                .expect("the binary starts");
            assert_eq!(piped.stdout, wanted.stdout, "{name}: {piped:?}");
            assert_eq!(piped.status.code(), wanted.status.code(), "{name}");
        }
    }
}

/// A file with these lines, and what `evaluate` says of it.
fn of_lines(name: &str, lines: &[&str], args: &[&str]) -> (Option<i32>, String) {
    let path = file(name, (lines.join("\n") + "\n").as_bytes());
    let out = evaluate(&path, args);
    let said = [out.stdout, out.stderr].concat();
    (
        out.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn a_column_of_later_objects_alone_and_a_weight_beyond_a_window_are_errors_with_their_place() {
    let first = r#"{"score":0.2,"label":0}"#;
    for column in ["weight", "cluster"] {
        let later = format!(r#"{{"score":0.9,"label":1,"{column}":5}}"#);
        let (code, said) = of_lines("later.jsonl", &[first, first, &later], &[]);
        assert_eq!(code, Some(65), "{said}");
        assert!(said.contains(&format!(":3: '{column}'")), "{said}");
    }
    let rows = ["score,label,weight", "0.5,1,70000", "0.5,0,1"];
    let (code, said) = of_lines("weights.csv", &rows, &["--as-window"]);
    assert_eq!(code, Some(65), "{said}");
    assert!(said.contains("70000: not below 65536"), "{said}");
}

#[test]
fn classes_against_the_rest_are_called_by_their_names() {
    let (named, folder) = (["--view", "classes"], tempfile::tempdir().unwrap());
    let rows = ["a,b,c,label", "0.6,0.3,0.1,malignant", "0.2,0.7,0.1,0"];
    let names = ["--classes", "benign=a,malignant=b,<x>=c"];
    let page = folder.path().join("r.html");
    let report = ["--report", page.to_str().unwrap()];
    let (_, said) = of_lines("named.csv", &rows, &[named, names, report].concat());
    let line = |start: &str| said.lines().any(|l| l.trim_start().starts_with(start));
    assert!(
        line("malignant ") && line("benign ") && !line("1 "),
        "{said}"
    );
    let html = std::fs::read_to_string(&page).unwrap();
    for part in ["<th scope=row>malignant", "<h2>Class &lt;x&gt; against"] {
        assert!(html.contains(part), "{html}");
    }
    let json = [&named[..], &names, &["--json"]].concat();
    let (_, said) = of_lines("named.csv", &rows, &json);
    let json: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(json["classes"][1]["name"], "malignant");
    let rows = ["p0,p1,label", "0.6,0.4,1", "0.2,0.8,0"];
    let (_, said) = of_lines("plain.csv", &rows, &named);
    assert!(said.lines().any(|l| l.starts_with("     1 ")), "{said}");
}

#[test]
fn a_list_of_probabilities_with_names_as_labels_is_led_to_its_classes() {
    let rows = [
        r#"{"probs":[0.8,0.2],"label":"cat"}"#,
        r#"{"probs":[0.3,0.7],"label":"dog"}"#,
    ];
    let form = "--classes cat=probs.0,dog=probs.1";
    let (code, said) = of_lines("list.jsonl", &rows, &["--score", "probs"]);
    assert!(code == Some(65) && said.contains(form), "{code:?} {said}");
    let both = ["--score", "probs", "--classes", "cat,dog"];
    let (code, said) = of_lines("list.jsonl", &rows, &both);
    assert!(code == Some(64) && said.contains(form), "{code:?} {said}");
    let named = form.split(' ').collect::<Vec<_>>();
    let (code, said) = of_lines("list.jsonl", &rows, &named);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_label_is_the_name_of_a_class_before_it_is_a_column() {
    let rows = ["1,2,label", "0.9,0.1,1", "0.1,0.9,2"];
    let args = ["--classes", "1=2,2=1", "--view", "top_label", "--json"];
    let (_, said) = of_lines("classes.csv", &rows, &args);
    let named: Value = serde_json::from_str(&said).expect("JSON");
    let rows = ["a,b,label", "0.1,0.9,0", "0.9,0.1,1"];
    let args = ["--classes", "x=a,y=b", "--view", "top_label", "--json"];
    let (_, said) = of_lines("others.csv", &rows, &args);
    let other: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(named["in_the_large"], other["in_the_large"]);
    assert!(
        named["in_the_large"].is_object() || named["in_the_large"].is_number(),
        "{named}"
    );
}
