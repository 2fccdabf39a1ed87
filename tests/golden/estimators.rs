//! Estimators and null deviations against the golden values of `../shared/reference/tcal_ci.json`.
//!
//! Edge convention of the values: cell ⌊z·m⌋, the last cell closed at 1; the samples hold scores of
//! exactly 0 and 1. Offline, in double precision, every number must agree to 10⁻⁹ relative on all
//! levels, to 2²³ cells; through fixed-point sums to 10⁻⁶ on the levels a window keeps.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::estimator;
use trueline::stats::fixed::Score;
use trueline::stats::null::Moments;
use trueline::stats::pyramid::{Level, Pyramid};
use trueline::stats::sums::Sums;

fn shared() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let found = path.join("reference/tcal_ci.json").exists();
    if !found {
        println!("skipped: {} is missing", path.display());
    }
    found.then_some(path)
}

fn sample(shared: &Path, name: &str, case: &Value) -> Vec<(f64, bool)> {
    if let (Some(z), Some(y)) = (case["z"].as_array(), case["y"].as_array()) {
        let pairs = z.iter().zip(y);
        return pairs
            .map(|(z, y)| (z.as_f64().unwrap(), y.as_f64() == Some(1.0)))
            .collect();
    }
    let path = shared.join(format!("data/tcal/{name}.csv"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows = text.lines().skip(1).filter_map(|row| row.split_once(','));
    rows.map(|(z, y)| {
        (
            z.trim().parse().unwrap(),
            y.trim().parse::<f64>().unwrap() == 1.0,
        )
    })
    .collect()
}

/// Checks every number of one level. `relative` is the bar. Sums of opposite signs (`td`, `t_ci`) can
/// cancel to nearly nothing, and then no order of addition keeps relative digits; they may also be off
/// by `relative` times a thousandth of their own null deviation, which no decision can see.
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
        if (got - of(key)).abs() > bar {
            println!("{place} {key}: {got:e} instead of {:e}", of(key));
            bad += 1;
        }
    }
    bad
}

#[test]
fn shared_golden_values_are_met_offline_and_through_sums() {
    let Some(shared) = shared() else { return };
    let text = fs::read_to_string(shared.join("reference/tcal_ci.json")).unwrap();
    let golden: Value = serde_json::from_str(&text).unwrap();
    let (mut bad, mut seen) = (0, 0);
    for (name, case) in golden.as_object().unwrap() {
        let sample = sample(&shared, name, case);
        assert_eq!(sample.len() as u64, case["n"].as_u64().unwrap(), "{name}");
        let wanted = case["levels"].as_array().unwrap();
        let offline = Pyramid::from_scores(&sample, wanted.len() as u32);
        let mut sums = Sums::new(Grid::new(Axis::Linear, 12));
        for &(z, y) in &sample {
            sums.observe(Score::new(z).unwrap(), y).unwrap();
        }
        let live = Pyramid::from_sums(&sums);
        for (b, want) in wanted.iter().enumerate() {
            let place = format!("{name} 2^{}", b + 1);
            bad += check(
                &offline.levels()[b],
                want,
                1e-9,
                &format!("offline {place}"),
            );
            if let Some(level) = live.levels().get(b) {
                bad += check(level, want, 1e-6, &format!("sums {place}"));
            }
            seen += 1;
        }
    }
    println!("{seen} levels checked");
    assert_eq!(bad, 0, "numbers off");
}
