//! Confidence interval for the ℓ2 expected calibration error.
//!
//! Source: Sun, Chaudhari, Barnett, Dobriban, *A confidence interval for the ℓ2 expected
//! calibration error* (2024), Algorithm 1. With m cells, N_i events in cell i, n in all, U = y − z,
//! and e_i, C_i the mean and variance of U in cell i:
//!
//! * T = (1/n) Σ_{N_i ≥ 2} [(ΣU)_i² − (ΣU²)_i]/(N_i − 1), equation (4): unbiased given the counts
//!   for the squared error of the binned scores in cells of two events or more, so it may be
//!   negative; a cell of one event says nothing.
//! * σ̂₁² = Σ(N_i/n)e_i⁴ − (Σ(N_i/n)e_i²)² + 4Σ(N_i/n)e_i²C_i, equations (6), (7): n·var T off the
//!   null.
//!
//! Off the null √n(T − ECE²) is normal with σ₁²; on it T falls n√w times faster, with another law.
//! So one normal interval does not serve both. The algorithm cuts its lower end at T⁺/2 and decides
//! separately whether the interval contains 0 ([`NullReach`]). Because (0, x] and [0, x] differ,
//! `contains_zero` is a flag of its own; it may hold beside a positive lower end, and the set is
//! then {0} ∪ [lower, upper].
//!
//! With the conditional reach σ̂₁² is [guarded](Estimate::guarded) in cells of few outcomes, the
//! upper end of an error that is not 0 is that of the normal law of √T, and cells of fewer than
//! five events are joined with neighbours before there are ends ([`Level::joined`]): errors at
//! sparse scores, as in the upper tail of a model of rare events,
//! lie in cells of one event, and T knows nothing of these. Sums by cluster are those of dyadic
//! cells, which stay.
//!
//! Which null: the paper's σ₀ takes the scores to fill the whole chamber evenly and is far too wide
//! for rare events, where every V = z(1−z) is small. The conditional reach uses the exact three
//! cumulants of T given the scores and keeps its level whatever the scores are.
//!
//! Few outcomes. Both ends above are normal ones, and T is nearly normal only if several cells hold
//! enough of the rarer outcome. If fewer than [`EXACT_BELOW`] of it are expected (ΣV), or fewer
//! than [`CELLS_MIN`] cells hold nearly all of ΣV, the ends are exact instead. Clopper–Pearson
//! intervals of the cells' event rates, jointly of the confidence asked for, bound the error of
//! each cell. A sum of unequal Bernoulli variables varies less than a binomial count of the same
//! mean (Hoeffding 1956), so they cover. Their resolution is both halves of the axis, unless cells
//! are asked for.
//!
//! Where outcomes are many and few cells hold them, as those of a model of a few grades or one with
//! a frequent fallback, the resolution is that of the normal ends. If more than [`FEW_CELLS`] cells
//! are occupied, the 7 of the largest ΣV have exact ends b_i, and the N events of all others have
//! normal ends B together, where these serve; each of the 8 parts misses with an eighth of 1 −
//! confidence. The squared ends are
//!
//! ```text
//! (Σ N_i·b_i² + N·B²)/n
//! ```
//!
//! Where normal ends do not serve, as beside clusters or in 8 cells or fewer, the smallest cells,
//! which have at most [`OTHERS_MAX`] of ΣV together, are one cell, and `cells` counts the cells
//! left. Alone, a cell of one event would add about 1/n to the squared upper end. With more than 8
//! cells then left, or only one beside others that say nothing, the resolution is both halves
//! again.
//!
//! The interval covers the error of the binned scores at its `cells`, not a finer one. It does not
//! see an error that changes its sign within a cell.
//!
//! The paper's condition on m is n^(1/4s) ≪ m ≪ n: cells must be fine enough for the curve and hold
//! enough events; `median_count` under 5 says that they do not.

use super::conditional::{Asked, Null};
use super::estimate::Estimate;
use super::levels::Level;
use super::reliability::clopper_pearson;
use super::tcal::TCalOptions;
use statrs::distribution::{ContinuousCDF, Normal};

/// When the interval contains 0.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum NullReach {
    /// The estimate's p-value under the exact null given the scores exceeds α.
    Conditional,
    /// The paper's σ₀ for scores that fill [`lower_support`, 1].
    Paper {
        /// Smallest possible score: 0 for a binary view, 1/K for the top label of K classes.
        lower_support: f64,
    },
}

/// Expected rare outcomes (ΣV) below this have exact ends.
pub const EXACT_BELOW: f64 = 10.0;

