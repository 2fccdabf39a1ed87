//! The sign-flip tests of clustered events, which the [module above](super) derives.

use super::super::fixed::ONE;
use super::super::levels::Level;
use super::super::rng::Rng;
use super::super::smooth::{DIRECTIONS, Quadratic};
use super::CLUSTERS_MIN;
use super::sums::{ClusterSums, LEVEL_MAX};
use std::ops::Range;

/// Up to this many buckets, all patterns of signs are taken.
const ALL_MAX: usize = 11;

/// Levels of the coarse part of T-Cal.
const COARSE: Range<u32> = 2..6;

/// Buckets whose patterns are tabulated together.
const TOGETHER: usize = 4;

/// Number of random flips at level α: 1000 at 0.05, more for smaller α; between 999 and 9999.
fn flips(alpha: f64) -> usize {
    (50.0 / alpha).ceil().clamp(999.0, 9_999.0) as usize
}

/// p-values that hold whatever the dependence within buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterTests {
    /// Number of sign patterns, the sample's own included.
    pub patterns: usize,
    /// T_d at 2, 4, 8 … cells.
    pub levels: Vec<f64>,
    /// T-Cal of all these levels, joined.
    pub tcal: f64,
    /// T-Cal of the levels 2 to 5, joined.
    pub coarse: f64,
    /// T-Cal at 64 cells; 1 where there are fewer.
    pub fine: f64,
    /// The score test of the directions 1, ln z and −ln(1−z).
    pub smooth: f64,
    /// Cox's score test.
    pub cox: f64,
    /// Kolmogorov–Smirnov.
    pub ks: f64,
    /// Kuiper.
    pub kuiper: f64,
    /// Calibration in the large, two-sided.
    pub in_the_large: f64,
}

/// Tests the sums, kept at `level`, of events whose finest cells are `finest`; `None` with fewer
/// than [`CLUSTERS_MIN`] buckets.
pub fn sign_flips(
    sums: &ClusterSums,
    level: u32,
    finest: &Level,
    alpha: f64,
    seed: u64,
) -> Option<ClusterTests> {
    let data = Data::of(sums, level.min(LEVEL_MAX), finest);
    let buckets = data.rows.len();
    if buckets < CLUSTERS_MIN {
        return None;
    }
    let exhaustive = buckets <= ALL_MAX;
    let patterns = match exhaustive {
        true => 1 << (buckets - 1),
        false => flips(alpha) + 1,
    };
    let table = Table::of(&data.rows);
    let (mut rng, mut row) = (Rng::new(seed), Vec::new());
    let mut found = Found::default();
    for pattern in 0..patterns {
        let signs = match pattern {
            0 => 0,
            _ if exhaustive => pattern as u64,
            _ => rng.bits(),
        };
        table.row(signs, &mut row);
        data.statistics(&mut row, &mut found);
    }
    let own = |values: &Vec<f64>| ranks(values)[0];
    let ranked: Vec<Vec<f64>> = found.levels.iter().map(|values| ranks(values)).collect();
    // Level l is at index l − 1.
    let all: Vec<usize> = (0..ranked.len()).collect();
    let coarse = |l: &usize| COARSE.contains(&(*l as u32 + 1));
    let (coarse, fine): (Vec<usize>, Vec<usize>) = (1..ranked.len()).partition(coarse);
    Some(ClusterTests {
        patterns,
        levels: ranked.iter().map(|r| r[0]).collect(),
        tcal: joint(&ranked, &all),
        coarse: joint(&ranked, &coarse),
        fine: joint(&ranked, &fine),
        smooth: own(&found.smooth),
        cox: own(&found.cox),
        ks: own(&found.ks),
        kuiper: own(&found.kuiper),
        in_the_large: own(&found.total),
    })
}

/// All statistics, pattern by pattern, the sample's own first.
#[derive(Default)]
struct Found {
    /// By level, from 2 cells on.
    levels: Vec<Vec<f64>>,
    smooth: Vec<f64>,
    cox: Vec<f64>,
    ks: Vec<f64>,
    kuiper: Vec<f64>,
    total: Vec<f64>,
}

/// Sums of a sample, ready to be flipped.
struct Data {
    /// By bucket: ΣU by cell, then the score vector.
    rows: Vec<Vec<f64>>,
    /// By level, from 2 cells on: 1/N_i, 0 where the cell is empty.
    inverses: Vec<Vec<f64>>,
    smooth: Option<Quadratic>,
    cox: Option<Quadratic>,
}

