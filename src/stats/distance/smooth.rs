//! The smooth calibration error: how much a Lipschitz bettor would win.
//!
//! smCE = sup { E[(y − z) w(z)] : |w| ≤ 1, w 1-Lipschitz } (Kakade, Foster 2008; Błasiok, Gopalan,
//! Hu, Nakkiran 2023, section 7). It is a sound measure of distance from calibration: half the
//! lower distance ≤ smCE ≤ twice the lower distance (Theorem 7.3), and both factors are needed; it
//! is small exactly when a small change of the scores makes them true. The binned errors have no
//! such property: they jump when a score crosses an edge.
//!
//! On sorted distinct scores z_1 < … < z_m with residual masses R_k = ΣU/n the supremum is a linear
//! programme in w_k = w(z_k), |w_k| ≤ 1, |w_{k+1} − w_k| ≤ d_k = z_{k+1} − z_k (neighbours suffice,
//! Theorem 7.14). Its dual moves mass at a cost equal to the distance, or removes mass at cost one.
//! No distance exceeds one, so removing a positive and a negative mass, at cost two, is never
//! cheaper than moving one to the other. Therefore only the sum of all masses is removed, and it
//! has one sign. With S_k = R_1 + … + R_k and, by symmetry, S_m ≥ 0, the remaining problem is
//! (derived)
//!
//! ```text
//! smCE = S_m + min Σ_{k<m} d_k |S_k − G_k|   over G that never fall, from 0 to S_m
//! ```
//!
//! a weighted isotonic regression by absolute differences: G_k is the mass that was removed up to
//! z_k. It is solved exactly, without a solver. Let f_k(x) be the least cost of the first k terms
//! with G_k ≤ x. It is convex, piecewise linear and falls to its minimum, so a heap of its
//! breakpoints, the largest on top, represents it. A term adds the slope d_k on the right of S_k.
//! The rising part is then cut off again: the drops of the largest breakpoints, d_k in all.
//!
//! Always: 0 ≤ smCE ≤ 1 up to rounding; smCE ≥ |mean residual|. Cost: O(m log m), O(m) memory. Ties
//! are pooled by [`Points`]; scores of exactly 0 and 1 are ordinary. Error from cells: at most
//! [`Points::spread`], because moving a residual by t changes its term by |U|·t at most.

use super::points::Points;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// smCE of the points, in [0, 1]; off that of the scores by at most [`Points::spread`].
///
/// One event z = 0.3, y = 1: w ≡ 1 wins 0.7. Two events, 0.3 with y = 1 and 0.5 with y = 0: R =
/// 0.35 and −0.25, w = (1, 0.8), smCE = 0.15.
pub fn smooth(points: &Points) -> f64 {
    let n = points.n();
    supremum(points.atoms().iter().map(|a| (a.z, a.u / n)))
}

/// The supremum for masses of any size at strictly ascending scores of [0, 1].
fn supremum(masses: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let total: f64 = masses.clone().map(|(_, mass)| mass).sum();
    let sign = if total < 0.0 { -1.0 } else { 1.0 };
    let total = total.abs();
    let (mut cost, mut sum, mut function) = (0.0, 0.0, Falling::default());
    let next = masses.clone().skip(1);
    for ((z, mass), (after, _)) in masses.zip(next) {
        sum += sign * mass;
        // G lies in [0, S_m]; beyond it, the way to its end is paid whatever G is.
        let inside = sum.max(0.0).min(total);
        let d = after - z;
        cost += d * (sum - inside).abs() + function.add(inside, d);
    }
    total + cost
}

/// A convex, piecewise linear function on [0, ∞) that falls to its minimum, by its breakpoints:
/// each an argument and a drop of the slope. Both are not negative, and such floats are ordered as
/// their bits are.
#[derive(Default)]
struct Falling(BinaryHeap<(u64, u64)>);

impl Falling {
    /// Adds d|x − at| and cuts off the rising part; returns by how much the minimum grew.
    fn add(&mut self, at: f64, d: f64) -> f64 {
        let (mut rest, mut grown) = (d, 0.0);
        while rest > 0.0
            && let Some(mut top) = self.0.peek_mut()
        {
            let (argument, drop) = (f64::from_bits(top.0), f64::from_bits(top.1));
            if argument <= at {
                break;
            }
            let cut = drop.min(rest);
            grown += cut * (argument - at);
            rest -= cut;
            if cut < drop {
                top.1 = (drop - cut).to_bits();
            } else {
                PeekMut::pop(top);
            }
        }
        // What lies at 0 is never cut at a price. Two drops of d lie at `at`, less what was not cut
        // above.
        if at > 0.0 {
            self.0.push((at.to_bits(), (2.0 * d - rest).to_bits()));
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sample: &[(f64, bool)]) -> f64 {
        Points::from_scores(sample).map_or(f64::NAN, |p| smooth(&p))
    }

    #[test]
    fn one_and_two_events_give_the_numbers_of_the_documentation() {
        assert!((of(&[(0.3, true)]) - 0.7).abs() < 1e-15);
        assert!((of(&[(0.3, true), (0.5, false)]) - 0.15).abs() < 1e-15);
        assert_eq!(of(&[(1.0, true), (0.0, false)]), 0.0);
    }

    /// Brute force over a lattice of w when all gaps are multiples of its step.
    fn lattice(scores: &[f64], masses: &[f64], step: f64) -> f64 {
        let size = (2.0 / step).round() as usize + 1;
        let mut best = vec![0.0; size];
        for (k, mass) in masses.iter().enumerate() {
            if k > 0 {
                let reach = ((scores[k] - scores[k - 1]) / step).round() as usize;
                let before = best.clone();
                for (i, b) in best.iter_mut().enumerate() {
                    let span = i.saturating_sub(reach)..=(i + reach).min(size - 1);
                    *b = before[span].iter().fold(f64::MIN, |a, &x| a.max(x));
                }
            }
            for (i, b) in best.iter_mut().enumerate() {
                *b += mass * (i as f64 * step - 1.0);
            }
        }
        best.iter().fold(f64::MIN, |a, &x| a.max(x))
    }

    #[test]
    fn the_regression_finds_what_a_search_over_a_lattice_finds() {
        let mut rng = crate::rng::Rng::new(5);
        for _ in 0..200 {
            let m = 1 + (rng.uniform() * 20.0) as usize;
            let mut at: Vec<i32> = (0..m).map(|_| (rng.uniform() * 40.0) as i32).collect();
            at.sort_unstable();
            at.dedup();
            let scores: Vec<f64> = at.iter().map(|&i| f64::from(i) / 40.0).collect();
            let masses: Vec<f64> = at.iter().map(|_| rng.uniform() - 0.5).collect();
            let value = supremum(scores.iter().copied().zip(masses.iter().copied()));
            let want = lattice(&scores, &masses, 1.0 / 40.0);
            assert!((value - want).abs() < 1e-12, "{value} {want}");
        }
    }
}
