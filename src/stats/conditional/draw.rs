//! Outcomes drawn from the scores: only the rarer outcome of each cell is drawn.
//!
//! Given the scores, a calibrated model's outcomes are independent coins. In a cell of mean score
//! z̄ the rarer outcome (positive where z̄ < ½) has the probability r = min(z̄, 1−z̄). A replicate
//! begins with no rare outcome at all, and every rare outcome that is drawn, a *hit*, changes each
//! statistic by a known step: with s = ±1 the step of ΣU, D = ΣU of the cell before it and Q = ΣU²,
//!
//! ```text
//! (D + s)² − (Q + 1 − 2r) − (D² − Q) = 2(s·D + r)
//! ```
//!
//! So a replicate costs as much as rare outcomes are expected, at most 2ΣV. Hits are drawn by
//! geometric jumps over the events of all cells whose r lies in (2^−(k+1), 2^−k], with the
//! probability 2^−k, and each is kept with probability r·2^k: exact, at most two trials a hit.
//!
//! Cells stand for their events by the mean score, as everywhere; within a cell of 1/4096 the
//! spread of scores changes the variance by a relative 10⁻⁴ at most where it matters.
//!
//! All statistics of one replicate come from the same hits, so their joint law is there too. The
//! observed statistics are worked out by the same steps, so ties with the drawn ones are exact.

use super::super::levels::Level;
use super::super::rng::Rng;
use super::super::smooth::{DIRECTIONS, Quadratic, direction};
use super::hits::Group;
use super::rank::Ranks;

/// A statistic that has one value a replicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// T of the interval's level.
    Interval,
    /// Score test in the smooth directions.
    Smooth,
    /// Cox's score test: its directions are 1 and ln z − ln(1−z).
    Cox,
    /// Largest |ΣU| of the scores up to any.
    Cumulative,
    /// Range of ΣU of the scores up to any.
    Kuiper,
    /// |ΣU|.
    InTheLarge,
    /// |Σ(U² − V)|.
    Spiegelhalter,
}

/// Statistics beside those of levels.
const FURTHER: usize = 7;

/// The statistics of levels, and further ones.
#[derive(Debug, Clone)]
pub struct Drawn {
    levels: usize,
    /// Of all statistics.
    pub ranks: Ranks,
}

impl Drawn {
    /// Draws `replicates` sets of outcomes for the scores of `leaves`. Levels, and the interval's,
    /// nest in them; nothing is weighted.
    pub fn of(
        leaves: &Level,
        levels: &[Level],
        interval: Option<&Level>,
        replicates: usize,
        seed: u64,
    ) -> Drawn {
        let mut sample = Sample::of(leaves, levels, interval);
        let observed = sample.statistics(&observed_hits(leaves));
        let rare = (leaves.occupied.iter()).map(|c| (base_of(c.z, c.n).1, c.n));
        let (mut rng, groups) = (Rng::new(seed), Group::all(rare, 0.5));
        let mut hits = Vec::new();
        let draw = || {
            hits.clear();
            groups.iter().for_each(|g| g.draw(&mut rng, &mut hits));
            sample.statistics(&hits)
        };
        Drawn {
            levels: levels.len(),
            ranks: Ranks::of(observed, replicates, draw),
        }
    }

    /// p-value of a statistic: (1 + #{drawn ≥ observed})/(R + 1), of `scale` times the observed.
    pub fn p_value(&self, statistic: Statistic, scale: f64) -> f64 {
        let at = self.position(statistic);
        self.ranks.p_value(at, |observed| scale * observed)
    }

    fn position(&self, statistic: Statistic) -> usize {
        let further = match statistic {
            Statistic::Interval => 0,
            Statistic::Smooth => 1,
            Statistic::Cox => 2,
            Statistic::Cumulative => 3,
            Statistic::Kuiper => 4,
            Statistic::InTheLarge => 5,
            Statistic::Spiegelhalter => 6,
        };
        self.levels + further
    }
}

/// The rare outcomes that were observed: the position of the leaf for each.
fn observed_hits(leaves: &Level) -> Vec<u32> {
    let mut hits = Vec::new();
    for (i, c) in leaves.occupied.iter().enumerate() {
        let rare = if is_low(c.z, c.n) { c.y } else { c.n - c.y };
        hits.extend(std::iter::repeat_n(i as u32, rare as usize));
    }
    hits
}

/// Whether the rarer outcome of a cell is the positive one.
fn is_low(z: f64, n: f64) -> bool {
    z + z < n
}

/// One leaf: what a hit in it changes.
#[derive(Debug, Clone, Copy)]
struct Leaf {
    /// Step of ΣU.
    step: f64,
    /// r, the probability of the rarer outcome.
    rare: f64,
    b: [f64; DIRECTIONS],
    /// Step of Σ(U² − V): 1 − 2r.
    square: f64,
}

/// One cell of one level.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// ΣU without a hit.
    base: f64,
    /// Twice the weight of the cell, 1/N or 1/(N − 1); 0 for a cell of one event.
    weight: f64,
    /// Sum of the steps of this replicate.
    steps: f64,
}

/// One level: its cells, and the cell of each leaf.
#[derive(Debug)]
struct Tier {
    cells: Vec<Cell>,
    of_leaf: Vec<u32>,
    /// Σ(D² − Q)·weight without a hit.
    base: f64,
}

