//! Alerts, silences, acknowledgements and deployments over HTTP.
//!
//! Reads need no token and wait for nothing. A change waits for the disk, so that a response of 200
//! survives a restart. A body must have `content-type: application/json`, which a page of another
//! site cannot send without a preflight request.

use crate::report::moment::rfc3339;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

use super::api::{brief, with_role};
use super::path::{Route, encode_id, page_path};
use super::response::{Answer, error, later, ok};
use super::sources;
use crate::alert::{Ack, AlertState, Deployment, Matcher, Severity, Silence, Silences};
use crate::judge::{ANY_MODEL, StreamReport, alarm};
use crate::report::holding::holding;
use crate::telemetry::control::{AlertRequest, AlertResponse};
use crate::telemetry::facts::{AlertFacts, AlertRules, Facts};
use crate::telemetry::{Published, now_ms};

/// Longest body of a request.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// The alerts that are not inactive, or `all`, the most urgent first, each with its streams. The
/// list is empty on a process that does not judge.
pub fn list(published: &Published, all: bool) -> Value {
    let (silences, now_ms) = (published.control.silences(), now_ms());
    let facts = published.facts();
    let mut alerts: Vec<&AlertFacts> = facts
        .alerts
        .iter()
        .filter(|a| facts.role.judges() && (all || a.state != AlertState::Inactive))
        .collect();
    alerts.sort_by_key(|a| (a.state.urgency(), a.severity != Severity::Page));
    let alerts = alerts
        .iter()
        .map(|a| alert(a, published, &silences, now_ms, all));
    let alerts: Vec<Value> = alerts.collect();
    let concerns = published.concerns();
    let concerns: Vec<Value> = concerns.iter().map(sources::concern).collect();
    let list = json!({ "count": alerts.len(), "concerns": concerns, "alerts": alerts });
    with_role(list, published)
}

/// What keeps an alert open at `now_ms` and when it ends, in sentences. `clock` writes times.
pub(super) fn keeps_open(
    report: &StreamReport,
    facts: &Facts,
    now_ms: i64,
    clock: impl Fn(i64) -> String,
) -> Vec<String> {
    rules_of(report, facts).map_or(Vec::new(), |rules| {
        holding(report, &rules.holds, rules.window_alerts, now_ms, clock)
    })
}

/// Why the stream raises no alert and what to do; `None` if it can raise one.
pub(super) fn no_alert(report: &StreamReport, facts: &Facts) -> Option<String> {
    let rules = rules_of(report, facts)?;
    match report.id.view.is_vector() {
        true => (!rules.window_alerts).then(|| alarm::no_alert("a vector has no single score")),
        false => rules.no_alert.clone(),
    }
}

fn rules_of<'a>(report: &StreamReport, facts: &'a Facts) -> Option<&'a AlertRules> {
    let named = |name: &str| facts.alert_rules.iter().find(|r| r.model == name);
    named(&report.id.model).or_else(|| named(ANY_MODEL))
}

fn alert(
    alert: &AlertFacts,
    published: &Published,
    silences: &Silences,
    now_ms: i64,
    all: bool,
) -> Value {
    let reports = alert.streams.iter().filter_map(|id| published.report(id));
    let reports = reports.filter(|r| all || r.alert.state != AlertState::Inactive);
    let reports: Vec<Arc<StreamReport>> = reports.collect();
    let firing = reports
        .iter()
        .filter(|r| r.alert.state == AlertState::Firing);
    let silence_of =
        |r: &Arc<StreamReport>| silences.silence_of(&r.id.labels(r.alert.severity), now_ms);
    // An alert is silenced if all of its streams are.
    let each: Option<Vec<&Silence>> = firing.clone().map(silence_of).collect();
    let silence = each.and_then(|all| all.into_iter().max_by_key(|s| s.until_ms));
    let ack = silences.ack_of(&alert.fingerprint, alert.since_ms);
    let facts = published.facts();
    let streams = reports.iter().map(|r| {
        let mut entry = stream(r, silence_of(r));
        entry["keeps_open"] = keeps_open(r, &facts, now_ms, rfc3339).into();
        entry
    });
    json!({
        "alert": alert.name,
        "fingerprint": alert.fingerprint,
        "model": alert.model,
        "version": alert.version,
        "segment": alert.segment,
        "view": alert.view,
        "state": alert.state.as_str(),
        "severity": alert.state.severity(alert.severity).map(Severity::as_str),
        "since_ms": alert.since_ms,
        "since": alert.since_ms.map(rfc3339),
        "streams_firing": firing.count(),
        "streams": streams.collect::<Vec<Value>>(),
        "silenced": silence.map(silence_json),
        "acknowledged": ack.map(ack_json),
        "deployment": silences.deployment_of(&alert.model, &alert.version).map(deployment_json),
        "links": {
            "runbook": "/runbooks/TruelineMiscalibrated",
            "ack": format!("/api/v1/alerts/{}/ack", alert.fingerprint),
            "close": format!("/api/v1/alerts/{}/close", alert.fingerprint),
        },
    })
}

