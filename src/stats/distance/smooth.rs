//! The smooth calibration error: how much a Lipschitz bettor would win.
//!
//! smCE = sup { E[(y − z) w(z)] : |w| ≤ 1, w 1-Lipschitz } (Kakade, Foster 2008; Błasiok, Gopalan,
//! Hu, Nakkiran 2023, section 7). It is a sound measure of distance from calibration: half the
//! lower distance ≤ smCE ≤ twice the lower distance (Theorem 7.3), and both factors are needed; it
//! is small exactly when a small change of the scores makes them true. The binned errors have no
//! such property: they jump when a score crosses an edge.
//!
//! On sorted distinct scores z_1 < … < z_m with residual masses R_k = ΣU/n the supremum is a linear
//! programme in w_k = w(z_k), |w_k| ≤ 1, |w_{k+1} − w_k| ≤ z_{k+1} − z_k (neighbours suffice,
//! Theorem 7.14). It is solved exactly, without a solver: let F_k(w) be the best value of the first
//! k terms with w_k = w. F_k is concave and piecewise linear on [−1, 1]; adding R_k·w shifts its
//! slope, stepping over a gap d is a sup-convolution with [−d, d], which moves the part left of the
//! maximum by −d and the part right of it by +d. So F is kept as two queues of breakpoints around
//! its maximum, each with one offset for all (the "slope trick"); a step costs the breakpoints it
//! moves. A walk back through the recorded maxima gives w and the value ΣR_k w_k, free of the
//! queues' rounding.
//!
//! Always: 0 ≤ smCE ≤ 1; smCE ≥ |mean residual| (w ≡ ±1). Cost: O(m) memory, O(m) time in practice
//! (each breakpoint is moved rarely), O(m²) at worst. Ties are pooled by [`Points`]; scores of
//! exactly 0 and 1 are ordinary. Error from cells: at most [`Points::spread`], because moving a
//! residual by t changes its term by |U|·t at most.

use super::points::Points;
use std::collections::VecDeque;

/// smCE of the points, in [0, 1]; off that of the scores by at most [`Points::spread`].
///
/// One event z = 0.3, y = 1: w ≡ 1 wins 0.7. Two events, 0.3 with y = 1 and 0.5 with y = 0: R =
/// 0.35 and −0.25, w = (1, 0.8), smCE = 0.15.
pub fn smooth(points: &Points) -> f64 {
    let n = points.n();
    let scores: Vec<f64> = points.atoms().iter().map(|a| a.z).collect();
    let masses: Vec<f64> = points.atoms().iter().map(|a| a.u / n).collect();
    let witness = witness(&scores, &masses);
    masses.iter().zip(&witness).map(|(r, w)| r * w).sum()
}

/// The maximising w at the given scores (strictly ascending), for residual masses of any size.
pub fn witness(scores: &[f64], masses: &[f64]) -> Vec<f64> {
    let mut value = Concave::new();
    let mut tops = Vec::with_capacity(scores.len());
    for (k, &mass) in masses.iter().enumerate() {
        value.tilt(mass);
        tops.push(value.top());
        if let Some(next) = scores.get(k + 1) {
            value.widen(next - scores[k]);
        }
    }
    let mut w = vec![0.0; scores.len()];
    for k in (0..scores.len()).rev() {
        let (low, high) = tops[k];
        w[k] = match w.get(k + 1) {
            None => 0f64.max(low).min(high),
            Some(&after) => {
                let d = scores[k + 1] - scores[k];
                after.max(low).min(high).clamp(after - d, after + d)
            }
        };
    }
    w
}

/// A concave piecewise linear function on [−1, 1], by its breakpoints on either side of its
/// maximum, each (position less the side's offset, drop of slope). The ends ±1 are breakpoints of
/// infinite drop.
struct Concave {
    left: VecDeque<(f64, f64)>,
    right: VecDeque<(f64, f64)>,
    left_offset: f64,
    right_offset: f64,
}

impl Concave {
    /// Zero on [−1, 1].
    fn new() -> Concave {
        Concave {
            left: VecDeque::from([(-1.0, f64::INFINITY)]),
            right: VecDeque::from([(1.0, f64::INFINITY)]),
            left_offset: 0.0,
            right_offset: 0.0,
        }
    }

    /// Adds slope·w: the maximum moves over breakpoints until their drops have used the slope up.
    fn tilt(&mut self, slope: f64) {
        let mut rest = slope.abs();
        let rightwards = slope > 0.0;
        while rest > 0.0 {
            let near = if rightwards {
                self.right.front_mut()
            } else {
                self.left.back_mut()
            };
            // The end of infinite drop is never used up, so there is always a breakpoint.
            let Some((position, drop)) = near else { return };
            let moved = drop.min(rest);
            let at = *position;
            let used = *drop <= rest;
            *drop -= moved;
            rest -= moved;
            if rightwards {
                if used {
                    self.right.pop_front();
                }
                let at = at + self.right_offset - self.left_offset;
                self.left.push_back((at, moved));
            } else {
                if used {
                    self.left.pop_back();
                }
                let at = at + self.left_offset - self.right_offset;
                self.right.push_front((at, moved));
            }
        }
    }

    /// Between which arguments the maximum is taken.
    fn top(&self) -> (f64, f64) {
        let low = self.left.back().map_or(-1.0, |b| b.0 + self.left_offset);
        let high = self.right.front().map_or(1.0, |b| b.0 + self.right_offset);
        (low, high)
    }

    /// Sup-convolution with [−d, d], cut to [−1, 1] again.
    fn widen(&mut self, d: f64) {
        self.left_offset -= d;
        self.right_offset += d;
        let (left, right) = (self.left_offset, self.right_offset);
        while self.left.front().is_some_and(|b| b.0 + left <= -1.0) {
            self.left.pop_front();
        }
        self.left.push_front((-1.0 - left, f64::INFINITY));
        while self.right.back().is_some_and(|b| b.0 + right >= 1.0) {
            self.right.pop_back();
        }
        self.right.push_back((1.0 - right, f64::INFINITY));
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
    fn the_slope_trick_finds_what_a_search_over_a_lattice_finds() {
        let mut rng = crate::rng::Rng::new(5);
        for _ in 0..200 {
            let m = 1 + (rng.uniform() * 20.0) as usize;
            let mut at: Vec<i32> = (0..m).map(|_| (rng.uniform() * 40.0) as i32).collect();
            at.sort_unstable();
            at.dedup();
            let scores: Vec<f64> = at.iter().map(|&i| f64::from(i) / 40.0).collect();
            let masses: Vec<f64> = at.iter().map(|_| rng.uniform() - 0.5).collect();
            let w = witness(&scores, &masses);
            let value: f64 = masses.iter().zip(&w).map(|(r, w)| r * w).sum();
            let want = lattice(&scores, &masses, 1.0 / 40.0);
            assert!((value - want).abs() < 1e-12, "{value} {want}");
            let lipschitz =
                (1..w.len()).all(|k| (w[k] - w[k - 1]).abs() <= scores[k] - scores[k - 1] + 1e-12);
            assert!(lipschitz && w.iter().all(|w| w.abs() <= 1.0 + 1e-12));
        }
    }
}
