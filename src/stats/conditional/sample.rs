//! A sample whose outcomes are drawn: what each rare outcome changes.
//!
//! Given the scores, a calibrated model's outcomes are independent Bernoulli variables. In a cell
//! of mean score z̄ the rarer outcome (positive where z̄ < ½) has the probability r = min(z̄,
//! 1−z̄). A replicate begins with no rare outcome at all, and every rare outcome that is drawn is a
//! *hit* in a leaf, a cell of the finest level. Hits change the statistics by known steps: with s =
//! ±1 the step of ΣU, D = ΣU of a cell before them and Q = ΣU²,
//!
//! ```text
//! (D + Σs)² − (Q + Σ(1 − 2r)) − (D² − Q) = Σs(2D + Σs) − Σ(1 − 2r)
//! ```
//!
//! The cells of all levels nest, so Σs and Σ(1 − 2r) of a cell are added once to the next coarser
//! cell with further events. A cell that holds the same events in several levels counts for all of
//! them; a cell of a single event has no part in any statistic.
//!
//! Cells stand for their events by the mean score, as everywhere; within a cell of width 1/4096 the
//! spread of scores changes the variance by a relative 10⁻⁴ at most where it matters.

use super::super::levels::Level;
use super::super::smooth::{DIRECTIONS, Quadratic, direction};

/// The rare outcomes that were observed: the position of the leaf for each.
pub(super) fn observed_hits(leaves: &Level) -> Vec<u32> {
    let mut hits = Vec::new();
    for (i, c) in leaves.occupied.iter().enumerate() {
        let rare = if is_low(c.z, c.n) { c.y } else { c.n - c.y };
        hits.extend(std::iter::repeat_n(i as u32, rare as usize));
    }
    hits
}

/// The probability of the rarer outcome of each leaf, and its number of events.
pub(super) fn rare_outcomes(leaves: &Level) -> impl Iterator<Item = (f64, f64)> {
    leaves.occupied.iter().map(|c| (base_of(c.z, c.n).1, c.n))
}

/// Whether the rarer outcome of a cell is the positive one.
fn is_low(z: f64, n: f64) -> bool {
    z + z < n
}

/// One leaf: what a hit in it changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf {
    /// Step of ΣU.
    pub step: f64,
    /// Directions of the score tests.
    pub b: [f64; DIRECTIONS],
    /// Step of Σ(U² − V): 1 − 2r.
    pub square: f64,
    /// Its finest cell of several events, among the levels and at the interval's.
    pub cells: [Option<u32>; 2],
}

/// One cell of several events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// ΣU without a hit.
    pub base: f64,
    /// 1/N, or 1/(N − 1) at the interval's level.
    pub weight: f64,
    /// The first and last level in which it holds the same events.
    pub levels: (usize, usize),
    /// The next coarser cell with further events.
    pub parent: Option<u32>,
    /// Sum of the steps of this replicate.
    steps: f64,
    /// Sum of their 1 − 2r.
    squares: f64,
}

/// One level: for each cell, ΣU without a hit and its weight, which is 0 for a single event; for
/// each leaf, its cell.
#[derive(Debug)]
struct Tier {
    cells: Vec<(f64, f64)>,
    of_leaf: Vec<u32>,
    /// Σ[(ΣU)² − ΣU²]·weight without a hit.
    base: f64,
}

/// A sample, ready to be drawn.
#[derive(Debug)]
pub(super) struct Sample {
    pub leaves: Vec<Leaf>,
    /// The cells of the levels, then those of the interval's; each after the cells that lie in it.
    pub cells: Vec<Cell>,
    /// Σ[(ΣU)² − ΣU²]·weight of each level without a hit.
    pub bases: Vec<f64>,
    /// Whether the last level is the interval's.
    with_interval: bool,
    /// ΣU up to each leaf without a hit. It falls over cells below ½ and rises over the others.
    pub path: Vec<f64>,
    /// The last leaf below ½.
    vertex: usize,
    smooth: Option<Quadratic>,
    cox: Option<Quadratic>,
    /// The score vector of both tests, and Σ(U² − V), without a hit.
    pub score: [f64; DIRECTIONS],
    pub square: f64,
    /// A bit for each cell that was hit.
    hit: Vec<u64>,
    /// A bit for each leaf that was hit, and the steps of each.
    touched: Vec<u64>,
    steps: Vec<f64>,
}

