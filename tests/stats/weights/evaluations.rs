//! Weights of one say what none say, their scale says nothing, and a window says what the file of
//! its events says.

use super::{LAWS, Weighted, heavy, sample, sums_of, tiers};
use trueline::report::evaluation;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::evaluation::{
    DiscreteMode, Evaluation, Options, Weights, evaluate, evaluate_scores, evaluate_weighted,
};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::stats::weight::Weight;

/// Without what says that there are weights, and what is withheld because of them.
fn bare(e: Evaluation) -> Evaluation {
    let cells = e.reliability.into_iter().map(|mut c| {
        (c.rate_low, c.rate_high) = (None, None);
        c
    });
    let mut tolerance = e.tolerance;
    tolerance.theorem_exceeded = None;
    Evaluation {
        reliability: cells.collect(),
        tolerance,
        weights: None,
        repeated: None,
        ..e
    }
}

#[test]
fn weights_of_one_give_what_no_weights_give_to_the_bit() {
    let o = Options {
        discrete: DiscreteMode::Off,
        ..Options::default()
    };
    for (seed, n) in [(1, 3), (2, 700), (3, 30_000)] {
        let scores: Vec<Weighted> = sample(&mut Rng::new(seed), heavy, |z| 0.9 * z, n)
            .into_iter()
            .map(|(z, y, _)| (z, y, 1.0))
            .collect();
        let plain: Vec<(f64, bool)> = scores.iter().map(|&(z, y, _)| (z, y)).collect();
        let mut sums = Sums::new(Grid::new(Axis::Linear, 12));
        for &(z, y) in &plain {
            sums.observe(Score::new(z).unwrap(), y).unwrap();
        }
        let (a, b) = (evaluate(&sums_of(&scores), &o), evaluate(&sums, &o));
        let (a, b) = (a.unwrap(), b.unwrap());
        let weights = Weights {
            sum: n as f64,
            effective: n as f64,
        };
        assert_eq!(a.weights, Some(weights));
        assert_eq!(bare(a), bare(b), "window, n = {n}");
        let (a, b) = (evaluate_weighted(&scores, &o), evaluate_scores(&plain, &o));
        let (a, b) = (bare(a.unwrap()), bare(b.unwrap()));
        assert_eq!(
            (a.tcal, a.interval, a.reliability),
            (b.tcal, b.interval, b.reliability)
        );
        assert_eq!(
            (a.ece_l1, a.mce, a.ks),
            (b.ece_l1, b.mce, b.ks),
            "file, n = {n}"
        );
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
        assert!(near(a.brier.score, b.brier.score) && near(a.log_loss, b.log_loss));
        assert!(near(a.cox.unwrap().score, b.cox.unwrap().score));
    }
}

#[test]
fn the_scale_of_weights_changes_nothing_and_a_weight_of_two_is_two_events() {
    let o = Options::default();
    let all = sample(&mut Rng::new(5), heavy, |z| 0.8 * z, 4000);
    let scaled: Vec<Weighted> = all.iter().map(|&(z, y, w)| (z, y, 64.0 * w)).collect();
    let (a, b) = (evaluate_weighted(&all, &o), evaluate_weighted(&scaled, &o));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!((a.tcal.p_value, a.interval), (b.tcal.p_value, b.interval));
    assert_eq!(
        (a.ece_l1, a.brier.score, a.cox),
        (b.ece_l1, b.brier.score, b.cox)
    );
    assert_eq!(64.0 * a.weights.unwrap().sum, b.weights.unwrap().sum);
    // Two copies of an event have the rates of one of weight 2, and other spreads.
    let twice: Vec<(f64, bool)> = all[..500].iter().map(|&(z, y, _)| (z, y)).collect();
    let double: Vec<(f64, bool)> = twice
        .iter()
        .flat_map(|&e| [e, e])
        .chain(twice.clone())
        .collect();
    let heavy: Vec<Weighted> = twice.iter().map(|&(z, y)| (z, y, 3.0)).collect();
    let (a, b) = (
        evaluate_scores(&double, &o).unwrap(),
        evaluate_weighted(&heavy, &o).unwrap(),
    );
    assert!((a.ece_l1 - b.ece_l1).abs() < 1e-12 && (a.event_rate - b.event_rate).abs() < 1e-12);
    assert_eq!(
        (a.n, b.n, b.weights.unwrap().effective.round()),
        (1500, 500, 500.0)
    );
}

