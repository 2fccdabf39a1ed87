//! Alerts, silences and acknowledgements over HTTP.
//!
//! Reads need no permission and wait for nothing. A change waits for the disk, so that a response
//! of 200 survives a restart. A body must have `content-type: application/json`, which a page of
//! another site cannot send without a preflight request.

use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

use super::api::{brief, rfc3339};
use super::path::{Route, encode_id, page_path};
use super::response::{Answer, error, ok};
use crate::alert::{Ack, AlertState, Matcher, Severity, Silence, Silences};
use crate::judge::{ANY_MODEL, StreamReport, alarm};
use crate::report::holding::holding;
use crate::telemetry::Published;
use crate::telemetry::control::{AlertRequest, AlertResponse};
use crate::telemetry::facts::Facts;

/// Longest body of a request.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// Alerts that are not inactive, or all, the most urgent first.
pub fn list(published: &Published, all: bool) -> Value {
    let book = published.control.book();
    let now_ms = now_ms();
    let mut reports = published.reports();
    reports.retain(|r| all || r.alert.state != AlertState::Inactive);
    let urgency = |r: &StreamReport| {
        let rank = match r.alert.state {
            AlertState::Firing => 0,
            AlertState::Pending => 1,
            AlertState::Resolved => 2,
            AlertState::Inactive => 3,
        };
        (rank, r.alert.severity != Severity::Page)
    };
    reports.sort_by_key(|r| urgency(r));
    let facts = published.facts();
    let alerts = reports.iter().map(|r| {
        let mut entry = alert(r, &book, now_ms);
        entry["keeps_open"] = keeps_open(r, &facts, rfc3339).into();
        entry
    });
    let alerts: Vec<Value> = alerts.collect();
    json!({ "count": alerts.len(), "alerts": alerts })
}

/// What keeps an alert open and when it ends, in sentences.
pub(super) fn keeps_open(
    report: &StreamReport,
    facts: &Facts,
    clock: impl Fn(i64) -> String,
) -> Vec<String> {
    let named = |name: &str| facts.alert_rules.iter().find(|r| r.model == name);
    let rules = named(&report.id.model).or_else(|| named(ANY_MODEL));
    rules.map_or(Vec::new(), |rules| {
        holding(report, &rules.holds, rules.window_alerts, clock)
    })
}

fn alert(report: &StreamReport, book: &Silences, now_ms: i64) -> Value {
    let (id, alert) = (&report.id, &report.alert);
    let fingerprint = id.fingerprint();
    let silence = book.silence_of(&id.labels(alert.severity), now_ms);
    let ack = book.ack_of(&fingerprint, alert.since_ms);
    let window = alarm::speaker(report).and_then(|i| report.windows.get(i));
    json!({
        "stream": id.to_string(),
        "model": id.model,
        "version": id.version,
        "segment": id.segment,
        "view": id.view.to_string(),
        "state": alert.state.as_str(),
        "severity": alert.severity.as_str(),
        "since_ms": alert.since_ms,
        "since": alert.since_ms.map(rfc3339),
        "flaps": alert.flaps,
        "detector_alarm": report.detector.as_ref().map(|d| d.alarm.is_some()),
        "silenced": silence.map(silence_json),
        "acknowledged": ack.map(ack_json),
        "window": window.map(brief),
        "links": {
            "stream": format!("/api/v1/streams/{}", encode_id(id)),
            "page": page_path(id),
            "runbook": "/runbooks/TruelineMiscalibrated",
            "ack": format!("/api/v1/alerts/{fingerprint}/ack"),
        },
        "fingerprint": fingerprint,
    })
}

/// Silences that have not expired.
pub fn silences(published: &Published) -> Value {
    let (book, now_ms) = (published.control.book(), now_ms());
    let alive = book.silences.iter().filter(|s| s.until_ms > now_ms);
    let all: Vec<Value> = alive.map(silence_json).collect();
    json!({ "count": all.len(), "silences": all })
}

