//! Kolmogorov–Smirnov and Kuiper statistics of the cumulative residuals.
//!
//! Walk the scores upwards and add up the residuals: C_k = (1/n) Σ_{z ≤ z_k} U. Of a calibrated
//! model the path wanders about 0; over scores that are too low it climbs, over scores that are too
//! high it falls, and the slope is the error. KS is max|C|, Kuiper max C − min C (0 counted in);
//! Kuiper still sees an error that an opposite error elsewhere cancels. No cells need to be
//! chosen: cells enter only because the path of a window is known at the ends of its finest cells.
//!
//! Source: Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu, *Metrics of calibration for probabilistic
//! predictions*, JMLR 23 (2022). Under the null given the scores the steps are independent with
//! mean 0 and variance V, and nothing ties the path's end to 0, so n·C/√ΣV is a Brownian motion on
//! [0, 1] (not a bridge). Its two laws are classical:
//!
//! * P(max|B| > x) = 4 Σ_{k≥0} (−1)^k Φ̄((2k+1)x)
//! * P(max B − min B > x) = 8 Σ_{k≥1} (−1)^(k−1) k Φ̄(kx), Feller, Ann. Math. Statist. 22 (1951)
//!
//! Seen only at some points, a path's extremes are smaller, so both p-values err to the safe side.

use super::levels::Level;
use statrs::distribution::{ContinuousCDF, Normal};

/// A statistic of the path of cumulative residuals.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Path {
    /// On the scale of probabilities: divided by n.
    pub statistic: f64,
    /// Asymptotic p-value given the scores; `None` without variance.
    pub p_value: Option<f64>,
}

/// KS and Kuiper of a level of a sample of `n` events; the finest level says most. φ, the
/// dispersion, is 1 where outcomes are independent; the path's variance is φ times ΣV.
pub fn ks_and_kuiper(level: &Level, n: f64, dispersion: f64) -> (Path, Path) {
    let (mut at, mut low, mut high, mut variance) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    for (u, v) in level.occupied.u.iter().zip(&level.occupied.v) {
        at += u;
        // No sum is NaN, and these are half as slow as `min` and `max`, which look for it.
        low = if at < low { at } else { low };
        high = if at > high { at } else { high };
        variance += v;
    }
    variance *= dispersion;
    let path = |extent: f64, tail: fn(f64) -> f64| Path {
        statistic: extent / n,
        p_value: (variance > 0.0).then(|| tail(extent / variance.sqrt())),
    };
    (
        path(high.max(-low), largest_deviation_tail),
        path(high - low, range_tail),
    )
}

/// Below these the tails are 1 to six digits and the alternating series converge slowly.
const DEVIATION_SURE: f64 = 0.3;
const RANGE_SURE: f64 = 0.6;

/// P(max|B| > x) for a standard Brownian motion on [0, 1].
fn largest_deviation_tail(x: f64) -> f64 {
    if x < DEVIATION_SURE {
        return 1.0;
    }
    series(|k| {
        let odd = f64::from(2 * k + 1);
        4.0 * Normal::standard().sf(odd * x)
    })
}

/// P(max B − min B > x) for a standard Brownian motion on [0, 1].
fn range_tail(x: f64) -> f64 {
    if x < RANGE_SURE {
        return 1.0;
    }
    series(|k| {
        let k = f64::from(k + 1);
        8.0 * k * Normal::standard().sf(k * x)
    })
}

/// Σ (−1)^k term(k), stopped where a term no longer counts.
fn series(term: impl Fn(u32) -> f64) -> f64 {
    let mut sum = 0.0;
    for k in 0..50 {
        let t = term(k);
        sum += if k % 2 == 0 { t } else { -t };
        if t < 1e-12 * sum {
            break;
        }
    }
    sum.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tails_have_their_tabled_five_percent_points() {
        // Two-sided 5 % point of max|B|: 2.2414; mean range √(8/π), 95 % of the range below 2.4977.
        assert!((largest_deviation_tail(2.241_402_727) - 0.05).abs() < 1e-4);
        let mean: f64 = (0..8000)
            .map(|i| range_tail((f64::from(i) + 0.5) * 1e-3) * 1e-3)
            .sum();
        assert!(
            (mean - (8.0 / std::f64::consts::PI).sqrt()).abs() < 1e-4,
            "{mean}"
        );
        let mean: f64 = (0..8000)
            .map(|i| largest_deviation_tail((f64::from(i) + 0.5) * 1e-3) * 1e-3)
            .sum();
        assert!(
            (mean - (std::f64::consts::PI / 2.0).sqrt()).abs() < 1e-4,
            "{mean}"
        );
    }

    #[test]
    fn kuiper_sees_two_errors_that_cancel_and_ks_sees_half() {
        // Residuals +½ +½ −½ −½ of scores ½ in rising cells.
        let sample: Vec<(f64, bool)> =
            [(0.1, true), (0.3, true), (0.6, false), (0.8, false)].into();
        let (ks, kuiper) = ks_and_kuiper(&Level::from_scores(&sample, 16), 4.0, 1.0);
        assert!((ks.statistic - 1.6 / 4.0).abs() < 1e-12);
        assert!((kuiper.statistic - 1.6 / 4.0).abs() < 1e-12);
        assert!(ks.p_value.is_some_and(|p| p > 0.05));
        let certain = [(0.0, false), (1.0, true)];
        assert_eq!(
            ks_and_kuiper(&Level::from_scores(&certain, 4), 2.0, 1.0)
                .0
                .p_value,
            None
        );
    }
}