fn stream(report: &StreamReport, silence: Option<&Silence>) -> Value {
    let (id, alert) = (&report.id, &report.alert);
    let window = alarm::speaker(report).and_then(|i| report.windows.get(i));
    json!({
        "stream": id.to_string(),
        "id": encode_id(id),
        "model": id.model,
        "version": id.version,
        "segment": id.segment,
        "view": id.view.to_string(),
        "state": alert.state.as_str(),
        "severity": alert.state.severity(alert.severity).map(Severity::as_str),
        "since_ms": alert.since_ms,
        "since": alert.since_ms.map(rfc3339),
        "flaps": alert.flaps,
        "counts_from_ms": alert.counts_from_ms,
        "detector_alarm": report.detector.as_ref().map(|d| d.alarm.is_some()),
        "silenced": silence.map(silence_json),
        "window": window.map(brief),
        "links": {
            "stream": format!("/api/v1/streams/{}", encode_id(id)),
            "page": page_path(id),
        },
        "fingerprint": id.fingerprint(),
    })
}

/// Deployments, the newest first.
pub fn deployments(published: &Published) -> Value {
    let silences = published.control.silences();
    let all = silences.deployments.iter().rev().map(deployment_json);
    let all: Vec<Value> = all.collect();
    json!({ "count": all.len(), "deployments": all })
}

fn deployment_json(d: &Deployment) -> Value {
    json!({
        "model": d.model,
        "version": d.version,
        "at_ms": d.at_ms,
        "at": rfc3339(d.at_ms),
        "by": d.by,
        "note": d.note,
    })
}

