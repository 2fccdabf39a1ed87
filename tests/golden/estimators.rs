//! Estimators and null deviations against the golden values of `tcal_ci.json` and `seeded.json`.
//!
//! Edge convention of the values: cell ⌊z·m⌋, the last cell closed at 1; the samples hold scores of
//! exactly 0 and 1. Offline, in double precision, every number must agree to 10⁻⁹ relative on all
//! levels, to 2²³ cells; through fixed-point sums to 10⁻⁶ on the levels a window keeps.

use crate::support::golden::{Case, published_cases, seeded_cases, tiny_cases};
use serde_json::Value;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::estimator;
use trueline::stats::fixed::Score;
use trueline::stats::levels::{Level, Levels};
use trueline::stats::null::Moments;
use trueline::stats::sums::Sums;

/// Checks every number of one level. `relative` is the bar. Sums of opposite signs (`td`, `t_ci`)
/// can cancel to nearly nothing, and then no order of addition keeps relative digits; they may also
/// be off by `relative` times a thousandth of their own null deviation, which no decision can see.
fn check(level: &Level, want: &Value, relative: f64, place: &str) -> usize {
    let of = |key: &str| want[key].as_f64().unwrap();
    let (d, t) = (Moments::of_debiased(level), Moments::of_unbiased(level));
    let mce = estimator::mce(level, 1).unwrap().value;
    let rows = [
        ("tb", estimator::plug_in(level), 0.0),
        ("td", estimator::debiased(level), 1e-3 * of("null_sd_td")),
        ("t_ci", estimator::unbiased(level), 1e-3 * of("null_sd_tci")),
        ("ece_l1", estimator::ece_l1(level), 0.0),
        ("mce", mce, 0.0),
        ("null_sd_td", d.sd(), 0.0),
        ("null_sd_tci", t.sd(), 0.0),
    ];
    assert_eq!(
        level.occupied.len() as u64,
        want["occupied"].as_u64().unwrap(),
        "{place}"
    );
    let mut bad = 0;
    for (key, got, floor) in rows {
        let bar = relative * (of(key).abs() + floor);
        let off = (got - of(key)).abs();
        if off.is_nan() || off > bar {
            println!("{place} {key}: {got:e} instead of {:e}", of(key));
            bad += 1;
        }
    }
    bad
}

#[test]
fn estimators_of_tiny_and_seeded_samples_have_their_golden_values() {
    check_cases(&tiny_cases());
    check_cases(&seeded_cases());
}

#[test]
fn estimators_of_published_networks_have_their_golden_values() {
    check_cases(&published_cases(
        "estimators_of_published_networks_have_their_golden_values",
    ));
}

fn check_cases(cases: &[Case]) {
    let (mut bad, mut seen) = (0, 0);
    for (name, sample, case) in cases {
        assert_eq!(sample.len() as u64, case["n"].as_u64().unwrap(), "{name}");
        let wanted = case["levels"].as_array().unwrap();
        let offline = Levels::from_scores(sample, wanted.len() as u32);
        let mut sums = Sums::new(Grid::new(Axis::Linear, 12));
        for &(z, y) in sample {
            sums.observe(Score::new(z).unwrap(), y).unwrap();
        }
        let live = Levels::from_sums(&sums);
        for (b, want) in wanted.iter().enumerate() {
            let place = format!("{name} 2^{}", b + 1);
            bad += check(
                &offline.as_slice()[b],
                want,
                1e-9,
                &format!("offline {place}"),
            );
            if let Some(level) = live.as_slice().get(b) {
                bad += check(level, want, 1e-6, &format!("sums {place}"));
            }
            seen += 1;
        }
    }
    println!("{seen} levels checked");
    assert_eq!(bad, 0, "numbers off");
}
