//! PagerDuty, by version 2 of its Events API.
//!
//! The first event of an alert triggers it and its end resolves it, by the same `dedup_key`.
//! PagerDuty does not notify again of a key that is open. So the key has the severity in it, and an
//! alert whose severity changes triggers a new key before the old one is resolved.

use super::notification::{Notification, Status};
use super::options::{SinkOptions, Texts};
use super::post::Post;
use super::receiver::{Failure, Receiver};
use crate::alert::Severity;
use crate::report::moment::rfc3339_millis;
use serde_json::{Value, json};

/// Where events are sent. An account in Europe has another address.
pub const ADDRESS: &str = "https://events.pagerduty.com/v2/enqueue";

/// Longest summary, in characters.
const SUMMARY_MAX: usize = 1024;

/// A service of PagerDuty.
pub struct PagerDuty {
    post: Post,
    routing_key: String,
    texts: Texts,
}

impl PagerDuty {
    /// The service of these options; `secret` is its integration key.
    pub fn new(options: &SinkOptions, texts: &Texts) -> Result<PagerDuty, String> {
        Ok(PagerDuty {
            post: Post::new(options, options.address.clone())?,
            routing_key: options.secret.clone().unwrap_or_default(),
            texts: texts.clone(),
        })
    }

    fn event(&self, notification: &Notification) -> Value {
        if notification.status == Status::Resolved {
            return self.resolve(notification, notification.severity);
        }
        let summary = self.texts.summary.fill(notification);
        json!({
            "routing_key": self.routing_key,
            "event_action": "trigger",
            "dedup_key": dedup_key(notification, notification.severity),
            "payload": {
                "summary": summary.chars().take(SUMMARY_MAX).collect::<String>(),
                "source": notification.stream,
                "severity": match notification.severity {
                    Severity::Warn => "warning",
                    Severity::Page => "critical",
                },
                "timestamp": rfc3339_millis(notification.since_ms),
                "component": notification.alert,
                "class": "calibration",
                "custom_details": {
                    "description": self.texts.description.fill(notification),
                    "evidence": notification.evidence,
                    "streams": notification.streams,
                    "streams_firing": notification.streams_firing,
                    "fingerprint": notification.fingerprint,
                    "record": notification.record,
                },
            },
            "client": "trueline",
            "client_url": notification.page,
            "links": [{ "href": notification.runbook, "text": "runbook" }],
        })
    }

    fn resolve(&self, notification: &Notification, severity: Severity) -> Value {
        json!({
            "routing_key": self.routing_key,
            "event_action": "resolve",
            "dedup_key": dedup_key(notification, severity),
        })
    }
}

impl Receiver for PagerDuty {
    fn send(&mut self, notification: &Notification, _: i64) -> Result<String, Failure> {
        let sent = self.post.json(&self.event(notification).to_string(), &[])?;
        if let (Status::Firing, Some(was)) = (notification.status, notification.was) {
            let end = self.resolve(notification, was);
            return self.post.json(&end.to_string(), &[]);
        }
        Ok(sent)
    }
}

/// Identifies an alert at a severity.
pub fn dedup_key(notification: &Notification, severity: Severity) -> String {
    format!("{}-{severity}", notification.fingerprint)
}
