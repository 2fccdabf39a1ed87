use super::super::axis::{Axis, Grid};
use super::super::fixed::Score;
use super::super::rng::Rng;
use super::super::weight::Weight;
use super::*;

/// A series of `panes` panes of `events` events of scores drawn by `score`; the outcomes of a
/// cluster of `length` successive events share a shift of the log odds of this spread.
fn series(
    seed: u64,
    (panes, events): (usize, usize),
    (length, spread): (usize, f64),
    score: impl Fn(f64) -> f64,
    truth: impl Fn(f64) -> f64,
) -> Dispersion {
    let (mut rng, mut all) = (Rng::new(seed), Dispersion::default());
    let (mut shift, mut at) = (0.0, 0);
    for number in 0..panes as i64 {
        let mut sums = Sums::new(Grid::new(Axis::Linear, 4));
        for _ in 0..events {
            if at % length == 0 {
                shift = spread * rng.normal();
            }
            at += 1;
            let z = score(rng.uniform());
            let p = truth(z);
            let shifted = 1.0 / (1.0 + (1.0 - p) / p * f64::exp(-shift));
            let y = rng.uniform() < shifted;
            sums.observe(Score::new(z).unwrap(), y).unwrap();
        }
        all.observe(number, &PaneTotals::of(&sums));
    }
    all
}

fn calibrated(z: f64) -> f64 {
    z
}

#[test]
fn the_estimate_is_the_formula() {
    // Two kinds of panes in turn, V = 25 each: δ = ±0.2, so each difference squared is 0.16.
    let pane = |u: i64| PaneTotals {
        n: 100,
        u: u << 32,
        u2: 25 << 32,
        v: 25 << 32,
    };
    let mut all = Dispersion::default();
    (0..PANES_MIN as i64 - 1).for_each(|i| all.observe(i, &pane(5 - 10 * (i % 2))));
    assert_eq!(all.measure(), None);
    all.observe(49, &pane(-5));
    let found = all.measure().unwrap();
    // Ten of 49 are left out: q = 1.613, P(χ²₃ < q)·49/39 = 0.4316.
    let factor = 2.0 / 0.4316 / (1.0 + 2.3 / 50.0);
    assert!((found.factor / factor - 1.0).abs() < 1e-3, "{found:?}");
    assert!((found.degrees - 0.7 * 2.0 * 49.0f64.powi(2) / 146.0).abs() < 1e-12);
    assert_eq!(found.panes, 50);
    // χ² of 23.02 degrees: its quantiles at 99.5 and .5 % are 44.2 and 9.27.
    assert!(
        (found.low - factor * 23.02 / 44.2).abs() < 0.02,
        "{found:?}"
    );
    assert!(
        (found.high - factor * 23.02 / 9.27).abs() < 0.15,
        "{found:?}"
    );
    assert_eq!(found.gated(), Some((found.factor, found.degrees)));
}

#[test]
fn panes_add_up_in_any_order_and_the_old_ones_go() {
    let pane = |i: i64| PaneTotals {
        n: 40 + i as u64 % 7,
        u: (i % 5 - 2) << 30,
        u2: 3 << 32,
        v: 3 << 32,
    };
    let mut forward = Dispersion::default();
    (0..10_000).for_each(|i| forward.observe(i, &pane(i)));
    let (mut even, mut odd) = (Dispersion::default(), Dispersion::default());
    (0..10_000).rev().for_each(|i| match i % 2 {
        0 => even.observe(i, &pane(i)),
        _ => odd.observe(i, &pane(i)),
    });
    even.merge(&odd);
    assert_eq!(even, forward);
    assert!(
        forward
            .widths
            .iter()
            .all(|slots| slots.len() == SLOTS as usize)
    );
    assert!(forward.bytes() <= 36_000, "{}", forward.bytes());
    // Of the slots of two panes each pair is a base pane.
    assert_eq!(forward.measure().unwrap().panes, 50);
    let rare = |i| PaneTotals {
        v: 1 << 26,
        ..pane(i)
    };
    let mut few = Dispersion::default();
    (0..10_000).for_each(|i| few.observe(i, &rare(i)));
    assert_eq!(few.measure(), None);
}

#[test]
fn weights_of_one_change_nothing() {
    let [mut plain, mut weighted] = [false, true].map(|w| {
        let grid = Grid::new(Axis::Linear, 4);
        Sums::new(if w { grid.weighted() } else { grid })
    });
    let mut rng = Rng::new(5);
    for _ in 0..500 {
        let z = Score::new(rng.uniform()).unwrap();
        let y = rng.uniform() < z.value();
        plain.observe(z, y).unwrap();
        weighted
            .observe_weighted(z, y, Weight::new(1.0).unwrap())
            .unwrap();
    }
    let [a, b] = [&plain, &weighted].map(PaneTotals::of);
    assert_eq!(a, b);
    assert!(a.u2.abs_diff(a.v) < a.v / 5);
}

#[test]
fn a_model_that_is_wrong_or_drifts_is_not_overdispersed_and_bursts_are() {
    let doubled = |z: f64| 2.0 * z / (1.0 + z);
    let sharp = |z: f64| z * z / (z * z + (1.0 - z).powi(2));
    for truth in [calibrated, doubled, sharp] {
        let found = series(3, (200, 100), (1, 0.0), |u| u, truth).measure();
        let found = found.unwrap();
        assert_eq!(found.gated(), None, "{found:?}");
    }
    let rare = |u: f64| 0.001 + 0.018 * u;
    let found = series(4, (200, 600), (1, 0.0), rare, doubled).measure();
    assert_eq!(found.unwrap().gated(), None);
    // A model that goes wrong at once, and one that is put right again.
    for until in [200, 150] {
        let (mut rng, mut all) = (Rng::new(6), Dispersion::default());
        for number in 0..200 {
            let mut sums = Sums::new(Grid::new(Axis::Linear, 4));
            for _ in 0..100 {
                let z = rng.uniform();
                let wrong = (100..until).contains(&number);
                let y = rng.uniform() < if wrong { z * z } else { z };
                sums.observe(Score::new(z).unwrap(), y).unwrap();
            }
            all.observe(number, &PaneTotals::of(&sums));
        }
        let found = all.measure().unwrap();
        assert_eq!(found.gated(), None, "{found:?}");
    }
    // An hour that is ten panes long shows when panes are joined.
    for length in [50, 500] {
        let found = series(5, (200, 100), (length, 1.0), |u| u, calibrated).measure();
        let found = found.unwrap();
        assert!(found.low > 2.0, "{found:?}");
    }
}
