//! The decision: its level at any number of positives, its power under what happens to models, and
//! the three conclusions.
//!
//! Each data set goes through a window's sums and `evaluate`. The laws of scores run from events of
//! one in two thousand over coins to confidences near 1, on both axes; errors are a temperature
//! (log odds divided by T), odds (log odds moved), label noise (z + ε(1 − 2z)), and bumps.

use crate::support::bars::{Bar, count, data_sets, each, is_long};
use crate::support::streams::{Law, beta, expit};
use std::f64::consts::PI;
use trueline::stats::axis::{Axis, Grid, logit};
use trueline::stats::evaluation::{Conclusion, Evaluation, Options, Tolerance, evaluate};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;

const LAWS: [(&str, Law); 6] = [
    ("U(1e-4, 1e-3)", |r| 1e-4 + 9e-4 * r.uniform()),
    ("beta(.5, 500)", |r| beta(r, 0.5, 500.0)),
    ("beta(500, .5)", |r| beta(r, 500.0, 0.5)),
    ("beta(.05, .05)", |r| beta(r, 0.05, 0.05)),
    ("uniform", |r| r.uniform()),
    ("40 values", |r| values(r, 40.0)),
];

fn values(rng: &mut Rng, count: f64) -> f64 {
    ((rng.uniform() * count).floor() + 0.5) / count
}

