//! Levels of evaluations where a test rests on few outcomes, though many are expected in all.

use crate::evaluation::{Evaluation, Options, TCalOptions, evaluate_scores, evaluate_weighted};
use crate::rng::Rng;
use crate::weighted::WeightedEvent;

fn at(alpha: f64) -> Options {
    let tcal = TCalOptions {
        alpha,
        ..Options::default().tcal
    };
    Options {
        tcal,
        ..Options::default()
    }
}

/// Outcomes for scores that are true.
fn sample(scores: &[f64], rng: &mut Rng) -> Vec<(f64, bool)> {
    scores.iter().map(|&z| (z, rng.uniform() < z)).collect()
}

/// How many of `sets` calibrated sets are rejected.
fn rejected(sets: usize, mut one: impl FnMut() -> Option<Evaluation>) -> usize {
    (0..sets)
        .filter(|_| one().is_some_and(|e| e.reject))
        .count()
}

#[test]
fn rare_scores_keep_a_small_level() {
    let mut rng = Rng::new(21);
    let scores: Vec<f64> = (0..1300).map(|_| 0.02 * rng.uniform() + 1e-9).collect();
    let o = at(0.005);
    let found = rejected(1000, || evaluate_scores(&sample(&scores, &mut rng), &o));
    // Five are expected; the formulas give 17.
    assert!(found <= 10, "{found}");
    // All of a family of tests share the level.
    let in_family = Options {
        family: 10,
        ..at(0.05)
    };
    let uniform: Vec<f64> = (0..500).map(|_| rng.uniform()).collect();
    let drawn = |o: &Options, rng: &mut Rng| {
        let e = evaluate_scores(&sample(&uniform, rng), o);
        e.is_some_and(|e| e.combined.replicates.is_some())
    };
    assert!(drawn(&in_family, &mut rng) && !drawn(&at(0.05), &mut rng));
}

/// A weight that is the same for all events says nothing, and changes no p-value.
#[test]
fn one_common_weight_is_none() {
    let mut rng = Rng::new(23);
    let scores: Vec<f64> = (0..300).map(|_| 0.03 * rng.uniform() + 1e-9).collect();
    let o = Options::default();
    for (weight, k) in [(2.0, 1.0), (0.3, 3.0), (7.7, 3.0)] {
        let mut rejected = 0;
        for _ in 0..40 {
            let truth = scores.iter().map(|&z| (z, rng.uniform() < k * z));
            let plain: Vec<(f64, bool)> = truth.collect();
            let weighted: Vec<WeightedEvent> = plain.iter().map(|&(z, y)| (z, y, weight)).collect();
            let a = evaluate_scores(&plain, &o).unwrap();
            let b = evaluate_weighted(&weighted, &o).unwrap();
            assert!(a.combined.replicates.is_some() && !b.bounded);
            assert_eq!(a.tcal.p_value, b.tcal.p_value);
            assert_eq!(a.smooth.map(|s| s.p_value), b.smooth.map(|s| s.p_value));
            assert_eq!(a.ks.p_value, b.ks.p_value);
            rejected += u32::from(b.reject);
        }
        // Three times the odds are found in most sets.
        assert_eq!(rejected > 20, k > 1.0, "{weight}: {rejected}");
    }
    // Outcomes of events with different weights are not drawn.
    let sample: Vec<WeightedEvent> = (scores.iter().enumerate())
        .map(|(i, &z)| (z, rng.uniform() < z, 1.0 + 0.1 * (i % 2) as f64))
        .collect();
    assert_eq!(
        evaluate_weighted(&sample, &o).unwrap().combined.replicates,
        None
    );
}

