//! The additive sums that are kept of a stream: all that any binned statistic needs.
//!
//! [`Sums`] holds a [`Cell`] of six integers for each finest cell, the four sums that need a
//! logarithm of each score ([`LogSums`]), the distinct scores while they are few, and a sample of
//! scores that shows repeats ([`Repeats`]). For clustered events it also holds sums by cluster
//! ([`ClusterSums`]). Two `Sums` are merged by addition and separated by subtraction, both exact,
//! so a window is the merge of its panes and a pane the merge of its partitions, to the last bit.
//!
//! Cells are in a sorted map while few are occupied, and in one dense array once more than a
//! sixteenth are. So a rare-event stream on a linear axis costs a few hundred bytes a pane. The
//! cells of sealed panes and windows, which are only read, are a list. While sums take events in
//! batches, few cells are a list too, and of many cells most are in [compact cells](super::compact)
//! beside the array. All forms compare equal through [`Sums::occupied`], which walks occupied cells
//! in order.
//!
//! Sums that would leave their integers fail as [`Overflow`]; they never wrap. Events in batches
//! ([`super::batch`]) go unchecked into sums that are known to hold fewer than [`EVENTS_MAX`].

use super::algebra::{Merge, Overflow, Retract};
use super::attribute::Attribute;
use super::axis::Grid;
use super::clusters::ClusterSums;
use super::compact::CompactCells;
use super::fixed::{Score, Scored};
use super::logs::LogBatch;
use super::repeats::Repeats;
use super::weighted::WeightedSums;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use super::cell::{Cell, EVENTS_MAX};
pub use super::distinct::{DISTINCT_MAX, Distinct, ScoreCount};
pub use super::logs::LogSums;

#[derive(Debug, Clone)]
enum Cells {
    Sparse(BTreeMap<u32, Cell>),
    Dense(Box<[Cell]>),
    /// Occupied cells, ascending; the list becomes one of the other forms before a cell changes.
    Listed(Arc<Vec<(u32, Cell)>>),
}

/// All sums over a set of events of a stream.
#[derive(Debug, Clone)]
pub struct Sums {
    grid: Grid,
    n: u64,
    /// The sums that are not in compact cells.
    cells: Cells,
    /// Compact cells, while events come in batches.
    compact: Option<CompactCells>,
    logs: LogSums,
    distinct: Distinct,
    repeats: Repeats,
    /// All sums of weighted events, on a grid for weighted events; the cells and logs beside it are
    /// then empty.
    weighted: Option<Box<WeightedSums>>,
    /// The sums by cluster, on a grid for clustered events.
    clusters: Option<Box<ClusterSums>>,
}

impl Sums {
    /// The sums of no events.
    pub fn new(grid: Grid) -> Sums {
        Sums {
            weighted: grid.is_weighted().then(Box::default),
            clusters: grid.is_clustered().then(Box::default),
            grid,
            n: 0,
            cells: Cells::Sparse(BTreeMap::new()),
            compact: None,
            logs: LogSums::default(),
            distinct: Distinct::default(),
            repeats: Repeats::default(),
        }
    }

    /// The grid of the cells.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Number of events.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The sums of weighted events, on a grid for weighted events.
    pub fn weighted(&self) -> Option<&WeightedSums> {
        self.weighted.as_deref()
    }

    /// The sums by cluster, on a grid of clustered events.
    pub fn clusters(&self) -> Option<&ClusterSums> {
        self.clusters.as_deref()
    }

    /// Adds one event with the attribute that events of the grid have. It is an error to call this
    /// with another.
    pub fn observe_with(
        &mut self,
        score: Score,
        outcome: bool,
        attribute: Attribute,
    ) -> Result<(), Overflow> {
        match (attribute, &mut self.weighted, &mut self.clusters) {
            (Attribute::Weight(weight), Some(weighted), _) => {
                weighted.observe(&self.grid, score, outcome, weight)?;
                self.n = weighted.n();
                Ok(())
            }
            (Attribute::Cluster(bucket), None, Some(clusters)) => {
                clusters.observe(&self.grid, score, outcome, bucket)?;
                self.observe_plain(score, outcome)
            }
            (Attribute::None, None, None) => self.observe_plain(score, outcome),
            _ => Err(Overflow),
        }
    }

