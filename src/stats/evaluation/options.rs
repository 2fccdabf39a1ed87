//! What to compute of a sample, and how.

use super::{Critical, DiscreteMode, Extent, NullReach, Sharing, TCalOptions};
use crate::overdispersion::Overdispersion;
use crate::sampling::Sampling;
use crate::tolerance::Tolerance;

/// Which test decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum DecideBy {
    /// The combination of several tests ([`crate::combined`]).
    Combined,
    /// T-Cal alone, with [`Options::tcal`].
    Tcal,
    /// As the T-Cal paper decides: T-Cal, and the exact binomial tests where scores are discrete.
    Paper,
}

/// What to compute and how.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Options {
    /// Which test decides.
    pub decide_by: DecideBy,
    /// The adaptive test; its α and seed are those of all tests.
    pub tcal: TCalOptions,
    /// How many tests the p-value is adjusted for afterwards: classes of one stream. Where outcomes
    /// are drawn, more of them are then drawn for a p-value that would be too coarse.
    pub family: u32,
    /// Cells of the interval; `None`: the smallest power of two not below 2n^(2/5). A window rounds
    /// any other number up to the next power of two that its grid has.
    pub interval_cells: Option<u64>,
    /// Confidence of the interval, in (0, 1).
    pub confidence: f64,
    /// When the interval contains 0.
    pub null_reach: NullReach,
    /// The tolerance with which the error is compared.
    pub tolerance: Tolerance,
    /// When the exact test for discrete scores runs.
    pub discrete: DiscreteMode,
    /// Level of the reliability diagram, which has 2 to this power cells; at most 5.
    pub reliability_level: u32,
    /// Which distances from calibration are computed.
    pub distances: Extent,
    /// How negatives were sampled. Raw scores are carried to the sampled events accordingly; those
    /// of a window have been already.
    pub sampling: Sampling,
    /// How much more outcomes vary than independent ones, where the stream has measured it.
    pub overdispersion: Option<Overdispersion>,
    /// Whether p-values, interval and ratio are corrected for overdispersion, or it is only
    /// reported.
    pub correct_overdispersion: bool,
}

impl Default for Options {
    /// The product's defaults: α = 0.05 by moments and joint sharing, a 90 % interval with the
    /// conditional null, the default tolerance, 16 cells in the diagram.
    fn default() -> Options {
        Options {
            decide_by: DecideBy::Combined,
            tcal: TCalOptions {
                alpha: 0.05,
                critical: Critical::Moments,
                sharing: Sharing::Joint,
                seed: 0,
            },
            family: 1,
            interval_cells: None,
            confidence: 0.9,
            null_reach: NullReach::Conditional,
            tolerance: Tolerance::default(),
            discrete: DiscreteMode::Auto,
            reliability_level: 4,
            distances: Extent::Off,
            sampling: Sampling::default(),
            overdispersion: None,
            correct_overdispersion: true,
        }
    }
}
