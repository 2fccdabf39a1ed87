//! The demo's source of chance: what its models need beside the generator of [`stats::rng`](crate::stats::rng).
//!
//! The same seed makes the same events with whatever version of whatever crate.

use crate::stats::rng::Rng;

/// A generator of pseudo-random numbers, given by its seed alone.
#[derive(Debug, Clone)]
pub struct Chance {
    rng: Rng,
}

impl Chance {
    /// The generator of that seed; any seed will do.
    pub fn new(seed: u64) -> Chance {
        Chance {
            rng: Rng::new(seed),
        }
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        self.rng.uniform()
    }

    /// True with that probability.
    pub fn coin(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Normal with that mean and standard deviation (Box and Muller; the second value is not kept,
    /// so that the number of bits used never depends on history).
    pub fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let turn = std::f64::consts::TAU * self.uniform();
        mean + sd * radius * turn.cos()
    }

    /// An index drawn with those probabilities, which sum to 1.
    pub fn choose(&mut self, probabilities: &[f64]) -> usize {
        let mut left = self.uniform();
        for (index, p) in probabilities.iter().enumerate() {
            left -= p;
            if left < 0.0 {
                return index;
            }
        }
        // Rounding may leave a sliver at the end.
        probabilities.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_numbers() {
        let (mut a, mut b) = (Chance::new(7), Chance::new(7));
        let same = (0..100).all(|_| a.uniform() == b.uniform());
        assert!(same && Chance::new(8).uniform() != Chance::new(7).uniform());
    }

    #[test]
    fn normals_have_their_mean_and_variance() {
        let mut chance = Chance::new(1);
        let draws: Vec<f64> = (0..40_000).map(|_| chance.normal(2.0, 3.0)).collect();
        let mean = draws.iter().sum::<f64>() / 40_000.0;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 40_000.0;
        assert!((mean - 2.0).abs() < 0.06, "{mean}");
        assert!((variance - 9.0).abs() < 0.3, "{variance}");
    }
}
