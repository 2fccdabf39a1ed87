//! `trueline evaluate` with the papers' other tests and estimators, of scores, vectors and weights.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use trueline::stats::rng::Rng;

fn evaluate(args: &[&str], file: &PathBuf) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trueline"))
        .arg("evaluate")
        .args(args)
        .arg(file)
        .output()
        .expect("it starts")
}

fn json(args: &[&str], file: &PathBuf) -> Value {
    let out = evaluate(&[&["--json"], args].concat(), file);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{said}");
    serde_json::from_slice(&out.stdout).expect("json")
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

/// A thousand vectors of three classes; a share `wrong` of the outcomes is class 0 whatever they
/// say.
fn vectors(name: &str, wrong: f64, weights: bool) -> PathBuf {
    let mut draws = Rng::new(11);
    let mut text = String::from("p0,p1,p2,label");
    text += if weights { ",weight\n" } else { "\n" };
    for _ in 0..1000 {
        let row: Vec<f64> = (0..3).map(|_| 0.05 + draws.uniform()).collect();
        let sum: f64 = row.iter().sum();
        let at = draws.uniform() * sum;
        let label = match draws.uniform() < wrong {
            true => 0,
            false if at < row[0] => 0,
            false => 1 + usize::from(at >= row[0] + row[1]),
        };
        let _ = write!(
            text,
            "{},{},{},{label}",
            row[0] / sum,
            row[1] / sum,
            row[2] / sum
        );
        match weights {
            true => writeln!(text, ",{}", 0.5 + row[0]),
            false => writeln!(text),
        }
        .expect("a string");
    }
    file(name, &text)
}

#[test]
fn the_consistency_test_of_vectors_runs_and_finds_a_pushed_class() {
    let (good, bad) = (
        vectors("estimators-good.csv", 0.0, false),
        vectors("estimators-bad.csv", 0.3, false),
    );
    for test in ["consistency", "cross-fitting"] {
        let args = ["--test", test, "--view", "full", "--seed", "3"];
        let (kept, found) = (json(&args, &good), json(&args, &bad));
        assert_eq!(kept["reject"], false, "{kept:#}");
        assert!(
            test != "consistency" || found["reject"] == true,
            "{found:#}"
        );
    }
    let said = evaluate(&["--test", "consistency", "--view", "full"], &bad);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("ECE, adapted bins"), "{said}");
}

#[test]
fn estimators_of_vectors_have_p_values_where_resamples_are_asked_for() {
    let bad = vectors("estimators-p.csv", 0.3, false);
    for view in ["kernel", "full"] {
        let plain = json(&["--view", view, "--estimators"], &bad);
        assert!(plain["estimators"]["uniform"]["ece"].is_f64(), "{plain:#}");
        assert!(plain["estimators"]["uniform"]["p_value"].is_null());
        let args = [
            "--view",
            view,
            "--estimators",
            "--estimator-resamples",
            "99",
        ];
        let drawn = json(&args, &bad);
        for bins in ["uniform", "data_dependent"] {
            let found = &drawn["estimators"][bins];
            assert_eq!(found["p_value"], 0.01, "{found:#}");
            assert!(
                found["p_value_consistency"]
                    .as_f64()
                    .is_some_and(|p| p < 0.05)
            );
        }
        assert!(json(&["--view", view], &bad)["estimators"].is_null());
    }
}

#[test]
fn estimators_of_scores_agree_with_each_other() {
    let mut draws = Rng::new(4);
    let mut text = String::from("score,label\n");
    for _ in 0..2000 {
        let score = (draws.uniform() * 5.0).floor() / 5.0 + 0.1;
        let _ = writeln!(text, "{score},{}", u8::from(draws.uniform() < 0.7 * score));
    }
    let e = &json(&["--estimators"], &file("estimators-scores.csv", &text))["estimators"];
    let number = |name: &str| e[name].as_f64().expect(name);
    // Five scores in cells of their own: the same estimate.
    let (cells, distinct) = (
        number("debiased_l2_squared"),
        number("debiased_l2_squared_distinct"),
    );
    assert!((cells - distinct).abs() < 1e-12 && cells > 0.01, "{e:#}");
    assert!((number("binned_ece_with_width") - number("binned_ece") - 0.05).abs() < 1e-12);
    let sampled = &e["laplace_squared_sampled"];
    let off = sampled["value"].as_f64().expect("a value") - number("laplace_squared");
    assert!(
        off.abs() < 5.0 * sampled["standard_error"].as_f64().expect("an error"),
        "{e:#}"
    );
}

#[test]
fn continuous_scores_have_no_error_over_distinct_scores() {
    let text = "score,label\n0.1,0\n0.2,0\n0.7,1\n0.9,1\n";
    let path = file("estimators-continuous.csv", text);
    let e = &json(&["--estimators"], &path)["estimators"];
    assert!(e["debiased_l2_squared_distinct"].is_null(), "{e:#}");
    for args in [&["--estimators"][..], &["--test", "consistency"]] {
        let said = evaluate(args, &path);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("no repeated scores"), "{said}");
    }
}

#[test]
fn an_option_that_a_sample_has_no_answer_to_is_an_error_that_says_what_to_do() {
    let scores = file(
        "estimators-w-scores.csv",
        "score,label,weight\n0.3,0,1\n0.8,1,2\n",
    );
    let clustered = file(
        "estimators-clustered.csv",
        "score,label,cluster\n0.3,0,a\n0.8,1,b\n",
    );
    let plain = file("estimators-plain.csv", "score,label\n0.3,0\n0.8,1\n");
    let vectors = vectors("estimators-w-options.csv", 0.3, true);
    for (args, path, remedy) in [
        (
            &["--estimators"][..],
            &scores,
            "drop the option or the column weight",
        ),
        (
            &["--view", "kernel", "--estimators"],
            &vectors,
            "drop the option or the column weight",
        ),
        (
            &["--view", "kernel", "--kernel-bootstrap", "10"],
            &vectors,
            "drop the option or the column weight",
        ),
        (
            &["--estimators"],
            &clustered,
            "drop the option or the column cluster",
        ),
        (
            &["--kernel-bootstrap", "10"],
            &plain,
            "add --view kernel or drop the option",
        ),
    ] {
        let out = evaluate(args, path);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let place = path.file_name().and_then(|n| n.to_str()).expect("a name");
        assert_eq!(out.status.code(), Some(64), "{args:?}: {said}");
        assert!(said.contains(remedy) && said.contains(place), "{said}");
    }
}

#[test]
fn the_kernel_test_takes_weights() {
    let (good, bad) = (
        vectors("estimators-w-good.csv", 0.0, true),
        vectors("estimators-w-bad.csv", 0.3, true),
    );
    let (kept, found) = (
        json(&["--view", "kernel"], &good),
        json(&["--view", "kernel"], &bad),
    );
    assert_eq!(kept["reject"], false, "{kept:#}");
    assert_eq!(found["reject"], true, "{found:#}");
    assert!(found["effective_n"].as_f64().is_some_and(|n| n < 1000.0));
    let said = evaluate(&["--view", "kernel"], &bad);
    assert!(String::from_utf8_lossy(&said.stdout).contains("weighted events"));
}
