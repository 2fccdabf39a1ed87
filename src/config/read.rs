//! Typed access to a record.

use crate::stats::tolerance::Tolerance;
use std::path::Path;

use super::document::Record;
use super::problem::Place;
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

    /// A size.
    pub(super) fn bytes(&self, key: &str) -> usize {
        match self.entry(key).value {
            Value::Bytes(n) => usize::try_from(n).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// A tolerance.
    pub(super) fn tolerance(&self, key: &str) -> Tolerance {
        match self.entry(key).value {
            Value::Tolerance(tolerance) => tolerance,
            _ => Tolerance::default(),
        }
    }

    /// A switch.
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
    pub(super) fn given_place(&self, keys: &[&str]) -> Option<Place> {
        let mut entries = keys.iter().map(|key| self.entry(key));
        entries.find(|entry| entry.given).map(|entry| entry.at)
    }
}
