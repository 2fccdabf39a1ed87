//! The smallest ℓ2-ECE that the deciding test finds with 80 % power.
//!
//! A calibrated verdict on 300 events says less than one on 300,000. This number is the error that
//! the sample could have shown: the ℓ2-ECE of the smallest change of all odds, the commonest error
//! of production models (a new base rate). With k the change of all log-odds, a score errs by kV to
//! first order, V = z(1−z), so certain scores do not err, and
//!
//! ```text
//! d = |k|·√(ΣV²/n)          in [0, 1]; weighted: |k|·√(ΣwV²/Σw)
//! ```
//!
//! **The combination** finds it by its smooth part ([`super::smooth`]), which then has the
//! noncentral χ² law with λ = k²·ΣV; it has to be significant at its share of α, w = 1.75 of the
//! sum of weights. k is the change for which this has the probability 0.8, by Sankaran's
//! approximation (1963) of that law. The other parts add some power, and errors that no score test
//! sees need more.
//!
//! **T-Cal alone** is taken at the coarsest level, where the null spread of T_d is least. With s
//! the null standard deviation of T_d at that level, γ its skewness, and V_c = ΣV and N_c those of
//! its cells (derived):
//!
//! ```text
//! E T_d ≈ x = k²·ΣV_c²/N_c/n,   var T_d ≈ s² + 4x·v/n,   v = (ΣV_c³/N_c²)/(ΣV_c²/N_c)
//! ```
//!
//! The level rejects above c = s·q, q the Pearson III quantile at α/B (second-order expansion). The
//! power is 80 % where x − 0.8416·√(s² + 4xv/n) = c, a quadratic in x.
//!
//! By either number, outcomes at odds that have changed up or down until the ℓ2-ECE is d were found
//! in 0.81 to 0.98 of 100 to 300 sets (standard errors .01 to .03): scores from beta(.4, 30) and
//! beta(8, ½), n = 5000, uniform ones, n = 2000, and logit z ~ N(−4, 2.5²), n = 20,000. A shift of
//! all probabilities that is found as often has a smaller ℓ2-ECE.
//!
//! Where few outcomes are expected, or so few that they are drawn, the power is less than these
//! laws say, and an evaluation gives no such number.

use super::columns::total;
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

/// √(ΣV²/n) of the scores of the finest cells, in [0, ¼]: the ℓ2-ECE of a change of all log-odds,
/// for each unit of it.
fn of_odds(finest: &Level) -> f64 {
    (finest.squared_variance() / total(&finest.occupied.n)).sqrt()
}

/// Smallest detectable ℓ2-ECE of the combination of `parts`, the smooth one among them, at `alpha`,
/// for the scores of the finest cells, which make up the form; `None` where it would exceed 1 or
/// no direction sees a change of odds.
pub(crate) fn detectable_by_combination(
    (form, finest): (&Quadratic, &Level),
    alpha: f64,
    parts: &[Part],
) -> Option<f64> {
    let weights: f64 = parts.iter().map(|p| p.weight()).sum();
    let share = alpha * Part::Smooth.weight() / weights;
    let lambda = noncentrality(form.rank, share);
    let size = (lambda / form.of_odds()).sqrt() * of_odds(finest);
    (size <= 1.0).then_some(size)
}

/// λ at which a noncentral χ² variable exceeds the 1 − `alpha` quantile of the central one with
/// probability 0.8. The last result is kept for each number of degrees, because thousands of
/// windows need the same.
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

