//! The null by redrawing outcomes: exact where the moments are an approximation.
//!
//! Given the scores, a calibrated model's outcomes are independent Bernoulli variables. So at each
//! finest cell Σy is drawn from Binomial(N, mean score) and carried up the levels: all levels of
//! one replicate share one draw, as they do in the data. The p-value (1 + #{T* ≥ T})/(R + 1) is
//! exact at any n for scores that are equal within a finest cell, and off by the spread of scores
//! inside it otherwise (a relative 2⁻²⁴ of the variance at 4096 cells).
//!
//! All replicates of a cell are drawn at once, from an alias table made for that cell (its cost is
//! paid once for R draws; 32 random bits give one draw, so a probability is right to 2⁻³²). D = ΣU
//! and Q = ΣU² are then vectors over replicates; a cell that closes adds (D² − Q)/N to its level's
//! statistics and D, Q to its parent. One open cell a level: the working set is 38 vectors, half a
//! megabyte at 3000 replicates, and the loops over them are plain enough to become vector code.
//!
//! Near the threshold more replicates are drawn, until the result is settled or 16 times the number
//! is spent. If the result is still open, the seed would decide it; the test then reports it as
//! borderline and takes the noise-free p-value of the exact moments instead. The same seed gives
//! the same result.
//!
//! Cost: 3000 replicates × 12 levels × 4096 cells take some 50 ms in one thread. Source: T-Cal,
//! appendix 8.3.3; Walker's alias method; Westfall and Young for the joint p-value.

use super::binomial;
use super::levels::{Level, LevelCell};
use super::rng::Rng;

/// What to draw, and for which test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Replicates R of the first round, at least 1.
    pub replicates: u32,
    /// Seed; the same seed gives the same draws.
    pub seed: u64,
    /// Level of the test.
    pub alpha: f64,
    /// Whether each level is tested at α/B; else by the joint law of the smallest p-value.
    pub bonferroni: bool,
}

/// The p-values that the draws give.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drawn {
    /// p-value of each level.
    pub levels: Vec<f64>,
    /// p-value of the smallest of them, by the draws' own joint law; `None` with Bonferroni.
    pub joint: Option<f64>,
    /// Levels (all of them, with the joint law) whose p-value stayed within two standard errors of
    /// the draws from the threshold while the decision depended on it; empty when it is settled.
    pub doubtful: Vec<usize>,
}

/// At most this many rounds: 16 × 3000 replicates settle a p-value of 0.002 to 10 % in under a
/// second.
const ROUNDS_MAX: u32 = 16;

/// p-values of `observed` (T_d of each level, with its null deviation) by redrawing the outcomes of
/// `leaves`. Levels nest, coarse to fine; the leaves are the finest or nest in it.
pub(super) fn p_values(
    levels: &[Level],
    leaves: &Level,
    observed: &[(f64, f64)],
    plan: &Plan,
) -> Drawn {
    let width = plan.replicates.max(1) as usize;
    let mut draws = Draws::new(levels, leaves, width, plan.seed);
    let mut kept: Vec<Vec<f32>> = vec![Vec::new(); levels.len()];
    let mut counts = vec![0u64; levels.len()];
    let mut totals = vec![0.0; levels.len()];
    let mut depth = levels.len();
    let bar = plan.alpha / levels.len() as f64;
    for _ in 0..ROUNDS_MAX {
        for (b, t) in draws.round(depth).iter().enumerate() {
            counts[b] += t.iter().filter(|&&t| reaches(t, observed[b])).count() as u64;
            totals[b] += width as f64;
            if !plan.bonferroni {
                kept[b].extend(t);
            }
        }
        if plan.bonferroni {
            // Levels finer than the last doubtful one are settled and no longer drawn.
            match in_doubt_levels(&counts, &totals, bar, SETTLED).last() {
                Some(b) => depth = b + 1,
                None => break,
            }
        } else if !in_doubt(
            joint_p_value(&kept, observed),
            totals[0],
            plan.alpha,
            SETTLED,
        ) {
            break;
        }
    }
    let joint = (!plan.bonferroni).then(|| joint_p_value(&kept, observed));
    Drawn {
        doubtful: match joint {
            Some(p) if in_doubt(p, totals[0], plan.alpha, BORDERLINE) => {
                (0..levels.len()).collect()
            }
            Some(_) => Vec::new(),
            None => in_doubt_levels(&counts, &totals, bar, BORDERLINE),
        },
        levels: counts
            .iter()
            .zip(&totals)
            .map(|(&k, &r)| share(k, r))
            .collect(),
        joint,
    }
}