fn silence_json(s: &Silence) -> Value {
    json!({
        "id": s.id,
        "matchers": s.matchers,
        "from_ms": s.from_ms,
        "from": rfc3339(s.from_ms),
        "until_ms": s.until_ms,
        "until": rfc3339(s.until_ms),
        "by": s.by,
        "note": s.note,
    })
}

fn ack_json(a: &Ack) -> Value {
    json!({ "by": a.by, "note": a.note, "at_ms": a.at_ms, "at": rfc3339(a.at_ms), "since_ms": a.since_ms })
}

/// A requested silence.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SilenceRequest {
    matchers: Vec<Matcher>,
    /// Such as `2h`; an alternative to `until_ms`.
    #[serde(rename = "for")]
    length: Option<String>,
    until_ms: Option<i64>,
    by: String,
    #[serde(default)]
    note: String,
}

/// A requested acknowledgement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AckRequest {
    by: String,
    #[serde(default)]
    note: String,
}

/// Whether the route changes alerts, and by which method.
pub fn changes(method: &Method, route: &Route) -> bool {
    match route {
        Route::Silences | Route::Acknowledge(_) => method == Method::POST,
        Route::Silence(_) => method == Method::DELETE,
        _ => false,
    }
}

/// Executes the request and waits for the disk.
pub fn change(route: &Route, body: &[u8], published: &Published) -> Answer {
    let request = match route {
        Route::Silences => silence_request(body),
        Route::Silence(id) => Ok(AlertRequest::Lift(*id)),
        Route::Acknowledge(fingerprint) => {
            parse(body).map(|w: AckRequest| AlertRequest::Acknowledge {
                fingerprint: fingerprint.clone(),
                by: w.by,
                note: w.note,
            })
        }
        _ => Err("nothing to change here".to_owned()),
    };
    let request = match request {
        Ok(request) => request,
        Err(why) => return error(StatusCode::BAD_REQUEST, &why, EXAMPLE),
    };
    match published.control.request(request) {
        None => {
            let hint = "start it with `trueline run --config FILE`";
            let what = "this process sends no alerts";
            error(StatusCode::SERVICE_UNAVAILABLE, what, hint)
        }
        Some(AlertResponse::Silenced(silence)) => ok(&silence_json(&silence)),
        Some(AlertResponse::Acknowledged(ack)) => ok(&ack_json(&ack)),
        Some(AlertResponse::Done) => ok(&json!({ "done": true })),
        Some(AlertResponse::Unknown) => {
            let hint = "see /api/v1/alerts for alerts that fire, /api/v1/silences for silences";
            error(
                StatusCode::NOT_FOUND,
                "there is no such alert or silence",
                hint,
            )
        }
        Some(AlertResponse::Refused(why)) => error(StatusCode::UNPROCESSABLE_ENTITY, &why, EXAMPLE),
    }
}

const EXAMPLE: &str = "a silence is {\"matchers\": [\"model=fraud\"], \"for\": \"2h\", \"by\": \"ann\", \"note\": \"release\"}; \
                       an acknowledgement {\"by\": \"ann\", \"note\": \"rolling back\"}";

fn silence_request(body: &[u8]) -> Result<AlertRequest, String> {
    let request: SilenceRequest = parse(body)?;
    let until_ms = match (&request.length, request.until_ms) {
        (None, Some(until_ms)) => until_ms,
        (Some(length), None) => {
            let length = humantime::parse_duration(length);
            let length = length.map_err(|e| format!("`for` is not a duration: {e}"))?;
            let ms = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
            now_ms().saturating_add(ms)
        }
        _ => return Err("write either `for` or `until_ms`".to_owned()),
    };
    Ok(AlertRequest::Silence {
        matchers: request.matchers,
        until_ms,
        by: request.by,
        note: request.note,
    })
}

fn parse<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|e| format!("the body cannot be read: {e}"))
}

/// The clock of this machine, which requests refer to.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |s| i64::try_from(s.as_millis()).unwrap_or(i64::MAX))
}
