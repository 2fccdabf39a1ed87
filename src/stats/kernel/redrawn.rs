//! The law of SKCE_b from redrawn outcomes, where few of them are left to chance.
//!
//! With rare outcomes the null law has steps, one for each outcome that happens, and no gamma law
//! fits. With 200 events that each have a chance of 0.0006, the gamma law rejects one calibrated
//! sample in nine at 5 %. So outcomes are drawn from the predictions. In a draw nearly all events
//! get the class that their prediction makes most likely, so the double sum is not computed again:
//! with δ⁰ the residuals of those classes, D the events that got another one, and Δ_i = e_y −
//! e_most,
//!
//! ```text
//! Σ_ij φ_ij δ_i·δ_j = Σ_ij φ_ij δ⁰_i·δ⁰_j + 2 Σ_{i∈D} Δ_i·Σ_j φ_ij δ⁰_j + Σ_{i,j∈D} φ_ij Δ_i·Δ_j
//! ```
//!
//! Weights w make φ_ij to w_i w_j φ_ij. Cost: n²K once, and n + |D|² kernel values a draw.

use super::phi::Kernel;
use super::vectors::Vectors;
use crate::conditional::rank::reaches;
use crate::rng::Rng;

/// Fewest draws; there are more if a p-value needs them to reach half of α.
const REPLICATES_MIN: f64 = 1999.0;

/// Most draws; so nothing is rejected at an α below 10⁻⁵.
const REPLICATES_MAX: f64 = 99_999.0;

/// A sample whose outcomes are drawn again from its predictions.
pub struct Redrawn<'a> {
    sample: &'a Vectors,
    weights: &'a [f64],
    kernel: Kernel,
    /// The likeliest class of each event by its prediction.
    most: Vec<u32>,
    /// Σ_j w_j φ_ij δ⁰_j, K numbers an event.
    pulls: Vec<f64>,
    /// Σ_ij w_i w_j φ_ij δ⁰_i·δ⁰_j.
    base: f64,
}

impl<'a> Redrawn<'a> {
    /// A sample with one weight an event; all 1 where events are not weighted.
    pub fn new(sample: &'a Vectors, weights: &'a [f64], kernel: Kernel) -> Redrawn<'a> {
        let k = sample.classes();
        let most: Vec<u32> = (0..sample.len()).map(|i| largest(sample.row(i))).collect();
        let mut pulls = vec![0.0; sample.len() * k];
        let mut base = 0.0;
        for (i, pull) in pulls.chunks_exact_mut(k).enumerate() {
            for (j, &w) in weights.iter().enumerate() {
                let by = w * kernel.value(sample.row(i), sample.row(j));
                pull.iter_mut()
                    .zip(sample.row(j))
                    .for_each(|(sum, g)| *sum -= by * g);
                pull[most[j] as usize] += by;
            }
            let own: f64 = pull.iter().zip(sample.row(i)).map(|(p, g)| p * g).sum();
            base += weights[i] * (pull[most[i] as usize] - own);
        }
        Redrawn {
            sample,
            weights,
            kernel,
            most,
            pulls,
            base,
        }
    }

    /// Upper p-value of the sample's own outcomes among drawn ones, (1 + #{T* ≥ T})/(1 + R): valid
    /// at any n. The same seed gives the same p-value.
    pub fn p_value(&self, alpha: f64, seed: u64) -> f64 {
        let replicates = (2.0 / alpha).ceil().clamp(REPLICATES_MIN, REPLICATES_MAX);
        let own = |i: usize| self.sample.outcome(i);
        let others = (0..self.sample.len()).filter(|&i| own(i) != self.most[i]);
        let observed = self.total(&others.map(|i| (i, own(i))).collect::<Vec<_>>());
        let (mut rng, mut above, mut drawn) = (Rng::new(seed), 0.0, Vec::new());
        for _ in 0..replicates as u32 {
            drawn.clear();
            drawn
                .extend((0..self.sample.len()).filter_map(|i| Some((i, self.other(i, &mut rng)?))));
            if reaches(self.total(&drawn), observed) {
                above += 1.0;
            }
        }
        (1.0 + above) / (1.0 + replicates)
    }

    /// A class drawn from the prediction of event `i`, unless it is the one predicted most.
    fn other(&self, i: usize, rng: &mut Rng) -> Option<u32> {
        let (row, most) = (self.sample.row(i), self.most[i]);
        let mut rest = rng.uniform() - row[most as usize];
        if rest < 0.0 {
            return None;
        }
        for (class, p) in (0..).zip(row).filter(|(class, _)| *class != most) {
            if rest < *p {
                return Some(class);
            }
            rest -= p;
        }
        // What rounding leaves.
        None
    }

    /// n²·SKCE_b where these events have these classes and all others the one predicted most.
    fn total(&self, others: &[(usize, u32)]) -> f64 {
        let k = self.sample.classes();
        let mut sum = self.base;
        for (at, &(i, y)) in others.iter().enumerate() {
            let (pull, m) = (&self.pulls[i * k..(i + 1) * k], self.most[i]);
            sum += 2.0 * self.weights[i] * (pull[y as usize] - pull[m as usize]);
            sum += 2.0 * self.weights[i] * self.weights[i];
            for &(j, z) in &others[..at] {
                let l = self.most[j];
                let same = |a, b| f64::from(u8::from(a == b));
                let product = same(y, z) - same(y, l) - same(m, z) + same(m, l);
                if product != 0.0 {
                    let phi = self.kernel.value(self.sample.row(i), self.sample.row(j));
                    sum += 2.0 * self.weights[i] * self.weights[j] * phi * product;
                }
            }
        }
        sum
    }
}

