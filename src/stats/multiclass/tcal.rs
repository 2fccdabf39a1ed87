//! Adaptive T-Cal for vectors.
//!
//! Levels of 2, 4, … slices, B = ⌈(2/d)·log₂(n/√ln n)⌉ of them, d the dimension that is cut: K − 1
//! for `full` (Lee, Huang, Hassani, Dobriban 2022, section 4), k for `top_k`. Each level's p-value
//! is the Pearson type III tail with its three null cumulants; the smallest is adjusted by the
//! joint law of the levels' chain, as for scalars. Covariance of two levels: (1/n²)Σ 2Σ_{a≠b}tr(S_a
//! S_b)/(N·N_parent) over the finer level's cells.
//!
//! Beside it the bound of Theorem 3.1: T_d ≥ √(2K²/α′)·min(m^(d/2)/n, m^(−d/2)), α′ = α/B. Where
//! predictions concentrate in high dimension, more events meet in a cell than its second term
//! stands for. Then Chebyshev's bound, sd(T_d)/√α′, is the greater one and counts, so what exceeds
//! the bound does so at α/B whatever the predictions are.
//!
//! Where outcomes are few they are drawn, or levels whose law is not known are left out ([module
//! `conditional`](super)). Where no level is left, as with few large weights, the p-value is an
//! upper bound by Bennett's inequality (`crate::bennett`): with S = Σ w·f(z_c)·U_c, f a shift or a
//! slope of coordinate c (a class of `full`, a rank of `top_k`), four times their number times the
//! smallest of exp(−(v/b²)·h(sb/v)) over f, its sign and c.
//!
//! A level on which no cell holds two events has p-value 1. In many dimensions that is nearly every
//! level, and the test says nothing: kernels do better there.

use super::conditional::Null;
use super::estimate;
use super::events::Events;
use super::level::VectorLevel;
use crate::bennett;
use crate::joint::min_p_value;
use crate::null::Moments;
use std::collections::BTreeMap;

/// The result of one level.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VectorLevelResult {
    /// m, slices of an axis.
    pub slices: u32,
    /// Number of occupied cells.
    pub occupied: usize,
    /// Number of cells with two events or more.
    pub shared: usize,
    /// T_b, the plug-in estimate of the squared ℓ2-ECE.
    pub plug_in: f64,
    /// T_d, the debiased estimate of the squared ℓ2-ECE; may be negative.
    pub debiased: f64,
    /// Standard deviation of T_d under the null given the predictions.
    pub null_sd: f64,
    /// p-value of T_d, not adjusted.
    pub p_value: f64,
    /// Whether T_d reaches the bound of Theorem 3.1 at α/B, and Chebyshev's; false for weighted
    /// events, for which the bound is not given.
    pub theorem: bool,
    /// Whether the level takes no part: no law of its estimate can be trusted at so few outcomes.
    pub left_out: bool,
}

/// The adaptive test.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VectorTCal {
    /// Adjusted p-value.
    pub p_value: f64,
    /// Whether no level takes part, so that the p-value is an upper bound, which holds for any
    /// weights.
    pub bounded: bool,
    /// Calibration is rejected at α.
    pub reject: bool,
    /// Some level exceeds the theorem's bound.
    pub theorem_reject: bool,
    /// Levels, coarse to fine.
    pub levels: Vec<VectorLevelResult>,
    /// How often outcomes were drawn, because formulas do not hold for so few; `None` where
    /// formulas hold.
    pub replicates: Option<u32>,
}

/// Finest level: 2¹⁵ slices.
const LEVEL_MAX: u32 = 15;

/// B, the number of levels for `n` events in `d` free dimensions; from 1 to 15.
pub fn scales(n: f64, d: usize) -> u32 {
    if n < 2.0 {
        return 1;
    }
    let exponent = 2.0 / d as f64 * (n / n.ln().sqrt()).log2();
    (exponent.ceil().max(1.0) as u32).min(LEVEL_MAX)
}

/// The test of a sample; with fewer than two events p-value 1 and no levels.
pub fn tcal(events: &Events, alpha: f64) -> VectorTCal {
    of_levels(&levels(events), &Shape::of(events), alpha)
}

/// The levels of a sample, coarse to fine; none with fewer than two events.
pub(super) fn levels(events: &Events) -> Vec<VectorLevel> {
    if events.len() < 2 {
        return Vec::new();
    }
    let n = events.effective().unwrap_or(events.len() as f64);
    let count = scales(n, events.free_dimension());
    let level = |b: u32| VectorLevel::of(events, 1 << b);
    (1..=count).map(level).collect()
}

/// Non-adaptive T-Cal: one level of `slices` slices an axis, ⌊n^{2/(4s+K−1)}⌋ for a known
/// smoothness s. \[T-Cal, Algorithm 1\]
pub fn tcal_fixed(events: &Events, slices: u32, alpha: f64) -> VectorTCal {
    let levels = if events.len() >= 2 {
        vec![VectorLevel::of(events, slices)]
    } else {
        Vec::new()
    };
    of_levels(&levels, &Shape::of(events), alpha)
}

