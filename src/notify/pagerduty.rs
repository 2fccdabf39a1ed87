//! PagerDuty, by version 2 of its Events API.
//!
//! The first event of an alert triggers it and its end resolves it, by the same `dedup_key`.
//! PagerDuty does not notify again of a key that is open. So the key has the severity in it, and an
//! alert whose severity changes triggers a new key before the old one is resolved. The end resolves
//! the keys of all severities: a change of severity may have missed this service, so more than one
//! may be open, and PagerDuty ignores a resolution of one that is not.

use super::notification::{Notification, Status};
use super::options::{SinkOptions, Texts};
use super::post::Post;
use super::receiver::{Failure, Receiver};
use crate::alert::Severity;
use crate::report::moment::rfc3339_millis;
use serde_json::{Value, json};
use std::iter::once;

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

    /// What is sent, in order.
    fn events(&self, notification: &Notification) -> Vec<Value> {
        let resolve = |severity: &Severity| self.resolve(notification, *severity);
        if notification.status == Status::Resolved {
            return Severity::ALL.iter().map(resolve).collect();
        }
        let before = notification.was.iter().map(resolve);
        once(self.trigger(notification)).chain(before).collect()
    }

    fn trigger(&self, notification: &Notification) -> Value {
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
        let mut sent = String::new();
        for event in self.events(notification) {
            sent = self.post.json(&event.to_string(), &[])?;
        }
        Ok(sent)
    }
}

/// Identifies an alert at a severity.
pub fn dedup_key(notification: &Notification, severity: Severity) -> String {
    format!("{}-{severity}", notification.fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::tests::{firing, options};

    #[test]
    fn an_end_resolves_what_was_triggered_whichever_severity_it_has() {
        let options = options(&["s"]);
        let service = PagerDuty::new(&options.sinks[0], &options.texts).expect("a client");
        let sent = |n: &Notification| -> Vec<String> {
            let events = service.events(n).into_iter();
            let event = |e: Value| format!("{} {}", e["event_action"], e["dedup_key"]);
            events.map(|e| event(e).replace('"', "")).collect()
        };
        let warned = firing(1, 10);
        let key = |severity| dedup_key(&warned, severity);
        let (warn, page) = (key(Severity::Warn), key(Severity::Page));
        assert_eq!(sent(&warned), [format!("trigger {warn}")]);
        let paged = Notification {
            severity: Severity::Page,
            was: Some(Severity::Warn),
            ..warned.clone()
        };
        let changed = [format!("trigger {page}"), format!("resolve {warn}")];
        assert_eq!(sent(&paged), changed);
        // That it rose may have been silenced, or the service may have refused it.
        let both = [format!("resolve {warn}"), format!("resolve {page}")];
        for last in [warned, paged] {
            assert_eq!(sent(&last.resolved(20, "well")), both);
        }
    }
}
