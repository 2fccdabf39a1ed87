//! Under uneven weights the tests keep their level and the interval covers the error of the
//! population.

use super::{LAWS, Weighted, sample, sums_of, tiers};
use crate::level;
use crate::support::bars::{Bar, count, data_sets};
use trueline::stats::evaluation::{Options, evaluate, evaluate_scores, evaluate_weighted};
use trueline::stats::rng::Rng;
use trueline::stats::tolerance::{Conclusion, Tolerance};

#[test]
fn calibrated_data_are_rejected_as_often_as_alpha_says_under_uneven_weights() {
    let sets = data_sets(600);
    let bar = Bar::new(sets, level::RIGHT, &[0.12, 0.002]);
    let mut failures = Vec::new();
    for (name, law) in LAWS {
        let rejected = count(sets, |seed| {
            let sample = sample(&mut Rng::new(seed), law, |z| z, 5000);
            evaluate(&sums_of(&sample), &Options::default())
                .unwrap()
                .reject
        });
        bar.check(name, rejected, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_rejection_by_weights_is_of_the_population_and_not_of_the_sample() {
    // High scores are too high, and are one in twenty of what was kept.
    let wrong = |z: f64| if z < 0.3 { z } else { z - 0.06 };
    let found = count(100, |seed| {
        let sample = sample(&mut Rng::new(seed), tiers, wrong, 5000);
        evaluate(&sums_of(&sample), &Options::default())
            .unwrap()
            .reject
    });
    assert!(found >= 50, "{found} of 100");
    // Half of the scores are right on the whole and wrong by group; weights say how large each
    // group is.
    let mut rng = Rng::new(7);
    let mut all: Vec<Weighted> = Vec::new();
    for i in 0..40_000u32 {
        let z = 0.2 + 0.6 * rng.uniform();
        // A third of the population, of which one in five is kept: two times too low against one
        // time too high.
        let third = i % 3 == 0;
        if third && rng.uniform() >= 0.2 {
            continue;
        }
        let off = if third { -0.1 } else { 0.05 };
        all.push((z, rng.uniform() < z + off, if third { 5.0 } else { 1.0 }));
    }
    let o = Options::default();
    let weighted = evaluate_weighted(&all, &o).unwrap();
    let bare: Vec<(f64, bool)> = all.iter().map(|&(z, y, _)| (z, y)).collect();
    let bare = evaluate_scores(&bare, &o).unwrap();
    assert!(bare.reject, "the sample is off");
    assert!(
        weighted.in_the_large.mean_residual.abs() < 0.01 && !weighted.reject,
        "the population is not: {:?}",
        weighted.in_the_large
    );
}

#[test]
fn the_interval_covers_the_error_of_the_population() {
    let sets = data_sets(300);
    let bar = Bar::new(sets, 0.89..=1.0, &[0.75]);
    let mut failures = Vec::new();
    for beta in [0.05, 0.1, 0.2] {
        // Scores uniform in the population; kept by a chance that falls with the score, and one by
        // lot.
        let covered = count(sets, |seed| {
            let mut rng = Rng::new(seed);
            let mut all = Vec::new();
            while all.len() < 5000 {
                let z = rng.uniform();
                let chance = (1.0 - 0.8 * z) * if rng.uniform() < 0.5 { 1.0 } else { 0.25 };
                if rng.uniform() < chance {
                    let p = z + beta * (1.0 - 2.0 * z);
                    all.push((z, rng.uniform() < p, 0.4 / chance));
                }
            }
            let i = evaluate(&sums_of(&all), &Options::default())
                .unwrap()
                .interval;
            let truth = beta / 3f64.sqrt();
            i.lower <= truth && truth <= i.upper
        });
        bar.check(&format!("error {beta}/√3"), covered, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn spiegelhalter_cox_and_the_large_keep_their_level_under_weights() {
    let sets = data_sets(600);
    let bar = Bar::new(sets, level::RIGHT, &[0.12, 0.002]);
    let mut failures = Vec::new();
    for (what, name) in ["in the large", "Spiegelhalter", "Cox"]
        .into_iter()
        .enumerate()
    {
        let rejected = count(sets, |seed| {
            let all = sample(&mut Rng::new(seed), tiers, |z| z, 3000);
            let e = evaluate_weighted(&all, &Options::default()).unwrap();
            let p = [
                e.in_the_large.p_value.unwrap(),
                e.spiegelhalter.unwrap().p_value.unwrap(),
                e.cox.unwrap().p_value.unwrap(),
            ];
            p[what] <= 0.05
        });
        bar.check(name, rejected, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Rare events kept by a chance that falls with the score: the few positives have the heavy
/// weights.
fn heavy_positives(rng: &mut Rng) -> (f64, f64) {
    loop {
        let z = 1.0 / (1.0 + (5.5 + 1.5 * rng.normal()).exp());
        let chance = (0.003 / z).min(1.0);
        if rng.uniform() < chance {
            return (z, 1.0 / chance);
        }
    }
}

/// The interval of the ratio that Kish's number of events would give covers 1 in two of three sets.
#[test]
fn the_ratio_covers_that_of_the_population_where_positives_have_the_heavy_weights() {
    let sets = data_sets(600);
    let bar = Bar::new(sets, 0.885..=1.0, &[0.8]);
    let ratio = |seed, truth: fn(f64) -> f64| {
        let all = sample(&mut Rng::new(seed), heavy_positives, truth, 20_000);
        let e = evaluate(&sums_of(&all), &Options::default()).unwrap();
        let effective = e.weights.unwrap().effective;
        (e.tolerance.ratio.unwrap(), effective * e.mean_score)
    };
    let mut failures = Vec::new();
    for (name, truth, is) in [
        ("calibrated", (|z| z) as fn(f64) -> f64, 1.0),
        ("a third too low", |z| 1.5 * z.min(0.6), 1.5),
    ] {
        let covered = count(sets, |seed| {
            let (ratio, _) = ratio(seed, truth);
            (ratio.lower..=ratio.upper).contains(&is)
        });
        println!("{name}: {covered} of {sets}");
        bar.check(name, covered, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
    let (ratio, kish) = ratio(1, |z| z);
    println!("{} of {kish}", ratio.expected);
    assert!(ratio.expected < 0.7 * kish, "{} of {kish}", ratio.expected);
}

/// Claims of calibration by few outcomes. Heavy events of scores near 0 are a third too seldom
/// predicted, and the variance that their scores give them says nothing; and 500 events of one
/// score expect one outcome, alike weighted or at cells of one's own choice.
#[test]
fn a_model_is_not_called_calibrated_by_outcomes_that_are_too_few_to_say_so() {
    let sets = data_sets(500);
    let bar = Bar::new(sets, 0.0..=0.06, &[0.15]);
    let mut failures = Vec::new();
    let calibrated = |all: &[Weighted], o: &Options| {
        let conclusion = evaluate(&sums_of(all), o).unwrap().tolerance.conclusion;
        conclusion == Conclusion::Calibrated
    };
    let said = count(sets, |seed| {
        let mut rng = Rng::new(seed);
        let light = (0..4000).map(|_| (0.1, rng.uniform() < 0.1, 1.0));
        let mut all: Vec<Weighted> = light.collect();
        all.extend((0..1000).map(|_| (1e-7, rng.uniform() < 2e-4, 1000.0)));
        calibrated(&all, &Options::default())
    });
    bar.check("heavy events of small scores", said, &mut failures);
    let tolerance = Tolerance::absolute(0.005);
    let few = |seed, weight: f64| {
        let mut rng = Rng::new(seed);
        let one = |_| (0.002, rng.uniform() < 0.0075, weight);
        (0..500).map(one).collect::<Vec<Weighted>>()
    };
    let o = Options {
        tolerance,
        ..Options::default()
    };
    let said = count(sets, |seed| calibrated(&few(seed, 2.0), &o));
    bar.check("all weights 2", said, &mut failures);
    let own = Options {
        interval_cells: Some(64),
        ..o.clone()
    };
    let said = count(sets, |seed| {
        let all = few(seed, 1.0);
        let plain: Vec<(f64, bool)> = all.iter().map(|&(z, y, _)| (z, y)).collect();
        let e = evaluate_scores(&plain, &own).unwrap();
        e.tolerance.conclusion == Conclusion::Calibrated
    });
    bar.check("64 cells", said, &mut failures);
    assert!(failures.is_empty(), "{failures:#?}");
}
