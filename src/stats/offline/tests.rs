//! Each test keeps its level on calibrated data and finds a miscalibration that is named. Seeds are
//! fixed.

use super::*;
use crate::evaluation::Options as Evaluation;
use crate::rng::Rng;
use crate::samples;

fn options(alpha: f64, tolerance: f64, seed: u64) -> Options {
    Options {
        tcal: TCalOptions {
            alpha,
            seed,
            ..Evaluation::default().tcal
        },
        smoothness: 1.0,
        tolerance,
    }
}

/// Uniform scores with the true probability `truth`.
fn sample(rng: &mut Rng, n: usize, truth: impl Fn(f64) -> f64) -> Vec<(f64, bool)> {
    samples::events(rng, n, |u| u, truth)
}

/// Scores twice as far from ½ as the truth is: over-confident, the mean right.
fn over_confident(z: f64) -> f64 {
    0.5 + 0.5 * (z - 0.5)
}

/// Share of rejections at α = 0.05 over so many samples of so many events.
fn rejections(
    test: Test,
    (sets, n): (u64, usize),
    tolerance: f64,
    truth: impl Fn(f64) -> f64,
) -> f64 {
    let mut rng = Rng::new(0xC0FFEE ^ test as u64);
    let hits = (0..sets).filter(|&seed| {
        let data = sample(&mut rng, n, &truth);
        let found = scores(test, &data, &options(0.05, tolerance, seed));
        found.unwrap().reject
    });
    hits.count() as f64 / sets as f64
}

/// Four standard errors above 0.05.
fn bar(sets: u64) -> f64 {
    0.05 + 4.0 * (0.05 * 0.95 / sets as f64).sqrt()
}

#[test]
fn every_test_keeps_its_level_and_finds_over_confidence() {
    // Samples for the level and the power, the least level, and what the power exceeds. P(Bin(300,
    // 0.05) < 4) < 0.001; where the tests split, α is shared by Bonferroni over classes and halves.
    for (test, calibrated, wrong, least, exceeded) in [
        (Test::KnownSmoothness, (1000, 500), (100, 500), 0.02, 0.99),
        (Test::Consistency, (100, 300), (30, 300), 0.0, 0.9),
        (Test::Splitting, (100, 200), (20, 6000), 0.0, 0.9),
        (Test::SplittingAdaptive, (100, 200), (20, 6000), 0.0, 0.9),
        (Test::CrossFitting, (300, 200), (30, 2000), 4.0 / 300.0, 0.9),
    ] {
        let level = rejections(test, calibrated, 0.0, |z| z);
        assert!(
            (least..=bar(calibrated.0)).contains(&level),
            "{test:?} {level}"
        );
        let power = rejections(test, wrong, 0.0, over_confident);
        assert!(power > exceeded, "{test:?} {power}");
    }
}

#[test]
fn permutation_p_values_of_the_two_sample_tests_are_uniform_on_calibrated_scores() {
    let mut rng = Rng::new(5);
    for test in [TwoSample::ChiSquared { slices: 8 }, TwoSample::MultiScale] {
        let (mut below, mut low, sets) = (0, 0, 150);
        for seed in 0..sets {
            let data = sample(&mut rng, 150, |z| z);
            let s = splitting::of_scores(&data, test, 0.05, seed).unwrap();
            below += u32::from(s.classes[1].two_sample_p <= 0.5);
            low += u32::from(s.classes[1].two_sample_p <= 0.1);
        }
        let (half, tenth) = (f64::from(below) / sets as f64, f64::from(low) / sets as f64);
        // Four binomial errors; ties of few cells make it smaller, never larger.
        assert!(
            half <= 0.5 + 4.0 * (0.25f64 / sets as f64).sqrt() && half > 0.3,
            "{test:?} {half}"
        );
        assert!(
            tenth <= 0.1 + 4.0 * (0.09f64 / sets as f64).sqrt() && tenth > 0.02,
            "{test:?} {tenth}"
        );
    }
}

#[test]
fn a_push_of_all_rates_is_seen_by_the_tests_of_means() {
    let mut rng = Rng::new(8);
    let data = sample(&mut rng, 4000, |z| 0.5 * z);
    let s = splitting::of_scores(&data, TwoSample::MultiScale, 0.05, 1).unwrap();
    assert!(
        s.classes
            .iter()
            .all(|c| c.mean_p < 0.05 / 6.0 && c.half_p < 0.05 / 6.0)
    );
    // z·p(z)/E z is the same law as ½z·p(z)/E ½z: V and W of class 1 do not differ.
    assert!(s.classes[1].two_sample_p > 0.001);
}

