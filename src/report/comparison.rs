//! Two versions against each other, as JSON and in words.

use super::moment::rfc3339;
use crate::judge::ComparisonReport;
use crate::stats::sequential::Difference;
use serde_json::{Value, json};

/// The verdict of an interval on the challenger: `better`, `worse` or `undecided`.
pub fn verdict(d: &Difference) -> &'static str {
    if d.upper < 0.0 {
        "better"
    } else if d.lower > 0.0 {
        "worse"
    } else {
        "undecided"
    }
}

/// The report as JSON.
pub fn json(r: &ComparisonReport) -> Value {
    let c = &r.compared;
    let one = |d: &Difference| {
        json!({
            "champion": d.champion,
            "challenger": d.challenger,
            "difference": d.difference,
            "lower": d.lower,
            "upper": d.upper,
            "challenger_is": verdict(d),
        })
    };
    json!({
        "model": r.id.model,
        "view": r.id.view.to_string(),
        "champion": r.id.champion,
        "challenger": r.id.challenger,
        "since_ms": r.since_ms,
        "since": rfc3339(r.since_ms),
        "last_ms": r.last_ms,
        "last": rfc3339(r.last_ms),
        "pairs": c.n,
        "confidence": r.confidence,
        "event_rate": c.event_rate,
        "mean_score": { "champion": c.score_means.0, "challenger": c.score_means.1 },
        "brier": one(&c.brier),
        "in_the_large": one(&c.in_the_large),
        "calibration": one(&c.calibration),
        "words": words(r),
    })
}

/// The report in a sentence.
pub fn words(r: &ComparisonReport) -> String {
    let c = &r.compared;
    let one = |what: &str, d: &Difference| {
        format!(
            "{what} {:+.5} ({:+.5} to {:+.5}, {})",
            d.difference,
            d.lower,
            d.upper,
            verdict(d)
        )
    };
    format!(
        "{} against {} on {} pairs: {}; {}; {}",
        r.id.challenger,
        r.id.champion,
        c.n,
        one("Brier score", &c.brier),
        one("mean error", &c.in_the_large),
        one("calibration loss", &c.calibration),
    )
}
