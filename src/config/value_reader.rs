//! Reads values of the file, each by the kind of its key.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::DeValue;

use super::interpolate;
use super::problem::{Problems, TextPosition};
use super::scalar::{mismatch, scalar, too_large};
use super::schema::Kind;
use super::units::duration;
use super::value::{Fault, Outside, Placed, Value, WindowValue};

/// How to write a window that is more than a length.
const WINDOW_TABLES: &str = "`{ width = \"5m\", slide = \"30s\" }` or `{ last = 10000 }`";

/// Reads values of one file.
pub struct ValueReader<'r, 'a> {
    /// Problems so far.
    pub problems: &'r mut Problems<'a>,
    /// Variables and files.
    pub outside: &'r Outside<'r>,
}

impl ValueReader<'_, '_> {
    /// Reads a value of a kind; `name` is for messages. `None` after recording a problem.
    pub fn read(&mut self, name: &str, kind: Kind, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let at = self.problems.position(&value.span());
        match kind {
            Kind::List => self.list(name, value).map(Value::List),
            Kind::Map => self.map(name, value).map(Value::Map),
            Kind::Windows => self.windows(name, value).map(Value::Windows),
            _ => {
                let read = match value.get_ref() {
                    DeValue::String(text) => {
                        let (text, interpolated) = self.text(at, text)?;
                        scalar(kind, &text, true, interpolated)
                    }
                    DeValue::Integer(i) if i.radix() == 10 => scalar(kind, i.as_str(), false, true),
                    DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
                        Ok(i) => scalar(kind, &i.to_string(), false, true),
                        Err(_) => Err(too_large()),
                    },
                    DeValue::Float(x) => scalar(kind, x.as_str(), false, true),
                    DeValue::Boolean(b) => scalar(kind, &b.to_string(), false, true),
                    other => Err(mismatch(kind, &described(other))),
                };
                let read = read.map_err(|(what, remedy)| match name {
                    // Budgets have their own syntax.
                    "budget" => (what, "write, for example, \"1 per 30d\"".to_owned()),
                    "brokers" => (what, "write, for example, \"a:9092,b:9092\"".to_owned()),
                    _ => (what, remedy),
                });
                self.note(name, at, read).map(|value| self.placed(value))
            }
        }
    }

    /// Anchors a value in the file: a relative path starts at the directory of the file.
    pub fn placed(&self, value: Value) -> Value {
        match value {
            Value::Path(path) => Value::Path(self.outside.directory.join(path)),
            other => other,
        }
    }

    /// Records the error of reading the value `name`, if any.
    fn note<T>(&mut self, name: &str, at: TextPosition, read: Result<T, Fault>) -> Option<T> {
        read.map_err(|(what, remedy)| self.problems.add(at, format!("`{name}` {what}"), remedy))
            .ok()
    }

    /// Replaces variables. The flag says whether the text had any.
    fn text(&mut self, at: TextPosition, text: &str) -> Option<(String, bool)> {
        match interpolate::interpolate(text, self.outside.variable) {
            Ok(None) => Some((text.to_owned(), false)),
            Ok(Some(replaced)) => Some((replaced, true)),
            Err(fault) => {
                let (what, remedy) = fault.words();
                self.problems.add(at, what, remedy);
                None
            }
        }
    }

    /// A list of non-empty strings; a single string is a list of one.
    fn list(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<Vec<Placed<String>>> {
        let items = match value.get_ref() {
            DeValue::Array(items) => &items[..],
            DeValue::Table(_) => {
                let at = self.problems.position(&value.span());
                let (what, remedy) = mismatch(Kind::List, "a table");
                let remedy = match name {
                    "outcome_map" => "write, for example, [\"fraud=1\"]".to_owned(),
                    _ => remedy,
                };
                return self.note(name, at, Err((what, remedy)));
            }
            _ => std::slice::from_ref(value),
        };
        let mut out = Vec::with_capacity(items.len());
        let mut sound = true;
        for item in items {
            let at = self.problems.position(&item.span());
            match self.read(name, Kind::Text, item) {
                Some(Value::Text(value)) => out.push(Placed { value, at }),
                _ => sound = false,
            }
        }
        sound.then_some(out)
    }

    /// A table of strings; numbers and booleans are used as written.
    fn map(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<BTreeMap<String, Placed<String>>> {
        let at = self.problems.position(&value.span());
        let DeValue::Table(table) = value.get_ref() else {
            let fault = Err(mismatch(Kind::Map, &described(value.get_ref())));
            return self.note(name, at, fault);
        };
        let mut out = BTreeMap::new();
        let mut sound = true;
        for (key, item) in table.iter() {
            let at = self.problems.position(&item.span());
            let text = match item.get_ref() {
                DeValue::String(text) => self.text(at, text).map(|t| t.0),
                DeValue::Integer(i) => Some(i.to_string()),
                DeValue::Float(x) => Some(x.to_string()),
                DeValue::Boolean(b) => Some(b.to_string()),
                other => {
                    let what = format!("`{name}.{}` is {}", key.get_ref(), described(other));
                    let remedy =
                        "write one text; a dotted name needs quotes: `\"a.b\" = \"value\"`";
                    self.problems.add(at, what, remedy);
                    None
                }
            };
            match text {
                Some(value) => drop(out.insert(key.get_ref().to_string(), Placed { value, at })),
                None => sound = false,
            }
        }
        sound.then_some(out)
    }

    fn windows(
        &mut self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<Vec<Placed<WindowValue>>> {
        let at = self.problems.position(&value.span());
        let DeValue::Array(items) = value.get_ref() else {
            let fault = Err(mismatch(Kind::Windows, &described(value.get_ref())));
            return self.note(name, at, fault);
        };
        let mut out = Vec::with_capacity(items.len());
        let mut sound = true;
        for item in items.iter() {
            let at = self.problems.position(&item.span());
            match self.window(name, item) {
                Some(value) => out.push(Placed { value, at }),
                None => sound = false,
            }
        }
        sound.then_some(out)
    }

    /// A length of time above zero, as written (without blanks) and in milliseconds.
    fn length(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<(String, i64)> {
        let at = self.problems.position(&value.span());
        let text = match value.get_ref() {
            DeValue::String(text) => self.text(at, text)?.0,
            other => {
                let fault = Err(mismatch(Kind::Duration, &described(other)));
                return self.note(name, at, fault);
            }
        };
        let length = match duration(&text) {
            Ok(0) => Err((
                format!("has \"{text}\", which is no time at all"),
                "write a length above zero, such as \"5m\"".to_owned(),
            )),
            read => read.map(|ms| (text.split_whitespace().collect(), ms)),
        };
        let length = length.map_err(|(what, remedy)| match name {
            "windows" => (what, format!("{remedy}, or {WINDOW_TABLES}")),
            _ => (what, remedy),
        });
        self.note(name, at, length)
    }

    /// One window: a length, or a table.
    fn window(&mut self, name: &str, item: &Spanned<DeValue<'_>>) -> Option<WindowValue> {
        let DeValue::Table(table) = item.get_ref() else {
            let (name, width_ms) = self.length(name, item)?;
            return Some(WindowValue::Time {
                name,
                width_ms,
                slide_ms: None,
            });
        };
        let at = self.problems.position(&item.span());
        let (mut width, mut slide, mut last) = (None, None, None);
        let mut sound = true;
        let count = Kind::Integer {
            low: 1,
            high: i64::MAX,
        };
        for (key, value) in table.iter() {
            let key_at = self.problems.position(&key.span());
            let name = key.get_ref().as_ref();
            sound &= match name {
                "width" => keep(&mut width, self.length(name, value)),
                "slide" => keep(&mut slide, self.length(name, value)),
                "last" => keep(&mut last, self.read(name, count, value)),
                other => {
                    let what = format!("unknown key `{other}` in an entry of `windows`");
                    let remedy = "a window has `width` and `slide`, or `last`";
                    self.problems.add(key_at, what, remedy);
                    false
                }
            };
        }
        if !sound {
            return None;
        }
        let entry = match (width, slide, last) {
            (Some((name, width_ms)), slide, None) => Ok(WindowValue::Time {
                name,
                width_ms,
                slide_ms: slide.map(|s| s.1),
            }),
            (None, None, Some(Value::Integer(last))) => Ok(WindowValue::Last(last.unsigned_abs())),
            _ => Err((
                "has a window that is neither a length nor a count".to_owned(),
                format!("write {WINDOW_TABLES}"),
            )),
        };
        self.note(name, at, entry)
    }
}

/// Stores a value if it could be read, and returns whether it could.
fn keep<T>(slot: &mut Option<T>, read: Option<T>) -> bool {
    *slot = read;
    slot.is_some()
}

/// Describes a value of the file for messages: `a table`, `text "x"`.
fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("text \"{text}\""),
        DeValue::Integer(i) => i.to_string(),
        DeValue::Float(x) => x.to_string(),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
