//! The random draws of the demo, from the generator of [`stats::rng`](crate::stats::rng).
//!
//! The same seed gives the same events with every version of every dependency.

use crate::stats::rng::Rng;

/// A generator of pseudo-random numbers, given by its seed alone.
#[derive(Debug, Clone)]
pub struct Draws {
    rng: Rng,
}

impl Draws {
    /// The generator with this seed; every seed is valid.
    pub fn new(seed: u64) -> Draws {
        Draws {
            rng: Rng::new(seed),
        }
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        self.rng.uniform()
    }

    /// True with this probability.
    pub fn coin(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Normal with this mean and standard deviation, by Box and Muller. The second value is
    /// discarded, so that each call uses the same number of bits.
    pub fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let turn = std::f64::consts::TAU * self.uniform();
        mean + sd * radius * turn.cos()
    }

    /// An index drawn with these probabilities, which sum to 1.
    pub fn choose(&mut self, probabilities: &[f64]) -> usize {
        let mut left = self.uniform();
        for (index, p) in probabilities.iter().enumerate() {
            left -= p;
            if left < 0.0 {
                return index;
            }
        }
        // Rounding may leave a remainder.
        probabilities.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (mut a, mut b) = (Draws::new(7), Draws::new(7));
        let same = (0..100).all(|_| a.uniform() == b.uniform());
        assert!(same && Draws::new(8).uniform() != Draws::new(7).uniform());
    }

    #[test]
    fn normals_have_their_mean_and_variance() {
        let mut draws = Draws::new(1);
        let values: Vec<f64> = (0..40_000).map(|_| draws.normal(2.0, 3.0)).collect();
        let mean = values.iter().sum::<f64>() / 40_000.0;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 40_000.0;
        assert!((mean - 2.0).abs() < 0.06, "{mean}");
        assert!((variance - 9.0).abs() < 0.3, "{variance}");
    }
}
