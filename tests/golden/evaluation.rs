//! The evaluation against the golden values of `tcal_ci.json` and `seeded.json`.
//!
//! Edge convention of all golden values: cells [0, 1/m), …, [(m−1)/m, 1], the last one closed.
//! Scores of exactly 0 and 1 are among the cases.

use crate::support::golden::{Case, published, published_cases, scores, seeded_cases, tiny_cases};
use serde_json::Value;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::classical::{self, Totals};
use trueline::stats::estimate::Estimate;
use trueline::stats::evaluation::{NullReach, Options, evaluate, evaluate_scores};
use trueline::stats::fixed::Score;
use trueline::stats::interval;
use trueline::stats::levels::Level;
use trueline::stats::sums::Sums;

/// Offline, in double precision: what order of summation may cost.
const OFFLINE: f64 = 1e-9;
/// Through the integer cells: one rounding of 2⁻³³ an event.
const FIXED: f64 = 1e-6;

/// Relative to the size of the value, with a floor for values that cancel to about 0.
#[track_caller]
fn close(what: &str, got: f64, wanted: &Value, tolerance: f64, floor: f64) {
    let wanted = wanted
        .as_f64()
        .unwrap_or_else(|| panic!("{what}: no golden value"));
    let off = (got - wanted).abs();
    assert!(
        off <= tolerance * wanted.abs().max(floor),
        "{what}: {got} for {wanted}"
    );
}

fn sums_of(sample: &[(f64, bool)], level: u32) -> Sums {
    let mut sums = Sums::new(Grid::new(Axis::Linear, level));
    for &(z, y) in sample {
        sums.observe(Score::new(z).unwrap(), y).unwrap();
    }
    sums
}

#[test]
fn intervals_and_scores_of_tiny_and_seeded_samples_have_their_golden_values() {
    for cases in [tiny_cases(), seeded_cases()] {
        check_intervals(&cases);
        check_estimates(&cases);
        check_companions(&cases);
    }
}

#[test]
fn intervals_and_scores_of_published_networks_have_their_golden_values() {
    let cases =
        published_cases("intervals_and_scores_of_published_networks_have_their_golden_values");
    check_intervals(&cases);
    check_estimates(&cases);
    check_companions(&cases);
}

fn check_intervals(cases: &[Case]) {
    for (name, sample, case) in cases {
        let (ci, n) = (&case["ci"], sample.len() as f64);
        let level = Level::from_scores(sample, 50);
        let e = Estimate::of(&level, n);
        close(&format!("{name} t"), e.t, &ci["t"], OFFLINE, 1e-4);
        close(
            &format!("{name} σ₁²"),
            e.sigma1_squared,
            &ci["sigma1_sq"],
            OFFLINE,
            1e-6,
        );
        let k = name.split('_').next().unwrap_or_default();
        let lower = [("cifar100", 0.01), ("cifar10", 0.1)]
            .iter()
            .find(|(p, _)| *p == k);
        let lower_support = lower.map_or(0.0, |l| l.1);
        close(
            name,
            interval::sigma0_paper(lower_support),
            &ci["sigma0_paper"],
            OFFLINE,
            1.0,
        );
        for wanted in ci["paper"].as_array().unwrap() {
            let alpha = wanted["alpha"].as_f64().unwrap();
            let threshold = interval::paper_threshold(lower_support, 50, n, alpha);
            close(name, threshold, &wanted["zero_threshold"], OFFLINE, 1e-6);
            let i = interval::interval(&level, n, 1.0 - alpha, NullReach::Paper { lower_support });
            close(
                &format!("{name} lower"),
                i.lower * i.lower,
                &wanted["lo"],
                OFFLINE,
                1e-4,
            );
            close(
                &format!("{name} upper"),
                i.upper * i.upper,
                &wanted["hi"],
                OFFLINE,
                1e-4,
            );
            assert_eq!(
                Some(i.contains_zero),
                wanted["contains_zero"].as_bool(),
                "{name}"
            );
        }
        // The golden conditional reach is a normal quantile; the product's is the Pearson law, so
        // here the threshold is given.
        for wanted in ci["conditional"].as_array().unwrap() {
            let alpha = wanted["alpha"].as_f64().unwrap();
            let threshold = wanted["zero_threshold"].as_f64().unwrap();
            let ends = interval::squared_ends(&e, n, alpha, e.t.max(0.0) < threshold);
            close(
                &format!("{name} lower"),
                ends.lower,
                &wanted["lo"],
                OFFLINE,
                1e-4,
            );
            assert_eq!(
                Some(ends.contains_zero),
                wanted["contains_zero"].as_bool(),
                "{name}"
            );
        }
    }
}

