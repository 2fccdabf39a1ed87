//! What a window of a stream keeps for the kernel test, and the test of it.
//!
//! The quadratic estimator needs pairs of events, so no finite sum of events gives it. Two things
//! are kept instead:
//!
//! * a *bounded sample*: the events of lowest rank. The rank is a seeded hash of the event's name.
//!   The lowest ranks of a union are the lowest of the lowest ranks of its parts, so panes merge
//!   exactly, and the sample does not depend on order, splits or repeats. Ranks do not depend on
//!   outcomes: given the predictions, the outcomes of the sample are as independent as those of all
//!   events, so the tests given the predictions hold on it.
//! * where asked for, *random features* ([`super::features`]): sums over all events, exact for a
//!   kernel of their own. What they add is power: the noise of SKCE falls as 1/n.
//!
//! * where ν is fixed, *linear and block sums* ([`BlockSums`]): when a base pane is sealed, pairs
//!   and blocks of neighbours by rank in its own sample, in integers that add up over panes.
//!   Together they are of up to as many events a pane as the sample holds.
//!
//! [`evaluate`] of a window's sums is [`super::evaluate`] of its sample, in the order of ranks,
//! with the linear and block estimators over it; and of features beside. A pairing of all events by
//! arrival, as the paper streams it, would depend on the order in which partitions are read; hence
//! the pairing by rank.
//!
//! The features decide if they cover more events than the sample holds; otherwise the sample
//! decides. The null variance of the features contains Σ_{i≠j}φ_D² tr(S_i S_j), which is not a sum
//! over events. It is taken over the pairs of the sample and scaled to the number of all pairs.
//!
//! KCE is at most the ℓ2-ECE of the whole vector (φ ≤ 1), so a lower end of it is one of that
//! (derived): given the predictions, KCE_b = ‖n⁻¹Σφ(g_i)δ_i‖ moves by at most √2/n with one
//! outcome, and its noise has mean norm at most √((1 − 1/K)/n); hence KCE ≥ KCE_b − √((1 − 1/K)/n)
//! − √(ln(1/α)/n) with probability 1 − α (McDiarmid). It is far from sharp, but needs no limit law.
//!
//! Linear and block sums never decide: their noise falls as 1/√n only.
//!
//! Cost: an event is a hash and mostly one comparison, of D features 2DK + D sines; a pane
//! m·(8K + 40) + 32·DK bytes for a sample of m; a test m²/2 kernel values of O(K), twice that again
//! where the bandwidth is the median.

use super::features::{BlockSums, Features};
use super::skce::traces;
use super::{Blocks, Evaluation, Kernel, Options, PValues, Vectors, block_p};
use crate::distance::laplace::{GAMMA_MIN, form_p_value};

pub use super::sums::{BLOCKS, EVENTS_MAX, KernelOptions, KernelParts, KernelSums, SampleRow};

/// The test of random features over all events of a window.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FeatureTest {
    /// D, the number of frequencies.
    pub count: usize,
    /// SKCE_b, the biased estimate, of the kernel φ_D.
    pub biased: f64,
    /// SKCE_uq, the unbiased estimate, of the kernel φ_D.
    pub unbiased: f64,
    /// Mean of SKCE_b under the null given the predictions.
    pub null_mean: f64,
    /// Standard deviation of SKCE_b under the null, from the pairs of the sample.
    pub null_sd: f64,
    /// p-value by the laws of these two moments, or the bound below where they are not trusted;
    /// `None` without variance.
    pub p_value: Option<f64>,
    /// McDiarmid's p-value, valid at any n and without the sample.
    pub p_value_bound: f64,
}

/// The test of blocks over all panes of a window.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BlockTest {
    /// Events of a block; 2 for the linear estimator.
    pub size: usize,
    /// Number of blocks.
    pub count: u64,
    /// The block estimate of SKCE; may be negative.
    pub estimate: f64,
    /// p-values of the estimate.
    pub p: PValues,
}

/// The kernel test of a window.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WindowEvaluation {
    /// Events of the window.
    pub n: u64,
    /// K, the number of classes.
    pub classes: usize,
    /// The kernel test of the sample.
    pub sample: Evaluation,
    /// The test of the random features, if there are any.
    pub features: Option<FeatureTest>,
    /// Tests of the blocks of [`BLOCKS`] over all panes; none without a fixed ν, or a block.
    pub blocks: Vec<BlockTest>,
    /// Number of outcomes that came after blocks were added up: only the blocks do not contain
    /// them.
    pub blocks_outdated: u64,
    /// Whether the features decide.
    pub by_features: bool,
    /// p-value of the test that decides; `None` where the predictions are certain.
    pub p_value: Option<f64>,
    /// Calibration is rejected at α.
    pub reject: bool,
    /// √SKCE_b of the test that decides.
    pub kce: f64,
    /// Lower end of the two-sided interval of KCE at `confidence`; also a lower end of the ℓ2-ECE
    /// of the whole vector.
    pub lower: f64,
    /// Upper end of this interval, by the same bound: the distance of the estimate from the truth
    /// in the kernel's space is at most noise and deviation together.
    pub upper: f64,
    /// Confidence of the interval, in (0, 1).
    pub confidence: f64,
}

