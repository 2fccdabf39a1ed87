//! The additive sums that are kept of a stream: all that any binned statistic needs.
//!
//! [`Cell`] holds six integers for one finest cell; [`Sums`] holds the cells, the four sums that need
//! a logarithm of each score, and the distinct scores while they are few. Two `Sums` merge by addition
//! and part by subtraction, both exact, so a window is the merge of its panes and a pane the merge of
//! its partitions, to the last bit.
//!
//! Cells lie in one dense array once more than a sixteenth are occupied and in a sorted map of the
//! few before that; a rare-event stream on a linear axis then costs a few hundred bytes a pane. Both
//! forms compare equal through [`Sums::occupied`], which walks occupied cells in order.
//!
//! Capacity: each field is a u64 in units of 2⁻³², so one cell holds at least 2³¹ events (a cell of
//! scores near 1; cells of small scores hold more). Beyond that addition fails as [`Overflow`]; it
//! never wraps.

use super::axis::Grid;
use super::fixed::{ONE, Score, to_fixed_signed};
use std::collections::BTreeMap;

/// Sums of one cell; all but the counts in units of 2⁻³².
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// A sum left the range of its integer; nothing was changed that the caller may still use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

impl Cell {
    /// The sums of one event.
    #[inline]
    pub fn of(score: Score, outcome: bool) -> Cell {
        let z = score.fixed();
        let v = square(z, ONE - z);
        let y = u64::from(outcome);
        Cell {
            n: 1,
            y,
            z,
            yz: y * z,
            z2: square(z, z),
            v2: square(v, v),
        }
    }

    /// Adds `other`.
    #[inline]
    pub fn merge(&mut self, other: &Cell) -> Result<(), Overflow> {
        *self = self.zip(other, u64::checked_add)?;
        Ok(())
    }

    /// Subtracts `other`, which must have been merged before; fails where it was not.
    #[inline]
    pub fn retract(&mut self, other: &Cell) -> Result<(), Overflow> {
        *self = self.zip(other, u64::checked_sub)?;
        Ok(())
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

/// a·b in fixed point, rounded to nearest.
#[inline]
fn square(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b) + (1 << 31)) >> 32) as u64
}

/// The sums that need ℓ = log(z/(1−z)) of each score, z clipped to [2⁻³², 1−2⁻³²] for these alone;
/// in units of 2⁻³², rounded per event. For log loss and the Cox score test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogSums {
    /// −Σ[y log z + (1−y) log(1−z)], nats.
    pub loss: i128,
    /// Σ(y−z)ℓ.
    pub u_logit: i128,
    /// Σvℓ.
    pub v_logit: i128,
    /// Σvℓ².
    pub v_logit2: i128,
}

impl LogSums {
    /// The sums of one event.
    #[inline]
    pub fn of(score: Score, outcome: bool) -> LogSums {
        const CLIP: f64 = 1.0 / ONE as f64;
        let z = score.value().clamp(CLIP, 1.0 - CLIP);
        let (a, b) = (z.ln(), (1.0 - z).ln());
        let (l, v) = (a - b, z * (1.0 - z));
        let (loss, u) = if outcome { (-a, 1.0 - z) } else { (-b, -z) };
        LogSums {
            loss: to_fixed_signed(loss),
            u_logit: to_fixed_signed(u * l),
            v_logit: to_fixed_signed(v * l),
            v_logit2: to_fixed_signed(v * l * l),
        }
    }

    fn add(&mut self, o: &LogSums, sign: i128) {
        self.loss += sign * o.loss;
        self.u_logit += sign * o.u_logit;
        self.v_logit += sign * o.v_logit;
        self.v_logit2 += sign * o.v_logit2;
    }
}

/// Most distinct scores that are kept for the exact binomial test; with more the test is off.
pub const DISTINCT_MAX: usize = 64;

/// Counts per distinct score (fixed point → events, positives) while there are at most
/// [`DISTINCT_MAX`]; `None` once there were more. The union of two sets is over the cap or not
/// whatever the order of merging, so this too does not depend on order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distinct(Option<BTreeMap<u64, (u64, u64)>>);

