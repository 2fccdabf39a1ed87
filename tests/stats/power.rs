//! The power of the decision, and of T-Cal alone, against the paper's procedure, on the curves g_m
//! of T-Cal (10).
//!
//! Scores are uniform; the truth is z + (−1)ʲ·ρ·m^{−s}·exp(−1/(x(1−x))) for z in [¼, ¾], with j and
//! x the whole and fractional part of 2m(z − ¼), s = 0.6, ρ = 100, as the paper's program for its
//! Figure 3 has it. The reference draws 3000 samples from calibrated outcomes, at all B scales, and
//! rejects when a scale's statistic exceeds the α/B quantile. Its critical values are drawn once
//! for each n from fresh uniform scores rather than per data set: the law of T_d hardly depends on
//! which uniform scores were seen, and 3000 × 24 levels a data set would take hours.
//!
//! `TRUELINE_DATA_SETS=1000` runs more than the few data sets a point that fit into a test.

use crate::support::bars::each;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::estimator::debiased;
use trueline::stats::evaluation::{DiscreteMode, Options, evaluate};
use trueline::stats::fixed::Score;
use trueline::stats::levels::Levels;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::stats::tcal::scales;

fn curve(z: f64, m: f64) -> f64 {
    if !(0.25..=0.75).contains(&z) || m == 0.0 {
        return z;
    }
    let at = 2.0 * m * (z - 0.25);
    let x = at - at.floor();
    let sign = if at.floor() as i64 % 2 == 0 {
        1.0
    } else {
        -1.0
    };
    if x > 0.0 {
        z + sign * 100.0 * m.powf(-0.6) * (-1.0 / (x * (1.0 - x))).exp()
    } else {
        z
    }
}

fn sample(seed: u64, n: usize, m: f64) -> Vec<(f64, bool)> {
    let mut rng = Rng::new(seed);
    (0..n)
        .map(|_| {
            let z = rng.uniform();
            (z, rng.uniform() < curve(z, m))
        })
        .collect()
}

fn statistics(sample: &[(f64, bool)]) -> Vec<f64> {
    let levels = Levels::from_scores(sample, scales(sample.len() as f64));
    levels.as_slice().iter().map(debiased).collect()
}

/// The α/B quantile of each scale over 3000 calibrated samples.
fn critical_values(n: usize) -> Vec<f64> {
    // Seeds that no data set has.
    let mut all = each(3000, |seed| statistics(&sample(500_000_000 + seed, n, 0.0)));
    let count = all[0].len();
    // Rejected when (1 + #{T* ≥ T})/3001 ≤ α/B: T above the k-th largest.
    let k = (3001.0 * 0.05 / count as f64).floor() as usize;
    (0..count)
        .map(|b| {
            all.sort_by(|x, y| y[b].total_cmp(&x[b]));
            all[k - 1][b]
        })
        .collect()
}

/// Whether the default decision rejects, and whether T-Cal alone does.
fn ours(sample: &[(f64, bool)]) -> [bool; 2] {
    let mut sums = Sums::new(Grid::new(Axis::Linear, 12));
    for &(z, y) in sample {
        sums.observe(Score::new(z).unwrap(), y).unwrap();
    }
    let options = Options {
        discrete: DiscreteMode::Off,
        ..Options::default()
    };
    let e = evaluate(&sums, &options).unwrap();
    [e.reject, e.tcal.reject]
}

/// Of one data set: whether the decision and T-Cal reject it, and whether the reference does.
type Rejections = ([bool; 2], bool);

/// Whether the decision and T-Cal reject a data set, and whether the reference does.
fn rejections(n: usize, m: f64, critical: &[f64], seed: u64) -> Rejections {
    let sample = sample(seed + 10_000 * m as u64, n, m);
    let reference = statistics(&sample).iter().zip(critical).any(|(t, c)| t > c);
    (ours(&sample), reference)
}

#[test]
fn power_is_not_below_the_reference_procedure() {
    let full: Option<u64> = std::env::var("TRUELINE_DATA_SETS")
        .ok()
        .and_then(|s| s.parse().ok());
    let sets = full.unwrap_or(60);
    let sizes: &[usize] = if full.is_some() {
        &[2000, 5000, 10_000]
    } else {
        &[2000, 5000]
    };
    let ms: Vec<f64> = match full {
        Some(_) => (4..=20).map(|i| f64::from(i) * 10.0).collect(),
        None => vec![40.0, 60.0, 80.0, 120.0, 200.0],
    };
    let (mut bad, mut ahead) = ([0; 2], [0i64; 2]);
    for &n in sizes {
        let critical = critical_values(n);
        for &m in &ms {
            let all = each(sets, |seed| rejections(n, m, &critical, seed));
            let share = |hit: &dyn Fn(&Rejections) -> bool| {
                all.iter().filter(|r| hit(r)).count() as f64 / sets as f64
            };
            let reference = share(&|r| r.1);
            let [decision, tcal] = [0, 1].map(|of| {
                let ours = share(&|r| r.0[of]);
                // Both see the same data: the noise of the difference is that of the discordant
                // pairs.
                let discordant = (share(&|r| r.0[of] != r.1) * sets as f64).max(1.0);
                let more = (ours - reference) * sets as f64;
                bad[of] += u32::from(more < -2.0 * discordant.sqrt());
                ahead[of] += more.round() as i64;
                ours
            });
            println!(
                "n = {n}, m = {m}: decision {decision:.3}, T-Cal {tcal:.3}, reference {reference:.3}"
            );
        }
    }
    println!("ahead of the reference: decision and T-Cal {ahead:?}");
    assert_eq!(
        bad, [0; 2],
        "points below the reference by more than two standard errors, of the decision and of T-Cal"
    );
    assert!(ahead.iter().all(|a| *a > 0), "not higher on average");
}