    /// Adds sums by cluster. On overflow the sums are unusable.
    pub fn merge_clusters(&mut self, other: &ClusterSums) -> Result<(), Overflow> {
        self.clusters.as_deref_mut().ok_or(Overflow)?.merge(other)
    }

    /// Adds weighted sums. On overflow the sums are unusable.
    pub fn merge_weighted(&mut self, other: &WeightedSums) -> Result<(), Overflow> {
        let weighted = self.weighted.as_deref_mut().ok_or(Overflow)?;
        weighted.merge(other)?;
        self.n = weighted.n();
        Ok(())
    }

    /// The logarithmic sums.
    pub fn logs(&self) -> &LogSums {
        &self.logs
    }

    /// The distinct scores.
    pub fn distinct(&self) -> &Distinct {
        &self.distinct
    }

    /// A sample of the scores, which shows repeats; empty for weighted events.
    pub fn repeats(&self) -> &Repeats {
        &self.repeats
    }

    /// Occupied cells in ascending order of index.
    pub fn occupied(&self) -> impl Iterator<Item = (u32, Cell)> {
        let compact = self.compact.as_ref().map(|compact| self.with(compact));
        let full = compact.is_none().then(|| self.full());
        let all = compact.into_iter().flatten();
        all.chain(full.into_iter().flatten())
            .filter(|(_, c)| c.n > 0)
    }

    /// All cells, occupied or not, where they lie in one array and are full, as those of a window
    /// do.
    pub(super) fn dense(&self) -> Option<&[Cell]> {
        match (&self.compact, &self.cells) {
            (None, Cells::Dense(all)) => Some(all),
            _ => None,
        }
    }

    /// Calls `f` with the occupied cells in ascending order of index: faster than
    /// [`Sums::occupied`] where all are full, as those of a window are.
    #[inline]
    pub fn each_occupied(&self, mut f: impl FnMut(u32, &Cell)) {
        match (&self.compact, &self.cells) {
            (None, Cells::Dense(all)) => {
                for (index, cell) in (0..).zip(all) {
                    if cell.n > 0 {
                        f(index, cell);
                    }
                }
            }
            (None, Cells::Listed(list)) => list.iter().for_each(|(index, cell)| f(*index, cell)),
            _ => self.occupied().for_each(|(index, cell)| f(index, &cell)),
        }
    }

    /// Cells that are not compact, in ascending order of index.
    fn full(&self) -> impl Iterator<Item = (u32, Cell)> {
        let (sparse, dense, listed) = match &self.cells {
            Cells::Sparse(map) => (Some(map.iter().map(|(&i, c)| (i, *c))), None, None),
            Cells::Dense(all) => (None, Some((0..).zip(all.iter().copied())), None),
            Cells::Listed(list) => (None, None, Some(list.iter().copied())),
        };
        let sparse = sparse.into_iter().flatten();
        let others = dense.into_iter().flatten();
        sparse.chain(others.chain(listed.into_iter().flatten()))
    }

    /// All cells, each the sum of its compact form and its full sums.
    fn with(&self, compact: &CompactCells) -> impl Iterator<Item = (u32, Cell)> {
        (0..).zip(compact.cells()).map(|(index, mut cell)| {
            let full = match &self.cells {
                Cells::Sparse(map) if map.is_empty() => None,
                Cells::Sparse(map) => map.get(&index),
                Cells::Dense(all) => all.get(index as usize),
                // A list is never beside compact cells.
                Cells::Listed(_) => None,
            };
            if let Some(full) = full {
                cell.accumulate(full);
            }
            (index, cell)
        })
    }

    /// Adds one event: six integers to one cell, four to the log sums. It is an error to call this
    /// on a grid of weighted or clustered events.
    pub fn observe(&mut self, score: Score, outcome: bool) -> Result<(), Overflow> {
        self.observe_with(score, outcome, Attribute::None)
    }

