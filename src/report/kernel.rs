//! The kernel test of vectors as JSON and as text: the output of `trueline evaluate --view kernel`,
//! and the numbers of a window in the API.
//!
//! In JSON, estimates are squared (SKCE), except `kce`. Each has its p-values by method. The biased
//! estimator's p-value given the predictions decides. Values that are undefined or were not
//! requested are null.

use super::text::p;
use crate::stats::kernel::weighted::WeightedEvaluation;
use crate::stats::kernel::window::{BlockTest, WindowEvaluation};
use crate::stats::kernel::{Evaluation, PValues};
use serde_json::{Value, json};

/// The whole evaluation as JSON.
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
            "p_values": e.biased_p,
            "p_value_bound": e.biased_bound,
        },
        "unbiased": {
            "skce": e.unbiased,
            "null_sd": e.unbiased_null_sd,
            "p_values": e.unbiased_p,
        },
        "linear": {"skce": e.linear, "p_values": e.linear_p},
        "block": {"size": e.block_size, "skce": e.block, "p_values": e.block_p},
    })
}

/// The test of weighted events as JSON.
pub fn weighted_json(e: &WeightedEvaluation) -> Value {
    json!({
        "n": e.n,
        "effective_n": e.effective,
        "classes": e.classes,
        "view": "kernel",
        "kernel": "exp(-total variation/nu)",
        "nu": e.nu,
        "reject": e.reject,
        "alpha": e.alpha,
        "p_value": e.p_value,
        "kce": e.biased.max(0.0).sqrt(),
        "quadratic_n": e.quadratic_n,
        "biased": {"skce": e.biased, "null_mean": e.null_mean, "p_value_bound": e.bound},
        "unbiased": {"skce": e.unbiased, "null_sd": e.unbiased_null_sd},
    })
}

/// A window of a stream as JSON: the deciding test, the test of its sample as in [`json()`], the
/// test by random features, and the linear and block sums of its panes.
pub fn window_json(e: &WindowEvaluation) -> Value {
    json!({
        "n": e.n,
        "classes": e.classes,
        "view": "kernel",
        "reject": e.reject,
        "p_value": e.p_value,
        "decided_by": if e.by_features { "features" } else { "sample" },
        "kce": e.kce,
        "kce_lower": e.lower,
        "confidence": e.confidence,
        "sample": json(&e.sample),
        "features": e.features,
        "blocks_outdated": e.blocks_outdated,
        "blocks": e.blocks.iter().map(block).collect::<Vec<_>>(),
    })
}

fn block(b: &BlockTest) -> Value {
    json!({"size": b.size, "count": b.count, "skce": b.estimate, "p_values": b.p})
}

/// The verdict in one line, then one estimator per line.
pub fn text(e: &Evaluation) -> String {
    let verdict = if e.reject { "rejected" } else { "not rejected" };
    let values = |v: &PValues| {
        let named = [
            ("given the predictions", v.conditional),
            ("for any law", v.distribution_free),
            ("in the limit", v.asymptotic),
        ];
        let said = named
            .iter()
            .filter_map(|(name, x)| x.map(|x| format!("{} {name}", p(x))));
        said.collect::<Vec<_>>().join(", ")
    };
    let estimate = |x: Option<f64>| x.map_or("undefined".to_owned(), |x| format!("{x:.4e}"));
    let part = if e.quadratic_n < e.n {
        format!(", quadratic forms on {} drawn by seed", e.quadratic_n)
    } else {
        String::new()
    };
    format!(
        "calibration {verdict} at α = {} by the kernel test\n\n\
         {:<22}{} of {} classes{part}\n\
         {}; p = {}\n\
         {:<22}{}, null sd {:.2e}; p = {}\n\
         {:<22}{}; p = {}\n\
         {:<22}{} in blocks of {}; p = {}\n",
        e.alpha,
        "events",
        e.n,
        e.classes,
        biased(e.nu, e.biased, e.null_mean),
        values(&e.biased_p),
        "SKCE unbiased",
        estimate(e.unbiased),
        e.unbiased_null_sd,
        values(&e.unbiased_p),
        "SKCE linear",
        estimate(e.linear),
        values(&e.linear_p),
        "SKCE block",
        estimate(e.block),
        e.block_size,
        values(&e.block_p),
    )
}

/// The kernel, and the biased estimator with its mean under the null.
fn biased(nu: f64, skce: f64, null_mean: f64) -> String {
    format!(
        "{:<22}exp(−TV/ν), ν = {nu:.5}\n\
         {:<22}{:.5}\n\
         {:<22}{skce:.4e}, under the null {null_mean:.4e}",
        "kernel",
        "KCE",
        skce.max(0.0).sqrt(),
        "SKCE biased",
    )
}

/// The test of weighted events as text.
pub fn weighted_text(e: &WeightedEvaluation) -> String {
    let verdict = if e.reject { "rejected" } else { "not rejected" };
    let value = |x: Option<f64>| x.map_or("undefined".to_owned(), p);
    let unbiased = e
        .unbiased
        .map_or("undefined".to_owned(), |x| format!("{x:.4e}"));
    format!(
        "calibration {verdict} at α = {} by the kernel test of weighted events\n\n\
         {:<22}{} of {} classes; quadratic forms on {}, effectively {:.1}\n\
         {}; p = {} given the predictions, {} for any n\n\
         {:<22}{unbiased}, null sd {:.2e}\n",
        e.alpha,
        "events",
        e.n,
        e.classes,
        e.quadratic_n,
        e.effective,
        biased(e.nu, e.biased, e.null_mean),
        value(e.p_value),
        p(e.bound),
        "SKCE unbiased",
        e.unbiased_null_sd,
    )
}
