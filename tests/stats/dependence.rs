//! Outcomes that depend on each other: how often independent ones are called overdispersed and clustered
//! ones are found; how often repeats are noticed, and continuous scores taken for them.

use crate::support::bars::{Bar, count, data_sets};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::fixed::Score;
use trueline::stats::overdispersion::{Dispersion, PaneTotals};
use trueline::stats::repeats::Repeats;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;

/// Base panes of a series.
const PANES: i64 = 100;

/// Data sets of a point in CI.
const DATA_SETS: u64 = 400;

/// A score from a uniform number.
type ScoreOf = fn(f64) -> f64;

/// Whether a series of `events` a pane is called overdispersed. Scores come from `score`, outcomes happen
/// with the odds of their scores times `odds`; clusters of so many events in a row share a normal shift
/// of the log odds of this spread.
fn overdispersed(
    seed: u64,
    events: usize,
    score: ScoreOf,
    odds: f64,
    (length, spread): (usize, f64),
) -> bool {
    let (mut rng, mut series) = (Rng::new(seed), Dispersion::default());
    let (mut shift, mut nth) = (0.0, 0);
    for pane in 0..PANES {
        let mut sums = Sums::new(Grid::new(Axis::Linear, 3));
        for _ in 0..events {
            if nth % length == 0 {
                shift = spread * rng.normal();
            }
            nth += 1;
            let z = score(rng.uniform());
            let against = (1.0 - z) / z / odds * f64::exp(-shift);
            let y = rng.uniform() < 1.0 / (1.0 + against);
            let z = Score::new(z).expect("a score");
            sums.observe(z, y).expect("few events");
        }
        series.observe(pane, &PaneTotals::of(&sums));
    }
    let measured = series.measure().expect("a hundred base panes");
    measured.gated().is_some()
}

fn uniform(u: f64) -> f64 {
    u
}

fn rare(u: f64) -> f64 {
    0.001 + 0.018 * u
}

#[test]
fn independent_outcomes_are_seldom_called_overdispersed_calibrated_or_not() {
    let n = data_sets(DATA_SETS);
    let bar = Bar::new(n, 0.0..=0.05, &[0.15]);
    let points: [(&str, usize, ScoreOf, f64); 4] = [
        ("uniform", 100, uniform, 1.0),
        ("uniform, odds doubled", 100, uniform, 2.0),
        ("rare", 600, rare, 1.0),
        ("rare, odds doubled", 600, rare, 2.0),
    ];
    for (name, events, score, odds) in points {
        let called = count(n, |seed| overdispersed(seed, events, score, odds, (1, 0.0)));
        assert!(bar.passes().contains(&called), "{name}: {called} of {n}");
    }
}

#[test]
fn clusters_of_a_burst_and_of_a_day_are_found() {
    let n = data_sets(DATA_SETS);
    let points = [
        ("bursts of 50", (50, 0.5), Bar::new(n, 0.93..=1.0, &[0.8])),
        ("days of 500", (500, 0.3), Bar::new(n, 0.83..=1.0, &[0.7])),
    ];
    for (name, clusters, bar) in points {
        let found = count(n, |seed| overdispersed(seed, 100, uniform, 1.0, clusters));
        assert!(bar.passes().contains(&found), "{name}: {found} of {n}");
    }
}

/// Whether repeats are suspected among 5000 calibrated events, of which a share comes again.
fn suspected(seed: u64, again: f64) -> bool {
    let (mut rng, mut sample) = (Rng::new(seed), Vec::new());
    while sample.len() < 5_000 {
        let z = rng.uniform();
        let event = (z, rng.uniform() < z);
        sample.push(event);
        if rng.uniform() < again {
            sample.push(event);
        }
    }
    let measured = Repeats::from_scores(&sample).measure();
    measured.is_some_and(|m| m.is_suspicious())
}

#[test]
fn repeats_are_noticed_and_continuous_scores_are_no_repeats() {
    let n = data_sets(DATA_SETS);
    let never = Bar::new(n, 0.0..=0.002, &[0.05]);
    let once = count(n, |seed| suspected(seed, 0.0));
    assert!(never.passes().contains(&once), "{once} of {n}");
    let mostly = Bar::new(n, 0.9..=1.0, &[0.8]);
    let twice = count(n, |seed| suspected(seed, 0.02));
    assert!(mostly.passes().contains(&twice), "{twice} of {n}");
}
