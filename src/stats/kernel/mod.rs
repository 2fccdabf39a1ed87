//! Kernel tests of calibration for whole probability vectors.
//!
//! A binned test of K classes needs cells in K − 1 dimensions; a kernel needs none. Source:
//! Widmann, Lindsten, Zachariah, *Calibration tests in multi-class classification* (2019), with its
//! programs `CalibrationErrors.jl` and `CalibrationTests.jl`.
//!
//! | part | holds |
//! |---|---|
//! | [`vectors`] | the sample |
//! | [`phi`] | kernels, the median heuristic |
//! | [`skce`] | estimators: biased, unbiased, block, linear |
//! | [`conditional`] | null laws given the predictions: the tests that decide |
//! | [`redrawn`] | the same by redrawn outcomes, where few are expected |
//! | [`distribution_free`], [`asymptotic`] | the paper's tests |
//! | [`features`] | streaming sums: random features, pairs, a bounded part of the window |
//! | [`sums`] | what a pane of a stream keeps for the test |
//! | [`window`] | why these sums, and the test of a window |
//! | [`binned`], [`binned_tests`] | the binned errors that papers report beside, and their tests |
//! | [`weighted`] | the quadratic form and its test of weighted events |
//!
//! [`evaluate`] gathers them. Cost: the quadratic form has n(n−1)/2 kernel values of O(K), 2
//! million at n = 2000; above [`Options::quadratic_max`] events it is computed on a seeded part of
//! the sample, the linear one on all.

pub mod asymptotic;
pub mod binned;
pub mod binned_tests;
pub mod conditional;
pub mod distribution_free;
pub mod features;
pub mod phi;
pub mod redrawn;
pub mod skce;
pub mod sums;
pub mod vectors;
pub mod weighted;
pub mod window;

pub use phi::Kernel;
pub use skce::{Blocks, Quadratic};
pub use vectors::Vectors;

/// What to compute.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Options {
    /// Level α of the test, in (0, 1).
    pub alpha: f64,
    /// ν; `None`: the median heuristic on the events of the quadratic form, and 1 where it is 0.
    pub nu: Option<f64>,
    /// Most events of the quadratic form.
    pub quadratic_max: usize,
    /// Bootstrap replicates of the quadratic asymptotic test; 0 leaves it out.
    pub replicates: u32,
    /// Seed of the bounded part, of redrawn outcomes and of the bootstrap.
    pub seed: u64,
}

impl Default for Options {
    /// α = 0.05, median heuristic, 4000 events (a second), no bootstrap.
    fn default() -> Options {
        Options {
            alpha: 0.05,
            nu: None,
            quadratic_max: 4000,
            replicates: 0,
            seed: 0,
        }
    }
}

/// Upper p-values of one estimator; `None` where undefined.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PValues {
    /// By the null law given the predictions.
    pub conditional: Option<f64>,
    /// By inequalities for every law.
    pub distribution_free: Option<f64>,
    /// By a limit law.
    pub asymptotic: Option<f64>,
}

/// The kernel test of one sample.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Evaluation {
    /// Events in all.
    pub n: usize,
    /// K, the number of classes.
    pub classes: usize,
    /// ν, the bandwidth of the kernel.
    pub nu: f64,
    /// Events of the quadratic form.
    pub quadratic_n: usize,
    /// SKCE_b, its square root being KCE.
    pub biased: f64,
    /// Mean of SKCE_b under the null given the predictions.
    pub null_mean: f64,
    /// p-values of SKCE_b; the conditional one decides.
    pub biased_p: PValues,
    /// McDiarmid's p-value of SKCE_b given the predictions, valid at any n.
    pub biased_bound: f64,
    /// SKCE_uq, the unbiased quadratic estimate; may be negative.
    pub unbiased: Option<f64>,
    /// Standard deviation of SKCE_uq under the null given the predictions.
    pub unbiased_null_sd: f64,
    /// p-values of SKCE_uq.
    pub unbiased_p: PValues,
    /// SKCE_ul, the linear estimate, over all events.
    pub linear: Option<f64>,
    /// p-values of SKCE_ul.
    pub linear_p: PValues,
    /// Events of a block: √n, at most [`BLOCK_MAX`].
    pub block_size: usize,
    /// The block estimator over all events.
    pub block: Option<f64>,
    /// p-values of the block estimator.
    pub block_p: PValues,
    /// Whether the conditional test of SKCE_b rejects at α.
    pub reject: bool,
    /// α, the level of the test.
    pub alpha: f64,
}

/// Most events of a block: 16 kernel values an event.
pub const BLOCK_MAX: usize = 32;

/// p-values of the mean of blocks of `size` of n events, with predictions like those of `like`.
pub(crate) fn block_p(blocks: &Blocks, like: &Blocks, n: usize, size: usize) -> PValues {
    PValues {
        conditional: conditional::block_p_value(blocks, like, size),
        distribution_free: (blocks.estimate())
            .map(|t| distribution_free::block_p_value(t, n, size)),
        asymptotic: asymptotic::block_test(blocks, 1.0).map(|(_, p)| p),
    }
}

/// The kernel test with the total variation kernel; `None` with fewer than two events.
pub fn evaluate(sample: &Vectors, o: &Options) -> Option<Evaluation> {
    if sample.len() < 2 {
        return None;
    }
    let part = features::bounded_part(sample, o.quadratic_max.max(2), o.seed);
    let nu = o.nu.or_else(|| phi::median_bandwidth(&part)).unwrap_or(1.0);
    let kernel = Kernel::TotalVariation { nu };
    let q = Quadratic::of(&part, kernel);
    let pairs = Blocks::of(sample, kernel, 2);
    let block_size = ((sample.len() as f64).sqrt() as usize).clamp(2, BLOCK_MAX);
    let blocks = Blocks::of(sample, kernel, block_size);
    let unbiased = q.unbiased();
    let weights = vec![1.0; part.len()];
    let conditional = conditional::p_value(&part, &weights, kernel, &q, (o.alpha, o.seed));
    let bootstrap = (o.replicates > 0)
        .then(|| asymptotic::Matrix::of(&part, kernel).p_value(o.replicates, o.seed));
    Some(Evaluation {
        n: sample.len(),
        classes: sample.classes(),
        nu,
        quadratic_n: part.len(),
        biased: q.biased(),
        null_mean: q.null_diagonal / (q.n * q.n),
        biased_p: PValues {
            conditional,
            distribution_free: Some(distribution_free::biased_p_value(q.biased(), q.n)),
            asymptotic: None,
        },
        biased_bound: conditional::biased_bound(&q, q.n),
        unbiased,
        unbiased_null_sd: conditional::unbiased_variance(&q).sqrt(),
        unbiased_p: PValues {
            conditional: None,
            distribution_free: unbiased.map(|t| distribution_free::unbiased_p_value(t, part.len())),
            asymptotic: bootstrap.flatten(),
        },
        linear: pairs.estimate(),
        linear_p: block_p(&pairs, &pairs, sample.len(), 2),
        block_size,
        block: blocks.estimate(),
        block_p: block_p(&blocks, &blocks, sample.len(), block_size),
        // Predictions that are certain and still wrong have no null variance and cannot be
        // calibrated.
        reject: conditional.map_or(q.biased() > 0.0, |p| p <= o.alpha),
        alpha: o.alpha,
    })
}

#[cfg(test)]
mod tests;
