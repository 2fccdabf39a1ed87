//! The smallest ℓ2-ECE that the deciding test finds with 80 % power.
//!
//! A calibrated verdict on 300 events says less than one on 300,000. This number is the error that
//! the sample could have shown: the size Δ of an error of the simplest kind: all scores off by the
//! same Δ. Scores of exactly 0 or 1, and those that are nearly so, are taken to have no error: a
//! shift there shows only by outcomes that are all but impossible, so the number is the ℓ2-ECE of a
//! shift of the others.
//!
//! **The combination** finds it by its smooth part ([`super::smooth`]), which then has the
//! noncentral χ² law with λ = Δ²·hᵀI⁻¹h, h = Σ b(z) over the scores that are shifted; it has to
//! reach its share of α, w = 1.75 of all weights. Δ is where the upper tail of that law is 0.8
//! there, by Sankaran's approximation (1963). The other parts add some power, and errors that no
//! score test sees need more.
//!
//! **T-Cal alone** is taken at the coarsest level, where the null spread of T_d is least. With s
//! the null standard deviation of T_d at that level, γ its skewness and v̄ = ΣV/n: E T_d ≈ Δ² and
//! var T_d ≈ s² + 4Δ²v̄/n (the linear term of the square). The level rejects above c = s·q, q the
//! Pearson III quantile at α/B (second-order expansion). The power is 80 % where
//!
//! Δ² − 0.8416·√(s² + 4Δ²v̄/n) = c,
//!
//! a quadratic in Δ². A simulation in the tests finds power 0.75 to 0.97 at both numbers.
//!
//! Where few outcomes are expected, or so few that they are drawn, the power is less than these
//! laws say, and an evaluation has no such number.

use super::combined::Part;
use super::levels::Level;
use super::null::{Moments, normal_upper_quantile};
use super::overdispersion::chi_squared_quantile;
use super::smooth::{DIRECTIONS, Quadratic};
use statrs::distribution::{ContinuousCDF, Normal};
use std::cell::Cell;

/// Standard normal quantile at the power of 0.8.
const POWER_QUANTILE: f64 = 0.841_621_233_572_914_3;

/// Power that is asked for.
const POWER: f64 = 0.8;

/// Smallest detectable ℓ2-ECE of the combination of `parts`, the smooth one among them, at `alpha`,
/// for the scores that the form is made of; `None` where the answer would exceed 1.
pub(crate) fn detectable_by_combination(
    form: &Quadratic,
    alpha: f64,
    parts: &[Part],
) -> Option<f64> {
    let weights: f64 = parts.iter().map(|p| p.weight()).sum();
    let share = alpha * Part::Smooth.weight() / weights;
    let lambda = noncentrality(form.rank, share);
    let shift = (lambda / form.of_shift()).sqrt();
    (shift <= 1.0).then_some(shift)
}

/// λ at which a noncentral χ² variable exceeds the 1 − `alpha` quantile of the central one with
/// probability 0.8. The last answers are kept, one for each number of degrees: thousands of windows
/// ask the same.
fn noncentrality(degrees: u32, alpha: f64) -> f64 {
    thread_local! {
        /// α and λ.
        static LAST: [Cell<(f64, f64)>; DIRECTIONS + 1] =
            const { [const { Cell::new((f64::NAN, 0.0)) }; DIRECTIONS + 1] };
    }
    LAST.with(|last| {
        let last = &last[(degrees as usize).min(DIRECTIONS)];
        if last.get().0 != alpha {
            last.set((alpha, noncentrality_by_halving(f64::from(degrees), alpha)));
        }
        last.get().1
    })
}

