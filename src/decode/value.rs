//! The values of a record: where the scanner found them, how every format passes them to the
//! checks, and why a record is not JSON.

use super::number::{Decimal, Number};

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

/// A text of a record. It is UTF-8, because the record was checked as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    #[inline]
    pub fn as_str(self) -> &'a str {
        std::str::from_utf8(self.0).unwrap_or_default()
    }
}

impl<'a> Value<'a> {
    /// The value of a kind that is written as `span`; a text comes without quotes and escapes.
    #[inline]
    pub(super) fn of(kind: Kind, span: &'a [u8], read: Option<Decimal>) -> Value<'a> {
        // Invalid UTF-8 was refused before.
        let text = || std::str::from_utf8(span).unwrap_or_default();
        match kind {
            Kind::Missing => Value::Missing,
            Kind::Null => Value::Null,
            Kind::True | Kind::False => Value::Bool(kind == Kind::True),
            Kind::Number => Value::Number(Number::new(span, read)),
            Kind::NotFinite => Value::NotFinite(text()),
            Kind::Text | Kind::EscapedText => Value::Text(Text(span)),
            Kind::Array => Value::Array(text()),
            Kind::Object => Value::Object(text()),
        }
    }

    /// The text to show in a message.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Missing,
    Null,
    True,
    False,
    Number,
    /// `NaN`, `Infinity` or `-Infinity`; only within the prediction.
    NotFinite,
    /// The span excludes the quotes.
    Text,
    /// Text with escapes. The span excludes the quotes.
    EscapedText,
    Array,
    Object,
}

/// Kind and position of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    /// The digits of a number that was already read; valid unless `decimals` is [`UNREAD`].
    pub digits: u64,
    pub decimals: u8,
}

/// Stands for the number of decimals of a number that was not read.
const UNREAD: u8 = u8::MAX;

impl Found {
    pub const MISSING: Found = Found::new(Kind::Missing, 0, 0);

    #[inline(always)]
    pub const fn new(kind: Kind, start: usize, end: usize) -> Found {
        Found {
            kind,
            start,
            end,
            digits: 0,
            decimals: UNREAD,
        }
    }

    /// The value of a number that was already read.
    #[inline(always)]
    pub fn read(&self) -> Option<Decimal> {
        let (digits, decimals) = (self.digits, self.decimals);
        (decimals != UNREAD).then_some(Decimal { digits, decimals })
    }
}

#[derive(Clone, Copy)]
pub(super) struct Slots<'a> {
    pub found: &'a [Found],
    /// Unescaped strings, one per slot; set only for texts with escapes.
    pub unescaped: &'a [String],
    /// The text that the positions refer to.
    pub bytes: &'a [u8],
}

impl<'a> Values<'a> for Slots<'a> {
    #[inline(always)]
    fn value(&self, slot: usize) -> Value<'a> {
        let f = &self.found[slot];
        let span = || self.bytes.get(f.start..f.end).unwrap_or_default();
        match f.kind {
            Kind::Text => Value::Text(Text(span())),
            Kind::Number => Value::Number(Number::new(span(), f.read())),
            Kind::EscapedText => Value::Text(Text(self.unescaped[slot].as_bytes())),
            kind => Value::of(kind, span(), None),
        }
    }
}

/// Where and why a record is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub at: usize,
    pub what: What,
}

impl Fault {
    /// The same fault, with its position counted from `start` bytes before the text.
    pub fn behind(self, start: usize) -> Fault {
        Fault {
            at: start + self.at,
            ..self
        }
    }
}

/// Why a record is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Expected(&'static str),
    /// A wanted field, or the object that contains it, appears a second time.
    Twice,
    ControlCharacter,
    BadEscape,
    TooDeep,
    TrailingBytes,
}