fn check_estimates(cases: &[Case]) {
    for (name, sample, case) in cases {
        let n = sample.len() as f64;
        let pyramid = trueline::stats::levels::Levels::from_sums(&sums_of(sample, 12));
        for wanted in case["levels"].as_array().unwrap() {
            let m = wanted["m"].as_u64().unwrap();
            let check = |level: &Level, tolerance: f64| {
                let e = Estimate::of(level, n);
                let at = |key: &str| format!("{name} {key} of {m} cells");
                close(&at("t_ci"), e.t, &wanted["t_ci"], tolerance, 1e-3);
                close(
                    &at("σ₁²"),
                    e.sigma1_squared,
                    &wanted["sigma1_sq"],
                    tolerance,
                    1e-4,
                );
                close(
                    &at("null sd"),
                    e.null.sd(),
                    &wanted["null_sd_tci"],
                    tolerance,
                    1e-4,
                );
                let ece = classical::ece_l1(level, n);
                close(&at("ece"), ece, &wanted["ece_l1"], tolerance, 1e-3);
            };
            check(&Level::from_scores(sample, m), OFFLINE);
            if let Some(level) = pyramid.as_slice().iter().find(|l| l.cells == m) {
                check(level, FIXED);
            }
        }
    }
}

fn check_companions(cases: &[Case]) {
    for (name, sample, case) in cases {
        let level = Level::from_scores(sample, 15);
        let ece = classical::ece_l1(&level, sample.len() as f64);
        close(&format!("{name} ece"), ece, &case["ece15"], OFFLINE, 1e-3);
        check_classical(
            name,
            &Totals::from_scores(sample, &level),
            &case["classical"],
            OFFLINE,
        );
        let sums = sums_of(sample, 12);
        let finest = trueline::stats::levels::Levels::from_sums(&sums);
        let totals = Totals::from_sums(&sums, finest.finest());
        check_classical(name, &totals, &case["classical"], FIXED);
    }
}

fn check_classical(name: &str, t: &Totals, wanted: &Value, tolerance: f64) {
    let level = Level {
        cells: 1,
        ..Level::default()
    };
    let at = |what: &str| format!("{name} {what} to {tolerance}");
    let brier = classical::brier(t, &level).score;
    close(&at("brier"), brier, &wanted["brier"], tolerance, 0.0);
    close(
        &at("log loss"),
        t.loss / t.n,
        &wanted["log_loss"],
        tolerance,
        0.0,
    );
    let large = classical::in_the_large(t);
    close(
        &at("mean"),
        large.mean_residual,
        &wanted["in_the_large"],
        tolerance,
        1e-2,
    );
    let z = large.z.expect("these scores have variance");
    close(&at("z"), z, &wanted["in_the_large_z"], tolerance, 0.1);
    match classical::spiegelhalter(t) {
        Some(s) => {
            close(
                &at("spiegelhalter"),
                s.z,
                &wanted["spiegelhalter_z"],
                tolerance,
                0.1,
            );
            // A tail deep as 1e-34 multiplies the error of z by z².
            close(
                &at("its p"),
                s.p_value.unwrap(),
                &wanted["spiegelhalter_p"],
                1e3 * tolerance,
                0.0,
            );
        }
        None => panic!("{name} has variance"),
    }
    match classical::cox(t, &level) {
        Some(c) => {
            close(&at("cox"), c.score, &wanted["cox_score"], tolerance, 1e-2);
            close(
                &at("its p"),
                c.p_value.unwrap(),
                &wanted["cox_p"],
                1e3 * tolerance,
                0.0,
            );
        }
        None => assert!(wanted["cox_score"].is_null(), "{name}: no Cox score"),
    }
}

#[test]
fn window_and_file_say_the_same_of_seeded_samples() {
    for (name, sample, _) in seeded_cases() {
        same_in_window_and_file(&name, &sample);
    }
}

#[test]
fn window_and_file_say_the_same_of_a_published_network() {
    let name = "window_and_file_say_the_same_of_a_published_network";
    if let Some(path) = published(name, "tcal/cifar100_resnet56.none.csv") {
        same_in_window_and_file(name, &scores(&path));
    }
}

fn same_in_window_and_file(name: &str, sample: &[(f64, bool)]) {
    let o = Options {
        interval_cells: Some(64),
        ..Options::default()
    };
    let live = evaluate(&sums_of(sample, 12), &o).expect("events");
    let file = evaluate_scores(sample, &o).expect("events");
    assert_eq!(live.reject, file.reject, "{name}");
    assert_eq!(live.direction, file.direction, "{name}");
    assert!((live.interval.upper - file.interval.upper).abs() < FIXED);
    assert!((live.ks.statistic - file.ks.statistic).abs() < FIXED);
    assert_eq!(live.reliability.len(), file.reliability.len(), "{name}");
}
