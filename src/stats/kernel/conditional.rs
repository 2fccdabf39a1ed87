//! Tests of calibration given the predictions: the product's own.
//!
//! Under the null and given the predictions, outcomes are independent draws from them. So the
//! moments of every estimator are known exactly, without limits and without bounds on h (derived;
//! numbers from [`super::skce`]):
//!
//! * E(SKCE_b) = n⁻²Σ(1 − ‖g‖²), Var(n²SKCE_b) = ΣVar h_ii + 2Σ_{i≠j}φ² tr(S_i S_j); cross terms
//!   are odd in some independent residual of mean 0 and vanish;
//! * E(SKCE_uq) = 0, Var = 2Σ_{i≠j}φ² tr(S_i S_j)/(n(n−1))²; blocks likewise.
//!
//! n²SKCE_b is a positive quadratic form. A gamma law with these two moments has about its level at
//! .05 and too thin a far tail: it rejects .0154 and .0031 of calibrated sets at .01 and .001 (150
//! vectors from Dirichlet(1, 1, 1)), and .0259 and .0106 where one frequent class dominates (50
//! classes, one of probability .3 to .7, n = 300). So the p-value is at least that of one χ² of the
//! same moments ([`form_p_value`]). Then the shares of calibrated sets rejected are
//!
//! | 5000 sets or more of 150 vectors | .05 | .01 | .001 |
//! |---|---|---|---|
//! | Dirichlet(1, 1, 1) | .049 | .006 | .0006 |
//! | two classes, uniform | .047 | .010 | .0004 |
//! | 50 classes, one of .3 to .7 | .056 | .009 | .0008 |
//! | ten classes, softmax of N(0, 3²) | .038 | .002 | 0 |
//!
//! (standard errors .003, .0014, .0004). It costs little power at .05 (.91 became .90, .76 .74, .34
//! .33 and .69 .66 in four models), more at .01 (.81 became .70), where part of it is the level.
//! All samples of the paper's models M2 and M3 are rejected at .05, where the distribution-free
//! tests reject two in three or none. With few expected outcomes these laws do not fit, and
//! outcomes are drawn ([`super::redrawn`]). [`biased_bound`] holds at any n: changing one outcome
//! moves √SKCE_b by at most √2/n, and McDiarmid's inequality then has four times the exponent of
//! Theorem H.2.
//!
//! A bandwidth computed from the predictions is a constant here, so the median heuristic costs no
//! validity.

use super::phi::Kernel;
use super::redrawn::Redrawn;
use super::skce::{Blocks, Quadratic, traces};
use super::vectors::Vectors;
use crate::distance::laplace::{GAMMA_MIN, form_p_value, gamma_p_value};
use crate::null::normal_survival;

/// Mean and variance of n²·SKCE_b.
pub fn biased_moments(q: &Quadratic) -> (f64, f64) {
    (
        q.null_diagonal,
        q.null_diagonal_variance + 2.0 * q.null_pairs,
    )
}

/// Variance of SKCE_uq; 0 for one event.
pub fn unbiased_variance(q: &Quadratic) -> f64 {
    let pairs = q.n * (q.n - 1.0);
    if pairs > 0.0 {
        2.0 * q.null_pairs / (pairs * pairs)
    } else {
        0.0
    }
}

/// Greatest Σ(1 − ‖g‖²) for which outcomes are drawn. It is at least the expected number of events
/// that miss their likeliest class, and the time of a draw grows with its square.
const REDRAWN_MAX: f64 = 200.0;

/// Upper p-value of SKCE_b of a sample with one weight an event, whose sums are `q`: by the gamma
/// law, or by redrawn outcomes where events are worth fewer than [`GAMMA_MIN`] rare outcomes, ½
/// (Σw²d)²/Σw⁴d of them with d = 1 − ‖g‖². Where few events have nearly all of the weight among
/// many others it is [`biased_bound`]. `None` without null variance.
pub fn p_value(
    sample: &Vectors,
    weights: &[f64],
    kernel: Kernel,
    q: &Quadratic,
    (alpha, seed): (f64, u64),
) -> Option<f64> {
    let gamma = biased_p_value(q)?;
    let (mut all, mut sum, mut squares, mut w2) = (0.0, 0.0, 0.0, 0.0);
    for ((g, _), w) in sample.events().zip(weights) {
        let own = 1.0 - traces(g, g).0;
        all += own;
        sum += w * w * own;
        squares += w.powi(4) * own;
        w2 += w * w;
    }
    Some(if 0.5 * sum * sum >= GAMMA_MIN * squares {
        gamma
    } else if all <= REDRAWN_MAX {
        Redrawn::new(sample, weights, kernel).p_value(alpha, seed)
    } else {
        biased_bound(q, w2)
    })
}

