//! Sums whose cells are only read, as those of sealed panes and of windows: a list, shared until one changes.

use super::{Cell, Cells, LogSums, Sums, few};
use crate::algebra::Overflow;
use crate::axis::Grid;
use std::sync::Arc;

impl Sums {
    /// Sums of occupied cells that are listed in ascending order, and log sums, without scores that are
    /// kept singly, on a grid without weights and clusters. The list is shared until a cell changes.
    pub fn of_listed(
        grid: Grid,
        cells: Arc<Vec<(u32, Cell)>>,
        logs: LogSums,
    ) -> Result<Sums, Overflow> {
        let sum = |n: u64, (_, cell): &(u32, Cell)| n.checked_add(cell.n);
        Ok(Sums {
            n: cells.iter().try_fold(0, sum).ok_or(Overflow)?,
            cells: Cells::Listed(cells),
            logs,
            ..Sums::new(grid)
        })
    }

    /// Occupied cells in ascending order of index, where they are listed.
    pub fn listed(&self) -> Option<&[(u32, Cell)]> {
        match &self.cells {
            Cells::Listed(list) => Some(list),
            Cells::Sparse(_) | Cells::Dense(_) => None,
        }
    }

    /// Makes listed cells ones that can change.
    pub(super) fn unlist(&mut self) {
        if let Cells::Listed(list) = &self.cells {
            match list.len() >= few(&self.grid) {
                true => self.densify(),
                false => self.cells = Cells::Sparse(list.iter().copied().collect()),
            }
        }
    }

    /// A cell of a list, where it has to change in its place.
    #[cold]
    pub(super) fn listed_mut(list: &mut Vec<(u32, Cell)>, index: u32) -> &mut Cell {
        let at = match list.binary_search_by_key(&index, |(index, _)| *index) {
            Ok(at) => at,
            Err(at) => {
                list.insert(at, (index, Cell::default()));
                at
            }
        };
        &mut list[at].1
    }
}
