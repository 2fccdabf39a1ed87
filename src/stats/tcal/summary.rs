//! What the test computes from one level: estimators, and their law under the null.
//!
//! Most of a test's time goes here, over some 8000 cells of 12 levels. So the terms of a block of
//! cells are computed first, in loops without branches that become vector code, and are added up
//! after.

use super::result::LevelResult;
use crate::columns::{Columns, LANES, total};
use crate::conditional;
use crate::levels::Level;
use crate::null::Moments;

/// What one pass over a level yields.
pub(super) struct Summary {
    pub(super) cells: u64,
    pub(super) n: f64,
    pub(super) plug_in: f64,
    pub(super) debiased: f64,
    pub(super) moments: Moments,
    pub(super) correlation_with_parent: f64,
    pub(super) worst_cell: u64,
    /// 1/N of each cell.
    w: Vec<f64>,
}

impl Summary {
    /// The estimators and their law under the null. The functions of `estimator` and `null` say
    /// what each sum is.
    pub(super) fn of(level: &Level, parent: Option<(&Level, &Summary)>) -> Summary {
        let (estimates, law, w) = sums(level, parent.map_or(&[], |(_, above)| &above.w));
        let n = estimates.n;
        let scale = if n > 0.0 { 1.0 / n } else { 0.0 };
        let moments = Moments {
            variance: law.variance * scale * scale,
            third: law.third * scale * scale * scale,
        };
        let spread = parent.map_or(0.0, |(_, s)| (s.moments.variance * moments.variance).sqrt());
        Summary {
            cells: level.cells,
            n,
            plug_in: estimates.plug_in * scale,
            debiased: estimates.debiased * scale,
            moments,
            correlation_with_parent: if spread > 0.0 {
                (law.covariance * scale * scale / spread).clamp(0.0, 1.0)
            } else {
                1.0
            },
            worst_cell: estimates.worst_cell,
            w,
        }
    }

    pub(super) fn terms(&self) -> conditional::LevelTerms {
        conditional::LevelTerms {
            debiased: self.debiased,
            plug_in: self.plug_in,
            moments: self.moments,
            correlation: self.correlation_with_parent,
        }
    }

    pub(super) fn moments_p_value(&self) -> f64 {
        self.moments.survival(self.debiased)
    }

    /// The α' at which T_d = √(2K²/α')·min(√m/n, 1/√m), K = 2: T-Cal Theorem 3.1.
    pub(super) fn theorem_p_value(&self) -> f64 {
        if self.debiased <= 0.0 {
            return 1.0;
        }
        let m = self.cells as f64;
        let edge = (m.sqrt() / self.n).min(1.0 / m.sqrt());
        (8.0 * edge * edge / (self.debiased * self.debiased)).min(1.0)
    }

    pub(super) fn result(&self, p_value: f64, reject: bool) -> LevelResult {
        LevelResult {
            cells: self.cells,
            plug_in: self.plug_in,
            debiased: self.debiased,
            null_sd: self.moments.sd(),
            p_value,
            reject,
            worst_cell: self.worst_cell,
            left_out: false,
        }
    }
}

/// The sums of the estimators over the cells of a level, not yet divided by n.
struct Estimates {
    n: f64,
    plug_in: f64,
    debiased: f64,
    worst_cell: u64,
}

/// The sums of the null moments of n·T_d, and of its covariance with the coarser level's.
struct Law {
    variance: f64,
    third: f64,
    covariance: f64,
}

/// Cells of a block.
const BLOCK: usize = 64;

type Block = [f64; BLOCK];

/// The terms of the sums for a block of cells.
struct Terms {
    plug_in: Block,
    debiased: Block,
    variance: Block,
    third: Block,
    covariance: Block,
}

// Not inlined: within a larger function the sums do not stay in registers, and each addition waits
// for memory.
#[inline(never)]
fn sums(level: &Level, above: &[f64]) -> (Estimates, Law, Vec<f64>) {
    let cells = &level.occupied;
    let inverse = |column: &[f64]| column.iter().map(|n| 1.0 / n).collect::<Vec<f64>>();
    let w = inverse(&cells.n);
    let of_count = level.is_weighted().then(|| inverse(&cells.count));
    let each = of_count.as_ref().unwrap_or(&w);
    let mut above = Above {
        w: above,
        seen: 0,
        index: u64::MAX,
    };
    let (mut plug_in, mut debiased) = (0.0, 0.0);
    let (mut variance, mut third, mut covariance) = (0.0, 0.0, 0.0);
    let (mut worst, mut worst_cell) = (f64::NEG_INFINITY, 0);
    let mut terms = Terms {
        plug_in: [0.0; BLOCK],
        debiased: [0.0; BLOCK],
        variance: [0.0; BLOCK],
        third: [0.0; BLOCK],
        covariance: [0.0; BLOCK],
    };
    for start in (0..cells.len()).step_by(BLOCK) {
        let end = cells.len().min(start + BLOCK);
        above.fill(&cells.index[start..end], &mut terms.covariance);
        terms.fill(cells, &w[start..end], &each[start..end], start);
        let sum = |terms: &Block| total(&terms[..end - start]);
        plug_in += sum(&terms.plug_in);
        debiased += sum(&terms.debiased);
        variance += sum(&terms.variance);
        third += sum(&terms.third);
        covariance += sum(&terms.covariance);
        // What lies beyond the end is that of an earlier cell, or 0.
        if greatest(&terms.debiased[..(end - start).next_multiple_of(LANES)]) > worst {
            for (part, index) in terms.debiased.iter().zip(&cells.index[start..end]) {
                if *part > worst {
                    (worst, worst_cell) = (*part, *index);
                }
            }
        }
    }
    let estimates = Estimates {
        n: total(&cells.n),
        plug_in,
        debiased,
        worst_cell,
    };
    let law = Law {
        variance,
        third,
        covariance,
    };
    (estimates, law, w)
}

