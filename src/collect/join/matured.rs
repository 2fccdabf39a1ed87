//! A prediction at its maturity, as the collector counts it.

use super::full_vector;
use super::key::Key;
use super::row_layout::RowLayout;
use crate::stats::clusters::Bucket;
use crate::stats::fixed::Score;
use crate::stats::multiclass::ranked::Ranked;
use crate::stats::weight::Weight;
use crate::window::FullVector;

/// A mature prediction.
#[derive(Debug, Clone, Copy)]
pub struct Matured<'a> {
    /// Key of the prediction.
    pub key: Key,
    /// Index of the model's plan.
    pub model: u16,
    /// Slot of the stream.
    pub slot: u32,
    /// Start of the pane.
    pub start_ms: i64,
    /// Event time.
    pub time_ms: i64,
    /// Class of the outcome, if one came.
    pub outcome: Option<u32>,
    pub(super) scores: &'a [f64],
    pub(super) classes: &'a [u32],
}

impl Matured<'_> {
    /// The weight, if the prediction has one.
    pub fn weight(&self) -> Option<Weight> {
        self.classes.last().copied().and_then(Weight::from_fixed)
    }

    /// The bucket of its cluster, if the prediction has one.
    pub fn cluster(&self) -> Option<Bucket> {
        self.classes.last().copied().and_then(Bucket::from_index)
    }

    /// The largest probabilities, where `layout` keeps them.
    pub fn ranked(&self, layout: RowLayout) -> Ranked<'_> {
        let range = layout.views..layout.views + layout.depth;
        Ranked {
            values: self.scores.get(range.clone()).unwrap_or_default(),
            classes: self.classes.get(range).unwrap_or_default(),
        }
    }

    /// Decodes the full vector of `classes` probabilities into `row`; `None` if it was not kept.
    pub fn full_vector<'r>(
        &self,
        layout: RowLayout,
        classes: usize,
        row: &'r mut Vec<f64>,
    ) -> Option<FullVector<'r>> {
        let (first, len) = layout.full_vector();
        let scores = self.scores.get(first..first + len)?;
        let halves = self.classes.get(first..first + len)?;
        let rank = full_vector::unpack(scores, halves, classes, row)?;
        Some(FullVector { rank, row })
    }

    /// The score of each view, and whether `class` makes its outcome true.
    ///
    /// Where a prediction keeps more than its views, further entries follow, which mean nothing
    /// here.
    pub fn against(&self, class: u32) -> impl Iterator<Item = (Score, bool)> {
        let both = self.scores.iter().zip(self.classes);
        // Scores were checked when they arrived.
        both.filter_map(move |(&z, &k)| Some((Score::new(z).ok()?, k == class)))
    }
}