/// Upper p-value of SKCE_b by the laws of its two moments ([`form_p_value`]); `None` without null
/// variance (all predictions are certain).
pub fn biased_p_value(q: &Quadratic) -> Option<f64> {
    let (mean, variance) = biased_moments(q);
    form_p_value((q.off + q.diagonal).max(0.0), mean, variance)
}

/// Upper p-value of SKCE_b that holds at any n: exp(−t²/Σw²), t = √Σ_ij w_i w_j h_ij − √Σw²(1−‖g‖²)
/// where positive; without weights Σw² is n.
pub fn biased_bound(q: &Quadratic, squares: f64) -> f64 {
    let total = (q.off + q.diagonal).max(0.0);
    let excess = (total.sqrt() - q.null_diagonal.sqrt()).max(0.0) / squares;
    (-squares * excess * excess).exp()
}

/// Least (Σv)²/Σv² of pairs, v the null variance of each, for a law of their mean.
const PAIRS_MIN: f64 = 30.0;

/// Least (Σv)²/Σv² of larger blocks, for a law of their mean.
const BLOCKS_MIN: f64 = 5.0;

/// Greatest skewness from pairs alone for which a law is trusted: if few pairs are expected to have
/// two rare outcomes, the law has steps.
const SKEWNESS_MAX: f64 = 0.4;

/// Upper p-value of the mean of blocks of `size`, by the gamma law of its known variance and
/// skewness. In blocks of two all skewness is that of pairs, which is known. A larger block is
/// besides nearly a weighted sum of χ², of skewness √8 at most; the mean of m equal blocks has
/// √(8/m), m = (Σv)²/Σv².
///
/// Pairs and blocks then reject at most .0134 and .0097 of calibrated sets at .01, and .0013 and
/// .0011 at .001, of 4000 to 12,000 sets of eight laws, n from 150 to 3000. A normal law rejects
/// .042 at .001 where z ~ U(0, .02), n = 3000; such samples have no p-value here.
///
/// `None` where no law is known: without variance, where m is small, or where pairs are skewed.
/// `like` are blocks of `size` with predictions like those of `blocks`, or `blocks` itself.
pub fn block_p_value(blocks: &Blocks, like: &Blocks, size: usize) -> Option<f64> {
    if !(blocks.null_variance > 0.0 && like.null_variance > 0.0) {
        return None;
    }
    let times = blocks.count / like.count;
    let many = times * like.null_variance * (like.null_variance / like.null_squares);
    let of_pairs = like.null_third / (like.null_variance.powf(1.5) * times.sqrt());
    let (least, of_blocks) = match size {
        2 => (PAIRS_MIN, 0.0),
        _ => (BLOCKS_MIN, (8.0 / many).sqrt()),
    };
    if !(many >= least && of_pairs <= SKEWNESS_MAX) {
        return None;
    }
    let z = blocks.sum / blocks.null_variance.sqrt();
    let skewness = of_blocks + of_pairs.max(0.0);
    if skewness < 1e-3 {
        return Some(normal_survival(z));
    }
    let shape = 4.0 / (skewness * skewness);
    gamma_p_value(shape + z * shape.sqrt(), shape, shape)
}

/// The class at `uniform` in [0, 1) of the cumulative probabilities; the last class where rounding
/// leaves none.
pub fn draw(p: &[f64], uniform: f64) -> u32 {
    let mut sum = 0.0;
    for (class, p) in (0..).zip(p) {
        sum += p;
        if uniform < sum {
            return class;
        }
    }
    p.len() as u32 - 1
}
