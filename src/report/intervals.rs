//! Intervals by resampling: what `trueline evaluate --compare-intervals` adds, as JSON and as text.
//! Ends are on the ℓ2-ECE scale.

use crate::stats::comparison::intervals::{Compared, Ends};
use serde_json::{Value, json};

/// All three, with what they were drawn by.
pub fn json(c: &Compared) -> Value {
    let ends = |e: &Ends| json!({"lower": e.lower, "upper": e.upper});
    json!({
        "cells": c.cells,
        "replicates": c.replicates,
        "confidence": c.confidence,
        "estimate_squared": c.estimate_squared,
        "bootstrap": ends(&c.bootstrap),
        "subsampling": ends(&c.subsampling),
        "hulc": ends(&c.hulc),
    })
}

/// One line each, below the report with our own.
pub fn text(c: &Compared) -> String {
    let line = |name: &str, e: &Ends| format!("{name:<22}{:.5} to {:.5}\n", e.lower, e.upper);
    format!(
        "\nother {:.0} % intervals of the ℓ2-ECE at {} cells, {} redrawn samples\n{}{}{}",
        100.0 * c.confidence,
        c.cells,
        c.replicates,
        line("bootstrap", &c.bootstrap),
        line("subsampling", &c.subsampling),
        line("HulC", &c.hulc),
    )
}
