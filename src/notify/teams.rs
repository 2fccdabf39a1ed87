//! Microsoft Teams: a webhook of its Workflows, which posts an Adaptive Card to a channel.

use super::failure::Failure;
use super::notification::{Notification, Status, moment};
use super::options::{SinkOptions, Texts};
use super::post::Post;
use crate::alert::Severity;
use serde_json::{Value, json};

/// A webhook of Workflows.
pub struct Teams {
    post: Post,
    texts: Texts,
}

impl Teams {
    /// The webhook of these options.
    pub fn new(options: &SinkOptions, texts: &Texts) -> Result<Teams, String> {
        Ok(Teams {
            post: Post::new(options, options.address.clone())?,
            texts: texts.clone(),
        })
    }

    /// Sends one notification.
    pub fn send(&self, notification: &Notification) -> Result<String, Failure> {
        let message = message(notification, &self.texts).to_string();
        self.post.json(&message, &[])
    }
}

/// The message of a notification.
fn message(notification: &Notification, texts: &Texts) -> Value {
    let color = match (notification.status, notification.severity) {
        (Status::Resolved, _) => "Good",
        (Status::Firing, Severity::Warn) => "Warning",
        (Status::Firing, Severity::Page) => "Attention",
    };
    let text = |text: String| json!({ "type": "TextBlock", "text": text, "wrap": true });
    let mut title = text(texts.summary.fill(notification));
    title["weight"] = json!("Bolder");
    title["color"] = json!(color);
    let fact = |title: &str, value: String| json!({ "title": title, "value": value });
    let open =
        |title: &str, url: &str| json!({ "type": "Action.OpenUrl", "title": title, "url": url });
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": [
                    title,
                    text(texts.description.fill(notification)),
                    {
                        "type": "FactSet",
                        "facts": [
                            fact("severity", notification.severity.to_string()),
                            fact("since", moment(notification.since_ms)),
                            fact("streams", notification.streams_in_words()),
                        ],
                    },
                ],
                "actions": [
                    open("Page of the stream", &notification.page),
                    open("Runbook", &notification.runbook),
                ],
            },
        }],
    })
}