/// Fewer cells than this that share ΣV, (ΣV)²/Σ(ΣV of a cell)², have exact ends.
pub const CELLS_MIN: f64 = 4.0;

/// Most parts whose ends share the tail; with more the ends are far apart.
pub(crate) const FEW_CELLS: usize = 8;

/// Share of ΣV beyond which other cells are not taken as one, in which their errors may cancel.
const OTHERS_MAX: f64 = 1.0 / 16.0;

/// ΣV below which the cells beside a single large one say too little for ends of their own.
const OTHERS_MIN: f64 = 5.0;

/// Where the ends come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Ends {
    /// Algorithm 1 of the paper.
    Normal,
    /// Clopper–Pearson intervals of the event rates of few cells.
    Exact,
}

/// Interval for the ℓ2-ECE.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Interval {
    /// m, the number of cells: the resolution of the error that is covered.
    pub cells: u64,
    /// Where the ends come from.
    pub ends: Ends,
    /// Confidence asked for.
    pub confidence: f64,
    /// T, the unbiased estimate of the squared ℓ2-ECE; may be negative.
    pub estimate_squared: f64,
    /// σ̂₁², its scaled variance off the null.
    pub sigma1_squared: f64,
    /// Lower end, on the ℓ2-ECE scale (not squared).
    pub lower: f64,
    /// Upper end, on the ℓ2-ECE scale.
    pub upper: f64,
    /// Whether 0 belongs to the interval; (0, x] and [0, x] differ in this alone.
    pub contains_zero: bool,
    /// Median count of the occupied cells; under 5 the interval is not to be trusted.
    pub median_count: f64,
}

/// An interval for the squared error.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SquaredEnds {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Whether 0 belongs to the interval.
    pub contains_zero: bool,
}

/// Algorithm 1 on the squared scale. `zero_within_reach` says whether the null keeps 0 in the
/// interval.
pub fn squared_ends(e: &Estimate, n: f64, alpha: f64, zero_within_reach: bool) -> SquaredEnds {
    let t = e.t.max(0.0);
    let (one_sided, two_sided) = (
        normal_quantile(1.0 - alpha),
        normal_quantile(1.0 - alpha / 2.0),
    );
    let h = (e.sigma1_squared.max(0.0) / n).sqrt();
    // The middle branch is open at 0: T could be this small by chance, but the null decides about 0
    // itself.
    let (lower, open) = if t / 2.0 <= t - two_sided * h {
        (t - two_sided * h, false)
    } else if t - one_sided * h < t / 2.0 {
        let lower = (t - one_sided * h).max(0.0);
        (lower, lower == 0.0)
    } else {
        (t / 2.0, false)
    };
    SquaredEnds {
        lower,
        upper: t + two_sided * h,
        contains_zero: zero_within_reach || (lower == 0.0 && !open),
    }
}

/// The interval at a level of a sample of `n` events; of weighted ones, of the effective number.
pub fn interval(level: &Level, n: f64, confidence: f64, reach: NullReach) -> Interval {
    let e = Estimate::of(level, n);
    interval_with(level, n, confidence, reach, Some(e.null_p_value()), 1.0)
}

/// The p-value of T at a level that nests in `leaves`; `None` if it is not drawn and its formula
/// does not hold.
pub(crate) fn zero_p_value(
    level: &Level,
    leaves: &Level,
    o: &TCalOptions,
    dispersion: f64,
) -> Option<f64> {
    let asked = Asked {
        interval: Some(level),
        dispersion,
        ..o.asks(&[], leaves)
    };
    let e = Estimate::of(level, level.occupied.iter().map(|c| c.n).sum());
    Null::of(Vec::new(), &asked).zero_p_value(&e)
}

/// The interval, given the p-value of T under the null; without one 0 stays in the interval. The
/// dispersion φ multiplies the variance. The lower end is that of T minus the most that dispersion
/// adds to it.
pub(crate) fn interval_with(
    level: &Level,
    n: f64,
    confidence: f64,
    reach: NullReach,
    zero_p_value: Option<f64>,
    dispersion: f64,
) -> Interval {
    let mut e = match reach {
        NullReach::Conditional => Estimate::guarded(level, n),
        NullReach::Paper { .. } => Estimate::of(level, n),
    };
    e.sigma1_squared *= dispersion;
    let mut of = normal(level, n, confidence, reach, zero_p_value, e);
    if dispersion > 1.0 {
        let t = e.t - (dispersion - 1.0) * e.excess;
        let alpha = 1.0 - confidence;
        let less = squared_ends(&Estimate { t, ..e }, n, alpha, of.contains_zero);
        of.lower = less.lower.sqrt();
    }
    of
}

