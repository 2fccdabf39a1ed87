//! The JSON interface: reports as they are published, with the words and addresses that people
//! need.
//!
//! Times are given twice, as milliseconds since the epoch (exact, for programs) and as RFC 3339
//! (for reading). A window that was not evaluated has `evaluation: null`, as its metrics are
//! withdrawn; a field that is undefined for a sample is `null`, never a number that means nothing.

use crate::report::moment::rfc3339;
use serde_json::{Value, json};

use super::path::{encode, encode_id, page_path};
use super::urgency::{Filter, Urgency, counts};
use crate::alert::Severity;
use crate::judge::{ComparisonReport, Coverage, DecidedError, Numbers, StreamReport, WindowReport};
use crate::report::{comparison, detector, evaluation, kernel, ledger, vectors};
use crate::stats::axis::Axis;
use crate::stats::corp;
use crate::stats::evaluation::Evaluation;
use crate::stats::recalibration::isotonic::Pool;
use crate::stats::view::View;
use crate::telemetry::Published;
use crate::telemetry::verdict_words;

/// The streams of a filter, each with its windows in short: `limit` of them after the first
/// `offset`.
pub fn streams(published: &Published, filter: &Filter, (offset, limit): (usize, usize)) -> Value {
    let named = filter.named(published);
    let states = counts(named.iter().map(|(urgency, _)| *urgency));
    let states = states
        .iter()
        .map(|(s, n)| (s.as_str().to_owned(), json!(n)));
    let mut asked = named;
    asked.retain(|(urgency, _)| filter.admits(*urgency));
    let streams: Vec<Value> = asked
        .iter()
        .skip(offset)
        .take(limit)
        .map(|(_, report)| {
            let mut entry = identity(report);
            entry["windows"] = report.windows.iter().map(brief).collect();
            entry
        })
        .collect();
    let list = json!({
        "count": streams.len(),
        "total": asked.len(),
        "states": states.collect::<serde_json::Map<_, _>>(),
        "streams": streams,
    });
    with_role(list, published)
}

/// The answer with whether this process judges, and a hint if it does not.
pub(super) fn with_role(mut answer: Value, published: &Published) -> Value {
    let judges = published.facts().role.judges();
    answer["judges"] = judges.into();
    if !judges {
        answer["hint"] = "this process does not judge; ask the judge".into();
    }
    answer
}

/// The budgets of false alarms.
pub fn ledger(published: &Published) -> Value {
    let accounts: Vec<Value> = published.facts().ledger.iter().map(ledger::json).collect();
    json!({ "accounts": accounts })
}

/// Versions that scored the same ids, of all models or of one.
pub fn comparisons(published: &Published, model: Option<&str>) -> Value {
    let facts = published.facts();
    let all = facts.comparisons.iter();
    let asked = all.filter(|c| model.is_none_or(|model| c.id.model == model));
    let list: Vec<Value> = asked.map(compared).collect();
    let held = facts.pair_counts.iter().map(|(plan, counts, held)| {
        json!({
            "model": plan,
            "taken": counts.taken,
            "paired": counts.paired,
            "alone": counts.alone,
            "duplicate": counts.duplicate,
            "contradicted": counts.contradicted,
            "refused": counts.refused,
            "nameless": counts.nameless,
            "unrevised": counts.unrevised,
            "held": held,
        })
    });
    json!({ "count": list.len(), "comparisons": list, "rows": held.collect::<Vec<_>>() })
}

fn compared(report: &ComparisonReport) -> Value {
    let mut entry = comparison::json(report);
    entry["since"] = json!(rfc3339(report.since_ms));
    entry["last"] = json!(rfc3339(report.last_ms));
    entry
}

/// Everything known of one stream.
pub fn stream(report: &StreamReport, published: &Published) -> Value {
    let mut entry = identity(report);
    let facts = published.facts();
    let about = facts.comparisons.iter().filter(|c| {
        let named = |version: &str| version == report.id.version;
        let same = c.id.model == report.id.model && c.id.view == report.id.view;
        same && (named(&c.id.champion) || named(&c.id.challenger))
    });
    entry["comparisons"] = about.map(compared).collect();
    entry["waiting"] = facts.unjudged(&report.id).map_or(Value::Null, |waits| {
        json!({
            "events": waits.events,
            "until": waits.until_ms.map(rfc3339),
            "until_ms": waits.until_ms,
            "late": waits.late,
        })
    });
    let detector = report.detector.as_deref();
    entry["detector"] = detector.map_or(Value::Null, detector::json);
    entry["windows"] = report
        .windows
        .iter()
        .map(|window| {
            let mut entry = window_facts(window);
            entry["evaluation"] = window.scores().map_or(Value::Null, evaluation::json);
            if let Some(e) = window.cells() {
                entry["vector"] = vectors::json(e);
            }
            if let Some(e) = window.kernel() {
                entry["kernel"] = kernel::window_json(e);
            }
            if let Some(absent) = absent(report) {
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
        })
        .collect();
    entry
}

/// What a vector view cannot say, and why; `None` of a scalar one, whose nulls say for themselves.
fn absent(report: &StreamReport) -> Option<Value> {
    let holds = match report.id.view {
        View::Kernel => "kernel",
        _ => "vector",
    };
    report.id.view.is_vector().then(|| {
        json!({
            "reason": format!("a vector view has no single score; `{holds}` holds its numbers"),
            "fields": [
                "evaluation", "detector", "direction", "reliability", "recalibration", "mean_score",
                "event_rate", "cox", "brier", "log_loss", "ks", "kuiper", "spiegelhalter", "detectable",
            ],
        })
    })
}

/// The reliability diagram of one window, or of each; `None` if there is no window of that name.
pub fn reliability(report: &StreamReport, window: Option<&str>) -> Option<Value> {
    by_window(report, window, |window, entry| {
        entry["cells"] = window.scores().map_or(Value::Null, cells);
        entry["corp"] = window.scores().map_or(Value::Null, corp_json);
    })
}

/// A stream with one of its windows, or each, and what `add` says of it; `None` if there is no
/// window of that name.
pub(super) fn by_window(
    report: &StreamReport,
    window: Option<&str>,
    add: impl Fn(&WindowReport, &mut Value),
) -> Option<Value> {
    let mut entry = identity(report);
    let windows = asked(report, window).map(|w| {
        let mut entry = window_facts(w);
        add(w, &mut entry);
        entry
    });
    let windows: Vec<Value> = windows.collect();
    if windows.is_empty() && window.is_some() {
        return None;
    }
    entry["windows"] = Value::Array(windows);
    if let Some(absent) = absent(report) {
        entry["absent"] = absent;
    }
    Some(entry)
}

/// The window of that name, or all.
pub(super) fn asked<'a>(
    report: &'a StreamReport,
    window: Option<&'a str>,
) -> impl Iterator<Item = &'a WindowReport> {
    let windows = report.windows.iter();
    windows.filter(move |w| window.is_none_or(|name| w.window == name))
}

