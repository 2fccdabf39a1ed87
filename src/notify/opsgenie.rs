//! Opsgenie, by version 2 of its Alert API.
//!
//! An alert is created with an alias and closed by it. Opsgenie counts a second alert of an open
//! alias and keeps its priority. So the alias has the severity in it, and an alert whose severity
//! changes is created under a new alias before the old one is closed. The end closes the aliases of
//! all severities that were notified, its own first: a change of severity may have missed this
//! integration, so another one may be open. Nobody was notified of the rest here, so it may belong
//! to another process.

use super::notification::{Notification, Status};
use super::options::{SinkOptions, Texts};
use super::pagerduty::dedup_key;
use super::post::Post;
use super::receiver::{Failure, Receiver, send_in_order};
use crate::alert::Severity;
use serde_json::{Value, json};

/// Where alerts are sent. An account in Europe has another address.
pub const ADDRESS: &str = "https://api.opsgenie.com";

/// Longest message, in characters.
const MESSAGE_MAX: usize = 130;

/// A path below that of alerts, and a body.
type Request = (String, Value);

/// An integration of Opsgenie.
pub struct Opsgenie {
    post: Post,
    authorization: String,
    texts: Texts,
}

impl Opsgenie {
    /// The integration of these options; `secret` is its API key.
    pub fn new(options: &SinkOptions, texts: &Texts) -> Result<Opsgenie, String> {
        let url = format!("{}/v2/alerts", options.address.trim_end_matches('/'));
        let key = options.secret.as_deref().unwrap_or_default();
        Ok(Opsgenie {
            post: Post::new(options, url)?,
            authorization: format!("GenieKey {key}"),
            texts: texts.clone(),
        })
    }

    fn alert(&self, notification: &Notification) -> Value {
        let message = self.texts.summary.fill(notification);
        json!({
            "message": message.chars().take(MESSAGE_MAX).collect::<String>(),
            "alias": dedup_key(notification, notification.severity),
            "description": self.texts.description.fill(notification),
            "priority": match notification.severity {
                Severity::Warn => "P3",
                Severity::Page => "P1",
            },
            "entity": notification.stream,
            "source": "trueline",
            "tags": ["calibration", notification.severity.as_str()],
            "details": {
                "model": notification.model,
                "streams": notification.streams_in_words(),
                "evidence": notification.evidence,
                "page": notification.page,
                "runbook": notification.runbook,
                "fingerprint": notification.fingerprint,
                "record": notification.record,
            },
        })
    }

    /// The path and body for its own severity, and those that close others.
    fn requests(&self, notification: &Notification) -> (Request, Vec<Request>) {
        let close = |severity: Severity| {
            let alias = dedup_key(notification, severity);
            let path = format!("/{alias}/close?identifierType=alias");
            let body = json!({ "source": "trueline", "note": notification.what });
            (path, body)
        };
        let own = match notification.status {
            Status::Firing => (String::new(), self.alert(notification)),
            Status::Resolved => close(notification.severity),
        };
        let others = notification.others_to_close().iter();
        (own, others.map(|severity| close(*severity)).collect())
    }
}

impl Receiver for Opsgenie {
    fn send(&mut self, notification: &Notification, _: i64) -> Result<String, Failure> {
        let headers = [("authorization", self.authorization.as_str())];
        let ends = notification.status == Status::Resolved;
        let send = |(path, body): Request| self.post.json_at(&path, &body.to_string(), &headers);
        send_in_order(ends, self.requests(notification), send)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::tests::{firing, options};

    #[test]
    fn an_end_closes_what_was_created_and_nothing_else() {
        let options = options(&["s"]);
        let integration = Opsgenie::new(&options.sinks[0], &options.texts).expect("a client");
        let paths = |n: &Notification| -> Vec<String> {
            let (own, others) = integration.requests(n);
            let all = std::iter::once(own).chain(others);
            all.map(|(path, _)| path).collect()
        };
        let warned = firing(1, 10);
        let close = |severity| {
            let alias = dedup_key(&warned, severity);
            format!("/{alias}/close?identifierType=alias")
        };
        let (warn, page) = (close(Severity::Warn), close(Severity::Page));
        assert_eq!(paths(&warned), [""]);
        let paged = Notification {
            severity: Severity::Page,
            was: Some(Severity::Warn),
            earlier: vec![Severity::Warn],
            ..warned.clone()
        };
        assert_eq!(paths(&paged), ["", &warn]);
        // The integration may have refused that it rose.
        assert_eq!(paths(&paged.resolved(20, "well")), [&*page, &*warn]);
        // The page of this alert may be another process's.
        assert_eq!(paths(&warned.resolved(20, "well")), [warn]);
    }
}
