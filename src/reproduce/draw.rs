//! The distributions that the papers draw from.

use crate::stats::rng::Rng;

/// Gamma(shape, 1), shape > 0, by Marsaglia and Tsang (2000). Shapes below 1 multiply a power of a
/// uniform.
pub fn gamma(rng: &mut Rng, shape: f64) -> f64 {
    if shape < 1.0 {
        let up = gamma(rng, shape + 1.0);
        return up * (1.0 - rng.uniform()).powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = rng.normal();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && (1.0 - rng.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// Beta(a, b).
pub fn beta(rng: &mut Rng, a: f64, b: f64) -> f64 {
    let (x, y) = (gamma(rng, a), gamma(rng, b));
    x / (x + y)
}

/// Fills `row` from the symmetric Dirichlet(α) distribution.
pub fn dirichlet(rng: &mut Rng, alpha: f64, row: &mut [f64]) {
    loop {
        row.iter_mut().for_each(|p| *p = gamma(rng, alpha));
        let sum: f64 = row.iter().sum();
        // With a small α all values can round to 0: draw again.
        if sum > 0.0 {
            row.iter_mut().for_each(|p| *p /= sum);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moments_of_each_distribution_are_right() {
        let mut rng = Rng::new(3);
        let n = 20_000;
        for shape in [0.1, 0.5, 5.0] {
            let mean = (0..n).map(|_| gamma(&mut rng, shape)).sum::<f64>() / f64::from(n);
            assert!(
                (mean - shape).abs() < 5.0 * (shape / f64::from(n)).sqrt(),
                "{shape} {mean}"
            );
        }
        let mean = (0..n).map(|_| beta(&mut rng, 5.0, 0.5)).sum::<f64>() / f64::from(n);
        assert!((mean - 5.0 / 5.5).abs() < 0.005);
    }
}
