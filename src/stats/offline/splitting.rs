//! Testing calibration by a two-sample test: T-Cal Algorithm 3 and section 6.
//!
//! Half of the events keep their outcomes, the other half get pseudo-outcomes ỹ ~ Cat(z). If the
//! model is calibrated, then for each class k the predictions V_k of the first half whose outcome
//! is k, and W_k of the second half whose pseudo-outcome is k, have one law: density z_k·p(z)/E
//! z_k. If not, either the laws differ or the rates do. So three tests a class, each at α/(3K):
//!
//! * T1: |mean y_k − mean z_k| over the first half, T2: |mean y_k of the first − mean ỹ_k of the
//!   second half|, each rejected from √(3K/(αn)) on. Both have mean 0, and a variance of at most v
//!   = ¼(1/a + 1/b) with a and b events in the halves, which is 1/n where n is even; so this is
//!   Chebyshev's inequality with p-value v/T².
//! * T3: a two-sample test of V_k against W_k, by permutations, so that its level is exact whatever
//!   the law: [`TwoSample::ChiSquared`] at one level of m cells, Σ(√(b/a)·A − √(a/b)·B)²/(A + B)
//!   over cells with A of the a events of V and B of the b of W (Arias-Castro, Pelletier, Saligrama
//!   2018); or [`TwoSample::MultiScale`] over dyadic levels, Σ\[A(A−1)/(a(a−1)) + B(B−1)/(b(b−1)) −
//!   2AB/(ab)\] (Kim, Balakrishnan, Wasserman 2022), the smallest p-value of a level compared with
//!   the smallest of each permutation: exact too, where Bonferroni would be conservative.
//!
//! The whole test's p-value is the smallest of all 3K times 3K. Permutations are as many as let T3
//! reach α/(3K) twice over, at least 999.
//!
//! It wastes half of the events, and the noise of pseudo-outcomes comes on top: at equal n its
//! power is far below T-Cal's (paper's Figure of both tests: `trueline reproduce tcal`). Which
//! event goes to which half, the pseudo-outcomes and the permutations come from the seed; rows
//! stand for event ids, so the result depends on their order.
//!
//! Cost: replicates × levels × n/2 additions.

use crate::kernel::Vectors;
use crate::kernel::conditional::draw;
use crate::multiclass::cell::Name;
use crate::multiclass::tcal::scales;
use crate::rng::Rng;
use std::collections::BTreeMap;

/// Which two-sample test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum TwoSample {
    /// χ² at one level.
    ChiSquared {
        /// Cells of an axis.
        slices: u32,
    },
    /// Differences of shares over levels of 2, 4, … cells an axis.
    MultiScale,
}

/// The three tests of one class.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ClassSplit {
    /// Index of the class.
    pub class: u32,
    /// Number of events of V.
    pub first: usize,
    /// Number of events of W.
    pub second: usize,
    /// T1.
    pub mean_gap: f64,
    /// Its Chebyshev p-value.
    pub mean_p: f64,
    /// T2.
    pub half_gap: f64,
    /// Its Chebyshev p-value.
    pub half_p: f64,
    /// p-value of T3; 1 where V or W has fewer than two events.
    pub two_sample_p: f64,
    /// Cells of an axis at the level with the smallest p-value.
    pub slices: u32,
}

/// The test.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Splitting {
    /// Smallest p-value of the 3K tests, times 3K.
    pub p_value: f64,
    /// Permutations of each two-sample test.
    pub replicates: u32,
    /// Cells of an axis, level by level.
    pub slices: Vec<u32>,
    /// Classes in the order of their indices.
    pub classes: Vec<ClassSplit>,
}

/// Finest level of the multi-scale test: 4096 cells, as a window has.
const LEVEL_MAX: u32 = 12;
/// Fewest permutations.
const REPLICATES_MIN: u32 = 999;

/// Tests scores of one class: K = 2, cells are cut on the score. `None` with fewer than two events.
pub fn of_scores(
    sample: &[(f64, bool)],
    test: TwoSample,
    alpha: f64,
    seed: u64,
) -> Option<Splitting> {
    let rows = Vectors::of_scores(sample).ok()?;
    let slices = slices(test, sample.len(), 1);
    let cell = |m: u32| {
        let slice = |&(z, _): &(f64, bool)| ((z * f64::from(m)) as u32).min(m - 1);
        sample.iter().map(slice).collect()
    };
    let cells = slices.iter().map(|&m| cell(m)).collect();
    Split {
        rows: &rows,
        cells,
        slices,
        test,
    }
    .run(alpha, seed)
}

