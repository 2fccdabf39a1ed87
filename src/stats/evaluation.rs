//! The evaluation: everything that is said about one sample, in one value.
//!
//! [`evaluate`] reads the integer sums of a window, [`evaluate_scores`] raw scores in double
//! precision; both fill the same [`Evaluation`], so that the daemon, the offline verb and the checks
//! against published values report the same things. Undefined quantities are `None`, never NaN.

pub use super::companions::{Brier, Cox, InTheLarge, Mce, Spiegelhalter};
pub use super::direction::Direction;
pub use super::discrete::{DiscreteMode, DiscreteTest};
pub use super::interval::{Interval, NullReach};
pub use super::ks::Path;
pub use super::reliability::ReliabilityCell;
pub use super::tcal::{Critical, LevelResult, Sharing, TCal, TCalOptions};

/// What to compute and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The adaptive test.
    pub tcal: TCalOptions,
    /// Cells of the interval; `None`: the power of two next above n^(2/5). Live, any other number is
    /// taken to the next power of two the grid has.
    pub interval_cells: Option<u64>,
    /// Confidence of the interval, in (0, 1).
    pub confidence: f64,
    /// When 0 joins the interval.
    pub null_reach: NullReach,
    /// τ, the ℓ2-ECE that is tolerated, in [0, 1].
    pub tolerance: f64,
    /// When the exact test for discrete scores runs.
    pub discrete: DiscreteMode,
    /// The reliability diagram has 2^this cells; at most 5.
    pub reliability_level: u32,
}

impl Default for Options {
    /// The product's defaults: α = 0.05 by moments and joint sharing, a 90 % interval with the
    /// conditional null, no tolerance, 16 cells in the diagram.
    fn default() -> Options {
        Options {
            tcal: TCalOptions {
                alpha: 0.05,
                critical: Critical::Moments,
                sharing: Sharing::Joint,
                seed: 0,
            },
            interval_cells: None,
            confidence: 0.9,
            null_reach: NullReach::Conditional,
            tolerance: 0.0,
            discrete: DiscreteMode::Auto,
            reliability_level: 4,
        }
    }
}

/// Whether the ℓ2-ECE is above what is tolerated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// τ, on the ℓ2-ECE scale.
    pub tolerance: f64,
    /// The interval's lower end is above τ; with τ = 0: the sample rejects calibration.
    pub exceeded: bool,
    /// Some level's debiased estimate is above the Chebyshev bound of T-Cal, Remark 3; always valid,
    /// seldom sharp.
    pub theorem_exceeded: bool,
}

/// All that is said about one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// Number of events, at least 1.
    pub n: u64,
    /// Number of positive outcomes.
    pub positives: u64,
    /// Mean score.
    pub mean_score: f64,
    /// Share of positive outcomes.
    pub event_rate: f64,
    /// The adaptive test.
    pub tcal: TCal,
    /// Interval for the ℓ2-ECE.
    pub interval: Interval,
    /// The exact test for discrete scores, where it ran.
    pub discrete: Option<DiscreteTest>,
    /// The decision: of the discrete test where it ran, else of T-Cal.
    pub reject: bool,
    /// The comparison with the tolerance.
    pub tolerance: Tolerance,
    /// ℓ1-ECE: over 15 equal cells offline, over the nearest dyadic level (16) live.
    pub ece_l1: f64,
    /// Largest |mean residual| of a cell, over the cells of `ece_l1` with enough events.
    pub mce: Option<Mce>,
    /// Brier score and its decomposition.
    pub brier: Brier,
    /// Mean log loss in nats, scores clipped at 2⁻³².
    pub log_loss: f64,
    /// Calibration in the large.
    pub in_the_large: InTheLarge,
    /// Spiegelhalter's test; `None` without variance.
    pub spiegelhalter: Option<Spiegelhalter>,
    /// Cox recalibration score test; `None` where the scores do not vary.
    pub cox: Option<Cox>,
    /// Kolmogorov–Smirnov calibration statistic of the cumulative residuals.
    pub ks: Path,
    /// Kuiper calibration statistic of the cumulative residuals.
    pub kuiper: Path,
    /// Smallest ℓ2-ECE that the test detects with 80 % power at this n and these scores.
    pub detectable_ece_l2: Option<f64>,
    /// Which way the scores err.
    pub direction: Direction,
    /// Cells of the reliability diagram.
    pub reliability: Vec<ReliabilityCell>,
}

/// Evaluates the sums of a window; `None` without events.
pub fn evaluate(sums: &super::sums::Sums, o: &Options) -> Option<Evaluation> {
    let _ = (sums, o);
    None
}

/// Evaluates raw scores in [0, 1] with their outcomes, in double precision; `None` without events.
pub fn evaluate_scores(sample: &[(f64, bool)], o: &Options) -> Option<Evaluation> {
    let _ = (sample, o);
    None
}
