//! The result of `trueline evaluate --test`, as JSON and as text.

use super::estimators;
use super::text::p;
use crate::stats::offline::{Detail, Outcome, Splitting};
use serde_json::{Value, json};
use std::fmt::Write;

/// One test as JSON: the common keys, and its own results under `detail`.
pub fn json(o: &Outcome) -> Value {
    json!({
        "test": o.test.name(),
        "n": o.n,
        "classes": o.classes,
        "alpha": o.alpha,
        "p_value": o.p_value,
        "reject": o.reject,
        "detail": detail(&o.detail),
    })
}

fn detail(d: &Detail) -> Value {
    match d {
        Detail::OneLevel(l) => json!(l),
        Detail::Composite(c) => json!({
            "slices": c.slices,
            "debiased": c.debiased,
            "tolerance": c.tolerance,
            "threshold": c.threshold,
            "paper_threshold": c.paper_threshold,
            "paper_reject": c.paper_reject,
        }),
        Detail::Splitting(s) => splitting(s),
        Detail::CrossFitting(c) => json!({
            "slices": c.slices,
            "statistic": c.statistic,
            "halves": c.halves,
            "replicates": c.replicates,
        }),
        Detail::Consistency {
            ece_l1,
            debiased_l2,
            debiased_l2_distinct,
        } => json!({
            "cells": 15,
            "ece_l1": ece_l1,
            "debiased_l2_squared": debiased_l2,
            "debiased_l2_squared_distinct": debiased_l2_distinct,
        }),
        Detail::BinnedVectors(b) => estimators::of_vectors(b),
    }
}

fn splitting(s: &Splitting) -> Value {
    let class = |c: &crate::stats::offline::splitting::ClassSplit| {
        json!({
            "class": c.class,
            "first": c.first,
            "second": c.second,
            "mean_gap": c.mean_gap,
            "mean_p_value": c.mean_p,
            "half_gap": c.half_gap,
            "half_p_value": c.half_p,
            "two_sample_p_value": c.two_sample_p,
            "slices": c.slices,
        })
    };
    json!({
        "replicates": s.replicates,
        "slices": s.slices,
        "classes": s.classes.iter().map(class).collect::<Vec<_>>(),
    })
}

/// The verdict in one line, then the results.
pub fn text(o: &Outcome) -> String {
    let verdict = if o.reject { "rejected" } else { "not rejected" };
    let mut out = format!(
        "calibration {verdict} at α = {} by the test {}\n\n{:<22}{} of {} classes\n{:<22}{}\n",
        o.alpha,
        o.test.name(),
        "events",
        o.n,
        o.classes,
        "p",
        p(o.p_value)
    );
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<22}{value}");
    };
    match &o.detail {
        Detail::OneLevel(l) => {
            line(
                "debiased",
                format!("{:.4e}, null sd {:.2e}", l.debiased, l.null_sd),
            );
            line("cells of an axis", l.slices.to_string());
        }
        Detail::Composite(c) => {
            let paper = if c.paper_reject {
                "reached"
            } else {
                "not reached"
            };
            line("null", format!("ℓ2-ECE at most {}", c.tolerance));
            line("debiased", format!("{:.4e}", c.debiased));
            line(
                "threshold",
                format!(
                    "{:.4e}; the paper's {:.4e}, {paper}",
                    c.threshold, c.paper_threshold
                ),
            );
            line("cells of an axis", c.slices.to_string());
        }
        Detail::CrossFitting(c) => {
            line(
                "statistic",
                format!(
                    "{:.4e}, halves {:.4e} and {:.4e}",
                    c.statistic, c.halves[0], c.halves[1]
                ),
            );
            line("redrawn samples", c.replicates.to_string());
            line("cells of an axis", c.slices.to_string());
        }
        Detail::Consistency {
            ece_l1,
            debiased_l2,
            debiased_l2_distinct,
        } => {
            line("ℓ1-ECE, 15 cells", format!("{ece_l1:.5}"));
            line(
                "debiased ℓ2²",
                format!(
                    "{debiased_l2:.4e} over 15 cells, {} (Kumar, Liang, Ma)",
                    estimators::distinct(*debiased_l2_distinct)
                ),
            );
        }
        Detail::BinnedVectors(b) => out += &estimators::text_of_vectors(b),
        Detail::Splitting(s) => out += &splitting_text(s),
    }
    out
}

fn splitting_text(s: &Splitting) -> String {
    let mut out = format!(
        "{:<22}{}, levels of {:?} cells an axis\n\n{:>6} {:>8} {:>8} {:>10} {:>10} {:>10} {:>10} {:>12}\n",
        "permutations",
        s.replicates,
        s.slices,
        "class",
        "first",
        "second",
        "gap",
        "p",
        "of halves",
        "p",
        "two samples"
    );
    for c in &s.classes {
        let _ = writeln!(
            out,
            "{:>6} {:>8} {:>8} {:>10.5} {:>10} {:>10.5} {:>10} {:>12}",
            c.class,
            c.first,
            c.second,
            c.mean_gap,
            p(c.mean_p),
            c.half_gap,
            p(c.half_p),
            p(c.two_sample_p)
        );
    }
    out
}