/// Standard errors from the threshold at which drawing ends.
const SETTLED: f64 = 3.0;

/// Standard errors from the threshold within which a decision is called borderline.
const BORDERLINE: f64 = 2.0;

/// Monte Carlo p-value: (1 + k)/(1 + R).
fn share(k: u64, total: f64) -> f64 {
    (1.0 + k as f64) / (1.0 + total)
}

fn in_doubt(p: f64, total: f64, bar: f64, errors: f64) -> bool {
    (p - bar).abs() < errors * (bar * (1.0 - bar) / total).sqrt()
}

/// The levels whose p-value might lie on either side of the bar; none when another level rejects
/// beyond doubt, because then the decision stands.
fn in_doubt_levels(counts: &[u64], totals: &[f64], bar: f64, errors: f64) -> Vec<usize> {
    let p = |b: usize| share(counts[b], totals[b]);
    let doubt = |b: usize| in_doubt(p(b), totals[b], bar, errors);
    if (0..counts.len()).any(|b| p(b) <= bar && !doubt(b)) {
        return Vec::new();
    }
    (0..counts.len()).filter(|&b| doubt(b)).collect()
}

/// T* ≥ T, where single-precision sums that should be equal count as equal.
fn reaches(drawn: f32, (observed, sd): (f64, f64)) -> bool {
    f64::from(drawn) >= observed - 1e-5 * sd - 1e-12
}

/// P(smallest p-value ≤ the observed one): every replicate is ranked level by level among the
/// others and the data, and so are the data. \[Westfall and Young 1993\]
fn joint_p_value(kept: &[Vec<f32>], observed: &[(f64, f64)]) -> f64 {
    let total = kept[0].len();
    // Over levels, the fewest statistics (itself included) that reach the replicate's, and the
    // data's.
    let mut fewest = vec![usize::MAX; total];
    let mut seen = usize::MAX;
    let mut order: Vec<(f32, usize)> = Vec::with_capacity(total);
    for (t, &(o, sd)) in kept.iter().zip(observed) {
        seen = seen.min(1 + t.iter().filter(|&&t| reaches(t, (o, sd))).count());
        order.clear();
        order.extend(t.iter().copied().zip(0..));
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut rank = 0;
        for (i, &(t, replicate)) in order.iter().enumerate() {
            // Equal statistics share the rank of the last of them.
            if i >= rank {
                rank = i + order[i..].iter().take_while(|x| x.0 == t).count();
            }
            let data_reach = f64::from(t) <= o + 1e-5 * sd;
            fewest[replicate] = fewest[replicate].min(rank + usize::from(data_reach));
        }
    }
    let extreme = fewest.iter().filter(|&&f| f <= seen).count();
    share(extreme as u64, total as f64)
}

/// Sums of one open cell, over replicates.
#[derive(Debug, Clone)]
struct Open {
    /// Index of a leaf inside; `None` when nothing has fallen in yet.
    leaf: Option<u64>,
    n: f64,
    d: Vec<f32>,
    q: Vec<f32>,
}

impl Open {
    /// Takes in all of `other` and leaves it empty; the first child is moved, not added.
    fn take(&mut self, other: &mut Open) {
        if self.leaf.is_none() {
            std::mem::swap(self, other);
        } else {
            self.n += other.n;
            let ours = self.d.iter_mut().zip(&mut self.q);
            for ((d, q), (od, oq)) in ours.zip(other.d.iter().zip(&other.q)) {
                *d += od;
                *q += oq;
            }
        }
        other.leaf = None;
    }
}

/// The drawing: everything that is used again from round to round.
struct Draws<'a> {
    levels: &'a [Level],
    leaves: &'a Level,
    rng: Rng,
    table: Alias,
    drawn: Open,
    open: Vec<Open>,
    statistics: Vec<Vec<f32>>,
}