/// The sums of a replicate that the statistics beside those of levels need.
pub(super) struct Further {
    pub score: [f64; DIRECTIONS],
    pub square: f64,
    /// The least and greatest partial sum of U in order of score, 0 included.
    pub extremes: (f64, f64),
}

impl Sample {
    /// The sample of these leaves. The levels nest, coarse to fine, and they and the interval's
    /// nest in the leaves; nothing is weighted.
    pub fn of(leaves: &Level, levels: &[Level], interval: Option<&Level>) -> Sample {
        let mut sample = Sample {
            leaves: Vec::new(),
            cells: Vec::new(),
            bases: Vec::new(),
            with_interval: interval.is_some(),
            path: Vec::new(),
            vertex: 0,
            smooth: Quadratic::of(leaves),
            cox: Quadratic::of_cox(leaves),
            score: [0.0; DIRECTIONS],
            square: 0.0,
            hit: Vec::new(),
            touched: vec![0; leaves.occupied.len().div_ceil(64)],
            steps: vec![0.0; leaves.occupied.len()],
        };
        let mut at = 0.0;
        for (i, c) in leaves.occupied.iter().enumerate() {
            let (low, mean) = (is_low(c.z, c.n), c.z / c.n);
            let (base, rare) = base_of(c.z, c.n);
            let leaf = Leaf {
                step: if low { 1.0 } else { -1.0 },
                b: direction(&c),
                square: 1.0 - 2.0 * rare,
                cells: [None; 2],
            };
            at += base;
            sample.path.push(at);
            if low {
                sample.vertex = i;
            }
            for (s, b) in sample.score.iter_mut().zip(leaf.b) {
                *s += base * b;
            }
            sample.square += base * (1.0 - 2.0 * mean);
            sample.leaves.push(leaf);
        }
        let tiers = levels
            .iter()
            .map(|level| Tier::of(leaves, level, |n| 1.0 / n));
        sample.add_cells(0, &tiers.collect::<Vec<_>>());
        let interval = interval.map(|level| Tier::of(leaves, level, |n| 1.0 / (n - 1.0)));
        sample.add_cells(1, interval.as_slice());
        sample.hit = vec![0; sample.cells.len().div_ceil(64)];
        sample
    }

    /// Adds the cells of nested tiers, coarse to fine; `which` is their place in [`Leaf::cells`].
    fn add_cells(&mut self, which: usize, tiers: &[Tier]) {
        let first = self.bases.len();
        self.bases.extend(tiers.iter().map(|tier| tier.base));
        // The coarsest cell so far of each leaf.
        let mut within: Vec<Option<u32>> = vec![None; self.leaves.len()];
        for (i, tier) in tiers.iter().enumerate().rev() {
            let (level, mut begin) = (first + i, 0);
            for same in tier.of_leaf.chunk_by(|a, b| a == b) {
                let leaves = begin..begin + same.len();
                begin = leaves.end;
                let (base, weight) = tier.cells[same[0] as usize];
                if weight == 0.0 {
                    continue;
                }
                let finer = within[leaves.start];
                if let Some(cell) = finer.filter(|_| within[leaves.end - 1] == finer) {
                    self.cells[cell as usize].levels.0 = level;
                    continue;
                }
                let cell = self.cells.len() as u32;
                for leaf in leaves {
                    match within[leaf].replace(cell) {
                        Some(finer) => self.cells[finer as usize].parent = Some(cell),
                        None => self.leaves[leaf].cells[which] = Some(cell),
                    }
                }
                self.cells.push(Cell {
                    base,
                    weight,
                    levels: (level, level),
                    parent: None,
                    steps: 0.0,
                    squares: 0.0,
                });
            }
        }
    }

