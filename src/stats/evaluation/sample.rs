//! One sample at the levels that are read.

use super::{DiscreteTest, Distances};
use crate::classical::Totals;
use crate::clusters::ClusterSums;
use crate::levels::{Level, Levels};
use crate::repeats::RepeatedScores;

/// One sample at the levels that an evaluation reads.
pub(super) struct Sample<'a> {
    pub totals: Totals,
    pub weighted: bool,
    pub levels: &'a Levels,
    pub interval: &'a Level,
    /// Cells in which the interval's level nests, if it does not nest in the finest level.
    pub interval_leaves: Option<&'a Level>,
    pub ece: &'a Level,
    pub discrete: Option<DiscreteTest>,
    pub distances: Option<Distances>,
    pub repeated: Option<RepeatedScores>,
    /// The sums by cluster, and the level at which they are kept.
    pub clusters: Option<(&'a ClusterSums, u32)>,
    /// Whether the clusters are unnamed: events of one score.
    pub by_score: bool,
}
