//! Equal volume, one cell for every vector, nesting; two classes against the scalar view; level and
//! power.

use super::cell::Name;
use super::*;
use crate::levels::Level;
use crate::null::Moments;
use crate::rng::Rng;
use crate::samples;
use std::collections::BTreeMap;

/// Uniform on the simplex; now and then on a face, a corner or a tie.
fn vector(k: usize, rng: &mut Rng) -> Vec<f64> {
    let mut p: Vec<f64> = (0..k).map(|_| -(1.0 - rng.uniform()).ln()).collect();
    match (rng.uniform() * 8.0) as u32 {
        0 => p[(rng.uniform() * k as f64) as usize] = 0.0,
        1 => (1..k).for_each(|i| p[i] = 0.0),
        2 => (0..k).for_each(|i| p[i] = f64::from(i as u32 % 2)),
        3 => (0..k).for_each(|i| p[i] = 1.0),
        _ => {}
    }
    let sum: f64 = p.iter().sum();
    if sum > 0.0 {
        p.iter_mut().for_each(|p| *p /= sum);
    } else {
        p[0] = 1.0;
    }
    p
}

/// |det| by elimination with pivots.
fn determinant(mut rows: Vec<Vec<f64>>) -> f64 {
    let n = rows.len();
    let mut det = 1.0;
    for c in 0..n {
        let best = (c..n)
            .max_by(|&a, &b| rows[a][c].abs().total_cmp(&rows[b][c].abs()))
            .unwrap();
        rows.swap(c, best);
        det *= rows[c][c];
        for r in c + 1..n {
            let f = rows[r][c] / rows[c][c];
            let pivot = rows[c].clone();
            rows[r]
                .iter_mut()
                .zip(&pivot)
                .for_each(|(x, p)| *x -= f * p);
        }
    }
    det.abs()
}

/// The K corners of a simplex among m^(K−1), as probability vectors.
fn corners(name: &Name, m: u32) -> Vec<Vec<f64>> {
    let Name::Simplex(floors, order) = name else {
        return Vec::new();
    };
    let corner = |raised: usize| {
        // The `raised` largest fractions are 1, the others 0.
        let mut x: Vec<f64> = floors.iter().map(|&f| f64::from(f)).collect();
        for &i in &order[order.len() - raised..] {
            x[i as usize] += 1.0;
        }
        x.push(f64::from(m));
        let mut before = 0.0;
        let step = |x: f64| (x - std::mem::replace(&mut before, x)) / f64::from(m);
        x.into_iter().map(step).collect()
    };
    (0..=floors.len()).map(corner).collect()
}

#[test]
fn every_simplex_has_the_same_volume_and_lies_among_the_probability_vectors() {
    let mut rng = Rng::new(1);
    for (k, m) in [(2, 8), (3, 4), (4, 3), (5, 2), (6, 4)] {
        for _ in 0..300 {
            let corners = corners(&Name::simplex(&vector(k, &mut rng), m), m);
            assert_eq!(corners.len(), k);
            for corner in &corners {
                let sum: f64 = corner.iter().sum();
                assert!(corner.iter().all(|&p| p >= 0.0) && (sum - 1.0).abs() < 1e-12);
            }
            let edges = |c: &Vec<f64>| (0..k - 1).map(|i| c[i] - corners[0][i]).collect();
            let volume = determinant(corners[1..].iter().map(edges).collect());
            // That of the whole, 1, divided by m^(K−1).
            let want = f64::from(m).powi(1 - k as i32);
            assert!(
                (volume / want - 1.0).abs() < 1e-9,
                "{k} {m}: {volume} {want}"
            );
        }
    }
}

#[test]
fn every_vector_lies_in_its_cell_faces_corners_and_ties_included() {
    let mut rng = Rng::new(2);
    for (k, m) in [(2, 4), (3, 4), (4, 8), (7, 2), (1000, 2)] {
        for _ in 0..if k > 100 { 5 } else { 500 } {
            let p = vector(k, &mut rng);
            let Name::Simplex(floors, order) = Name::simplex(&p, m) else {
                panic!("a vector has a simplex");
            };
            // Barycentric coordinates are the gaps between sorted fractions: all at least 0.
            let mut sum = 0.0;
            let x: Vec<f64> = (p[..k - 1].iter())
                .map(|p| {
                    sum += p;
                    (sum * f64::from(m)).min(f64::from(m))
                })
                .collect();
            let mut before = 0.0;
            for &i in &order {
                let fraction = x[i as usize] - f64::from(floors[i as usize]);
                assert!(before <= fraction && fraction <= 1.0, "{p:?}");
                before = fraction;
            }
            assert!(
                floors.windows(2).all(|w| w[0] <= w[1]) && floors.iter().all(|&f| u32::from(f) < m)
            );
            // Where floors are equal the earlier sum comes first: the alcove is inside the simplex.
            let mut rank = vec![0; k - 1];
            order
                .iter()
                .enumerate()
                .for_each(|(r, &i)| rank[i as usize] = r);
            let inside = (1..k - 1).all(|i| floors[i - 1] < floors[i] || rank[i - 1] < rank[i]);
            assert!(inside, "{p:?}");
        }
    }
}

