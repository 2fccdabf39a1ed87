//! Cells that take events: four words instead of six.
//!
//! With a thousand streams an event's cell is in no cache, so the cost of an event is the cache
//! line of 64 bytes that comes from memory and goes back. A [`Cell`] of 48 bytes crosses two lines
//! as often as it fits in one. The same sums fit in 32 bytes, two to a line:
//!
//! ```text
//! word 0   n << 48 | Σz          z ≤ 2³², so 2¹⁶ − 1 events fit below bit 48
//! word 1   y << 48 | Σyz
//! word 2   Σ(z − z²)             z² is the difference to Σz
//! word 3   ΣV²
//! ```
//!
//! An event adds its words to those of its cell. Before a batch is added, all its cells are read
//! once. This is almost free, because it brings them into the cache side by side instead of one
//! after the other. A cell that has half of its 2¹⁶ events is then added to the full sums and
//! starts from 0.
//!
//! Always: no cell holds more than [`SPILL`] + [`BATCH_MAX`] events; compact and full sums together
//! are those of the events one by one, to the last bit. V is z(1−z) rounded, and so is z − z²: they
//! could differ only where z(1−z) lies in the middle of two units, z² ≡ 2³¹ mod 2³², and no square
//! of an integer does.

use super::axis::Grid;
use super::cell::Cell;
use super::fixed::{ONE, Scored};

/// Number of events of a cell from which it is moved to the full sums.
const SPILL: u64 = 1 << 15;

/// Events that are added between two checks for cells to move.
const BATCH_MAX: usize = 256;

const COUNT_BIT: u32 = 48;
const SUM: u64 = (1 << COUNT_BIT) - 1;

/// The sums of one cell. Aligned, so that none lies across two lines.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
struct CompactCell([u64; 4]);

impl CompactCell {
    #[inline]
    fn of(one: Scored) -> CompactCell {
        const HALF: u64 = 1 << 31;
        let z = one.score().fixed();
        let counted = z.wrapping_add(1 << COUNT_BIT);
        let positive = u64::from(one.outcome()).wrapping_neg();
        let v = z.wrapping_mul(ONE.wrapping_sub(z)).wrapping_add(HALF) >> 32;
        let v2 = v.wrapping_mul(v).wrapping_add(HALF) >> 32;
        CompactCell([counted, counted & positive, v, v2])
    }

    #[inline]
    fn add(&mut self, o: CompactCell) {
        for (ours, theirs) in self.0.iter_mut().zip(o.0) {
            *ours = ours.wrapping_add(theirs);
        }
    }

    /// The words of a cell of fewer than [`SPILL`] events; `None` if it has more or does not fit.
    fn from_cell(c: &Cell) -> Option<CompactCell> {
        let counted = |n: u64, sum: u64| n << COUNT_BIT | sum;
        let fits = c.n < SPILL && c.y <= c.n && c.z <= SUM && c.yz <= SUM;
        fits.then(|| {
            let v = c.z.wrapping_sub(c.z2);
            CompactCell([counted(c.n, c.z), counted(c.y, c.yz), v, c.v2])
        })
    }

    fn cell(self) -> Cell {
        let [counted, positive, v, v2] = self.0;
        let z = counted & SUM;
        Cell {
            n: counted >> COUNT_BIT,
            y: positive >> COUNT_BIT,
            z,
            yz: positive & SUM,
            z2: z.wrapping_sub(v),
            v2,
        }
    }
}

/// All cells of a grid, 32 bytes each.
#[derive(Debug, Clone)]
pub(super) struct CompactCells(Box<[CompactCell]>);

impl CompactCells {
    /// No events.
    pub fn new(grid: &Grid) -> CompactCells {
        CompactCells(vec![CompactCell::default(); grid.cells() as usize].into())
    }

    /// Sets a cell that has no events here; returns false, without a change, if `cell` holds too
    /// many.
    pub fn take(&mut self, index: u32, cell: &Cell) -> bool {
        match CompactCell::from_cell(cell) {
            Some(words) => self.0[index as usize] = words,
            None => return false,
        }
        true
    }

    /// Adds events; hands the cells that have become full to `spill`.
    pub fn observe(&mut self, grid: &Grid, events: &[Scored], mut spill: impl FnMut(u32, &Cell)) {
        let mut cells = [0; BATCH_MAX];
        for batch in events.chunks(BATCH_MAX) {
            let cells = &mut cells[..batch.len()];
            grid.cells_of(batch.iter().map(|one| one.score().value()), cells);
            let read = |any, at: &u32| any | self.0[*at as usize].0[0];
            if cells.iter().fold(0, read) >> COUNT_BIT >= SPILL {
                self.spill(cells, &mut spill);
            }
            for (at, one) in cells.iter().zip(batch) {
                self.0[*at as usize].add(CompactCell::of(*one));
            }
        }
    }

    #[cold]
    fn spill(&mut self, cells: &[u32], spill: &mut impl FnMut(u32, &Cell)) {
        for &at in cells {
            let words = &mut self.0[at as usize];
            if words.0[0] >> COUNT_BIT >= SPILL {
                spill(at, &words.cell());
                *words = CompactCell::default();
            }
        }
    }

    /// All cells in order, those without events too.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        self.0.iter().map(|words| words.cell())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val::<[CompactCell]>(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::axis::Axis;
    use super::super::fixed::Score;
    use super::*;

    #[test]
    fn every_score_has_the_words_of_its_cell_and_back() {
        let mut x = 1u64;
        for i in 0..200_000u64 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let fixed = match i {
                0..=65_536 => i << 16,
                _ => x >> 32 >> (x % 32),
            };
            for y in [false, true] {
                let score = Score::new(fixed as f64 / ONE as f64).unwrap();
                let (cell, words) = (Cell::of(fixed, y), CompactCell::of(Scored::new(score, y)));
                assert_eq!(words.cell(), cell);
                assert_eq!(CompactCell::from_cell(&cell).unwrap().0, words.0);
            }
        }
    }

    #[test]
    fn a_cell_of_ones_never_fills_its_words() {
        let grid = Grid::new(Axis::Linear, 1);
        let (mut compact, mut spilled) = (CompactCells::new(&grid), Vec::new());
        let one = Scored::new(Score::new(1.0).unwrap(), true);
        let n = 3 * SPILL as usize + 100;
        compact.observe(&grid, &vec![one; n], |at, cell| spilled.push((at, *cell)));
        assert!(spilled.len() == 3 && spilled.iter().all(|(at, _)| *at == 1));
        let rest = compact.cells().nth(1).unwrap();
        let all = spilled.iter().map(|(_, c)| c).chain([&rest]);
        let (count, sum) = all.fold((0, 0), |(n, z), c| (n + c.n, z + c.yz));
        assert_eq!((count, sum), (n as u64, (n as u64) << 32));
        assert!(CompactCell::from_cell(&spilled[0].1).is_none());
    }
}
