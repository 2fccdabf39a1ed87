//! The kernel test of vectors as JSON: what `trueline evaluate --view kernel --json` prints.
//!
//! Estimates are squared (SKCE) but for `kce`. Each has its p-values by method; the one given the predictions of
//! the biased estimator decides. What is undefined or was not asked for is null.

use crate::stats::kernel::{Evaluation, PValues};
use serde_json::{Value, json};

/// The whole evaluation.
pub fn json(e: &Evaluation) -> Value {
    json!({
        "n": e.n,
        "classes": e.classes,
        "view": "kernel",
        "kernel": "exp(-total variation/nu)",
        "nu": e.nu,
        "reject": e.reject,
        "alpha": e.alpha,
        "p_value": e.biased_p.conditional,
        "kce": e.biased.max(0.0).sqrt(),
        "quadratic_n": e.quadratic_n,
        "biased": {
            "skce": e.biased,
            "null_mean": e.null_mean,
            "p_values": p_values(&e.biased_p),
            "p_value_bound": e.biased_bound,
        },
        "unbiased": {
            "skce": e.unbiased,
            "null_sd": e.unbiased_null_sd,
            "p_values": p_values(&e.unbiased_p),
        },
        "linear": {"skce": e.linear, "p_values": p_values(&e.linear_p)},
    })
}

fn p_values(p: &PValues) -> Value {
    json!({
        "conditional": p.conditional,
        "distribution_free": p.distribution_free,
        "asymptotic": p.asymptotic,
    })
}
