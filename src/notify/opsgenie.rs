//! Opsgenie, by version 2 of its Alert API.
//!
//! An alert is created with an alias and closed by it. Opsgenie counts a second alert of an open
//! alias and keeps its priority. So the alias has the severity in it, and an alert whose severity
//! changes is created under a new alias before the old one is closed.

use super::notification::{Notification, Status};
use super::options::{SinkOptions, Texts};
use super::pagerduty::dedup_key;
use super::post::Post;
use super::receiver::{Failure, Receiver};
use crate::alert::Severity;
use serde_json::{Value, json};

/// Where alerts are sent. An account in Europe has another address.
pub const ADDRESS: &str = "https://api.opsgenie.com";

/// Longest message, in characters.
const MESSAGE_MAX: usize = 130;

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

    fn close(&self, notification: &Notification, severity: Severity) -> Result<String, Failure> {
        let alias = dedup_key(notification, severity);
        let path = format!("/{alias}/close?identifierType=alias");
        let body = json!({ "source": "trueline", "note": notification.what }).to_string();
        let headers = [("authorization", self.authorization.as_str())];
        self.post.json_at(&path, &body, &headers)
    }
}

impl Receiver for Opsgenie {
    fn send(&mut self, notification: &Notification, _: i64) -> Result<String, Failure> {
        if notification.status == Status::Resolved {
            return self.close(notification, notification.severity);
        }
        let alert = self.alert(notification).to_string();
        let sent = self
            .post
            .json(&alert, &[("authorization", &self.authorization)])?;
        match notification.was {
            Some(was) => self.close(notification, was),
            None => Ok(sent),
        }
    }
}
