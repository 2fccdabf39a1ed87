//! The reliability diagram: per cell the mean score, the event rate, and two bars.
//!
//! * The bar of the rate is Clopper–Pearson's: what the true rate may be, given the outcomes.
//! * The consistency bar is where the rate falls if the scores are true (Bröcker & Smith, Weather
//!   and Forecasting 22, 2007). The count of positives is then a sum of independent Bernoulli
//!   variables with the scores' probabilities; it is given the law of Binomial(N, mean score),
//!   which is a little wider.
//!
//! Both hold 95 %. A rate outside the consistency bar is evidence; one cell in twenty is outside by
//! chance. Up to 32 cells have bars: many more could not be read, and inverse beta functions cost
//! microseconds each. With variance above `SMALL` the third-order Cornish–Fisher expansion takes
//! their place (it is off by under a hundredth of a standard deviation, the tests check it). Bars
//! of the rate of few events are computed once per process: thousands of diagrams of small windows
//! share them.

use super::levels::{Level, LevelCell};
use super::null::normal_upper_quantile;
use statrs::distribution::{Beta, ContinuousCDF};
use statrs::function::gamma::ln_gamma;
use std::sync::{LazyLock, OnceLock};

/// Finest level of a diagram: 32 cells.
pub const LEVEL_MAX: u32 = 5;

/// Tail of each bar on each side: together 95 %.
const TAIL: f64 = 0.025;

/// Standard normal quantile at 1 − TAIL.
const QUANTILE: f64 = 1.959_963_984_540_054;

/// Variance of a count from which the expansion replaces the exact quantile.
const SMALL: f64 = 60.0;

/// If the sum of the shapes is above this and one of them is small, [`far_quantile`] is used: there
/// the library's quantile loses its digits and, from 7·10⁶ on, never ends.
const FAR: f64 = 1e5;

/// Most events of a cell whose bar is remembered, in 200 kB for all of them.
const REMEMBERED: usize = 127;

/// One occupied cell of the reliability diagram.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReliabilityCell {
    /// Lower edge of the cell, included.
    pub low: f64,
    /// Upper edge of the cell, excluded (the last cell is closed).
    pub high: f64,
    /// Events, at least 1.
    pub n: u64,
    /// Mean score.
    pub mean_score: f64,
    /// Share of positive outcomes.
    pub event_rate: f64,
    /// Lower end of the Clopper–Pearson bar of the event rate; `None` of weighted events, whose
    /// positives are no binomial count.
    pub rate_low: Option<f64>,
    /// Upper end of it.
    pub rate_high: Option<f64>,
    /// Lower end of the consistency bar: where the event rate falls under the null.
    pub null_low: f64,
    /// Upper end of it.
    pub null_high: f64,
}

/// The diagram of a level; `edges` gives the edges of a cell.
pub fn reliability(level: &Level, edges: impl Fn(u64) -> (f64, f64)) -> Vec<ReliabilityCell> {
    let of = if level.is_weighted() {
        weighted_cell
    } else {
        cell
    };
    let cells = level.occupied.iter();
    cells.map(|c| of(&c, edges(c.index))).collect()
}

/// The bars of weighted events. Under the null the rate Σwy/Σw has the mean Σwz/Σw, the variance
/// Σw²V/(Σw)² and the third moment Σw³μ₃/(Σw)³, exactly; the consistency bar is the second-order
/// Cornish–Fisher expansion of these, without the steps that a count has.
fn weighted_cell(c: &LevelCell, (low, high): (f64, f64)) -> ReliabilityCell {
    let (mean, sd) = (c.z / c.n, c.v.sqrt());
    let skew = if sd > 0.0 { c.mu3 / (c.v * sd) } else { 0.0 };
    let at = |z: f64| {
        let off = z + skew * (z * z - 1.0) / 6.0;
        (mean + sd / c.n * off).clamp(0.0, 1.0)
    };
    ReliabilityCell {
        low,
        high,
        n: c.count as u64,
        mean_score: mean,
        event_rate: c.y / c.n,
        rate_low: None,
        rate_high: None,
        null_low: at(-QUANTILE),
        null_high: at(QUANTILE),
    }
}

