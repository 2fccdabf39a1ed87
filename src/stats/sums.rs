//! The additive sums that are kept of a stream: all that any binned statistic needs.
//!
//! [`Cell`] holds six integers for one finest cell; [`Sums`] holds the cells, the four sums that need
//! a logarithm of each score, and the distinct scores while they are few. Two `Sums` merge by addition
//! and part by subtraction, both exact, so a window is the merge of its panes and a pane the merge of
//! its partitions, to the last bit.
//!
//! Cells lie in one dense array once more than a sixteenth are occupied and in a sorted map of the
//! few before that; a rare-event stream on a linear axis then costs a few hundred bytes a pane. While
//! sums take events by the batch, most lie in [narrow cells](super::narrow) beside them. All
//! forms compare equal through [`Sums::occupied`], which walks occupied cells in order.
//!
//! Capacity: each field is a u64 in units of 2⁻³², so a cell of scores near 1 holds 2³² events, and
//! cells of small scores hold more. Beyond that merging fails as [`Overflow`]; it never wraps. Events
//! by the batch ([`super::pending`]) go unchecked into sums that are known to hold fewer than
//! [`EVENTS_MAX`].

use super::algebra::{Merge, Overflow, Retract};
use super::axis::Grid;
use super::fixed::{ONE, Score, Scored, to_fixed};
use super::ln::ln;
use super::narrow::Narrow;
use super::weight::Weight;
use super::weighted::WeightedSums;
use std::collections::BTreeMap;

pub use super::distinct::{DISTINCT_MAX, Distinct, ScoreCount};

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
    /// With P = z(1−z) exactly: V is P rounded, and z² = z − P rounded; so all products fit a u64. Halves
    /// are rounded up. Nothing here can wrap: P ≤ 2⁶², V ≤ 2³⁰.
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
    fn accumulate(&mut self, o: &Cell) {
        self.n = self.n.wrapping_add(o.n);
        self.y = self.y.wrapping_add(o.y);
        self.z = self.z.wrapping_add(o.z);
        self.yz = self.yz.wrapping_add(o.yz);
        self.z2 = self.z2.wrapping_add(o.z2);
        self.v2 = self.v2.wrapping_add(o.v2);
    }

    /// Whether this many events can have these sums, each at most 1 an event.
    fn is_bounded(&self) -> bool {
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

/// The sums that need ℓ = log(z/(1−z)) of each score, z clipped to [2⁻³², 1−2⁻³²] for these alone;
/// in units of 2⁻³², rounded per event. For log loss and the Cox score test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
    fn zip(
        &self,
        o: &LogSums,
        f: impl Fn(i128, i128) -> Option<i128>,
    ) -> Result<LogSums, Overflow> {
        let g = |a, b| f(a, b).ok_or(Overflow);
        Ok(LogSums {
            loss: g(self.loss, o.loss)?,
            u_logit: g(self.u_logit, o.u_logit)?,
            v_logit: g(self.v_logit, o.v_logit)?,
            v_logit2: g(self.v_logit2, o.v_logit2)?,
        })
    }

    /// Whether `n` events can have these sums.
    fn is_bounded(&self, n: u64) -> bool {
        let most = u128::from(n) * u128::from(LOG_TERM_MAX);
        let parts = [self.loss, self.u_logit, self.v_logit, self.v_logit2];
        parts.iter().all(|part| part.unsigned_abs() <= most)
    }
}

/// Most that one event adds to a log sum: |ℓ| ≤ 32·ln 2 < 23 at the clip.
const LOG_TERM_MAX: u64 = 23 * ONE;

/// The log sums of at most 2²⁰ events, see [`LOG_TERM_MAX`].
#[derive(Debug, Clone, Copy, Default)]
struct LogBatch {
    loss: i64,
    u_logit: i64,
    v_logit: i64,
    v_logit2: i64,
}

impl LogBatch {
    #[inline]
    fn observe(&mut self, score: Score, outcome: bool) {
        const CLIP: f64 = 1.0 / ONE as f64;
        let z = score.value().clamp(CLIP, 1.0 - CLIP);
        let (a, b) = (ln(z), ln(1.0 - z));
        let (l, v) = (a - b, z * (1.0 - z));
        let (loss, u) = if outcome { (-a, 1.0 - z) } else { (-b, -z) };
        self.loss = self.loss.wrapping_add(to_fixed(loss));
        self.u_logit = self.u_logit.wrapping_add(to_fixed(u * l));
        self.v_logit = self.v_logit.wrapping_add(to_fixed(v * l));
        self.v_logit2 = self.v_logit2.wrapping_add(to_fixed(v * l * l));
    }

