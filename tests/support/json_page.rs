//! The guide's page about JSON, read so that outputs can be held against it.
//!
//! A section of the page has one table, whose rows name fields by their path (`alert.state`,
//! `cells[].low`; `states.*` where keys are data), their type, and their meaning. A type that links
//! to a section means that the value, or each element of a list, is described there. A section has
//! all fields of those that its text names as "fields of \[…\](#…)".
#![allow(dead_code)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A row: its type, and the section that it links to.
struct Field {
    kind: String,
    link: Option<String>,
}

#[derive(Default)]
struct Section {
    fields: BTreeMap<String, Field>,
    includes: Vec<String>,
}

/// The page, and what outputs have had of it.
pub struct JsonPage {
    sections: BTreeMap<String, Section>,
    seen: BTreeSet<(String, String)>,
    faults: BTreeSet<String>,
}

impl JsonPage {
    /// Reads `deploy/guide/json.md`.
    pub fn read() -> JsonPage {
        let mut sections: BTreeMap<String, Section> = BTreeMap::new();
        let mut at = String::new();
        for line in include_str!("../../deploy/guide/json.md").lines() {
            if line.starts_with('#') {
                at = anchor(line);
            } else if line.starts_with("| `") {
                let section = sections.entry(at.clone()).or_default();
                let mut cells = line.trim_matches('|').split(" | ").map(str::trim);
                let (names, kind) = (cells.next().unwrap(), cells.next().expect(line));
                let link = kind.split_once("](#");
                let link = link.and_then(|(_, rest)| Some(rest.split_once(')')?.0.to_owned()));
                for name in names.split('`').skip(1).step_by(2) {
                    let (kind, link) = (kind.to_owned(), link.clone());
                    let twice = section.fields.insert(name.to_owned(), Field { kind, link });
                    assert!(twice.is_none(), "{at} names {name} twice");
                }
            } else {
                let section = sections.entry(at.clone()).or_default();
                for named in line.split("fields of [").skip(1) {
                    let target = named.split_once("](#").and_then(|(_, r)| r.split_once(')'));
                    section.includes.push(target.expect(line).0.to_owned());
                }
            }
        }
        JsonPage {
            sections,
            seen: BTreeSet::new(),
            faults: BTreeSet::new(),
        }
    }

    /// Holds an output against the section that describes it.
    pub fn check(&mut self, section: &str, output: &Value) {
        assert!(self.sections.contains_key(section), "no section {section}");
        assert!(!output.is_null(), "no output for {section}");
        self.walk(section, "", output);
    }

    fn walk(&mut self, section: &str, path: &str, value: &Value) {
        match value {
            Value::Array(all) => {
                let path = if path.is_empty() {
                    String::new()
                } else {
                    format!("{path}[]")
                };
                all.iter().for_each(|one| self.walk(section, &path, one));
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.field(section, path, key, value);
                }
            }
            _ => {}
        }
    }

    fn field(&mut self, section: &str, path: &str, key: &str, value: &Value) {
        let under = |key: &str| match path {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        };
        let names = [under(key), under("*")];
        let Some((of, name)) = self.named(section, &names) else {
            self.faults
                .insert(format!("{section}: {} is not named", names[0]));
            return;
        };
        let field = &self.sections[&of].fields[&name];
        if !fits(&field.kind, value) {
            let fault = format!(
                "{of}: {name} is {}, and the page says {}",
                value, field.kind
            );
            self.faults.insert(fault.chars().take(200).collect());
        }
        let link = field.link.clone();
        self.seen.insert((of.clone(), name.clone()));
        match link {
            Some(link) => self.walk(&link, "", value),
            None => self.walk(&of, &name, value),
        }
    }

    /// The section and the name under which a field is in the table of a section, or of one that it
    /// includes.
    fn named(&self, section: &str, names: &[String; 2]) -> Option<(String, String)> {
        let found = self.sections.get(section)?;
        let own = names.iter().find(|name| found.fields.contains_key(*name));
        own.map(|name| (section.to_owned(), name.clone()))
            .or_else(|| {
                found
                    .includes
                    .iter()
                    .find_map(|other| self.named(other, names))
            })
    }

    /// Ends the test: every field of the outputs is on the page, and every field of these sections
    /// was in an output.
    pub fn finish(mut self, sections: impl Fn(&str) -> bool) {
        for (title, section) in self.sections.iter().filter(|(title, _)| sections(title)) {
            for name in section.fields.keys() {
                if !self.seen.contains(&(title.clone(), name.clone())) {
                    self.faults.insert(format!("{title}: no output has {name}"));
                }
            }
        }
        let faults = Vec::from_iter(self.faults);
        assert!(
            faults.is_empty(),
            "deploy/guide/json.md:\n{}",
            faults.join("\n")
        );
    }
}

/// Whether a type on the page allows the value.
fn fits(kind: &str, value: &Value) -> bool {
    let word = match value {
        Value::Null => "null",
        Value::Bool(_) => "true",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    kind.contains(word)
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().replace(' ', "-")
}
