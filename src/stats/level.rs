//! One level: a sample cut into cells, as floats, ready for the estimators.
//!
//! Floating point begins here. A [`Level`] lists its occupied cells in ascending order as columns.
//! It is made from the integer [`Sums`] of a window, or offline from raw scores in double precision
//! with any number of cells, so that the same estimators serve the daemon and the checks against
//! published values.

use super::cell::{Cell, EVENTS_MAX};
use super::sums::Sums;
use super::weight::{UNIT_16, UNIT_32, UNIT_48, UNIT_64, UNIT_96};
use super::weighted::{WeightedCell, WeightedEvent, WeightedSums};

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

    /// The cell of weighted integer sums, with what more there is to know of it.
    pub(super) fn of_weighted(index: u32, c: &WeightedCell) -> (LevelCell, WeightMoments) {
        // Differences wrap on the way and end in range.
        let u = (u128::from(c.wy) << 32).wrapping_sub(c.wz) as i128;
        let u2 = (c.w2y << 32).wrapping_sub(c.w2yz << 1).wrapping_add(c.w2z2) as i128;
        let v = c.w2z.wrapping_sub(c.w2z2) as i128;
        let w2u = (c.w2y << 32).wrapping_sub(c.w2z) as i128;
        let (w, z) = (c.w as f64 * UNIT_16, c.wz as f64 * UNIT_48);
        let mean = z / w;
        let mean_v = mean * (1.0 - mean);
        let mean_mu3 = mean_v * (1.0 - 2.0 * mean);
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
            v3: w6 * mean_v * mean_v * mean_v,
            mu3: w3 * mean_mu3,
            mu3_2: w6 * mean_mu3 * mean_mu3,
        };
        let weights = WeightMoments {
            w2: c.w2 as f64 * UNIT_32,
            w2u: w2u as f64 * UNIT_64,
        };
        (cell, weights)
    }

    /// The sum of two cells, at another index.
    #[inline]
    fn plus(&self, o: &LevelCell, index: u64) -> LevelCell {
        LevelCell {
            index,
            n: self.n + o.n,
            count: self.count + o.count,
            y: self.y + o.y,
            z: self.z + o.z,
            u: self.u + o.u,
            u2: self.u2 + o.u2,
            v: self.v + o.v,
            v2: self.v2 + o.v2,
            v3: self.v3 + o.v3,
            mu3: self.mu3 + o.mu3,
            mu3_2: self.mu3_2 + o.mu3_2,
        }
    }

    /// Adds another.
    #[inline]
    pub(super) fn add(&mut self, o: &LevelCell) {
        *self = self.plus(o, self.index);
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
    pub occupied: Vec<LevelCell>,
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
                push(&mut level.occupied, one);
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
    pub fn squares(&self) -> impl Iterator<Item = (&LevelCell, WeightMoments)> {
        let plain = |c: &LevelCell| WeightMoments { w2: c.n, w2u: c.u };
        let cells = self.occupied.iter().enumerate();
        cells.map(move |(i, c)| (c, self.weights.get(i).copied().unwrap_or_else(|| plain(c))))
    }

    /// Adds a cell of weighted events to the last one where the index is the same, else appends it.
    pub(super) fn push(&mut self, cell: LevelCell, weights: WeightMoments) {
        let before = self.occupied.len();
        push(&mut self.occupied, cell);
        match self.weights.last_mut() {
            Some(last) if self.occupied.len() == before => last.add(&weights),
            _ => self.weights.push(weights),
        }
    }

    /// The finest cells of a window's sums.
    pub fn from_sums(sums: &Sums) -> Level {
        if let Some(weighted) = sums.weighted() {
            return Level::of_weighted(weighted, u64::from(sums.grid().cells()));
        }
        let mut count = 0;
        sums.each_occupied(|_, _| count += 1);
        let mut occupied = Vec::with_capacity(count);
        sums.each_occupied(|index, cell| occupied.push(LevelCell::from_sums(index, cell)));
        Level {
            cells: u64::from(sums.grid().cells()),
            occupied,
            weights: Vec::new(),
        }
    }

    fn of_weighted(sums: &WeightedSums, cells: u64) -> Level {
        let both = sums
            .cells()
            .map(|(index, c)| LevelCell::of_weighted(index, c));
        let (occupied, weights) = both.unzip();
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
        let most = self.occupied.len().min(self.cells as usize / 2);
        let mut occupied = Vec::with_capacity(most);
        let mut rest = &self.occupied[..];
        while let [first, others @ ..] = rest {
            let index = first.index / 2;
            match others {
                [second, others @ ..] if second.index / 2 == index => {
                    occupied.push(first.plus(second, index));
                    rest = others;
                }
                _ => {
                    occupied.push(LevelCell { index, ..*first });
                    rest = others;
                }
            }
        }
        Level {
            cells: self.cells / 2,
            occupied,
            weights: Vec::new(),
        }
    }

    fn weighted_parent(&self) -> Level {
        let mut parent = Level {
            cells: self.cells / 2,
            ..Level::default()
        };
        for (cell, weights) in self.squares() {
            let mut cell = *cell;
            cell.index /= 2;
            parent.push(cell, weights);
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
