//! Sums whose cells are only read, as those of sealed panes and of windows: a list, shared until
//! one changes. Few cells are a list also while events come in batches: a batch is sorted and
//! merged, in half the time that it takes to look each event up in a map.

use super::{Cell, Cells, LogSums, Sums, few};
use crate::algebra::{Merge, Overflow};
use crate::axis::Grid;
use crate::fixed::Scored;
use std::sync::Arc;

impl Sums {
    /// Sums of occupied cells that are listed in ascending order, and log sums, without distinct
    /// scores and repeats, on a grid without weights and clusters. The list is shared until a cell
    /// changes.
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

    /// Makes the cells a list, which is read fastest.
    pub fn list(&mut self) {
        if self.listed().is_some() {
            return;
        }
        // An event occupies one cell at most.
        let most = self.n.min(self.grid.cells().into()) as usize;
        let mut list = Vec::with_capacity(most);
        self.each_occupied(|index, cell| list.push((index, *cell)));
        list.shrink_to(2 * list.len());
        (self.cells, self.compact) = (Cells::Listed(Arc::new(list)), None);
    }

    /// Adds the cells of other sums to listed ones; returns whether both are listed. On overflow
    /// the sums are unusable.
    pub(super) fn merge_listed(&mut self, other: &Sums) -> Result<bool, Overflow> {
        let (Cells::Listed(ours), Some(theirs)) = (&mut self.cells, other.listed()) else {
            return Ok(false);
        };
        let ours = Arc::make_mut(ours);
        let (mut at, mut new) = (0, Vec::new());
        for (index, cell) in theirs {
            while ours.get(at).is_some_and(|(ours, _)| ours < index) {
                at += 1;
            }
            match ours.get_mut(at).filter(|(ours, _)| ours == index) {
                Some((_, ours)) => ours.merge(cell)?,
                None => new.push((*index, *cell)),
            }
        }
        if !new.is_empty() {
            ours.append(&mut new);
            // Two ascending runs: the sort merges them.
            ours.sort_by_key(|(index, _)| *index);
        }
        self.n = self.n.checked_add(other.n).ok_or(Overflow)?;
        self.logs = self.logs.zip(&other.logs, i128::checked_add)?;
        Ok(true)
    }

    /// Turns listed cells into a map or an array, which can change.
    pub(super) fn unlist(&mut self) {
        if let Cells::Listed(list) = &self.cells {
            match list.len() >= few(&self.grid) {
                true => self.densify(),
                false => self.cells = Cells::Sparse(list.iter().copied().collect()),
            }
        }
    }

    /// Adds a batch to few cells, which become a list; returns whether they were few.
    pub(super) fn observe_few(&mut self, batch: &[Scored]) -> bool {
        let few = few(&self.grid);
        let sparse: Vec<(u32, Cell)>;
        let old = match &self.cells {
            Cells::Listed(list) if list.len() < few => list,
            Cells::Sparse(map) if self.compact.is_none() && map.len() < few => {
                sparse = map.iter().map(|(index, cell)| (*index, *cell)).collect();
                &sparse
            }
            _ => return false,
        };
        let mut order: Vec<(u32, Scored)> = (batch.iter())
            .map(|one| (self.grid.cell_of(one.score().value()), *one))
            .collect();
        order.sort_unstable_by_key(|(index, _)| *index);
        let mut old = old.iter().peekable();
        let mut list: Vec<(u32, Cell)> = Vec::with_capacity(old.len() + batch.len());
        for (index, one) in order {
            while let Some(cell) = old.next_if(|(old, _)| *old <= index) {
                list.push(*cell);
            }
            let new = Cell::of(one.score().fixed(), one.outcome());
            match list.last_mut().filter(|(last, _)| *last == index) {
                Some((_, cell)) => cell.accumulate(&new),
                None => list.push((index, new)),
            }
        }
        list.extend(old);
        self.cells = Cells::Listed(Arc::new(list));
        true
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
