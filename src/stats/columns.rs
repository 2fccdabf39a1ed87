//! The occupied cells of a level, column by column.
//!
//! A statistic reads three or four of the twelve sums of a cell, for thousands of cells. With
//! columns only those sums pass through the caches, and the loops become vector code. Code that
//! reads whole cells iterates over [`LevelCell`]s; fields that it does not use are not loaded.
//!
//! Always: every column has the same number of entries, in ascending order of index.

use super::cell::{Cell, EVENTS_MAX};
use super::sums::Sums;

/// Number of cells that are converted to floats together.
const BLOCK: usize = 32;

/// One occupied cell of one level. U = y − z; V = z(1−z); μ₃ = V(1−2z); all sums over the cell. Of
/// weighted events (see [`super::weighted`]) y, z, U come times w, U² and V times w², μ₃ times w³,
/// V² times w⁴, V³ and μ₃² times w⁶.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LevelCell {
    /// Index of the cell in its level.
    pub index: u64,
    /// N, the number of events; Σw where they are weighted.
    pub n: f64,
    /// The number of events, weighted or not.
    pub count: f64,
    /// Σy.
    pub y: f64,
    /// Σz.
    pub z: f64,
    /// ΣU.
    pub u: f64,
    /// ΣU².
    pub u2: f64,
    /// ΣV.
    pub v: f64,
    /// ΣV².
    pub v2: f64,
    /// ΣV³; from sums: of the finest cells' mean scores.
    pub v3: f64,
    /// Σμ₃; from sums: of the finest cells' mean scores.
    pub mu3: f64,
    /// Σμ₃²; from sums: of the finest cells' mean scores.
    pub mu3_2: f64,
}

impl LevelCell {
    /// The cell of integer sums of any number of events.
    fn of_many(index: u64, c: &Cell) -> LevelCell {
        const UNIT: f64 = 1.0 / (1u64 << 32) as f64;
        let [y, z, yz, z2] = [c.y, c.z, c.yz, c.z2].map(i128::from);
        let [u, u2, v] = [(y << 32) - z, (y << 32) - 2 * yz + z2, z - z2].map(|sum| sum as f64);
        let (n, z) = (c.n as f64, c.z as f64 * UNIT);
        let mean = Mean::of(z / n);
        LevelCell {
            index,
            n,
            count: n,
            y: c.y as f64,
            z,
            u: u * UNIT,
            u2: u2 * UNIT,
            v: v * UNIT,
            v2: c.v2 as f64 * UNIT,
            v3: mean.v3(n),
            mu3: mean.mu3(n),
            mu3_2: mean.mu3_2(n),
        }
    }
}

macro_rules! columns {
    ($($name:ident),*) => {
        impl LevelCell {
            /// Adds the sums of another part of the same cell.
            #[inline(always)]
            pub(super) fn add(&mut self, part: &LevelCell) {
                $(self.$name += part.$name;)*
            }
        }

        /// The occupied cells of a level, one column for each sum of a [`LevelCell`].
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Columns {
            /// Index of each cell in its level.
            pub(super) index: Vec<u64>,
            $(pub(super) $name: Vec<f64>,)*
        }

        impl Columns {
            fn with_capacity(cells: usize) -> Columns {
                Columns {
                    index: Vec::with_capacity(cells),
                    $($name: Vec::with_capacity(cells),)*
                }
            }

            /// Appends a cell of a larger index.
            pub(super) fn push(&mut self, cell: LevelCell) {
                self.index.push(cell.index);
                $(self.$name.push(cell.$name);)*
            }

            /// Adds a cell to the last one if the index is the same, else appends it. Returns
            /// whether it was appended.
            pub(super) fn add(&mut self, cell: LevelCell) -> bool {
                if self.index.last() != Some(&cell.index) {
                    self.push(cell);
                    return true;
                }
                $(if let Some(sum) = self.$name.last_mut() {
                    *sum += cell.$name;
                })*
                false
            }

            /// The cell at a position.
            // No check here can fail, so that fields of the cell that are not used are not loaded.
            #[inline(always)]
            fn at(&self, i: usize) -> Option<LevelCell> {
                let index = *self.index.get(i)?;
                $(let $name = self.$name.get(i).copied().unwrap_or_default();)*
                Some(LevelCell { index, $($name,)* })
            }

            /// The cells of the next coarser level, where all cells are occupied.
            fn pairs(&self) -> Columns {
                Columns {
                    index: (0..self.index.len() as u64 / 2).collect(),
                    $($name: pairs(&self.$name),)*
                }
            }
        }
    };
}

columns!(n, count, y, z, u, u2, v, v2, v3, mu3, mu3_2);

