//! The papers' other estimators as text.

use std::fmt::Write;

use crate::report::estimators::OfScores;
use crate::report::text::p;
use crate::stats::kernel::binned_tests::{BinnedTest, BinnedTests};

/// Estimators of single scores, one a line.
pub fn of_scores(e: &OfScores) -> String {
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

/// The binned errors of vectors, one a line.
pub fn of_vectors(b: &BinnedTests) -> String {
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
