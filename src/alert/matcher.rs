//! Which alerts are meant: conditions on labels.
//!
//! A matcher is `label=value` or `label!=value`; a `*` in the value stands for any text, also none.
//! A list of matchers means the alerts that satisfy all. Labels are those of the alert: `model`,
//! `version`, `segment`, `view`, `severity`. No regular expressions: what people silence is a
//! model, a version, or the segments of a country, and a pattern that is read wrong keeps alerts
//! from the one who is on call.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Names of the labels of an alert, in their order.
pub const LABELS: [&str; 5] = ["model", "version", "segment", "view", "severity"];

/// Longest pattern.
pub const PATTERN_BYTES_MAX: usize = 512;

/// The labels of one alert, in the order of [`LABELS`].
pub type Labels = [String; LABELS.len()];

/// A condition on one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Matcher {
    /// Index into [`LABELS`].
    label: usize,
    /// Whether the value must match, or must not.
    equal: bool,
    pattern: String,
}

impl Matcher {
    /// Whether an alert with these labels is meant.
    pub fn matches(&self, labels: &Labels) -> bool {
        glob(self.pattern.as_bytes(), labels[self.label].as_bytes()) == self.equal
    }

    /// Whether all of the matchers mean it.
    pub fn all(matchers: &[Matcher], labels: &Labels) -> bool {
        matchers.iter().all(|m| m.matches(labels))
    }
}

impl FromStr for Matcher {
    type Err = String;

    fn from_str(text: &str) -> Result<Matcher, String> {
        let wrong = || format!("`{text}` is no matcher; write `model=fraud` or `version!=3*`");
        let (name, pattern) = text.split_once('=').ok_or_else(wrong)?;
        let (name, equal) = match name.strip_suffix('!') {
            Some(name) => (name, false),
            None => (name, true),
        };
        if pattern.len() > PATTERN_BYTES_MAX {
            let bytes = pattern.len();
            return Err(format!(
                "a pattern of {bytes} bytes is too long; write at most {PATTERN_BYTES_MAX}"
            ));
        }
        let label = LABELS.iter().position(|l| *l == name.trim());
        let label = label.ok_or_else(|| {
            let name = name.trim();
            format!(
                "an alert has no label `{name}`; it has {}",
                LABELS.join(", ")
            )
        })?;
        Ok(Matcher {
            label,
            equal,
            pattern: pattern.to_owned(),
        })
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.equal { "=" } else { "!=" };
        write!(f, "{}{sign}{}", LABELS[self.label], self.pattern)
    }
}

impl TryFrom<String> for Matcher {
    type Error = String;

    fn try_from(text: String) -> Result<Matcher, String> {
        text.parse()
    }
}

impl From<Matcher> for String {
    fn from(matcher: Matcher) -> String {
        matcher.to_string()
    }
}

/// Whether the whole text fits the pattern. Linear but for the stars: on a mismatch the last star
/// takes one byte more, which is enough, since an earlier one could only have taken what this one
/// may.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, t) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(model: &str, segment: &str) -> Labels {
        [model, "3", segment, "binary", "warn"].map(str::to_owned)
    }

    #[test]
    fn a_matcher_means_what_it_says_and_a_star_any_text() {
        let de = labels("fraud", "country=de,age=young");
        let cases = [
            ("model=fraud", true),
            ("model!=fraud", false),
            ("model=fra", false),
            ("model=fr*", true),
            ("segment=country=de*", true),
            ("segment=*age=old", false),
            ("segment=*=*=*", true),
            ("version=", false),
            ("severity!=page", true),
            ("model=*", true),
        ];
        for (text, meant) in cases {
            let matcher: Matcher = text.parse().expect(text);
            assert_eq!(matcher.matches(&de), meant, "{text}");
            assert_eq!(matcher.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_matcher_is_refused_with_what_could_be_written() {
        assert!(
            "fraud"
                .parse::<Matcher>()
                .is_err_and(|e| e.contains("model=fraud"))
        );
        assert!(
            "modle=x"
                .parse::<Matcher>()
                .is_err_and(|e| e.contains("model, version"))
        );
        let long = format!("model={}", "x".repeat(PATTERN_BYTES_MAX + 1));
        assert!(long.parse::<Matcher>().is_err());
    }
}