/// The number of classes and the dimension of a view.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// K, the number of classes.
    pub classes: usize,
    /// d, the dimension that cells divide.
    pub free_dimension: usize,
}

impl Shape {
    /// The shape of a sample's view.
    pub fn of(events: &Events) -> Shape {
        Shape {
            classes: events.classes,
            free_dimension: events.free_dimension(),
        }
    }
}

/// The test of nested levels, coarse to fine, of one sample of at least two events.
pub fn of_levels(levels: &[VectorLevel], shape: &Shape, alpha: f64) -> VectorTCal {
    test(levels, shape, alpha, None).0
}

/// [`of_levels`], with the null on which it rests; `interval` is the position of the interval's
/// level.
pub(super) fn test(
    levels: &[VectorLevel],
    shape: &Shape,
    alpha: f64,
    interval: Option<usize>,
) -> (VectorTCal, Null) {
    let moments: Vec<Moments> = levels.iter().map(estimate::moments_of_debiased).collect();
    let share = alpha / levels.len().max(1) as f64;
    let null = Null::of(levels, &moments, interval, alpha);
    let results: Vec<VectorLevelResult> = (levels.iter().zip(&moments).enumerate())
        .map(|(b, (level, m))| {
            let p_value = |t: f64| match null.speaks(b) {
                true => null.level_p_value(b, || m.survival(t)),
                false => 1.0,
            };
            VectorLevelResult {
                left_out: m.variance > 0.0 && !null.speaks(b),
                ..result(shape, level, m, share, p_value)
            }
        })
        .collect();
    let kept: Vec<usize> = (0..levels.len())
        .filter(|&b| moments[b].variance > 0.0 && null.speaks(b))
        .collect();
    let smallest = results.iter().map(|r| r.p_value).fold(1.0, f64::min);
    let silent = kept.is_empty() && smallest > 0.0 && results.iter().any(|r| r.left_out);
    let bound = (levels.last().filter(|_| silent)).and_then(bennett::of_vectors);
    let p_value = match bound.or_else(|| null.drawn_joint_p_value(&kept)) {
        // What cannot happen under the null.
        _ if results.is_empty() || smallest <= 0.0 => smallest,
        Some(p_value) => p_value,
        None => min_p_value(smallest, &chain(levels, &moments, &kept)),
    };
    let tcal = VectorTCal {
        p_value,
        bounded: bound.is_some(),
        reject: p_value <= alpha,
        theorem_reject: results.iter().any(|r| r.theorem),
        levels: results,
        replicates: null.replicates(),
    };
    (tcal, null)
}

fn result(
    shape: &Shape,
    level: &VectorLevel,
    m: &Moments,
    share: f64,
    p_value: impl FnOnce(f64) -> f64,
) -> VectorLevelResult {
    let debiased = estimate::debiased(level);
    let k = shape.classes as f64;
    // m^d may be beyond any float; its logarithm is not.
    let power = 0.5 * shape.free_dimension as f64 * f64::from(level.slices).ln();
    let theorem = (2.0 * k * k / share).sqrt() * (power - level.n.ln()).min(-power).exp();
    let bound = theorem.max(m.sd() / share.sqrt());
    let shared = level.cells.iter().filter(|c| c.count >= 2.0).count();
    VectorLevelResult {
        slices: level.slices,
        occupied: level.cells.len(),
        shared,
        plug_in: estimate::plug_in(level),
        debiased,
        null_sd: m.sd(),
        p_value: if shared == 0 {
            1.0
        } else if m.variance <= 0.0 {
            m.survival(debiased)
        } else {
            p_value(debiased)
        },
        theorem: level.effective.is_none() && shared > 0 && debiased >= bound,
        left_out: false,
    }
}

/// Correlations of the levels that are kept, each with the one before; over a gap the product of
/// those in it.
fn chain(levels: &[VectorLevel], moments: &[Moments], kept: &[usize]) -> Vec<f64> {
    let all = neighbours(levels, moments);
    let gaps = kept.windows(2).map(|pair| &all[pair[0]..pair[1]]);
    gaps.map(|gap| gap.iter().product()).collect()
}

/// The correlation of each level but the first with the one before; 1 where one of both has no
/// variance.
fn neighbours(levels: &[VectorLevel], moments: &[Moments]) -> Vec<f64> {
    let mut correlations = Vec::new();
    for (pair, m) in levels.windows(2).zip(moments.windows(2)) {
        if !(m[0].variance > 0.0 && m[1].variance > 0.0) {
            correlations.push(1.0);
            continue;
        }
        let counts: BTreeMap<_, f64> = pair[0].cells.iter().map(|c| (&c.name, c.n)).collect();
        let mut covariance = 0.0;
        for c in pair[1].cells.iter().filter(|c| c.count >= 2.0) {
            // Levels nest, so the parent is occupied.
            let above = counts.get(&c.name.parent()).copied().unwrap_or(c.n);
            covariance += 2.0 * c.pairs / (c.n * above);
        }
        covariance /= pair[0].n * pair[0].n;
        correlations.push((covariance / (m[0].sd() * m[1].sd())).clamp(0.0, 1.0));
    }
    correlations
}