/// The greatest of numbers, without a branch.
fn greatest(numbers: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut lanes = [f64::NEG_INFINITY; LANES];
    for four in numbers.as_chunks::<LANES>().0 {
        for (most, x) in lanes.iter_mut().zip(four) {
            *most = larger(*most, *x);
        }
    }
    lanes.into_iter().fold(f64::NEG_INFINITY, larger)
}

impl Terms {
    /// The terms of the cells from `start` on whose 1/N are `w` and 1/count are `each`; those of
    /// the covariance hold 1/N of the coarser cells before.
    #[inline(never)]
    fn fill(&mut self, cells: &Columns, w: &[f64], each: &[f64], start: usize) {
        let (len, end) = (w.len(), start + w.len());
        let (count, each) = (&cells.count[start..end], &each[..len]);
        let (u, u2) = (&cells.u[start..end], &cells.u2[start..end]);
        let (plug_in, debiased) = (&mut self.plug_in[..len], &mut self.debiased[..len]);
        for i in 0..len {
            let square = u[i] * u[i];
            plug_in[i] = square * w[i];
            debiased[i] = pairs(square, raised(square, u2[i], each[i]), count[i]) * w[i];
        }
        let (v, v2, v3) = (
            &cells.v[start..end],
            &cells.v2[start..end],
            &cells.v3[start..end],
        );
        let (mu3, mu3_2) = (&cells.mu3[start..end], &cells.mu3_2[start..end]);
        let (variance, covariance) = (&mut self.variance[..len], &mut self.covariance[..len]);
        let third = &mut self.third[..len];
        for i in 0..len {
            let square = v[i] * v[i];
            let squares = raised(square, v2[i], each[i]);
            let of_cell = 2.0 * positive(pairs(square, squares, count[i])) * w[i];
            variance[i] = of_cell * w[i];
            covariance[i] *= of_cell;
            let triples = positive(v[i] * (square - 3.0 * squares) + 2.0 * v3[i]);
            let triples = if count[i] < 3.0 { 0.0 } else { triples };
            let square = mu3[i] * mu3[i];
            let skew = pairs(square, raised(square, mu3_2[i], each[i]), count[i]);
            third[i] = (8.0 * triples + 4.0 * skew) * w[i] * w[i] * w[i];
        }
    }
}

#[inline]
fn positive(x: f64) -> f64 {
    if x > 0.0 { x } else { 0.0 }
}

/// Σ_{a≠b} x_a x_b of a cell, as [`crate::estimator::off_diagonal`] has it.
#[inline]
fn pairs(square: f64, raised_squares: f64, n: f64) -> f64 {
    let pairs = square - raised_squares;
    if n < 2.0 { 0.0 } else { pairs }
}

/// Σx² raised to its lower bound, as [`crate::estimator::raised`] has it, of cells with this 1/n.
/// A division each would take half the time of the terms.
#[inline]
fn raised(square: f64, squares: f64, each: f64) -> f64 {
    let least = square * each;
    if squares > least { squares } else { least }
}

/// 1/N of the next coarser level's cells, one for each cell of a level.
struct Above<'a> {
    w: &'a [f64],
    /// How many of them have been visited, and the index of the last.
    seen: usize,
    index: u64,
}

impl Above<'_> {
    /// Writes 1/N of the coarser cell of each of `cells`, 0 without a coarser level. Branchless,
    /// because whether a cell has a neighbour is not predictable.
    fn fill(&mut self, cells: &[u64], out: &mut Block) {
        for (&cell, out) in cells.iter().zip(out) {
            self.seen += usize::from(cell / 2 != self.index);
            self.index = cell / 2;
            *out = self.w.get(self.seen - 1).copied().unwrap_or(0.0);
        }
    }
}
