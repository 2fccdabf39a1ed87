//! Bits: Rice codes for small numbers, variable bytes for the rest.
//!
//! A Rice code of parameter k writes v as ⌊v/2ᵏ⌋ ones, a zero, and the k low bits of v: within half
//! a bit of the best code where v falls off geometrically with a mean near 2ᵏ. Values far above the
//! others cost [`ESCAPE`] ones and the whole 64 bits, so a bad k is slow but never wrong. Source:
//! R. F. Rice, "Some practical universal noiseless coding techniques" (1979).

use crate::stats::stored::Stored;
use crate::stats::sums::LogSums;

/// Ones that announce a value written in full; with them such a value costs 88 bits.
pub const ESCAPE: u32 = 24;

/// Bytes ended before the value did, or hold something that no writer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt;

/// Writes bits, lowest first.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    held: u64,
    bits: u32,
}

impl Writer {
    /// Continues after bytes already written.
    pub fn after(bytes: Vec<u8>) -> Writer {
        Writer {
            bytes,
            ..Writer::default()
        }
    }

    /// Writes `count` bits, at most 32, of a value that has no other bits.
    #[inline]
    fn bits(&mut self, value: u64, count: u32) {
        self.held |= value.wrapping_shl(self.bits);
        self.bits += count;
        if self.bits >= 32 {
            self.bytes
                .extend_from_slice(&(self.held as u32).to_le_bytes());
            self.held >>= 32;
            self.bits -= 32;
        }
    }

    /// Writes the low `count` bits of `value`, at most 64.
    fn wide(&mut self, value: u64, count: u32) {
        let low = count.min(32);
        self.bits(below(value, low), low);
        self.bits(below(value >> low, count - low), count - low);
    }

    /// Writes `value` in the Rice code of parameter `k`, at most 63.
    #[inline]
    pub fn rice(&mut self, value: u64, k: u32) {
        let ones = value.wrapping_shr(k);
        let count = (ones as u32).wrapping_add(1);
        if ones >= u64::from(ESCAPE) || count + k > 32 {
            // By value; otherwise callers could not keep the fields in registers.
            *self = written_in_parts(std::mem::take(self), value, k);
            return;
        }
        // `ones` ones, then the zero.
        let unary = !u64::MAX.wrapping_shl(count - 1);
        self.bits(unary | below(value, k).wrapping_shl(count), count + k);
    }

    /// The bytes, the last filled up with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        let bytes = self.bits.div_ceil(8) as usize;
        self.bytes
            .extend_from_slice(&self.held.to_le_bytes()[..bytes]);
        self.bytes
    }
}

/// Writes a value that is written in full, or whose code has more than 32 bits.
#[cold]
fn written_in_parts(mut writer: Writer, value: u64, k: u32) -> Writer {
    let ones = value >> k;
    if ones >= u64::from(ESCAPE) {
        writer.bits((1 << ESCAPE) - 1, ESCAPE);
        writer.wide(value, 64);
    } else {
        writer.bits((1 << ones) - 1, ones as u32 + 1);
        writer.wide(value, k);
    }
    writer
}

/// The low `count` bits of a value, fewer than 64.
#[inline]
fn below(value: u64, count: u32) -> u64 {
    value & !u64::MAX.wrapping_shl(count)
}

/// Reads what [`Writer`] wrote.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Inverted, so that a code begins with zeros, which take a step less to count.
    held: u64,
    bits: u32,
}

impl<'a> Reader<'a> {
    /// Reads from the first byte on.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader {
            rest: bytes,
            held: 0,
            bits: 0,
        }
    }

    /// Fills until at least 56 bits are held, at most 63, or all that there are.
    #[inline]
    pub fn fill(&mut self) {
        if let Some(eight) = self.rest.first_chunk::<8>() {
            // A byte that fits only in part is read again, and its bits are then the same.
            self.held |= (!u64::from_le_bytes(*eight)).wrapping_shl(self.bits);
            self.rest = &self.rest[((63 ^ self.bits & 63) / 8) as usize..];
            self.bits |= 56;
        } else {
            (self.rest, self.held, self.bits) = filled(self.rest, self.held, self.bits);
        }
    }

    /// Reads `count` (at most 32) bits.
    fn bits(&mut self, count: u32) -> Result<u64, Corrupt> {
        self.fill();
        if self.bits < count {
            return Err(Corrupt);
        }
        let value = !self.held & ((1 << count) - 1);
        self.held >>= count;
        self.bits -= count;
        Ok(value)
    }

    fn wide(&mut self, count: u32) -> Result<u64, Corrupt> {
        let low = count.min(32);
        let value = self.bits(low)?;
        Ok(value | self.bits(count - low)? << low)
    }

    /// Reads a value in the Rice code of parameter `k`, at most 63. It is fastest if the code is
    /// held whole, as after [`Reader::fill`].
    #[inline]
    pub fn rice(&mut self, k: u32) -> Result<u64, Corrupt> {
        let ones = self.held.trailing_zeros();
        let all = ones.wrapping_add(1).wrapping_add(k);
        if ones >= ESCAPE || all > self.bits {
            let value;
            (value, self.rest, self.held, self.bits) =
                rice_in_parts(self.rest, self.held, self.bits, k)?;
            return Ok(value);
        }
        // No shift is by 64 bits or more: at most 63 are held.
        let low = !self.held.wrapping_shr(ones + 1) & !u64::MAX.wrapping_shl(k);
        self.held = self.held.wrapping_shr(all);
        self.bits -= all;
        Ok(u64::from(ones).wrapping_shl(k) | low)
    }
}

