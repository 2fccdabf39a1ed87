//! Writes values of a binary format as text, so that they are checked like JSON.
//!
//! Every check of a value and its error text exists once, in [`super::shape`], which reads JSON
//! notation. So a reader of another format writes only the wanted values in that notation: numbers
//! as the shortest decimal that yields the same double (Adams 2018, Ryū), text unchanged, and
//! arrays, maps and records as JSON. This preserves the bits of a score, as a property test checks,
//! and costs about 40 ns per number. A 32-bit float is widened first, which is exact although its
//! decimal looks odd (0.1 becomes 0.10000000149011612).
//!
//! The text has a budget. Field names come from the schema but are written for each message, so an
//! array of empty messages of two bytes could ask for gigabytes.

use super::value::{Found, Kind};
use std::fmt::Write;

/// Free budget of text for the wanted values of each record, in bytes.
const TEXT_FREE: usize = 1 << 20;
/// Additional bytes of text per byte of the record; a value without names takes at most six.
const TEXT_RATIO: usize = 8;

/// Why a record is rejected if its values need more text.
pub(super) const TOO_MUCH_TEXT: &str = "wanted fields that are far longer as text than the record";

/// Bytes of text that the wanted values of this record may take.
pub(super) fn text_budget(record: &[u8]) -> usize {
    TEXT_FREE.saturating_add(record.len().saturating_mul(TEXT_RATIO))
}

/// Collects the values of the slots.
pub(super) struct Sink<'s> {
    pub found: &'s mut [Found],
    pub text: &'s mut String,
}

impl Sink<'_> {
    /// Stores the value that `write` writes for a slot.
    #[inline]
    pub fn put<E>(
        &mut self,
        slot: usize,
        write: impl FnOnce(&mut String) -> Result<Kind, E>,
    ) -> Result<(), E> {
        let start = self.text.len();
        let kind = write(self.text)?;
        self.found[slot] = Found::new(kind, start, self.text.len());
        Ok(())
    }
}

#[inline]
pub(super) fn float(x: f64, text: &mut String) -> Kind {
    if x.is_finite() {
        text.push_str(ryu::Buffer::new().format_finite(x));
        return Kind::Number;
    }
    text.push_str(if x.is_nan() {
        "NaN"
    } else if x > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    });
    Kind::NotFinite
}

#[inline]
pub(super) fn integer(i: impl itoa::Integer, text: &mut String) -> Kind {
    text.push_str(itoa::Buffer::new().format(i));
    Kind::Number
}

#[inline]
pub(super) fn truth(b: bool, text: &mut String) -> Kind {
    text.push_str(if b { "true" } else { "false" });
    if b { Kind::True } else { Kind::False }
}

pub(super) fn null(text: &mut String) -> Kind {
    text.push_str("null");
    Kind::Null
}

/// Writes text, with quotes if it is inside an array or object.
#[inline]
pub(super) fn string(s: &str, quoted: bool, text: &mut String) -> Kind {
    if !quoted {
        text.push_str(s);
        return Kind::Text;
    }
    text.push('"');
    for c in s.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            // Writing to a string does not fail.
            c if c < ' ' => _ = write!(text, "\\u{:04x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text.push('"');
    Kind::Text
}

/// Writes bytes that are text; otherwise `None`, or null inside an array or object.
pub(super) fn bytes(bytes: &[u8], quoted: bool, text: &mut String) -> Option<Kind> {
    match std::str::from_utf8(bytes) {
        Ok(s) => Some(string(s, quoted, text)),
        Err(_) => quoted.then(|| null(text)),
    }
}

/// The message for bytes that are not text.
pub(super) const NOT_TEXT: &str = "bytes in a wanted field that are not text";

/// A comma, unless the array or object was just opened.
pub(super) fn comma(text: &mut String) {
    if !text.ends_with(['[', '{']) {
        text.push(',');
    }
}

/// Begins a member of an object: a comma if needed, and the key.
pub(super) fn key(name: &str, text: &mut String) {
    comma(text);
    string(name, true, text);
    text.push(':');
}

/// Writes `unscaled · 10^(−scale)`.
pub(super) fn decimal(unscaled: i128, scale: usize, text: &mut String) -> Kind {
    if unscaled < 0 {
        text.push('-');
    }
    let digits = format!("{:0>1$}", unscaled.unsigned_abs(), scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    text.push_str(whole);
    if !part.is_empty() {
        text.push('.');
        text.push_str(part);
    }
    Kind::Number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut String) -> Kind) -> String {
        let mut text = String::new();
        write(&mut text);
        text
    }

    #[test]
    fn values_are_written_in_the_notation_of_json() {
        assert_eq!(written(|t| float(0.1, t)), "0.1");
        assert_eq!(written(|t| float(1e-300, t)), "1e-300");
        assert_eq!(
            written(|t| float(f64::from(0.1f32), t)),
            "0.10000000149011612"
        );
        assert_eq!(written(|t| float(f64::NEG_INFINITY, t)), "-Infinity");
        assert_eq!(
            written(|t| string("a\"\\\n\u{1}é", true, t)),
            "\"a\\\"\\\\\\u000a\\u0001é\""
        );
        assert_eq!(written(|t| decimal(-5, 2, t)), "-0.05");
        assert_eq!(written(|t| decimal(12345, 2, t)), "123.45");
        assert_eq!(written(|t| decimal(7, 0, t)), "7");
    }
}