    fn sums(self) -> LogSums {
        LogSums {
            loss: self.loss.into(),
            u_logit: self.u_logit.into(),
            v_logit: self.v_logit.into(),
            v_logit2: self.v_logit2.into(),
        }
    }
}

/// The log sums of one event.
pub(super) fn log_terms(score: Score, outcome: bool) -> LogSums {
    let mut logs = LogBatch::default();
    logs.observe(score, outcome);
    logs.sums()
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
    /// What is not in narrow cells.
    cells: Cells,
    /// While events come by the batch.
    narrow: Option<Narrow>,
    logs: LogSums,
    distinct: Distinct,
    /// All that there is of weighted events, on a grid of such; the cells and logs beside it are then empty.
    weighted: Option<Box<WeightedSums>>,
}

impl Sums {
    /// No events.
    pub fn new(grid: Grid) -> Sums {
        Sums {
            weighted: grid.is_weighted().then(Box::default),
            grid,
            n: 0,
            cells: Cells::Sparse(BTreeMap::new()),
            narrow: None,
            logs: LogSums::default(),
            distinct: Distinct::default(),
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
        self.widen();
        for (index, cell) in cells {
            self.merge_cell(index, &cell)?;
        }
        self.logs = self.logs.zip(logs, i128::checked_add)?;
        self.distinct.merge(distinct)
    }

    /// The grid of the cells.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Number of events.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The sums of weighted events, on a grid of such.
    pub fn weighted(&self) -> Option<&WeightedSums> {
        self.weighted.as_deref()
    }

    /// Adds one event of a weight. It is an error to call this on a grid without weights.
    pub fn observe_weighted(
        &mut self,
        score: Score,
        outcome: bool,
        weight: Weight,
    ) -> Result<(), Overflow> {
        let weighted = self.weighted.as_deref_mut().ok_or(Overflow)?;
        weighted.observe(&self.grid, score, outcome, weight)?;
        self.n = weighted.n();
        Ok(())
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

    /// Occupied cells in ascending order of index.
    pub fn occupied(&self) -> impl Iterator<Item = (u32, Cell)> {
        let narrow = self.narrow.as_ref().map(|narrow| self.with(narrow));
        let wide = narrow.is_none().then(|| self.wide());
        let all = narrow.into_iter().flatten();
        all.chain(wide.into_iter().flatten())
            .filter(|(_, c)| c.n > 0)
    }

    /// Hands over the occupied cells in ascending order of index: faster than [`Sums::occupied`] where all are wide, as
    /// those of a window are.
    #[inline]
    pub fn each_occupied(&self, mut f: impl FnMut(u32, &Cell)) {
        match (&self.narrow, &self.cells) {
            (None, Cells::Dense(all)) => {
                for (index, cell) in (0..).zip(all) {
                    if cell.n > 0 {
                        f(index, cell);
                    }
                }
            }
            _ => self.occupied().for_each(|(index, cell)| f(index, &cell)),
        }
    }

    /// Cells that are not narrow, in ascending order of index.
    fn wide(&self) -> impl Iterator<Item = (u32, Cell)> {
        let (sparse, dense) = match &self.cells {
            Cells::Sparse(map) => (Some(map.iter().map(|(&i, c)| (i, *c))), None),
            Cells::Dense(all) => (None, Some((0..).zip(all.iter().copied()))),
        };
        let sparse = sparse.into_iter().flatten();
        sparse.chain(dense.into_iter().flatten())
    }

    /// All cells, each with what it has beside its narrow form.
    fn with(&self, narrow: &Narrow) -> impl Iterator<Item = (u32, Cell)> {
        (0..).zip(narrow.cells()).map(|(index, mut cell)| {
            let wide = match &self.cells {
                Cells::Sparse(map) if map.is_empty() => None,
                Cells::Sparse(map) => map.get(&index),
                Cells::Dense(all) => all.get(index as usize),
            };
            if let Some(wide) = wide {
                cell.accumulate(wide);
            }
            (index, cell)
        })
    }

    /// Adds one event: six integers to one cell, four to the log sums. It is an error to call this on a grid of
    /// weighted events.
    pub fn observe(&mut self, score: Score, outcome: bool) -> Result<(), Overflow> {
        if self.weighted.is_some() {
            return Err(Overflow);
        }
        let cell = Cell::of(score.fixed(), outcome);
        self.widen();
        self.merge_cell(self.grid.cell_of(score.value()), &cell)?;
        let mut logs = LogBatch::default();
        logs.observe(score, outcome);
        self.logs = self.logs.zip(&logs.sums(), i128::checked_add)?;
        self.distinct.observe(score, outcome)
    }

    /// Adds a batch of at most 2²⁰ events to sums that [`Sums::is_bounded`] holds of, up to
    /// [`EVENTS_MAX`] in all.
    pub(super) fn observe_all(&mut self, batch: &[Scored]) {
        self.n += batch.len() as u64;
        let mut rest = batch;
        while let Cells::Sparse(map) = &mut self.cells
            && self.narrow.is_none()
            && map.len() < few(&self.grid)
            && let [one, more @ ..] = rest
        {
            let (index, cell) = located(&self.grid, *one);
            map.entry(index).or_default().accumulate(&cell);
            rest = more;
        }
        if !rest.is_empty() {
            self.observe_many(rest);
        }
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
        if let (Cells::Sparse(_), None) = (&self.cells, &self.narrow) {
            self.narrow();
        }
        let grid = self.grid;
        let Some(mut narrow) = self.narrow.take() else {
            for one in batch {
                let (index, cell) = located(&grid, *one);
                self.cell_mut(index).accumulate(&cell);
            }
            return;
        };
        narrow.observe(&grid, batch, |index, cell| {
            self.cell_mut(index).accumulate(cell)
        });
        self.narrow = Some(narrow);
        if let Cells::Dense(_) = self.cells {
            self.widen();
        }
    }

    /// Makes many cells narrow before a batch is added to them.
    pub(super) fn narrow_dense(&mut self) {
        if let (Cells::Dense(_), None) = (&self.cells, &self.narrow) {
            self.narrow();
        }
    }

    /// Makes the cells narrow, unless too many have more events than that holds: they would take more
    /// room than wide ones.
    #[cold]
    fn narrow(&mut self) {
        let mut narrow = Narrow::new(&self.grid);
        let mut rest = Sums::new(self.grid);
        for (index, cell) in self.wide().filter(|(_, c)| c.n > 0) {
            if !narrow.take(index, &cell) {
                *rest.cell_mut(index) = cell;
            }
        }
        if let Cells::Sparse(_) = rest.cells {
            self.cells = rest.cells;
            self.narrow = Some(narrow);
        }
    }

    /// Moves all narrow cells back.
    #[cold]
    fn widen(&mut self) {
        if let Some(narrow) = self.narrow.take() {
            for (index, cell) in (0..).zip(narrow.cells()).filter(|(_, c)| c.n > 0) {
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
        let narrow = self.narrow.as_ref().map_or(0, Narrow::bytes);
        narrow
            + match &self.cells {
                // A B-tree node holds up to 11 entries and is at least half full.
                Cells::Sparse(map) => map.len() * 2 * (size_of::<Cell>() + size_of::<u32>()),
                Cells::Dense(all) => size_of_val::<[Cell]>(all),
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
        }
    }

    fn densify(&mut self) {
        let mut all = vec![Cell::default(); self.grid.cells() as usize].into_boxed_slice();
        for (index, cell) in self.wide() {
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
        self.merge_parts(other.occupied(), &other.logs, &other.distinct)
    }
}

impl Retract for Sums {
    /// Takes out `other`. Distinct scores that were given up stay so; the rest is as if `other` had
    /// never been there.
    fn retract(&mut self, other: &Sums) -> Result<(), Overflow> {
        assert_eq!(self.grid, other.grid, "sums of two grids never meet");
        if let (Some(ours), Some(theirs)) = (self.weighted.as_deref_mut(), other.weighted()) {
            ours.retract(theirs)?;
            self.n = ours.n();
            return Ok(());
        }
        self.widen();
        for (index, cell) in other.occupied() {
            self.cell_mut(index).retract(&cell)?;
            self.n -= cell.n;
        }
        if let Cells::Sparse(map) = &mut self.cells {
            map.retain(|_, c| c.n > 0);
        }
        self.logs = self.logs.zip(&other.logs, i128::checked_sub)?;
        self.distinct.retract(&other.distinct)
    }
}

/// Cells that lie in a map rather than an array.
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
            && self.weighted == other.weighted
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
