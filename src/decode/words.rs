//! Operations on words of eight bytes, for the scanner, the layouts and the conversions.
//!
//! A word holds eight bytes of a record, the first in its lowest byte. Marks lie in the top bit of
//! a byte. The usual borrow trick marks the first byte of a kind exactly; marks above the first may
//! be false and are ignored.

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;
const ZEROS: u64 = ONES * b'0' as u64;

/// The word at `at`; `None` if fewer than eight bytes are left.
#[inline(always)]
pub(super) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*chunk))
}

#[inline(always)]
pub(super) fn halves(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    (both as u64, (both >> 64) as u64)
}

/// The word at `at`, filled with zeros at the end of the record; valid records hold no zero bytes.
#[inline(always)]
pub(super) fn word_or_zeros(bytes: &[u8], at: usize) -> u64 {
    match word_at(bytes, at) {
        Some(word) => word,
        None => last_word(bytes, at),
    }
}

#[inline(always)]
fn last_word(bytes: &[u8], at: usize) -> u64 {
    let left = bytes.len().saturating_sub(at) as u32;
    match bytes.last_chunk::<8>() {
        Some(last) => {
            let word = u64::from_le_bytes(*last);
            word.checked_shr(64 - 8 * left).unwrap_or(0)
        }
        None => masked(bytes.get(at..).unwrap_or_default()).0,
    }
}

/// Number of bytes before the first mark; eight if there is none.
#[inline(always)]
pub(super) fn before(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

/// At most eight bytes as a word, and the mask of its bits that count.
pub(super) fn masked(bytes: &[u8]) -> (u64, u64) {
    let (mut word, mut mask) = ([0; 8], [0; 8]);
    for (i, &byte) in bytes.iter().take(8).enumerate() {
        (word[i], mask[i]) = (byte, u8::MAX);
    }
    (u64::from_le_bytes(word), u64::from_le_bytes(mask))
}

/// Marks each byte that ends or breaks a string: a quote, a backslash, or a byte below 0x20.
#[inline(always)]
pub(super) fn special(word: u64) -> u64 {
    // With its second bit inverted a quote is 0x20 and follows the control characters; a space is
    // 0x22.
    let low = (word ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let slash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (low | slash) & !word & TOPS
}

/// Marks each byte that is not a digit; all marks are exact, because no sum carries into the next
/// byte.
#[inline(always)]
pub(super) fn no_digit(word: u64) -> u64 {
    let digit = word ^ ZEROS;
    (((digit & !TOPS) + ONES * (0x80 - 10)) | digit) & TOPS
}

/// Number of digits starting at `at`.
#[inline(always)]
pub(super) fn digits_at(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while let Some(word) = word_at(bytes, end) {
        let marks = no_digit(word);
        if marks != 0 {
            return end + before(marks) - at;
        }
        end += 8;
    }
    let rest = bytes.get(end..).unwrap_or_default();
    let more = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    end + more - at
}

/// The number that eight digits form, each byte given as its value.
#[inline(always)]
fn eight(values: u64) -> u64 {
    // Combines pairs, then fours, then all eight: each step adds 10, 100 or 10,000 times the lower
    // half.
    let pairs = (values.wrapping_mul(10 * 0x100 + 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 * 0x1_0000 + 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 * 0x1_0000_0000 + 1) >> 32
}

/// The number formed by the digits at the start of a word, and their count.
#[inline(always)]
pub(super) fn leading_digits(word: u64) -> (u64, usize) {
    let marks = no_digit(word);
    let n = before(marks);
    // The digits move to the top of the word, where the last digit must be, with zeros below them.
    let values = (word ^ ZEROS).checked_shl(64 - 8 * n as u32);
    (eight(values.unwrap_or(0)), n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_is_no_digit_is_marked_exactly() {
        for byte in 0..=255u8 {
            for place in 0..8 {
                let mut w = *b"90123459";
                w[place] = byte;
                let marks = no_digit(u64::from_le_bytes(w));
                let expected = if byte.is_ascii_digit() {
                    0
                } else {
                    0x80 << (8 * place)
                };
                assert_eq!(marks, expected, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn the_first_special_byte_of_a_word_is_marked_exactly() {
        for byte in 0..=255u8 {
            for place in 0..8 {
                let mut w = [b'a'; 8];
                w[place] = byte;
                let is = byte < 0x20 || byte == b'"' || byte == b'\\';
                let marks = special(u64::from_le_bytes(w));
                assert_eq!(marks != 0, is, "{byte}");
                if is {
                    assert_eq!(before(marks), place);
                }
            }
        }
    }

    #[test]
    fn digits_are_counted_and_read_as_the_standard_library_reads_them() {
        let all = "9876543210123456789";
        for from in 0..all.len() {
            for to in from..=all.len() {
                let text = &all[from..to];
                for after in ["", ",", "}}}}}}}}}", "x1", "\u{e9}"] {
                    let bytes = format!("x{text}{after}");
                    assert_eq!(digits_at(bytes.as_bytes(), 1), text.len(), "{bytes}");
                    let n = text.len().min(8);
                    let read = (text[..n].parse().unwrap_or(0), n);
                    let word = word_or_zeros(bytes.as_bytes(), 1);
                    assert_eq!(leading_digits(word), read, "{bytes}");
                }
            }
        }
    }
}
