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
//! n²SKCE_b is a positive quadratic form, close to a gamma law with these two moments: at n = 250
//! it rejects 4.5 % of calibrated samples at 5 %, and all samples of the paper's models M2 and M3,
//! where the distribution-free tests reject two in three or none. The law is nearer to that of one
//! large χ² beside many small ones, and its far tail is thicker: at a level of .01 and .001 it
//! rejects 1.5 and 3 to 4 times as often (.0154 and .0031 of 20,000 calibrated sets of 150 vectors
//! from Dirichlet(1, 1, 1); .0145 and .0042 of 10,000 of 250 from beta(.5, 5)). With few expected
//! outcomes it does not fit, and they are drawn ([`super::redrawn`]). [`biased_bound`] holds at any
//! n: changing one outcome moves √SKCE_b by at most √2/n, and McDiarmid's inequality then has four
//! times the exponent of Theorem H.2.
//!
//! A bandwidth computed from the predictions is a constant here, so the median heuristic costs no
//! validity.

use super::phi::Kernel;
use super::redrawn::Redrawn;
use super::skce::{Blocks, Quadratic, traces};
use super::vectors::Vectors;
use crate::distance::laplace::{GAMMA_MIN, gamma_p_value};
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

/// Σ(1 − ‖g‖²), at least the events that are expected to miss the class they predict most, above
/// which outcomes are not drawn: a draw takes time by its square.
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

/// Upper p-value of SKCE_b by the gamma law of its two moments; `None` without null variance (all
/// predictions are certain).
pub fn biased_p_value(q: &Quadratic) -> Option<f64> {
    let (mean, variance) = biased_moments(q);
    gamma_p_value((q.off + q.diagonal).max(0.0), mean, variance)
}

/// Upper p-value of SKCE_b that holds at any n: exp(−t²/Σw²), t = √Σ_ij w_i w_j h_ij − √Σw²(1−‖g‖²)
/// where positive; without weights Σw² is n.
pub fn biased_bound(q: &Quadratic, squares: f64) -> f64 {
    let total = (q.off + q.diagonal).max(0.0);
    let excess = (total.sqrt() - q.null_diagonal.sqrt()).max(0.0) / squares;
    (-squares * excess * excess).exp()
}

/// Upper p-value of the blocks' mean by its known variance; `None` without variance.
pub fn block_p_value(blocks: &Blocks) -> Option<f64> {
    let deviation = blocks.null_variance.sqrt();
    (deviation > 0.0).then(|| normal_survival(blocks.sum / deviation))
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
