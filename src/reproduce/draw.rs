//! The distributions that the papers draw from.

use crate::stats::levels::{Level, LevelCell};
use crate::stats::rng::Rng;

/// Counts events in `m` equal cells, the last one closed, without sorting them. The level has what
/// its estimators read, cell by cell in ascending order.
pub fn level(events: impl Iterator<Item = (f64, bool)>, m: u64) -> Level {
    let mut cells = vec![LevelCell::default(); m as usize];
    for (z, y) in events {
        let cell = &mut cells[((z * m as f64) as usize).min(m as usize - 1)];
        let y = f64::from(u8::from(y));
        let (u, v) = (y - z, z * (1.0 - z));
        cell.n += 1.0;
        cell.count += 1.0;
        cell.y += y;
        cell.z += z;
        cell.u += u;
        cell.u2 += u * u;
        cell.v += v;
        cell.v2 += v * v;
    }
    let numbered = (0..).zip(cells).filter(|(_, c)| c.n > 0.0);
    Level {
        cells: m,
        occupied: numbered
            .map(|(index, c)| LevelCell { index, ..c })
            .collect(),
        ..Level::default()
    }
}

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
        // With a small α all values can round to 0; then draw again.
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
    fn cells_without_sorting_have_the_estimates_of_sorted_ones() {
        use crate::stats::estimator::{debiased, plug_in};
        let mut rng = Rng::new(5);
        let sample: Vec<_> = (0..500)
            .map(|_| (rng.uniform(), rng.uniform() < 0.3))
            .collect();
        let (got, want) = (
            level(sample.iter().copied(), 37),
            Level::from_scores(&sample, 37),
        );
        assert!((debiased(&got) - debiased(&want)).abs() < 1e-14);
        assert!((plug_in(&got) - plug_in(&want)).abs() < 1e-14);
        assert_eq!(got.occupied.len(), want.occupied.len());
    }

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
