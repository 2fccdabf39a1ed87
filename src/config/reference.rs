//! The reference page and the JSON Schema of the configuration, generated from the table of keys.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::keys::{self, SECTIONS};
use super::schema::{Key, Kind, Preset, Section};

pub use super::write::sample;

/// The reference as Markdown, one table per section.
pub fn markdown() -> String {
    let mut out = String::new();
    for section in SECTIONS {
        let title = match section.path {
            "" => "Top of the file".to_owned(),
            _ => format!("`{}`", section.title()),
        };
        let about = section.about;
        // Writing to a string cannot fail.
        let _ = write!(out, "#### {title}\n\n{about}\n\n");
        out.push_str("| key | takes | default | meaning |\n|---|---|---|---|\n");
        for key in section.keys {
            let name = match key.kind {
                Kind::Secret => format!("`{0}` or `{0}_file`", key.name),
                _ => format!("`{}`", key.name),
            };
            let default = match key.preset {
                Preset::Required(_) => "required".to_owned(),
                Preset::Unset(_) => "unset".to_owned(),
                Preset::Value(text) => format!("`{text}`"),
            };
            let kind = key.kind.words();
            let _ = writeln!(out, "| {name} | {kind} | {default} | {} |", key.about);
        }
        out.push('\n');
    }
    let kept = out.trim_end().len();
    out.truncate(kept);
    out.push('\n');
    out
}

/// The JSON Schema (draft 2020-12), for editors that complete TOML.
pub fn json_schema() -> Value {
    let mut root = section_schema(&SECTIONS[0]);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("trueline configuration");
    root
}

fn section_schema(section: &'static Section) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in section.keys {
        properties.insert(key.name.to_owned(), key_schema(key));
        if matches!(key.preset, Preset::Required(_)) {
            required.push(json!(key.name));
        }
        if key.kind == Kind::Secret {
            let about = format!("File that holds `{}`.", key.name);
            let schema = json!({ "type": "string", "description": about });
            properties.insert(format!("{}_file", key.name), schema);
        }
    }
    for child in keys::children(section.path) {
        let schema = match child.repeated {
            true => json!({ "type": "array", "items": section_schema(child) }),
            false => section_schema(child),
        };
        properties.insert(child.last_name().to_owned(), schema);
    }
    json!({
        "type": "object",
        "description": section.about,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn key_schema(key: &Key) -> Value {
    let text = json!({ "type": "string" });
    // A variable in quotes may replace a number.
    let variable = json!({ "type": "string", "pattern": "\\$\\{" });
    let mut schema = match key.kind {
        Kind::Text | Kind::Secret | Kind::Path | Kind::Address | Kind::Duration | Kind::Time => {
            text
        }
        Kind::Choice(words) => json!({ "anyOf": [{ "enum": words }, variable] }),
        Kind::Integer { low, high } => {
            let mut bounds = json!({ "type": "integer", "minimum": low });
            if high != i64::MAX {
                bounds["maximum"] = json!(high);
            }
            json!({ "anyOf": [bounds, variable] })
        }
        Kind::Number(b) => {
            let (low, high) = match b.open {
                true => ("exclusiveMinimum", "exclusiveMaximum"),
                false => ("minimum", "maximum"),
            };
            json!({ "anyOf": [{ "type": "number", low: b.low, high: b.high }, variable] })
        }
        Kind::Truth => json!({ "anyOf": [{ "type": "boolean" }, variable] }),
        Kind::Bytes => json!({ "type": ["integer", "string"] }),
        Kind::Start(_) => text,
        Kind::Tolerance => json!({ "type": ["number", "string"] }),
        Kind::List => json!({ "anyOf": [text.clone(), { "type": "array", "items": text }] }),
        Kind::Map => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "integer", "number", "boolean"] },
        }),
        Kind::Windows => json!({
            "type": "array",
            "items": { "anyOf": [text.clone(), {
                "type": "object",
                "properties": {
                    "width": text.clone(),
                    "slide": text,
                    "last": { "type": "integer", "minimum": 1 },
                },
                "additionalProperties": false,
            }] },
        }),
    };
    schema["description"] = json!(key.about);
    schema
}