fn cell(c: &LevelCell, (low, high): (f64, f64)) -> ReliabilityCell {
    let (rate_low, rate_high) = rate_bar(c.y, c.n);
    let (null_low, null_high) = consistency(c.n, c.z / c.n);
    ReliabilityCell {
        low,
        high,
        n: c.n as u64,
        mean_score: c.z / c.n,
        event_rate: c.y / c.n,
        rate_low: Some(rate_low),
        rate_high: Some(rate_high),
        null_low,
        null_high,
    }
}

/// The bar of the rate of `y` positives in `n` events.
fn rate_bar(y: f64, n: f64) -> (f64, f64) {
    /// By n, then by y.
    static BARS: LazyLock<Vec<OnceLock<(f64, f64)>>> =
        LazyLock::new(|| vec![OnceLock::new(); (REMEMBERED + 1) * (REMEMBERED + 2) / 2]);
    let bar = || clopper_pearson(y, n, TAIL);
    let (positives, events) = (y as usize, n as usize);
    let counts = positives as f64 == y && events as f64 == n;
    if counts && positives <= events && events <= REMEMBERED {
        *BARS[events * (events + 1) / 2 + positives].get_or_init(bar)
    } else {
        bar()
    }
}

/// Clopper–Pearson interval of the rate of `y` positives in `n` events, `tail` outside on each side
/// (Biometrika 26, 1934): quantiles of Beta(y, n−y+1) below and Beta(y+1, n−y) above; exactly 0 and
/// 1 at the ends.
pub(super) fn clopper_pearson(y: f64, n: f64, tail: f64) -> (f64, f64) {
    let low = if y > 0.0 {
        beta_quantile(y, n - y + 1.0, tail)
    } else {
        0.0
    };
    let high = if y < n {
        beta_quantile(y + 1.0, n - y, 1.0 - tail)
    } else {
        1.0
    };
    (low, high)
}

/// The quantile of Beta(a, b) at `p`.
fn beta_quantile(a: f64, b: f64, p: f64) -> f64 {
    let s = a + b;
    if a * b / s < SMALL && s > FAR {
        return if a <= b {
            far_quantile(a, b, p)
        } else {
            1.0 - far_quantile(b, a, 1.0 - p)
        };
    }
    if a * b / s < SMALL {
        // A shape is at least 1 here, so the constructor cannot refuse it.
        return Beta::new(a, b).map_or(p.round(), |d| d.inverse_cdf(p));
    }
    let mean = a / s;
    let sd = (a * b / (s + 1.0)).sqrt() / s;
    let skew = 2.0 * (b - a) * (s + 1.0).sqrt() / ((s + 2.0) * (a * b).sqrt());
    let excess =
        6.0 * ((a - b) * (a - b) * (s + 1.0) - a * b * (s + 2.0)) / (a * b * (s + 2.0) * (s + 3.0));
    let z = -normal_upper_quantile(p);
    (mean + sd * cornish_fisher(z, skew, excess)).clamp(0.0, 1.0)
}

