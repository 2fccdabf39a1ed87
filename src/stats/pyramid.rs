//! The pyramid: one sample cut into 2, 4, 8, … cells, as floats, ready for the estimators.
//!
//! Floating point begins here. A [`Level`] lists its occupied cells in ascending order as columns;
//! level b is the pairwise sum of level b + 1, so everything comes from the finest level. A pyramid is
//! made from the integer [`Sums`] of a window, or offline from raw scores in double precision (then to
//! any depth, and with any number of cells through [`Level::from_scores`]), so that the same estimators
//! serve the daemon and the checks against published values.

use super::sums::{Cell, EVENTS_MAX, Sums};
use super::weighted::WeightedEvent;

/// One occupied cell of one level. U = y − z; V = z(1−z); μ₃ = V(1−2z); all sums over the cell. Of weighted events
/// (see [`super::weighted`]) y, z, U come times w, U² and V times w², μ₃ times w³, V² times w⁴, V³ and μ₃² times w⁶.
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
    /// The cell of integer sums. Differences are taken in integers, before anything is rounded to a
    /// float; with fewer than 2³¹ events they fit an i64, whatever wraps on the way to them.
    #[inline]
    fn from_sums(index: u32, c: &Cell) -> LevelCell {
        const UNIT: f64 = 1.0 / (1u64 << 32) as f64;
        let [u, u2, v] = if c.n <= EVENTS_MAX {
            let y = c.y << 32;
            let u = y.wrapping_sub(c.z);
            let u2 = y.wrapping_sub(c.yz << 1).wrapping_add(c.z2);
            let v = c.z.wrapping_sub(c.z2);
            [u, u2, v].map(|sum| sum as i64 as f64)
        } else {
            let [y, z, yz, z2] = [c.y, c.z, c.yz, c.z2].map(i128::from);
            [(y << 32) - z, (y << 32) - 2 * yz + z2, z - z2].map(|sum| sum as f64)
        };
        let (n, z) = (c.n as f64, c.z as f64 * UNIT);
        let mean = z / n;
        let mean_v = mean * (1.0 - mean);
        let mean_mu3 = mean_v * (1.0 - 2.0 * mean);
        LevelCell {
            index: u64::from(index),
            n,
            count: n,
            y: c.y as f64,
            z,
            u: u * UNIT,
            u2: u2 * UNIT,
            v: v * UNIT,
            v2: c.v2 as f64 * UNIT,
            v3: n * mean_v * mean_v * mean_v,
            mu3: n * mean_mu3,
            mu3_2: n * mean_mu3 * mean_mu3,
        }
    }

    /// Adds another.
    #[inline]
    pub(super) fn add(&mut self, o: &LevelCell) {
        self.n += o.n;
        self.count += o.count;
        self.y += o.y;
        self.z += o.z;
        self.u += o.u;
        self.u2 += o.u2;
        self.v += o.v;
        self.v2 += o.v2;
        self.v3 += o.v3;
        self.mu3 += o.mu3;
        self.mu3_2 += o.mu3_2;
    }
}

/// What more there is to know of a cell of weighted events.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Extra {
    /// Σw².
    pub w2: f64,
    /// Σw²U.
    pub w2u: f64,
}

impl Extra {
    fn add(&mut self, o: &Extra) {
        self.w2 += o.w2;
        self.w2u += o.w2u;
    }
}

/// The occupied cells of a partition of [0, 1] into `cells` cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Level {
    /// m, the number of cells, occupied or not.
    pub cells: u64,
    /// Occupied cells, ascending by index.
    pub occupied: Vec<LevelCell>,
    /// One for each of them where events are weighted; empty where they are not, or all by 1.
    pub extra: Vec<Extra>,
}

impl Level {
    /// Cuts raw scores into `m` equal cells of [0, 1], the last closed; `m` need not be dyadic.
    /// Scores must lie in [0, 1].
    pub fn from_scores(sample: &[(f64, bool)], m: u64) -> Level {
        let cell = |z: f64| ((z * m as f64) as u64).min(m - 1);
        let mut order: Vec<(f64, bool)> = sample.to_vec();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut occupied: Vec<LevelCell> = Vec::new();
        for (z, y) in order {
            let (index, y) = (cell(z), f64::from(u8::from(y)));
            let (u, v) = (y - z, z * (1.0 - z));
            let mu3 = v * (1.0 - 2.0 * z);
            let one = LevelCell {
                index,
                n: 1.0,
                count: 1.0,
                y,
                z,
                u,
                u2: u * u,
                v,
                v2: v * v,
                v3: v * v * v,
                mu3,
                mu3_2: mu3 * mu3,
            };
            push(&mut occupied, one);
        }
        Level {
            cells: m,
            occupied,
            extra: Vec::new(),
        }
    }

