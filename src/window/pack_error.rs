//! Why packed sums cannot be read or added.

use super::bits::Corrupt;
use crate::stats::algebra::Overflow;

/// Why packed sums cannot be added to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackError {
    /// The bytes are not packed sums of this grid.
    Corrupt,
    /// A sum left its integer.
    Overflow,
}

impl From<Corrupt> for PackError {
    fn from(_: Corrupt) -> PackError {
        PackError::Corrupt
    }
}

impl From<Overflow> for PackError {
    fn from(_: Overflow) -> PackError {
        PackError::Overflow
    }
}
