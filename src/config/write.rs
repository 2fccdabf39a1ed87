//! Writes a document as TOML: the effective configuration, and the sample with every key.
//!
//! Both contain every key of the schema in its order. A key without a value is a comment that shows
//! how to write it. Secrets are always masked, including those of the librdkafka options, by the
//! same rule as in logs ([`is_secret`]).

use crate::kafka::is_secret;

use super::document::Record;
use super::keys::{self, SECTIONS};
use super::ladder::shown;
use super::schema::{Key, Kind, Preset, Section};
use super::value::{Value, WindowValue};

/// Replacement of a secret.
pub const MASK: &str = "******";

/// Width to which comments of the sample are wrapped.
const COMMENT_WIDTH: usize = 98;

/// The document with its defaults, secrets masked.
pub fn effective(root: &Record) -> String {
    let mut out = String::new();
    effective_section(&SECTIONS[0], root, &mut out);
    out
}

fn effective_section(section: &'static Section, record: &Record, out: &mut String) {
    header(section, out);
    for key in section.keys {
        let entry = record.entry(key.name);
        match written(key.kind, &entry.value) {
            Some(text) => line(out, &format!("{} = {text}", key.name)),
            None => line(out, &format!("# {} is not set", key.name)),
        }
    }
    for child in keys::children(section.path) {
        for record in record.all(child.path) {
            out.push('\n');
            effective_section(child, record, out);
        }
    }
}

/// The sample with every key, its meaning and its default: `config/everything.toml`.
pub fn sample() -> String {
    let mut out = String::from(
        "# Every key of trueline's configuration with its default. A key whose line is commented out has\n\
         # no default; the line shows how it is written. Printed by `trueline check --example`.\n\
         #\n\
         # Strings may hold ${NAME} or ${NAME:-default}, replaced from the environment. A secret may also be\n\
         # read from a file: `password_file` in place of `password`.\n\n",
    );
    for section in SECTIONS {
        if !section.path.is_empty() {
            comment(&mut out, section.about);
            header(section, &mut out);
        }
        for key in section.keys {
            let what = format!("{} ({})", key.about, key.kind.words());
            comment(&mut out, &what);
            match sample_value(section, key) {
                (text, true) => line(&mut out, &format!("{} = {text}", key.name)),
                (text, false) => line(&mut out, &format!("# {} = {text}", key.name)),
            }
        }
        out.push('\n');
    }
    let kept = out.trim_end().len();
    out.truncate(kept);
    out.push('\n');
    out
}

/// The text of a key in the sample, and whether it is active.
fn sample_value(section: &Section, key: &Key) -> (&'static str, bool) {
    match key.preset {
        Preset::Value(text) | Preset::Required(text) => (text, true),
        Preset::Unset(text) => (text, keys::CHOSEN.contains(&(section.path, key.name))),
    }
}

fn header(section: &Section, out: &mut String) {
    if !section.path.is_empty() {
        line(out, &section.title());
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Appends a comment, wrapped.
fn comment(out: &mut String, text: &str) {
    let mut width = 0;
    for word in text.split_whitespace() {
        if width > 0 && width + 1 + word.chars().count() > COMMENT_WIDTH {
            out.push('\n');
            width = 0;
        }
        out.push_str(if width == 0 { "# " } else { " " });
        width += if width == 0 { 2 } else { 1 } + word.chars().count();
        out.push_str(word);
    }
    out.push('\n');
}

/// A value in TOML; `None` if it is not set.
pub(super) fn written(kind: Kind, value: &Value) -> Option<String> {
    Some(match value {
        Value::Absent => return None,
        Value::Text(_) if kind == Kind::Secret => format!("\"{MASK}\""),
        Value::Text(text) => quoted(text),
        Value::Path(path) => quoted(&path.display().to_string()),
        Value::Address(address) => quoted(&address.to_string()),
        Value::Integer(i) => i.to_string(),
        Value::Number(x) => format!("{x:?}"),
        Value::Truth(b) => b.to_string(),
        Value::Duration(0) => quoted("0s"),
        Value::Duration(ms) => quoted(&shown(*ms)),
        Value::Bytes(n) => size(*n),
        Value::Tolerance(t) if t.relative.is_none() => t.to_string(),
        Value::Tolerance(t) => quoted(&t.to_string()),
        Value::List(items) => list(items.iter().map(|p| quoted(&p.value))),
        Value::Windows(items) => list(items.iter().map(|p| window(&p.value))),
        Value::Map(map) => {
            let pairs = map.iter().map(|(name, given)| {
                let value = match is_secret(name) {
                    true => format!("\"{MASK}\""),
                    false => quoted(&given.value),
                };
                format!("{} = {value}", quoted(name))
            });
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    })
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn window(value: &WindowValue) -> String {
    match value {
        WindowValue::Last(last) => format!("{{ last = {last} }}"),
        WindowValue::Time {
            name,
            slide_ms: None,
            ..
        } => quoted(name),
        WindowValue::Time {
            name,
            slide_ms: Some(slide_ms),
            ..
        } => format!(
            "{{ width = {}, slide = \"{}\" }}",
            quoted(name),
            shown(*slide_ms)
        ),
    }
}

/// A size in the largest binary unit that keeps it whole.
fn size(bytes: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes.is_multiple_of(1 << shift) {
            return format!("\"{}{unit}\"", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// A basic TOML string. It equals the JSON string, except that JSON leaves U+007F unescaped.
fn quoted(text: &str) -> String {
    let out = serde_json::Value::from(text).to_string();
    // Escaped, so that reading the text again replaces nothing.
    out.replace('\u{7f}', "\\u007F").replace("${", "$${")
}
