//! The interval for the ℓ2-ECE of vectors, with covariances.
//!
//! Sun, Chaudhari, Barnett, Dobriban (2024), Algorithm 1, as [`crate::interval`] has it for
//! scalars. With e the mean and C the covariance of U in a cell, σ̂₁² = Σ(N/n)‖e‖⁴ −
//! (Σ(N/n)‖e‖²)² + 4Σ(N/n)eᵀCe; eᵀCe = (1/N)Σ(e·U)² − ‖e‖⁴, so no matrix is formed. Evaluations
//! use a σ̂₁² that is [guarded](Estimate::guarded) in cells of few outcomes; [`interval()`] has
//! that of the paper.
//!
//! The paper's null assumes points that fill the chamber z_1 ≥ … ≥ z_k; the null here is that given
//! the predictions.
//!
//! Valid for n^(1/4s) ≪ m ≪ n^(1/min(k, K−1)) slices: `median_count` under 5 says that cells are
//! too fine.

use super::estimate;
use super::events::Events;
use super::level::{VectorCell, VectorLevel};
use crate::estimate::{Estimate, Spread, shortfall, smoothed};
use crate::interval::{median, root_upper, squared_ends};
use crate::null::Moments;

/// An interval for the ℓ2-ECE of vectors.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VectorInterval {
    /// m, slices of an axis.
    pub slices: u32,
    /// Confidence asked for.
    pub confidence: f64,
    /// T, the unbiased estimate of the squared ℓ2-ECE; may be negative.
    pub estimate_squared: f64,
    /// σ̂₁², n times the estimated variance of T off the null.
    pub sigma1_squared: f64,
    /// Lower end, on the ℓ2-ECE scale.
    pub lower: f64,
    /// Upper end, on the ℓ2-ECE scale.
    pub upper: f64,
    /// 0 belongs to it, by the null given the predictions.
    pub contains_zero: bool,
    /// Median count of occupied cells.
    pub median_count: f64,
}

impl VectorInterval {
    /// Whether half of the occupied cells have fewer than 5 events, so that it says little.
    pub fn is_too_fine(&self) -> bool {
        self.median_count < MEDIAN_MIN
    }
}

/// Slices by default: the largest power of two not above max(2, n^(2/(4+d))), at which binning
/// error and noise balance for a Lipschitz curve; at most what a name can hold.
/// [`super::evaluate_events`] takes fewer where cells then hold too few events.
pub fn default_slices(n: usize, d: usize) -> u32 {
    let target = (n as f64).powf(2.0 / (4.0 + d as f64)).clamp(2.0, 32_768.0);
    1 << target.log2().floor() as u32
}

/// Median count of the occupied cells under which an interval says little.
const MEDIAN_MIN: f64 = 5.0;

/// Whether half of the occupied cells have fewer than 5 events, so that the interval says little.
pub(super) fn is_too_fine(level: &VectorLevel) -> bool {
    median_count(level) < MEDIAN_MIN
}

fn median_count(level: &VectorLevel) -> f64 {
    median(level.cells.iter().map(|c| c.count).collect())
}

/// The interval of a sample at `slices` slices, as published. `None` without events.
pub fn interval(events: &Events, slices: u32, confidence: f64) -> Option<VectorInterval> {
    if events.is_empty() {
        return None;
    }
    let level = VectorLevel::of(events, slices);
    let e = of_level(&level);
    Some(with_ends(&level, confidence, &e, Some(e.null_p_value())))
}

/// The interval of one level with events, [guarded](Estimate::guarded) in cells of few outcomes and
/// with the upper end of √T where 0 is not in it. `zero` is the p-value of the unbiased estimate
/// with these moments; without one 0 stays in the interval.
pub(super) fn guarded(
    level: &VectorLevel,
    confidence: f64,
    zero: impl FnOnce(&Moments, f64) -> Option<f64>,
) -> VectorInterval {
    let mut e = of_level(level);
    let short = shortfall(level.cells.iter().map(spread));
    e.sigma1_squared += short * level.count / (level.n * level.n);
    let (zero, alpha) = (zero(&e.null, e.t), 1.0 - confidence);
    let mut of = with_ends(level, confidence, &e, zero);
    if zero.is_some_and(|p| p <= alpha) {
        of.upper = root_upper(&e, level.count, alpha).sqrt();
    }
    of
}

fn of_level(level: &VectorLevel) -> Estimate {
    let n = level.n;
    let (mut second, mut fourth, mut mixed) = (0.0, 0.0, 0.0);
    for c in &level.cells {
        let e2 = squared_mean(c);
        second += c.n / n * e2;
        fourth += c.n / n * e2 * e2;
        mixed += c.along / n - c.n / n * e2 * e2;
    }
    Estimate {
        t: estimate::unbiased(level),
        sigma1_squared: match level.effective {
            None => fourth - second * second + 4.0 * mixed,
            Some(_) => weighted_variance(level, second),
        },
        null: estimate::moments_of_unbiased(level),
        excess: 0.0,
    }
}

fn with_ends(
    level: &VectorLevel,
    confidence: f64,
    e: &Estimate,
    zero: Option<f64>,
) -> VectorInterval {
    let alpha = 1.0 - confidence;
    let within = zero.is_none_or(|p| p > alpha);
    let ends = squared_ends(e, level.count, alpha, within);
    VectorInterval {
        slices: level.slices,
        confidence,
        estimate_squared: e.t,
        sigma1_squared: e.sigma1_squared,
        lower: ends.lower.sqrt(),
        upper: ends.upper.sqrt(),
        contains_zero: ends.contains_zero,
        median_count: median_count(level),
    }
}

/// The spread of a cell along its mean residual e. Along e, labels of the rates p have the variance
/// (Σpe² − (Σpe)²)/‖e‖².
fn spread(c: &VectorCell) -> Spread {
    let (n, e2) = (c.n * (c.n / c.w2), squared_mean(c));
    let (mut mean, mut square) = (0.0, 0.0);
    for (u, z) in c.u.iter().zip(&c.z) {
        let p = smoothed(n, n * (u + z) / c.n, z / c.n);
        let e = u / c.n;
        mean += p * e;
        square += p * e * e;
    }
    // If e is 0, so is eᵀCe, and the cell counts for nothing.
    let unit = if e2 > 0.0 { e2 } else { 1.0 };
    Spread {
        n,
        e2,
        w2: c.w2,
        plug_in: ((c.along - 2.0 * e2 * c.along_u) / c.w2 + e2 * e2) / unit,
        smoothed: (square - mean * mean) / unit,
    }
}

/// ‖e‖², the squared mean residual of a cell.
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
