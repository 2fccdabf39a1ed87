//! What is kept of a vector view: its coordinates, its finest level, and the form of its cells.

use super::cell::Name;
use super::events::VectorView;
use super::{plain, weighted};

/// Most coordinates of a view that is kept live.
pub const DIMENSION_MAX: usize = 12;

/// A vector view and the form in which its sums are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Shape {
    /// The view.
    pub view: VectorView,
    /// K, the number of classes.
    pub classes: usize,
    /// Most cells; more are refused.
    pub cells_max: usize,
    /// Whether its events have weights.
    pub weighted: bool,
}

impl Shape {
    /// k; `None` where a view needs more than [`DIMENSION_MAX`], more than there are classes, or
    /// fewer than two classes.
    pub fn dimension(&self) -> Option<usize> {
        let k = match self.view {
            VectorView::Full => self.classes,
            VectorView::TopK(k) => k,
        };
        let fits = (1..=DIMENSION_MAX).contains(&k) && k <= self.classes && self.classes >= 2;
        fits.then_some(k)
    }

    /// Most cells that can be occupied: the cap, or all there are.
    pub fn cells_most(&self) -> usize {
        let all = 1usize.checked_shl(self.level().saturating_mul(self.free() as u32));
        all.unwrap_or(usize::MAX).min(self.cells_max)
    }

    /// Heap bytes of a cell: a tree keeps its entries between half and wholly full nodes.
    pub fn cell_bytes(&self) -> usize {
        let entry = size_of::<Name>() + size_of::<Vec<i64>>();
        2 * entry + 2 * self.words() + 8 * self.width()
    }

    /// Number of words of a cell's name.
    pub(super) fn words(&self) -> usize {
        let k = self.dimension().unwrap_or(0);
        match self.view {
            VectorView::TopK(_) => k,
            VectorView::Full => 2 * k.saturating_sub(1),
        }
    }

    /// Number of integers of a cell.
    pub(super) fn width(&self) -> usize {
        let k = self.dimension().unwrap_or(0);
        match self.weighted {
            true => weighted::width(k),
            false => plain::width(k),
        }
    }

    /// Whether the stored sums of a cell are possible for its number of events.
    pub(super) fn bounds(&self, c: &[i64]) -> bool {
        let most = i128::from(c[0]) << 32;
        match self.weighted {
            // Wider sums wrap.
            true => (0..=most).contains(&c[1].into()),
            false => {
                let counts = &c[1..1 + self.dimension().unwrap_or(0)];
                counts.iter().all(|n| (0..=c[0]).contains(n))
                    && c.iter().all(|x| i128::from(x.unsigned_abs()) <= most)
            }
        }
    }

    /// The function that adds the sums of another cell.
    pub(super) fn merge(&self) -> fn(&mut [i64], &[i64]) {
        match self.weighted {
            true => weighted::merge,
            false => plain::merge,
        }
    }

    /// The function that takes out the sums of another cell.
    pub(super) fn retract(&self) -> fn(&mut [i64], &[i64]) {
        match self.weighted {
            true => weighted::retract,
            false => plain::retract,
        }
    }

    /// L: the finest level has 2^L slices.
    pub fn level(&self) -> u32 {
        (12 / self.free().max(1) as u32).max(1)
    }

    /// d, the number of free dimensions.
    fn free(&self) -> usize {
        match self.view {
            VectorView::Full => self.classes.saturating_sub(1),
            VectorView::TopK(k) => k,
        }
    }
}