#[test]
fn few_scores_near_zero_among_many_in_the_middle_keep_the_level() {
    let mut rng = Rng::new(22);
    let mut scores: Vec<f64> = (0..900).map(|_| 0.4 + 0.2 * rng.uniform()).collect();
    scores.extend((0..60).map(|_| 0.002 * rng.uniform() + 1e-9));
    let o = Options::default();
    let (mut cox, mut spiegelhalter) = (0, 0);
    let found = rejected(4000, || {
        let e = evaluate_scores(&sample(&scores, &mut rng), &o);
        let p = |p: Option<f64>| usize::from(p.is_some_and(|p| p <= 0.01));
        cox += p(e.as_ref().and_then(|e| e.cox).and_then(|c| c.p_value));
        spiegelhalter += p((e.as_ref().and_then(|e| e.spiegelhalter)).and_then(|s| s.p_value));
        assert!(e.as_ref().is_some_and(|e| e.combined.replicates.is_none()));
        e
    });
    assert!(found <= 240, "{found} of 4000");
    // At .01 40 are expected.
    assert!(cox <= 60 && spiegelhalter <= 60, "{cox} {spiegelhalter}");
}

#[test]
fn scores_of_one_half_and_few_others_have_no_spiegelhalter_test() {
    let scores: Vec<f64> = (0..900).map(|i| if i < 20 { 0.002 } else { 0.5 }).collect();
    let mut rng = Rng::new(23);
    let mut outcomes = sample(&scores, &mut rng);
    outcomes[0].1 = true;
    let e = evaluate_scores(&outcomes, &Options::default());
    assert!(e.is_some_and(|e| e.spiegelhalter.is_none()));
}

#[test]
fn few_large_weights_among_rare_outcomes_keep_the_level() {
    let mut rng = Rng::new(24);
    let o = Options::default();
    let found = rejected(1000, || {
        let one = |i: usize| -> WeightedEvent {
            let z = 0.02 * rng.uniform() + 1e-9;
            let weight = if i.is_multiple_of(1000) { 100.0 } else { 1.0 };
            (z, rng.uniform() < z, weight)
        };
        evaluate_weighted(&(0..20_000).map(one).collect::<Vec<_>>(), &o)
    });
    assert!(found <= 60, "{found} of 1000");
}

/// A narrow middle and rare scores at the ends: so many of each.
fn ends(middle: f64, ends: &[(f64, usize)], rng: &mut Rng) -> Vec<f64> {
    let mut scores: Vec<f64> = (0..900)
        .map(|_| 0.5 + middle * (2.0 * rng.uniform() - 1.0))
        .collect();
    for &(rare, count) in ends {
        scores.extend((0..count).map(|_| {
            let z = rare.min(1.0 - rare) * (0.9 + 0.2 * rng.uniform());
            if rare < 0.5 { z } else { 1.0 - z }
        }));
    }
    scores
}

/// The combination asks the score test for a third of the level, where one outcome more or less
/// behind a direction counts for three times as much.
#[test]
fn rare_scores_at_both_ends_keep_the_level_of_the_combination() {
    type Layout = (f64, &'static [(f64, usize)], f64);
    let layouts: [Layout; 3] = [
        (0.01, &[(0.01, 60), (0.99, 60)], 0.05),
        (0.05, &[(0.02, 35), (0.98, 35)], 0.05),
        (0.01, &[(0.01, 120), (0.99, 120)], 0.01),
    ];
    for (i, (middle, rare, alpha)) in layouts.into_iter().enumerate() {
        let mut rng = Rng::new(61 + i as u64);
        let scores = ends(middle, rare, &mut rng);
        let (sets, o) = (6_000, at(alpha));
        let found = rejected(sets, || evaluate_scores(&sample(&scores, &mut rng), &o));
        let (n, wanted) = (sets as f64, sets as f64 * alpha);
        let most = wanted + 4.0 * (n * alpha * (1.0 - alpha)).sqrt();
        println!("{rare:?} at {alpha}: {found} of {sets}, {wanted} expected");
        assert!(
            (found as f64) < most,
            "{rare:?} at {alpha}: {found} of {sets}"
        );
    }
}
