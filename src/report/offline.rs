//! The outcome of `trueline evaluate --test` as JSON.

use super::estimators;
use crate::stats::offline::{Detail, Outcome, Splitting};
use serde_json::{Value, json};

/// One test: what all have, and under `detail` what it found.
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
        Detail::OneLevel(l) => json!({
            "slices": l.slices,
            "debiased": l.debiased,
            "null_sd": l.null_sd,
        }),
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
