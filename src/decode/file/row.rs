//! The rows of a file, and why a row or the whole file cannot be read.

use crate::collect::{Event, OutcomeRecord, Reason};
use crate::decode::options::DecodeOptionsError;
use crate::decode::rejection::Rejection;
use std::path::Path;

/// Content of a row.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// A prediction, possibly with its outcome.
    Event(Event<'a>),
    /// A separate outcome.
    Outcome(OutcomeRecord<'a>),
}

impl Content<'_> {
    /// Its event time.
    pub fn time_ms(&self) -> i64 {
        match self {
            Content::Event(event) => event.time_ms,
            Content::Outcome(record) => record.time_ms,
        }
    }
}

/// A line or row of a file: its number, from 1, and its content or rejection.
pub struct Row<'a> {
    /// Line on which it starts.
    pub line: u64,
    /// Its content.
    pub content: Result<Content<'a>, Rejection>,
}

/// The rows of a file, one at a time.
pub(in crate::decode) trait Rows {
    /// Advances to the next row; `false` at the end.
    fn advance(&mut self, path: &Path) -> Result<bool, FileError>;

    fn row(&mut self) -> Row<'_>;

    /// Keeps the current row in memory, after the rows kept before.
    fn keep(&mut self);

    /// Makes a kept row the current one. Each row can be recalled once.
    fn recall(&mut self, kept: usize);

    /// Share of the rows that were read, if the file has their number.
    fn share(&self) -> Option<f64> {
        None
    }
}

/// Why a file cannot be read. The text names the file and, if known, the line.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Opening or reading failed, or the compression is damaged.
    #[error("{0}")]
    Io(String),
    /// The options do not fit the file: a column is missing.
    #[error(transparent)]
    Options(#[from] DecodeOptionsError),
}

pub(super) fn failed(path: &Path, line: u64, error: &dyn std::fmt::Display) -> FileError {
    FileError::Io(format!("{}:{line}: {error}", path.display()))
}

/// The rejection of a row in a file read neither for events nor for outcomes, which cannot happen.
pub(super) fn nothing() -> Rejection {
    Rejection::new(
        Reason::MissingField,
        "nothing is looked for in the file".to_owned(),
    )
}