/// Tests whole vectors; cells are the simplices of equal volume. `None` with fewer than two events.
pub fn of_vectors(sample: &Vectors, test: TwoSample, alpha: f64, seed: u64) -> Option<Splitting> {
    let slices = slices(test, sample.len(), sample.classes() - 1);
    let cell = |m: u32| {
        let mut numbers: BTreeMap<Name, u32> = BTreeMap::new();
        let mut number = |i: usize| {
            let next = numbers.len() as u32;
            *numbers
                .entry(Name::simplex(sample.row(i), m))
                .or_insert(next)
        };
        (0..sample.len()).map(&mut number).collect()
    };
    let cells = slices.iter().map(|&m| cell(m)).collect();
    Split {
        rows: sample,
        cells,
        slices,
        test,
    }
    .run(alpha, seed)
}

fn slices(test: TwoSample, n: usize, d: usize) -> Vec<u32> {
    match test {
        TwoSample::ChiSquared { slices } => vec![slices.max(1)],
        TwoSample::MultiScale => {
            let count = scales(0.5 * n as f64, d).min(LEVEL_MAX);
            (1..=count).map(|b| 1 << b).collect()
        }
    }
}

/// A sample with the cell of each event, level by level.
struct Split<'a> {
    rows: &'a Vectors,
    cells: Vec<Vec<u32>>,
    slices: Vec<u32>,
    test: TwoSample,
}

impl Split<'_> {
    fn run(&self, alpha: f64, seed: u64) -> Option<Splitting> {
        let (n, k) = (self.rows.len(), self.rows.classes());
        if n < 2 {
            return None;
        }
        let tests = 3.0 * k as f64;
        let replicates = ((2.0 * tests / alpha) as u32).max(REPLICATES_MIN);
        let mut rng = Rng::new(seed ^ 0x5EED_5711);
        let mut order: Vec<usize> = (0..n).collect();
        rng.choose(&mut order, n / 2);
        let (first, second) = order.split_at(n / 2);
        let pseudo: Vec<u32> = second
            .iter()
            .map(|&i| draw(self.rows.row(i), rng.uniform()))
            .collect();
        let mut classes = Vec::with_capacity(k);
        for class in 0..k as u32 {
            let hit = |i: &&usize| self.rows.outcome(**i) == class;
            let v: Vec<usize> = first.iter().filter(hit).copied().collect();
            let pairs = second.iter().zip(&pseudo).filter(|(_, y)| **y == class);
            let w: Vec<usize> = pairs.map(|(i, _)| *i).collect();
            classes.push(self.class(class, first, second.len(), &v, &w, replicates, &mut rng));
        }
        let smallest = classes
            .iter()
            .map(|c| c.mean_p.min(c.half_p).min(c.two_sample_p))
            .fold(1.0, f64::min);
        Some(Splitting {
            p_value: (tests * smallest).min(1.0),
            replicates,
            slices: self.slices.clone(),
            classes,
        })
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the two halves and what was seen of them"
    )]
    fn class(
        &self,
        class: u32,
        first: &[usize],
        second: usize,
        v: &[usize],
        w: &[usize],
        replicates: u32,
        rng: &mut Rng,
    ) -> ClassSplit {
        let (half, other) = (first.len() as f64, second as f64);
        let variance = 0.25 * (1.0 / half + 1.0 / other);
        let rate = v.len() as f64 / half;
        let said: f64 = first
            .iter()
            .map(|&i| self.rows.row(i)[class as usize])
            .sum();
        let mean_gap = (rate - said / half).abs();
        let half_gap = (rate - w.len() as f64 / other).abs();
        let chebyshev = |gap: f64| (variance / (gap * gap)).min(1.0);
        let (two_sample_p, level) = self.two_sample(v, w, replicates, rng);
        ClassSplit {
            class,
            first: v.len(),
            second: w.len(),
            mean_gap,
            mean_p: chebyshev(mean_gap),
            half_gap,
            half_p: chebyshev(half_gap),
            two_sample_p,
            slices: self.slices[level],
        }
    }

    /// p-value by permutations, and the level that has the smallest.
    fn two_sample(&self, v: &[usize], w: &[usize], replicates: u32, rng: &mut Rng) -> (f64, usize) {
        if v.len() < 2 || w.len() < 2 {
            return (1.0, 0);
        }
        let pooled: Vec<usize> = v.iter().chain(w).copied().collect();
        let mut levels: Vec<Counts> = (self.cells.iter())
            .map(|cells| Counts::new(cells, &pooled, v.len(), self.test))
            .collect();
        let mut drawn: Vec<Vec<f64>> =
            vec![Vec::with_capacity(replicates as usize + 1); levels.len()];
        let mut order: Vec<usize> = (0..pooled.len()).collect();
        for replicate in 0..=replicates {
            if replicate > 0 {
                rng.choose(&mut order, v.len());
            }
            for (level, drawn) in levels.iter_mut().zip(&mut drawn) {
                drawn.push(level.statistic(&order[..v.len()]));
            }
        }
        smallest_rank(&drawn)
    }
}

