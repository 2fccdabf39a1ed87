//! smECE against the published package `relplot` (`smooth_ece.json`, made by `smooth_ece.py`).
//!
//! Where the package and ours may differ: it looks for the bandwidth in steps of 2⁻¹⁰ and evaluates
//! at the step above, cuts its Gaussian at ±½ from its middle, reflects once a side, and weighs by
//! a density with an ε of 10⁻⁴. At a given bandwidth of at most 0.1 the two agree within
//! [`AT_WIDTH`]; the value at the automatic bandwidth within [`AUTOMATIC`].
//!
//! Scores of exactly 1 the package counts by half (Σ|r| of the case `few values` is 0.1408, ours;
//! it says 0.1127), so of that case it is the difference that is looked at.

use crate::support::golden::json;
use trueline::stats::distance::points::Points;
use trueline::stats::distance::smooth_ece::{smooth_ece, smooth_ece_at};

/// The density's ε and the grid's split; 7e-4 is the most that was seen.
const AT_WIDTH: f64 = 1e-3;
/// A step of the bandwidth moves the value by less than the step.
const AUTOMATIC: f64 = 1e-3;

#[test]
fn smece_is_the_published_packages_within_its_own_resolution() {
    let golden = json("smooth_ece.json");
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    let mut far = Vec::new();
    for case in cases {
        let list = |key: &str| case[key].as_array().unwrap().iter();
        let scores = list("z").map(|z| z.as_f64().unwrap() / 65_536.0);
        let sample: Vec<(f64, bool)> = scores
            .zip(list("y").map(|y| y.as_u64() == Some(1)))
            .collect();
        let points = Points::from_scores(&sample).unwrap();
        let mut compare = |what: String, ours: f64, theirs: f64, bar: f64| {
            println!("{} {what}: {ours:.6} {theirs:.6}", case["name"]);
            let off = (ours - theirs).abs();
            if off.is_nan() || off > bar {
                far.push(format!("{} {what}: {ours} {theirs}", case["name"]));
            }
        };
        let residual = |(z, y): &(f64, bool)| f64::from(u8::from(*y)) - z;
        let ones = sample.iter().filter(|(z, _)| *z == 1.0);
        let lost = 0.5 * ones.map(residual).sum::<f64>().abs() / sample.len() as f64;
        if lost == 0.0 {
            let theirs = case["smece"].as_f64().unwrap();
            compare("smECE".into(), smooth_ece(&points).value, theirs, AUTOMATIC);
        }
        for pair in list("at") {
            let (sigma, theirs) = (pair[0].as_f64().unwrap(), pair[1].as_f64().unwrap());
            // Where a score of 1 is smoothed far, its half is no longer all that differs.
            if sigma <= if lost > 0.0 { 0.02 } else { 0.1 } {
                let ours = smooth_ece_at(&points, sigma) - lost;
                compare(format!("at {sigma}"), ours, theirs, AT_WIDTH);
            }
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}
