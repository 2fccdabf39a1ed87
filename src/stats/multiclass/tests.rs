//! Equal volume, one cell for every vector, nesting; two classes against the scalar view; level and
//! power.

use super::cell::Name;
use super::*;
use crate::interval::sigma0_paper;
use crate::kernel::conditional::draw;
use crate::levels::Level;
use crate::null::Moments;
use crate::rng::Rng;
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

#[test]
fn every_simplex_has_the_same_volume_and_lies_among_the_probability_vectors() {
    let mut rng = Rng::new(1);
    for (k, m) in [(2, 8), (3, 4), (4, 3), (5, 2), (6, 4)] {
        for _ in 0..300 {
            let corners = Name::simplex(&vector(k, &mut rng), m).corners(m);
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
            let mut p: Vec<f64> = (0..k).map(|_| -(1.0 - rng.uniform()).ln()).collect();
            let sum: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= sum);
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
    let mut all = Vectors::new(k);
    while all.len() < n {
        let p = vector(k, rng);
        let y = if rng.uniform() < pushed {
            0
        } else {
            draw(&p, rng.uniform())
        };
        all.push(&p, y).unwrap();
    }
    all
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

#[test]
fn the_vector_tests_keep_their_level_and_have_power() {
    let mut rng = Rng::new(6);
    for view in [VectorView::Full, VectorView::TopK(2)] {
        let (mut level, mut power, mut bound) = (0, 0, 0);
        for _ in 0..200 {
            let calibrated = sample(300, 3, 0.0, &mut rng);
            let e = evaluate(&calibrated, view, 0.05, 0.9, None).unwrap();
            level += u32::from(e.tcal.reject);
            bound += u32::from(e.tcal.theorem_reject);
            let e = evaluate(&sample(300, 3, 0.5, &mut rng), view, 0.05, 0.9, None).unwrap();
            power += u32::from(e.tcal.reject);
            assert!(e.interval.lower <= e.interval.upper);
        }
        // 10 of 200 expected, standard deviation 3.
        assert!(level <= 22 && bound <= level, "{view} {level} {bound}");
        assert!(power > 190, "{view} {power}");
    }
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
                .map(|_| {
                    let draws = (0..classes).map(|_| 0.5 + rng.uniform());
                    let draws: Vec<f64> = draws.collect();
                    let sum: f64 = draws.iter().sum();
                    draws.iter().map(|p| p / sum).collect()
                })
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
        assert!(
            e.tcal.p_value > 0.0 && e.interval.upper.is_finite(),
            "{e:?}"
        );
    }
}

#[test]
fn sigma_zero_is_the_closed_form_for_one_and_monte_carlo_for_two_and_three_coordinates() {
    for k in [2, 3, 10, 1000] {
        let want = sigma0_paper(1.0 / k as f64).powi(2);
        assert!((interval::sigma0_squared(k, 1).unwrap() / want - 1.0).abs() < 1e-9);
    }
    let mut rng = Rng::new(8);
    for (classes, k) in [(3, 2), (10, 2), (4, 3), (10, 3), (100, 3)] {
        let (mut sum, mut squares) = (0.0, 0.0);
        let draws = 400_000;
        for _ in 0..draws {
            let mut z: Vec<f64> = (0..k).map(|_| rng.uniform()).collect();
            z.sort_by(|a, b| b.total_cmp(a));
            let rest = 1.0 - z.iter().sum::<f64>();
            if rest >= 0.0 && rest <= (classes - k) as f64 * z[k - 1] {
                let power = |p: i32| z.iter().map(|z| z.powi(p)).sum::<f64>();
                // k! orders of a point share the chamber.
                let f = 2.0 * (power(2) - 2.0 * power(3) + power(2) * power(2))
                    / (1..=k).product::<usize>() as f64;
                sum += f;
                squares += f * f;
            }
        }
        let n = f64::from(draws);
        let (mean, error) = (sum / n, (squares / n - (sum / n).powi(2)).sqrt() / n.sqrt());
        let got = interval::sigma0_squared(classes, k).unwrap();
        assert!(
            (got - mean).abs() < 4.0 * error,
            "{classes} {k}: {got} {mean} {error}"
        );
    }
    assert_eq!(interval::sigma0_squared(3, 3), None);
}

#[test]
fn classes_are_tested_together_and_the_bad_one_is_named() {
    let mut rng = Rng::new(9);
    let o = crate::evaluation::Options::default().tcal;
    let found = classwise(&sample(1000, 4, 0.4, &mut rng), &o).unwrap();
    assert!(found.reject && found.classes[0].reject && found.classes[0].mean_residual > 0.0);
    let found = classwise(&sample(1000, 4, 0.0, &mut rng), &o).unwrap();
    assert!(found.p_value > 0.001 && found.classes.len() == 4);
}
