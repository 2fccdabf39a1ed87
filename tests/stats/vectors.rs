//! Vector views at any number of rare outcomes: how often calibrated vectors are rejected, by T-Cal
//! and by the interval's zero, as a window has them.

use crate::support::bars::{Bar, count, data_sets, each, is_long};
use crate::support::streams::beta;
use std::collections::BTreeMap;
use trueline::stats::kernel::Vectors;
use trueline::stats::kernel::window::{self, KernelOptions, KernelSums, WindowEvaluation};
use trueline::stats::multiclass::cell::Name;
use trueline::stats::multiclass::{Events, VectorView, evaluate, interval};
use trueline::stats::rng::Rng;

/// A vector of `classes` entries that gives its first class 1 − r and shares r out at random.
fn vector(rng: &mut Rng, classes: usize, rare: f64) -> Vec<f64> {
    let mut rest: Vec<f64> = (1..classes).map(|_| rng.uniform()).collect();
    let sum: f64 = rest.iter().sum();
    rest.iter_mut().for_each(|p| *p *= rare / sum);
    let mut all = vec![1.0 - rare];
    all.append(&mut rest);
    all
}

/// Events of the sets.
fn sizes() -> &'static [usize] {
    match is_long() {
        true => &[200, 1000, 5000],
        false => &[200, 1000],
    }
}

/// How much is left to the other classes.
type Rest = fn(&mut Rng) -> f64;

const LAWS: [(&str, usize, Rest); 4] = [
    ("three classes, 1 in 1000", 3, |r| 2e-3 * r.uniform()),
    ("ten classes, 1 in 200", 10, |r| beta(r, 0.5, 100.0)),
    ("three classes, 1 in 20", 3, |r| beta(r, 1.0, 19.0)),
    ("three classes, any", 3, |r| r.uniform()),
];

fn sample(seed: u64, n: usize, classes: usize, rest: Rest, odds: f64) -> Vectors {
    let (mut rng, mut sample) = (Rng::new(seed), Vectors::new(classes));
    for _ in 0..n {
        let rare = rest(&mut rng).clamp(1e-9, 1.0);
        let p = vector(&mut rng, classes, rare);
        // Other classes than the first, at `odds` times the odds.
        let happens = odds * rare / (odds * rare + 1.0 - rare);
        let mut left = rng.uniform() * rare;
        let other = (1..classes).find(|&c| {
            left -= p[c];
            left < 0.0
        });
        let class = match rng.uniform() < happens {
            true => other.unwrap_or(classes - 1),
            false => 0,
        };
        sample.push(&p, class as u32).expect("a vector");
    }
    sample
}

