//! Prometheus Alertmanager, by `POST /api/v2/alerts`.
//!
//! An Alertmanager drops an alert that is not refreshed: each alert carries `endsAt` and is over
//! then. So firing alerts are sent again at an interval, with an `endsAt` that lies [`AHEAD`]
//! intervals in the future. That outlives a restart of this process and some failed posts. A
//! resolved alert is sent once, with the time of its resolution.
//!
//! Labels identify and annotations describe: a number among the labels would create a new alert
//! each time. Severity is a label because routes use it. An alert whose severity changes is
//! therefore two alerts for the Alertmanager; one post ends the first and starts the second.
//!
//! List each Alertmanager of a cluster as a separate sink, as for Prometheus.

use super::notification::{ALERT_NAME, Notification, Status};
use super::options::{SinkOptions, Texts};
use super::post::Post;
use super::receiver::{Failure, Receiver};
use crate::alert::Severity;
use crate::report::moment::rfc3339_millis;
use serde_json::{Map, Value, json};

/// Intervals until `endsAt`. Prometheus uses four as well (`rules/alerting.go`).
const AHEAD: i64 = 4;

/// An Alertmanager.
pub struct Alertmanager {
    post: Post,
    texts: Texts,
    ahead_ms: i64,
}

impl Alertmanager {
    /// The Alertmanager of these options.
    pub fn new(options: &SinkOptions, texts: &Texts) -> Result<Alertmanager, String> {
        let url = format!("{}/api/v2/alerts", options.address.trim_end_matches('/'));
        let every = i64::try_from(options.resend.as_millis()).unwrap_or(i64::MAX);
        Ok(Alertmanager {
            post: Post::new(options, url)?,
            texts: texts.clone(),
            ahead_ms: every.saturating_mul(AHEAD),
        })
    }

    fn alert(&self, notification: &Notification, now_ms: i64) -> Value {
        let ends_ms = match notification.status {
            Status::Firing => now_ms.saturating_add(self.ahead_ms),
            // Event time may be ahead of this machine's clock, and an end in the future would not
            // resolve.
            Status::Resolved => notification.at_ms.min(now_ms),
        };
        json!({
            "labels": labels(notification, notification.severity),
            "annotations": self.annotations(notification),
            "startsAt": rfc3339_millis(notification.since_ms.min(ends_ms)),
            "endsAt": rfc3339_millis(ends_ms),
            "generatorURL": notification.page,
        })
    }

    fn annotations(&self, notification: &Notification) -> Value {
        let number = |x: Option<f64>| x.map(|x| json!(x.to_string())).unwrap_or_default();
        let all = [
            ("summary", json!(self.texts.summary.fill(notification))),
            (
                "description",
                json!(self.texts.description.fill(notification)),
            ),
            ("runbook_url", json!(notification.runbook)),
            ("window", json!(notification.window)),
            ("what", json!(notification.what)),
            ("n", json!(notification.n.to_string())),
            ("error", json!(notification.error.map(|e| e.to_string()))),
            ("ece", number(notification.ece)),
            ("ece_lower", number(notification.ece_lower)),
            ("ece_upper", number(notification.ece_upper)),
            ("detectable", number(notification.detectable)),
            ("fingerprint", json!(notification.fingerprint)),
            ("key", json!(notification.key)),
            ("streams", json!(notification.streams_in_words())),
            ("evidence", json!(notification.evidence)),
        ];
        let present = all.into_iter().filter(|(_, v)| !v.is_null());
        Value::Object(present.map(|(k, v)| (k.to_owned(), v)).collect())
    }
}

impl Receiver for Alertmanager {
    fn send(&mut self, notification: &Notification, now_ms: i64) -> Result<String, Failure> {
        let mut alerts = Vec::new();
        if let Some(was) = notification.was {
            let before = Notification {
                status: Status::Resolved,
                severity: was,
                ..notification.clone()
            };
            alerts.push(self.alert(&before, now_ms));
        }
        alerts.push(self.alert(notification, now_ms));
        self.post.json(&Value::Array(alerts).to_string(), &[])
    }

    fn needs_resend(&self) -> bool {
        true
    }

    fn resend(&mut self, firing: &[Notification], now_ms: i64) -> Result<String, Failure> {
        let alerts = firing.iter().map(|n| self.alert(n, now_ms));
        let alerts = Value::Array(alerts.collect());
        self.post.json(&alerts.to_string(), &[])
    }
}

/// Labels without the empty ones, which an Alertmanager drops too.
fn labels(notification: &Notification, severity: Severity) -> Value {
    let all = [
        ("alertname", ALERT_NAME),
        ("model", &notification.model),
        ("version", &notification.version),
        ("segment", &notification.segment),
        ("view", &notification.view),
        ("severity", severity.as_str()),
    ];
    let present = all.into_iter().filter(|(_, value)| !value.is_empty());
    let labels: Map<String, Value> = present.map(|(k, v)| (k.to_owned(), json!(v))).collect();
    Value::Object(labels)
}
