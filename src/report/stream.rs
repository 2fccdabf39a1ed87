//! A stream and its windows as JSON, the same for the HTTP API and `trueline replay --json`.
//!
//! Times are given twice, as milliseconds since 1970 (exact, for programs) and as RFC 3339 (for
//! reading).

use super::moment::rfc3339;
use super::{evaluation, kernel, vectors};
use crate::alert::{Alert, Severity};
use crate::judge::{Coverage, StreamId, StreamReport, WindowReport};
use crate::stats::view::View;
use serde_json::{Value, json};

/// A stream without its windows, as JSON.
pub fn json(report: &StreamReport) -> Value {
    let id = &report.id;
    let last_event_ms = report.last_event_ms();
    json!({
        "stream": id.to_string(),
        "model": id.model,
        "version": id.version,
        "segment": id.segment,
        "view": id.view.to_string(),
        "alert": alert(&report.alert),
        "last_event_ms": last_event_ms,
        "last_event": last_event_ms.map(rfc3339),
        "due_ms": report.due_ms,
        "due": report.due_ms.map(rfc3339),
        "overdispersion": report.overdispersion,
    })
}

/// The alert of a stream as JSON.
pub fn alert(alert: &Alert) -> Value {
    json!({
        "state": alert.state.as_str(),
        "severity": alert.state.severity(alert.severity).map(Severity::as_str),
        "since_ms": alert.since_ms,
        "since": alert.since_ms.map(rfc3339),
    })
}

/// A window of a stream with all its numbers, as JSON.
pub fn judged(window: &WindowReport, id: &StreamId) -> Value {
    let mut entry = self::window(window);
    entry["evaluation"] = window.scores().map_or(Value::Null, evaluation::json);
    if let Some(e) = window.cells() {
        entry["vector"] = vectors::json(e);
    }
    if let Some(e) = window.kernel() {
        entry["kernel"] = kernel::window_json(e);
    }
    if let Some(absent) = absent(id) {
        entry["absent"] = absent;
    }
    if let Some(f) = &window.family {
        entry["family"] = json!({
            "classes": f.classes,
            "adjusted_p_value": f.adjusted_p_value,
            "p_value": f.p_value,
            "reject": f.reject,
        });
    }
    entry
}

/// A window without the numbers of its error, as JSON.
pub fn window(window: &WindowReport) -> Value {
    let verdict = window.verdict;
    // A window that was never judged has no bounds.
    let known = |ms: i64| (window.end_ms != 0).then_some(ms);
    let moment = |ms: i64| known(ms).map(rfc3339);
    json!({
        "window": window.window,
        "start_ms": known(window.start_ms),
        "start": moment(window.start_ms),
        "end_ms": known(window.end_ms),
        "end": moment(window.end_ms),
        "data_since_ms": known(window.since_ms),
        "data_since": moment(window.since_ms),
        "evaluated_at_ms": known(window.evaluated_at_ms),
        "n": window.n,
        "verdict": verdict.as_str(),
        "reason": verdict.reason(),
        "alert": {
            "state": window.alert.as_str(),
            "since_ms": window.alert_since_ms,
            "since": window.alert_since_ms.map(rfc3339),
        },
        "coverage": window.coverage.as_deref().map(coverage),
    })
}

/// The fields that a vector view lacks, with the reason; `None` for a scalar view, whose nulls need
/// no explanation.
pub fn absent(id: &StreamId) -> Option<Value> {
    let holds = match id.view {
        View::Kernel => "kernel",
        _ => "vector",
    };
    id.view.is_vector().then(|| {
        json!({
            "why": format!("a vector view has no single score; `{holds}` holds its numbers"),
            "fields": [
                "evaluation", "detector", "direction", "reliability", "recalibration", "mean_score",
                "event_rate", "cox", "brier", "log_loss", "ks", "kuiper", "spiegelhalter", "detectable",
            ],
        })
    })
}

/// How many predictions have an outcome, in all and by score, as JSON.
fn coverage(c: &Coverage) -> Value {
    let width = 1.0 / c.cells.len() as f64;
    let cells = c
        .cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell.predictions > 0);
    let cells = cells.map(|(k, cell)| {
        json!({
            "low": k as f64 * width,
            "high": (k + 1) as f64 * width,
            "predictions": cell.predictions,
            "labelled": cell.labelled,
        })
    });
    json!({
        "share": c.share(),
        "predictions": c.predictions,
        "labelled": c.labelled,
        "dropped": c.dropped,
        "implied": c.implied,
        "cells": cells.collect::<Value>(),
    })
}
