//! Typed access to a record.

use crate::stats::tolerance::Tolerance;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use std::path::Path;

use super::document::Record;
use super::problem::TextPosition;
use super::value::{Placed, Value};

/// Typed access to a record. The schema defines the kind of every key and the reader enforces it,
/// so a value of another kind is an error in the schema; the zero of the kind replaces it.
impl Record {
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match &self.entry(key).value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn owned(&self, key: &str) -> Option<String> {
        self.text(key).map(str::to_owned)
    }

    /// The variant that a word of the schema names; a word is missing if it has no default.
    pub(super) fn word<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Option<T> {
        let word: StrDeserializer<'_, Error> = self.text(key)?.into_deserializer();
        T::deserialize(word).ok()
    }

    pub(super) fn path(&self, key: &str) -> Option<&Path> {
        match &self.entry(key).value {
            Value::Path(path) => Some(path),
            _ => None,
        }
    }

    pub(super) fn milliseconds(&self, key: &str) -> i64 {
        match self.entry(key).value {
            Value::Duration(ms) => ms,
            _ => 0,
        }
    }

    pub(super) fn number(&self, key: &str) -> f64 {
        match self.entry(key).value {
            Value::Number(x) => x,
            _ => 0.0,
        }
    }

    pub(super) fn integer(&self, key: &str) -> Option<i64> {
        match self.entry(key).value {
            Value::Integer(i) => Some(i),
            _ => None,
        }
    }

    /// A count, as wide as the machine allows.
    pub(super) fn count(&self, key: &str) -> usize {
        let i = self.integer(key).unwrap_or(0);
        usize::try_from(i).unwrap_or(usize::MAX)
    }

    pub(super) fn bytes(&self, key: &str) -> usize {
        match self.entry(key).value {
            Value::Bytes(n) => usize::try_from(n).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    pub(super) fn tolerance(&self, key: &str) -> Tolerance {
        match self.entry(key).value {
            Value::Tolerance(tolerance) => tolerance,
            _ => Tolerance::default(),
        }
    }

    pub(super) fn truth(&self, key: &str) -> bool {
        self.entry(key).value == Value::Truth(true)
    }

    pub(super) fn list(&self, key: &str) -> &[Placed<String>] {
        match &self.entry(key).value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub(super) fn strings(&self, key: &str) -> Vec<String> {
        self.list(key).iter().map(|p| p.value.clone()).collect()
    }

    /// The position of the first of these keys in the file.
    pub(super) fn given_position(&self, keys: &[&str]) -> Option<TextPosition> {
        let mut entries = keys.iter().map(|key| self.entry(key));
        entries.find(|entry| entry.given).map(|entry| entry.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::join::Repeated;
    use crate::config::keys;
    use crate::config::options::{Input, Verdicts};
    use crate::config::schema::Kind;
    use crate::kafka::Truncated;
    use crate::stats::evaluation::{DecideBy, DiscreteMode, Extent};
    use crate::stats::tcal::Sharing;
    use crate::telemetry::log::Format;

    /// Checks each word of a key.
    fn check<T: for<'a> Deserialize<'a>>(section: &str, key: &str) {
        let key = keys::section(section).and_then(|s| s.key(key));
        let Some(Kind::Choice(words)) = key.map(|key| key.kind) else {
            panic!("{section} has no such choice");
        };
        for word in words {
            let read: StrDeserializer<'_, Error> = word.into_deserializer();
            assert!(T::deserialize(read).is_ok(), "{word}");
        }
    }

    #[test]
    fn every_word_of_a_choice_is_a_variant() {
        check::<Input>("source", "input");
        check::<Truncated>("source", "on_truncated");
        check::<Repeated>("source.outcomes", "repeated");
        check::<DecideBy>("model.test", "decide_by");
        check::<Sharing>("model.test", "sharing");
        check::<DiscreteMode>("model.test", "discrete");
        check::<Extent>("model.test", "distances");
        check::<Verdicts>("state", "verdicts");
        check::<Format>("log", "format");
    }
}
