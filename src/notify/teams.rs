//! Microsoft Teams: a webhook of its Workflows, which posts an Adaptive Card to a channel.

use super::notification::{Notification, Status};
use super::options::Texts;
use crate::alert::Severity;
use crate::report::moment::rfc3339_millis;
use serde_json::{Value, json};

/// The message of a notification.
pub fn message(notification: &Notification, texts: &Texts) -> Value {
    let color = match (notification.status, notification.severity) {
        (Status::Resolved, _) => "Good",
        (Status::Firing, Severity::Warn) => "Warning",
        (Status::Firing, Severity::Page) => "Attention",
    };
    let text = |text: String| json!({ "type": "TextBlock", "text": text, "wrap": true });
    let mut title = text(texts.summary.fill_with(notification, escape));
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
                    text(texts.description.fill_with(notification, escape)),
                    {
                        "type": "FactSet",
                        "facts": [
                            fact("severity", notification.severity.to_string()),
                            fact("since", rfc3339_millis(notification.since_ms)),
                            fact("streams", escape(&notification.streams_in_words())),
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

/// Escapes characters with a meaning in the Markdown of a card, but not in addresses.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if matches!(c, '\\' | '[' | ']' | '*' | '_' | '`' | '~' | '#' | '>') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::notification::Links;
    use crate::notify::template::Template;

    #[test]
    fn names_from_records_are_no_markup() {
        let links = Links {
            page: "http://t/x".to_owned(),
            runbook: "http://t/r".to_owned(),
        };
        let mut notification = Notification::trial(1_700_000_000_000, links);
        notification.version = "[sign in](https://evil.example) a_b_c".to_owned();
        let texts = Texts {
            summary: Template::parse("**{version}**").expect("a template"),
            description: Template::parse("{model}").expect("a template"),
        };
        let message = message(&notification, &texts);
        let body = &message["attachments"][0]["content"]["body"];
        let expected = r"**\[sign in\](https://evil.example) a\_b\_c**";
        assert_eq!(body[0]["text"], expected);
    }
}