impl<'a> Draws<'a> {
    fn new(levels: &'a [Level], leaves: &'a Level, width: usize, seed: u64) -> Draws<'a> {
        let open = Open {
            leaf: None,
            n: 0.0,
            d: vec![0.0; width],
            q: vec![0.0; width],
        };
        Draws {
            levels,
            leaves,
            rng: Rng::new(seed),
            table: Alias::default(),
            drawn: open.clone(),
            open: vec![open; levels.len()],
            statistics: vec![vec![0.0; width]; levels.len()],
        }
    }

    /// Draws one round and returns T* of the coarsest `depth` levels.
    fn round(&mut self, depth: usize) -> &[Vec<f32>] {
        let (levels, leaves) = (self.levels, self.leaves);
        self.statistics.iter_mut().for_each(|t| t.fill(0.0));
        let mut n = 0.0;
        for cell in leaves.occupied.iter() {
            n += cell.n;
            // Open cells that do not hold this leaf are complete; close them, the finest first.
            for b in (0..depth).rev() {
                let ratio = leaves.cells / levels[b].cells;
                match self.open[b].leaf {
                    Some(leaf) if leaf / ratio == cell.index / ratio => break,
                    Some(_) => self.close(b),
                    None => {}
                }
            }
            self.draw(&cell);
            self.open[depth - 1].take(&mut self.drawn);
        }
        (0..depth).rev().for_each(|b| self.close(b));
        for t in &mut self.statistics[..depth] {
            t.iter_mut().for_each(|t| *t /= n as f32);
        }
        &self.statistics[..depth]
    }

    /// Adds (D² − Q)/N of the open cell of level b to the level's statistics, and D and Q to its
    /// parent.
    fn close(&mut self, b: usize) {
        let (coarser, rest) = self.open.split_at_mut(b);
        let cell = &mut rest[0];
        // Of a single event D² = Q.
        if cell.leaf.is_some() && cell.n >= 2.0 {
            let w = (1.0 / cell.n) as f32;
            let sums = cell.d.iter().zip(&cell.q);
            for (t, (d, q)) in self.statistics[b].iter_mut().zip(sums) {
                *t += (d * d - q) * w;
            }
        }
        match coarser.last_mut() {
            Some(parent) if cell.leaf.is_some() => parent.take(cell),
            _ => cell.leaf = None,
        }
    }

    /// Draws Σy of a leaf for all replicates: D = Σy − Σz, and Q = Σy(1 − 2z̄) + Σz².
    fn draw(&mut self, cell: &LevelCell) {
        let mean = (cell.z / cell.n).clamp(0.0, 1.0);
        let squares = cell.z - cell.v;
        let out = &mut self.drawn;
        (out.leaf, out.n) = (Some(cell.index), cell.n);
        self.table
            .draw(cell.n as u64, mean, &mut self.rng, &mut out.d);
        let (slope, level) = (
            (1.0 - 2.0 * mean) as f32,
            (cell.z * (1.0 - 2.0 * mean) + squares) as f32,
        );
        for (q, d) in out.q.iter_mut().zip(&out.d) {
            *q = slope * d + level;
        }
    }
}

/// Above this variance of Σy in one cell a rounded normal draw stands in for the binomial one: its
/// distribution function is off by less than 0.001, and an alias table would no longer fit the
/// cache.
const VARIANCE_NORMAL: f64 = 40_000.0;

/// Outcomes less likely than this times the likeliest are not drawn: a draw of 32 bits could not
/// distinguish them from 0.
const LEAST: f64 = 1e-11;

/// Walker's alias table of D = K − Σz, K binomial; 2^bits slots.
#[derive(Debug, Default)]
pub(super) struct Alias {
    bits: u32,
    slots: Vec<Slot>,
    scaled: Vec<f64>,
    small: Vec<usize>,
    large: Vec<usize>,
}

/// One slot: below the threshold its own value, else the other.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    threshold: u32,
    values: [f32; 2],
}

impl Alias {
    /// Fills `out` with draws of Binomial(n, p) − n·p.
    pub fn draw(&mut self, n: u64, p: f64, rng: &mut Rng, out: &mut [f32]) {
        let size = n as f64;
        let mean = size * p;
        if mean * (1.0 - p) > VARIANCE_NORMAL {
            let sd = (mean * (1.0 - p)).sqrt();
            for d in out {
                let y = (mean + sd * rng.normal()).round();
                *d = (y.clamp(0.0, size) - mean) as f32;
            }
        } else {
            self.make(n, p, mean);
            self.fill(rng, out);
        }
    }

