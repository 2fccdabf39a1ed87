//! Prometheus' Alertmanager, by `POST /api/v2/alerts`.
//!
//! An Alertmanager forgets an alert that nobody speaks of: each carries `endsAt`, and is over then. So what fires is said again
//! at an interval with an `endsAt` [`AHEAD`] intervals away, which outlives a restart of ours and some failed posts; and what
//! ended is said once with the moment at which it did. Labels identify, annotations describe: a number among the labels would
//! be a new alert each time. Severity is a label, since routes go by it; so an alert whose severity changes is two for the
//! Alertmanager, of which the first ends in the same post in which the second begins.
//!
//! With several Alertmanagers in a cluster name each as a sink of its own, as one would for Prometheus.

use super::notice::{ALERT_NAME, Notice, Status, moment};
use super::options::{SinkOptions, Texts};
use super::post::Post;
use super::receiver::Failure;
use crate::alert::Severity;
use serde_json::{Map, Value, json};

/// Intervals that `endsAt` is ahead: Prometheus takes four too (`rules/alerting.go`).
const AHEAD: i64 = 4;

/// An Alertmanager.
pub struct Alertmanager {
    post: Post,
    texts: Texts,
    ahead_ms: i64,
}

impl Alertmanager {
    /// One of these options.
    pub fn new(options: &SinkOptions, texts: &Texts) -> Result<Alertmanager, String> {
        let url = format!("{}/api/v2/alerts", options.address.trim_end_matches('/'));
        let every = i64::try_from(options.resend.as_millis()).unwrap_or(i64::MAX);
        Ok(Alertmanager {
            post: Post::new(options, url)?,
            texts: texts.clone(),
            ahead_ms: every.saturating_mul(AHEAD),
        })
    }

    /// Tells one notice.
    pub fn tell(&self, notice: &Notice, now_ms: i64) -> Result<String, Failure> {
        let mut alerts = Vec::new();
        if let Some(was) = notice.was {
            let before = Notice {
                status: Status::Resolved,
                severity: was,
                ..notice.clone()
            };
            alerts.push(self.alert(&before, now_ms));
        }
        alerts.push(self.alert(notice, now_ms));
        self.post.json(&Value::Array(alerts).to_string(), &[])
    }

    /// Says again what fires.
    pub fn remind(&self, firing: &[Notice], now_ms: i64) -> Result<String, Failure> {
        let alerts = firing.iter().map(|n| self.alert(n, now_ms));
        let alerts = Value::Array(alerts.collect());
        self.post.json(&alerts.to_string(), &[])
    }

    fn alert(&self, notice: &Notice, now_ms: i64) -> Value {
        let ends_ms = match notice.status {
            Status::Firing => now_ms.saturating_add(self.ahead_ms),
            // Event time may be ahead of this machine's clock, and an end in the future is none.
            Status::Resolved => notice.at_ms.min(now_ms),
        };
        json!({
            "labels": labels(notice, notice.severity),
            "annotations": self.annotations(notice),
            "startsAt": moment(notice.since_ms.min(ends_ms)),
            "endsAt": moment(ends_ms),
            "generatorURL": notice.page,
        })
    }

    fn annotations(&self, notice: &Notice) -> Value {
        let number = |x: Option<f64>| x.map(|x| json!(x.to_string())).unwrap_or_default();
        let all = [
            ("summary", json!(self.texts.summary.fill(notice))),
            ("description", json!(self.texts.description.fill(notice))),
            ("runbook_url", json!(notice.runbook)),
            ("window", json!(notice.window)),
            ("what", json!(notice.what)),
            ("n", json!(notice.n.to_string())),
            ("ece", number(notice.ece)),
            ("ece_lower", number(notice.ece_lower)),
            ("ece_upper", number(notice.ece_upper)),
            ("detectable", number(notice.detectable)),
            ("fingerprint", json!(notice.fingerprint)),
            ("key", json!(notice.key)),
        ];
        let said = all.into_iter().filter(|(_, v)| !v.is_null());
        Value::Object(said.map(|(k, v)| (k.to_owned(), v)).collect())
    }
}

/// Labels; empty ones are left out, as an Alertmanager would.
fn labels(notice: &Notice, severity: Severity) -> Value {
    let all = [
        ("alertname", ALERT_NAME),
        ("model", &notice.model),
        ("version", &notice.version),
        ("segment", &notice.segment),
        ("view", &notice.view),
        ("severity", severity.as_str()),
    ];
    let said = all.into_iter().filter(|(_, value)| !value.is_empty());
    let said: Map<String, Value> = said.map(|(k, v)| (k.to_owned(), json!(v))).collect();
    Value::Object(said)
}