fn axes() -> [(&'static str, Grid); 2] {
    let logit = Axis::Logit {
        low: 1e-6,
        high: 1.0 - 1e-6,
    };
    [
        ("linear", Grid::new(Axis::Linear, 12)),
        ("logit", Grid::new(logit, 12)),
    ]
}

/// Scores and the probabilities that their outcomes really have.
fn sample(law: Law, n: usize, seed: u64, truth: impl Fn(f64) -> f64) -> Vec<(f64, f64, bool)> {
    let mut rng = Rng::new(seed);
    let mut one = || {
        let z = law(&mut rng).clamp(1e-9, 1.0 - 1e-9);
        let p = truth(z).clamp(0.0, 1.0);
        (z, p, rng.uniform() < p)
    };
    (0..n).map(|_| one()).collect()
}

fn judge(sample: &[(f64, f64, bool)], grid: Grid, options: &Options, seed: u64) -> Evaluation {
    let mut sums = Sums::new(grid);
    for &(z, _, y) in sample {
        sums.observe(Score::new(z).unwrap(), y).unwrap();
    }
    let mut options = options.clone();
    options.tcal.seed = seed;
    evaluate(&sums, &options).unwrap()
}

/// All that a report prints a p-value of.
const PARTS: [&str; 9] = [
    "decision",
    "T-Cal",
    "smooth",
    "Cox",
    "Kolmogorov–Smirnov",
    "Kuiper",
    "in the large",
    "Spiegelhalter",
    "interval without 0, at 10 %",
];

fn rejections(e: &Evaluation) -> [bool; 9] {
    let p = |p: Option<f64>| p.is_some_and(|p| p <= 0.05);
    [
        e.reject,
        e.tcal.reject,
        p(e.smooth.map(|t| t.p_value)),
        p(e.cox.and_then(|t| t.p_value)),
        p(e.ks.p_value),
        p(e.kuiper.p_value),
        p(e.in_the_large.p_value),
        p(e.spiegelhalter.and_then(|t| t.p_value)),
        !e.interval.contains_zero,
    ]
}

/// Events of the sets; the largest in the long mode alone, because they take most of the time.
fn sizes(all: &[usize]) -> &[usize] {
    match is_long() {
        true => all,
        false => &all[..all.len() - 1],
    }
}

/// Most that a right procedure rejects at α = 0.05.
const MOST: f64 = 0.065;

/// The decision and every p-value of the report, on 24 points of laws, axes and sizes (36 in the
/// long mode).
#[test]
fn calibrated_data_are_rejected_at_most_as_often_as_alpha_says_at_any_number_of_positives() {
    let sets = data_sets(2000);
    let at_most = Bar::new(sets, 0.0..=MOST, &[0.1]);
    let near = Bar::new(sets, 0.03..=MOST, &[0.1, 0.01]);
    // Nominal 10 %.
    let zero = Bar::new(sets, 0.0..=0.115, &[0.16]);
    let mut failures = Vec::new();
    for (law, scores) in LAWS {
        for &n in sizes(&[200, 1000, 5000]) {
            let all = each(sets, |seed| {
                let sample = sample(scores, n, seed, |z| z);
                let of_each = sample.iter().filter(|s| s.2).count();
                let judged =
                    axes().map(|(_, grid)| judge(&sample, grid, &Options::default(), seed));
                (judged.map(|e| rejections(&e)), of_each.min(n - of_each))
            });
            let outcomes = all.iter().map(|e| e.1).sum::<usize>() as f64 / sets as f64;
            for (at, (axis, _)) in axes().into_iter().enumerate() {
                for (i, part) in PARTS.into_iter().enumerate() {
                    let rejected = all.iter().filter(|e| e.0[at][i]).count() as u64;
                    let bar = match i {
                        0 if outcomes >= 50.0 => &near,
                        8 => &zero,
                        _ => &at_most,
                    };
                    let place = format!("{law}, {axis}, n = {n}, {part}");
                    bar.check(&place, rejected, &mut failures);
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn bumps(periods: f64, height: f64) -> impl Fn(f64) -> f64 {
    move |z| z + height * (2.0 * PI * periods * z).sin() * (4.0 * z.min(1.0 - z)).min(1.0)
}

type Truth = Box<dyn Fn(f64) -> f64 + Sync>;

fn temperature(t: f64) -> Truth {
    Box::new(move |z| expit(logit(z) / t))
}

fn odds(by: f64) -> Truth {
    Box::new(move |z| expit(logit(z) + by))
}

fn noise(share: f64) -> Truth {
    Box::new(move |z| z + share * (1.0 - 2.0 * z))
}

/// Named errors of 2000 events, and the share that must be found.
fn errors() -> Vec<(&'static str, Law, Truth, f64)> {
    let uniform: Law = |r| r.uniform();
    let rare: Law = |r| beta(r, 0.5, 5.0);
    let sure: Law = |r| beta(r, 8.0, 0.5);
    let one_bump = |z: f64| if (0.5..0.6).contains(&z) { z + 0.12 } else { z };
    vec![
        ("uniform, T 1.25", uniform, temperature(1.25), 0.92),
        ("uniform, odds +.15", uniform, odds(0.15), 0.60),
        ("uniform, noise 3 %", uniform, noise(0.03), 0.55),
        ("beta(.5, 5), T 1.2", rare, temperature(1.2), 0.92),
        ("beta(.5, 5), noise 1 %", rare, noise(0.01), 0.75),
        ("beta(8, .5), noise 1 %", sure, noise(0.01), 0.78),
        ("4 bumps", uniform, Box::new(bumps(4.0, 0.06)), 0.30),
        ("16 bumps", uniform, Box::new(bumps(16.0, 0.1)), 0.55),
        ("40 bumps", uniform, Box::new(bumps(40.0, 0.14)), 0.50),
        ("one bump", uniform, Box::new(one_bump), 0.45),
        ("20 values, odds +.2", |r| values(r, 20.0), odds(0.2), 0.80),
        ("50 values, odds +.2", |r| values(r, 50.0), odds(0.2), 0.80),
        ("64 values, odds +.2", |r| values(r, 64.0), odds(0.2), 0.80),
    ]
}

/// What a wrong procedure loses.
const LOST: f64 = 0.12;

#[test]
fn what_happens_to_models_is_found() {
    let sets = data_sets(600);
    let mut failures = Vec::new();
    for (name, law, truth, least) in errors() {
        let bar = Bar::new(sets, least..=1.0, &[least - LOST]);
        let grid = axes()[0].1;
        let found = count(sets, |seed| {
            let sample = sample(law, 2000, seed, &truth);
            judge(&sample, grid, &Options::default(), seed).reject
        });
        bar.check(name, found, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn sixty_events_scored_about_a_fifth_that_all_happen_are_always_rejected() {
    let law: Law = |r| 0.15 + 0.1 * r.uniform();
    for (axis, grid) in axes() {
        for seed in 0..50 {
            let e = judge(
                &sample(law, 60, seed, |_| 1.0),
                grid,
                &Options::default(),
                seed,
            );
            assert!(e.reject && e.p_value < 0.01, "{axis}: {}", e.p_value);
            assert_eq!(e.direction.words(), "scores are too low");
        }
    }
}

/// A model whose error is about three times the tolerance is hardly ever called calibrated.
#[test]
fn calibrated_is_said_only_where_it_is_shown() {
    let sets = data_sets(600);
    let bar = Bar::new(sets, 0.0..=0.05, &[0.12]);
    let options = Options {
        tolerance: Tolerance::absolute(0.02),
        ..Options::default()
    };
    let calls = |n, t: f64| {
        count(sets, |seed| {
            let sample = sample(|r| r.uniform(), n, seed, temperature(t));
            let e = judge(&sample, axes()[0].1, &options, seed);
            e.tolerance.conclusion == Conclusion::Calibrated
        })
    };
    let mut failures = Vec::new();
    for (n, t) in [(300, 1.5), (500, 2.0), (1000, 1.4)] {
        bar.check(&format!("n = {n}, T = {t}"), calls(n, t), &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// With as many more events as a report says, most calibrated models are decided, whether the ends
/// are normal ones or exact.
#[test]
fn the_events_that_would_decide_are_about_right() {
    let sets = data_sets(200);
    let bar = Bar::new(sets, 0.5..=1.0, &[0.25]);
    let laws: [(&str, Law, usize); 4] = [
        ("uniform", |r| r.uniform(), 600),
        ("a top label", |r| beta(r, 9.0, 1.0), 6000),
        ("60 % of one score", half_or_uniform, 6000),
        ("three grades", |r| values(r, 3.0), 1000),
    ];
    let mut failures = Vec::new();
    for (name, law, n) in laws {
        let judged = |n, seed| {
            let sample = sample(law, n, seed, |z| z);
            judge(&sample, axes()[0].1, &Options::default(), seed).tolerance
        };
        // Of the first sample, so that the second one is independent of it.
        let more = each(sets, |seed| judged(n, seed).more_events);
        let mut more: Vec<f64> = more.into_iter().flatten().collect();
        assert!(10 * more.len() as u64 > 8 * sets, "{name}: {}", more.len());
        more.sort_by(f64::total_cmp);
        let enough = n + more[more.len() / 2] as usize;
        println!("{name}: {n} events of {enough}");
        let decided = count(sets, |seed| {
            judged(enough, 1_000_000 + seed).conclusion == Conclusion::Calibrated
        });
        bar.check(name, decided, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// A fallback at a half, as 60 % of the scores.
fn half_or_uniform(rng: &mut Rng) -> f64 {
    match rng.uniform() < 0.6 {
        true => 0.5,
        false => rng.uniform(),
    }
}

/// A single event of a large score among those of a rare model does not make the upper end many
/// times the mean score.
#[test]
fn the_upper_end_of_a_rare_model_falls_with_its_events() {
    let rare: Law = |r| (0.003f64.ln() - 0.32 + 0.8 * r.normal()).exp();
    let mean = |n: usize| {
        let upper = each(20, |seed| {
            let sample = sample(rare, n, seed, |z| z);
            judge(&sample, axes()[0].1, &Options::default(), seed)
                .interval
                .upper
        });
        upper.iter().sum::<f64>() / 20.0
    };
    let (few, some, many) = (mean(5000), mean(20_000), mean(80_000));
    assert!(
        few < 0.005 && some < 0.007 && many < 0.004,
        "{few} {some} {many}"
    );
}

/// The 90 % interval covers the error at the resolution that it states.
#[test]
fn the_interval_covers_the_error_of_rare_events_at_its_resolution() {
    let sets = data_sets(1000);
    let bar = Bar::new(sets, 0.87..=1.0, &[0.79]);
    let mut failures = Vec::new();
    for (law, scores) in &LAWS[..3] {
        // Twice the rare outcomes.
        let truth = |z: f64| {
            if z < 0.5 {
                2.0 * z
            } else {
                1.0 - 2.0 * (1.0 - z)
            }
        };
        for &n in sizes(&[200, 2000, 20_000]) {
            let all = each(sets, |seed| {
                let sample = sample(*scores, n, seed, truth);
                axes().map(|(_, grid)| {
                    let i = judge(&sample, grid, &Options::default(), seed).interval;
                    let error = binned_error(&sample, grid, i.cells);
                    i.lower <= error && error <= i.upper
                })
            });
            for (at, (axis, _)) in axes().into_iter().enumerate() {
                let covered = all.iter().filter(|covers| covers[at]).count() as u64;
                let place = format!("{law}, {axis}, n = {n}");
                bar.check(&place, covered, &mut failures);
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// √(Σ N/n·(mean p − z)²) over the cells of a level.
fn binned_error(sample: &[(f64, f64, bool)], grid: Grid, cells: u64) -> f64 {
    let ratio = u64::from(grid.cells()) / cells;
    let mut sums = vec![(0.0, 0.0); cells as usize];
    for &(z, p, _) in sample {
        let (n, off) = &mut sums[(u64::from(grid.cell_of(z)) / ratio) as usize];
        *n += 1.0;
        *off += p - z;
    }
    let occupied = sums.iter().filter(|s| s.0 > 0.0);
    let total: f64 = occupied.map(|(n, off)| off * off / n).sum();
    (total / sample.len() as f64).sqrt()
}
