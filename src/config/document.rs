//! The file as sections of values: every key of the schema is present, given or by default.
//!
//! TOML is parsed into a tree with byte spans, and the tree is walked along the table of
//! [`super::keys`]. serde's `deny_unknown_fields` would stop at the first problem. The walk records
//! each problem and continues with the default in place of an invalid value, so that later layers
//! can find their own problems in the same run. A document with problems never becomes a
//! configuration.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, SECTIONS};
use super::problem::{Problems, TextPosition};
use super::schema::{Key, Kind, Preset, Section};
use super::value::{Outside, Value, nearest};
use super::value_reader::ValueReader;

/// The value of one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The value; [`Value::Absent`] if it is missing and has no default.
    pub value: Value,
    /// Its position; that of the section if it is a default.
    pub at: TextPosition,
    /// Whether the file contains it, valid or not. The default replaces an invalid value.
    pub given: bool,
}

/// One section of the file with all its keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Which section.
    pub section: &'static str,
    /// Position of its header; that of the parent if it is missing.
    pub at: TextPosition,
    /// All keys that the schema has for it.
    pub entries: BTreeMap<&'static str, Entry>,
    /// All its child sections of the schema; repeated ones in the order of the file.
    pub children: BTreeMap<&'static str, Vec<Record>>,
}

impl Record {
    /// The entry of a key of the schema. Asking for another key is an error.
    pub fn entry(&self, key: &str) -> &Entry {
        let known = self.entries.contains_key(key);
        assert!(known, "[{}] has no key {key} in the schema", self.section);
        &self.entries[key]
    }

    /// The only record of a child section that is not repeated. Asking for another section is an
    /// error.
    pub fn child(&self, path: &str) -> &Record {
        let known = !self.all(path).is_empty();
        assert!(
            known,
            "[{}] has no section {path} in the schema",
            self.section
        );
        &self.children[path][0]
    }

    /// All records of a repeated child section.
    pub fn all(&self, path: &str) -> &[Record] {
        self.children.get(path).map_or(&[], Vec::as_slice)
    }

    /// Adopts the values that `other` contains and this record does not, recursively.
    pub fn inherit(&mut self, other: &Record) {
        for (key, theirs) in &other.entries {
            if let Some(ours) = self.entries.get_mut(key).filter(|e| !e.given) {
                *ours = theirs.clone();
            }
        }
        for (path, theirs) in &other.children {
            if let (Some(ours), Some(theirs)) = (
                self.children.get_mut(path).and_then(|r| r.first_mut()),
                theirs.first(),
            ) {
                ours.inherit(theirs);
            }
        }
    }
}

/// Reads a whole file. The result is complete even if there are problems.
pub fn read(text: &str, outside: &Outside<'_>, problems: &mut Problems<'_>) -> Record {
    let (table, faults) = DeTable::parse_recoverable(text);
    for fault in &faults {
        let span = fault.span().unwrap_or(0..0);
        let what = fault.message().trim().replace('\n', ", ");
        let (what, remedy) = match what == "duplicate key" {
            true => twice(text, span.clone()),
            false => (format!("not TOML: {what}"), "correct the syntax".to_owned()),
        };
        problems.add_syntax(problems.position(&span), what, remedy);
    }
    // After a syntax error the tree is a guess, and further messages might mislead.
    let empty = DeTable::new();
    let sound = faults.is_empty();
    let table = if sound { table.get_ref() } else { &empty };
    let mut walk = Walk {
        values: ValueReader { problems, outside },
        silent: !sound,
    };
    walk.section(&SECTIONS[0], Some(table), TextPosition::START)
}

/// The section of the model `*` with every default, for a file without models.
pub fn any_model() -> Record {
    let mut problems = Problems::new("schema", "");
    let mut walk = Walk {
        values: ValueReader {
            problems: &mut problems,
            outside: &Outside::nothing(),
        },
        silent: true,
    };
    match keys::section("model") {
        Some(section) => walk.section(section, None, TextPosition::START),
        None => unreachable!("the schema has the section `model`"),
    }
}

/// The walk through the tree.
struct Walk<'r, 'a> {
    values: ValueReader<'r, 'a>,
    /// Do not report missing keys: the file or the header could not be read.
    silent: bool,
}

impl Walk<'_, '_> {
    /// Reads one section from its table, or builds it from defaults.
    fn section(
        &mut self,
        section: &'static Section,
        table: Option<&DeTable<'_>>,
        at: TextPosition,
    ) -> Record {
        let mut record = Record {
            section: section.path,
            at,
            entries: BTreeMap::new(),
            children: BTreeMap::new(),
        };
        if let Some(table) = table {
            self.unknown_keys(section, table);
        }
        for key in section.keys {
            let entry = self.entry(section, key, table, at);
            record.entries.insert(key.name, entry);
        }
        for child in keys::children(section.path) {
            // A section read under a wrong header adds no problems beside that of its header.
            let plural = format!("{}s", child.last_name());
            let misnamed = table.filter(|_| child.repeated);
            let misnamed = misnamed.and_then(|t| t.get(plural.as_str()));
            let records = match misnamed.map(Spanned::get_ref) {
                // Keys it lacks may be in the section that was meant.
                Some(DeValue::Table(table)) => {
                    let before = std::mem::replace(&mut self.silent, true);
                    let records = vec![self.section(child, Some(table), at)];
                    self.silent = before;
                    records
                }
                _ => {
                    let given = misnamed.or(table.and_then(|t| t.get(child.last_name())));
                    self.child(child, given, at)
                }
            };
            record.children.insert(child.path, records);
        }
        record
    }

