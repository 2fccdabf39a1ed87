//! The papers' other estimators, which `trueline evaluate --estimators` adds, as JSON and as text.

use super::text::p;
use crate::stats::distance::binned::Binned;
use crate::stats::kernel::binned_tests::{BinnedTest, BinnedTests, Partition};
use serde_json::{Value, json};
use std::fmt::Write;

/// Estimators of single scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfScores {
    /// Debiased squared ℓ2 error over 15 cells (Kumar, Liang, Ma 2019).
    pub debiased_l2: f64,
    /// Debiased squared ℓ2 error over distinct scores; `None` if no score repeats.
    pub debiased_l2_distinct: Option<f64>,
    /// The binned errors and the sampled kernel terms of the distance paper.
    pub binned: Binned,
}

/// Estimators of single scores as JSON.
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

/// The binned errors of vectors as JSON.
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

/// Estimators of single scores as text, one per line.
pub fn text_of_scores(e: &OfScores) -> String {
    let b = &e.binned;
    format!(
        "\nother estimators\n\
         {:<22}{:.4e} over 15 cells, {}\n\
         {:<22}{:.5} over {} bins, {:.5} with their width\n\
         {:<22}{:.4e}, from {} sampled terms {:.4e} ± {:.1e}\n",
        "debiased ℓ2²",
        e.debiased_l2,
        distinct(e.debiased_l2_distinct),
        "binned ECE",
        b.binned_ece,
        b.bins,
        b.binned_ece_with_width,
        "Laplace kernel error²",
        b.laplace_squared,
        b.sampled.terms,
        b.sampled.squared,
        b.sampled.error,
    )
}

/// The debiased ℓ2 error over distinct scores in words.
pub fn distinct(value: Option<f64>) -> String {
    value.map_or_else(
        || "no repeated scores".to_owned(),
        |value| format!("{value:.4e} over repeated scores"),
    )
}

/// The binned errors of vectors as text, one per line.
pub fn text_of_vectors(b: &BinnedTests) -> String {
    let mut out = String::new();
    for (name, t) in [
        ("ECE, uniform bins", &b.uniform),
        ("ECE, adapted bins", &b.dynamic),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<22}{}", line(t));
    }
    out
}

fn line(t: &BinnedTest) -> String {
    let mut out = format!("{:.5} over {} occupied bins", t.ece, t.bins);
    if let Some(x) = t.conditional_p {
        out += &format!("; p = {} given the predictions", p(x));
    }
    if let Some(x) = t.consistency_p {
        out +=
            &format!(", {x:.4} by consistency resampling (not valid: too small when calibrated)");
    }
    out
}
