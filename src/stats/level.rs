//! One level: a sample cut into cells, as floats, ready for the estimators.
//!
//! Floating point begins here. A [`Level`] lists its occupied cells in ascending order as columns.
//! It is made from the integer [`Sums`] of a window, or offline from raw scores in double precision
//! with any number of cells, so that the same estimators serve the daemon and the checks against
//! published values.

pub use super::columns::LevelCell;

use super::columns::{Columns, Mean};
use super::sums::Sums;
use super::weight::{UNIT_16, UNIT_32, UNIT_48, UNIT_64, UNIT_96};
use super::weighted::{WeightedCell, WeightedEvent, WeightedSums};

impl LevelCell {
    /// The cell of weighted integer sums, with what more there is to know of it.
    pub(super) fn of_weighted(index: u32, c: &WeightedCell) -> (LevelCell, WeightMoments) {
        // Differences wrap on the way and end in range.
        let u = (u128::from(c.wy) << 32).wrapping_sub(c.wz) as i128;
        let u2 = (c.w2y << 32).wrapping_sub(c.w2yz << 1).wrapping_add(c.w2z2) as i128;
        let v = c.w2z.wrapping_sub(c.w2z2) as i128;
        let w2u = (c.w2y << 32).wrapping_sub(c.w2z) as i128;
        let (w, z) = (c.w as f64 * UNIT_16, c.wz as f64 * UNIT_48);
        let mean = Mean::of(z / w);
        let (w3, w6) = (c.w3 as f64 * UNIT_48, c.w6.value() * UNIT_96);
        let cell = LevelCell {
            index: u64::from(index),
            n: w,
            count: c.n as f64,
            y: c.wy as f64 * UNIT_16,
            z,
            u: u as f64 * UNIT_48,
            u2: u2 as f64 * UNIT_64,
            v: v as f64 * UNIT_64,
            v2: c.w4v2.value() * UNIT_96,
            v3: mean.v3(w6),
            mu3: mean.mu3(w3),
            mu3_2: mean.mu3_2(w6),
        };
        let weights = WeightMoments {
            w2: c.w2 as f64 * UNIT_32,
            w2u: w2u as f64 * UNIT_64,
        };
        (cell, weights)
    }
}

/// What more there is to know of a cell of weighted events.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WeightMoments {
    /// Σw².
    pub w2: f64,
    /// Σw²U.
    pub w2u: f64,
}

impl WeightMoments {
    fn add(&mut self, o: &WeightMoments) {
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
    pub occupied: Columns,
    /// One for each of them where events are weighted; empty where they are not, or all by 1.
    pub weights: Vec<WeightMoments>,
}

impl Level {
    /// Cuts raw scores into `m` equal cells of [0, 1], the last closed; `m` need not be dyadic.
    /// Scores must lie in [0, 1].
    pub fn from_scores(sample: &[(f64, bool)], m: u64) -> Level {
        Level::cut(sample.iter().map(|&(z, y)| (z, y, 1.0)).collect(), m)
    }

    /// The same of raw weighted events. With all weights 1 it is [`Level::from_scores`], to the
    /// bit.
    pub fn from_weighted(sample: &[WeightedEvent], m: u64) -> Level {
        Level::cut(sample.to_vec(), m)
    }

    fn cut(mut events: Vec<WeightedEvent>, m: u64) -> Level {
        events.sort_by(|a, b| a.0.total_cmp(&b.0));
        let plain = events.iter().all(|&(_, _, w)| w == 1.0);
        let mut level = Level {
            cells: m,
            ..Level::default()
        };
        for (z, y, w) in events {
            let index = ((z * m as f64) as u64).min(m - 1);
            let y = f64::from(u8::from(y));
            let (u, v, w2) = (y - z, z * (1.0 - z), w * w);
            let mu3 = v * (1.0 - 2.0 * z);
            let (w3, w6) = (w2 * w, w2 * w2 * w2);
            let one = LevelCell {
                index,
                n: w,
                count: 1.0,
                y: w * y,
                z: w * z,
                u: w * u,
                u2: w2 * (u * u),
                v: w2 * v,
                v2: w2 * w2 * (v * v),
                v3: w6 * (v * v * v),
                mu3: w3 * mu3,
                mu3_2: w6 * (mu3 * mu3),
            };
            if plain {
                level.occupied.add(one);
            } else {
                level.push(one, WeightMoments { w2, w2u: w2 * u });
            }
        }
        level
    }

    /// Whether events are weighted, and not all by 1.
    pub fn is_weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Occupied cells with Σw² and Σw²U, which without weights are N and ΣU.
    pub fn squares(&self) -> impl Iterator<Item = (LevelCell, WeightMoments)> {
        let plain = |c: &LevelCell| WeightMoments { w2: c.n, w2u: c.u };
        let cells = self.occupied.iter().enumerate();
        cells.map(move |(i, c)| (c, self.weights.get(i).copied().unwrap_or_else(|| plain(&c))))
    }

    /// Adds a cell of weighted events to the last one where the index is the same, else appends it.
    pub(super) fn push(&mut self, cell: LevelCell, weights: WeightMoments) {
        let appended = self.occupied.add(cell);
        match self.weights.last_mut() {
            Some(last) if !appended => last.add(&weights),
            _ => self.weights.push(weights),
        }
    }

    /// The finest cells of a window's sums.
    pub fn from_sums(sums: &Sums) -> Level {
        if let Some(weighted) = sums.weighted() {
            return Level::of_weighted(weighted, u64::from(sums.grid().cells()));
        }
        Level {
            cells: u64::from(sums.grid().cells()),
            occupied: Columns::from_sums(sums),
            weights: Vec::new(),
        }
    }

    fn of_weighted(sums: &WeightedSums, cells: u64) -> Level {
        let (mut occupied, mut weights) = (Columns::default(), Vec::new());
        for (index, c) in sums.cells() {
            let (cell, moments) = LevelCell::of_weighted(index, c);
            occupied.push(cell);
            weights.push(moments);
        }
        let plain = sums.cells().all(|(_, c)| c.is_plain());
        Level {
            cells,
            occupied,
            weights: if plain { Vec::new() } else { weights },
        }
    }

    /// The level of half as many cells. Each of its cells has one child or two, which are
    /// neighbours.
    pub(super) fn parent(&self) -> Level {
        if self.is_weighted() {
            return self.weighted_parent();
        }
        Level {
            cells: self.cells / 2,
            occupied: self.occupied.parents(self.cells),
            weights: Vec::new(),
        }
    }

    fn weighted_parent(&self) -> Level {
        let mut parent = Level {
            cells: self.cells / 2,
            ..Level::default()
        };
        for (cell, weights) in self.squares() {
            let index = cell.index / 2;
            parent.push(LevelCell { index, ..cell }, weights);
        }
        parent
    }
}
