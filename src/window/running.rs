//! The sums of a window, kept from slide to slide.
//!
//! A window that slides loses its oldest pane and gains one. Its sums are integers, so the pane that
//! left is taken out of them exactly, and only the panes that changed are unpacked, two of six. What
//! changed is seen by comparing panes, not announced: a pane that a late outcome corrected, or that
//! took the events of another partition, is another one than was added. So nothing that changes panes
//! has to know of the sums kept here.
//!
//! Distinct scores and the sample of repeats have no inverse: what was given up stays so. They are few,
//! lie before the cells of a packed pane, and are merged afresh each time.
//!
//! Always: the total is the merge of the panes, to the bit. Cost: 56 bytes a cell, and the packed panes
//! that were added, which the window mostly shares. They are in no snapshot; a restored window makes
//! them again at its next slide.

use super::pack::Packed;
use super::pack_error::PackError;
use crate::stats::algebra::{Merge, Overflow, Retract};
use crate::stats::axis::Grid;
use crate::stats::sums::{Cell, LogSums, Sums};

/// Most bytes that the sums of all windows of a monitor take.
pub const RUNNING_BYTES_MAX: usize = 128 << 20;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Running {
    /// The panes that were added.
    held: Vec<Packed>,
    /// Occupied cells, ascending.
    cells: Vec<(u32, Cell)>,
    logs: LogSums,
}

impl Running {
    /// The merge of these panes. After an error the sums are unusable.
    pub(super) fn total(&mut self, panes: &[&Packed], grid: Grid) -> Result<Sums, PackError> {
        let (gone, stay): (Vec<Packed>, Vec<Packed>) =
            (self.held.drain(..)).partition(|held| !panes.iter().any(|pane| pane.is(held)));
        for pane in &gone {
            self.apply(pane, grid, i128::checked_sub, |ours, theirs| match ours {
                Some(mut cell) => cell.retract(theirs).map(|()| cell),
                None => Err(Overflow),
            })?;
        }
        for pane in panes
            .iter()
            .filter(|pane| !stay.iter().any(|held| pane.is(held)))
        {
            self.apply(pane, grid, i128::checked_add, |ours, theirs| {
                let mut cell = ours.unwrap_or_default();
                cell.merge(theirs).map(|()| cell)
            })?;
        }
        self.held = panes.iter().map(|pane| (*pane).clone()).collect();
        let mut total = Sums::new(grid);
        for pane in panes {
            let parts = pane.parts(grid)?;
            let none = LogSums::default();
            total.merge_parts([], &none, &parts.distinct, &parts.repeats)?;
        }
        total.merge_cells(self.cells.iter().copied(), &self.logs)?;
        Ok(total)
    }

    /// Changes each sum by that of a pane.
    fn apply(
        &mut self,
        pane: &Packed,
        grid: Grid,
        of_logs: impl Fn(i128, i128) -> Option<i128>,
        of_cells: impl Fn(Option<Cell>, &Cell) -> Result<Cell, Overflow>,
    ) -> Result<(), PackError> {
        let mut parts = pane.parts(grid)?;
        self.logs = self.logs.zip(&parts.logs, of_logs)?;
        let room = self.cells.len() + parts.cells.left;
        let old = std::mem::replace(&mut self.cells, Vec::with_capacity(room));
        let (mut rest, mut n) = (old.as_slice(), 0u64);
        for (index, theirs) in &mut parts.cells {
            let before = rest.iter().take_while(|(ours, _)| *ours < index).count();
            self.cells.extend_from_slice(&rest[..before]);
            rest = &rest[before..];
            let ours = rest.first().filter(|(ours, _)| *ours == index);
            let cell = of_cells(ours.map(|(_, cell)| *cell), &theirs)?;
            rest = &rest[usize::from(ours.is_some())..];
            self.cells.extend((cell.n > 0).then_some((index, cell)));
            n = n.checked_add(theirs.n).ok_or(Overflow)?;
        }
        self.cells.extend_from_slice(rest);
        self.cells
            .shrink_to(self.cells.len() + self.cells.len() / 8);
        match parts.cells.corrupt || n != pane.n() {
            true => Err(PackError::Corrupt),
            false => Ok(()),
        }
    }

    /// Heap bytes held, the panes left out.
    pub(super) fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<(u32, Cell)>() + self.held.len() * size_of::<Packed>()
    }
}
