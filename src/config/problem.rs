//! A problem of a configuration file: its position, its description and its remedy.
//!
//! All problems of a file are reported, not only the first, so that five typing errors take one run
//! and not five. A message has the form `file:line:column: problem; remedy`, which editors can jump
//! to. Lines and columns count from 1, columns in characters.

use std::ops::Range;

/// A line and a column of a file, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl TextPosition {
    /// The first character: the position of anything missing from the whole file.
    pub const START: TextPosition = TextPosition { line: 1, column: 1 };
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{}:{}: {what}; {remedy}", at.line, at.column)]
pub struct Problem {
    /// Name of the file as given.
    pub file: String,
    /// Position in the file.
    pub at: TextPosition,
    /// Description, which names the key or value.
    pub what: String,
    /// Remedy.
    pub remedy: String,
}

/// The problems of one file so far. Also converts byte spans to positions.
#[derive(Debug)]
pub struct Problems<'a> {
    file: &'a str,
    text: &'a str,
    found: Vec<Problem>,
    broken: bool,
}

impl<'a> Problems<'a> {
    /// No problems yet in `text`, which messages call `file`.
    pub fn new(file: &'a str, text: &'a str) -> Problems<'a> {
        Problems {
            file,
            text,
            found: Vec::new(),
            broken: false,
        }
    }

    /// The position of the first byte of a span, which may end beyond the text.
    pub fn position(&self, span: &Range<usize>) -> TextPosition {
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        TextPosition {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// Records a problem.
    pub fn add(&mut self, at: TextPosition, what: impl Into<String>, remedy: impl Into<String>) {
        self.found.push(Problem {
            file: self.file.to_owned(),
            at,
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    /// Records that the file is not TOML, so that nothing else can be checked.
    pub fn add_syntax(
        &mut self,
        at: TextPosition,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.broken = true;
        self.add(at, what, remedy);
    }

    /// Whether the file is not TOML.
    pub fn broken(&self) -> bool {
        self.broken
    }

    /// Whether there is no problem so far.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether there is a problem at this place.
    pub fn has(&self, at: TextPosition) -> bool {
        self.found.iter().any(|problem| problem.at == at)
    }

    /// Number of problems so far.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// All problems in the order of the file.
    pub fn into_sorted(mut self) -> Vec<Problem> {
        self.found
            .sort_by(|a, b| (a.at, &a.what).cmp(&(b.at, &b.what)));
        self.found.dedup();
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let problems = Problems::new("t.toml", "ä = 1\nbb = 2\n");
        assert_eq!(problems.position(&(0..1)), TextPosition::START);
        assert_eq!(
            problems.position(&(3..4)),
            TextPosition { line: 1, column: 3 }
        );
        assert_eq!(
            problems.position(&(7..8)),
            TextPosition { line: 2, column: 1 }
        );
        assert_eq!(
            problems.position(&(99..100)),
            TextPosition { line: 3, column: 1 }
        );
    }

    #[test]
    fn a_span_inside_a_character_is_the_place_of_that_character() {
        let problems = Problems::new("t.toml", "ä");
        assert_eq!(problems.position(&(1..1)), TextPosition::START);
    }
}