/// Smallest detectable ℓ2-ECE of T-Cal at `alpha` over `scales` levels, the first the coarsest, the
/// last the finest; `None` where the null has no variance or the size would exceed 1.
pub(crate) fn detectable_by_tcal(levels: &[Level], alpha: f64, scales: u32) -> Option<f64> {
    let (level, finest) = (levels.first()?, levels.last()?);
    let n = total(&level.occupied.n);
    let null = Moments::of_debiased(level);
    let sd = null.sd();
    // Without two events in a cell there is no spread.
    if sd <= 0.0 {
        return None;
    }
    let (mut mean, mut spread) = (0.0, 0.0);
    for (c, variance) in level.occupied.iter().zip(&*level.variance()) {
        let pull = variance * (variance / c.n);
        mean += pull;
        spread += pull * (c.v / c.n);
    }
    let skew = null.third / (sd * sd * sd);
    let z = Normal::standard().inverse_cdf(1.0 - alpha / f64::from(scales.max(1)));
    let threshold = sd * (z + skew.max(0.0) * (z * z - 1.0) / 6.0);
    // (x − c)² = q²(s² + 4xv/n), the larger root, q the quantile at the power.
    let q2 = POWER_QUANTILE * POWER_QUANTILE;
    let half = threshold + 2.0 * q2 * (spread / mean) / n;
    let rest = threshold * threshold - q2 * sd * sd;
    let x = half + (half * half - rest).max(0.0).sqrt();
    let size = (x * n / mean).sqrt() * of_odds(finest);
    (size <= 1.0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::super::evaluation::{DecideBy, Options, evaluate_scores, evaluate_weighted};
    use super::super::overdispersion::Overdispersion;
    use super::super::rng::Rng;
    use super::noncentrality;
    use crate::samples;

    /// Events whose true odds are e^`k` times those of their scores.
    fn sample(rng: &mut Rng, n: usize, score: fn(f64) -> f64, k: f64) -> Vec<(f64, bool)> {
        samples::events(rng, n, score, |z| changed(z, k))
    }

    fn changed(z: f64, k: f64) -> f64 {
        z * k.exp() / (1.0 - z + z * k.exp())
    }

    /// The change of log-odds of sign `sign` whose ℓ2-ECE is `size`, by halving.
    fn change(score: fn(f64) -> f64, size: f64, sign: f64) -> f64 {
        let squared = |k: f64| {
            let z = (0..2000).map(|i| score((f64::from(i) + 0.5) / 2000.0));
            z.map(|z| (changed(z, k) - z).powi(2)).sum::<f64>() / 2000.0
        };
        let (mut low, mut high) = (0.0, 8.0);
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            match squared(sign * middle) < size * size {
                true => low = middle,
                false => high = middle,
            }
        }
        sign * high
    }

    /// The score at a quantile.
    type Scores = fn(f64) -> f64;

    /// Uniform scores, skewed rare ones, skewed frequent ones with three in ten that are certain.
    const SCORES: [(usize, Scores); 3] = [
        (2000, |u| 0.1 + 0.8 * u),
        (3000, |u| 0.2 * u.powi(3)),
        (3000, |u| 1.0 - 0.4 * (u - 0.3).max(0.0).powi(2)),
    ];

    #[test]
    fn a_change_of_odds_of_the_detectable_size_is_found_about_four_times_in_five() {
        let mut rng = Rng::new(5);
        for decide_by in [DecideBy::Combined, DecideBy::Tcal] {
            let o = Options {
                decide_by,
                ..Options::default()
            };
            for (n, score) in SCORES {
                let calibrated = evaluate_scores(&sample(&mut rng, n, score, 0.0), &o);
                let size = calibrated.and_then(|e| e.detectable_ece_l2).unwrap();
                for sign in [1.0, -1.0] {
                    let k = change(score, size, sign);
                    let found = (0..100)
                        .filter(|_| {
                            let sample = sample(&mut rng, n, score, k);
                            evaluate_scores(&sample, &o).is_some_and(|e| e.reject)
                        })
                        .count();
                    println!("{decide_by:?} {n} {size} {k}: {found}");
                    // 80 less four deviations, and fewer than all.
                    assert!((64..=99).contains(&found), "{found} of 100 at {size}, {k}");
                }
            }
        }
    }

    /// The closed form, from sums by hand; weights of one size change nothing.
    #[test]
    fn the_number_is_the_closed_form_whatever_the_common_weight() {
        let sample = sample(&mut Rng::new(6), 2000, SCORES[0].1, 0.0);
        let o = Options::default();
        let plain = evaluate_scores(&sample, &o).unwrap().detectable_ece_l2;
        let weighted: Vec<_> = sample.iter().map(|&(z, y)| (z, y, 3.0)).collect();
        let weighted = evaluate_weighted(&weighted, &o).unwrap().detectable_ece_l2;
        let plain = plain.unwrap();
        assert!(
            (weighted.unwrap() / plain - 1.0).abs() < 1e-6,
            "{weighted:?} {plain}"
        );
        let v = sample.iter().map(|(z, _)| z * (1.0 - z));
        let (v, v2) = v.fold((0.0, 0.0), |(v, v2), x| (v + x, v2 + x * x));
        let lambda = (plain * plain) * v / (v2 / 2000.0);
        // Three degrees at 1.75 of 5.25 parts of .05 or so.
        assert!((12.5..14.5).contains(&lambda), "{lambda}");
    }

    #[test]
    fn outcomes_that_vary_more_need_a_larger_error() {
        let sample = sample(&mut Rng::new(7), 2000, SCORES[0].1, 0.0);
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