impl Distinct {
    /// The counts by score in fixed point, or `None` when there were too many scores.
    pub fn counts(&self) -> Option<&BTreeMap<u64, (u64, u64)>> {
        self.0.as_ref()
    }

    /// From stored counts; `None` for a set that had been given up.
    pub fn from_counts(counts: Option<BTreeMap<u64, (u64, u64)>>) -> Distinct {
        Distinct(counts.filter(|c| c.len() <= DISTINCT_MAX))
    }

    #[inline]
    fn add(&mut self, score: u64, n: u64, y: u64) {
        if let Some(map) = &mut self.0 {
            let entry = map.entry(score).or_default();
            entry.0 += n;
            entry.1 += y;
            if map.len() > DISTINCT_MAX {
                self.0 = None;
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Cells {
    Sparse(BTreeMap<u32, Cell>),
    Dense(Box<[Cell]>),
}

/// All sums of a stream over some set of events. See the module.
#[derive(Debug, Clone)]
pub struct Sums {
    grid: Grid,
    n: u64,
    cells: Cells,
    logs: LogSums,
    distinct: Distinct,
}

impl Sums {
    /// No events.
    pub fn new(grid: Grid) -> Sums {
        Sums {
            grid,
            n: 0,
            cells: Cells::Sparse(BTreeMap::new()),
            logs: LogSums::default(),
            distinct: Distinct(Some(BTreeMap::new())),
        }
    }

    /// Restores sums from their parts, as a snapshot or a packed pane holds them. Cell indices must
    /// be below the grid's number of cells.
    pub fn from_parts(
        grid: Grid,
        cells: impl IntoIterator<Item = (u32, Cell)>,
        logs: LogSums,
        distinct: Distinct,
    ) -> Result<Sums, Overflow> {
        let mut sums = Sums::new(grid);
        sums.merge_parts(cells, &logs, &distinct)?;
        Ok(sums)
    }

    /// Adds sums given by their parts, without making a [`Sums`] of them first. Cell indices must be
    /// below the grid's number of cells. On overflow the sums are unusable.
    pub fn merge_parts(
        &mut self,
        cells: impl IntoIterator<Item = (u32, Cell)>,
        logs: &LogSums,
        distinct: &Distinct,
    ) -> Result<(), Overflow> {
        for (index, cell) in cells {
            self.merge_cell(index, &cell)?;
        }
        self.logs.add(logs, 1);
        match &distinct.0 {
            None => self.distinct.0 = None,
            Some(map) => map
                .iter()
                .for_each(|(&s, &(n, y))| self.distinct.add(s, n, y)),
        }
        Ok(())
    }

    /// The grid of the cells.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Number of events.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The logarithmic sums.
    pub fn logs(&self) -> &LogSums {
        &self.logs
    }

    /// The distinct scores.
    pub fn distinct(&self) -> &Distinct {
        &self.distinct
    }

    /// Occupied cells in ascending order of index.
    pub fn occupied(&self) -> impl Iterator<Item = (u32, &Cell)> {
        let (sparse, dense) = match &self.cells {
            Cells::Sparse(map) => (Some(map.iter().map(|(&i, c)| (i, c))), None),
            Cells::Dense(all) => (None, Some((0..).zip(all.iter()))),
        };
        sparse
            .into_iter()
            .flatten()
            .chain(dense.into_iter().flatten())
            .filter(|(_, c)| c.n > 0)
    }

    /// Adds one event: six integers to one cell, four to the log sums.
    #[inline]
    pub fn observe(&mut self, score: Score, outcome: bool) -> Result<(), Overflow> {
        self.merge_cell(self.grid.cell_of(score.value()), &Cell::of(score, outcome))?;
        self.logs.add(&LogSums::of(score, outcome), 1);
        self.distinct.add(score.fixed(), 1, u64::from(outcome));
        Ok(())
    }

    /// Adds all of `other`, which must have the same grid. On overflow the sums are unusable.
    pub fn merge(&mut self, other: &Sums) -> Result<(), Overflow> {
        assert_eq!(self.grid, other.grid, "sums of two grids never meet");
        let cells = other.occupied().map(|(index, cell)| (index, *cell));
        self.merge_parts(cells, &other.logs, &other.distinct)
    }

    /// Takes out `other`, merged before. Distinct scores that were given up stay so; the rest is as
    /// if `other` had never been there.
    pub fn retract(&mut self, other: &Sums) -> Result<(), Overflow> {
        assert_eq!(self.grid, other.grid, "sums of two grids never meet");
        for (index, cell) in other.occupied() {
            self.cell_mut(index).retract(cell)?;
            self.n -= cell.n;
        }
        if let Cells::Sparse(map) = &mut self.cells {
            map.retain(|_, c| c.n > 0);
        }
        self.logs.add(&other.logs, -1);
        if let (Some(map), Some(gone)) = (&mut self.distinct.0, &other.distinct.0) {
            for (score, (n, y)) in gone {
                let entry = map.get_mut(score).ok_or(Overflow)?;
                entry.0 = entry.0.checked_sub(*n).ok_or(Overflow)?;
                entry.1 = entry.1.checked_sub(*y).ok_or(Overflow)?;
            }
            map.retain(|_, (n, _)| *n > 0);
        }
        Ok(())
    }

    /// Heap bytes held, for the memory bound that is reported.
    pub fn bytes(&self) -> usize {
        match &self.cells {
            // A B-tree node holds up to 11 entries and is at least half full.
            Cells::Sparse(map) => map.len() * 2 * (size_of::<Cell>() + size_of::<u32>()),
            Cells::Dense(all) => std::mem::size_of_val::<[Cell]>(all),
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
            && map.len() >= self.grid.cells() as usize / 16
        {
            self.densify();
        }
        match &mut self.cells {
            Cells::Dense(all) => &mut all[index as usize],
            Cells::Sparse(map) => map.entry(index).or_default(),
        }
    }

    fn densify(&mut self) {
        let mut all = vec![Cell::default(); self.grid.cells() as usize].into_boxed_slice();
        for (index, cell) in self.occupied() {
            all[index as usize] = *cell;
        }
        self.cells = Cells::Dense(all);
    }
}

impl PartialEq for Sums {
    fn eq(&self, other: &Sums) -> bool {
        self.grid == other.grid
            && self.n == other.n
            && self.logs == other.logs
            && self.distinct == other.distinct
            && self.occupied().eq(other.occupied())
    }
}

#[cfg(test)]
mod tests {
    use super::super::axis::Axis;
    use super::*;

    fn events(seed: u64, n: usize) -> Vec<(Score, bool)> {
        let mut x = seed;
        (0..n)
            .map(|_| {
                x = x
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (
                    Score::new((x >> 11) as f64 / (1u64 << 53) as f64).unwrap(),
                    x >> 7 & 1 == 1,
                )
            })
            .collect()
    }

    fn sums(events: &[(Score, bool)]) -> Sums {
        let mut s = Sums::new(Grid::new(Axis::Linear, 8));
        events.iter().for_each(|&(z, y)| s.observe(z, y).unwrap());
        s
    }

    #[test]
    fn any_split_merges_to_the_whole_and_retract_undoes_merge() {
        let all = events(7, 1000);
        for at in [0, 1, 10, 500, 1000] {
            let (mut left, right) = (sums(&all[..at]), sums(&all[at..]));
            let before = left.clone();
            left.merge(&right).unwrap();
            assert_eq!(left, sums(&all));
            left.retract(&right).unwrap();
            assert!(before.occupied().eq(left.occupied()) && before.logs == left.logs);
        }
    }

    #[test]
    fn order_does_not_matter() {
        let mut all = events(3, 500);
        let forward = sums(&all);
        all.reverse();
        assert_eq!(forward, sums(&all));
    }

    #[test]
    fn retracting_what_was_never_merged_fails() {
        assert_eq!(sums(&[]).retract(&sums(&events(1, 3))), Err(Overflow));
    }
}
