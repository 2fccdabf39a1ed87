//! Numbers of a stored state, checked where they are read.
//!
//! Numbers that no events can make may have a valid checksum: anyone who can write a file or a
//! record can compute one. A sum of such numbers would leave its integer long after they were read,
//! and stop the program. So reading refuses them.

#[cfg(feature = "serde")]
use serde::{Deserialize, Deserializer, de::Error};
use std::collections::VecDeque;

/// Most events that are counted: a million a second for nine years. The sum of 2¹⁵ such counts fits
/// its integer.
pub const COUNT_MAX: u64 = 1 << 48;

/// Largest sum over events: each adds less than 2⁶⁸ in units of 2⁻⁶⁴. The total of 2¹⁰ such sums
/// fits its integer.
pub const SUM_MAX: u128 = (COUNT_MAX as u128) << 68;

/// Furthest time from the epoch, 9,000 years in milliseconds: no width of a window added to it
/// leaves its integer.
pub const TIME_MAX_MS: u64 = 1 << 48;

/// A stored value: `u64` is a count, `i64` a time, and 128 bits are a sum.
pub trait Stored {
    /// Whether events can make this value.
    fn is_possible(&self) -> bool;
}

impl Stored for u64 {
    fn is_possible(&self) -> bool {
        *self <= COUNT_MAX
    }
}

impl Stored for i64 {
    fn is_possible(&self) -> bool {
        self.unsigned_abs() <= TIME_MAX_MS
    }
}

impl Stored for u128 {
    fn is_possible(&self) -> bool {
        *self <= SUM_MAX
    }
}

impl Stored for i128 {
    fn is_possible(&self) -> bool {
        self.unsigned_abs() <= SUM_MAX
    }
}

impl Stored for u32 {
    fn is_possible(&self) -> bool {
        true
    }
}

impl Stored for f64 {
    fn is_possible(&self) -> bool {
        !self.is_nan()
    }
}

impl Stored for String {
    fn is_possible(&self) -> bool {
        true
    }
}

impl<A: Stored, B: Stored, C: Stored, D: Stored> Stored for (A, B, C, D) {
    fn is_possible(&self) -> bool {
        let (a, b, c, d) = self;
        a.is_possible() && b.is_possible() && c.is_possible() && d.is_possible()
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn is_possible(&self) -> bool {
        self.0.is_possible() && self.1.is_possible()
    }
}

impl<T: Stored> Stored for Option<T> {
    fn is_possible(&self) -> bool {
        self.iter().all(Stored::is_possible)
    }
}

impl<T: Stored, const N: usize> Stored for [T; N] {
    fn is_possible(&self) -> bool {
        self.iter().all(Stored::is_possible)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn is_possible(&self) -> bool {
        self.iter().all(Stored::is_possible)
    }
}

impl<T: Stored> Stored for VecDeque<T> {
    fn is_possible(&self) -> bool {
        self.iter().all(Stored::is_possible)
    }
}

/// Reads numbers, and refuses those that no events make.
#[cfg(feature = "serde")]
pub fn checked<'de, T: Deserialize<'de> + Stored, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    let stored = T::deserialize(from)?;
    possible(stored.is_possible(), stored)
}

/// Reads a time, or [`i64::MIN`], which stands for no time yet; refuses times that no events make.
#[cfg(feature = "serde")]
pub fn checked_or_min<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let ms = i64::deserialize(from)?;
    possible(ms == i64::MIN || ms.is_possible(), ms)
}

#[cfg(feature = "serde")]
fn possible<T, E: Error>(is_possible: bool, stored: T) -> Result<T, E> {
    match is_possible {
        true => Ok(stored),
        false => Err(E::custom("a number that no events make")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_possible_has_room_to_be_added_up() {
        assert!(COUNT_MAX.is_possible() && !(COUNT_MAX + 1).is_possible());
        assert!(SUM_MAX.is_possible() && !(SUM_MAX + 1).is_possible());
        assert!(![i64::MIN, 0].is_possible() && !vec![(0, 0u64), (i64::MAX, 0)].is_possible());
        assert!(Some(TIME_MAX_MS as i64).is_possible() && None::<i64>.is_possible());
        assert!(COUNT_MAX.checked_mul((1 << 15) - 1).is_some());
        assert!((SUM_MAX as i128).checked_mul((1 << 10) - 1).is_some());
    }
}
