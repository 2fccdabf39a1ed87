use super::super::attribute::Attribute;
use super::super::axis::{Axis, Grid};
use super::super::fixed::Score;
use super::super::rng::Rng;
use super::super::weight::Weight;
use super::*;
use crate::samples;

fn totals(n: u64, u: i64, u2: u64, v: u64) -> PaneTotals {
    PaneTotals { n, u, u2, v }
}

#[test]
fn the_estimate_is_the_formula() {
    // Two kinds of panes in turn, V = 25 each: δ = ±0.2, so each difference squared is 0.16.
    let pane = |u: i64| totals(100, u << 32, 25 << 32, 25 << 32);
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
    let pane = |i: i64| totals(40 + i as u64 % 7, (i % 5 - 2) << 30, 3 << 32, 3 << 32);
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
            .observe_with(z, y, Attribute::Weight(Weight::new(1.0).unwrap()))
            .unwrap();
    }
    let [a, b] = [&plain, &weighted].map(PaneTotals::of);
    assert_eq!(a, b);
    assert!(a.u2.abs_diff(a.v) < a.v / 5);
}

#[test]
fn a_model_that_goes_wrong_at_once_or_is_put_right_again_is_not_overdispersed() {
    for until in [200, 150] {
        let (mut rng, mut all) = (Rng::new(6), Dispersion::default());
        for number in 0..200 {
            let wrong = (100..until).contains(&number);
            let truth = |z: f64| if wrong { z * z } else { z };
            let events = samples::events(&mut rng, 100, |u| u, truth);
            let sums = samples::sums(Grid::new(Axis::Linear, 4), &events);
            all.observe(number, &PaneTotals::of(&sums));
        }
        let found = all.measure().unwrap();
        assert_eq!(found.gated(), None, "{found:?}");
    }
}

#[test]
fn what_late_outcomes_change_is_as_if_it_had_come_before_its_pane() {
    let pane = |i: i64| totals(100 + i as u64 % 7, (i % 5 - 2) << 30, 30 << 32, 25 << 32);
    // One event of each pane changes its outcome, and another one is the first of its prediction.
    let (minus, plus) = (
        totals(1, -(1 << 30), 1 << 28, 1 << 29),
        totals(2, 5 << 30, 3 << 29, 1 << 30),
    );
    let corrected = |i: i64| {
        let PaneTotals { n, u, u2, v } = pane(i);
        totals(n + 1, u + (6 << 30), u2 + (5 << 28), v + (1 << 29))
    };
    let (mut before, mut after) = (Dispersion::default(), Dispersion::default());
    (0..300).for_each(|i| before.observe(i, &corrected(i)));
    (0..300).for_each(|i| after.observe(i, &pane(i)));
    // Changes of panes that were dropped reach only the wider slots.
    (0..300).rev().for_each(|i| after.revise(i, &minus, &plus));
    assert_eq!(after, before);
    assert!(after.measure().is_some());
    // More events than there are cannot be taken out.
    after.revise(1000, &PaneTotals { n: 3, ..minus }, &plus);
    assert_eq!(after, before);
    // The first outcomes of a pane begin it.
    let mut first = Dispersion::default();
    first.observe(7, &plus);
    let mut late = Dispersion::default();
    late.revise(7, &PaneTotals::default(), &plus);
    assert_eq!(first, late);
}

#[test]
fn a_pane_of_the_future_that_is_cut_keeps_out_none_of_those_that_follow() {
    let mut rng = Rng::new(8);
    let mut pane = || {
        let u = ((rng.uniform() - 0.5) * 10.0 * 2f64.powi(32)) as i64;
        totals(100, u, 25 << 32, 25 << 32)
    };
    let mut series = Dispersion::default();
    (0..100).for_each(|i| series.observe(i, &pane()));
    let mut kept = series.clone();
    assert!(series.measure().is_some());
    series.observe(6_307_200, &pane());
    assert_eq!(series.measure(), None);
    series.cut(100);
    (100..160).for_each(|i| series.observe(i, &pane()));
    assert_eq!(series.measure().map(|found| found.panes), Some(60));
    // Without such a pane the cut drops only slots that reach beyond it.
    kept.cut(100);
    let slots: Vec<usize> = kept.widths.iter().map(VecDeque::len).collect();
    assert_eq!(slots, [100, 50, 25, 12, 6, 3, 1]);
}

#[test]
fn panes_whose_weights_leave_the_integers_are_left_out() {
    // All weights are alike, so they change nothing.
    let series = |weight: f64| {
        let (mut rng, mut all) = (Rng::new(9), Dispersion::default());
        for number in 0..100 {
            let mut sums = Sums::new(Grid::new(Axis::Linear, 4).weighted());
            for _ in 0..100 {
                let z = Score::new(rng.uniform()).unwrap();
                let y = rng.uniform() < z.value();
                let weight = Weight::new(weight).unwrap();
                sums.observe_with(z, y, Attribute::Weight(weight)).unwrap();
            }
            all.observe(number, &PaneTotals::of(&sums));
        }
        all
    };
    let plain = series(1.0).measure().unwrap();
    // A pane has w²V of about 100 · 10⁶/6 = 1.7·10⁷.
    let some = series(1000.0).measure().unwrap();
    assert!((some.factor / plain.factor - 1.0).abs() < 1e-3, "{some:?}");
    // That is 6.7·10⁹ of each pane, more than 4.3·10⁹.
    let none = series(20_000.0);
    assert_eq!(none.measure(), None);
    assert!(none.widths.iter().flatten().all(|(_, pane)| pane.is_full()));
}
