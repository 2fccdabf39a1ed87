//! The bets on the cells of a grid, as numbers to multiply cell sums by.
//!
//! A pane keeps n, Σy and Σz for each finest cell, not its events. Every bet is therefore made
//! constant within a finest cell (the slope bets take the log-odds of its centre), and its
//! log-likelihood ratio is bounded from *below* by what the sums give. With f(z) = ln(1 + (e^β −
//! 1)·p(z)), the exact one is Σ(βy − f(z)).
//!
//! ```text
//!            f is concave, so its tangent at the centre z₀ of the cell lies above it:
//!            Σ(βy − f(z)) ≥ β·Σy − n·(f(z₀) − f′(z₀)·z₀) − f′(z₀)·Σz
//! ```
//!
//! A lower bound of a fair bet is an unfavourable one, so no guarantee is touched, whatever the
//! scores within a cell. Jensen's inequality puts the mean score of the cell into f, which is a
//! little tighter but takes a logarithm for each bet, cell and pane; the tangent takes two products
//! by numbers known beforehand, which is what brings 4096 cells below 200 µs. Both lose about
//! n·f″w²/24 for scores spread over a cell of width w.
//!
//! With a tolerance τ in log-odds a score is right if the odds are within e^±τ of its own; then
//! p(z) = hi(z), the highest such probability, for β > 0, and lo(z) for β < 0. 1 + (e^β − 1)·p is a
//! ratio A/D of two lines, A = 1 + (e^(β±τ) − 1)z and D = 1 + (e^(±τ) − 1)z. f is concave here too,
//! since hi is concave, lo is convex, and the logarithm of a concave function is concave.
//!
//! Where a slope bet is so steep against the scores that the tangent would lose more than 10⁻⁶ an
//! event (the largest amplitude, z below 0.006 or above 0.994 on 4096 equal cells), its β is cut.
//! Any β that does not look at outcomes is a fair bet; the mixture holds neighbours that are not
//! cut. So for every stream and every bet the log-likelihood ratio from sums is at most the exact
//! one and within 10⁻⁶ an event of it, where cells are no wider than 1/4096.
//!
//! Cost: 496 bytes a cell, 2 MB for 4096 cells, for all streams of a grid and tolerance together;
//! finer grids are folded to 4096 cells first. [The module](super) says why.

use super::likelihood::{CellLikelihood, Likelihoods};
use super::mixture::{AMPLITUDES, DIRECTED, LEARNT, Scale, U_SCALES, Z_SCALES, logit_clipped};
use crate::axis::Grid;
use crate::fixed::{ONE, from_fixed};
use crate::sums::{Cell, Sums};

/// Finest level that bets look at.
const LEVEL_MAX: u32 = 12;

/// Most that a bet may lose to the tangent, in nats an event, less a tenth for rounding.
const LOSS_MAX: f64 = 0.9e-6;

/// Width of cell for which [`LOSS_MAX`] is kept; wider ones lose with the square of their width.
const WIDTH: f64 = 1.0 / 4096.0;

/// One bet in one cell: a lower bound of its log-likelihood ratio is βΣy − level·n − slope·Σz.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bet {
    /// β, log-odds.
    pub beta: f64,
    /// f(z₀) − f′(z₀)·z₀, and what rounding of scores to 2⁻³² may add.
    pub level: f64,
    /// f′(z₀).
    pub slope: f64,
}

impl Bet {
    /// The bet of `beta` with tolerance τ whose tangent touches at `centre`.
    fn new(beta: f64, tolerance: f64, centre: f64) -> Bet {
        let shift = tolerance.copysign(beta);
        let (a, d) = ((beta + shift).exp_m1(), shift.exp_m1());
        let f = (a * centre).ln_1p() - (d * centre).ln_1p();
        let slope = a / (1.0 + a * centre) - d / (1.0 + d * centre);
        Bet {
            beta,
            level: f - slope * centre + slope.abs() * 0.5 / ONE as f64,
            slope,
        }
    }
}

/// The bets of one cell.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    intercept_level: [f64; DIRECTED],
    intercept_slope: [f64; DIRECTED],
    beta: [f64; DIRECTED],
    level: [f64; DIRECTED],
    slope: [f64; DIRECTED],
    /// Cells of the finest scales of z and u.
    places: [u32; 2],
}

/// The bets on all cells of a grid. See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Odds {
    grid: Grid,
    tolerance: f64,
    /// Right shift from the grid's cells to rows.
    fold: u32,
    rows: Vec<Row>,
}

impl Odds {
    /// Bets on the cells of `grid` against scores that are right up to `tolerance` in log-odds. It
    /// is an error to call this with a tolerance that is negative or not finite.
    pub fn new(grid: Grid, tolerance: f64) -> Odds {
        assert!(
            tolerance >= 0.0 && tolerance.is_finite(),
            "tolerance from 0"
        );
        let level = grid.level().min(LEVEL_MAX);
        let row = |index| row(grid.edges(level, index), tolerance);
        Odds {
            grid,
            tolerance,
            fold: grid.level() - level,
            rows: (0..1 << level).map(row).collect(),
        }
    }

    /// Heap bytes that the bets on `grid` take.
    pub fn bytes_of(grid: Grid) -> usize {
        size_of::<Row>() << grid.level().min(LEVEL_MAX)
    }