/// The min-p combination: `drawn[level][0]` is what was seen, the others are permutations. Each
/// becomes its rank from above at its level (equal ones the worse), the smallest over levels its
/// statistic; its p-value is the share of all whose smallest is as small.
fn smallest_rank(drawn: &[Vec<f64>]) -> (f64, usize) {
    let count = drawn.first().map_or(0, Vec::len);
    let mut smallest = vec![usize::MAX; count];
    let mut best = 0;
    for (level, values) in drawn.iter().enumerate() {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        for (at, value) in values.iter().enumerate() {
            let rank = count - sorted.partition_point(|x| x < value);
            if rank < smallest[at] {
                smallest[at] = rank;
                if at == 0 {
                    best = level;
                }
            }
        }
    }
    let as_small = smallest.iter().filter(|r| **r <= smallest[0]).count();
    (as_small as f64 / count.max(1) as f64, best)
}

/// Pooled events of one level in dense cells.
struct Counts {
    /// Cell of each pooled event.
    cell: Vec<u32>,
    /// A + B of each cell.
    total: Vec<f64>,
    /// Scratch: A of each cell.
    first: Vec<f64>,
    a: f64,
    b: f64,
    test: TwoSample,
}

impl Counts {
    fn new(cells: &[u32], pooled: &[usize], a: usize, test: TwoSample) -> Counts {
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        let mut total: Vec<f64> = Vec::new();
        let mut cell = Vec::with_capacity(pooled.len());
        for &i in pooled {
            let next = numbers.len() as u32;
            let at = *numbers.entry(cells[i]).or_insert(next);
            if at == next {
                total.push(0.0);
            }
            total[at as usize] += 1.0;
            cell.push(at);
        }
        Counts {
            cell,
            first: vec![0.0; total.len()],
            total,
            a: a as f64,
            b: (pooled.len() - a) as f64,
            test,
        }
    }

    /// The statistic with the pooled events at `first` as V.
    fn statistic(&mut self, first: &[usize]) -> f64 {
        self.first.fill(0.0);
        for &i in first {
            self.first[self.cell[i] as usize] += 1.0;
        }
        let pairs = self.first.iter().zip(&self.total).map(|(x, t)| (*x, t - x));
        match self.test {
            TwoSample::ChiSquared { .. } => chi_squared(pairs, self.a, self.b),
            TwoSample::MultiScale => squares(pairs, self.a, self.b),
        }
    }
}

/// Σ(√(b/a)·A − √(a/b)·B)²/(A + B) over cells that are not empty.
pub fn chi_squared(cells: impl Iterator<Item = (f64, f64)>, a: f64, b: f64) -> f64 {
    let (up, down) = ((b / a).sqrt(), (a / b).sqrt());
    let part = |(x, y): (f64, f64)| {
        let gap = up * x - down * y;
        if x + y > 0.0 {
            gap * gap / (x + y)
        } else {
            0.0
        }
    };
    cells.map(part).sum()
}

/// The unbiased estimate of Σ(P(cell) − Q(cell))², at least two events on each side.
pub fn squares(cells: impl Iterator<Item = (f64, f64)>, a: f64, b: f64) -> f64 {
    let (aa, bb, ab) = (1.0 / (a * (a - 1.0)), 1.0 / (b * (b - 1.0)), 2.0 / (a * b));
    let part = |(x, y): (f64, f64)| x * (x - 1.0) * aa + y * (y - 1.0) * bb - x * y * ab;
    cells.map(part).sum()
}
