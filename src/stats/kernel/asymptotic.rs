//! Tests of calibration by limit laws: of block means, and of the quadratic form by resampling.
//!
//! Widmann, Lindsten, Zachariah (2019), section 5 and appendix G. The linear and block estimators
//! are means of independent terms, so z = √L·mean/σ̂ is normal in the limit; with few blocks it is
//! not: at n = 8 it gave p = 1.7·10⁻⁷ where the exact conditional p-value is 0.52. The quadratic
//! estimator is degenerate under the null; its limit Σλ(Z² − 1) is resampled by Arcones and Giné's
//! bootstrap.
//!
//! The published p-values of the linear test divide by L, the current program by L − 1; `lost`
//! chooses. Theorem G.1 writes the variance ζ₁ off the null with E[e_Y − g | g] in its first
//! factor; it needs e_Y − g itself, else the label noise is left out.

use super::phi::Kernel;
use super::skce::{Blocks, pair};
use super::vectors::Vectors;
use crate::null::normal_survival;
use crate::rng::Rng;

/// z and upper p-value of the blocks' mean, σ̂ with L − `lost` degrees of freedom; `None` where σ̂
/// is 0 or undefined.
pub fn block_test(blocks: &Blocks, lost: f64) -> Option<(f64, f64)> {
    let z = blocks.count.sqrt() * blocks.estimate()? / blocks.deviation(lost)?;
    Some((z, normal_survival(z)))
}

/// The n×n matrix of h, for the bootstrap: 8n² bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    n: usize,
    h: Vec<f64>,
    rows: Vec<f64>,
    total: f64,
    trace: f64,
}

impl Matrix {
    /// All pairs of the sample.
    pub fn of(sample: &Vectors, kernel: Kernel) -> Matrix {
        let n = sample.len();
        let mut h = vec![0.0; n * n];
        for i in 0..n {
            let this = (sample.row(i), sample.outcome(i));
            for j in 0..=i {
                let value = pair(kernel, this, (sample.row(j), sample.outcome(j))).h;
                h[i * n + j] = value;
                h[j * n + i] = value;
            }
        }
        let rows: Vec<f64> = h.chunks_exact(n.max(1)).map(|r| r.iter().sum()).collect();
        Matrix {
            n,
            total: rows.iter().sum(),
            trace: (0..n).map(|i| h[i * n + i]).sum(),
            h,
            rows,
        }
    }

    /// S = n/(n−1)·SKCE_uq − SKCE_b, the bootstrap's statistic; `None` for one event.
    pub fn statistic(&self) -> Option<f64> {
        let n = self.n as f64;
        (n > 1.0)
            .then(|| (self.total - self.trace) / ((n - 1.0) * (n - 1.0)) - self.total / (n * n))
    }

    /// T′ of one resample, given how often each event was drawn:
    /// n⁻²[n/(n−1)(CᵀHC − Cᵀ diag H) − 2CᵀH1].
    pub fn resampled(&self, drawn: &[u32]) -> f64 {
        let n = self.n as f64;
        let drawn: Vec<f64> = drawn.iter().map(|&c| f64::from(c)).collect();
        let (mut square, mut diagonal, mut linear) = (0.0, 0.0, 0.0);
        for (i, &c) in drawn.iter().enumerate().filter(|(_, c)| **c > 0.0) {
            let row = &self.h[i * self.n..(i + 1) * self.n];
            square += c * dot(row, &drawn);
            diagonal += c * row[i];
            linear += c * self.rows[i];
        }
        (n / (n - 1.0) * (square - diagonal) - 2.0 * linear) / (n * n)
    }

    /// Upper p-value of the quadratic estimator, (1 + #{T′ ≥ S})/(1 + replicates); `None` for one
    /// event. n² steps a replicate.
    pub fn p_value(&self, replicates: u32, seed: u64) -> Option<f64> {
        let observed = self.statistic()?;
        let mut rng = Rng::new(seed);
        let mut above = 0;
        let mut drawn = vec![0u32; self.n];
        for _ in 0..replicates {
            drawn.fill(0);
            for _ in 0..self.n {
                drawn[rng.below(self.n)] += 1;
            }
            above += u32::from(self.resampled(&drawn) >= observed);
        }
        Some((1.0 + f64::from(above)) / (1.0 + f64::from(replicates)))
    }
}

/// The inner product, in eight sums that do not wait for each other.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (heads, others) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = heads.remainder().iter().zip(others.remainder());
    let rest: f64 = rest.map(|(a, b)| a * b).sum();
    for (a, b) in heads.zip(others) {
        for k in 0..8 {
            sums[k] += a[k] * b[k];
        }
    }
    sums.iter().sum::<f64>() + rest
}