#[test]
fn calibrated_vectors_are_rejected_at_most_as_often_as_alpha_says_at_any_number_of_outcomes() {
    let sets = data_sets(400);
    let reject = Bar::new(sets, 0.0..=0.065, &[0.15]);
    // Nominal 10 %.
    let zero = Bar::new(sets, 0.0..=0.13, &[0.25]);
    let mut failures = Vec::new();
    for (law, classes, rest) in LAWS {
        for view in [VectorView::Full, VectorView::TopK(1), VectorView::TopK(2)] {
            if view == VectorView::Full && classes > 3 {
                continue;
            }
            for &n in sizes() {
                let all = each(sets, |seed| {
                    let sample = sample(seed, n, classes, rest, 1.0);
                    let e = evaluate(&sample, view, 0.05, 0.9, None).unwrap();
                    (e.tcal.reject, !e.interval.contains_zero)
                });
                let place = format!("{law}, {view}, n = {n}");
                let rejected = all.iter().filter(|e| e.0).count() as u64;
                reject.check(&place, rejected, &mut failures);
                let without = all.iter().filter(|e| e.1).count() as u64;
                zero.check(&format!("{place}, zero"), without, &mut failures);
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The ℓ2 error of the cells of `full`, where other classes than the first happen at `odds` times
/// the odds.
fn binned_error(sample: &Vectors, odds: f64, slices: u32) -> f64 {
    let events = Events::of(sample, VectorView::Full);
    let mut cells: BTreeMap<Name, (f64, Vec<f64>)> = BTreeMap::new();
    for (i, (p, _)) in sample.events().enumerate() {
        let by = odds / (odds * (1.0 - p[0]) + p[0]);
        let cell = cells.entry(Name::of(&events, i, slices));
        let (n, sum) = cell.or_insert((0.0, vec![0.0; p.len()]));
        *n += 1.0;
        sum[0] += (1.0 - p[0]) * (1.0 - by);
        for (sum, p) in sum[1..].iter_mut().zip(&p[1..]) {
            *sum += p * (by - 1.0);
        }
    }
    let square = |(n, sum): &(f64, Vec<f64>)| sum.iter().map(|s| s * s).sum::<f64>() / n;
    (cells.values().map(square).sum::<f64>() / sample.len() as f64).sqrt()
}

/// Other classes than the first happen at a quarter of the odds, so that cells without one of them
/// look certain. The interval as published covers the binned error in 82 and 81 %.
#[test]
fn the_interval_covers_where_few_outcomes_make_cells_look_certain() {
    let sets = data_sets(600);
    let bar = Bar::new(sets, 0.93..=1.0, &[0.86]);
    let laws: [(usize, Rest); 2] = [(3, |r| beta(r, 0.5, 4.5)), (5, |r| r.uniform())];
    let mut failures = Vec::new();
    for (classes, rest) in laws {
        let all = each(sets, |seed| {
            let sample = sample(seed, 1000, classes, rest, 0.25);
            let e = evaluate(&sample, VectorView::Full, 0.05, 0.9, None).unwrap();
            let slices = e.interval.slices;
            let events = Events::of(&sample, VectorView::Full);
            let published = interval(&events, slices, 0.9).unwrap();
            let error = binned_error(&sample, 0.25, slices);
            [e.interval, published].map(|i| (i.lower..=i.upper).contains(&error))
        });
        let [guarded, published] = [0, 1].map(|i| all.iter().filter(|c| c[i]).count() as u64);
        let place = format!("{classes} classes at a quarter of the odds");
        bar.check(&place, guarded, &mut failures);
        bar.refuse(&format!("{place}, as published"), published);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The kernel test of a window, of a sample of 512 events and with 64 features over all.
#[test]
fn calibrated_vectors_pass_the_kernel_test_at_any_number_of_outcomes() {
    let sets = data_sets(400);
    let bar = Bar::new(sets, 0.0..=0.065, &[0.15]);
    let mut failures = Vec::new();
    for (law, classes, rest) in LAWS {
        for features in [0, 64] {
            for &n in sizes() {
                let rejected = count(sets, |seed| {
                    let sample = sample(seed, n, classes, rest, 1.0);
                    kernel_test(&sample, seed, features).reject
                });
                let place = format!("{law}, kernel, {features} features, n = {n}");
                bar.check(&place, rejected, &mut failures);
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn kernel_test(sample: &Vectors, seed: u64, features: usize) -> WindowEvaluation {
    let options = KernelOptions {
        nu: (features > 0).then_some(0.4),
        features,
        ..KernelOptions::default()
    };
    let mut sums = KernelSums::new(sample.classes(), options).expect("options");
    let mut rng = Rng::new(!seed);
    for (row, class) in sample.events() {
        sums.observe(rng.bits(), row, 1.0, class);
    }
    window::evaluate(&sums, 0.05, 0.9).expect("events")
}

/// Drawing costs no power: other classes than the first happen three times as often as said, some
/// five expected.
#[test]
fn rare_classes_that_happen_three_times_as_often_are_found() {
    let sets = data_sets(200);
    let bar = Bar::new(sets, 0.6..=1.0, &[0.4]);
    let (_, classes, rest) = LAWS[1];
    let found = each(sets, |seed| {
        let sample = sample(seed, 1000, classes, rest, 3.0);
        let e = evaluate(&sample, VectorView::TopK(1), 0.05, 0.9, None).unwrap();
        assert!(e.tcal.replicates.is_some());
        e.tcal.reject
    });
    let found = found.into_iter().filter(|f| *f).count() as u64;
    let mut failures = Vec::new();
    bar.check("ten classes, 1 in 200, odds × 3", found, &mut failures);
    assert!(failures.is_empty(), "{failures:#?}");
}