    /// The records of a child section: one, or, if it is repeated, as many as the file has.
    fn child(
        &mut self,
        child: &'static Section,
        given: Option<&Spanned<DeValue<'_>>>,
        parent: TextPosition,
    ) -> Vec<Record> {
        let given = given.map(|v| (self.values.problems.position(&v.span()), v.get_ref()));
        match (child.repeated, given) {
            (false, None) => vec![self.section(child, None, parent)],
            (true, None) => Vec::new(),
            (false, Some((at, DeValue::Table(table)))) => {
                vec![self.section(child, Some(table), at)]
            }
            (true, Some((_, DeValue::Array(items)))) => {
                let mut records = Vec::with_capacity(items.len());
                for item in items.iter() {
                    let at = self.values.problems.position(&item.span());
                    match item.get_ref() {
                        DeValue::Table(table) => {
                            records.push(self.section(child, Some(table), at));
                        }
                        _ => self.not_a_section(child, at),
                    }
                }
                records
            }
            // The wrong kind of brackets: reported, but the section is still read for further
            // problems.
            (true, Some((at, DeValue::Table(table)))) => {
                self.not_a_section(child, at);
                vec![self.section(child, Some(table), at)]
            }
            (_, Some((at, other))) => {
                self.not_a_section(child, at);
                let first = match other {
                    DeValue::Array(items) => items.first().and_then(|i| i.get_ref().as_table()),
                    _ => None,
                };
                // Missing keys are not reported: the header is wrong.
                let before = std::mem::replace(&mut self.silent, true);
                let records = vec![self.section(child, first, at)];
                self.silent = before;
                records
            }
        }
    }

    /// Records that another value is in place of a section.
    fn not_a_section(&mut self, section: &Section, at: TextPosition) {
        let what = format!("`{}` is not the section {}", section.path, section.title());
        let remedy = format!("write the header {} on a line of its own", section.title());
        self.values.problems.add(at, what, remedy);
    }

    /// Records every key that the schema does not have.
    fn unknown_keys(&mut self, section: &'static Section, table: &DeTable<'_>) {
        for name in table.keys() {
            let text = name.get_ref().as_ref();
            let is_child = keys::children(section.path).any(|c| c.last_name() == text);
            if is_child || section.key(text).is_some() || secret_of_file(section, text).is_some() {
                continue;
            }
            let at = self.values.problems.position(&name.span());
            let what = format!("unknown key `{text}` in {}", section.title());
            self.values
                .problems
                .add(at, what, remedy_for(section, text));
        }
    }

    /// One key: from the table, from the file that `NAME_file` names, or by default.
    fn entry(
        &mut self,
        section: &'static Section,
        key: &Key,
        table: Option<&DeTable<'_>>,
        at: TextPosition,
    ) -> Entry {
        let given = table.and_then(|t| t.get(key.name));
        let file_name = format!("{}_file", key.name);
        let by_file = match key.kind {
            Kind::Secret => table.and_then(|t| t.get(file_name.as_str())),
            _ => None,
        };
        if let (Some(value), Some(_)) = (given, by_file) {
            let at = self.values.problems.position(&value.span());
            let what = format!("both `{0}` and `{0}_file` are given", key.name);
            self.values.problems.add(at, what, "keep one of them");
        }
        if let Some(value) = by_file {
            let at = self.values.problems.position(&value.span());
            let read = self.secret(&file_name, value);
            return entry(read.unwrap_or_else(|| self.default_of(key)), at, true);
        }
        if let Some(value) = given {
            let at = self.values.problems.position(&value.span());
            let read = self.values.read(key.name, key.kind, value);
            return entry(read.unwrap_or_else(|| self.default_of(key)), at, true);
        }
        if let (Preset::Required(example), false) = (key.preset, self.silent) {
            let what = format!("{} has no `{}`", section.title(), key.name);
            let remedy = format!("add `{} = {example}`", key.name);
            self.values.problems.add(at, what, remedy);
        }
        entry(self.default_of(key), at, false)
    }

    fn default_of(&self, key: &Key) -> Value {
        self.values.placed(default_of(key))
    }

    /// The first line of the file that holds a secret.
    fn secret(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let at = self.values.problems.position(&value.span());
        let Value::Path(path) = self.values.read(name, Kind::Path, value)? else {
            return None;
        };
        let what = match std::fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => {
                return Some(Value::Text(text.trim_end_matches(['\r', '\n']).to_owned()));
            }
            Ok(_) => format!("`{name}` names {}, which is empty", path.display()),
            Err(error) => format!(
                "`{name}` names {}, which cannot be read: {error}",
                path.display()
            ),
        };
        let remedy = "name a file that this user can read and that holds the secret alone";
        self.values.problems.add(at, what, remedy);
        None
    }
}

