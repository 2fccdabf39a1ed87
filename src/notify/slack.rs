//! An incoming webhook of Slack, or a compatible one (Mattermost, Rocket.Chat, Discord's `/slack`).
//!
//! Each change is one message with the colour of its severity, the numbers as fields, and links to
//! the page and the runbook.

use super::notification::{Notification, Status};
use super::options::Texts;
use crate::alert::Severity;
use crate::report::moment::rfc3339_millis;
use serde_json::{Value, json};

/// The message of a notification.
pub fn message(notification: &Notification, texts: &Texts) -> Value {
    let field = |title: &str, value: String| {
        let value = escape(&value);
        json!({ "title": title, "value": value, "short": true })
    };
    let color = match (notification.status, notification.severity) {
        (Status::Resolved, _) => "#2f855a",
        (Status::Firing, Severity::Warn) => "#d69e2e",
        (Status::Firing, Severity::Page) => "#c53030",
    };
    let (error, value) = match &notification.error {
        Some(e) => {
            let value = format!("{} {}", e.digits(e.estimate), e.brief());
            (e.quantity.name(), value)
        }
        None => ("error", notification.no_numbers().to_owned()),
    };
    json!({
        "text": escape(&texts.summary.fill(notification)),
        "attachments": [{
            "color": color,
            "title": escape(&notification.streams_in_words()),
            "title_link": notification.page,
            "text": format!("{}\n<{}|runbook>", escape(&texts.description.fill(notification)), notification.runbook),
            "fields": [
                field("severity", notification.severity.to_string()),
                field("since", rfc3339_millis(notification.since_ms)),
                field(error, value),
                field("n", format!("{} over {}", notification.n, notification.window)),
            ],
            "footer": "trueline",
            "ts": notification.at_ms.div_euclid(1000),
        }],
    })
}

/// Escapes the three characters with a special meaning in Slack.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{DecidedError, Quantity};
    use crate::notify::notification::Links;
    use crate::notify::template::Template;

    #[test]
    fn a_message_has_colour_numbers_and_links_and_names_cannot_break_it() {
        let links = Links {
            page: "http://t/s".to_owned(),
            runbook: "http://r/x.md".to_owned(),
        };
        let error = DecidedError {
            quantity: Quantity::ObservedExpected,
            estimate: 2.0,
            lower: 1.5,
            upper: 2.5,
            contains_zero: false,
            confidence: 0.9,
            most: Some(1.25),
        };
        let notification = Notification {
            model: "<!channel>&".to_owned(),
            severity: Severity::Page,
            ece: Some(0.02),
            error: Some(error),
            ..Notification::trial(0, links)
        };
        let text = |t: &str| Template::parse(t).expect("sound");
        let texts = Texts {
            summary: text("{model} {severity}"),
            description: text("{ece}"),
        };
        let message = message(&notification, &texts);
        assert_eq!(message["text"], "&lt;!channel&gt;&amp; page");
        let attachment = &message["attachments"][0];
        assert_eq!(attachment["color"], "#c53030");
        assert_eq!(attachment["text"], "0.0200\n<http://r/x.md|runbook>");
        let field = &attachment["fields"][2];
        assert_eq!(field["title"], "observed/expected");
        assert_eq!(field["value"], "2.00 [1.50, 2.50], tolerated 0.80 to 1.25");
    }
}