impl Data {
    fn of(sums: &ClusterSums, level: u32, finest: &Level) -> Data {
        let cells = 1usize << level;
        let (mut rows, mut events) = (Vec::new(), vec![0.0; cells]);
        for (_, bucket) in sums.occupied() {
            let mut row = vec![0.0; cells + DIRECTIONS];
            for (i, cell) in bucket.cells.iter().enumerate() {
                row[i] = cell.u();
                events[i] += cell.n as f64;
            }
            let [low, high] = bucket.directions.map(|sum| sum as f64 / ONE as f64);
            let score = [row[..cells].iter().sum(), low, high];
            row[cells..].copy_from_slice(&score);
            rows.push(row);
        }
        let mut inverses = Vec::new();
        for _ in 0..level {
            inverses.push(
                events
                    .iter()
                    .map(|n| if *n > 0.0 { 1.0 / n } else { 0.0 })
                    .collect(),
            );
            events = halved(&events);
        }
        inverses.reverse();
        Data {
            rows,
            inverses,
            smooth: Quadratic::of(finest),
            cox: Quadratic::of_cox(finest),
        }
    }

    /// Appends the statistics of a row (ΣU by cell, then the score vector) to `found`; overwrites
    /// the row.
    fn statistics(&self, row: &mut Vec<f64>, found: &mut Found) {
        let cells = row.len() - DIRECTIONS;
        let mut score = [0.0; DIRECTIONS];
        score.copy_from_slice(&row[cells..]);
        row.truncate(cells);
        let (mut path, mut low, mut high) = (0.0f64, 0.0f64, 0.0f64);
        for u in row.iter() {
            path += u;
            low = low.min(path);
            high = high.max(path);
        }
        found.smooth.push(value(&self.smooth, &score));
        found.cox.push(value(&self.cox, &cox_of(&score)));
        found.ks.push(high.max(-low));
        found.kuiper.push(high - low);
        found.total.push(path.abs());
        found.levels.resize(self.inverses.len(), Vec::new());
        for (values, inverses) in found.levels.iter_mut().zip(&self.inverses).rev() {
            let squares = row.iter().zip(inverses).map(|(u, inverse)| u * u * inverse);
            values.push(squares.sum());
            for i in 0..row.len() / 2 {
                row[i] = row[2 * i] + row[2 * i + 1];
            }
            row.truncate(row.len() / 2);
        }
    }
}

/// The sums of pairs of neighbours.
fn halved(values: &[f64]) -> Vec<f64> {
    values.chunks(2).map(|pair| pair.iter().sum()).collect()
}

/// A score vector of Cox's directions, 1 and ln z − ln(1−z).
fn cox_of(score: &[f64; DIRECTIONS]) -> [f64; DIRECTIONS] {
    [score[0], score[1] + score[2], 0.0]
}

/// The statistic of a score vector; 0 where no score has variance.
fn value(form: &Option<Quadratic>, score: &[f64; DIRECTIONS]) -> f64 {
    form.as_ref().map_or(0.0, |form| form.of_score(score))
}

/// For each group of buckets, the sum of its rows under each pattern of signs, so that a flip adds
/// few rows.
struct Table {
    width: usize,
    /// By group of buckets: one row after the other, for each pattern of signs.
    groups: Vec<Vec<f64>>,
}

impl Table {
    fn of(rows: &[Vec<f64>]) -> Table {
        let width = rows.first().map_or(0, Vec::len);
        let group = |rows: &[Vec<f64>]| {
            let mut all = Vec::with_capacity(width << rows.len());
            for pattern in 0..1usize << rows.len() {
                let sign = |i: usize| if pattern >> i & 1 == 1 { -1.0 } else { 1.0 };
                let at = |x| {
                    rows.iter()
                        .enumerate()
                        .map(|(i, row)| sign(i) * row[x])
                        .sum::<f64>()
                };
                all.extend((0..width).map(at));
            }
            all
        };
        Table {
            width,
            groups: rows.chunks(TOGETHER).map(group).collect(),
        }
    }

    /// The sum of all rows; a bit of `signs` that is set makes its bucket negative.
    fn row(&self, mut signs: u64, row: &mut Vec<f64>) {
        row.clear();
        row.resize(self.width, 0.0);
        for group in &self.groups {
            let patterns = group.len() / self.width;
            let at = (signs as usize & (patterns - 1)) * self.width;
            let part = &group[at..at + self.width];
            row.iter_mut().zip(part).for_each(|(sum, u)| *sum += u);
            signs >>= TOGETHER;
        }
    }
}

/// For each value, the share of values that are at least as large. Values within a relative 10⁻⁹
/// are ties, because sums of the same terms may differ in their last bits.
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

/// The joint p-value of `levels`, from the ranks of each; 1 for no level.
fn joint(ranked: &[Vec<f64>], levels: &[usize]) -> f64 {
    let Some((first, rest)) = levels.split_first() else {
        return 1.0;
    };
    let mut smallest = ranked[*first].clone();
    for level in rest {
        let both = smallest.iter_mut().zip(&ranked[*level]);
        both.for_each(|(s, r)| *s = s.min(*r));
    }
    let as_small = smallest.iter().filter(|s| **s <= smallest[0]).count();
    as_small as f64 / smallest.len() as f64
}