/// Silences that have not expired.
pub fn silences(published: &Published) -> Value {
    let (silences, now_ms) = (published.control.silences(), now_ms());
    let alive = silences.silences.iter().filter(|s| s.until_ms > now_ms);
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SilenceRequest {
    matchers: Vec<Matcher>,
    /// The length, such as `2h`; an alternative to `until_ms`.
    #[serde(rename = "for")]
    length: Option<String>,
    until_ms: Option<i64>,
    by: String,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeployRequest {
    version: Option<String>,
    by: String,
    #[serde(default)]
    note: String,
}

/// A requested acknowledgement or end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AckRequest {
    by: String,
    #[serde(default)]
    note: String,
}

/// Whether a request with this method to this route changes alerts, silences or deployments.
pub fn changes(method: &Method, route: &Route) -> bool {
    match route {
        Route::Silences | Route::Acknowledge(_) | Route::Close(_) | Route::Deploy(_) => {
            method == Method::POST
        }
        Route::Silence(_) => method == Method::DELETE,
        _ => false,
    }
}

/// The answer for too many requests at a time.
pub fn busy() -> Answer {
    let what = "too many requests to change something are received or wait for the disk";
    let hint = "send the request again in a moment";
    later(StatusCode::SERVICE_UNAVAILABLE, what, hint)
}

/// Executes a request for a change and waits for the disk.
pub fn change(route: &Route, body: &[u8], published: &Published) -> Answer {
    let request = match route {
        Route::Silences => silence_request(body),
        Route::Silence(id) => Ok(AlertRequest::Lift(*id)),
        Route::Acknowledge(alert) => parse(body).map(|w: AckRequest| AlertRequest::Acknowledge {
            alert: alert.clone(),
            by: w.by,
            note: w.note,
        }),
        Route::Close(alert) => parse(body).map(|w: AckRequest| AlertRequest::Close {
            alert: alert.clone(),
            by: w.by,
            note: w.note,
        }),
        Route::Deploy(model) => parse(body).map(|w: DeployRequest| AlertRequest::Deploy {
            model: model.clone(),
            version: w.version,
            by: w.by,
            note: w.note,
        }),
        _ => Err("nothing to change here".to_owned()),
    };
    let request = match request {
        Ok(request) => request,
        Err(why) => return error(StatusCode::BAD_REQUEST, &why, example(route)),
    };
    match published.control.request(request) {
        None => {
            let hint = "start it with `trueline run --config FILE`";
            let what = "this process sends no alerts";
            error(StatusCode::SERVICE_UNAVAILABLE, what, hint)
        }
        Some(AlertResponse::Silenced(silence)) => ok(&silence_json(&silence)),
        Some(AlertResponse::Acknowledged(ack)) => ok(&ack_json(&ack)),
        Some(AlertResponse::Deployed(deployment)) => ok(&deployment_json(&deployment)),
        Some(AlertResponse::Done) => ok(&json!({ "done": true })),
        Some(AlertResponse::Unknown) => unknown(route, published),
        Some(AlertResponse::Refused(why)) => {
            error(StatusCode::UNPROCESSABLE_ENTITY, &why, example(route))
        }
        Some(AlertResponse::Unavailable(why)) => {
            let hint = "/api/v1/alerts and /api/v1/deployments show what is done; /ready says what is wrong";
            error(StatusCode::SERVICE_UNAVAILABLE, why, hint)
        }
    }
}

/// The answer if what a request names does not exist, or does not fire.
fn unknown(route: &Route, published: &Published) -> Answer {
    let facts = published.facts();
    let called = |name: &str| facts.alerts.iter().find(|a| a.is_called(name));
    let (what, hint) = match route {
        Route::Acknowledge(name) | Route::Close(name) if called(name).is_some() => (
            called(name).map_or(String::new(), not_firing),
            "only an alert that fires can be acknowledged; one that is pending can be closed too",
        ),
        Route::Deploy(model) => (
            format!("no stream of model `{model}` is known"),
            "/api/v1/streams has the names; a new version of a known model may be marked before its first record",
        ),
        _ => (
            "there is no such alert or silence".to_owned(),
            "see /api/v1/alerts for alerts that fire, /api/v1/silences for silences",
        ),
    };
    error(StatusCode::NOT_FOUND, &what, hint)
}

/// Says that an alert does not fire, and since when it has its state.
fn not_firing(alert: &AlertFacts) -> String {
    let since = alert.since_ms.map(rfc3339);
    format!(
        "alert `{}` does not fire: it is {}{}",
        alert.name,
        alert.state.as_str(),
        since.map_or(String::new(), |at| format!(" since {at}"))
    )
}

/// An example of a body for this route.
fn example(route: &Route) -> &'static str {
    match route {
        Route::Acknowledge(_) => {
            r#"an acknowledgement is {"by": "ann", "note": "rolling back"}; `by` is required"#
        }
        Route::Close(_) => r#"an end is {"by": "ann", "note": "rolled back"}; `by` is required"#,
        Route::Deploy(_) => {
            r#"a deployment is {"version": "4", "by": "ann", "note": "retrained"}; `by` is required"#
        }
        _ => {
            r#"a silence is {"matchers": ["model=fraud"], "for": "2h", "by": "ann", "note": "release"}; `note` may be left out"#
        }
    }
}

fn silence_request(body: &[u8]) -> Result<AlertRequest, String> {
    let request: SilenceRequest = parse(body)?;
    request.matchers.iter().try_for_each(Matcher::possible)?;
    Matcher::possible_together(&request.matchers)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::api::streams;
    use crate::http::page;
    use crate::http::urgency::Filter;
    use crate::telemetry::facts::Role;

    #[test]
    fn a_process_that_does_not_judge_lists_no_alerts_and_says_why() {
        let published = Published::default();
        let fires = AlertFacts {
            name: "fraud".to_owned(),
            state: AlertState::Firing,
            ..AlertFacts::default()
        };
        published.update(|facts| facts.alerts = vec![fires].into());
        let answers = |role| {
            published.update(|facts| facts.role = role);
            let streams = streams(&published, &Filter::default(), 0, 9);
            (list(&published, true), streams, page::alerts(&published, 0))
        };
        let (alerts, streams, page) = answers(Role::Alone);
        assert_eq!(
            (&alerts["judges"], &alerts["count"]),
            (&json!(true), &json!(1))
        );
        assert!(streams["judges"] == true && streams.get("hint").is_none());
        assert!(page.contains("Firing"), "{page}");
        for role in [Role::Worker, Role::Standby] {
            let (alerts, streams, page) = answers(role);
            assert_eq!(
                (&alerts["judges"], &alerts["count"]),
                (&json!(false), &json!(0))
            );
            for answer in [alerts, streams] {
                assert_eq!(answer["hint"], "this process does not judge; ask the judge");
            }
            assert!(!page.contains("Firing"), "{page}");
            assert!(
                page.contains("The process that judges shows the alerts."),
                "{page}"
            );
        }
    }
}
