//! Which alerts are meant: conditions on labels.
//!
//! A matcher is `label=value` or `label!=value`; a `*` in the value stands for any text, also none.
//! A list of matchers selects the alerts that satisfy all of them. Labels are those of the alert:
//! `model`, `version`, `segment`, `view`, `severity`. There are no regular expressions: people
//! silence a model, a version, or the segments of a country, and a wrong pattern would hide alerts
//! from the person on call.

use super::machine::Severity;
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

    /// Why no alert can satisfy it: severities are known, and each alert has a model. Not checked
    /// for matchers that are stored already.
    pub fn possible(&self) -> Result<(), String> {
        if LABELS[self.label] == "model" && self.equal && self.pattern.is_empty() {
            let why = "no alert has an empty model; write the name of a model, or leave it out";
            return Err(why.to_owned());
        }
        let fits = |s: &&str| glob(self.pattern.as_bytes(), s.as_bytes());
        match LABELS[self.label] == "severity" && !severities().iter().any(fits) {
            true => Err(unknown_severity(&self.pattern)),
            false => Ok(()),
        }
    }

    /// Why no alert can satisfy these matchers together: their severities exclude each other. Each
    /// matcher is [possible](Matcher::possible) alone.
    pub fn possible_together(matchers: &[Matcher]) -> Result<(), String> {
        let admitted = |s: &&str| Matcher::all_of_severity(matchers, s);
        if severities().iter().any(admitted) {
            return Ok(());
        }
        let of_severity = matchers.iter().filter(|m| LABELS[m.label] == "severity");
        let shown: Vec<String> = of_severity.map(|m| format!("`{m}`")).collect();
        Err(format!(
            "no alert satisfies {} at once, since matchers are joined by and; keep one of them",
            shown.join(" and ")
        ))
    }

    /// Its label and the one value that it is about; `None` if a `*` stands for any text.
    pub fn exact(&self) -> Option<(&'static str, &str)> {
        let text = Some(self.pattern.as_str()).filter(|p| !p.contains('*'));
        text.map(|text| (LABELS[self.label], text))
    }

    /// The same condition on another value.
    pub fn on(&self, pattern: String) -> Matcher {
        Matcher {
            pattern,
            ..self.clone()
        }
    }

    /// Whether it admits an alert whose label has this value; a matcher on another label admits
    /// all.
    pub fn admits(&self, label: &str, value: &str) -> bool {
        LABELS[self.label] != label || glob(self.pattern.as_bytes(), value.as_bytes()) == self.equal
    }

    /// Whether all of the matchers match these labels.
    pub fn all(matchers: &[Matcher], labels: &Labels) -> bool {
        matchers.iter().all(|m| m.matches(labels))
    }

    /// Whether all of the matchers that are about the severity admit this one.
    pub fn all_of_severity(matchers: &[Matcher], severity: &str) -> bool {
        matchers.iter().all(|m| m.admits("severity", severity))
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
        let label = label.ok_or_else(|| unknown_label(name.trim()))?;
        Ok(Matcher {
            label,
            equal,
            pattern: pattern.to_owned(),
        })
    }
}

fn severities() -> [&'static str; 2] {
    Severity::ALL.map(Severity::as_str)
}

/// Names in other systems for what wakes someone, and for what waits.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("critical", "page"),
    ("error", "page"),
    ("high", "page"),
    ("emergency", "page"),
    ("warning", "warn"),
    ("info", "warn"),
    ("low", "warn"),
    ("ticket", "warn"),
];

fn unknown_label(name: &str) -> String {
    let remedy = match near(name, LABELS.into_iter()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write one of these".to_owned(),
    };
    let known = LABELS.join(", ");
    format!("an alert has no label `{name}`, only {known}; {remedy}")
}

fn unknown_severity(pattern: &str) -> String {
    let word = pattern.to_lowercase();
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == word);
    let remedy = match other
        .map(|(_, ours)| *ours)
        .or_else(|| near(&word, severities().into_iter()))
    {
        Some(near) => format!("write `severity={near}`"),
        None => "write one of them".to_owned(),
    };
    format!("no alert has the severity `{pattern}`, it is `page` or `warn`; {remedy}")
}

/// The known name that someone may have meant.
pub fn near<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let distance = |k: &&str| strsim::damerau_levenshtein(name, k);
    known.min_by_key(distance).filter(|k| distance(k) <= 2)
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

/// Whether the whole text fits the pattern. Linear except for the stars: on a mismatch the last
/// star takes one byte more. This is enough, because an earlier star could only have taken what the
/// last one may.
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
    fn a_severity_that_no_alert_has_is_refused_with_the_name_that_it_has_here() {
        let refused = |text: &str| {
            let matcher: Matcher = text.parse().expect(text);
            matcher.possible().err().unwrap_or_default()
        };
        assert!(refused("severity=critical").ends_with("; write `severity=page`"));
        assert!(refused("severity!=Warning").ends_with("; write `severity=warn`"));
        assert!(refused("severity=pge").ends_with("; write `severity=page`"));
        assert!(refused("severity=x").ends_with("; write one of them"));
        for sound in [
            "severity=page",
            "severity=*",
            "severity!=w*",
            "model=critical",
        ] {
            assert_eq!(refused(sound), "", "{sound}");
        }
    }

    #[test]
    fn matchers_that_exclude_each_other_are_refused_together() {
        let refused = |texts: &[&str]| {
            let list = texts.iter().map(|t| t.parse().expect(t));
            let list: Vec<Matcher> = list.collect();
            Matcher::possible_together(&list).err().unwrap_or_default()
        };
        let both = refused(&["severity=page", "model=m", "severity=warn"]);
        assert!(both.starts_with("no alert satisfies `severity=page` and `severity=warn` at once"));
        assert_ne!(refused(&["severity!=page", "severity!=warn"]), "");
        assert_ne!(refused(&["severity!=*"]), "");
        for sound in [&[][..], &["severity=page", "severity!=warn"], &["model=m"]] {
            assert_eq!(refused(sound), "", "{sound:?}");
        }
        let nameless: Matcher = "model=".parse().expect("a matcher");
        assert!(nameless.possible().is_err());
    }

    #[test]
    fn what_is_no_matcher_is_refused_with_what_could_be_written() {
        let refused = |text: &str| text.parse::<Matcher>().expect_err("no matcher");
        assert!(refused("fraud").contains("model=fraud"));
        assert!(refused("modle=x").ends_with("severity; did you mean `model`?"));
        refused(&format!("model={}", "x".repeat(PATTERN_BYTES_MAX + 1)));
    }
}
