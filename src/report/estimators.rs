//! The papers' other estimators as JSON: what `trueline evaluate --estimators` adds.

use crate::stats::distance::binned::Binned;
use crate::stats::kernel::binned_tests::{BinnedTest, BinnedTests, Partition};
use serde_json::{Value, json};

/// Estimators of single scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfScores {
    /// Debiased squared ℓ2 error over 15 cells (Kumar, Liang, Ma 2019).
    pub debiased_l2: f64,
    /// The same over distinct scores; `None` where none repeats.
    pub debiased_l2_distinct: Option<f64>,
    /// The binned errors and the sampled kernel terms of the distance paper.
    pub binned: Binned,
}

/// Estimators of single scores.
pub fn of_scores(e: &OfScores) -> Value {
    let b = &e.binned;
    json!({
        "debiased_l2_squared": e.debiased_l2,
        "debiased_l2_squared_distinct": e.debiased_l2_distinct,
        "bins": b.bins,
        "binned_ece": b.binned_ece,
        "binned_ece_with_width": b.binned_ece_with_width,
        "laplace_squared": b.laplace_squared,
        "laplace_squared_sampled": {
            "value": b.sampled.squared,
            "standard_error": b.sampled.error,
            "terms": b.sampled.terms,
        },
    })
}

/// The binned errors of vectors.
pub fn of_vectors(b: &BinnedTests) -> Value {
    json!({
        "replicates": b.replicates,
        "uniform": binned(&b.uniform),
        "data_dependent": binned(&b.dynamic),
    })
}

fn binned(t: &BinnedTest) -> Value {
    let partition = match t.partition {
        Partition::Uniform(bins) => json!({ "bins_per_class": bins }),
        Partition::MedianVariance(least) => json!({ "least_events": least }),
    };
    json!({
        "partition": partition,
        "bins": t.bins,
        "ece": t.ece,
        "p_value": t.conditional_p,
        "p_value_consistency": t.consistency_p,
    })
}