/// A sample, ready to be drawn.
struct Sample {
    leaves: Vec<Leaf>,
    /// Cells of all tiers: those of the levels, then those of the interval's.
    cells: Vec<Cell>,
    /// For each leaf its cell in each tier.
    of_leaf: Vec<u32>,
    /// Σ(D² − Q)·weight of each tier without a hit.
    bases: Vec<f64>,
    /// Whether the last tier is the interval's.
    with_interval: bool,
    /// ΣU up to each leaf without a hit. It falls over cells below ½ and rises over the others.
    path: Vec<f64>,
    /// The last leaf below ½.
    vertex: usize,
    smooth: Option<Quadratic>,
    cox: Option<Quadratic>,
    /// The scores of both, without a hit.
    score: [f64; DIRECTIONS],
    square: f64,
    /// A bit for each leaf that was hit, and the steps of each.
    touched: Vec<u64>,
    steps: Vec<f64>,
}

impl Sample {
    fn of(leaves: &Level, levels: &[Level], interval: Option<&Level>) -> Sample {
        let mut sample = Sample {
            leaves: Vec::new(),
            cells: Vec::new(),
            of_leaf: Vec::new(),
            bases: Vec::new(),
            with_interval: interval.is_some(),
            path: Vec::new(),
            vertex: 0,
            smooth: Quadratic::of(leaves),
            cox: Quadratic::of_cox(leaves),
            score: [0.0; DIRECTIONS],
            square: 0.0,
            touched: vec![0; leaves.occupied.len().div_ceil(64)],
            steps: vec![0.0; leaves.occupied.len()],
        };
        let mut at = 0.0;
        for (i, c) in leaves.occupied.iter().enumerate() {
            let (low, mean) = (is_low(c.z, c.n), c.z / c.n);
            let (base, rare) = base_of(c.z, c.n);
            let leaf = Leaf {
                step: if low { 1.0 } else { -1.0 },
                rare,
                b: direction(&c),
                square: 1.0 - 2.0 * rare,
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
        let mut tiers: Vec<Tier> = (levels.iter())
            .map(|level| Tier::of(leaves, level, |n| 1.0 / n))
            .collect();
        tiers.extend(interval.map(|level| Tier::of(leaves, level, |n| 1.0 / (n - 1.0))));
        sample.of_leaf = vec![0; leaves.occupied.len() * tiers.len()];
        for (i, tier) in tiers.iter().enumerate() {
            let first = sample.cells.len() as u32;
            for (leaf, at) in tier.of_leaf.iter().enumerate() {
                sample.of_leaf[leaf * tiers.len() + i] = first + at;
            }
            sample.cells.extend_from_slice(&tier.cells);
            sample.bases.push(tier.base);
        }
        sample
    }

    /// All statistics of a set of hits, in the order of [`Statistic`].
    fn statistics(&mut self, hits: &[u32]) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.bases.len() + FURTHER);
        let leaves = &self.leaves;
        out.extend_from_slice(&self.bases);
        let tiers = self.bases.len();
        // Tier by tier within a hit: steps of one cell depend on each other, those of tiers do not.
        for &hit in hits {
            let (leaf, first) = (&leaves[hit as usize], hit as usize * tiers);
            let cells = &self.of_leaf[first..first + tiers];
            for (t, &at) in out.iter_mut().zip(cells) {
                let cell = &mut self.cells[at as usize];
                *t += cell.weight * (leaf.step * (cell.base + cell.steps) + leaf.rare);
                cell.steps += leaf.step;
            }
        }
        for &hit in hits {
            let first = hit as usize * tiers;
            for &at in &self.of_leaf[first..first + tiers] {
                self.cells[at as usize].steps = 0.0;
            }
        }
        if !self.with_interval {
            out.push(0.0);
        }
        let (mut score, mut square) = (self.score, self.square);
        for &hit in hits {
            let leaf = &leaves[hit as usize];
            for (s, b) in score.iter_mut().zip(leaf.b) {
                *s += leaf.step * b;
            }
            square += leaf.square;
            self.touched[hit as usize / 64] |= 1 << (hit % 64);
            self.steps[hit as usize] += leaf.step;
        }
        let cox = [score[0], score[1] + score[2], 0.0];
        let (low, high) = self.extremes();
        out.extend([
            self.smooth.as_ref().map_or(0.0, |q| q.of_score(&score)),
            self.cox.as_ref().map_or(0.0, |q| q.of_score(&cox)),
            high.max(-low),
            high - low,
            score[0].abs(),
            square.abs(),
        ]);
        out
    }

    /// The least and greatest ΣU of the scores up to any, 0 counted in; forgets the hits.
    fn extremes(&mut self) -> (f64, f64) {
        let (mut low, mut high) = (0.0f64, 0.0f64);
        let (mut begin, mut steps) = (0, 0.0);
        let mut stretch = |begin: usize, end: usize, steps: f64| {
            if begin >= end {
                return;
            }
            // Between two hits the path falls to the vertex and rises from there.
            for at in [begin, end - 1, self.vertex.clamp(begin, end - 1)] {
                low = low.min(self.path[at] + steps);
                high = high.max(self.path[at] + steps);
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

/// ΣU of a cell without its rarer outcome, and the probability of that.
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
            tier.cells.push(Cell {
                base,
                weight: 2.0 * weight,
                steps: 0.0,
            });
        }
        tier
    }
}