/// What a reader has after filling from fewer than eight bytes. Here and below, fields are passed
/// one by one; otherwise callers could not keep them in registers.
#[cold]
fn filled(mut rest: &[u8], mut held: u64, mut bits: u32) -> (&[u8], u64, u32) {
    while bits < 56
        && let Some((byte, after)) = rest.split_first()
    {
        held |= u64::from(!*byte) << bits;
        bits += 8;
        rest = after;
    }
    (rest, held, bits)
}

/// Reads a value that is written in full, or has more bits than are held.
#[cold]
fn rice_in_parts(
    rest: &[u8],
    held: u64,
    bits: u32,
    k: u32,
) -> Result<(u64, &[u8], u64, u32), Corrupt> {
    let mut reader = Reader { rest, held, bits };
    reader.fill();
    let ones = reader.held.trailing_zeros();
    let value = if ones >= ESCAPE {
        reader.bits(ESCAPE)?;
        reader.wide(64)?
    } else {
        reader.bits(ones + 1)?;
        u64::from(ones) << k | reader.wide(k)?
    };
    Ok((value, reader.rest, reader.held, reader.bits))
}

/// The best parameter for values whose bit lengths are counted in `lengths`.
pub fn best_parameter(lengths: &[u32; 65]) -> u32 {
    let count = |length: usize| lengths.get(length).map_or(0, |&count| u64::from(count));
    let all: u64 = (0..65).map(count).sum();
    // Beyond the longest value each further bit costs a bit.
    let longest = lengths.iter().rposition(|&count| count > 0).unwrap_or(0);
    // Values of at most four bits more than k are written by ones, the others in full.
    let (mut near, mut best) = ((0..4).map(count).sum::<u64>(), (u64::MAX, 0));
    for k in 0..=longest.min(48) {
        near += count(k + 4);
        // A value of `length` bits is on average 3/4 of 2^length.
        let ones = count(k + 1) + 3 * count(k + 2) + 6 * count(k + 3) + 12 * count(k + 4);
        let cost = near * (k as u64 + 1) + ones + (all - near) * (u64::from(ESCAPE) + 64);
        if cost < best.0 {
            best = (cost, k as u32);
        }
    }
    best.1
}

/// Appends `value` in groups of seven bits, lowest first, the high bit saying that more follow.
pub fn write_varint(bytes: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a value off the front of `bytes`.
#[inline]
pub fn read_varint(bytes: &mut &[u8]) -> Result<u128, Corrupt> {
    match bytes.split_first() {
        Some((&byte, rest)) if byte < 0x80 => {
            *bytes = rest;
            Ok(byte.into())
        }
        _ => read_long_varint(bytes),
    }
}

fn read_long_varint(bytes: &mut &[u8]) -> Result<u128, Corrupt> {
    let mut value = 0u128;
    for shift in (0..128).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(Corrupt)?;
        *bytes = rest;
        value |= u128::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Corrupt)
}

/// Reads a varint that is a number of this type.
pub fn read_number<T: TryFrom<u128>>(rest: &mut &[u8]) -> Result<T, Corrupt> {
    T::try_from(read_varint(rest)?).map_err(|_| Corrupt)
}

/// Reads a varint that is a number of events.
pub fn read_count(rest: &mut &[u8]) -> Result<u64, Corrupt> {
    let n: u64 = read_number(rest)?;
    n.is_possible().then_some(n).ok_or(Corrupt)
}

/// Signed to unsigned, small magnitudes to small numbers: 0, −1, 1, −2, … to 0, 1, 2, 3, ….
pub fn zigzag(x: i64) -> u64 {
    (x as u64) << 1 ^ (x >> 63) as u64
}

/// Undoes [`zigzag`].
pub fn unzigzag(x: u64) -> i64 {
    (x >> 1) as i64 ^ -((x & 1) as i64)
}

/// [`zigzag`] for the widest integers.
pub fn zigzag_wide(x: i128) -> u128 {
    (x as u128) << 1 ^ (x >> 127) as u128
}

/// Undoes [`zigzag_wide`].
pub fn unzigzag_wide(x: u128) -> i128 {
    (x >> 1) as i128 ^ -((x & 1) as i128)
}

/// Writes log sums.
pub fn write_logs(bytes: &mut Vec<u8>, logs: &LogSums) {
    for sum in [logs.loss, logs.u_logit, logs.v_logit, logs.v_logit2] {
        write_varint(bytes, zigzag_wide(sum));
    }
}

/// Reads log sums, and advances past them.
pub fn read_logs(rest: &mut &[u8]) -> Result<LogSums, Corrupt> {
    let mut next = || Ok(unzigzag_wide(read_varint(rest)?));
    Ok(LogSums {
        loss: next()?,
        u_logit: next()?,
        v_logit: next()?,
        v_logit2: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(values in proptest::collection::vec((any::<u64>(), 0u32..64, 0u32..64), 0..200)) {
            let values: Vec<(u64, u32)> = values.into_iter().map(|(v, s, k)| (v >> s, k)).collect();
            let mut writer = Writer::default();
            values.iter().for_each(|&(v, k)| writer.rice(v, k));
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            for (v, k) in values {
                prop_assert_eq!(reader.rice(k), Ok(v));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..50), k in 0u32..64) {
            let mut reader = Reader::new(&bytes);
            while reader.rice(k).is_ok() {}
            let mut rest = &bytes[..];
            let _ = read_varint(&mut rest);
        }

        #[test]
        fn signs_survive(x: i64, w: i128) {
            prop_assert_eq!(unzigzag(zigzag(x)), x);
            prop_assert_eq!(unzigzag_wide(zigzag_wide(w)), w);
            let mut bytes = Vec::new();
            write_varint(&mut bytes, zigzag_wide(w));
            prop_assert_eq!(read_varint(&mut &bytes[..]), Ok(zigzag_wide(w)));
        }
    }
}
