//! The values of a record, as every format hands them to the checks.

use super::number::Number;

/// The value of a wanted field, borrowed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Missing,
    Null,
    Bool(bool),
    /// A number in the grammar of JSON.
    Number(Number<'a>),
    NotFinite(&'a str),
    /// Text without quotes and escapes.
    Text(Text<'a>),
    /// A checked JSON array with its brackets.
    Array(&'a str),
    /// A checked JSON object with its braces.
    Object(&'a str),
    /// A CSV cell, which the check interprets.
    Cell(&'a str),
}

/// The values of a record, by slot.
pub(super) trait Values<'a> {
    fn value(&self, slot: usize) -> Value<'a>;
}

impl<'a, F: Fn(usize) -> Value<'a>> Values<'a> for F {
    #[inline]
    fn value(&self, slot: usize) -> Value<'a> {
        self(slot)
    }
}

/// A text of a record, which is UTF-8, because the record was checked as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    #[inline]
    pub fn as_str(self) -> &'a str {
        std::str::from_utf8(self.0).unwrap_or_default()
    }
}

impl<'a> Value<'a> {
    /// As a message shows it.
    pub(super) fn shown(self) -> &'a str {
        match self {
            Value::Missing | Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(n) => n.text(),
            Value::Text(t) => t.as_str(),
            Value::NotFinite(t) | Value::Array(t) | Value::Object(t) | Value::Cell(t) => t,
        }
    }
}
