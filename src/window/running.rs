//! The sums of a window, kept from slide to slide.
//!
//! A window that slides loses its oldest pane and gains one. Its sums are integers, so the lost
//! pane is subtracted exactly, and only the changed panes are unpacked, two of six. Changes are
//! found by comparing panes with those that were added: a pane that a late outcome corrected, or
//! that took the events of another partition, is a different pane. So the code that changes panes
//! does not need to know of these sums.
//!
//! Distinct scores and the sample of repeats cannot be subtracted: a score that was dropped stays
//! dropped. They are few and come before the cells of a packed pane, so they are merged again at
//! each slide.
//!
//! Always: the total is the merge of the panes, to the bit. Cost: 56 bytes a cell, which the total
//! shares, and the packed panes that were added, which the window mostly shares. They are in no
//! snapshot; a restored window makes them again at its next slide.

use super::pack::Packed;
use super::pack_error::PackError;
use crate::stats::algebra::{Merge, Overflow, Retract};
use crate::stats::axis::Grid;
use crate::stats::sums::{Cell, LogSums, Sums};
use std::sync::Arc;

/// Most bytes that the sums of all windows of a monitor take.
pub const RUNNING_BYTES_MAX: usize = 128 << 20;

/// A pane with its sums.
pub(super) type Unpacked = (Packed, Sums);

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Running {
    /// The panes that were added.
    held: Vec<Packed>,
    /// Occupied cells, ascending.
    cells: Arc<Vec<(u32, Cell)>>,
    logs: LogSums,
}

impl Running {
    /// The merge of these panes. `known` may hold the sums of one of them, so that it is not
    /// unpacked again. After an error the sums are unusable.
    pub(super) fn total(
        &mut self,
        panes: &[&Packed],
        grid: Grid,
        known: Option<&Unpacked>,
    ) -> Result<Sums, PackError> {
        let (gone, stay): (Vec<Packed>, Vec<Packed>) =
            (self.held.drain(..)).partition(|held| !panes.iter().any(|pane| pane.is(held)));
        let cells = Arc::make_mut(&mut self.cells);
        let mut list = Vec::new();
        for pane in &gone {
            let mut parts = pane.parts(grid)?;
            parts.list(pane.n(), &mut list)?;
            self.logs = self.logs.zip(&parts.logs, i128::checked_sub)?;
            take_out(cells, &list)?;
        }
        let new = |pane: &&&Packed| !stay.iter().any(|held| pane.is(held));
        for pane in panes.iter().filter(new) {
            let mut parts = pane.parts(grid)?;
            let known = known.filter(|(known, _)| known.is(pane));
            let theirs = match known.and_then(|(_, sums)| sums.listed()) {
                Some(known) => known,
                None => {
                    parts.list(pane.n(), &mut list)?;
                    &list
                }
            };
            self.logs = self.logs.zip(&parts.logs, i128::checked_add)?;
            put_in(cells, theirs)?;
        }
        cells.shrink_to(cells.len() + cells.len() / 8);
        self.held = panes.iter().map(|pane| (*pane).clone()).collect();
        let mut total = Sums::of_listed(grid, self.cells.clone(), self.logs)?;
        for pane in panes {
            let parts = pane.parts(grid)?;
            total.merge_scores(&parts.distinct, &parts.repeats)?;
        }
        Ok(total)
    }

    /// Heap bytes held, the panes left out.
    pub(super) fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<(u32, Cell)>() + self.held.len() * size_of::<Packed>()
    }
}

/// Adds cells to others, both ascending.
fn put_in(cells: &mut Vec<(u32, Cell)>, more: &[(u32, Cell)]) -> Result<(), Overflow> {
    let mut old = cells.iter().map(|(index, _)| *index).peekable();
    let is_new = |(index, _): &&(u32, Cell)| {
        while old.next_if(|ours| ours < index).is_some() {}
        old.peek() != Some(index)
    };
    let new = more.iter().filter(is_new).count();
    // From the last on, each to where it stays.
    let mut from = cells.len();
    let mut to = from + new;
    cells.reserve_exact(new);
    cells.resize(to, (0, Cell::default()));
    for &(index, ref theirs) in more.iter().rev() {
        while from > 0 && cells[from - 1].0 > index {
            (from, to) = (from - 1, to - 1);
            cells[to] = cells[from];
        }
        to -= 1;
        if from > 0 && cells[from - 1].0 == index {
            from -= 1;
            cells[to] = cells[from];
            cells[to].1.merge(theirs)?;
        } else {
            cells[to] = (index, *theirs);
        }
    }
    Ok(())
}

/// Takes cells out of others, both ascending.
fn take_out(cells: &mut Vec<(u32, Cell)>, less: &[(u32, Cell)]) -> Result<(), Overflow> {
    let mut ours = cells.iter_mut();
    for (index, theirs) in less {
        let cell = ours.find(|(ours, _)| ours >= index);
        match cell.filter(|(ours, _)| ours == index) {
            Some((_, cell)) => cell.retract(theirs)?,
            None => return Err(Overflow),
        }
    }
    cells.retain(|(_, cell)| cell.n > 0);
    Ok(())
}
