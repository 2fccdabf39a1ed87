//! Texts with placeholders: `{model} is {verdict}`.
//!
//! A placeholder is a name in braces; a literal brace is doubled. An unknown name is an error when
//! the configuration is read. There are no conditions and no loops: the placeholders `what` and
//! `status` distinguish a firing alert from a resolved one. An undefined value reads `-`.

use super::notification::Notification;
use crate::judge::sentence::p_value;
use crate::report::moment::rfc3339_millis;

/// The value of a placeholder.
type Value = fn(&Notification) -> String;

/// All placeholders with their values.
const VALUES: [(&str, Value); 32] = [
    ("alert", |n| n.alert.clone()),
    ("stream", |n| n.stream.clone()),
    ("streams", Notification::streams_in_words),
    ("streams_firing", |n| n.streams_firing.to_string()),
    ("evidence", |n| n.evidence.clone()),
    ("deployed", deployed),
    ("record", |n| or_dash(&n.record)),
    ("model", |n| or_dash(&n.model)),
    ("version", |n| or_dash(&n.version)),
    ("segment", |n| or_dash(&n.segment)),
    ("view", |n| or_dash(&n.view)),
    ("window", |n| n.window.clone()),
    ("status", |n| n.status.as_str().to_owned()),
    ("severity", |n| n.severity.to_string()),
    ("verdict", |n| n.verdict.clone()),
    ("what", |n| or_dash(&n.what)),
    ("direction", |n| or_dash(&n.direction)),
    ("since", |n| rfc3339_millis(n.since_ms)),
    ("at", |n| rfc3339_millis(n.at_ms)),
    ("onset", |n| known(n.onset_ms, rfc3339_millis)),
    ("n", |n| n.n.to_string()),
    ("error", |n| known(n.error, |e| e.to_string())),
    ("ece", |n| number(n.ece)),
    ("ece_lower", |n| number(n.ece_lower)),
    ("ece_upper", |n| number(n.ece_upper)),
    ("confidence", |n| {
        known(n.confidence, |c| format!("{:.0}", 100.0 * c))
    }),
    ("detectable", |n| number(n.detectable)),
    ("tolerance", |n| number(n.tolerance)),
    ("p_value", |n| known(n.p_value, p_value)),
    ("mean_score", |n| number(n.mean_score)),
    ("event_rate", |n| number(n.event_rate)),
    (PAGE, |n| n.page.clone()),
];

/// The placeholder whose value is an address.
const PAGE: &str = "page";

/// Names of all placeholders.
pub const PLACEHOLDERS: [&str; VALUES.len()] = {
    let mut names = [""; VALUES.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = VALUES[i].0;
        i += 1;
    }
    names
};

/// A checked text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The index of one of [`VALUES`].
    Place(usize),
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
            let known = VALUES.iter().position(|(known, _)| *known == name.trim());
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

    /// Fills in the values of a notification. Every value but the address passes through `escape`,
    /// because names come from records.
    pub fn fill_with(
        &self,
        notification: &Notification,
        escape: impl Fn(&str) -> String,
    ) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Place(at) => match VALUES[*at] {
                (PAGE, value) => value(notification),
                (_, value) => escape(&value(notification)),
            },
        };
        self.0.iter().map(piece).collect()
    }
}

/// The text of a value; a dash if there is none.
fn known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or("-".to_owned(), text)
}

fn number(value: Option<f64>) -> String {
    known(value, |x| format!("{x:.4}"))
}

fn or_dash(text: &str) -> String {
    known(Some(text).filter(|text| !text.is_empty()), str::to_owned)
}

/// When the model was deployed and by whom, after a space; empty if no deployment was marked.
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
            // The space comes with the deployment, if one was marked.
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
