//! PagerDuty, by version 2 of its Events API.
//!
//! The first event of an alert triggers it and its end resolves it, by the same `dedup_key`.
//! PagerDuty does not notify again about an open key. So the key includes the severity, and an
//! alert whose severity changes triggers a new key before the old one is resolved. The end resolves
//! the keys of all severities that were notified, its own first: a change of severity may have
//! missed this service, so another key may be open. Other severities were not notified here, so
//! their keys may belong to another process. A sink that selects only the severity that the alert
//! had resolves the old key and triggers nothing.
//!
//! PagerDuty accepts the resolution of a key that it does not know. So a 404 comes from a proxy or
//! a wrong address, and the event is sent again.

use super::notification::{Notification, Status};
use super::options::{SinkOptions, Texts};
use super::post::Post;
use super::receiver::{Failure, Receiver, send_in_order};
use crate::alert::{Matcher, Severity};
use crate::report::moment::rfc3339_millis;
use serde_json::{Value, json};

/// Where events are sent. Accounts in Europe have another address.
pub const ADDRESS: &str = "https://events.pagerduty.com/v2/enqueue";

/// Longest summary, in characters.
const SUMMARY_MAX: usize = 1024;

/// A service of PagerDuty.
pub struct PagerDuty {
    post: Post,
    routing_key: String,
    texts: Texts,
    matchers: Vec<Matcher>,
}

impl PagerDuty {
    /// The service of these options; `secret` is its integration key.
    pub fn new(options: &SinkOptions, texts: &Texts) -> Result<PagerDuty, String> {
        Ok(PagerDuty {
            post: Post::new(options, options.address.clone())?,
            routing_key: options.secret.clone().unwrap_or_default(),
            texts: texts.clone(),
            matchers: options.matchers.clone(),
        })
    }

    /// The event of its own severity, and the resolutions of others.
    fn events(&self, notification: &Notification) -> (Option<Value>, Vec<Value>) {
        let trigger = || self.trigger(notification);
        let resolve = |severity| self.resolve(notification, severity);
        notification.incidents(&self.matchers, trigger, resolve)
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
        let ends = notification.status == Status::Resolved;
        let send = |event: Value| self.post.json(&event.to_string(), &[]);
        send_in_order(ends, self.events(notification), send, send)
    }
}

/// Identifies an alert at a severity.
pub fn dedup_key(notification: &Notification, severity: Severity) -> String {
    format!("{}-{severity}", notification.fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::tests::{answering, firing, options};

    #[test]
    fn what_is_not_found_is_sent_again() {
        let mut options = options(&["s"]);
        let ended = Notification {
            earlier: vec![Severity::Page],
            ..firing(1, 10).resolved(20, "well")
        };
        for answers in [&[404][..], &[202, 404]] {
            options.sinks[0].address = answering(answers);
            let service = PagerDuty::new(&options.sinks[0], &options.texts);
            let sent = service.expect("a client").send(&ended, 0);
            assert!(matches!(sent, Err(Failure::NotFound(_))), "{sent:?}");
        }
    }

    #[test]
    fn an_end_resolves_what_was_triggered_and_nothing_else() {
        let mut options = options(&["s"]);
        let service = PagerDuty::new(&options.sinks[0], &options.texts).expect("a client");
        options.sinks[0].matchers = vec!["severity=page".parse().expect("a matcher")];
        let pages = PagerDuty::new(&options.sinks[0], &options.texts).expect("a client");
        let sent_by = |service: &PagerDuty, n: &Notification| -> Vec<String> {
            let (own, others) = service.events(n);
            let event = |e: &Value| format!("{} {}", e["event_action"], e["dedup_key"]);
            let all = own.iter().chain(&others);
            all.map(|e| event(e).replace('"', "")).collect()
        };
        let sent = |n: &Notification| sent_by(&service, n);
        let warned = firing(1, 10);
        let key = |severity| dedup_key(&warned, severity);
        let (warn, page) = (key(Severity::Warn), key(Severity::Page));
        assert_eq!(sent(&warned), [format!("trigger {warn}")]);
        let paged = Notification {
            severity: Severity::Page,
            was: Some(Severity::Warn),
            earlier: vec![Severity::Warn],
            ..warned.clone()
        };
        let changed = [format!("trigger {page}"), format!("resolve {warn}")];
        assert_eq!(sent(&paged), changed);
        // The service may have refused the higher severity.
        let both = [format!("resolve {page}"), format!("resolve {warn}")];
        assert_eq!(sent(&paged.resolved(20, "well")), both);
        // The page of this alert may belong to another process.
        let ended = warned.resolved(20, "well");
        assert_eq!(sent(&ended), [format!("resolve {warn}")]);
        // If only pages are selected, a page that becomes a warning triggers nothing.
        let fallen = Notification {
            was: Some(Severity::Page),
            earlier: vec![Severity::Page],
            ..warned.clone()
        };
        let changed = [format!("trigger {warn}"), format!("resolve {page}")];
        assert_eq!(sent(&fallen), changed);
        assert_eq!(sent_by(&pages, &paged)[0], format!("trigger {page}"));
        assert_eq!(sent_by(&pages, &fallen), [format!("resolve {page}")]);
        assert_eq!(sent_by(&pages, &fallen.resolved(20, "well")), both);
        // The matchers may have selected another stream of the alert.
        assert_eq!(sent_by(&pages, &warned), [format!("trigger {warn}")]);
    }
}
