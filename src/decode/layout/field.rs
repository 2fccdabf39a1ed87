//! A scalar value of a layout, with the bytes in front of it.

use crate::decode::number::{self, Decimal};
use crate::decode::scan::Scanner;
use crate::decode::value::{Found, Kind};
use crate::decode::words;

/// Stands for the slot of a value that is not wanted.
pub(super) const UNWANTED: usize = usize::MAX;
/// Longest name to remember.
const NAME_MAX: usize = 64;

const TRUE: u64 = u32::from_le_bytes(*b"true") as u64;
const NULL: u64 = u32::from_le_bytes(*b"null") as u64;
const FALSE: u64 = u64::from_le_bytes(*b"false\0\0\0");

pub(super) struct LayoutField {
    /// The bytes in front of the value.
    before: Literal,
    /// The bytes in front of the value with the remembered name and its quotes, and the length of
    /// the name.
    name: Option<(Literal, usize)>,
    slot: usize,
    /// A bit for the slot.
    bit: u64,
}

/// Bytes that records have in common.
pub(super) struct Literal {
    /// The first sixteen bytes in two words.
    first: [u64; 2],
    /// The bits of these words that count.
    masks: [u64; 2],
    /// The words that follow, each with the bits that count.
    more: Box<[(u64, u64)]>,
    pub length: usize,
}

/// The findings of fields beside the values.
#[derive(Default)]
pub(super) struct Seen {
    /// By slot, whether the value is the remembered name.
    pub same: u64,
    /// Some value is unusual: it may be a text with escapes.
    pub unusual: bool,
}

impl Literal {
    pub fn new(bytes: &[u8]) -> Literal {
        let mut words: Vec<(u64, u64)> = bytes.chunks(8).map(words::masked).collect();
        words.resize(words.len().max(2), (0, 0));
        let (first, masks) = (words[0], words[1]);
        Literal {
            first: [first.0, masks.0],
            masks: [first.1, masks.1],
            more: words[2..].into(),
            length: bytes.len(),
        }
    }

    /// What follows these bytes; `None` if others are in their place.
    #[inline(always)]
    pub fn strip<'r>(&self, rest: &'r [u8]) -> Option<&'r [u8]> {
        let Some((block, more)) = rest.split_first_chunk::<16>() else {
            return self.strip_end(rest);
        };
        let (a, b) = words::halves(block);
        let [of_a, of_b] = self.masks;
        let differ = ((a ^ self.first[0]) & of_a) | ((b ^ self.first[1]) & of_b);
        if differ != 0 {
            return None;
        }
        match self.more.is_empty() || self.goes_on(more) {
            true => rest.get(self.length..),
            false => None,
        }
    }

    #[inline(always)]
    fn goes_on(&self, mut rest: &[u8]) -> bool {
        for (word, mask) in &self.more {
            if (words::word_or_zeros(rest, 0) ^ word) & mask != 0 {
                return false;
            }
            rest = rest.get(8..).unwrap_or_default();
        }
        true
    }

    /// [`Literal::strip`] near the end of a record.
    #[inline(never)]
    fn strip_end<'r>(&self, rest: &'r [u8]) -> Option<&'r [u8]> {
        let (a, b) = (words::word_or_zeros(rest, 0), words::word_or_zeros(rest, 8));
        let [of_a, of_b] = self.masks;
        let differ = ((a ^ self.first[0]) & of_a) | ((b ^ self.first[1]) & of_b);
        match differ == 0 && self.more.is_empty() {
            true => rest.get(self.length..),
            false => None,
        }
    }
}

impl LayoutField {
    pub fn new(before: &[u8], slot: usize) -> LayoutField {
        LayoutField {
            before: Literal::new(before),
            name: None,
            slot,
            bit: 1u64.checked_shl(slot as u32).unwrap_or(0),
        }
    }

    /// The bit of its slot; 0 if the value is not wanted.
    pub fn bit(&self) -> u64 {
        self.bit
    }

    /// Remembers the text of a record as the name that most records have, if it is a text.
    pub fn remember(&mut self, record: &[u8], found: &[Found]) {
        let found = found.get(self.slot).filter(|f| f.kind == Kind::Text);
        self.name = found.and_then(|f| {
            let begin = f.start.checked_sub(1 + self.before.length)?;
            let length = f.end - f.start;
            let literal = Literal::new(record.get(begin..=f.end)?);
            (length <= NAME_MAX).then_some((literal, length))
        });
    }

