//! Texts with placeholders: `{model} is {verdict}`.
//!
//! A placeholder is a name in braces; a literal brace is doubled. An unknown name is an error when
//! the configuration is read. There are no conditions and no loops: the placeholders `what` and
//! `status` tell a firing alert from a resolved one. An undefined value reads `-`.

use super::notification::Notification;
use crate::judge::sentence::p_value;
use crate::report::moment::rfc3339_millis;

/// All placeholders.
pub const PLACEHOLDERS: [&str; 31] = [
    "alert",
    "stream",
    "streams",
    "streams_firing",
    "evidence",
    "deployed",
    "record",
    "model",
    "version",
    "segment",
    "view",
    "window",
    "status",
    "severity",
    "verdict",
    "what",
    "direction",
    "since",
    "at",
    "onset",
    "n",
    "ece",
    "ece_lower",
    "ece_upper",
    "confidence",
    "detectable",
    "tolerance",
    "p_value",
    "mean_score",
    "event_rate",
    "page",
];

/// A checked text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// One of [`PLACEHOLDERS`].
    Place(&'static str),
}

/// Why a text is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateError {
    /// The name is not a placeholder.
    Unknown(String),
    /// A brace has no counterpart.
    Unbalanced,
}

impl Template {
    /// Parses a text.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let (brace, tail) = (&rest[at..=at], &rest[at + 1..]);
            if let Some(tail) = tail.strip_prefix(brace) {
                plain.push_str(brace);
                rest = tail;
                continue;
            }
            if brace == "}" {
                return Err(TemplateError::Unbalanced);
            }
            let (name, tail) = tail.split_once('}').ok_or(TemplateError::Unbalanced)?;
            let known = PLACEHOLDERS.iter().find(|p| **p == name.trim());
            let known = known.ok_or_else(|| TemplateError::Unknown(name.trim().to_owned()))?;
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::Place(known));
            rest = tail;
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Ok(Template(pieces))
    }

    /// Fills in the values of a notification.
    pub fn fill(&self, notification: &Notification) -> String {
        self.fill_with(notification, str::to_owned)
    }

    /// The same, with values as `escape` makes them, but the address: names come from records.
    pub fn fill_with(
        &self,
        notification: &Notification,
        escape: impl Fn(&str) -> String,
    ) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Place(name) if *name == "page" => value(name, notification),
            Piece::Place(name) => escape(&value(name, notification)),
        };
        self.0.iter().map(piece).collect()
    }
}

fn value(name: &str, notification: &Notification) -> String {
    let number = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.4}"));
    let or_dash = |text: &str| match text {
        "" => "-".to_owned(),
        text => text.to_owned(),
    };
    match name {
        "alert" => notification.alert.clone(),
        "stream" => notification.stream.clone(),
        "streams" => notification.streams_in_words(),
        "streams_firing" => notification.streams_firing.to_string(),
        "evidence" => notification.evidence.clone(),
        "deployed" => deployed(notification),
        "record" => or_dash(&notification.record),
        "model" => or_dash(&notification.model),
        "version" => or_dash(&notification.version),
        "segment" => or_dash(&notification.segment),
        "view" => or_dash(&notification.view),
        "window" => notification.window.clone(),
        "status" => notification.status.as_str().to_owned(),
        "severity" => notification.severity.as_str().to_owned(),
        "verdict" => notification.verdict.clone(),
        "what" => or_dash(&notification.what),
        "direction" => or_dash(&notification.direction),
        "since" => rfc3339_millis(notification.since_ms),
        "at" => rfc3339_millis(notification.at_ms),
        "onset" => notification.onset_ms.map_or("-".to_owned(), rfc3339_millis),
        "n" => notification.n.to_string(),
        "ece" => number(notification.ece),
        "ece_lower" => number(notification.ece_lower),
        "ece_upper" => number(notification.ece_upper),
        "confidence" => notification
            .confidence
            .map_or("-".to_owned(), |c| format!("{:.0}", 100.0 * c)),
        "detectable" => number(notification.detectable),
        "tolerance" => number(notification.tolerance),
        "p_value" => notification.p_value.map_or("-".to_owned(), p_value),
        "mean_score" => number(notification.mean_score),
        "event_rate" => number(notification.event_rate),
        _ => notification.page.clone(),
    }
}

/// When the model was deployed and by whom, after a blank; empty if nothing was marked.
fn deployed(notification: &Notification) -> String {
    notification.deployment.as_ref().map_or(String::new(), |d| {
        let note = if d.note.is_empty() {
            String::new()
        } else {
            format!(": {}", d.note)
        };
        format!(
            " Deployed at {} by {}{note}.",
            rfc3339_millis(d.at_ms),
            d.by
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::notification::Links;

    fn notification() -> Notification {
        let links = Links {
            page: "http://t/streams/x".to_owned(),
            runbook: "r".to_owned(),
        };
        Notification {
            ece: Some(0.0123),
            n: 500,
            ..Notification::trial(1_700_000_000_000, links)
        }
    }

    #[test]
    fn placeholders_are_filled_and_an_undefined_value_is_a_dash() {
        let text = "{model} at {at}: {ece} of {n}, {p_value} {{sic}} {page}";
        let filled = Template::parse(text).expect("sound").fill(&notification());
        let wanted =
            "trueline-test at 2023-11-14T22:13:20.000Z: 0.0123 of 500, - {sic} http://t/streams/x";
        assert_eq!(filled, wanted);
    }

    #[test]
    fn every_placeholder_has_a_value() {
        for name in PLACEHOLDERS {
            let filled = Template::parse(&format!("{{{name}}}")).expect(name);
            let empty = filled.fill(&notification()).is_empty();
            // A blank comes with the deployment, if one was marked.
            assert_eq!(empty, name == "deployed", "{name}");
        }
    }

    #[test]
    fn an_unknown_name_or_a_lone_brace_is_refused() {
        let unknown = TemplateError::Unknown("modle".to_owned());
        assert_eq!(Template::parse("{modle}"), Err(unknown));
        for text in ["{", "}", "{model", "model}"] {
            assert_eq!(
                Template::parse(text),
                Err(TemplateError::Unbalanced),
                "{text}"
            );
        }
    }
}
