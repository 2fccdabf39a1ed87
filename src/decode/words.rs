//! Eight bytes at a time: what the scanner, the layouts and the conversions ask of a word.
//!
//! A word holds eight bytes of a record, the first in its lowest byte. Marks lie in the top bit of a byte.
//! The usual borrow trick marks the first byte of a kind exactly; marks above the first may be false and
//! are ignored.

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;
const ZEROS: u64 = ONES * b'0' as u64;

/// The word at `at`; `None` where fewer than eight bytes are left.
#[inline(always)]
pub(super) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*chunk))
}

/// The word at `at`, filled up with quotes at the end.
#[inline(always)]
pub(super) fn word_or_quotes(bytes: &[u8], at: usize) -> u64 {
    word_at(bytes, at).unwrap_or_else(|| {
        let rest = bytes.get(at..).unwrap_or_default();
        let mut word = [b'"'; 8];
        word[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(word)
    })
}

/// Number of bytes before the first mark.
#[inline(always)]
pub(super) fn before(marks: u64) -> usize {
    (marks.trailing_zeros() / 8) as usize
}

/// Marks each byte that ends or breaks a string: a quote, a backslash, or below 0x20.
#[inline(always)]
pub(super) fn special(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let slash = word ^ (ONES * b'\\' as u64);
    let zero = |v: u64| v.wrapping_sub(ONES) & !v;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (zero(quote) | zero(slash) | control) & TOPS
}

/// Marks each byte that is no digit, every one exactly: no sum carries into the next byte.
#[inline(always)]
pub(super) fn no_digit(word: u64) -> u64 {
    let digit = word ^ ZEROS;
    (((digit & !TOPS) + ONES * (0x80 - 10)) | digit) & TOPS
}

/// Number of digits from `at` on.
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

/// The number that eight digits write.
#[inline(always)]
fn eight(word: u64) -> u64 {
    // Pairs, then fours, then all: each step adds ten, a hundred, ten thousand times the lower half.
    let pairs = ((word ^ ZEROS).wrapping_mul(10 * 0x100 + 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 * 0x1_0000 + 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 * 0x1_0000_0000 + 1) >> 32
}

/// The number that these digits write; `None` if one is no digit, there is none, or there are more than 19.
#[inline(always)]
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let (words, rest) = digits.as_chunks::<8>();
    let (mut n, mut wrong) = (0, 0);
    for word in words {
        let word = u64::from_le_bytes(*word);
        wrong |= no_digit(word);
        n = n * 100_000_000 + eight(word);
    }
    if wrong != 0 {
        return None;
    }
    for &b in rest {
        let digit = b.wrapping_sub(b'0');
        wrong |= u64::from(digit > 9);
        n = n * 10 + u64::from(digit & 15);
    }
    (wrong == 0).then_some(n)
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
                assert_eq!(number(text.as_bytes()), text.parse().ok(), "{text}");
                for after in ["", ",", "}}}}}}}}}"] {
                    let bytes = format!("x{text}{after}");
                    assert_eq!(digits_at(bytes.as_bytes(), 1), text.len(), "{bytes}");
                }
            }
        }
        assert_eq!(number(b"12345678901234567890"), None);
        for wrong in ["1234567x", "12345678x", "-1", "1.5", "+", ":", "/"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