    fn observe_plain(&mut self, score: Score, outcome: bool) -> Result<(), Overflow> {
        let cell = Cell::of(score.fixed(), outcome);
        self.expand();
        self.merge_cell(self.grid.cell_of(score.value()), &cell)?;
        let mut logs = LogBatch::default();
        logs.observe(score, outcome);
        self.logs = self.logs.zip(&logs.sums(), i128::checked_add)?;
        self.repeats.observe(&[Scored::new(score, outcome)]);
        self.distinct.observe(score, outcome)
    }

    /// Adds a batch of at most 2²⁰ events to sums for which [`Sums::is_bounded`] holds, up to
    /// [`EVENTS_MAX`] in all.
    pub(super) fn observe_all(&mut self, batch: &[Scored]) {
        if batch.is_empty() {
            return;
        }
        self.n += batch.len() as u64;
        if !self.observe_few(batch) {
            self.observe_many(batch);
        }
        self.repeats.observe(batch);
        let mut logs = LogBatch::default();
        for one in batch {
            logs.observe(one.score(), one.outcome());
        }
        let logs = logs.sums();
        self.logs.loss += logs.loss;
        self.logs.u_logit += logs.u_logit;
        self.logs.v_logit += logs.v_logit;
        self.logs.v_logit2 += logs.v_logit2;
        for one in batch {
            if self.distinct.counts().is_none() {
                break;
            }
            // Counts of scores are no greater than the number of events.
            let _ = self.distinct.observe(one.score(), one.outcome());
        }
    }

    /// Adds a batch to cells that are not few.
    fn observe_many(&mut self, batch: &[Scored]) {
        if let (Cells::Sparse(_) | Cells::Listed(_), None) = (&self.cells, &self.compact) {
            self.compact();
        }
        self.unlist();
        let grid = self.grid;
        let Some(mut compact) = self.compact.take() else {
            for one in batch {
                let (index, cell) = located(&grid, *one);
                self.cell_mut(index).accumulate(&cell);
            }
            return;
        };
        compact.observe(&grid, batch, |index, cell| {
            self.cell_mut(index).accumulate(cell)
        });
        self.compact = Some(compact);
        if let Cells::Dense(_) = self.cells {
            self.expand();
        }
    }

    /// Makes many cells compact before a batch is added to them.
    pub(super) fn compact_dense(&mut self) {
        self.unlist();
        if let (Cells::Dense(_), None) = (&self.cells, &self.compact) {
            self.compact();
        }
    }

    /// Makes the cells compact, unless too many have more events than a compact one holds: they
    /// would take more room than full ones.
    #[cold]
    fn compact(&mut self) {
        let mut compact = CompactCells::new(&self.grid);
        let mut rest = Sums::new(self.grid);
        for (index, cell) in self.full().filter(|(_, c)| c.n > 0) {
            if !compact.take(index, &cell) {
                *rest.cell_mut(index) = cell;
            }
        }
        if let Cells::Sparse(_) = rest.cells {
            self.cells = rest.cells;
            self.compact = Some(compact);
        }
    }

    /// Turns compact and listed cells into full ones, which can change singly.
    #[cold]
    fn expand(&mut self) {
        self.unlist();
        if let Some(compact) = self.compact.take() {
            for (index, cell) in (0..).zip(compact.cells()).filter(|(_, c)| c.n > 0) {
                self.cell_mut(index).accumulate(&cell);
            }
        }
    }

    /// Whether this many events, at most [`EVENTS_MAX`], can have these cells.
    pub(super) fn is_bounded(&self) -> bool {
        let counts = self.distinct.counts().unwrap_or_default();
        self.n <= EVENTS_MAX
            && self.logs.is_bounded(self.n)
            && self.occupied().all(|(_, cell)| cell.is_bounded())
            && counts.iter().all(|c| c.n <= self.n && c.y <= c.n)
    }