pub(super) fn identity(report: &StreamReport) -> Value {
    let id = &report.id;
    let last_event_ms = report.last_event_ms();
    let path = encode_id(id);
    let severity = report.alert.state.severity(report.alert.severity);
    json!({
        "id": path,
        "model": id.model,
        "version": id.version,
        "segment": id.segment,
        "view": id.view.to_string(),
        "state": Urgency::of(report).as_str(),
        "alert": {
            "state": report.alert.state.as_str(),
            "severity": severity.map(Severity::as_str),
            "since_ms": report.alert.since_ms,
            "since": report.alert.since_ms.map(rfc3339),
        },
        "last_event_ms": last_event_ms,
        "last_event": last_event_ms.map(rfc3339),
        "due_ms": report.due_ms,
        "due": report.due_ms.map(rfc3339),
        "overdispersion": report.overdispersion,
        "links": {
            "self": format!("/api/v1/streams/{path}"),
            "reliability": format!("/api/v1/streams/{path}/reliability"),
            "recalibration": format!("/api/v1/streams/{path}/recalibration"),
            "history": format!("/api/v1/streams/{path}/history"),
            "comparison": format!("/api/v1/models/{}/comparison", encode(&id.model)),
            "page": page_path(id),
        },
    })
}

fn window_facts(window: &WindowReport) -> Value {
    let (verdict, reason) = verdict_words(window.verdict);
    // A window that was never judged has no bounds.
    let moment = |ms: i64| (window.end_ms != 0).then(|| rfc3339(ms));
    json!({
        "window": window.window,
        "start_ms": window.start_ms,
        "start": moment(window.start_ms),
        "end_ms": window.end_ms,
        "end": moment(window.end_ms),
        "data_since_ms": window.since_ms,
        "data_since": moment(window.since_ms),
        "evaluated_at_ms": window.evaluated_at_ms,
        "n": window.n,
        "verdict": verdict,
        "reason": reason,
        "alert": window.alert.as_str(),
        "alert_since_ms": window.alert_since_ms,
        "coverage": window.coverage.as_deref().map(coverage),
    })
}

/// How many predictions have an outcome, over all and by score.
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

/// A window with the few numbers that a list shows.
pub fn brief(window: &WindowReport) -> Value {
    let mut entry = window_facts(window);
    let Some(e) = window.evaluated() else {
        return entry;
    };
    entry["p_value"] = json!(e.p_value());
    entry["error"] = json!(DecidedError::of(e));
    let ece_l1 = match e {
        Numbers::Scores(e) => {
            entry["direction"] = json!(e.direction.as_str());
            e.ece_l1
        }
        Numbers::Cells(e) => e.ece_l1,
        Numbers::Kernel(e) => {
            entry["kce"] = json!({"value": e.kce, "lower": e.lower, "confidence": e.confidence});
            return entry;
        }
    };
    entry["ece_l1"] = json!(ece_l1);
    entry["ece_l2"] = json!({
        "estimate_squared": e.ece_squared(),
        "lower": e.lower(),
        "upper": e.upper(),
        "confidence": e.confidence(),
        "detectable": e.scores().and_then(|e| e.detectable_ece_l2),
    });
    entry
}

/// The occupied cells of the reliability diagram.
fn cells(e: &Evaluation) -> Value {
    let occupied = e.reliability.iter().filter(|cell| cell.n > 0);
    json!(occupied.collect::<Vec<_>>())
}

/// The CORP curve with its band.
fn corp_json(e: &Evaluation) -> Value {
    let block = |p: &Pool| json!({ "low": p.low, "high": p.high, "n": p.n, "rate": p.rate() });
    let band = |b: &corp::Band| json!({ "score": b.z, "low": b.low, "high": b.high });
    json!({
        "axis": match e.axis {
            Axis::Linear => "linear",
            Axis::Logit { .. } => "logit",
        },
        "curve": corp::curve(&e.curve).iter().map(block).collect::<Value>(),
        "band": corp::band(&e.curve).iter().map(band).collect::<Value>(),
        "band_confidence": 1.0 - 2.0 * corp::TAIL,
    })
}