/// Describes a key or section header that appears twice, with the remedy.
fn twice(text: &str, span: Range<usize>) -> (String, String) {
    let name = text.get(span.clone()).unwrap_or_default();
    let before = text.get(..span.start).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    // A header may name its parents first: [source.fields].
    let Some(parents) = line.trim_start().strip_prefix('[') else {
        let remedy = "keep one of them; if its section is a second one of its kind, give each a header of its own";
        return (
            format!("`{name}` stands twice in one section"),
            remedy.to_owned(),
        );
    };
    let path = format!("{parents}{name}");
    let repeated = SECTIONS.iter().any(|s| s.path == path && s.repeated);
    let remedy = match repeated {
        true => format!("write [[{path}]] over each of them"),
        false => "put the keys of both under one header".to_owned(),
    };
    (format!("the section [{path}] stands twice"), remedy)
}

fn entry(value: Value, at: TextPosition, given: bool) -> Entry {
    Entry { value, at, given }
}

/// The secret key whose `_file` form is `name`.
fn secret_of_file(section: &Section, name: &str) -> Option<&'static Key> {
    let key = section.key(name.strip_suffix("_file")?)?;
    (key.kind == Kind::Secret).then_some(key)
}

/// Names of keys in other programs, and their names here.
const FOREIGN: &[(&str, &str)] = &[
    ("actual", "outcome"),
    ("bootstrap", "brokers"),
    ("bootstrap_servers", "brokers"),
    ("bootstrap.servers", "brokers"),
    ("consumer_group", "group"),
    ("group_id", "group"),
    ("ground_truth", "outcome"),
    ("key", "id"),
    ("label", "outcome"),
    ("port", "listen"),
    ("prediction", "score"),
    ("probability", "score"),
    ("target", "outcome"),
    ("threshold", "tolerance"),
    ("timestamp", "time"),
    ("ts", "time"),
    ("webhook_url", "url"),
    ("y_pred", "score"),
    ("y_prob", "score"),
    ("y_true", "outcome"),
];

/// The remedy for an unknown key: the nearest key of the section, or the section where the key
/// belongs.
fn remedy_for(section: &'static Section, name: &str) -> String {
    let elsewhere = SECTIONS.iter().find(|s| s.key(name).is_some());
    let mut children = keys::children(section.path).filter(|c| c.repeated);
    if let Some(child) = children.find(|c| name.strip_suffix('s') == Some(c.last_name())) {
        return format!("did you mean {}?", child.title());
    }
    let elsewhere_called =
        |(other, ours): &&(&str, &str)| *other == name && section.key(ours).is_some();
    if let Some((_, ours)) = FOREIGN.iter().find(elsewhere_called) {
        return format!("here it is called `{ours}`");
    }
    let own = section.keys.iter().map(|k| k.name);
    let names = own.chain(keys::children(section.path).map(Section::last_name));
    if let Some(near) = nearest(name, names) {
        return format!("did you mean `{near}`?");
    }
    match elsewhere {
        Some(other) => format!("`{name}` belongs to {}", other.title()),
        None => "see `trueline check --reference` for all keys".to_owned(),
    }
}

/// The default of a key, read like a file. A required key gets a placeholder, because its absence
/// is already recorded.
pub fn default_of(key: &Key) -> Value {
    match key.preset {
        Preset::Unset(_) => Value::Absent,
        Preset::Value(text) | Preset::Required(text) => read_literal(key, text),
    }
}

/// A value from the TOML text of the schema.
fn read_literal(key: &Key, literal: &str) -> Value {
    let text = format!("x = {literal}");
    let mut problems = Problems::new("schema", &text);
    let outside = Outside {
        variable: &|name| Some(name.to_owned()),
        directory: Path::new("").to_path_buf(),
    };
    let value = DeTable::parse(&text).ok().and_then(|table| {
        let mut reader = ValueReader {
            problems: &mut problems,
            outside: &outside,
        };
        reader.read(key.name, key.kind, table.get_ref().get("x")?)
    });
    // A test reads every literal of the schema, so this never happens.
    value.unwrap_or(Value::Absent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_and_example_of_the_schema_is_read_by_the_reader() {
        for section in SECTIONS {
            for key in section.keys {
                let (Preset::Value(t) | Preset::Required(t) | Preset::Unset(t)) = key.preset;
                let value = read_literal(key, t);
                assert_ne!(value, Value::Absent, "{} {}: {t}", section.path, key.name);
            }
        }
    }

    #[test]
    fn every_child_section_follows_its_parent_and_names_are_unique() {
        for (i, section) in SECTIONS.iter().enumerate().skip(1) {
            let parent = section.parent().unwrap_or("");
            assert!(
                SECTIONS[..i].iter().any(|s| s.path == parent),
                "{}",
                section.path
            );
            for (j, key) in section.keys.iter().enumerate() {
                assert!(section.keys[..j].iter().all(|k| k.name != key.name));
                assert!(keys::children(section.path).all(|c| c.last_name() != key.name));
            }
        }
    }
}
