//! The binned errors of the distance paper, and its sampling of kernel terms.
//!
//! Source: Błasiok, Gopalan, Hu, Nakkiran (2023), sections 2.3, 8.4 and 10.
//!
//! * binnedECE(I) = Σ_I |E[(y − v)·1(v ∈ I)]| over equal bins; it may lie far below the distance
//!   from calibration, since errors of opposite sign cancel in a bin.
//! * binnedECEw = binnedECE + mean width of the bins, weighted by their events: an upper bound of
//!   the upper distance whatever the partition (5). Over m equal bins the width is 1/m.
//! * The Laplace kernel error from M random pairs of events, drawn with replacement: the mean of
//!   U·U′· e^{−|v−v′|/ν} is unbiased for kCE², its error is of order 1/√M. It may be negative. The
//!   paper takes M = 10N. The exact sum costs no more ([`super::laplace`]); the sampled one is here
//!   for comparison.

use super::laplace;
use super::points::Points;
use crate::estimator::ece_l1;
use crate::levels::Level;
use crate::rng::Rng;

/// Bins of the paper's section 10.
pub const BINS: u64 = 20;

/// Pairs of an event in the paper's section 10.
pub const TERMS_PER_EVENT: usize = 10;

/// What the distance paper's section 10 computes beside the distances.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Binned {
    /// Number of equal bins.
    pub bins: u64,
    /// binnedECE, in [0, 1]; may be far below the distance from calibration.
    pub binned_ece: f64,
    /// binnedECEw: binnedECE plus the mean width of the bins.
    pub binned_ece_with_width: f64,
    /// kCE² from sampled terms.
    pub sampled: Sampled,
    /// kCE² from all pairs, at least 0.
    pub laplace_squared: f64,
}

/// kCE² from sampled terms.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sampled {
    /// M, the number of sampled pairs.
    pub terms: usize,
    /// Mean of the terms; may be negative.
    pub squared: f64,
    /// Standard error of the mean given the sample.
    pub error: f64,
}

/// The measures of raw scores in [0, 1]; `None` without events.
pub fn binned(sample: &[(f64, bool)], seed: u64) -> Option<Binned> {
    let points = Points::from_scores(sample)?;
    let binned_ece = ece_l1(&Level::from_scores(sample, BINS));
    Some(Binned {
        bins: BINS,
        binned_ece,
        binned_ece_with_width: binned_ece + 1.0 / BINS as f64,
        sampled: sampled(sample, super::NU, TERMS_PER_EVENT * sample.len(), seed),
        laplace_squared: laplace::laplace(&points, super::NU).squared,
    })
}

/// kCE² from `terms` random pairs; 0 without events or terms.
pub fn sampled(sample: &[(f64, bool)], nu: f64, terms: usize, seed: u64) -> Sampled {
    let mut rng = Rng::new(seed ^ 0x7E45);
    let n = sample.len();
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut one = || {
        let (z, y) = sample[rng.below(n)];
        (z, f64::from(u8::from(y)) - z)
    };
    let terms = if n > 0 { terms } else { 0 };
    for _ in 0..terms {
        let ((a, u), (b, v)) = (one(), one());
        let term = u * v * (-(a - b).abs() / nu).exp();
        sum += term;
        squares += term * term;
    }
    let m = terms.max(1) as f64;
    let mean = sum / m;
    Sampled {
        terms,
        squared: mean,
        error: ((squares / m - mean * mean).max(0.0) / m).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_terms_estimate_the_whole_sum_within_their_error() {
        let mut rng = Rng::new(9);
        let draw = |_| {
            let z = rng.uniform();
            (z, z > 0.4)
        };
        let sample: Vec<(f64, bool)> = (0..500).map(draw).collect();
        let mut z2 = 0.0;
        for seed in 0..50 {
            let b = binned(&sample, seed).unwrap();
            assert_eq!(b.sampled.terms, 5000);
            let off = (b.sampled.squared - b.laplace_squared) / b.sampled.error;
            z2 += off * off;
            assert!((b.binned_ece_with_width - b.binned_ece - 0.05).abs() < 1e-15);
        }
        // χ² with 50 degrees: within 0.0005 at both ends.
        assert!((22.0..92.0).contains(&z2), "{z2}");
        assert!(binned(&[], 1).is_none());
        assert_eq!(sampled(&[], 1.0, 10, 1).terms, 0);
    }
}