/// Vectors of three classes, `pushed` of the outcomes class 0 whatever was said.
fn three(rng: &mut Rng, n: usize, pushed: f64) -> Vectors {
    samples::vectors(rng, (n, 3), pushed, samples::uniform_row)
}

#[test]
fn of_three_classes_every_test_keeps_its_level_and_finds_a_pushed_class() {
    let mut rng = Rng::new(12);
    for (test, sets) in [
        (Test::KnownSmoothness, 300),
        (Test::Splitting, 40),
        (Test::SplittingAdaptive, 40),
        (Test::CrossFitting, 40),
        (Test::Consistency, 40),
    ] {
        let rejected = |data: &Vectors, seed| {
            let found = vectors(test, data, &options(0.05, 0.0, seed));
            found.unwrap().reject
        };
        let mut hits = 0;
        for seed in 0..sets {
            let data = three(&mut rng, 300, 0.0);
            hits += u64::from(rejected(&data, seed));
        }
        assert!(hits as f64 / sets as f64 <= bar(sets), "{test:?} {hits}");
        assert!(rejected(&three(&mut rng, 5000, 0.5), 1), "{test:?}");
    }
}

#[test]
fn the_composite_test_keeps_its_level_at_the_edge_and_finds_what_is_far_beyond_it() {
    let tau = 0.1;
    // At most τ where the push is cut at probability 1.
    let level = rejections(Test::Composite, (300, 1000), tau, |z| z + tau);
    assert!(level <= bar(300), "{level}");
    let power = rejections(Test::Composite, (50, 1000), tau, |z| z + 0.3);
    assert!(power > 0.95, "{power}");
}

#[test]
fn the_papers_composite_threshold_is_below_the_mean_for_a_large_constant() {
    // c₀ = 10 at n = 5000, s = 0.6: τ = c₀·n^{−2s/(4s+1)}; scores up to ½ and a truth that is off
    // by τ.
    let (n, s) = (5000, 0.6f64);
    let tau = 10.0 * (n as f64).powf(-2.0 * s / (4.0 * s + 1.0));
    let m = slices(n, s, 2);
    let mut rng = Rng::new(22);
    let (mut paper, mut ours) = (0, 0);
    for _ in 0..20 {
        let data = samples::events(&mut rng, n, |u| 0.5 * u, |z| z + tau);
        let debiased = estimator::debiased(&Level::from_scores(&data, m));
        let c = composite(debiased, n, m, 1, 2, tau, 0.05);
        paper += u32::from(c.paper_reject);
        ours += u32::from(c.p_value <= 0.05);
    }
    assert_eq!((paper, ours), (20, 0));
}

#[test]
fn the_threshold_and_the_p_value_of_the_composite_test_agree() {
    for (debiased, tau) in [(0.02, 0.1), (0.05, 0.1), (0.011, 0.0), (0.001, 0.2)] {
        let c = composite(debiased, 2000, 20, 1, 2, tau, 0.05);
        assert_eq!(c.p_value <= 0.05, debiased >= c.threshold, "{c:?}");
    }
}

#[test]
fn a_threshold_below_that_of_theorem_3_1_rejects_calibrated_samples() {
    // T-Cal Theorem 3.1 with K = 2: √(8/α)·min(√m/n, 1/√m). With 1/m for 1/√m the threshold falls
    // below the value of a single pair in one cell, and pairs are on the same side half of the
    // time.
    let (n, m, sets) = (1000, 1u64 << 20, 400);
    let mut rng = Rng::new(31);
    let root = (8.0f64 / 0.05).sqrt();
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..sets {
        let t = estimator::debiased(&Level::from_scores(&sample(&mut rng, n, |z| z), m));
        inside += u32::from(t >= root / (m as f64).sqrt());
        outside += u32::from(t >= root / m as f64);
    }
    let share = f64::from(outside) / f64::from(sets);
    println!("rejected with 1/m: {share}");
    assert!(
        inside == 0 && (0.15..0.25).contains(&share),
        "{inside} {share}"
    );
}