/// The upper end, squared, of an error that is not 0, by the normal law of √T instead of T:
///
/// ```text
/// (√T + zh/(2√T))² = T + zh + (zh)²/4T,   T at least zh
/// ```
///
/// h grows with √T, so an estimate that is too low has too short an h, and an interval that is
/// symmetric about T misses above two to three times as often as below. Derived; simulated in
/// `tests/stats`.
pub(crate) fn root_upper(e: &Estimate, n: f64, alpha: f64) -> f64 {
    let t = e.t.max(0.0);
    let reach = normal_quantile(1.0 - alpha / 2.0) * (e.sigma1_squared.max(0.0) / n).sqrt();
    match reach > 0.0 {
        true => t + reach + reach * reach / (4.0 * t.max(reach)),
        false => t,
    }
}

/// The interval with normal ends of an estimate at a level.
pub(crate) fn normal(
    level: &Level,
    n: f64,
    confidence: f64,
    reach: NullReach,
    zero_p_value: Option<f64>,
    e: Estimate,
) -> Interval {
    let alpha = 1.0 - confidence;
    let within = match reach {
        NullReach::Conditional => zero_p_value.is_none_or(|p| p > alpha),
        NullReach::Paper { lower_support } => {
            e.t.max(0.0) < paper_threshold(lower_support, level.cells, n, alpha)
        }
    };
    let mut ends = squared_ends(&e, n, alpha, within);
    if reach == NullReach::Conditional && !within {
        ends.upper = root_upper(&e, n, alpha);
    }
    Interval {
        cells: level.cells,
        ends: Ends::Normal,
        confidence,
        estimate_squared: e.t,
        sigma1_squared: e.sigma1_squared,
        lower: ends.lower.sqrt(),
        upper: ends.upper.sqrt(),
        contains_zero: ends.contains_zero,
        median_count: median_count(level),
    }
}

/// Whether normal ends do not serve at a level. Of weighted events ΣV is (Σw²V)²/Σw⁴V over all
/// cells, and in one cell ΣV of its effective number of events.
pub(crate) fn needs_exact_ends(level: &Level) -> bool {
    let (mut v, mut squares) = (0.0, 0.0);
    for (c, moments) in level.squares() {
        let scale = c.n / moments.w2;
        let own = c.v * scale * scale;
        v += own;
        squares += own * own;
    }
    !has_outcomes(level) || v * v < CELLS_MIN * squares
}

/// Whether a level has enough outcomes for normal ends: if these do not serve then, cells are too
/// few.
pub(crate) fn has_outcomes(level: &Level) -> bool {
    level.information() >= EXACT_BELOW
}

/// What the exact ends depend on.
pub(crate) struct Exact<'a> {
    pub confidence: f64,
    /// φ events that vary together count as one.
    pub dispersion: f64,
    /// ω ≥ 1: the variance of the rate of weighted events as a multiple of that of as many
    /// effective events of one weight; 1 without weights.
    pub weighting: f64,
    /// Whether there are no clusters, so that some cells may have normal ends.
    pub independent: bool,
    /// Both halves of the axis, where the resolution may be another one.
    pub halves: Option<&'a Level>,
    /// Options for the law of T.
    pub tcal: &'a TCalOptions,
}

impl<'a> Exact<'a> {
    /// The interval, and the level that it is of: this one or both halves. `n` events in all, of
    /// weighted ones the effective number.
    pub fn interval(&self, level: &'a Level, n: f64) -> (Interval, &'a Level) {
        let occupied = level.occupied.len();
        if occupied > FEW_CELLS {
            let (large, others) = level.split(FEW_CELLS - 1);
            if self.independent && !needs_exact_ends(&others) {
                return (self.of_both(level, n, &large, &others), level);
            }
        }
        let Some(halves) = self.halves else {
            return (self.of_cells(level, n), level);
        };
        let (large, rest) = level.large(OTHERS_MAX);
        let parts = large + usize::from(large < occupied);
        if parts > FEW_CELLS || (large < 2 && rest < OTHERS_MIN) {
            return (self.of_cells(halves, n), halves);
        }
        if occupied - large < 2 {
            return (self.of_cells(level, n), level);
        }
        let (large, others) = level.split(large);
        let merged = large.with_one(&others);
        let cells = merged.occupied.len() as u64;
        let interval = self.of_cells(&merged, n);
        (Interval { cells, ..interval }, level)
    }