    /// The grid.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The tolerance, in log-odds.
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val::<[Row]>(&self.rows)
    }

    /// The intercept bet `i` and the slope bet `i` of the grid's cell `index`, `i` below
    /// [`DIRECTED`].
    pub fn bets(&self, index: u32, i: usize) -> [Bet; 2] {
        let row = &self.rows[(index >> self.fold) as usize];
        [
            Bet {
                beta: AMPLITUDE[i],
                level: row.intercept_level[i],
                slope: row.intercept_slope[i],
            },
            Bet {
                beta: row.beta[i],
                level: row.level[i],
                slope: row.slope[i],
            },
        ]
    }

    /// Log-likelihood ratios of a pane, none above the exact ones. It is an error to call this with
    /// sums of another grid.
    pub fn likelihoods(&self, sums: &Sums) -> Likelihoods {
        assert_eq!(self.grid, sums.grid(), "bets on the cells of another grid");
        let mut all = Likelihoods::default();
        let finest = [Z_SCALES - 1, Z_SCALES + U_SCALES - 1].map(|k| Scale::of(k).first);
        sums.each_occupied(|index, cell| {
            let row = &self.rows[(index >> self.fold) as usize];
            let one = observe(row, cell, &mut all.directed);
            for (first, place) in finest.iter().zip(row.places) {
                all.cells[first + place as usize].merge(&one);
            }
        });
        all.n = sums.n();
        all.fold();
        all
    }
}

fn row(edges: (f64, f64), tolerance: f64) -> Row {
    let centre = 0.5 * (edges.0 + edges.1);
    let h = logit_clipped(centre);
    let intercept: [Bet; DIRECTED] =
        std::array::from_fn(|i| Bet::new(AMPLITUDE[i], tolerance, centre));
    let slope: [Bet; DIRECTED] = std::array::from_fn(|i| {
        let beta = cut(0.5 * AMPLITUDE[i] * h, tolerance, edges);
        Bet::new(beta, tolerance, centre)
    });
    Row {
        intercept_level: intercept.map(|b| b.level),
        intercept_slope: intercept.map(|b| b.slope),
        beta: slope.map(|b| b.beta),
        level: slope.map(|b| b.level),
        slope: slope.map(|b| b.slope),
        places: [Z_SCALES - 1, Z_SCALES + U_SCALES - 1]
            .map(|k| Scale::of(k).cell_of(centre) as u32),
    }
}

/// β, or the steepest of its sign with which the tangent loses at most [`LOSS_MAX`] anywhere in the
/// cell.
///
/// The loss at the edges is at most ½·max|f″|·(w/2)², and |f″| ≤ (A′/A)² with A = 1 + az, a =
/// e^(β±τ) − 1. So
/// |a|/A ≤ g = √(8·loss)/w at the edge where A is least, which solves to a bound of a.
fn cut(beta: f64, tolerance: f64, (low, high): (f64, f64)) -> f64 {
    let g = (8.0 * LOSS_MAX).sqrt() / (high - low).min(WIDTH);
    if beta > 0.0 {
        let rest = 1.0 - g * low;
        let most = if rest > 0.0 {
            (g / rest).ln_1p()
        } else {
            f64::INFINITY
        };
        beta.min((most - tolerance).max(0.0))
    } else {
        let rest = 1.0 - g / (1.0 + g * high);
        let most = if rest > 0.0 {
            -rest.ln()
        } else {
            f64::INFINITY
        };
        beta.max(-(most - tolerance).max(0.0))
    }
}

/// Adds a cell to the one-parameter bets; returns what its cell bets say.
#[inline]
fn observe(row: &Row, cell: &Cell, directed: &mut [f64; 2 * DIRECTED]) -> CellLikelihood {
    let (n, y) = (cell.n as f64, cell.y as f64);
    let z = from_fixed(cell.z.into());
    let (intercept, slope) = directed.split_at_mut(DIRECTED);
    let mut constant = [0.0; DIRECTED];
    for i in 0..DIRECTED {
        constant[i] = AMPLITUDE[i] * y - row.intercept_level[i] * n - row.intercept_slope[i] * z;
        intercept[i] += constant[i];
        slope[i] += row.beta[i] * y - row.level[i] * n - row.slope[i] * z;
    }
    let mut one = CellLikelihood {
        variance: from_fixed(i128::from(cell.z) - i128::from(cell.z2)),
        n: cell.n,
        ..CellLikelihood::default()
    };
    for j in 0..LEARNT {
        one.plus[j] = constant[2 * (j + CELL_OFFSET)];
        one.minus[j] = constant[2 * (j + CELL_OFFSET) + 1];
    }
    one
}

/// Where the amplitudes of cells begin among those of the intercept: the bets are the same.
const CELL_OFFSET: usize = 1;

/// ± the amplitude of each one-parameter bet.
const AMPLITUDE: [f64; DIRECTED] = {
    let mut all = [0.0; DIRECTED];
    let mut i = 0;
    while i < AMPLITUDES.len() {
        all[2 * i] = AMPLITUDES[i];
        all[2 * i + 1] = -AMPLITUDES[i];
        i += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::super::mixture::CELL_AMPLITUDES;
    use super::*;
    use crate::axis::Axis;

    #[test]
    fn cell_bets_are_intercept_bets_of_the_same_amplitude() {
        for j in 0..LEARNT {
            assert_eq!(CELL_AMPLITUDES[j], AMPLITUDES[j + CELL_OFFSET]);
        }
    }

    #[test]
    fn slope_bets_are_cut_only_far_out_and_only_at_the_largest_amplitude() {
        let odds = Odds::new(Grid::new(Axis::Linear, 12), 0.0);
        for (index, row) in odds.rows.iter().enumerate() {
            let z = (index as f64 + 0.5) / 4096.0;
            for (i, beta) in row.beta.iter().enumerate() {
                let whole = 0.5 * AMPLITUDE[i] * logit_clipped(z);
                let cut = (whole - beta).abs() > 1e-12;
                let far = z.min(1.0 - z) < 0.007;
                assert!(!cut || far && i >= DIRECTED - 2, "{z} {whole} {beta}");
            }
        }
    }
}