/// The sums of neighbours in a column of an even number of cells.
fn pairs(column: &[f64]) -> Vec<f64> {
    const SUMS: usize = LANES / 2;
    let mut sums = vec![0.0; column.len() / 2];
    // By blocks, which become vector code.
    let (of_blocks, of_rest) = sums.as_chunks_mut::<SUMS>();
    let (blocks, rest) = column.as_chunks::<LANES>();
    for (sums, block) in of_blocks.iter_mut().zip(blocks) {
        *sums = std::array::from_fn(|i| block[2 * i] + block[2 * i + 1]);
    }
    for (sum, pair) in of_rest.iter_mut().zip(rest.chunks_exact(2)) {
        *sum = pair[0] + pair[1];
    }
    sums
}

/// For each parent, the sums of its children in two columns (with more columns, addresses would not
/// stay in registers). `first` has the position of each parent's first child, and of the end.
// Branchless, because which cells are occupied is not predictable.
fn sums([a, b]: [&[f64]; 2], first: &[u32]) -> [Vec<f64>; 2] {
    let b = &b[..a.len()];
    let mut sums = [(); 2].map(|()| vec![0.0; first.len() - 1]);
    let [of_a, of_b] = &mut sums;
    for ((ends, of_a), of_b) in first.windows(2).zip(of_a).zip(of_b) {
        let (first, last) = (ends[0] as usize, ends[1] as usize - 1);
        // One check for both columns.
        assert!(first < a.len() && last < a.len(), "children are cells");
        let second = f64::from((last - first) as u32 as i32);
        *of_a = a[first] + second * a[last];
        *of_b = b[first] + second * b[last];
    }
    sums
}

/// The sum of a column, by [`LANES`] partial sums: a single one would wait for itself at each cell.
pub(super) fn total(column: &[f64]) -> f64 {
    let (chunks, rest) = column.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += x);
    }
    sums.iter().chain(rest).sum()
}

/// Number of partial sums of a long sum.
pub(super) const LANES: usize = 8;

/// The cells of a level, ascending.
#[derive(Clone)]
pub struct CellsOf<'a> {
    columns: &'a Columns,
    next: usize,
}

impl Iterator for CellsOf<'_> {
    type Item = LevelCell;

    #[inline(always)]
    fn next(&mut self) -> Option<LevelCell> {
        let cell = self.columns.at(self.next);
        self.next += 1;
        cell
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.columns.len().saturating_sub(self.next);
        (left, Some(left))
    }
}

impl Columns {
    /// The cells, ascending.
    #[inline]
    pub fn iter(&self) -> CellsOf<'_> {
        CellsOf {
            columns: self,
            next: 0,
        }
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The cells of the next coarser level: each has one child or two, which are neighbours.
    /// `cells` is the number of cells of this level, occupied or not.
    pub(super) fn parents(&self, cells: u64) -> Columns {
        if self.index.len() as u64 == cells {
            return self.pairs();
        }
        let (index, first) = self.children();
        let [n, y] = sums([&self.n, &self.y], &first);
        let [z, u] = sums([&self.z, &self.u], &first);
        let [u2, v] = sums([&self.u2, &self.v], &first);
        let [v2, v3] = sums([&self.v2, &self.v3], &first);
        let [mu3, mu3_2] = sums([&self.mu3, &self.mu3_2], &first);
        let count = n.clone();
        Columns {
            index,
            n,
            count,
            y,
            z,
            u,
            u2,
            v,
            v2,
            v3,
            mu3,
            mu3_2,
        }
    }

    /// The indices of the parents; the position of the first child of each, and the end.
    fn children(&self) -> (Vec<u64>, Vec<u32>) {
        let (mut index, mut first) = (vec![0; self.len()], vec![0; self.len() + 1]);
        let (mut len, mut before) = (0, u64::MAX);
        for (position, &cell) in (0..).zip(&self.index) {
            // The next parent overwrites the entry of a second child.
            (index[len], first[len]) = (cell / 2, position);
            len += usize::from(cell / 2 != before);
            before = cell / 2;
        }
        index.truncate(len);
        first.truncate(len + 1);
        first[len] = self.len() as u32;
        (index, first)
    }