fn noncentrality_by_halving(degrees: f64, alpha: f64) -> f64 {
    let bar = chi_squared_quantile(degrees, normal_upper_quantile(alpha));
    let (mut low, mut high) = (0.0, 10.0 * (bar + 10.0));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if upper_tail(bar, degrees, middle) < POWER {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// P(χ²(d, λ) > x), by Sankaran's approximation.
fn upper_tail(x: f64, d: f64, lambda: f64) -> f64 {
    let (one, two, three) = (d + lambda, d + 2.0 * lambda, d + 3.0 * lambda);
    let h = 1.0 - 2.0 / 3.0 * one * three / (two * two);
    let p = two / (one * one);
    let m = (h - 1.0) * (1.0 - 3.0 * h);
    let mean = 1.0 + h * p * (h - 1.0 - 0.5 * (2.0 - h) * m * p);
    let sd = h * (2.0 * p).sqrt() * (1.0 + 0.5 * m * p);
    Normal::standard().sf(((x / one).powf(h) - mean) / sd)
}

/// Smallest detectable ℓ2-ECE of T-Cal at `alpha` over `scales` levels whose coarsest is `level`,
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
    use super::super::evaluation::{DecideBy, Options, evaluate_scores};
    use super::super::overdispersion::Overdispersion;
    use super::super::rng::Rng;
    use super::noncentrality;
    use crate::samples;

    /// Uniform scores on [0.1, 0.9] whose true probability is the score plus `shift`.
    fn sample(rng: &mut Rng, shift: f64) -> Vec<(f64, bool)> {
        samples::events(rng, 2000, |u| 0.1 + 0.8 * u, |z| z + shift)
    }

    #[test]
    fn an_error_of_the_detectable_size_is_found_about_four_times_in_five() {
        let mut rng = Rng::new(5);
        for decide_by in [DecideBy::Combined, DecideBy::Tcal] {
            let o = Options {
                decide_by,
                ..Options::default()
            };
            let calibrated = evaluate_scores(&sample(&mut rng, 0.0), &o);
            let size = calibrated
                .and_then(|e| e.detectable_ece_l2)
                .unwrap_or_default();
            assert!((0.02..0.06).contains(&size), "{size}");
            let found = (0..200)
                .filter(|_| evaluate_scores(&sample(&mut rng, size), &o).is_some_and(|e| e.reject))
                .count();
            assert!((150..=194).contains(&found), "{found} of 200 at {size}");
        }
    }

    /// Three in ten scores are certain, and hold; the others are shifted by so much that the ℓ2-ECE
    /// is the detectable one.
    #[test]
    fn scores_that_are_certain_promise_no_power() {
        let sample = |rng: &mut Rng, certain: f64, shift: f64| -> Vec<(f64, bool)> {
            let one = |rng: &mut Rng| match rng.uniform() < 0.3 {
                true => (certain, certain > 0.5),
                false => {
                    let z = 0.1 + 0.8 * rng.uniform();
                    (z, rng.uniform() < z + shift)
                }
            };
            (0..2000).map(|_| one(rng)).collect()
        };
        let (mut rng, o) = (Rng::new(9), Options::default());
        for certain in [0.0, 1.0] {
            let size = evaluate_scores(&sample(&mut rng, certain, 0.0), &o)
                .and_then(|e| e.detectable_ece_l2)
                .unwrap_or_default();
            assert!((0.02..0.06).contains(&size), "{size}");
            let shift = size / 0.7f64.sqrt();
            let found = (0..100)
                .filter(|_| {
                    let sample = sample(&mut rng, certain, shift);
                    evaluate_scores(&sample, &o).is_some_and(|e| e.reject)
                })
                .count();
            assert!((66..=98).contains(&found), "{found} of 100 at {size}");
        }
    }

    #[test]
    fn outcomes_that_vary_more_need_a_larger_error() {
        let sample = sample(&mut Rng::new(7), 0.0);
        let o = |factor: f64| Options {
            overdispersion: Some(Overdispersion {
                factor,
                low: factor,
                high: factor,
                degrees: 60.0,
                panes: 90,
            }),
            ..Options::default()
        };
        let size = |o: &Options| evaluate_scores(&sample, o)?.detectable_ece_l2;
        let (plain, four) = (size(&Options::default()).unwrap(), size(&o(4.0)).unwrap());
        assert!((four / plain - 2.0).abs() < 1e-9, "{plain} {four}");
        assert_eq!(size(&o(1e4)), None);
    }

    #[test]
    fn the_noncentrality_is_that_of_the_tables() {
        // One degree, α = 0.05 two-sided, power 0.8: (1.96 + 0.8416)² = 7.849.
        assert!((noncentrality(1, 0.05) / 7.849 - 1.0).abs() < 0.05);
        // Three degrees: 10.903 (Haynam, Govindarajulu, Leone 1970).
        assert!((noncentrality(3, 0.05) / 10.903 - 1.0).abs() < 0.01);
    }

    #[test]
    fn few_outcomes_promise_no_power() {
        // Ten of 2000 are expected.
        let rare = samples::events(&mut Rng::new(11), 2000, |u| 0.01 * u, |z| z);
        let (two, certain) = ([(0.9, true), (0.1, false)], [(0.0, false), (1.0, true)]);
        for (sample, drawn) in [
            (&rare[..], true),
            (&two[..], true),
            (&certain[..], false),
            (&two[..1], false),
        ] {
            let e = evaluate_scores(sample, &Options::default()).unwrap();
            assert!(e.combined.replicates.is_some() || !drawn);
            assert_eq!(e.detectable_ece_l2, None);
        }
    }
}