    /// Whether events are weighted, and not all by 1.
    pub fn is_weighted(&self) -> bool {
        !self.extra.is_empty()
    }

    /// Occupied cells with Σw² and Σw²U, which without weights are N and ΣU.
    pub fn squares(&self) -> impl Iterator<Item = (&LevelCell, Extra)> {
        let plain = |c: &LevelCell| Extra { w2: c.n, w2u: c.u };
        let cells = self.occupied.iter().enumerate();
        cells.map(move |(i, c)| (c, self.extra.get(i).copied().unwrap_or_else(|| plain(c))))
    }

    /// Adds a cell of weighted events to the last one where the index is the same, else appends it.
    pub(super) fn push(&mut self, cell: LevelCell, extra: Extra) {
        let before = self.occupied.len();
        push(&mut self.occupied, cell);
        match self.extra.last_mut() {
            Some(last) if self.occupied.len() == before => last.add(&extra),
            _ => self.extra.push(extra),
        }
    }

    /// The finest cells of a window's sums.
    pub fn from_sums(sums: &Sums) -> Level {
        if let Some(weighted) = sums.weighted() {
            return weighted.level(&sums.grid());
        }
        let mut count = 0;
        sums.each_occupied(|_, _| count += 1);
        let mut occupied = Vec::with_capacity(count);
        sums.each_occupied(|index, cell| occupied.push(LevelCell::from_sums(index, cell)));
        Level {
            cells: u64::from(sums.grid().cells()),
            occupied,
            extra: Vec::new(),
        }
    }

    /// The level of half as many cells. Each of its cells has one child or two, which are neighbours.
    fn parent(&self) -> Level {
        if self.is_weighted() {
            return self.weighted_parent();
        }
        let most = self.occupied.len().min(self.cells as usize / 2);
        let mut occupied = Vec::with_capacity(most);
        let mut rest = &self.occupied[..];
        while let [first, others @ ..] = rest {
            let mut cell = *first;
            cell.index /= 2;
            rest = others;
            if let [second, others @ ..] = rest
                && second.index / 2 == cell.index
            {
                cell.add(second);
                rest = others;
            }
            occupied.push(cell);
        }
        Level {
            cells: self.cells / 2,
            occupied,
            extra: Vec::new(),
        }
    }

    fn weighted_parent(&self) -> Level {
        let mut parent = Level {
            cells: self.cells / 2,
            ..Level::default()
        };
        for (cell, extra) in self.squares() {
            let mut cell = *cell;
            cell.index /= 2;
            parent.push(cell, extra);
        }
        parent
    }
}

/// Adds a cell to the last one where the index is the same, else appends it.
fn push(occupied: &mut Vec<LevelCell>, cell: LevelCell) {
    match occupied.last_mut() {
        Some(last) if last.index == cell.index => last.add(&cell),
        _ => occupied.push(cell),
    }
}

/// Levels 1 to B of one sample, coarse to fine.
#[derive(Debug, Clone, PartialEq)]
pub struct Pyramid {
    n: f64,
    levels: Vec<Level>,
}

impl Pyramid {
    /// All levels of a window, from 2 cells to those of its grid.
    pub fn from_sums(sums: &Sums) -> Pyramid {
        Self::above(Level::from_sums(sums), sums.grid().level())
    }

    /// Levels 1 to `finest` of raw weighted events, in double precision.
    pub fn from_weighted(sample: &[WeightedEvent], finest: u32) -> Pyramid {
        Self::above(Level::from_weighted(sample, 1 << finest), finest)
    }

    /// Levels 1 to `finest` (at most 52) of raw scores in [0, 1], in double precision.
    pub fn from_scores(sample: &[(f64, bool)], finest: u32) -> Pyramid {
        Self::above(Level::from_scores(sample, 1 << finest), finest)
    }

    /// All levels above one of 2^`depth` cells, and it.
    pub(super) fn above(finest: Level, depth: u32) -> Pyramid {
        let mut levels = vec![finest];
        for _ in 1..depth {
            let parent = levels[levels.len() - 1].parent();
            levels.push(parent);
        }
        levels.reverse();
        let (mut n, mut squares) = (0.0, 0.0);
        for (c, extra) in levels[0].squares() {
            n += c.n;
            squares += extra.w2;
        }
        // Kish's effective number; n·(n/n) is n, to the bit.
        let n = if n > 0.0 { n * (n / squares) } else { 0.0 };
        Pyramid { n, levels }
    }

    /// n, the number of events; where they are weighted the effective one, (Σw)²/Σw².
    pub fn n(&self) -> f64 {
        self.n
    }

    /// Levels with 2, 4, …, 2^B cells, in this order.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// The finest level.
    pub fn finest(&self) -> &Level {
        &self.levels[self.levels.len() - 1]
    }
}
