//! The sums of one cell of scores: the six integers that binned statistics need.
//!
//! Capacity: each field is a u64 in units of 2⁻³², so a cell of scores near 1 holds 2³² events, and
//! cells of small scores hold more. Beyond that merging fails as [`Overflow`]; it never wraps.

use super::algebra::{Merge, Overflow, Retract};
use super::fixed::ONE;

/// Most events of a pane: no field of a cell can then leave its integer.
pub const EVENTS_MAX: u64 = (1 << 31) - 1;

/// Sums of one cell; all but the counts in units of 2⁻³².
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cell {
    /// Number of events N.
    pub n: u64,
    /// Σy, the number of positive outcomes.
    pub y: u64,
    /// Σz.
    pub z: u64,
    /// Σyz.
    pub yz: u64,
    /// Σz².
    pub z2: u64,
    /// ΣV² with V = z(1−z).
    pub v2: u64,
}

impl Cell {
    /// The sums of one event of a score in units of 2⁻³², at most [`ONE`].
    ///
    /// With P = z(1−z) exactly: V is P rounded, and z² = z − P rounded; so all products fit a u64.
    /// Halves are rounded up. Nothing here can wrap: P ≤ 2⁶², V ≤ 2³⁰.
    #[inline]
    pub fn of(z: u64, outcome: bool) -> Cell {
        const HALF: u64 = 1 << 31;
        let y = u64::from(outcome);
        let p = z.wrapping_mul(ONE.wrapping_sub(z));
        let v = p.wrapping_add(HALF) >> 32;
        let less = HALF.wrapping_sub(p) as i64 >> 32;
        Cell {
            n: 1,
            y,
            z,
            yz: z & y.wrapping_neg(),
            z2: z.wrapping_add_signed(less),
            v2: v.wrapping_mul(v).wrapping_add(HALF) >> 32,
        }
    }

    /// Adds `other` where the caller knows that no field can overflow.
    #[inline]
    pub(crate) fn accumulate(&mut self, o: &Cell) {
        self.n = self.n.wrapping_add(o.n);
        self.y = self.y.wrapping_add(o.y);
        self.z = self.z.wrapping_add(o.z);
        self.yz = self.yz.wrapping_add(o.yz);
        self.z2 = self.z2.wrapping_add(o.z2);
        self.v2 = self.v2.wrapping_add(o.v2);
    }

    /// Whether the sums are possible for this number of events: each is at most 1 an event.
    pub(crate) fn is_bounded(&self) -> bool {
        let most = u128::from(self.n) << 32;
        let parts = [self.z, self.yz, self.z2, self.v2];
        self.y <= self.n && parts.iter().all(|&part| u128::from(part) <= most)
    }

    #[inline]
    fn zip(&self, o: &Cell, f: impl Fn(u64, u64) -> Option<u64>) -> Result<Cell, Overflow> {
        let g = |a, b| f(a, b).ok_or(Overflow);
        Ok(Cell {
            n: g(self.n, o.n)?,
            y: g(self.y, o.y)?,
            z: g(self.z, o.z)?,
            yz: g(self.yz, o.yz)?,
            z2: g(self.z2, o.z2)?,
            v2: g(self.v2, o.v2)?,
        })
    }
}

impl Merge for Cell {
    fn empty(&self) -> Cell {
        Cell::default()
    }

    #[inline]
    fn merge(&mut self, other: &Cell) -> Result<(), Overflow> {
        *self = self.zip(other, u64::checked_add)?;
        Ok(())
    }
}

impl Retract for Cell {
    #[inline]
    fn retract(&mut self, other: &Cell) -> Result<(), Overflow> {
        *self = self.zip(other, u64::checked_sub)?;
        Ok(())
    }
}
