//! Parses scalar values: numbers, sizes, durations, words of a choice.

use std::path::PathBuf;

use super::schema::Kind;
use super::start::start;
use super::units::{bytes, duration, plain};
use super::value::{Fault, Value, nearest};
use crate::stats::tolerance::NoTolerance;

/// Parses a value of a kind. `quoted` says that the file has it in quotes; `bare` that it may still
/// be a number or a boolean, because it came from a variable or had no quotes.
pub(super) fn scalar(kind: Kind, text: &str, quoted: bool, bare: bool) -> Result<Value, Fault> {
    let shown = if kind == Kind::Secret {
        // Messages reach logs and HTTP answers, so they must not show secrets.
        "a secret without quotes".to_owned()
    } else if quoted {
        format!("text \"{text}\"")
    } else {
        text.to_owned()
    };
    match kind {
        Kind::Integer { low, high } if bare => {
            let i: i64 = plain(text).parse().map_err(|_| mismatch(kind, &shown))?;
            match (low..=high).contains(&i) {
                true => Ok(Value::Integer(i)),
                false => Err(outside_bounds(kind, text)),
            }
        }
        Kind::Number(bounds) if bare => {
            let x: f64 = plain(text).parse().map_err(|_| mismatch(kind, &shown))?;
            match bounds.contain(x) {
                true => Ok(Value::Number(x)),
                false => Err(outside_bounds(kind, text)),
            }
        }
        Kind::Truth if bare => match text {
            "true" => Ok(Value::Truth(true)),
            "false" => Ok(Value::Truth(false)),
            _ => Err(mismatch(kind, &shown)),
        },
        Kind::Bytes => bytes(text).map(Value::Bytes),
        Kind::Tolerance => text
            .trim()
            .parse()
            .map(Value::Tolerance)
            .map_err(|_: NoTolerance| {
                (
                format!("is {shown}, which is no tolerance"),
                "write an l2-ECE from 0 to 1 (0.02), a share of the rarer outcome's mean score \
                 (\"10%\"), or both (\"0.05 or 20%\")"
                    .to_owned(),
            )
            }),
        _ if !quoted => Err(mismatch(kind, &shown)),
        Kind::Text | Kind::Secret if text.trim().is_empty() => Err((
            "is empty".to_owned(),
            "write a text, or leave the key out".to_owned(),
        )),
        Kind::Text | Kind::Secret => Ok(Value::Text(text.to_owned())),
        Kind::Path if text.is_empty() => Err((
            "is empty".to_owned(),
            "write a path, or leave the key out".to_owned(),
        )),
        Kind::Path => Ok(Value::Path(PathBuf::from(text))),
        Kind::Choice(words) => choice(words, text),
        Kind::Address => text.parse().map(Value::Address).map_err(|_| {
            (
                format!("is \"{text}\", which is not an address"),
                "write an IP address and a port, such as \"127.0.0.1:9464\"".to_owned(),
            )
        }),
        Kind::Duration => duration(text).map(Value::Duration),
        Kind::Time => match duration(text)? {
            0 => Err((
                format!("is \"{text}\", which is no time at all"),
                "write a duration above zero, such as \"30s\"".to_owned(),
            )),
            time => Ok(Value::Duration(time)),
        },
        Kind::Start(words) if words.contains(&text) => Ok(Value::Text(text.to_owned())),
        Kind::Start(_) => start(text).map(|_| Value::Text(text.to_owned())),
        _ => {
            let (what, remedy) = mismatch(kind, &shown);
            Err(match scalar(kind, text, false, true) {
                Ok(_) => (what, format!("write {text} without quotes")),
                Err(_) => (what, remedy),
            })
        }
    }
}

/// Words of other programs, and their names here.
const FOREIGN_WORDS: &[(&str, &str)] = &[
    ("datetime", "rfc3339"),
    ("discord", "webhook"),
    ("iso", "rfc3339"),
    ("iso8601", "rfc3339"),
    ("iso-8601", "rfc3339"),
    ("microseconds", "us"),
    ("milliseconds", "ms"),
    ("seconds", "s"),
];

/// One of the words; otherwise an error whose remedy names the nearest.
fn choice(words: &[&str], text: &str) -> Result<Value, Fault> {
    if words.contains(&text) {
        return Ok(Value::Text(text.to_owned()));
    }
    let what = format!("is \"{text}\", which is none of {}", list_of(words));
    let lower = text.to_lowercase();
    let foreign = |(other, ours): &&(&str, &str)| *other == lower && words.contains(ours);
    let ours = FOREIGN_WORDS.iter().find(foreign).map(|(_, ours)| *ours);
    let remedy = match ours.or_else(|| nearest(text, words.iter().copied())) {
        Some(word) => format!("did you mean \"{word}\"?"),
        None => "write one of these words".to_owned(),
    };
    Err((what, remedy))
}

pub(super) fn too_large() -> Fault {
    (
        "is a number too large to hold".to_owned(),
        "write a smaller one".to_owned(),
    )
}

pub(super) fn mismatch(kind: Kind, found: &str) -> Fault {
    (
        format!("is {found} where {} is expected", with_article(kind)),
        format!("write, for example, {}", kind.example()),
    )
}

fn outside_bounds(kind: Kind, text: &str) -> Fault {
    let remedy = match kind {
        Kind::Integer { low, high } if low == high => format!("write {low}"),
        kind => format!("write a {}", kind.words()),
    };
    (format!("is {text}"), remedy)
}

fn with_article(kind: Kind) -> String {
    match kind {
        Kind::Text | Kind::Secret => "text in quotes".to_owned(),
        Kind::Choice(words) => format!("one of {}", list_of(words)),
        Kind::Address => "an `address:port` in quotes".to_owned(),
        Kind::Duration | Kind::Time => "a duration in quotes".to_owned(),
        Kind::Truth => kind.words(),
        Kind::Path => "a path in quotes".to_owned(),
        other => format!("a {}", other.words()),
    }
}

/// The words in quotes, separated by commas.
fn list_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
    quoted.join(", ")
}