/// The first of the largest entries.
fn largest(row: &[f64]) -> u32 {
    let mut at = 0;
    for (class, p) in row.iter().enumerate() {
        if *p > row[at] {
            at = class;
        }
    }
    at as u32
}

#[cfg(test)]
mod tests {
    use super::super::conditional::{self, draw};
    use super::super::skce::Quadratic;
    use super::super::tests::redrawn_p_value;
    use super::*;
    use crate::distance::laplace::gamma_p_value;

    const KERNEL: Kernel = Kernel::TotalVariation { nu: 0.4 };

    /// Events of `k` classes, all but the last with a chance of about `p`/(k − 1).
    fn rare(rng: &mut Rng, n: usize, k: usize, p: f64, times: f64) -> Vectors {
        let mut all = Vectors::new(k);
        for _ in 0..n {
            let each = 2.0 * rng.uniform() * p / (k - 1) as f64;
            let row = |each: f64| {
                let mut row = vec![each; k];
                row[k - 1] = 1.0 - each * (k - 1) as f64;
                row
            };
            let y = draw(&row(times * each), rng.uniform());
            all.push(&row(each), y).unwrap();
        }
        all
    }

    #[test]
    fn the_short_sum_is_the_double_sum() {
        let mut rng = Rng::new(3);
        for k in [2, 5] {
            let all = rare(&mut rng, 40, k, 0.3, 1.0);
            let weights: Vec<f64> = (0..40).map(|_| 0.2 + rng.uniform()).collect();
            let ones = [1.0; 40];
            for (w, q) in [
                (&weights[..], Quadratic::weighted(&all, &weights, KERNEL)),
                (&ones[..], Quadratic::of(&all, KERNEL)),
            ] {
                let redrawn = Redrawn::new(&all, w, KERNEL);
                let others: Vec<(usize, u32)> = (0..40)
                    .map(|i| (i, all.outcome(i)))
                    .filter(|(i, y)| redrawn.most[*i] != *y)
                    .collect();
                assert!(others.len() > 5);
                let want = q.off + q.diagonal;
                assert!((redrawn.total(&others) - want).abs() < 1e-9 * want.abs().max(1.0));
            }
        }
    }

    #[test]
    fn p_values_are_those_of_whole_redrawn_samples() {
        let mut rng = Rng::new(4);
        for _ in 0..5 {
            let all = rare(&mut rng, 60, 3, 0.05, 2.0);
            let short = Redrawn::new(&all, &[1.0; 60], KERNEL).p_value(0.05, 1);
            let whole = redrawn_p_value(&all, 2000, 2, |v| {
                // To nine digits, so that equal sums are ties.
                (Quadratic::of(v, KERNEL).biased() * 1e9).round()
            });
            assert!((short - whole).abs() < 0.05, "{short} {whole}");
        }
    }

    /// Share of samples that the gamma law and the test reject at 5 %.
    fn rejected(sets: u32, n: usize, k: usize, p: f64, times: f64) -> [f64; 2] {
        let mut rng = Rng::new(5);
        let mut hits = [0u32; 2];
        for seed in 0..u64::from(sets) {
            let all = rare(&mut rng, n, k, p, times);
            let q = Quadratic::of(&all, KERNEL);
            let (mean, variance) = conditional::biased_moments(&q);
            let gamma = gamma_p_value(q.off + q.diagonal, mean, variance).unwrap();
            let drawn = Redrawn::new(&all, &vec![1.0; n], KERNEL).p_value(0.05, seed);
            for (hits, p) in hits.iter_mut().zip([gamma, drawn]) {
                *hits += u32::from(p <= 0.05);
            }
        }
        hits.map(|h| f64::from(h) / f64::from(sets))
    }

    #[test]
    fn calibrated_rare_outcomes_are_rejected_as_often_as_asked_and_too_many_are_found() {
        for k in [2, 10] {
            let [gamma, drawn] = rejected(600, 200, k, 6e-4, 1.0);
            // Four binomial errors of .05.
            assert!(gamma > 0.09 && drawn < 0.086, "{k} {gamma} {drawn}");
            let [_, found] = rejected(100, 200, k, 0.02, 3.0);
            assert!(found > 0.8, "{k} {found}");
        }
    }
}
