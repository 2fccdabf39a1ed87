//! Sums of vector views against the offline form of the same events.

use super::super::{Events, evaluate, evaluate_sums};
use super::*;
use crate::kernel::Vectors;
use crate::rng::Rng;
use crate::samples;

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
    samples::vectors(
        &mut Rng::new(seed),
        (n, classes),
        pushed,
        samples::uniform_row,
    )
}

fn sums(all: &Vectors, view: VectorView) -> VectorSums {
    let mut sums = VectorSums::new(shape(all.classes(), view)).unwrap();
    all.events()
        .for_each(|(row, y)| assert!(sums.observe(row, 1.0, y, None)));
    sums
}

#[test]
fn rows_give_the_integers_back() {
    for (classes, view) in CASES {
        let whole = sums(&sample(classes, 500, 0.2, 3), view);
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
                    let ratio = a.triples / b.triples;
                    assert!((ratio - 1.0).abs() < 0.25, "{ratio}");
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
            assert!((a.p_value - b.p_value).abs() < 0.02, "{a:?} {b:?}");
        }
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