    /// Exact ends of every cell.
    fn of_cells(&self, level: &Level, n: f64) -> Interval {
        self.reported(level, n, self.ends(level, level.occupied.len()))
    }

    /// Exact ends of large cells, and normal ones of the others together.
    fn of_both(&self, level: &Level, n: f64, large: &Level, others: &Level) -> Interval {
        let mut ends = self.ends(large, FEW_CELLS);
        let rest: f64 = others.occupied.n.iter().sum();
        let effective = rest * rest / others.squares().map(|(_, w)| w.w2).sum::<f64>();
        let zero = zero_p_value(others, others, self.tcal, self.dispersion);
        let (reach, confidence) = (NullReach::Conditional, 1.0 - self.share(FEW_CELLS));
        let normal = interval_with(others, effective, confidence, reach, zero, self.dispersion);
        if !normal.contains_zero {
            ends.0 += rest * normal.lower * normal.lower;
        }
        ends.1 += rest * normal.upper * normal.upper;
        self.reported(level, n, ends)
    }

    /// The probability with which each of `parts` parts may miss.
    fn share(&self, parts: usize) -> f64 {
        (1.0 - self.confidence) / parts.max(1) as f64
    }

    /// Σ N·b² over cells, for their lower and for their upper ends b; each cell is one of `parts`
    /// parts.
    fn ends(&self, level: &Level, parts: usize) -> (f64, f64) {
        let tail = 0.5 * self.share(parts);
        let (mut least, mut most) = (0.0, 0.0);
        for (c, moments) in level.squares() {
            let mean = c.z / c.n;
            let scale = c.n / moments.w2 / (self.dispersion * self.weighting);
            let (low, high) = clopper_pearson(c.y * scale, c.n * scale, tail);
            let near = (low - mean).max(mean - high).max(0.0);
            let far = (high - mean).max(mean - low);
            least += c.n * near * near;
            most += c.n * far * far;
        }
        (least, most)
    }

    fn reported(&self, level: &Level, n: f64, (least, most): (f64, f64)) -> Interval {
        let e = Estimate::of(level, n);
        let all: f64 = level.occupied.n.iter().sum();
        Interval {
            cells: level.cells,
            ends: Ends::Exact,
            confidence: self.confidence,
            estimate_squared: e.t,
            sigma1_squared: e.sigma1_squared,
            lower: (least / all).sqrt(),
            upper: (most / all).sqrt(),
            contains_zero: least <= 0.0,
            median_count: median_count(level),
        }
    }
}

/// The paper's σ₀ for scalar scores that fill [`lower_support`, 1]:
/// σ₀² = 2∫(z² − 2z³ + z⁴)dz.
pub fn sigma0_paper(lower_support: f64) -> f64 {
    let f = |z: f64| z.powi(3) / 3.0 - z.powi(4) / 2.0 + z.powi(5) / 5.0;
    (2.0 * (f(1.0) - f(lower_support))).sqrt()
}

/// T⁺ below z_α σ₀/(n√w), w = 1/m the cell's width, is within the paper's reach of the null.
pub fn paper_threshold(lower_support: f64, cells: u64, n: f64, alpha: f64) -> f64 {
    normal_quantile(1.0 - alpha) * sigma0_paper(lower_support) / n * (cells as f64).sqrt()
}

/// Cells by default: the smallest power of two not below 2·n^(2/5), at least 2.
///
/// n^(2/5) is the order at which T's binning error and its noise off the null balance for a
/// Lipschitz curve (smoothness s = 1). The factor is for scores that fill half the axis, as those
/// of a top label do: without it the 90 % interval covered 0.84 in the paper's setting 2 at n =
/// 1000, with it 0.87.
pub fn default_cells(n: u64) -> u64 {
    let target = (2.0 * (n as f64).powf(0.4)).ceil().max(2.0) as u64;
    target.next_power_of_two()
}

fn median_count(level: &Level) -> f64 {
    // The effective number of weighted events; n·(n/n) is n.
    let effective = level.squares().map(|(c, moments)| c.n * (c.n / moments.w2));
    median(effective.collect())
}

/// The median of counts; 0 of none.
pub(crate) fn median(mut counts: Vec<f64>) -> f64 {
    if counts.is_empty() {
        return 0.0;
    }
    let middle = counts.len() / 2;
    let odd = !counts.len().is_multiple_of(2);
    let (below, &mut high, _) = counts.select_nth_unstable_by(middle, f64::total_cmp);
    if odd {
        high
    } else {
        let low = below.iter().copied().fold(f64::MIN, f64::max);
        (low + high) / 2.0
    }
}

fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}