/// The quantile of Beta(a, b) at `p`, a small and b large. Newton's method in ln x solves
///
/// ```text
/// ln p = ln I_x(a, b),   I_x(a, b) = x^a (1−x)^b / (a B(a, b)) · Σ_j Π_{i<j} (a+b+i)x/(a+1+i)
/// ```
///
/// As I is log-concave in ln x, every step but the first goes up to the solution and none beyond
/// it. Relative error 10⁻¹⁰, some microseconds at most.
fn far_quantile(a: f64, b: f64, p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 {
        return p;
    }
    if a == 1.0 {
        return -((-p).ln_1p() / b).exp_m1();
    }
    let s = a + b;
    // ln Γ(a+b) − ln Γ(b) by Stirling's series, its large parts subtracted analytically.
    let rise = (b - 0.5) * (a / b).ln_1p() + a * s.ln() - a + (1.0 / s - 1.0 / b) / 12.0;
    let ln_front = rise - ln_gamma(a + 1.0);
    // b times the variable is about gamma: its quantile by Wilson and Hilferty, or the one of the
    // leading power, which is too small.
    let root = 1.0 - (1.0 / 9.0) / a - normal_upper_quantile(p) / (3.0 * a.sqrt());
    let mut t = (p.ln() - ln_front) / a;
    if root > 0.0 {
        t = t.max((a / s).ln() + 3.0 * root.ln());
    }
    for _ in 0..100 {
        let x = t.exp();
        let (mut term, mut sum, mut j) = (1.0, 1.0, 0.0);
        while term > 1e-17 * sum {
            term *= (s + j) * x / (a + 1.0 + j);
            sum += term;
            j += 1.0;
        }
        let off = a * t + b * (-x).ln_1p() + ln_front + f64::ln(sum) - p.ln();
        let step = off * (1.0 - x) * sum / a;
        t -= step;
        if step.abs() <= 1e-11 {
            break;
        }
    }
    t.exp()
}

/// Where the share of positives of Binomial(n, p) falls: the smallest counts at which the
/// distribution function reaches TAIL and 1 − TAIL, over n.
fn consistency(n: f64, p: f64) -> (f64, f64) {
    // The rarer side is the short sum.
    if p > 0.5 {
        let (low, high) = consistency(n, 1.0 - p);
        return (1.0 - high, 1.0 - low);
    }
    let variance = n * p * (1.0 - p);
    if variance < SMALL {
        return small_counts(n, p);
    }
    let sd = variance.sqrt();
    let (skew, excess) = ((1.0 - 2.0 * p) / sd, (1.0 - 6.0 * p * (1.0 - p)) / variance);
    let at = |z: f64| {
        let count = (n * p + sd * cornish_fisher(z, skew, excess)).round();
        count.clamp(0.0, n) / n
    };
    (at(-QUANTILE), at(QUANTILE))
}

/// Exact quantiles by adding up the probabilities from 0; n·p is at most 2·SMALL here, so a few
/// hundred terms at most.
fn small_counts(n: f64, p: f64) -> (f64, f64) {
    let odds = p / (1.0 - p);
    let mut probability = (n * (-p).ln_1p()).exp();
    let (mut below, mut count, mut low) = (probability, 0.0, None);
    loop {
        if low.is_none() && below >= TAIL {
            low = Some(count);
        }
        if below >= 1.0 - TAIL || count >= n {
            return (low.unwrap_or(count) / n, count / n);
        }
        probability *= (n - count) / (count + 1.0) * odds;
        count += 1.0;
        below += probability;
    }
}

fn cornish_fisher(z: f64, skew: f64, excess: f64) -> f64 {
    z + skew * (z * z - 1.0) / 6.0 + excess * (z * z * z - 3.0 * z) / 24.0
        - skew * skew * (2.0 * z * z * z - 5.0 * z) / 36.0
}

#[cfg(test)]
mod tests {
    use super::super::binomial;
    use super::*;

    #[test]
    fn bars_are_those_of_the_textbook() {
        // 10 of 100: Clopper–Pearson 95 % is [0.0490, 0.1762].
        let (low, high) = clopper_pearson(10.0, 100.0, TAIL);
        assert!(
            (low - 0.049_00).abs() < 1e-4 && (high - 0.176_22).abs() < 1e-4,
            "{low} {high}"
        );
        assert_eq!(clopper_pearson(0.0, 20.0, TAIL).0, 0.0);
        assert_eq!(clopper_pearson(20.0, 20.0, TAIL).1, 1.0);
        // Binomial(20, ½): 2.5 % and 97.5 % quantiles are 6 and 14.
        assert_eq!(consistency(20.0, 0.5), (0.3, 0.7));
        assert_eq!(consistency(5.0, 0.0), (0.0, 0.0));
        assert_eq!(consistency(5.0, 1.0), (1.0, 1.0));
    }

