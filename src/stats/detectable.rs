//! The smallest ℓ2-ECE that the test would find in a sample like this one with 80 % power.
//!
//! A calibrated verdict on 300 events and one on 300,000 are not the same news; this number says what
//! the sample could have shown. It is taken at the coarsest level, where the null spread of T_d is least,
//! and so for an error that two cells can see (scores off the same way over each half). Finer errors
//! need more.
//!
//! With s the null standard deviation of T_d at that level, γ its skewness, v̄ = ΣV/n, and an error of
//! constant sign of size Δ: E T_d ≈ Δ² and var T_d ≈ s² + 4Δ²v̄/n (the linear term of the square). The
//! level rejects above c = s·q, q the Pearson III quantile at α/B (second-order expansion). The power is
//! 80 % where
//!
//! Δ² − 0.8416·√(s² + 4Δ²v̄/n) = c,
//!
//! a quadratic in Δ². The normal approximation of T_d off the null and α/B for the shared error both err
//! to the large side for global errors, since finer levels reject too. A simulation in the tests finds
//! power 0.75 to 0.97 at the number given.

use super::pyramid::Level;
use statrs::distribution::{ContinuousCDF, Normal};

/// Standard normal quantile at the power of 0.8.
const POWER_QUANTILE: f64 = 0.841_621_233_572_914_3;

/// Smallest detectable ℓ2-ECE of a test at `alpha` over `scales` levels whose coarsest is `level`, for a
/// sample of `n` events; `None` where the null has no variance or the answer would exceed 1.
pub fn detectable_ece_l2(level: &Level, n: f64, alpha: f64, scales: u32) -> Option<f64> {
    let (mut variance, mut third, mut v) = (0.0, 0.0, 0.0);
    for c in &level.occupied {
        v += c.v;
        variance += 2.0 * (c.v * c.v - c.v2) / (c.n * c.n);
        let triple = c.v * c.v * c.v - 3.0 * c.v * c.v2 + 2.0 * c.v3;
        third += (8.0 * triple + 4.0 * (c.mu3 * c.mu3 - c.mu3_2)) / (c.n * c.n * c.n);
    }
    if variance <= 0.0 || n < 2.0 {
        return None;
    }
    let (sd, skew) = (variance.sqrt() / n, third / variance.powf(1.5));
    let z = Normal::standard().inverse_cdf(1.0 - alpha / f64::from(scales.max(1)));
    let threshold = sd * (z + skew.max(0.0) * (z * z - 1.0) / 6.0);
    // (x − c)² = k²(s² + 4xv̄/n), the larger root.
    let k2 = POWER_QUANTILE * POWER_QUANTILE;
    let half = threshold + 2.0 * k2 * v / (n * n);
    let rest = threshold * threshold - k2 * sd * sd;
    let x = half + (half * half - rest).max(0.0).sqrt();
    (x <= 1.0).then(|| x.sqrt())
}
