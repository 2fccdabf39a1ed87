//! Texts with placeholders: `{model} is {verdict}`.
//!
//! A placeholder is a name in braces; a brace itself is written twice. An unknown name is an error when the configuration is
//! read, not a blank at three in the morning. There are no conditions and no loops: what differs between a firing and an
//! ended alert is in the placeholders `what` and `status`. What is undefined reads `-`.

use super::notice::{Notice, moment};
use std::fmt::Write;

/// What may stand in braces.
pub const PLACEHOLDERS: [&str; 25] = [
    "stream",
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

/// A text that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// One of [`PLACEHOLDERS`].
    Place(&'static str),
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateError {
    /// A name that is no placeholder.
    Unknown(String),
    /// A brace without its other.
    Unbalanced,
}

impl Template {
    /// Reads a text.
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

    /// The text of a notice.
    pub fn fill(&self, notice: &Notice) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Place(name) => put(name, notice, &mut out),
            }
        }
        out
    }
}

/// Writes what stands for a placeholder.
fn put(name: &str, notice: &Notice, out: &mut String) {
    let number = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.4}"));
    let or_dash = |text: &str| match text {
        "" => "-".to_owned(),
        text => text.to_owned(),
    };
    let text = match name {
        "stream" => notice.stream(),
        "model" => or_dash(&notice.model),
        "version" => or_dash(&notice.version),
        "segment" => or_dash(&notice.segment),
        "view" => notice.view.clone(),
        "window" => notice.window.clone(),
        "status" => notice.status.as_str().to_owned(),
        "severity" => notice.severity.as_str().to_owned(),
        "verdict" => notice.verdict.clone(),
        "what" => or_dash(&notice.what),
        "direction" => or_dash(&notice.direction),
        "since" => moment(notice.since_ms),
        "at" => moment(notice.at_ms),
        "onset" => notice.onset_ms.map_or("-".to_owned(), moment),
        "n" => notice.n.to_string(),
        "ece" => number(notice.ece),
        "ece_lower" => number(notice.ece_lower),
        "ece_upper" => number(notice.ece_upper),
        "confidence" => notice
            .confidence
            .map_or("-".to_owned(), |c| format!("{:.0}", 100.0 * c)),
        "detectable" => number(notice.detectable),
        "tolerance" => number(notice.tolerance),
        "p_value" => match notice.p_value {
            Some(p) if p >= 0.001 || p == 0.0 => format!("{p:.3}"),
            Some(p) => format!("{p:.1e}"),
            None => "-".to_owned(),
        },
        "mean_score" => number(notice.mean_score),
        "event_rate" => number(notice.event_rate),
        _ => notice.page.clone(),
    };
    let _ = out.write_str(&text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::notice::Links;

    fn notice() -> Notice {
        let links = Links {
            page: "http://t/streams/x".to_owned(),
            runbook: "r".to_owned(),
        };
        Notice {
            ece: Some(0.0123),
            n: 500,
            ..Notice::trial(1_700_000_000_000, links)
        }
    }

    #[test]
    fn placeholders_are_filled_and_what_is_undefined_is_a_dash() {
        let text = "{model} at {at}: {ece} of {n}, {p_value} {{sic}} {page}";
        let filled = Template::parse(text).expect("sound").fill(&notice());
        let wanted =
            "trueline-test at 2023-11-14T22:13:20.000Z: 0.0123 of 500, - {sic} http://t/streams/x";
        assert_eq!(filled, wanted);
    }

    #[test]
    fn every_placeholder_stands_for_something() {
        for name in PLACEHOLDERS {
            let filled = Template::parse(&format!("{{{name}}}")).expect(name);
            assert!(!filled.fill(&notice()).is_empty(), "{name}");
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
