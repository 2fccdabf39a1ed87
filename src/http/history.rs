//! The history of a stream as JSON.

use crate::report::moment::rfc3339;
use serde_json::{Value, json};

use super::api::identity;
use crate::judge::{HistoryError, HistoryPoint, StreamReport};
use crate::telemetry::Published;

/// The points of one window or all, from `since_ms` on, and the last alerts; `None` if there is no
/// window of that name.
pub fn json(
    report: &StreamReport,
    published: &Published,
    window: Option<&str>,
    since_ms: i64,
) -> Option<Value> {
    let known = |name: &str| report.windows.iter().any(|w| w.window == name);
    if window.is_some_and(|name| !known(name)) {
        return None;
    }
    let history = published.history.stream(&report.id).unwrap_or_default();
    let asked = history.windows.iter();
    let asked = asked.filter(|(name, _)| window.is_none_or(|asked| asked == name));
    let windows: Vec<Value> = asked
        .map(|(name, points)| {
            let points = points.iter().filter(|p| p.end_ms >= since_ms);
            json!({ "window": name, "points": points.map(point).collect::<Value>() })
        })
        .collect();
    let fingerprint = report.id.fingerprint();
    let alerts = history.alerts.iter().map(|a| {
        json!({
            "at_ms": a.at_ms,
            "at": rfc3339(a.at_ms),
            "state": a.state,
            "severity": a.severity,
            "sentence": a.sentence,
        })
    });
    let mut entry = identity(report);
    entry["fingerprint"] = json!(fingerprint);
    entry["windows"] = json!(windows);
    entry["alerts"] = alerts.collect();
    Some(entry)
}

fn point(p: &HistoryPoint) -> Value {
    // The float's shortest decimal, without the digits that conversion to a double adds.
    let short = |x: f32| x.to_string().parse::<f64>().unwrap_or_default();
    let shown = |e: HistoryError| {
        json!({
            "estimate": short(e.estimate),
            "lower": short(e.lower),
            "upper": short(e.upper),
        })
    };
    let counts = p.verdicts();
    json!({
        "end_ms": p.end_ms,
        "end": rfc3339(p.end_ms),
        "n": p.n,
        "verdict": p.verdict.as_str(),
        "reason": p.verdict.reason(),
        "verdicts": {
            "calibrated": counts.calibrated,
            "undecided": counts.undecided,
            "miscalibrated": counts.miscalibrated,
        },
        "error": p.error.map(shown),
        "observed_expected": p.ratio.map(shown),
    })
}
