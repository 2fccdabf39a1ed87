//! The smallest ℓ2-ECE that the test would find in a sample like this one with 80 % power.
//!
//! A calibrated verdict on 300 events and one on 300,000 are not the same news; this number says
//! what the sample could have shown. It is taken at the coarsest level, where the null spread of
//! T_d is least, and so for an error that two cells can see (scores off the same way over each
//! half). Finer errors need more.
//!
//! With s the null standard deviation of T_d at that level, γ its skewness, v̄ = ΣV/n, and an error
//! of constant sign of size Δ: E T_d ≈ Δ² and var T_d ≈ s² + 4Δ²v̄/n (the linear term of the
//! square). The level rejects above c = s·q, q the Pearson III quantile at α/B (second-order
//! expansion). The power is 80 % where
//!
//! Δ² − 0.8416·√(s² + 4Δ²v̄/n) = c,
//!
//! a quadratic in Δ². The normal approximation of T_d off the null and α/B for the shared error
//! both err to the large side for global errors, since finer levels reject too. A simulation in the
//! tests finds power 0.75 to 0.97 at the number given.

use super::levels::Level;
use super::null::Moments;
use statrs::distribution::{ContinuousCDF, Normal};

/// Standard normal quantile at the power of 0.8.
const POWER_QUANTILE: f64 = 0.841_621_233_572_914_3;

/// Smallest detectable ℓ2-ECE of a test at `alpha` over `scales` levels whose coarsest is `level`,
/// for a sample of `n` events (of weighted ones, Σw); `None` where the null has no variance or the
/// answer would exceed 1.
pub fn detectable_ece_l2(level: &Level, n: f64, alpha: f64, scales: u32) -> Option<f64> {
    let null = Moments::of_debiased(level);
    let sd = null.sd();
    // Without two events in a cell there is no spread.
    if sd <= 0.0 {
        return None;
    }
    let v: f64 = level.occupied.iter().map(|c| c.v).sum();
    let skew = null.third / (sd * sd * sd);
    let z = Normal::standard().inverse_cdf(1.0 - alpha / f64::from(scales.max(1)));
    let threshold = sd * (z + skew.max(0.0) * (z * z - 1.0) / 6.0);
    // (x − c)² = k²(s² + 4xv̄/n), the larger root.
    let k2 = POWER_QUANTILE * POWER_QUANTILE;
    let half = threshold + 2.0 * k2 * v / (n * n);
    let rest = threshold * threshold - k2 * sd * sd;
    let x = half + (half * half - rest).max(0.0).sqrt();
    (x <= 1.0).then(|| x.sqrt())
}

#[cfg(test)]
mod tests {
    use super::super::evaluation::{Options, evaluate_scores};
    use super::super::rng::Rng;

    /// Uniform scores on [0.1, 0.9] whose true probability is the score plus `shift`.
    fn sample(rng: &mut Rng, shift: f64) -> Vec<(f64, bool)> {
        let one = |rng: &mut Rng| {
            let z = 0.1 + 0.8 * rng.uniform();
            (z, rng.uniform() < z + shift)
        };
        (0..2000).map(|_| one(rng)).collect()
    }

    #[test]
    fn an_error_of_the_detectable_size_is_found_about_four_times_in_five() {
        let mut rng = Rng::new(5);
        let o = Options::default();
        let size = evaluate_scores(&sample(&mut rng, 0.0), &o).and_then(|e| e.detectable_ece_l2);
        let size = size.unwrap_or_default();
        assert!((0.02..0.06).contains(&size), "{size}");
        let found = (0..200)
            .filter(|_| evaluate_scores(&sample(&mut rng, size), &o).is_some_and(|e| e.reject))
            .count();
        assert!((150..=194).contains(&found), "{found} of 200 at {size}");
    }

    #[test]
    fn certain_scores_and_single_events_have_no_detectable_size() {
        let o = Options::default();
        for sample in [&[(0.0, false), (1.0, true)][..], &[(0.5, true)][..]] {
            let e = evaluate_scores(sample, &o);
            assert!(e.is_some_and(|e| e.detectable_ece_l2.is_none()));
        }
    }
}
