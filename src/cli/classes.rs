//! Several classes at once as text.

use std::fmt::Write;

use crate::report::text::{p, span};
use crate::stats::multiclass::{Classwise, Evaluation};

/// A vector view: verdict, interval, levels.
pub fn render(e: &Evaluation) -> String {
    let verdict = if e.tcal.reject {
        "rejected"
    } else {
        "not rejected"
    };
    let i = &e.interval;
    let span = span(i.lower, i.upper, i.contains_zero);
    let weights = e
        .weights
        .map(|w| format!(", effective number of events {:.1}", w.effective));
    let mut out = format!(
        "calibration {verdict} at α = {} in the view {}\n\n\
         {:<22}{} of {} classes{}\n\
         {:<22}p = {} over {} levels\n\
         {:<22}{:.5}, {} % interval {span}, {} slices, median of {} events a cell\n\
         {:<22}{:.5} in total variation\n\n\
         {:>9} {:>9} {:>9} {:>12} {:>12} {:>12}\n",
        e.alpha,
        e.view,
        "events",
        e.n,
        e.classes,
        weights.unwrap_or_default(),
        "T-Cal",
        p(e.tcal.p_value),
        e.tcal.levels.len(),
        "ℓ2-ECE",
        i.estimate_squared.max(0.0).sqrt(),
        100.0 * i.confidence,
        i.slices,
        i.median_count,
        "ℓ1-ECE",
        e.ece_l1,
        "slices",
        "occupied",
        "shared",
        "debiased",
        "null sd",
        "p",
    );
    for l in &e.tcal.levels {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:>9} {:>9} {:>9} {:>12.3e} {:>12.3e} {:>12}",
            l.slices,
            l.occupied,
            l.shared,
            l.debiased,
            l.null_sd,
            p(l.p_value)
        );
    }
    out
}

/// Every class against the rest.
pub fn classwise(c: &Classwise, alpha: f64) -> String {
    let verdict = if c.reject { "rejected" } else { "not rejected" };
    let mut out = format!(
        "calibration {verdict} at α = {alpha} over all classes, p = {}\n\n{:>6} {:>12} {:>12} {:>14}\n",
        p(c.p_value),
        "class",
        "p",
        "adjusted",
        "mean residual"
    );
    for c in &c.classes {
        let mark = if c.reject { "  rejects" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:>6} {:>12} {:>12} {:>+14.5}{mark}",
            c.class,
            p(c.p_value),
            p(c.adjusted),
            c.mean_residual
        );
    }
    out
}