    /// Finds the value at the start of `rest`, the remainder of the record, and sets its slot.
    /// Returns what follows; `None` if other bytes precede the value, or if it is invalid.
    #[inline(always)]
    pub fn find<'r>(
        &self,
        record: &[u8],
        rest: &'r [u8],
        lenient: usize,
        found: &mut [Found],
        seen: &mut Seen,
    ) -> Option<&'r [u8]> {
        if let Some((literal, length)) = &self.name
            && let Some(rest) = literal.strip(rest)
        {
            let end = record.len() - rest.len() - 1;
            if let Some(slot) = found.get_mut(self.slot) {
                *slot = Found::new(Kind::Text, end - length, end);
            }
            seen.same |= self.bit;
            return Some(rest);
        }
        let rest = self.before.strip(rest)?;
        let at = record.len() - rest.len();
        let (mut value, rest) = match usual(rest) {
            Some((value, length)) => (value, rest.get(length..)?),
            None => {
                seen.unusual = true;
                // If no value is lenient, `lenient` is not a slot.
                let lenient = self.slot == lenient && self.slot != UNWANTED;
                let (value, end) = other(record, at, lenient)?;
                if let Some(slot) = found.get_mut(self.slot) {
                    *slot = value;
                }
                return record
                    .get(end..)
                    .and_then(|left| rest.get(rest.len() - left.len()..));
            }
        };
        if let Some(slot) = found.get_mut(self.slot) {
            value.start += at;
            value.end += at;
            *slot = value;
        }
        Some(rest)
    }
}

/// Reads a common kind of value at the start of `rest`: a text without escapes, a number without
/// sign and exponent, or a word. Returns the value, with positions relative to `rest`, and its
/// length; `None` leaves it to the scanner.
#[inline(always)]
fn usual(rest: &[u8]) -> Option<(Found, usize)> {
    let (&first, inside) = rest.split_first()?;
    if first == b'"' {
        let length = text(inside)?;
        return Some((Found::new(Kind::Text, 1, 1 + length), length + 2));
    }
    if first.is_ascii_digit() {
        let (read, length) = number(rest)?;
        let mut found = Found::new(Kind::Number, 0, length);
        (found.digits, found.decimals) = (read.digits, read.decimals);
        return Some((found, length));
    }
    let word = words::word_or_zeros(rest, 0);
    let (four, five) = (word & 0xffff_ffff, word & 0xff_ffff_ffff);
    if (four != TRUE) & (five != FALSE) {
        return (four == NULL).then_some((Found::new(Kind::Null, 0, 4), 4));
    }
    // No branch: which of the two it is, is unpredictable.
    let is_false = usize::from(four != TRUE);
    let kind = [Kind::True, Kind::False][is_false];
    Some((Found::new(kind, 0, 4 + is_false), 4 + is_false))
}

/// The length of a text without escapes; `None` for other texts.
#[inline(always)]
fn text(inside: &[u8]) -> Option<usize> {
    let (blocks, _) = inside.as_chunks::<8>();
    let mut length = 0;
    for block in blocks {
        let marks = words::special(u64::from_le_bytes(*block));
        if marks != 0 {
            length += words::before(marks);
            return (inside.get(length) == Some(&b'"')).then_some(length);
        }
        length += 8;
    }
    length += words::before(words::special(words::word_or_zeros(inside, length)));
    (inside.get(length) == Some(&b'"')).then_some(length)
}

/// A number without sign and exponent, of at most nineteen digits, and its length.
#[inline(always)]
fn number(rest: &[u8]) -> Option<(Decimal, usize)> {
    // Most scores begin with it.
    if let Some(part) = rest.strip_prefix(b"0.") {
        let (digits, decimals) = number::digits(part)?;
        let read = Decimal {
            digits,
            decimals: decimals as u8,
        };
        let ends = decimals > 0 && !matches!(part.get(decimals), Some(b'e' | b'E'));
        return ends.then_some((read, decimals + 2));
    }
    let (read, length) = Decimal::read(rest)?;
    let ends = !matches!(rest.get(length), Some(b'e' | b'E'));
    ends.then_some((read, length))
}

/// Any other scalar value of a record, and its end; `None` if it is not one.
#[inline(never)]
fn other(record: &[u8], at: usize, lenient: bool) -> Option<(Found, usize)> {
    let mut s = Scanner { bytes: record, at };
    if matches!(s.peek(), Some(b'{' | b'[')) {
        return None;
    }
    let value = s.value(lenient, 0).ok()?;
    Some((value, s.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_stripped_where_it_stands_and_nowhere_else() {
        let text: Vec<u8> = (1..60u8).collect();
        for length in 0..text.len() {
            let literal = Literal::new(&text[..length]);
            for end in 0..=text.len() {
                let rest = (length <= end).then(|| &text[length..end]);
                assert_eq!(literal.strip(&text[..end]), rest, "{length} {end}");
            }
            for wrong in 0..length {
                let mut other = text.clone();
                other[wrong] ^= 0x80;
                assert_eq!(literal.strip(&other), None, "{length} {wrong}");
            }
        }
    }
}