#[test]
fn a_window_says_what_the_file_of_its_events_says() {
    let o = Options {
        interval_cells: Some(64),
        ..Options::default()
    };
    for (name, law) in LAWS {
        // Weights on the grid of the window's resolution, so that both see the same.
        let all: Vec<Weighted> = sample(&mut Rng::new(9), law, |z| z.powf(0.9), 6000)
            .into_iter()
            .map(|(z, y, w)| (z, y, Weight::new(w).unwrap().value()))
            .collect();
        let live = evaluate(&sums_of(&all), &o).unwrap();
        let file = evaluate_weighted(&all, &o).unwrap();
        let close = |what: &str, a: f64, b: f64| {
            assert!(
                (a - b).abs() <= 1e-6 * (1e-3 + b.abs()),
                "{name} {what}: {a} {b}"
            );
        };
        for (a, b) in live.tcal.levels.iter().zip(&file.tcal.levels) {
            close("debiased", a.debiased, b.debiased);
            close("null sd", a.null_sd, b.null_sd);
        }
        assert_eq!(live.tcal.levels.len(), file.tcal.levels.len());
        close("interval", live.interval.upper, file.interval.upper);
        close(
            "sigma",
            live.interval.sigma1_squared,
            file.interval.sigma1_squared,
        );
        close("brier", live.brier.score, file.brier.score);
        close("loss", live.log_loss, file.log_loss);
        close("rate", live.event_rate, file.event_rate);
        close(
            "large",
            live.in_the_large.z.unwrap(),
            file.in_the_large.z.unwrap(),
        );
        close(
            "spiegelhalter",
            live.spiegelhalter.unwrap().z,
            file.spiegelhalter.unwrap().z,
        );
        close("cox", live.cox.unwrap().score, file.cox.unwrap().score);
        close(
            "effective",
            live.weights.unwrap().effective,
            file.weights.unwrap().effective,
        );
        assert_eq!((live.n, live.positives), (file.n, file.positives));
        let json = evaluation::json(&live);
        assert_eq!(
            json["weights"]["effective_n"],
            live.weights.unwrap().effective
        );
        assert!(json["weights"]["withheld"]["discrete"].is_string());
        assert!(json["discrete"].is_null() && json["tolerance"]["theorem_exceeded"].is_null());
        assert!(json["reliability"][0]["rate_low"].is_null());
        assert!(json["reliability"][0]["null_low"].is_number());
    }
}

#[test]
fn a_file_with_a_column_of_weights_is_evaluated_by_them() {
    let all = sample(&mut Rng::new(12), tiers, |z| 0.7 * z, 3000);
    let mut text = String::from("score,weight,label\n");
    for (z, y, w) in &all {
        text += &format!("{z},{w},{}\n", u8::from(*y));
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("weights.csv");
    std::fs::write(&path, text).unwrap();
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trueline"));
        let out = command.arg("evaluate").args(args).arg(&path).output();
        out.unwrap()
    };
    let out = run(&["--json", "--fail-on-miscalibrated"]);
    assert_eq!(
        out.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let e = evaluate_weighted(&all, &Options::default()).unwrap();
    assert_eq!(json["tcal"]["p_value"], e.tcal.p_value);
    assert_eq!(json["weights"]["effective_n"], e.weights.unwrap().effective);
    assert_eq!(json["n"], 3000);
    let table = String::from_utf8(run(&[]).stdout).unwrap();
    assert!(table.contains("effective number of events"), "{table}");
    let refused = run(&["--method", "paper"]);
    assert_eq!(refused.status.code(), Some(64));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("has weights"), "{said}");
}