    /// Heap bytes held, for the memory bound that is reported.
    pub fn bytes(&self) -> usize {
        if let Some(weighted) = self.weighted() {
            return weighted.bytes();
        }
        let compact = self.compact.as_ref().map_or(0, CompactCells::bytes);
        let clusters = self.clusters().map_or(0, ClusterSums::bytes);
        compact
            + clusters
            + self.repeats.bytes()
            + match &self.cells {
                // A B-tree node holds up to 11 entries and is at least half full.
                Cells::Sparse(map) => map.len() * 2 * (size_of::<Cell>() + size_of::<u32>()),
                Cells::Dense(all) => size_of_val::<[Cell]>(all),
                Cells::Listed(list) => list.capacity() * size_of::<(u32, Cell)>(),
            }
    }

    #[inline]
    fn merge_cell(&mut self, index: u32, cell: &Cell) -> Result<(), Overflow> {
        self.cell_mut(index).merge(cell)?;
        self.n = self.n.checked_add(cell.n).ok_or(Overflow)?;
        Ok(())
    }

    #[inline]
    fn cell_mut(&mut self, index: u32) -> &mut Cell {
        if let Cells::Sparse(map) = &self.cells
            && map.len() >= few(&self.grid)
        {
            self.densify();
        }
        match &mut self.cells {
            Cells::Dense(all) => &mut all[index as usize],
            Cells::Sparse(map) => map.entry(index).or_default(),
            Cells::Listed(list) => Sums::listed_mut(Arc::make_mut(list), index),
        }
    }

    fn densify(&mut self) {
        let mut all = vec![Cell::default(); self.grid.cells() as usize].into_boxed_slice();
        for (index, cell) in self.full() {
            all[index as usize] = cell;
        }
        self.cells = Cells::Dense(all);
    }
}

impl Merge for Sums {
    fn empty(&self) -> Sums {
        Sums::new(self.grid)
    }

    /// Adds all of `other`, which must have the same grid.
    fn merge(&mut self, other: &Sums) -> Result<(), Overflow> {
        assert_eq!(self.grid, other.grid, "sums of two grids never meet");
        if let Some(weighted) = other.weighted() {
            return self.merge_weighted(weighted);
        }
        if let Some(clusters) = other.clusters() {
            self.merge_clusters(clusters)?;
        }
        if !self.merge_listed(other)? {
            self.merge_cells(other.occupied(), &other.logs)?;
        }
        self.merge_scores(&other.distinct, &other.repeats)
    }
}

impl Retract for Sums {
    /// Takes out `other`. A discarded list of distinct scores stays discarded, and the sample of
    /// scores keeps its level; the rest is as if `other` had never been there.
    fn retract(&mut self, other: &Sums) -> Result<(), Overflow> {
        assert_eq!(self.grid, other.grid, "sums of two grids never meet");
        if let (Some(ours), Some(theirs)) = (self.weighted.as_deref_mut(), other.weighted()) {
            ours.retract(theirs)?;
            self.n = ours.n();
            return Ok(());
        }
        if let (Some(ours), Some(theirs)) = (self.clusters.as_deref_mut(), other.clusters()) {
            ours.retract(theirs)?;
        }
        self.expand();
        for (index, cell) in other.occupied() {
            self.cell_mut(index).retract(&cell)?;
            self.n -= cell.n;
        }
        if let Cells::Sparse(map) = &mut self.cells {
            map.retain(|_, c| c.n > 0);
        }
        self.logs = self.logs.zip(&other.logs, i128::checked_sub)?;
        self.repeats.retract(&other.repeats)?;
        self.distinct.retract(&other.distinct)
    }
}

/// Number of occupied cells from which they lie in an array instead of a map.
#[inline]
fn few(grid: &Grid) -> usize {
    grid.cells() as usize / 16
}

/// The cell of an event and what is added to it.
#[inline]
fn located(grid: &Grid, one: Scored) -> (u32, Cell) {
    let score = one.score();
    let cell = Cell::of(score.fixed(), one.outcome());
    (grid.cell_of(score.value()), cell)
}

impl PartialEq for Sums {
    fn eq(&self, other: &Sums) -> bool {
        self.grid == other.grid
            && self.n == other.n
            && self.logs == other.logs
            && self.distinct == other.distinct
            && self.repeats == other.repeats
            && self.weighted == other.weighted
            && self.clusters == other.clusters
            && self.occupied().eq(other.occupied())
    }
}

mod listed;
mod parts;
#[cfg(test)]
mod tests;
