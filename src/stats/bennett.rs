//! A bound on the p-value of weighted events that have few outcomes, or whose few largest weights
//! carry most of the variance.
//!
//! No formula holds for such sums, and weighted events cannot be drawn. Given scores and weights,
//! the sum S of w·f(z)·U, U = y − z, still has independent terms of mean 0. Its variance v is the
//! sum of (wf)²V, V = z(1−z). A term is at most wf(1−z) where f is above 0, and −wfz where it is
//! below; b is the largest. Whatever the weights, by Bennett (*Probability inequalities for the sum
//! of independent random variables*, 1962; as theorem 2.9 of Boucheron, Lugosi, Massart,
//! *Concentration inequalities*, 2013, has it),
//!
//! ```text
//! P(S ≥ s) ≤ exp(−(v/b²)·h(sb/v))        h(x) = (1 + x)·ln(1 + x) − x
//! ```
//!
//! There are two f: 1 (a shift), and the mean score of the event's cell minus the mean of all
//! scores weighted by variance (a slope). With both signs they make four bounds. The p-value is
//! four times the smallest (Bonferroni), so the level is at most α. In fact it is far below α: only
//! gross errors are found.
//!
//! In a cell, a step up is at most Σw(1−z), and a step down is at most Σwz. Both are at most the
//! largest weight of the cell, which is at most (Σw^k)^(1/k).
//!
//! For vectors ([`of_vectors`]) the p-value is the smallest of all coordinates times their number.
//! Coordinates are the classes of `full`, each against the rest, or the ranks of `top_k`.

use super::levels::Level;
use super::multiclass::level::VectorLevel;

/// The sums of a cell of events.
struct Cell {
    /// Mean score.
    z: f64,
    /// ΣwU.
    u: f64,
    /// Σw²V.
    v: f64,
    /// An upper bound on wz of each event.
    down: f64,
    /// An upper bound on w(1−z) of each event.
    up: f64,
}

/// The bound on the p-value of the events of these cells, in [0, 1]; `None` without variance. S is
/// multiplied by `share`: 1/√φ if outcomes have φ times the variance of independent ones.
pub(super) fn p_value(finest: &Level, share: f64) -> Option<f64> {
    let cells = finest.squares().map(|(c, moments)| {
        let largest = moments.w2.sqrt();
        Cell {
            z: c.z / c.n,
            u: share * c.u,
            v: c.v,
            down: largest.min(c.z),
            up: largest.min(c.n - c.z),
        }
    });
    of_cells(&cells.collect::<Vec<Cell>>())
}

/// The bound on the p-value of the vectors of these cells, in [0, 1]; `None` without variance.
pub(super) fn of_vectors(finest: &VectorLevel) -> Option<f64> {
    let coordinates = finest.cells.first()?.z.len();
    let of = |i: usize| {
        let cells = finest.cells.iter().map(|c| {
            let (largest, z) = (c.w4.sqrt().sqrt(), c.z[i]);
            Cell {
                z: z / c.n,
                u: c.u[i],
                v: c.v[i],
                down: largest.min(z),
                up: largest.min(c.n - z),
            }
        });
        of_cells(&cells.collect::<Vec<Cell>>())
    };
    let least = (0..coordinates).filter_map(of).reduce(f64::min)?;
    Some((coordinates as f64 * least).min(1.0))
}

fn of_cells(cells: &[Cell]) -> Option<f64> {
    let v: f64 = cells.iter().map(|c| c.v).sum();
    let centre = cells.iter().map(|c| c.v * c.z).sum::<f64>() / v;
    let of = |f: &dyn Fn(f64) -> f64| {
        let s: f64 = cells.iter().map(|c| f(c.z) * c.u).sum();
        let v: f64 = cells.iter().map(|c| f(c.z).powi(2) * c.v).sum();
        let step = |c: &Cell| {
            let f = f(c.z);
            f.abs() * if (f > 0.0) == (s > 0.0) { c.up } else { c.down }
        };
        let b = cells.iter().map(step).fold(0.0, f64::max);
        (v > 0.0).then(|| tail(s.abs(), v, b))
    };
    let bounds = [of(&|_| 1.0), of(&|z| z - centre)];
    let least = bounds.into_iter().flatten().reduce(f64::min)?;
    Some((4.0 * least).min(1.0))
}

