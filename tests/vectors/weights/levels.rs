//! Under uneven weights the tests keep their level and have power, and the interval covers the
//! error of the population.

use super::{
    LAWS, Truth, VIEWS, calibrated, heavy, live, overdone, overdone_by_half, sample, sums, tiers,
};
use crate::support::bars::{Bar, count, data_sets};
use trueline::stats::multiclass::level::VectorLevel;
use trueline::stats::multiclass::{Events, VectorView, estimate};

#[test]
fn moments_given_predictions_and_weights_are_those_of_all_outcomes() {
    for (classes, view) in [(3, VectorView::Full), (3, VectorView::TopK(2))] {
        let s = sample(classes, 5, heavy, calibrated, 2);
        let mut found = [0.0; 4];
        for code in 0..3u32.pow(5) {
            let y: Vec<u32> = (0..5).map(|i| code / 3u32.pow(i) % 3).collect();
            let chance: f64 = (0..5).map(|i| s.all.row(i)[y[i] as usize]).product();
            let events = Events::weighted(&s.all.with_outcomes(y), view, &s.weights);
            let t = estimate::debiased(&VectorLevel::of(&events, 1));
            let powers = [1.0, t, t * t, t * t * t];
            found
                .iter_mut()
                .zip(powers)
                .for_each(|(a, b)| *a += chance * b);
        }
        let events = Events::weighted(&s.all, view, &s.weights);
        let m = estimate::moments_of_debiased(&VectorLevel::of(&events, 1));
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-13, "{view}: {a} {b}");
        near(found[0], 1.0);
        near(found[1], 0.0);
        near(found[2], m.variance);
        near(found[3], m.third);
        // The window's integers give the same variance; its third cumulant is at the cell's mean.
        let levels = sums(&s, view, 0..5).levels(1);
        let [kept, exact] =
            [&levels[0], &VectorLevel::of(&events, 2)].map(estimate::moments_of_debiased);
        assert!((kept.variance - exact.variance).abs() < 1e-8);
    }
}

#[test]
fn calibrated_events_are_rejected_as_often_as_alpha_says_under_uneven_weights() {
    let sets = data_sets(400);
    let bar = Bar::new(sets, 0.03..=0.055, &[0.15, 0.001]);
    let mut failures = Vec::new();
    for (name, law) in LAWS {
        for (classes, view) in VIEWS {
            let rejected = count(sets, move |seed| {
                live(&sample(classes, 1000, law, calibrated, seed), view)
                    .tcal
                    .reject
            });
            let place = format!("{name}, {view} of {classes}");
            bar.check(&place, rejected, &mut failures);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_class_that_is_overdone_where_few_were_kept_is_found_by_weight() {
    let cases: [(_, _, Truth); 2] = [
        (3, VectorView::Full, overdone),
        // Of four classes sorted, both neighbours lose and win.
        (4, VectorView::TopK(2), overdone_by_half),
    ];
    let bar = Bar::new(60, 0.9..=1.0, &[0.6]);
    let mut failures = Vec::new();
    for (classes, view, truth) in cases {
        let found = count(60, move |seed| {
            live(&sample(classes, 4000, tiers, truth, seed), view)
                .tcal
                .reject
        });
        bar.check(&format!("{view} of {classes}"), found, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn the_interval_covers_the_error_of_the_population() {
    // The population's ℓ2-ECE, by the weights themselves: outcomes are moved from 0 to 1 with p₀/5
    // where p₀ > 0.4.
    let sets = data_sets(300);
    let covered = count(sets, move |seed| {
        let s = sample(3, 3000, tiers, overdone, 7000 + seed);
        let i = live(&s, VectorView::Full).interval;
        let moved = |p: &[f64]| {
            if p[0] > 0.4 {
                2.0 * (p[0] / 5.0).powi(2)
            } else {
                0.0
            }
        };
        let squares = s
            .all
            .events()
            .zip(&s.weights)
            .map(|((p, _), w)| w * moved(p));
        let truth = (squares.sum::<f64>() / s.weights.iter().sum::<f64>()).sqrt();
        i.lower <= truth && truth <= i.upper
    });
    let mut failures = Vec::new();
    let bar = Bar::new(sets, 0.89..=1.0, &[0.75]);
    bar.check("covered at 0.9", covered, &mut failures);
    assert!(failures.is_empty(), "{failures:#?}");
}
