//! One level: a sample cut into cells, as floats, ready for the estimators.
//!
//! Floating point begins here. A [`Level`] lists its occupied cells in ascending order as columns.
//! It is made from the integer [`Sums`] of a window, or offline from raw scores in double precision
//! with any number of cells, so that the same estimators serve the daemon and the checks against
//! published values.

pub use super::columns::LevelCell;

use super::columns::{Columns, Mean, total};
use super::sums::Sums;
use super::weight::{UNIT_16, UNIT_32, UNIT_48, UNIT_64, UNIT_96};
use super::weighted::{WeightedCell, WeightedEvent, WeightedSums};
use std::borrow::Cow;

/// A sample in ascending order of scores; events of one score keep theirs, and so do the bits of
/// sums.
pub(super) fn ascending(sample: &[(f64, bool)]) -> Vec<(f64, bool)> {
    let mut events = sample.to_vec();
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    events
}

/// The same of weighted events.
pub(super) fn ascending_weighted(sample: &[WeightedEvent]) -> Vec<WeightedEvent> {
    let mut events = sample.to_vec();
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    events
}

impl LevelCell {
    /// The cell of one event, of `m`.
    #[inline(always)]
    fn of_event((z, y, w): WeightedEvent, m: u64) -> LevelCell {
        let index = ((z * m as f64) as u64).min(m - 1);
        let y = f64::from(u8::from(y));
        let (u, v, w2) = (y - z, z * (1.0 - z), w * w);
        let mu3 = v * (1.0 - 2.0 * z);
        let (w3, w6) = (w2 * w, w2 * w2 * w2);
        LevelCell {
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
        Level::of_ascending(&ascending(sample), m)
    }

    /// The same of raw weighted events. With all weights 1 it is [`Level::from_scores`], to the
    /// bit.
    pub fn from_weighted(sample: &[WeightedEvent], m: u64) -> Level {
        Level::of_ascending_weighted(&ascending_weighted(sample), m)
    }

    /// [`Level::from_scores`] of a sample in ascending order.
    pub(super) fn of_ascending(sample: &[(f64, bool)], m: u64) -> Level {
        Level::plain(sample.iter().map(|&(z, y)| (z, y, 1.0)), m)
    }

    /// [`Level::from_weighted`] of a sample in ascending order.
    pub(super) fn of_ascending_weighted(sample: &[WeightedEvent], m: u64) -> Level {
        if sample.iter().all(|&(_, _, w)| w == 1.0) {
            return Level::plain(sample.iter().copied(), m);
        }
        let mut level = Level {
            cells: m,
            ..Level::default()
        };
        for &(z, y, w) in sample {
            let one = LevelCell::of_event((z, y, w), m);
            let (w2, u) = (w * w, f64::from(u8::from(y)) - z);
            level.push(one, WeightMoments { w2, w2u: w2 * u });
        }
        level
    }

    /// The cells of ascending events of weight 1. A cell is kept at hand until the next one begins.
    fn plain(events: impl Iterator<Item = WeightedEvent>, m: u64) -> Level {
        let mut occupied = Columns::default();
        let mut events = events.map(|event| LevelCell::of_event(event, m));
        if let Some(mut cell) = events.next() {
            for one in events {
                if one.index == cell.index {
                    cell.add(&one);
                } else {
                    occupied.push(cell);
                    cell = one;
                }
            }
            occupied.push(cell);
        }
        Level {
            cells: m,
            occupied,
            weights: Vec::new(),
        }
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

    /// Σw⁴V of each cell, ΣV without weights; of weighted events as if V were the same for all of a
    /// cell.
    pub(super) fn fourth(&self) -> Cow<'_, [f64]> {
        if !self.is_weighted() {
            return Cow::Borrowed(&self.occupied.v);
        }
        let of = |(c, weights): (LevelCell, WeightMoments)| match c.v > 0.0 {
            true => c.v2 / c.v * weights.w2,
            false => 0.0,
        };
        Cow::Owned(self.squares().map(of).collect())
    }

    /// As many outcomes of equal weight as ΣwU rests on, (Σw²V)²/Σw⁴V: ΣV without weights.
    pub(super) fn information(&self) -> f64 {
        let v = total(&self.occupied.v);
        if !self.is_weighted() {
            return v;
        }
        let fourth = total(&self.fourth());
        if v > 0.0 { v * (v / fourth) } else { 0.0 }
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

    /// How many of its cells, those of the largest ΣV, leave at most this share of ΣV to the
    /// others; and ΣV of the others.
    pub(super) fn large(&self, share: f64) -> (usize, f64) {
        let mut ascending = self.occupied.v.clone();
        ascending.sort_by(f64::total_cmp);
        let most = share * ascending.iter().sum::<f64>();
        let mut rest = 0.0;
        let small = (ascending.iter()).take_while(|&&v| {
            let fits = rest + v <= most;
            rest += if fits { v } else { 0.0 };
            fits
        });
        let small = small.count();
        (ascending.len() - small, rest)
    }

    /// Its cells of the largest ΣV, so many, and the others.
    pub(super) fn split(&self, large: usize) -> (Level, Level) {
        let v = &self.occupied.v;
        let mut order: Vec<usize> = (0..v.len()).collect();
        order.sort_by(|a, b| v[*b].total_cmp(&v[*a]));
        let mut parts = [0, 1].map(|_| Level {
            cells: self.cells,
            ..Level::default()
        });
        order.truncate(large);
        for (at, (cell, weights)) in self.squares().enumerate() {
            let part = usize::from(!order.contains(&at));
            parts[part].append(cell, weights, self.is_weighted());
        }
        parts.into()
    }

    /// The level with one more cell, of all events of another level.
    pub(super) fn with_one(mut self, others: &Level) -> Level {
        let (index, weighted) = (self.cells, others.is_weighted());
        for (cell, weights) in others.squares() {
            self.append(LevelCell { index, ..cell }, weights, weighted);
        }
        self
    }

    fn append(&mut self, cell: LevelCell, weights: WeightMoments, weighted: bool) {
        if weighted {
            self.push(cell, weights);
        } else {
            self.occupied.add(cell);
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