    /// The table of Binomial(n, p) − shift; outcomes below [`LEAST`] of the likeliest are left out.
    fn make(&mut self, n: u64, p: f64, shift: f64) {
        let (first, bulk) = binomial::bulk(n, p, LEAST);
        let size = bulk.len().next_power_of_two();
        self.bits = size.ilog2();
        let total: f64 = bulk.iter().sum();
        let scale = size as f64 / total;
        self.scaled.clear();
        self.scaled.extend(bulk.iter().map(|q| q * scale));
        self.scaled.resize(size, 0.0);
        let value = |i: usize| ((first + i as u64) as f64 - shift) as f32;
        self.slots.clear();
        self.slots.extend((0..size).map(|i| Slot {
            threshold: u32::MAX,
            values: [value(i); 2],
        }));
        self.small.clear();
        self.large.clear();
        for (i, &q) in self.scaled.iter().enumerate() {
            (if q < 1.0 {
                &mut self.small
            } else {
                &mut self.large
            })
            .push(i);
        }
        while let (Some(less), Some(&more)) = (self.small.pop(), self.large.last()) {
            let q = self.scaled[less];
            self.slots[less] = Slot {
                threshold: (q * f64::from(u32::MAX)) as u32,
                values: [value(less), value(more)],
            };
            self.scaled[more] -= 1.0 - q;
            if self.scaled[more] < 1.0 {
                self.large.pop();
                self.small.push(more);
            }
        }
    }

    /// Fills `out` with draws, two from each word of the generator.
    fn fill(&self, rng: &mut Rng, out: &mut [f32]) {
        if self.bits == 0 {
            out.fill(self.slots[0].values[0]);
            return;
        }
        let shift = 32 - self.bits;
        let one = |word: u32| {
            let slot = &self.slots[(word >> shift) as usize];
            slot.values[usize::from(word << self.bits >= slot.threshold)]
        };
        let mut pairs = out.chunks_exact_mut(2);
        for pair in &mut pairs {
            let word = rng.bits();
            pair[0] = one(word as u32);
            pair[1] = one((word >> 32) as u32);
        }
        if let [last] = pairs.into_remainder() {
            *last = one(rng.bits() as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::null::Moments;
    use super::*;

    #[test]
    fn an_alias_table_draws_the_binomial_law() {
        let (mut table, mut rng) = (Alias::default(), Rng::new(2));
        for (n, p) in [(1, 0.3), (2, 0.9), (7, 0.05), (300, 0.4)] {
            table.make(n, p, 0.0);
            let mut out = vec![0.0; 100_000];
            table.fill(&mut rng, &mut out);
            for k in 0..=n {
                let q = binomial::probability(k, n, p);
                let seen = out.iter().filter(|&&x| x == k as f32).count() as f64 / 1e5;
                assert!(
                    (seen - q).abs() < 5.0 * (q / 1e5).sqrt() + 1e-9,
                    "{k} {n} {p}"
                );
            }
        }
    }

    #[test]
    fn redrawn_statistics_have_the_exact_moments_of_the_null() {
        let mut rng = Rng::new(9);
        let sample: Vec<_> = (0..2000).map(|_| (rng.uniform(), false)).collect();
        let p = super::super::levels::Levels::from_scores(&sample, 12);
        let mut draws = Draws::new(p.as_slice(), p.finest(), 20_000, 4);
        for (level, t) in p.as_slice().iter().zip(draws.round(12)) {
            let exact = Moments::of_debiased(level);
            let mean = t.iter().map(|&t| f64::from(t)).sum::<f64>() / 2e4;
            let moment = |k| {
                t.iter()
                    .map(|&t| (f64::from(t) - mean).powi(k))
                    .sum::<f64>()
                    / 2e4
            };
            let sd = exact.sd();
            assert!((mean / sd).abs() < 0.03, "{}: mean {mean}", level.cells);
            assert!(
                (moment(2) / exact.variance - 1.0).abs() < 0.08,
                "{}",
                level.cells
            );
            let skew = exact.third / sd.powi(3);
            assert!(
                (moment(3) / sd.powi(3) - skew).abs() < 0.1 + 0.15 * skew,
                "{}",
                level.cells
            );
        }
    }
}