/// The kernel test of a window; `None` with fewer than two events.
pub fn evaluate(sums: &KernelSums, alpha: f64, confidence: f64) -> Option<WindowEvaluation> {
    let part = sums.vectors();
    let options = Options {
        alpha,
        nu: sums.options().nu,
        quadratic_max: usize::MAX,
        replicates: 0,
        seed: sums.options().seed,
    };
    let sample = super::evaluate(&part, &options)?;
    let features = sums.features().and_then(|f| feature_test(f, &part));
    let decides = features.as_ref().filter(|_| sums.n() > part.len() as u64);
    let (biased, p_value, n) = match decides {
        Some(f) => (f.biased, f.p_value, sums.n() as f64),
        None => (
            sample.biased,
            sample.biased_p.conditional,
            part.len() as f64,
        ),
    };
    let kce = biased.max(0.0).sqrt();
    let tail = 0.5 * (1.0 - confidence);
    let noise = ((1.0 - 1.0 / sums.classes() as f64) / n).sqrt();
    Some(WindowEvaluation {
        n: sums.n(),
        classes: sums.classes(),
        by_features: decides.is_some(),
        // Predictions that are certain and still wrong cannot be calibrated.
        reject: p_value.map_or(biased > 0.0, |p| p <= alpha),
        p_value,
        kce,
        lower: (kce - noise - (-tail.ln() / n).sqrt()).max(0.0),
        upper: kce + noise + (-tail.ln() / n).sqrt(),
        confidence,
        blocks: block_tests(sums, &part),
        blocks_outdated: sums.outdated(),
        sample,
        features,
    })
}

/// The tests of blocks. Whether their mean has a law is judged by blocks of the window's sample,
/// `part`.
fn block_tests(sums: &KernelSums, part: &Vectors) -> Vec<BlockTest> {
    let Some(nu) = sums.options().nu else {
        return Vec::new();
    };
    let kernel = Kernel::TotalVariation { nu };
    let test = |(sums, size): (BlockSums, usize)| {
        let (blocks, like) = (sums.blocks(), Blocks::of(part, kernel, size));
        Some(BlockTest {
            size,
            count: sums.count,
            estimate: blocks.estimate()?,
            p: block_p(&blocks, &like, size * sums.count as usize, size),
        })
    };
    sums.blocks()
        .into_iter()
        .zip(BLOCKS)
        .filter_map(test)
        .collect()
}

/// Least effective number of events, by 1 − ‖g‖², of a sample whose null variance is trusted: with
/// fewer, the variance itself is known to a quarter at best.
const WORTH_MIN: f64 = 30.0;

/// The test of features. Its null mean is that of all events; its null variance is the sample's,
/// scaled by the ratio of their 1 − ‖g‖². Where nearly all predictions are certain, a sample may
/// hold few of the others or none: it is worth (Σd)²/Σd² events (Kish 1965) with d = 1 − ‖g‖², and
/// below [`WORTH_MIN`] the p-value is the distribution-free bound. It is also the bound where all
/// events together expect fewer than [`GAMMA_MIN`] rare outcomes.
fn feature_test(features: &Features, part: &Vectors) -> Option<FeatureTest> {
    let (biased, unbiased) = features.estimates()?;
    let (total, mean) = features.total();
    let n = features.parts().n as f64;
    let m = part.len() as f64;
    if m < 2.0 {
        return None;
    }
    let (own, pairs) = null_moments(features, part);
    let doubts = part.events().map(|(g, _)| 1.0 - traces(g, g).0);
    let (sum, squares) = doubts.fold((0.0, 0.0), |(s, q), d| (s + d, q + d * d));
    let ratio = if sum > 0.0 {
        (mean / n) / (sum / m)
    } else {
        0.0
    };
    let pairs_all = (n * (n - 1.0)) / (m * (m - 1.0)) * ratio * ratio;
    let variance = ratio * own * n / m + 2.0 * pairs * pairs_all;
    let excess = (total.max(0.0).sqrt() - mean.max(0.0).sqrt()).max(0.0) / n;
    let p_value_bound = (-n * excess * excess).exp();
    let trusted = sum * sum >= WORTH_MIN * squares && 0.5 * mean >= GAMMA_MIN;
    Some(FeatureTest {
        count: features.count(),
        biased,
        unbiased,
        null_mean: mean / (n * n),
        null_sd: variance.max(0.0).sqrt() / (n * n),
        p_value: match trusted {
            true => form_p_value(total.max(0.0), mean, variance),
            // If all events are certain, no outcome is left to chance.
            false => (mean > 0.0).then_some(p_value_bound),
        },
        p_value_bound,
    })
}

/// Σ Var h_ii and Σ_{i≠j} φ_D² tr(S_i S_j) of a sample.
fn null_moments(features: &Features, part: &Vectors) -> (f64, f64) {
    let waves: Vec<Vec<f64>> = part.events().map(|(g, _)| features.wave(g)).collect();
    let own = super::Quadratic::diagonal(part).null_diagonal_variance;
    let mut pairs = 0.0;
    for (i, a) in waves.iter().enumerate() {
        let mut row = 0.0;
        for (j, b) in waves[..i].iter().enumerate() {
            let phi: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            row += phi * phi * traces(part.row(i), part.row(j)).1;
        }
        pairs += 2.0 * row;
    }
    (own, pairs)
}

#[cfg(test)]
mod tests;