    #[test]
    fn bars_of_few_outcomes_among_very_many_are_exact_and_soon_there() {
        let near = |got: f64, want: f64, by: f64| {
            assert!((got / want - 1.0).abs() <= by, "{got} {want}");
        };
        for n in [2e5, 7e6, 1e7, 1e12] {
            near(
                clopper_pearson(0.0, n, TAIL).1,
                -f64::exp_m1(TAIL.ln() / n),
                1e-9,
            );
            // One positive: (1−p)ⁿ⁻¹(1 + (n−1)p) is the tail above.
            let (low, high) = clopper_pearson(1.0, n, TAIL);
            near(low, -f64::exp_m1((-TAIL).ln_1p() / n), 1e-9);
            let above = ((n - 1.0) * (-high).ln_1p()).exp() * (1.0 + (n - 1.0) * high);
            near(above, TAIL, 1e-8);
        }
        // The tails beyond both ends are what they should be, and the ends of counts of the other
        // outcome are mirrored.
        for (y, n) in [
            (2, 200_000),
            (20, 10_000_000),
            (5, 20_000_000),
            (59, 9_000_000),
        ] {
            let (low, high) = clopper_pearson(y as f64, n as f64, 0.05);
            near(binomial::upper_tail(y, n, low), 0.05, 1e-8);
            let below: f64 = (0..=y).map(|k| binomial::probability(k, n, high)).sum();
            near(below, 0.05, 1e-8);
            let mirrored = clopper_pearson((n - y) as f64, n as f64, 0.05);
            assert!((mirrored.0 - (1.0 - high)).abs() < 1e-15, "{y} of {n}");
            assert!((mirrored.1 - (1.0 - low)).abs() < 1e-15, "{y} of {n}");
        }
        let (low, high) = clopper_pearson(20.0, 1e7, 0.05);
        near(low, 1.33e-6, 5e-3);
        near(high, 2.91e-6, 5e-3);
        // It joins what is near, and takes counts that are no integers.
        for y in [0.0, 0.3, 1.0, 2.5, 20.0, 55.0] {
            for tail in [0.05, TAIL, 1e-4] {
                let near_by = clopper_pearson(y, 9.99e4, tail);
                let far = clopper_pearson(y, 1.001e5, tail);
                near(far.1 * 1.001e5, near_by.1 * 9.99e4, 1e-3);
                if y > 0.5 {
                    near(far.0 * 1.001e5, near_by.0 * 9.99e4, 1e-3);
                }
            }
        }
    }

    #[test]
    fn the_expansion_agrees_with_the_exact_quantiles_where_it_takes_over() {
        for (y, n) in [(62.0f64, 4000.0f64), (130.0, 260.0), (1500.0, 3000.0)] {
            let sd = (y * (n - y) / n).sqrt() / n;
            let exact = Beta::new(y, n - y + 1.0).unwrap().inverse_cdf(TAIL);
            assert!(
                (clopper_pearson(y, n, TAIL).0 - exact).abs() < 0.01 * sd,
                "{y} of {n}"
            );
            let exact = Beta::new(y + 1.0, n - y).unwrap().inverse_cdf(1.0 - TAIL);
            assert!(
                (clopper_pearson(y, n, TAIL).1 - exact).abs() < 0.01 * sd,
                "{y} of {n}"
            );
        }
        for (n, p) in [(6100.0, 0.01), (250.0, 0.4)] {
            let (a, b) = (consistency(n, p), small_counts(n, p));
            assert!(
                (a.0 - b.0).abs() * n <= 1.0 && (a.1 - b.1).abs() * n <= 1.0,
                "{a:?} {b:?}"
            );
        }
    }
}
