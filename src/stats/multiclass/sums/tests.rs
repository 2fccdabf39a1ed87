//! Sums of vector views against the offline form of the same events.

use super::super::{Events, evaluate, evaluate_sums};
use super::*;
use crate::kernel::Vectors;
use crate::kernel::conditional::draw;
use crate::rng::Rng;

const CASES: [(usize, VectorView); 4] = [
    (3, VectorView::Full),
    (5, VectorView::TopK(2)),
    (12, VectorView::TopK(3)),
    (4, VectorView::Full),
];

fn shape(classes: usize, view: VectorView) -> Shape {
    Shape {
        view,
        classes,
        cells_max: 4096,
        weighted: false,
    }
}

fn sample(classes: usize, n: usize, pushed: f64, seed: u64) -> Vectors {
    let mut rng = Rng::new(seed);
    let mut all = Vectors::new(classes);
    while all.len() < n {
        let mut p: Vec<f64> = (0..classes).map(|_| -(1.0 - rng.uniform()).ln()).collect();
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= sum);
        let y = if rng.uniform() < pushed {
            0
        } else {
            draw(&p, rng.uniform())
        };
        let _ = all.push(&p, y);
    }
    all
}

fn sums(all: &Vectors, view: VectorView) -> VectorSums {
    let mut sums = VectorSums::new(shape(all.classes(), view)).unwrap();
    all.events()
        .for_each(|(row, y)| assert!(sums.observe(row, 1.0, y, None)));
    sums
}

#[test]
fn any_split_and_order_gives_the_same_integers_and_rows_give_them_back() {
    for (classes, view) in CASES {
        let all = sample(classes, 500, 0.2, 3);
        let whole = sums(&all, view);
        let mut back = VectorSums::new(whole.shape()).unwrap();
        for part in [all.pick((250..500).rev()), all.pick(0..250)] {
            back.merge(&sums(&part, view)).unwrap();
        }
        assert_eq!((back.rows(), back.n()), (whole.rows(), 500));
        let again = VectorSums::from_rows(whole.shape(), whole.rows(), 0).unwrap();
        assert_eq!((again.rows(), again.n()), (whole.rows(), 500));
        let mut bad = whole.rows();
        bad[0].0[0] = u16::MAX;
        assert!(VectorSums::from_rows(whole.shape(), bad, 0).is_none());
    }
}

#[test]
fn the_sums_say_what_the_offline_form_says_of_the_same_events() {
    for (classes, view) in CASES {
        let all = sample(classes, 1000, 0.15, 4);
        let kept = sums(&all, view);
        let events = Events::of(&all, view);
        for level in kept.levels(12) {
            let exact = VectorLevel::of(&events, level.slices);
            let names =
                |l: &VectorLevel| l.cells.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&level), names(&exact));
            for (a, b) in level.cells.iter().zip(&exact.cells) {
                let near = |x: f64, y: f64| (x - y).abs() <= 1e-6 * (1.0 + y.abs());
                assert!(
                    near(a.u2, b.u2) && near(a.along, b.along) && near(a.pairs, b.pairs),
                    "{a:?} {b:?}"
                );
                assert!(a.u.iter().zip(&b.u).all(|(x, y)| near(*x, *y)));
                if b.n >= 50.0 {
                    // The third cumulant shifts a p-value by a few hundredths of itself.
                    assert!(
                        (a.triples / b.triples - 1.0).abs() < 0.25,
                        "{} {}",
                        a.triples,
                        b.triples
                    );
                }
            }
        }
        let live = evaluate_sums(&kept, 0.05, 0.9).unwrap();
        let offline = evaluate(&all, view, 0.05, 0.9, Some(live.interval.slices)).unwrap();
        assert!((live.interval.estimate_squared - offline.interval.estimate_squared).abs() < 1e-6);
        assert!((live.interval.upper - offline.interval.upper).abs() < 1e-4);
        for (a, b) in live.tcal.levels.iter().zip(&offline.tcal.levels) {
            assert!(
                (a.debiased - b.debiased).abs() < 1e-6
                    && (a.null_sd / b.null_sd - 1.0).abs() < 1e-5
            );
            assert!(
                (a.p_value - b.p_value).abs() < 0.02,
                "{} {}",
                a.p_value,
                b.p_value
            );
        }
    }
}

#[test]
fn the_test_over_sums_keeps_its_level_and_finds_a_pushed_class() {
    let (mut hits, sets) = (0, 300);
    for seed in 0..sets {
        let kept = sums(&sample(3, 300, 0.0, 1000 + seed), VectorView::Full);
        hits += u32::from(evaluate_sums(&kept, 0.05, 0.9).unwrap().tcal.reject);
    }
    let level = f64::from(hits) / sets as f64;
    // Four binomial errors on both sides of 0.05.
    assert!(
        level < 0.05 + 4.0 * (0.0475 / sets as f64).sqrt() && level > 0.005,
        "{level}"
    );
    for (classes, view) in CASES {
        let kept = sums(&sample(classes, 3000, 0.3, 9), view);
        assert!(
            evaluate_sums(&kept, 0.05, 0.9).unwrap().tcal.reject,
            "{view}"
        );
    }
}

#[test]
fn cells_beyond_the_cap_and_vectors_of_another_length_are_refused_and_counted() {
    let mut few = VectorSums::new(Shape {
        cells_max: 2,
        ..shape(3, VectorView::Full)
    })
    .unwrap();
    let all = sample(3, 200, 0.0, 5);
    let taken = all
        .events()
        .filter(|(row, y)| few.observe(row, 1.0, *y, None));
    assert_eq!(taken.count() as u64, few.n());
    assert_eq!((few.cells.len(), few.n() + few.refused()), (2, 200));
    assert!(few.refused() > 0);
    few.observe(&[0.5, 0.5], 1.0, 0, None);
    few.observe(&[0.5, 0.2, 0.3], 1.0, 3, None);
    assert_eq!(few.n() + few.refused(), 202);
    assert!(VectorSums::new(shape(13, VectorView::Full)).is_none());
    assert!(VectorSums::new(shape(3, VectorView::TopK(4))).is_none());
}
