//! What a detector says as JSON: evidence, alarm and confidence sequences.

use crate::judge::DetectorReport;
use crate::judge::detector_report::{HELD, bet_words, kind};
use crate::stats::sequential::evidence::Evidence;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The report as JSON. Logarithms are natural; shares sum to 1; times in milliseconds.
pub fn json(r: &DetectorReport) -> Value {
    let bounds = &r.bounds;
    let bins = bounds.bins.iter().map(|b| {
        json!({
            "low": b.low, "high": b.high, "n": b.n,
            "mean_residual_lower": b.lower, "mean_residual_upper": b.upper,
        })
    });
    json!({
        "promise": r.promise,
        "account": r.account,
        "share": r.share,
        "at_ms": r.at_ms,
        "log_threshold": r.log_threshold,
        "evidence": r.evidence.as_ref().map(evidence_json),
        "held": r.held_ms.map(|since_ms| json!({ "since_ms": since_ms, "why": HELD })),
        "alarm": r.alarm.as_ref().map(|a| json!({
            "at_ms": a.at_ms,
            "since_ms": a.since_ms,
            "onset_ms": a.onset_ms.round() as i64,
            "times": a.times,
            "delay_events": a.delay_events,
            "residual": { "lower": a.residual.0, "upper": a.residual.1 },
            "evidence": evidence_json(&a.evidence),
        })),
        "called_ms": r.called_ms,
        "alarms": r.alarms,
        "expected_false_alarms_max": r.expected_false_alarms,
        "outcomes_missed": { "added": r.missed.added, "revised": r.missed.revised },
        "always_valid": {
            "confidence": r.confidence,
            "n": bounds.n,
            "mean_residual_lower": bounds.mean.0,
            "mean_residual_upper": bounds.mean.1,
            "ece_l2_lower": bounds.ece2_lower.sqrt(),
            "bins": bins.collect::<Vec<_>>(),
        },
    })
}

fn evidence_json(e: &Evidence) -> Value {
    let shares = &e.shares;
    let cells = e.cells.iter();
    let cells = cells.map(|c| json!({ "low": c.low, "high": c.high, "lean": c.lean }));
    json!({
        "log": e.log_worth,
        "direction": e.direction.as_str(),
        "words": kind(e),
        "onset_ms": e.onset.ms.round() as i64,
        "shares": shares.named().into_iter().collect::<BTreeMap<_, _>>(),
        "best_bet": e.best.bet().map(|bet| json!({ "words": bet_words(bet), "share": e.best.share })),
        "cells": cells.collect::<Vec<_>>(),
    })
}
