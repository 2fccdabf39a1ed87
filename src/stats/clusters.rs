//! Tests of calibration where outcomes of one cluster depend on each other: a user, a session, a day.
//!
//! Events of different clusters are independent, events of one cluster need not be. So
//!
//! * T_d at m cells is the sum over pairs of events of *different* clusters, T_d = (1/n) Σ_i [(ΣU)² −
//!   Σ_c U_ic²]/N_i, with U_ic the residuals of cluster c in cell i;
//! * the score test of the directions 1, ln z and −ln(1−z) is gᵀI⁻¹g with g = Σ_c g_c and I their
//!   information for independent outcomes;
//! * Kolmogorov–Smirnov and in the large are max |Σ_{i ≤ j} U_i| and |ΣU|.
//!
//! **Sign flips.** Multiplying all residuals of a cluster by ±1 leaves the law of its totals as it is
//! if that is symmetric, whatever the dependence within the cluster. Each flip draws one sign for each
//! cluster and computes all statistics again; Σ_c U_ic² stays. p is the rank of the sample's own
//! value among all, ties against it, so it is valid for any number of clusters (the randomization
//! test of Hoeffding, *The large-sample power of tests based on permutations of observations*, 1952).
//! Levels are joined by ranks: the smallest rank-p over levels, ranked among those of the flips.
//! With eleven clusters or fewer all 2^(G−1) patterns are taken. The smallest p with G clusters is
//! 2^(1−G), .016 at 7: below [`CLUSTERS_MIN`] nothing is left for sharing, and there is no answer.
//!
//! What the symmetry assumes: totals of a cluster are about symmetric. With few and rare positives in
//! each cluster they are not, and that is not covered.
//!
//! Always: the same sample, seed and number of flips give the same bits, in whatever order events
//! come. Cost: entries (cluster and cell) plus twice the occupied cells for each flip; 30 ms for 5000
//! events and 999 flips.

use super::axis::Grid;
use super::fixed::Score;
use super::rng::Rng;
use std::collections::BTreeMap;

/// Fewest clusters that say anything.
pub const CLUSTERS_MIN: usize = 8;

/// Most clusters of which all patterns of signs are taken.
const CLUSTERS_ALL: usize = 11;

/// Coarsest level that is tested; one cell less is in the other tests.
const LEVEL_FIRST: u32 = 2;

/// Finest level of the coarse part of T-Cal.
const COARSE_LAST: u32 = 5;

/// Directions of the score test.
const DIRECTIONS: usize = 3;

/// Clip of scores in the directions of the score test.
const CLIP: f64 = 1.0 / (1u64 << 32) as f64;

/// One event: its score, outcome and cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusteredEvent {
    /// The score.
    pub score: Score,
    /// The outcome.
    pub outcome: bool,
    /// Name of the cluster, or a hash of it.
    pub cluster: u64,
}

/// There are too few clusters to say anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFewClusters {
    /// How many there are.
    pub clusters: usize,
}

impl std::fmt::Display for TooFewClusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n = self.clusters;
        write!(f, "only {n} clusters; at least {CLUSTERS_MIN} are needed")
    }
}

impl std::error::Error for TooFewClusters {}

/// p-values that hold whatever the dependence within clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ClusterTests {
    /// Number of clusters.
    pub clusters: usize,
    /// Patterns of signs, the sample's own included.
    pub patterns: usize,
    /// T-Cal of the levels 2 to 5, joined.
    pub coarse: f64,
    /// T-Cal of the levels 6 and up, joined; 1 where there are none.
    pub fine: f64,
    /// The score test.
    pub score_test: f64,
    /// Kolmogorov–Smirnov.
    pub ks: f64,
    /// Calibration in the large, two-sided.
    pub in_the_large: f64,
}

/// Tests a sample by `flips` sign flips; see the module.
pub fn sign_flips(
    sample: &[ClusteredEvent],
    grid: Grid,
    flips: usize,
    seed: u64,
) -> Result<ClusterTests, TooFewClusters> {
    let data = Data::of(sample, grid);
    let clusters = data.scores.len();
    if clusters < CLUSTERS_MIN {
        return Err(TooFewClusters { clusters });
    }
    let patterns = match clusters <= CLUSTERS_ALL {
        true => 1 << (clusters - 1),
        false => flips + 1,
    };
    let (mut rng, mut signs) = (Rng::new(seed), vec![1.0; clusters]);
    let mut scratch = vec![0.0; data.events.len()];
    let mut all: Vec<Statistics> = Vec::with_capacity(patterns);
    for pattern in 0..patterns {
        if pattern > 0 {
            let mut bits = pattern as u64;
            for (i, sign) in signs.iter_mut().enumerate() {
                if clusters > CLUSTERS_ALL && i % 64 == 0 {
                    bits = rng.bits();
                }
                *sign = if bits & 1 == 1 { -1.0 } else { 1.0 };
                bits >>= 1;
            }
        }
        all.push(data.statistics(&signs, &mut scratch));
    }
    let of = |f: &dyn Fn(&Statistics) -> f64| {
        let values: Vec<f64> = all.iter().map(f).collect();
        ranks(&values)[0]
    };
    let coarse = |level: &u32| *level <= COARSE_LAST;
    Ok(ClusterTests {
        clusters,
        patterns,
        coarse: joint(&all, &data.which(coarse)),
        fine: joint(&all, &data.which(|level| !coarse(level))),
        score_test: of(&|s| s.score),
        ks: of(&|s| s.ks),
        in_the_large: of(&|s| s.total),
    })
}

