//! Intervals by resampling as JSON: the key `intervals` of `trueline evaluate --compare-intervals`.
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