/// Bennett's bound on P(S ≥ s), for a sum of variance `v` whose terms are at most `b`.
fn tail(s: f64, v: f64, b: f64) -> f64 {
    let x = s * b / v;
    (-(v / (b * b)) * ((1.0 + x) * x.ln_1p() - x)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::{DecideBy, Evaluation, Options, Part, evaluate_weighted};
    use crate::kernel::Vectors;
    use crate::multiclass::sums::Shape;
    use crate::multiclass::{Events, VectorSums, VectorTCal, VectorView, evaluate_sums, tcal};
    use crate::rng::Rng;
    use crate::tolerance::Conclusion;
    use crate::weight::Weight;

    /// Events of scores `score(u)`, with log-normal weights, that happen with probability
    /// `truth(z)`.
    fn judged(
        (seed, n, sigma): (u64, usize, f64),
        score: fn(f64) -> f64,
        truth: fn(f64) -> f64,
        o: &Options,
    ) -> Evaluation {
        let mut rng = Rng::new(seed);
        let one = |_| {
            let z = score(rng.uniform());
            let w = (sigma * rng.normal()).exp();
            (z, rng.uniform() < truth(z), w)
        };
        let all: Vec<(f64, bool, f64)> = (0..n).map(one).collect();
        evaluate_weighted(&all, o).unwrap()
    }

    #[test]
    fn the_bound_is_bennetts() {
        // h(2) = 3 ln 3 − 2.
        let one = (-(3.0 * 3f64.ln() - 2.0) / 4.0).exp();
        assert!((tail(1.0, 1.0, 2.0) - one).abs() < 1e-15);
        // One event of score 0.01 and weight 2 that happened: S = b = 1.98, v = 0.0396.
        let level = Level::from_weighted(&[(0.01, true, 2.0)], 2);
        let p = p_value(&level, 1.0).unwrap();
        assert!((p - 4.0 * tail(1.98, 0.0396, 1.98)).abs() < 1e-9, "{p}");
        let certain = Level::from_weighted(&[(0.0, false, 2.0), (1.0, true, 2.0)], 2);
        assert_eq!(p_value(&certain, 1.0), None);
    }

    #[test]
    fn few_large_weights_do_not_hide_a_gross_error() {
        let o = Options::default();
        for seed in 0..20 {
            let e = judged((seed, 1000, 1.5), |u| u, |z| 1.0 - z, &o);
            assert!(e.bounded && e.reject, "{seed}: {:?}", e.combined);
            assert_eq!(e.combined.decisive, Some(Part::Smooth));
            assert_eq!(e.tolerance.conclusion, Conclusion::Miscalibrated);
            // No other test has a p-value.
            assert_eq!((e.tcal.tested(), e.cox.unwrap().p_value), (None, None));
            assert_eq!(e.spiegelhalter.and_then(|s| s.p_value), None);
        }
    }

    #[test]
    fn calibrated_events_of_few_large_weights_are_undecided_without_promises() {
        let rare = |u: f64| 0.02 * u;
        for (score, n) in [(|u| u) as fn(f64) -> f64, rare]
            .into_iter()
            .zip([500, 5000])
        {
            let (mut bounded, mut rejected) = (0, 0);
            for seed in 0..300 {
                let e = judged((seed, n, 1.6), score, |z| z, &Options::default());
                rejected += u32::from(e.bounded && e.reject);
                if e.bounded && !e.reject {
                    bounded += 1;
                    assert_eq!((e.detectable_ece_l2, e.tolerance.more_events), (None, None));
                    let decided = e.tolerance.conclusion;
                    assert!(decided != Conclusion::Inconclusive, "{decided:?}");
                }
            }
            assert!(bounded > 200 && rejected <= 4, "{rejected} of {bounded}");
        }
    }

    #[test]
    fn few_outcomes_of_near_weights_are_said_to_be_few_and_promise_no_power() {
        // Four of 4000 are expected.
        let weight = |i: u32| f64::from(2 + i % 2);
        let all: Vec<_> = (0..4000)
            .map(|i| (0.001, i % 1000 == 0, weight(i)))
            .collect();
        let e = evaluate_weighted(&all, &Options::default()).unwrap();
        assert!(e.combined.parts.iter().any(|p| p.part == Part::Smooth));
        assert!(e.bounded && e.detectable_ece_l2.is_none());
        assert_eq!(e.tolerance.conclusion, Conclusion::FewOutcomes);
    }

    #[test]
    fn tcal_alone_has_no_p_value_there() {
        let o = Options {
            decide_by: DecideBy::Tcal,
            ..Options::default()
        };
        let e = judged((1, 1000, 1.5), |u| u, |z| 1.0 - z, &o);
        assert!(e.bounded && !e.reject);
        assert_eq!((e.deciding_p_value(), e.detectable_ece_l2), (None, None));
    }

    /// Vectors of three classes with log-normal weights, Dirichlet(½, ½, ½). Class i happens with
    /// the probability of class i + `turned` modulo 3.
    fn vectors((seed, n, sigma): (u64, usize, f64), turned: usize) -> (Vectors, Vec<f64>) {
        let mut rng = Rng::new(seed);
        let (mut all, mut weights) = (Vectors::new(3), Vec::new());
        for _ in 0..n {
            let squares: [f64; 3] = std::array::from_fn(|_| rng.normal().powi(2));
            let sum: f64 = squares.iter().sum();
            let p = squares.map(|s| s / sum);
            let (u, at) = (rng.uniform(), |i: usize| p[(i + turned) % 3]);
            let class = u32::from(u > at(0)) + u32::from(u > at(0) + at(1));
            all.push(&p, class).unwrap();
            weights.push((sigma * rng.normal()).exp());
        }
        (all, weights)
    }

    fn tested(law: (u64, usize, f64), turned: usize, view: VectorView) -> VectorTCal {
        let (all, weights) = vectors(law, turned);
        tcal(&Events::weighted(&all, view, &weights), 0.05)
    }

    #[test]
    fn few_large_weights_do_not_hide_a_gross_error_of_vectors() {
        for view in [VectorView::Full, VectorView::TopK(2)] {
            for seed in 0..12 {
                let t = tested((seed, 1000, 1.5), 1, view);
                assert!(t.bounded && t.levels.iter().all(|l| l.left_out), "{seed}");
                assert!(t.reject, "{seed}: {}", t.p_value);
            }
        }
    }

    #[test]
    fn what_cannot_happen_is_rejected_without_a_bound() {
        let mut all = Vectors::new(3);
        for (p, class) in [
            ([1.0, 0.0, 0.0], 1),
            ([1.0, 0.0, 0.0], 1),
            ([0.6, 0.2, 0.2], 0),
            ([0.6, 0.3, 0.1], 0),
        ] {
            all.push(&p, class).unwrap();
        }
        let events = Events::weighted(&all, VectorView::Full, &[1.0, 3.0, 1.0, 1.0]);
        let t = tcal(&events, 0.05);
        assert!(t.reject && !t.bounded && t.levels.iter().any(|l| l.left_out));
        assert_eq!(t.p_value, 0.0);
    }

    #[test]
    fn calibrated_vectors_of_few_large_weights_are_not_rejected() {
        for view in [VectorView::Full, VectorView::TopK(2)] {
            let law = |seed| tested((seed, 300, 1.5), 0, view);
            let bounded: Vec<VectorTCal> = (0..300).map(law).filter(|t| t.bounded).collect();
            let rejected = bounded.iter().filter(|t| t.reject).count();
            assert!(
                bounded.len() > 200 && rejected <= 4,
                "{rejected} of {}",
                bounded.len()
            );
        }
    }

    #[test]
    fn a_window_has_the_bound_of_the_file() {
        let (all, weights) = vectors((3, 1000, 1.5), 1);
        let mut sums = VectorSums::new(Shape {
            classes: 3,
            view: VectorView::TopK(2),
            weighted: true,
            cells_max: 4096,
        })
        .unwrap();
        for (i, w) in weights.iter().enumerate() {
            let w = Weight::new((w * 65536.0).round() / 65536.0).ok();
            assert!(sums.observe(all.row(i), 1.0, all.outcome(i), w));
        }
        let e = evaluate_sums(&sums, 0.05, 0.9).unwrap();
        assert!(e.tcal.bounded && e.tcal.reject, "{:?}", e.tcal);
    }

    #[test]
    fn what_steps_one_way_only_is_bounded_by_these_steps() {
        // Σwy is 0 where Σwz = 10 was expected; no step down is above 1.
        let cell = |z, u, v, down, up| Cell { z, u, v, down, up };
        let p = of_cells(&[cell(0.01, -10.0, 9.9, 1.0, 9.0)]).unwrap();
        assert!((p - 4.0 * tail(10.0, 9.9, 1.0)).abs() < 1e-12, "{p}");
        // Slopes −0.2 and 0.2: the first cell gives 1.2 by steps down of at most 0.2.
        for sign in [1.0, -1.0] {
            let (down, up) = if sign > 0.0 { (1.0, 9.0) } else { (9.0, 1.0) };
            let first = cell(0.2, -6.0 * sign, 1.0, down, up);
            let p = of_cells(&[first, cell(0.6, 0.0, 1.0, up, down)]);
            let by_hand = 4.0 * tail(1.2, 0.08, 0.2);
            assert!((p.unwrap() - by_hand).abs() < 1e-12, "{p:?} {by_hand}");
        }
        // Rare events that never happen, with log-normal weights.
        let rare = |u: f64| 0.02 * u;
        let one = |seed| judged((seed, 4000, 1.2), rare, |_| 0.0, &Options::default());
        let found: Vec<Evaluation> = (0..20).map(one).filter(|e| e.bounded).collect();
        let rejected = found.iter().filter(|e| e.reject).count();
        assert!(4 * rejected > found.len(), "{rejected} of {}", found.len());
    }
}
