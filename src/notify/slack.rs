//! An incoming webhook of Slack, or of what speaks like it (Mattermost, Rocket.Chat, Discord's `/slack`).
//!
//! One message a change, with the colour of its severity, the numbers as fields, and links to the page and the runbook.

use super::notice::{Notice, Status, moment};
use super::options::{SinkOptions, Texts};
use super::post::Post;
use super::receiver::Failure;
use crate::alert::Severity;
use serde_json::{Value, json};

/// A Slack hook.
pub struct Slack {
    post: Post,
    texts: Texts,
}

impl Slack {
    /// One of these options.
    pub fn new(options: &SinkOptions, texts: &Texts) -> Result<Slack, String> {
        Ok(Slack {
            post: Post::new(options, options.address.clone())?,
            texts: texts.clone(),
        })
    }

    /// Tells one notice.
    pub fn tell(&self, notice: &Notice) -> Result<String, Failure> {
        let message = message(notice, &self.texts).to_string();
        self.post.json(&message, &[])
    }
}

/// The message.
fn message(notice: &Notice, texts: &Texts) -> Value {
    let number = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.4}"));
    let field = |title: &str, value: String| {
        let value = escape(&value);
        json!({ "title": title, "value": value, "short": true })
    };
    let color = match (notice.status, notice.severity) {
        (Status::Resolved, _) => "#2f855a",
        (Status::Firing, Severity::Warn) => "#d69e2e",
        (Status::Firing, Severity::Page) => "#c53030",
    };
    let (lower, upper) = (number(notice.ece_lower), number(notice.ece_upper));
    json!({
        "text": escape(&texts.summary.fill(notice)),
        "attachments": [{
            "color": color,
            "title": escape(&notice.stream()),
            "title_link": notice.page,
            "text": format!("{}\n<{}|runbook>", escape(&texts.description.fill(notice)), notice.runbook),
            "fields": [
                field("severity", notice.severity.to_string()),
                field("since", moment(notice.since_ms)),
                field("l2-ECE", format!("{} [{lower}, {upper}]", number(notice.ece))),
                field("n", format!("{} over {}", notice.n, notice.window)),
            ],
            "footer": "trueline",
            "ts": notice.at_ms.div_euclid(1000),
        }],
    })
}

/// The three characters that Slack reads as its own.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::notice::Links;
    use crate::notify::template::Template;

    #[test]
    fn a_message_has_colour_numbers_and_links_and_names_cannot_break_it() {
        let links = Links {
            page: "http://t/s".to_owned(),
            runbook: "http://r/x.md".to_owned(),
        };
        let notice = Notice {
            model: "<!channel>&".to_owned(),
            severity: Severity::Page,
            ece: Some(0.02),
            ..Notice::trial(0, links)
        };
        let text = |t: &str| Template::parse(t).expect("sound");
        let texts = Texts {
            summary: text("{model} {severity}"),
            description: text("{ece}"),
        };
        let message = message(&notice, &texts);
        assert_eq!(message["text"], "&lt;!channel&gt;&amp; page");
        let attachment = &message["attachments"][0];
        assert_eq!(attachment["color"], "#c53030");
        assert_eq!(attachment["text"], "0.0200\n<http://r/x.md|runbook>");
        assert_eq!(attachment["fields"][2]["value"], "0.0200 [-, -]");
    }
}
