//! Opsgenie, by version 2 of its Alert API.
//!
//! An alert is created with an alias and closed by it. Opsgenie only counts a second alert under an
//! open alias and does not change its priority. So the alias includes the severity, and an alert
//! whose severity changes is created under a new alias before the old one is closed. The end closes
//! the aliases of all severities that were notified, its own first: a change of severity may have
//! missed this integration, so another alias may be open. Other severities were not notified here,
//! so their aliases may belong to another process. A sink that selects only the severity that the
//! alert had closes the old alias and creates nothing.
//!
//! If the alias of another severity is not found (404), it counts as closed. The alias of the
//! current severity does not, because it was created: a gateway or a wrong address also answers
//! 404.

use super::notification::{Notification, Status};
use super::options::{SinkOptions, Texts};
use super::pagerduty::dedup_key;
use super::post::Post;
use super::receiver::{Failure, Receiver, send_in_order};
use crate::alert::{Matcher, Severity};
use serde_json::{Value, json};

/// Where alerts are sent. Accounts in Europe have another address.
pub const ADDRESS: &str = "https://api.opsgenie.com";

/// Longest message, in characters.
const MESSAGE_MAX: usize = 130;

/// A path below the path of alerts, and a body.
type Request = (String, Value);

/// An integration of Opsgenie.
pub struct Opsgenie {
    post: Post,
    authorization: String,
    texts: Texts,
    matchers: Vec<Matcher>,
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
            matchers: options.matchers.clone(),
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

    /// The request for its own severity, and the requests that close others.
    fn requests(&self, notification: &Notification) -> (Option<Request>, Vec<Request>) {
        let open = || (String::new(), self.alert(notification));
        let close = |severity: Severity| {
            let alias = dedup_key(notification, severity);
            let path = format!("/{alias}/close?identifierType=alias");
            let body = json!({ "source": "trueline", "note": notification.what });
            (path, body)
        };
        notification.incidents(&self.matchers, open, close)
    }
}

impl Receiver for Opsgenie {
    fn send(&mut self, notification: &Notification, _: i64) -> Result<String, Failure> {
        let headers = [("authorization", self.authorization.as_str())];
        let ends = notification.status == Status::Resolved;
        let send = |(path, body): Request| self.post.json_at(&path, &body.to_string(), &headers);
        let close = |request: Request| match send(request) {
            Err(Failure::NotFound(why)) => Ok(why),
            closed => closed,
        };
        send_in_order(ends, self.requests(notification), send, close)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::tests::{answering, firing, options};

    #[test]
    fn an_earlier_alias_that_is_not_found_is_closed_and_all_else_is_sent_again() {
        let mut options = options(&["s"]);
        let ended = Notification {
            earlier: vec![Severity::Page],
            ..firing(1, 10).resolved(20, "well")
        };
        for (answers, closed) in [(&[202, 404][..], true), (&[404], false)] {
            options.sinks[0].address = answering(answers);
            let integration = Opsgenie::new(&options.sinks[0], &options.texts);
            let sent = integration.expect("a client").send(&ended, 0);
            match closed {
                true => assert!(sent.is_ok(), "{sent:?}"),
                false => assert!(matches!(sent, Err(Failure::NotFound(_))), "{sent:?}"),
            }
        }
    }

    #[test]
    fn an_end_closes_the_aliases_that_were_created() {
        let options = options(&["s"]);
        let integration = Opsgenie::new(&options.sinks[0], &options.texts).expect("a client");
        let paths = |n: &Notification| -> Vec<String> {
            let (own, others) = integration.requests(n);
            let all = own.into_iter().chain(others);
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
        // The integration may have refused the higher severity.
        assert_eq!(paths(&paged.resolved(20, "well")), [&*page, &*warn]);
    }
}
