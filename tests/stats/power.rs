//! The power of the decision, and of T-Cal alone, against the paper's procedure, on the curves g_m of T-Cal (10).
//!
//! Scores are uniform; the truth is z + (−1)ʲ·ρ·m^{−s}·exp(−1/(x(1−x))) for z in [¼, ¾], with j and x
//! the whole and fractional part of 2m(z − ¼), s = 0.6, ρ = 100, as the paper's program for its Figure
//! 3 has it. The reference draws 3000 samples from calibrated outcomes, at all B scales, and rejects
//! when a scale's statistic exceeds the α/B quantile. Its critical values are drawn once for each n
//! from fresh uniform scores rather than per data set: the law of T_d hardly depends on which uniform
//! scores were seen, and 3000 × 24 levels a data set would take hours.
//!
//! `TRUELINE_DATA_SETS=1000` runs more than the few data sets a point that fit into a test.

use std::thread;
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
    let draw = |seeds: std::ops::Range<u64>| -> Vec<Vec<f64>> {
        seeds
            .map(|s| statistics(&sample(1_000_000 + s, n, 0.0)))
            .collect()
    };
    let mut all = thread::scope(|s| {
        let first = s.spawn(|| draw(0..1500));
        let mut second = draw(1500..3000);
        second.extend(first.join().unwrap());
        second
    });
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

/// Of the decision and of T-Cal: rejections of it and of the reference, and how often it alone and the reference alone
/// reject.
fn count(n: usize, m: f64, critical: &[f64], seeds: std::ops::Range<u64>) -> [[u32; 4]; 2] {
    let mut counts = [[0; 4]; 2];
    for seed in seeds {
        let sample = sample(seed + 10_000 * m as u64, n, m);
        let b = statistics(&sample).iter().zip(critical).any(|(t, c)| t > c);
        for (counts, a) in counts.iter_mut().zip(ours(&sample)) {
            for (c, hit) in counts.iter_mut().zip([a, b, a && !b, b && !a]) {
                *c += u32::from(hit);
            }
        }
    }
    counts
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
            let half = sets / 2;
            let c = thread::scope(|s| {
                let first = s.spawn(|| count(n, m, &critical, 0..half));
                let mut c = count(n, m, &critical, half..sets);
                let first = first.join().unwrap();
                let both = c.iter_mut().flatten().zip(first.iter().flatten());
                both.for_each(|(a, b)| *a += b);
                c
            });
            for (of, [a, b, alone, missed]) in c.into_iter().enumerate() {
                // Both see the same data: the noise of the difference is that of the discordant pairs.
                let error = f64::from(alone + missed).max(1.0).sqrt();
                bad[of] += u32::from(f64::from(a) < f64::from(b) - 2.0 * error);
                ahead[of] += i64::from(alone) - i64::from(missed);
            }
            let [decision, tcal] = c.map(|c| f64::from(c[0]) / sets as f64);
            let reference = f64::from(c[0][1]) / sets as f64;
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
