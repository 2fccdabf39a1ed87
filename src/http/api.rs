//! The JSON interface: the published reports, with the words and addresses that people need.
//!
//! Times are given twice, as milliseconds since the epoch (exact, for programs) and as RFC 3339
//! (for reading). A window that was not evaluated has `evaluation: null`, as its metrics are
//! withdrawn; a field that is undefined for a sample is `null`, never a meaningless number.

use crate::report::moment::rfc3339;
use serde_json::{Value, json};

use super::path::{encode, encode_id, page_path};
use super::urgency::{Filter, Urgency, counts};
use crate::judge::{DecidedError, Numbers, StreamReport, WindowReport};
use crate::report::{comparison, detector, ledger, stream};
use crate::stats::axis::Axis;
use crate::stats::corp;
use crate::stats::evaluation::Evaluation;
use crate::stats::recalibration::isotonic::Pool;
use crate::telemetry::Published;

/// The streams that a filter selects, each with its windows in short: at most `limit`, after the
/// first `offset`.
pub fn streams(published: &Published, filter: &Filter, offset: usize, limit: usize) -> Value {
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

/// Adds to an answer whether this process judges, and a hint if it does not.
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
    json!({ "ledger": accounts })
}

/// Versions that scored the same ids, of all models or of one.
pub fn comparisons(published: &Published, model: Option<&str>) -> Value {
    let facts = published.facts();
    let all = facts.comparisons.iter();
    let asked = all.filter(|c| model.is_none_or(|model| c.id.model == model));
    let list: Vec<Value> = asked.map(comparison::json).collect();
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

/// Everything known of one stream.
pub fn stream(report: &StreamReport, published: &Published) -> Value {
    let mut entry = identity(report);
    let facts = published.facts();
    let about = facts.comparisons.iter().filter(|c| {
        let named = |version: &str| version == report.id.version;
        let same = c.id.model == report.id.model && c.id.view == report.id.view;
        same && (named(&c.id.champion) || named(&c.id.challenger))
    });
    entry["comparisons"] = about.map(comparison::json).collect();
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
    let judged = |window| stream::judged(window, &report.id);
    entry["windows"] = report.windows.iter().map(judged).collect();
    entry
}

/// The reliability diagrams of one window or of all; `None` if there is no window of that name.
pub fn reliability(report: &StreamReport, window: Option<&str>) -> Option<Value> {
    by_window(report, window, |window, entry| {
        entry["cells"] = window.scores().map_or(Value::Null, cells);
        entry["corp"] = window.scores().map_or(Value::Null, corp_json);
    })
}

/// A stream with one of its windows or all; `add` adds something to each window. `None` if there is
/// no window of that name.
pub(super) fn by_window(
    report: &StreamReport,
    window: Option<&str>,
    add: impl Fn(&WindowReport, &mut Value),
) -> Option<Value> {
    let mut entry = identity(report);
    let windows = asked(report, window).map(|w| {
        let mut entry = stream::window(w);
        add(w, &mut entry);
        entry
    });
    let windows: Vec<Value> = windows.collect();
    if windows.is_empty() && window.is_some() {
        return None;
    }
    entry["windows"] = Value::Array(windows);
    if let Some(absent) = stream::absent(&report.id) {
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

/// The first part of every answer about a stream.
pub(super) fn identity(report: &StreamReport) -> Value {
    let id = &report.id;
    let path = encode_id(id);
    let mut entry = stream::json(report);
    entry["id"] = json!(path);
    entry["state"] = Urgency::of(report).as_str().into();
    entry["links"] = json!({
        "self": format!("/api/v1/streams/{path}"),
        "reliability": format!("/api/v1/streams/{path}/reliability"),
        "recalibration": format!("/api/v1/streams/{path}/recalibration"),
        "history": format!("/api/v1/streams/{path}/history"),
        "comparison": format!("/api/v1/models/{}/comparison", encode(&id.model)),
        "page": page_path(id),
    });
    entry
}

/// A window with the few numbers that a list shows.
pub fn brief(window: &WindowReport) -> Value {
    let mut entry = stream::window(window);
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