#[test]
fn there_are_as_many_simplices_as_the_count_says_and_uniform_vectors_fill_them_evenly() {
    let mut rng = Rng::new(3);
    for (k, m, count) in [(2, 8, 8), (3, 4, 16), (4, 3, 27), (5, 2, 16)] {
        let mut seen: BTreeMap<Name, f64> = BTreeMap::new();
        let draws = 400 * count;
        for _ in 0..draws {
            let p = samples::uniform_row(&mut rng, k);
            *seen.entry(Name::simplex(&p, m)).or_default() += 1.0;
        }
        assert_eq!(seen.len(), count);
        let chi: f64 = seen
            .values()
            .map(|n| (n - 400.0) * (n - 400.0) / 400.0)
            .sum();
        let freedom = (count - 1) as f64;
        assert!(
            chi < freedom + 5.0 * (2.0 * freedom).sqrt(),
            "{k} {m}: {chi}"
        );
    }
}

#[test]
fn cells_nest_so_that_the_parent_follows_from_the_child_alone() {
    let mut rng = Rng::new(4);
    for k in [2, 3, 5, 9] {
        for m in [1, 2, 8] {
            for _ in 0..200 {
                let p = vector(k, &mut rng);
                assert_eq!(
                    Name::simplex(&p, 2 * m).parent(),
                    Name::simplex(&p, m),
                    "{p:?} {m}"
                );
                assert_eq!(Name::cube(&p, 2 * m).parent(), Name::cube(&p, m));
            }
        }
    }
}

fn sample(n: usize, k: usize, pushed: f64, rng: &mut Rng) -> Vectors {
    samples::vectors(rng, (n, k), pushed, |rng, k| vector(k, rng))
}

#[test]
fn two_classes_are_the_scalar_view_but_for_the_factor_two() {
    let mut rng = Rng::new(5);
    let all = sample(300, 2, 0.2, &mut rng);
    let events = Events::of(&all, VectorView::Full);
    // The first partial sum is the probability of class 0.
    let scalar: Vec<_> = all.events().map(|(p, y)| (p[0], y == 0)).collect();
    for m in [2u32, 8, 32] {
        let (vector, one) = (
            VectorLevel::of(&events, m),
            Level::from_scores(&scalar, u64::from(m)),
        );
        let twice = |v: f64, s: f64| assert!((v - 2.0 * s).abs() < 1e-12, "{v} {s}");
        use crate::estimator;
        twice(estimate::plug_in(&vector), estimator::plug_in(&one));
        twice(estimate::debiased(&vector), estimator::debiased(&one));
        twice(estimate::unbiased(&vector), estimator::unbiased(&one));
        let (v, s) = (
            estimate::moments_of_debiased(&vector),
            Moments::of_debiased(&one),
        );
        assert!((v.sd() / s.sd() - 2.0).abs() < 1e-9);
        assert!(
            (v.third / s.third - 8.0).abs() < 1e-6,
            "{} {}",
            v.third,
            s.third
        );
        let vector = interval(&events, m, 0.9).unwrap();
        let e = crate::estimate::Estimate::of(&one, 300.0);
        assert!((vector.sigma1_squared / e.sigma1_squared - 4.0).abs() < 1e-9);
        let guarded = interval::guarded(&VectorLevel::of(&events, m), 0.9, |_, _| None);
        let e = crate::estimate::Estimate::guarded(&one, 300.0);
        assert!(guarded.sigma1_squared > vector.sigma1_squared);
        assert!((guarded.sigma1_squared / e.sigma1_squared - 4.0).abs() < 1e-9);
    }
    let top = Events::of(&all, VectorView::TopK(1));
    let confident = all.project(crate::view::View::TopLabel).unwrap();
    let (vector, one) = (
        VectorLevel::of(&top, 16),
        Level::from_scores(&confident, 16),
    );
    let (v, s) = (
        estimate::debiased(&vector),
        crate::estimator::debiased(&one),
    );
    assert!((v - s).abs() < 1e-13, "{v} {s}");
}