/// All statistics under one pattern of signs.
struct Statistics {
    /// T of each level, the finest first.
    levels: Vec<f64>,
    score: f64,
    ks: f64,
    total: f64,
}

/// One level: where its cells come from, and what flips do not change.
struct Level {
    level: u32,
    /// For each occupied cell of the next finer level the index of its parent here.
    parents: Vec<usize>,
    /// Events of each occupied cell.
    events: Vec<f64>,
    /// Σ over cells of Σ_c U_ic²/N_i.
    own: f64,
}

/// A sample, ready to be flipped.
struct Data {
    /// Cluster, index of the occupied finest cell, and ΣU.
    entries: Vec<(usize, usize, f64)>,
    /// Events of each occupied finest cell.
    events: Vec<f64>,
    /// The finest level and those above it, down to the first.
    levels: Vec<Level>,
    /// Score vector of each cluster.
    scores: Vec<[f64; DIRECTIONS]>,
    /// Inverse of the information.
    inverse: [[f64; DIRECTIONS]; DIRECTIONS],
}

impl Data {
    fn of(sample: &[ClusteredEvent], grid: Grid) -> Data {
        // Sums in the order of cluster, cell, score and outcome: the order of arrival does not matter.
        let mut sorted: Vec<(u64, u32, u64, bool)> = sample
            .iter()
            .map(|e| {
                (
                    e.cluster,
                    grid.cell_of(e.score.value()),
                    e.score.fixed(),
                    e.outcome,
                )
            })
            .collect();
        sorted.sort_unstable();
        let mut occupied: BTreeMap<u32, usize> = sorted.iter().map(|e| (e.1, 0)).collect();
        occupied.values_mut().zip(0..).for_each(|(at, i)| *at = i);
        let mut data = Data {
            entries: Vec::new(),
            events: vec![0.0; occupied.len()],
            levels: Vec::new(),
            scores: Vec::new(),
            inverse: [[0.0; DIRECTIONS]; DIRECTIONS],
        };
        let mut information = [[0.0; DIRECTIONS]; DIRECTIONS];
        let mut last = None;
        for &(cluster, cell, fixed, y) in &sorted {
            if last != Some(cluster) {
                last = Some(cluster);
                data.scores.push([0.0; DIRECTIONS]);
            }
            let (c, at) = (data.scores.len() - 1, occupied[&cell]);
            let z = (fixed as f64 * CLIP).clamp(CLIP, 1.0 - CLIP);
            let (u, v) = (f64::from(u8::from(y)) - z, z * (1.0 - z));
            let directions = [1.0, z.ln(), -(1.0 - z).ln()];
            for (i, a) in directions.iter().enumerate() {
                data.scores[c][i] += u * a;
                for (j, b) in directions.iter().enumerate() {
                    information[i][j] += v * a * b;
                }
            }
            data.events[at] += 1.0;
            match data.entries.last_mut() {
                Some(entry) if (entry.0, entry.1) == (c, at) => entry.2 += u,
                _ => data.entries.push((c, at, u)),
            }
        }
        data.inverse = generalized_inverse(information);
        let cells: Vec<u32> = occupied.into_keys().collect();
        data.levels = data.levels_of(&cells, grid.level());
        data
    }

    /// The levels from the finest on.
    fn levels_of(&self, finest: &[u32], level: u32) -> Vec<Level> {
        let (mut all, mut cells) = (Vec::new(), finest.to_vec());
        let mut events = self.events.clone();
        let mut parents: Vec<usize> = (0..cells.len()).collect();
        let mut at: Vec<usize> = parents.clone();
        for level in (LEVEL_FIRST..=level).rev() {
            let own = self.own(&at, &events);
            all.push(Level {
                level,
                parents: std::mem::take(&mut parents),
                events: events.clone(),
                own,
            });
            let mut coarser: Vec<u32> = cells.iter().map(|c| c / 2).collect();
            coarser.dedup();
            parents = cells
                .iter()
                .map(|c| coarser.partition_point(|o| *o < c / 2))
                .collect();
            let mut joined = vec![0.0; coarser.len()];
            parents
                .iter()
                .zip(&events)
                .for_each(|(p, n)| joined[*p] += n);
            at.iter_mut().for_each(|a| *a = parents[*a]);
            (cells, events) = (coarser, joined);
        }
        all
    }

