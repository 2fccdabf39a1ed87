//! Sums from their parts, as a snapshot or a packed pane holds them.

use super::{Cell, Cells, Distinct, LogSums, Sums, few};
use crate::algebra::Overflow;
use crate::repeats::Repeats;

impl Sums {
    /// Adds sums given by their parts, without making a [`Sums`] of them first. Cell indices must
    /// be below the grid's number of cells. On overflow the sums are unusable.
    pub fn merge_parts(
        &mut self,
        cells: impl IntoIterator<Item = (u32, Cell)>,
        logs: &LogSums,
        distinct: &Distinct,
        repeats: &Repeats,
    ) -> Result<(), Overflow> {
        self.merge_cells(cells, logs)?;
        self.merge_scores(distinct, repeats)
    }

    /// Adds distinct scores and repeats, without the cells.
    pub fn merge_scores(&mut self, distinct: &Distinct, repeats: &Repeats) -> Result<(), Overflow> {
        self.repeats.merge(repeats);
        self.distinct.merge(distinct)
    }

    /// Adds cells and log sums, without distinct scores and repeats. On overflow the sums are
    /// unusable.
    pub fn merge_cells(
        &mut self,
        cells: impl IntoIterator<Item = (u32, Cell)>,
        logs: &LogSums,
    ) -> Result<(), Overflow> {
        let cells = cells.into_iter();
        self.expand();
        if let (Cells::Sparse(_), (_, Some(most))) = (&self.cells, cells.size_hint())
            && most >= few(&self.grid)
        {
            self.densify();
        }
        for (index, cell) in cells {
            self.merge_cell(index, &cell)?;
        }
        self.logs = self.logs.zip(logs, i128::checked_add)?;
        Ok(())
    }
}