    /// Adds the statistics of a set of hits to an empty list.
    pub fn statistics(&mut self, hits: &[u32], out: &mut Vec<f64>) {
        let (mut score, mut square) = (self.score, self.square);
        for &hit in hits {
            let leaf = self.leaves[hit as usize];
            for (s, b) in score.iter_mut().zip(leaf.b) {
                *s += leaf.step * b;
            }
            square += leaf.square;
            self.touched[hit as usize / 64] |= 1 << (hit % 64);
            self.steps[hit as usize] += leaf.step;
            for cell in leaf.cells.into_iter().flatten() {
                self.step(cell, leaf.step, leaf.square);
            }
        }
        out.extend_from_slice(&self.bases);
        self.settle(out);
        let further = Further {
            score,
            square,
            extremes: self.extremes(),
        };
        out.extend(self.further(&further));
    }

    /// The statistics beside those of levels, in the order of [`super::Statistic`]; the interval's
    /// is 0 if there is none, and else comes before them.
    pub fn further(&self, f: &Further) -> impl Iterator<Item = f64> + use<> {
        let (score, (low, high)) = (f.score, f.extremes);
        let of = |q: &Option<Quadratic>, g| q.as_ref().map_or(0.0, |q| q.of_score(&g));
        let no_interval = (!self.with_interval).then_some(0.0);
        no_interval.into_iter().chain([
            of(&self.smooth, score),
            of(&self.cox, [score[0], score[1] + score[2], 0.0]),
            high.max(-low),
            high - low,
            score[0].abs(),
            f.square.abs(),
        ])
    }

    #[inline]
    fn step(&mut self, at: u32, step: f64, square: f64) {
        let cell = &mut self.cells[at as usize];
        cell.steps += step;
        cell.squares += square;
        self.hit[at as usize / 64] |= 1 << (at % 64);
    }

    /// Adds to the statistics of levels what the hits change; clears the hits of cells.
    fn settle(&mut self, out: &mut [f64]) {
        for word in 0..self.hit.len() {
            // Cells come after those that lie in them, so bits are only added further on.
            while self.hit[word] != 0 {
                let at = word * 64 + self.hit[word].trailing_zeros() as usize;
                self.hit[word] &= self.hit[word] - 1;
                let cell = &mut self.cells[at];
                let (steps, squares) = (cell.steps, cell.squares);
                (cell.steps, cell.squares) = (0.0, 0.0);
                let change = steps * (cell.base + cell.base + steps) - squares;
                for statistic in &mut out[cell.levels.0..=cell.levels.1] {
                    *statistic += cell.weight * change;
                }
                if let Some(parent) = cell.parent {
                    self.step(parent, steps, squares);
                }
            }
        }
    }

    /// The least and greatest partial sum of U in order of score, 0 included; clears the hits.
    fn extremes(&mut self) -> (f64, f64) {
        let (mut low, mut high) = (0.0f64, 0.0f64);
        let (mut begin, mut steps) = (0, 0.0);
        let mut stretch = |begin: usize, end: usize, steps: f64| {
            if begin >= end {
                return;
            }
            // Between two hits the path falls to the vertex and rises from there.
            for at in [begin, end - 1, self.vertex.clamp(begin, end - 1)] {
                let sum = self.path[at] + steps;
                // Faster than `f64::min` and `max`, which look for NaN.
                low = if sum < low { sum } else { low };
                high = if sum > high { sum } else { high };
            }
        };
        for word in 0..self.touched.len() {
            let mut bits = std::mem::take(&mut self.touched[word]);
            while bits != 0 {
                let leaf = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                stretch(begin, leaf, steps);
                steps += std::mem::take(&mut self.steps[leaf]);
                begin = leaf;
            }
        }
        stretch(begin, self.path.len(), steps);
        (low, high)
    }
}

/// ΣU of a cell without any rarer outcome, and the probability of its rarer outcome.
fn base_of(z: f64, n: f64) -> (f64, f64) {
    let mean = (z / n).clamp(0.0, 1.0);
    if is_low(z, n) {
        (-z, mean)
    } else {
        (n - z, 1.0 - mean)
    }
}