    /// Σ_i Σ_c U_ic²/N_i, where `at` says in which cell each finest one lies.
    fn own(&self, at: &[usize], events: &[f64]) -> f64 {
        let mut sum = 0.0;
        let (mut key, mut u) = (None, 0.0);
        // Cells of one cluster are in order, so those of one coarser cell are neighbours.
        for &(cluster, cell, residual) in &self.entries {
            let now = Some((cluster, at[cell]));
            if now != key {
                sum += key.map_or(0.0, |(_, cell): (usize, usize)| u * u / events[cell]);
                (key, u) = (now, 0.0);
            }
            u += residual;
        }
        sum + key.map_or(0.0, |(_, cell)| u * u / events[cell])
    }

    /// Indices of the levels that are wanted.
    fn which(&self, wanted: impl Fn(&u32) -> bool) -> Vec<usize> {
        let levels = self.levels.iter().enumerate();
        levels
            .filter(|(_, l)| wanted(&l.level))
            .map(|(i, _)| i)
            .collect()
    }

    fn statistics(&self, signs: &[f64], u: &mut [f64]) -> Statistics {
        u.fill(0.0);
        for &(cluster, cell, residual) in &self.entries {
            u[cell] += signs[cluster] * residual;
        }
        let (mut path, mut ks) = (0.0, 0.0f64);
        for residual in u.iter() {
            path += residual;
            ks = ks.max(f64::abs(path));
        }
        let mut g = [0.0; DIRECTIONS];
        for (sign, score) in signs.iter().zip(&self.scores) {
            g.iter_mut().zip(score).for_each(|(g, s)| *g += sign * s);
        }
        let rows = self.inverse.iter().zip(g);
        let score = rows.map(|(row, a)| a * row.iter().zip(g).map(|(i, b)| i * b).sum::<f64>());
        Statistics {
            score: score.sum(),
            ks,
            total: g[0].abs(),
            levels: self.levels(u),
        }
    }

    fn levels(&self, finest: &[f64]) -> Vec<f64> {
        let mut cells = finest.to_vec();
        let mut all = Vec::with_capacity(self.levels.len());
        for (i, level) in self.levels.iter().enumerate() {
            if i > 0 {
                let mut coarser = vec![0.0; level.events.len()];
                let both = level.parents.iter().zip(&cells);
                both.for_each(|(parent, u)| coarser[*parent] += u);
                cells = coarser;
            }
            let squares = cells.iter().zip(&level.events).map(|(u, n)| u * u / n);
            all.push(squares.sum::<f64>() - level.own);
        }
        all
    }
}

/// The share of values that are at least each of them, up to rounding: a value is a tie of another if
/// it is within 10⁻⁹ of it, for sums of the same terms may differ in their last bits.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = |v: &f64| {
        let tie = v - 1e-9 * v.abs().max(1e-9);
        let below = sorted.partition_point(|s| *s < tie);
        (values.len() - below) as f64 / values.len() as f64
    };
    values.iter().map(rank).collect()
}

/// The joint p of several levels: see the module.
fn joint(all: &[Statistics], levels: &[usize]) -> f64 {
    let mut smallest = vec![1.0f64; all.len()];
    for &level in levels {
        let values: Vec<f64> = all.iter().map(|s| s.levels[level]).collect();
        let ranks = ranks(&values);
        smallest
            .iter_mut()
            .zip(ranks)
            .for_each(|(s, r)| *s = s.min(r));
    }
    let least = smallest[0];
    let as_small = smallest.iter().filter(|s| **s <= least).count();
    as_small as f64 / all.len() as f64
}

/// A generalized inverse of an information matrix, by sweeping its diagonal (Goodnight, *A
/// tutorial on the sweep operator*, 1979); directions that follow from others have no row.
fn generalized_inverse(mut a: [[f64; DIRECTIONS]; DIRECTIONS]) -> [[f64; DIRECTIONS]; DIRECTIONS] {
    let scale = [0, 1, 2].map(|i| a[i][i]);
    let mut swept = [false; DIRECTIONS];
    for k in 0..DIRECTIONS {
        // What is left of it once those before are taken out.
        if !(scale[k] > 0.0 && a[k][k] > 1e-9 * scale[k]) {
            continue;
        }
        swept[k] = true;
        let pivot = a[k][k];
        let row = a[k].map(|v| v / pivot);
        for (i, line) in a.iter_mut().enumerate() {
            let factor = line[k];
            if i != k {
                line.iter_mut().zip(row).for_each(|(v, r)| *v -= factor * r);
                line[k] = -factor / pivot;
            }
        }
        a[k] = row;
        a[k][k] = 1.0 / pivot;
    }
    let mut inverse = [[0.0; DIRECTIONS]; DIRECTIONS];
    for (i, row) in inverse.iter_mut().enumerate() {
        for (j, value) in row.iter_mut().enumerate() {
            if swept[i] && swept[j] {
                *value = a[i][j];
            }
        }
    }
    inverse
}

#[cfg(test)]
mod tests;
