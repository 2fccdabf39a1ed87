//! The results of an evaluation.

use super::{
    Brier, Combined, Comparison, Cox, DecideBy, Direction, DiscreteTest, Distances, InTheLarge,
    Interval, Mce, Path, ReliabilityCell, Sampling, ScoreTest, Spiegelhalter, TCal, TCalOptions,
};
use crate::axis::Axis;
use crate::clusters::Clusters;
use crate::corp::CurveCell;
use crate::overdispersion::Overdispersion;
use crate::repeats::RepeatedScores;

/// All results for one sample.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
    /// The options with which T-Cal ran.
    pub tcal_options: TCalOptions,
    /// Interval for the ℓ2-ECE.
    pub interval: Interval,
    /// The tests over discrete scores, where they ran.
    pub discrete: Option<DiscreteTest>,
    /// The combination of several tests.
    pub combined: Combined,
    /// Which test decided.
    pub decided_by: DecideBy,
    /// The decision: calibration is rejected.
    pub reject: bool,
    /// p-value of the test that decided; 1 where it has none ([`Evaluation::deciding_p_value`]).
    pub p_value: f64,
    /// Whether weighted events have few expected outcomes, or few large weights carry most of the
    /// information. No law of the tests holds then, the p-value of the combination is an upper
    /// bound, and no power is known.
    pub bounded: bool,
    /// Score test against shift, slope and noise; `None` without variance.
    pub smooth: Option<ScoreTest>,
    /// The comparison with the tolerance.
    pub tolerance: Comparison,
    /// ℓ1-ECE: over 15 equal cells offline, over the nearest dyadic level (16) live.
    pub ece_l1: f64,
    /// Number of cells of `ece_l1`.
    pub ece_l1_cells: u64,
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
    /// ℓ2-ECE of the smallest change of all odds that the test detects with 80 % power at this n
    /// and these scores; `None` where that is not known, as with few outcomes.
    pub detectable_ece_l2: Option<f64>,
    /// Which way the scores err.
    pub direction: Direction,
    /// Cells of the reliability diagram.
    pub reliability: Vec<ReliabilityCell>,
    /// The axis on which the cells of the diagram are equal.
    pub axis: Axis,
    /// Fine cells for the CORP curve ([`crate::corp`]).
    pub curve: Vec<CurveCell>,
    /// Distances from calibration, where wanted.
    pub distances: Option<Distances>,
    /// How negatives were sampled, where they were, with the event rate of the whole population.
    pub sampled: Option<Sampled>,
    /// Sum and effective number of weights, where events have them.
    pub weights: Option<Weights>,
    /// How often scores repeat exactly, where the sample is known.
    pub repeated: Option<RepeatedScores>,
    /// How much more outcomes vary than independent ones, where that is known; p-values, interval
    /// and ratio are corrected for it where it is surely above 1.
    pub overdispersion: Option<Overdispersion>,
    /// Number and dispersion of clusters, where events have them: tests, interval and ratio then
    /// hold whatever the dependence within clusters, and `overdispersion` is not used.
    pub clusters: Option<Clusters>,
}

impl Evaluation {
    /// p-value of the test that decided; `None` where there are too few clusters, where T-Cal
    /// decides and no level takes part, and where no part of the combination can be computed.
    pub fn deciding_p_value(&self) -> Option<f64> {
        if self.clusters.is_some_and(|c| c.are_few()) {
            return None;
        }
        match (self.decided_by, &self.discrete) {
            (DecideBy::Combined, _) => self.combined.tested(),
            (DecideBy::Paper, Some(_)) => Some(self.p_value),
            (DecideBy::Tcal | DecideBy::Paper, _) => self.tcal.tested(),
        }
    }
}

/// The weights of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Weights {
    /// Σw over all events.
    pub sum: f64,
    /// Effective number of events, (Σw)²/Σw².
    pub effective: f64,
}

/// Results that weighted events do not have, and why.
pub const WITHHELD: [(&str, &str); 4] = [
    (
        "discrete",
        "weighted positives are no binomial count, so the exact test does not hold; T-Cal decides",
    ),
    (
        "reliability.rate_low, rate_high",
        "Clopper–Pearson bars need a binomial count; the consistency bars hold",
    ),
    (
        "tolerance.theorem_exceeded",
        "the bound of the theorem is proven for equal weights",
    ),
    (
        "distances",
        "their sampling errors are known for equal weights only",
    ),
];

/// How the negatives of a population were sampled, and its event rate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sampled {
    /// The sampling rates.
    pub sampling: Sampling,
    /// Event rate carried back to the population before the negatives of the stream were sampled.
    pub whole_event_rate: f64,
}