/// All events have one prediction, or one of twenty, of so many classes that the finest cells would
/// number far beyond n² if predictions were spread over them.
#[test]
fn the_bound_holds_where_predictions_concentrate_in_high_dimension() {
    let mut rng = Rng::new(9);
    for (classes, n, leaves) in [(100, 200, 1), (100, 1000, 20), (50, 1000, 1)] {
        let mut exceeded = 0;
        for _ in 0..60 {
            let leaves: Vec<Vec<f64>> = (0..leaves)
                .map(|_| samples::row(&mut rng, classes, |u| 0.5 + u))
                .collect();
            let mut all = Vectors::new(classes);
            for i in 0..n {
                let p = &leaves[i % leaves.len()];
                let mut left = rng.uniform();
                let label = p.iter().position(|p| {
                    left -= p;
                    left < 0.0
                });
                all.push(p, label.unwrap_or(classes - 1) as u32).unwrap();
            }
            let e = evaluate(&all, VectorView::Full, 0.05, 0.9, None).unwrap();
            exceeded += u32::from(e.tcal.theorem_reject);
        }
        // 3 of 60 at most are expected.
        assert!(exceeded <= 8, "{classes} {n}: {exceeded}");
    }
}

#[test]
fn a_thousand_classes_are_tested_without_a_table_of_cells() {
    let mut rng = Rng::new(7);
    let all = sample(40, 1000, 0.0, &mut rng);
    for view in [
        VectorView::Full,
        VectorView::TopK(3),
        VectorView::TopK(1000),
    ] {
        let e = evaluate(&all, view, 0.05, 0.9, None).unwrap();
        let upper = e.interval.upper;
        assert!(e.tcal.p_value > 0.0 && upper.is_finite(), "{e:?}");
    }
}

#[test]
fn classes_are_tested_together_and_the_bad_one_is_named() {
    let mut rng = Rng::new(9);
    let o = crate::evaluation::Options::default();
    let found = classwise(&sample(1000, 4, 0.4, &mut rng), &o).unwrap();
    assert!(found.reject && found.classes[0].reject && found.classes[0].mean_residual > 0.0);
    let found = classwise(&sample(1000, 4, 0.0, &mut rng), &o).unwrap();
    assert!(found.p_value > 0.001 && found.classes.len() == 4);
}

/// Predictions (1 − q, q/2, q/2) of these numbers, q and weights, with the first outcome.
fn weighted_events(groups: &[(usize, f64, f64)]) -> Events {
    let (mut all, mut weights) = (Vectors::new(3), Vec::new());
    for &(n, q, w) in groups {
        for _ in 0..n {
            all.push(&[1.0 - q, 0.5 * q, 0.5 * q], 0).unwrap();
            weights.push(w);
        }
    }
    Events::weighted(&all, VectorView::Full, &weights)
}

#[test]
fn information_is_that_of_as_many_outcomes_of_equal_weight() {
    let of = |groups: &[_]| {
        let e = evaluate_events(&weighted_events(groups), 0.05, 0.9, None).unwrap();
        e.information
    };
    // ½(.5·.5 + 2·.25·.75) of each event.
    for w in [1.0, 0.25, 100.0] {
        let got = of(&[(400, 0.5, w)]);
        assert!((got - 400.0 * 0.3125).abs() < 1e-9 * got, "{w}: {got}");
    }
    // Thirty heavy events of rare outcomes among many light ones, as Σw²V and Σw⁴V count them.
    let v = |q: f64| 0.5 * ((1.0 - q) * q + q * (1.0 - 0.5 * q));
    let (a, b) = (
        3_000.0 * v(0.6) + 3e5 * v(0.01),
        3_000.0 * v(0.6) + 3e9 * v(0.01),
    );
    let got = of(&[(3_000, 0.6, 1.0), (30, 0.01, 100.0)]);
    assert!(
        (got / (a * a / b) - 1.0).abs() < 1e-9 && got < 10.0,
        "{got}"
    );
}

/// Outcomes that the predictions exclude are rejected at levels below that of the first draws.
#[test]
fn few_outcomes_are_drawn_on_where_alpha_is_small() {
    let mut all = Vectors::new(3);
    for _ in 0..500 {
        all.push(&[0.99, 0.005, 0.005], 1).unwrap();
    }
    for alpha in [1e-4, 5e-5] {
        let e = evaluate(&all, VectorView::Full, alpha, 0.9, None).unwrap();
        assert!(e.tcal.reject && e.tcal.p_value < 9e-5, "{:?}", e.tcal);
    }
}
