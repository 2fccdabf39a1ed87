//! The interval for the ℓ2-ECE of vectors, with covariances.
//!
//! Sun, Chaudhari, Barnett, Dobriban (2024), Algorithm 1, as [`crate::interval`] has it for
//! scalars. With e the mean and C the covariance of U in a cell, σ̂₁² = Σ(N/n)‖e‖⁴ −
//! (Σ(N/n)‖e‖²)² + 4Σ(N/n)eᵀCe; eᵀCe = (1/N)Σ(e·U)² − ‖e‖⁴, so no matrix is formed.
//!
//! The paper's null assumes points that fill the chamber z_1 ≥ … ≥ z_k; the null here is that given
//! the predictions.
//!
//! Valid for n^(1/4s) ≪ m ≪ n^(1/min(k, K−1)) slices: `median_count` under 5 says that cells are
//! too fine.

use super::estimate;
use super::events::Events;
use super::level::{VectorCell, VectorLevel};
use crate::estimate::Estimate;
use crate::interval::squared_ends;
use crate::null::Moments;

/// The interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VectorInterval {
    /// m, slices of an axis.
    pub slices: u32,
    /// Confidence asked for.
    pub confidence: f64,
    /// T; may be negative.
    pub estimate_squared: f64,
    /// σ̂₁².
    pub sigma1_squared: f64,
    /// Lower end, on the ℓ2-ECE scale.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// 0 belongs to it, by the null given the predictions.
    pub contains_zero: bool,
    /// Median count of occupied cells.
    pub median_count: f64,
}

/// Slices by default: the largest power of two not above max(2, n^(2/(4+d))), at which binning
/// error and noise balance for a Lipschitz curve; at most what a name can hold.
pub fn default_slices(n: usize, d: usize) -> u32 {
    let target = (n as f64).powf(2.0 / (4.0 + d as f64)).clamp(2.0, 32_768.0);
    1 << target.log2().floor() as u32
}

/// The interval of a sample at `slices` slices. `None` without events.
pub fn interval(events: &Events, slices: u32, confidence: f64) -> Option<VectorInterval> {
    if events.is_empty() {
        return None;
    }
    Some(of_level(&VectorLevel::of(events, slices), confidence))
}

/// The interval of one level with events, by the Pearson law of its moments.
pub fn of_level(level: &VectorLevel, confidence: f64) -> VectorInterval {
    with_null(level, confidence, |m, t| Some(m.survival(t)))
}

/// The same, where `zero` is the p-value of the unbiased estimate with these moments; without one 0
/// stays in the interval.
pub(super) fn with_null(
    level: &VectorLevel,
    confidence: f64,
    zero: impl FnOnce(&Moments, f64) -> Option<f64>,
) -> VectorInterval {
    let slices = level.slices;
    let (n, alpha) = (level.n, 1.0 - confidence);
    let (mut second, mut fourth, mut mixed) = (0.0, 0.0, 0.0);
    for c in &level.cells {
        let e2 = squared_mean(c);
        second += c.n / n * e2;
        fourth += c.n / n * e2 * e2;
        mixed += c.along / n - c.n / n * e2 * e2;
    }
    let sigma1_squared = match level.effective {
        None => fourth - second * second + 4.0 * mixed,
        Some(_) => weighted_variance(level, second),
    };
    let m = estimate::moments_of_unbiased(level);
    let e = Estimate {
        t: estimate::unbiased(level),
        sigma1_squared,
        null: m,
        excess: 0.0,
    };
    let within = zero(&m, e.t).is_none_or(|p| p > alpha);
    let ends = squared_ends(&e, level.count, alpha, within);
    let mut counts: Vec<f64> = level.cells.iter().map(|c| c.count).collect();
    counts.sort_by(f64::total_cmp);
    let middle = counts.len() / 2;
    let median = if counts.len().is_multiple_of(2) {
        0.5 * (counts[middle - 1] + counts[middle])
    } else {
        counts[middle]
    };
    VectorInterval {
        slices,
        confidence,
        estimate_squared: e.t,
        sigma1_squared: e.sigma1_squared,
        lower: ends.lower.sqrt(),
        upper: ends.upper.sqrt(),
        contains_zero: ends.contains_zero,
        median_count: median,
    }
}

/// ‖e‖².
fn squared_mean(c: &VectorCell) -> f64 {
    c.u.iter().map(|u| u * u).sum::<f64>() / (c.n * c.n)
}

/// σ̂₁² of weighted events with θ, as [`super::weighted`] has it.
fn weighted_variance(level: &VectorLevel, theta: f64) -> f64 {
    let cell = |c: &VectorCell| {
        let at = squared_mean(c) + theta;
        4.0 * c.along - 4.0 * at * c.along_u + at * at * c.w2
    };
    level.cells.iter().map(cell).sum::<f64>() * level.count / (level.n * level.n)
}
