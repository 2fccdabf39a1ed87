//! Values of the file, stored with their position.
//!
//! [`super::models`] and [`super::sources`] check what one value alone cannot show (two windows of
//! the same length, a topic that is its own dead-letter topic), and need the position again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::problem::TextPosition;
use crate::stats::tolerance::Tolerance;

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Its position.
    pub at: TextPosition,
}

/// One entry of a list of windows.
#[derive(Debug, Clone, PartialEq)]
pub enum WindowValue {
    /// A length of event time, and its own slide if it has one, in milliseconds.
    Time {
        /// Length as written, which names the window in labels.
        name: String,
        /// Length.
        width_ms: i64,
        /// Slide, if given.
        slide_ms: Option<i64>,
    },
    /// The newest panes with this number of events.
    Last(u64),
}

/// A value of some [`Kind`](super::schema::Kind).
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Missing, without a default.
    Absent,
    /// `Text`, `Secret`, `Choice`.
    Text(String),
    /// `Path`, as written.
    Path(PathBuf),
    /// `Address`.
    Address(SocketAddr),
    /// `Integer`.
    Integer(i64),
    /// `Number`.
    Number(f64),
    /// `Truth`.
    Truth(bool),
    /// `Duration`, milliseconds.
    Duration(i64),
    /// `Bytes`.
    Bytes(u64),
    /// `Tolerance`.
    Tolerance(Tolerance),
    /// `List`.
    List(Vec<Placed<String>>),
    /// `Map`.
    Map(BTreeMap<String, Placed<String>>),
    /// `Windows`.
    Windows(Vec<Placed<WindowValue>>),
}

/// The world outside the file: environment variables, and files with secrets.
pub struct Outside<'a> {
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The directory of the configuration file, where relative paths start.
    pub directory: PathBuf,
}

impl Outside<'static> {
    /// No variables; relative paths start at the working directory.
    pub fn nothing() -> Outside<'static> {
        Outside {
            variable: &|_| None,
            directory: PathBuf::from("."),
        }
    }
}

/// A problem of one value, and its remedy.
pub(super) type Fault = (String, String);

/// The candidate nearest to `name`, if at most two letters in five are dropped, added, changed or
/// swapped. That corrects `dgo` and `lateness_ms` but does not suggest `group` for `port` or
/// `latest` for `oldest`.
pub fn nearest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const LIKE_ENOUGH: f64 = 0.6;
    let lower = name.to_lowercase();
    let likeness = |c: &str| strsim::normalized_damerau_levenshtein(&lower, &c.to_lowercase());
    candidates
        .map(|c| (likeness(c), c))
        .filter(|(likeness, _)| *likeness >= LIKE_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}