impl Tier {
    fn of(leaves: &Level, level: &Level, weight: impl Fn(f64) -> f64) -> Tier {
        let ratio = leaves.cells / level.cells;
        let mut tier = Tier {
            cells: Vec::with_capacity(level.occupied.len()),
            of_leaf: Vec::with_capacity(leaves.occupied.len()),
            base: 0.0,
        };
        let mut inside = leaves.occupied.iter().peekable();
        for cell in level.occupied.iter() {
            let (mut base, mut squares) = (0.0, 0.0);
            while let Some(leaf) = inside.next_if(|l| l.index / ratio == cell.index) {
                base += base_of(leaf.z, leaf.n).0;
                // Σz² of the events that do not happen, Σ(1−z)² of those that do.
                let z2 = leaf.z - leaf.v;
                squares += if is_low(leaf.z, leaf.n) {
                    z2
                } else {
                    leaf.n - 2.0 * leaf.z + z2
                };
                tier.of_leaf.push(tier.cells.len() as u32);
            }
            let weight = if cell.n >= 2.0 { weight(cell.n) } else { 0.0 };
            tier.base += (base * base - squares) * weight;
            tier.cells.push((base, weight));
        }
        tier
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::{Levels, ascending};
    use crate::rng::Rng;

    /// Σ over the cells of a level of (ΣU)² − ΣU², each with a weight by its number of events, at
    /// least 2.
    fn by_definition(events: &[(f64, bool)], cells: f64, weight: fn(f64) -> f64) -> f64 {
        let cell = |z: f64| (z * cells) as u64;
        let parts = events.chunk_by(|a, b| cell(a.0) == cell(b.0));
        let part = |events: &[(f64, bool)]| {
            let u = events.iter().map(|&(z, y)| f64::from(u8::from(y)) - z);
            let (sum, squares) = u.fold((0.0, 0.0), |(sum, squares), u| (sum + u, squares + u * u));
            (sum * sum - squares) * weight(events.len() as f64)
        };
        parts.filter(|part| part.len() > 1).map(part).sum()
    }

    #[test]
    fn hits_change_the_statistics_to_what_the_outcomes_have() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (n, values) = (1 + rng.below(150), 1 + rng.below(300));
            // All events of a leaf have one score, so no mean stands for others.
            let score = |rng: &mut Rng| (rng.below(values) as f64 + 0.5) / 512.0;
            let events: Vec<(f64, bool)> = (0..n)
                .map(|_| (score(&mut rng), rng.uniform() < 0.4))
                .collect();
            let events = ascending(&events);
            let levels = Levels::above(Level::of_ascending(&events, 512), 9);
            let (leaves, third) = (levels.finest(), &levels.as_slice()[2]);
            let mut sample = Sample::of(leaves, levels.as_slice(), Some(third));
            // What came before is forgotten.
            for _ in 0..2 {
                let mut found = Vec::new();
                sample.statistics(&observed_hits(leaves), &mut found);
                let cells = (1..=9).map(|level| f64::from(1 << level));
                let mut expected: Vec<f64> = cells
                    .map(|cells| by_definition(&events, cells, |n| 1.0 / n))
                    .collect();
                expected.push(by_definition(&events, 8.0, |n| 1.0 / (n - 1.0)));
                let u = |&(z, y): &(f64, bool)| f64::from(u8::from(y)) - z;
                let (mut sum, mut low, mut high) = (0.0, 0.0f64, 0.0f64);
                for of_score in events.chunk_by(|a, b| a.0 == b.0) {
                    sum += of_score.iter().map(u).sum::<f64>();
                    (low, high) = (low.min(sum), high.max(sum));
                }
                // U² − V = U(1 − 2z) for outcomes of 0 and 1.
                let square: f64 = events.iter().map(|e| u(e) * (1.0 - 2.0 * e.0)).sum();
                let further = [high.max(-low), high - low, sum.abs(), square.abs()];
                // Both score tests lie between; they have tests of their own.
                let found = found[..10].iter().chain(&found[12..]);
                for (found, expected) in found.zip(expected.into_iter().chain(further)) {
                    let error = (found - expected).abs();
                    assert!(
                        error < 1e-9 * (1.0 + expected.abs()),
                        "seed {seed}: {found}"
                    );
                }
            }
        }
    }
}