    /// The occupied cells of integer sums.
    pub(super) fn from_sums(sums: &Sums) -> Columns {
        if let Some(list) = sums.listed() {
            let mut columns = Columns::with_capacity(list.len());
            for block in list.chunks(BLOCK) {
                let index = block.iter().map(|(i, _)| u64::from(*i));
                columns.extend(index, block, |(_, c)| c);
            }
            return columns;
        }
        let mut count = 0;
        sums.each_occupied(|_, _| count += 1);
        let mut columns = Columns::with_capacity(count);
        if let Some(all) = sums.dense() {
            let starts = (0..).step_by(BLOCK);
            for (start, block) in starts.zip(all.chunks(BLOCK)) {
                if block.iter().all(|c| c.n > 0) {
                    columns.extend(start.., block, |c| c);
                } else {
                    columns.extend_block((start..).zip(block).filter(|(_, c)| c.n > 0));
                }
            }
        } else {
            let list: Vec<(u32, Cell)> = sums.occupied().collect();
            for block in list.chunks(BLOCK) {
                columns.extend_block(block.iter().map(|(i, c)| (u64::from(*i), c)));
            }
        }
        columns
    }

    /// Appends cells of integer sums, at most [`BLOCK`].
    fn extend_block<'a>(&mut self, some: impl Iterator<Item = (u64, &'a Cell)>) {
        let (mut index, mut cells) = ([0; BLOCK], [Cell::default(); BLOCK]);
        let mut len = 0;
        for ((to, cell), (i, c)) in index.iter_mut().zip(&mut cells).zip(some) {
            (*to, *cell) = (i, *c);
            len += 1;
        }
        self.extend(index, &cells[..len], |c| c);
    }

    /// Appends a block of cells of integer sums. Differences are taken in integers, before anything
    /// is rounded to a float; with fewer than 2³¹ events they fit an i64, even if intermediate
    /// results wrap.
    fn extend<C>(
        &mut self,
        index: impl IntoIterator<Item = u64>,
        block: &[C],
        cell: impl Fn(&C) -> &Cell,
    ) {
        const UNIT: f64 = 1.0 / (1u64 << 32) as f64;
        let cells = || block.iter().map(&cell);
        let index = index.into_iter().take(block.len());
        if cells().any(|c| c.n > EVENTS_MAX) {
            return (index.zip(cells())).for_each(|(i, c)| self.push(LevelCell::of_many(i, c)));
        }
        self.index.extend(index);
        // Below 2⁶³: the conversion of a signed integer is one instruction.
        let float = |sum: u64| sum as i64 as f64;
        let start = self.n.len();
        self.n.extend(cells().map(|c| float(c.n)));
        self.y.extend(cells().map(|c| float(c.y)));
        self.z.extend(cells().map(|c| float(c.z) * UNIT));
        let u = |c: &Cell| (c.y << 32).wrapping_sub(c.z);
        self.u.extend(cells().map(|c| float(u(c)) * UNIT));
        let u2 = |c: &Cell| (c.y << 32).wrapping_sub(c.yz << 1).wrapping_add(c.z2);
        self.u2.extend(cells().map(|c| float(u2(c)) * UNIT));
        let v = |c: &Cell| c.z.wrapping_sub(c.z2);
        self.v.extend(cells().map(|c| float(v(c)) * UNIT));
        self.v2.extend(cells().map(|c| float(c.v2) * UNIT));
        let (n, z) = (&self.n[start..], &self.z[start..]);
        self.count.extend(n);
        let mut means = [Mean::default(); BLOCK];
        for ((mean, n), z) in means.iter_mut().zip(n).zip(z) {
            *mean = Mean::of(z / n);
        }
        let moments = || n.iter().zip(&means);
        self.v3.extend(moments().map(|(n, mean)| mean.v3(*n)));
        self.mu3.extend(moments().map(|(n, mean)| mean.mu3(*n)));
        self.mu3_2.extend(moments().map(|(n, mean)| mean.mu3_2(*n)));
    }
}

impl FromIterator<LevelCell> for Columns {
    fn from_iter<I: IntoIterator<Item = LevelCell>>(cells: I) -> Columns {
        let mut columns = Columns::default();
        cells.into_iter().for_each(|cell| columns.push(cell));
        columns
    }
}

/// The moments of events that all have the mean score of their cell.
#[derive(Clone, Copy, Default)]
pub(super) struct Mean {
    v: f64,
    mu3: f64,
}

impl Mean {
    #[inline]
    pub(super) fn of(z: f64) -> Mean {
        let v = z * (1.0 - z);
        Mean {
            v,
            mu3: v * (1.0 - 2.0 * z),
        }
    }

    #[inline]
    pub(super) fn v3(&self, n: f64) -> f64 {
        n * self.v * self.v * self.v
    }

    #[inline]
    pub(super) fn mu3(&self, n: f64) -> f64 {
        n * self.mu3
    }

    #[inline]
    pub(super) fn mu3_2(&self, n: f64) -> f64 {
        n * self.mu3 * self.mu3
    }
}
