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
//! by numbers known beforehand, which is what brings 4096 cells to some 50 µs. Both lose about
//! n·f″w²/24 for scores spread over a cell of width w.
//!
//! With a tolerance τ in log-odds a score is right if the odds are within e^±τ of its own; then
//! p(z) = hi(z), the highest such probability, for β > 0, and lo(z) for β < 0. 1 + (e^β − 1)·p is a
//! ratio A/D of two lines, A = 1 + (e^(β±τ) − 1)z and D = 1 + (e^(±τ) − 1)z. f is concave here too,
//! since hi is concave, lo is convex, and the logarithm of a concave function is concave.
//!
//! *Bets towards a probability.* A shift or noise says that the probability is q(z) and not z. In
//! log-odds that is δ = logit q(z₀) − logit z₀, a different β in each cell. Against scores that are
//! right up to τ the best bet is the ratio of q to the nearest tolerated probability, whose
//! log-odds are τ nearer to q (Grünwald, de Heide, Koolen, *Safe testing*, 2024, theorem 1; the
//! nearest product is the product of the nearest): β = sign δ·max(|δ| − τ, 0), within ±5 so that no
//! outcome takes more than e⁻⁵ of a stake. At the ends of the scale these bets are steep on
//! purpose, since there a small shift shows; their tangents lose up to 2d² nats an event in the
//! outermost cells, and less than 10⁻⁶ where z is more than .02 away from an end.
//!
//! Where a slope bet is so steep against the scores that the tangent would lose more than 10⁻⁶ an
//! event (the largest amplitude, z below 0.006 or above 0.994 on 4096 equal cells), its β is cut.
//! Any β that does not look at outcomes is a fair bet; the mixture holds neighbours that are not
//! cut. So for every stream and every bet the log-likelihood ratio from sums is at most the exact
//! one; that of intercept, slope and cell bets is within 10⁻⁶ an event of it, where cells are no
//! wider than 1/4096 and the tolerance is at most 1.5.
//!
//! *Rows.* Between 1/8 and 7/8 no bet is steep, and cells there are put together up to a width of
//! 1/1024 before bets look at them, which loses at most 5·10⁻⁷ an event and makes a pane twice as
//! cheap. Finer grids are folded to 4096 cells first.
//!
//! Cost: 896 bytes a row, 1792 rows and 1.6 MB for 4096 linear cells, for all streams of a grid and
//! tolerance together. [The module](super) says why.

use super::likelihood::{CellLikelihood, Likelihoods};
use super::mixture::{
    self, AMPLITUDES, CELL_OFFSET, DIRECTED, LEARNT, Scale, TOWARDS, U_SCALES, Z_SCALES,
    logit_clipped, towards,
};
use crate::axis::{Grid, logit};
use crate::fixed::{ONE, from_fixed};
use crate::sums::{Cell, Sums};

/// Finest level that bets look at.
const LEVEL_MAX: u32 = 12;

/// Most that a bet may lose to the tangent, in nats an event, less a tenth for rounding.
const LOSS_MAX: f64 = 0.9e-6;

/// Width of cell for which [`LOSS_MAX`] is kept; wider ones lose with the square of their width.
const WIDTH: f64 = 1.0 / 4096.0;

/// Where no bet is steep: from here to 1 minus this, cells are put together.
const MIDDLE: f64 = 0.125;

/// Width up to which cells in the middle are put together.
const MIDDLE_WIDTH: f64 = 1.0 / 1024.0;

/// Greatest |β| of a bet towards a probability, in log-odds.
const TOWARDS_MAX: f64 = 5.0;

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

/// Room for the bets towards a probability: one that bets nothing makes their number even.
const TOWARDS_ROOM: usize = TOWARDS.next_multiple_of(2);

/// The bets of one cell, in lines of the cache: each family is added up by itself.
#[derive(Debug, Clone, PartialEq)]
#[repr(C, align(64))]
struct Row {
    towards_beta: [f64; TOWARDS_ROOM],
    towards_level: [f64; TOWARDS_ROOM],
    towards_slope: [f64; TOWARDS_ROOM],
    intercept_level: [f64; DIRECTED],
    intercept_slope: [f64; DIRECTED],
    beta: [f64; DIRECTED],
    level: [f64; DIRECTED],
    slope: [f64; DIRECTED],
    /// Cells of the finest scales of z and u.
    places: [u32; 2],
}

/// The bets on all cells of a grid, as numbers by which cell sums are multiplied.
#[derive(Debug, Clone, PartialEq)]
pub struct Odds {
    grid: Grid,
    tolerance: f64,
    /// Row of each of the grid's cells.
    row_of: Vec<u32>,
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
        let spans = spans(grid);
        let fold = grid.level() - grid.level().min(LEVEL_MAX);
        let rows_of = (0..).zip(&spans);
        let row_of = rows_of.flat_map(|(i, s): (u32, &Span)| vec![i; s.cells << fold]);
        Odds {
            grid,
            tolerance,
            row_of: row_of.collect(),
            rows: spans.iter().map(|s| row(s.edges, tolerance)).collect(),
        }
    }

    /// Heap bytes that the bets on `grid` take.
    pub fn bytes_of(grid: Grid) -> usize {
        spans(grid).len() * size_of::<Row>() + (size_of::<u32>() << grid.level())
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
        size_of_val::<[Row]>(&self.rows) + size_of_val::<[u32]>(&self.row_of)
    }

    /// The intercept bet `i` and the slope bet `i` of the grid's cell `index`, `i` below
    /// [`DIRECTED`].
    pub fn bets(&self, index: u32, i: usize) -> [Bet; 2] {
        let row = self.row(index);
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

    /// The bet `i` towards a probability of the grid's cell `index`, `i` below [`TOWARDS`].
    pub fn bet_towards(&self, index: u32, i: usize) -> Bet {
        let row = self.row(index);
        Bet {
            beta: row.towards_beta[i],
            level: row.towards_level[i],
            slope: row.towards_slope[i],
        }
    }

    fn row(&self, index: u32) -> &Row {
        &self.rows[self.row_of[index as usize] as usize]
    }

    /// Log-likelihood ratios of a pane, none above the exact ones. It is an error to call this with
    /// sums of another grid.
    pub fn likelihoods(&self, sums: &Sums) -> Likelihoods {
        assert_eq!(self.grid, sums.grid(), "bets on the cells of another grid");
        let mut all = Likelihoods::default();
        let mut towards = [0.0; TOWARDS_ROOM];
        let mut rows = Vec::with_capacity(BATCH);
        let mut gathered = (0, RowSums::default());
        // Cells come in ascending order, so those of a row follow one another.
        sums.each_occupied(|index, cell| {
            let at = self.row_of[index as usize];
            if at != gathered.0 {
                if rows.len() == BATCH {
                    settle(&rows, &mut towards, &mut all);
                    rows.clear();
                }
                self.show(&gathered, &mut rows);
                gathered = (at, RowSums::default());
            }
            gathered.1.add(cell);
        });
        self.show(&gathered, &mut rows);
        settle(&rows, &mut towards, &mut all);
        all.towards.copy_from_slice(&towards[..TOWARDS]);
        all.n = sums.n();
        all.fold();
        all
    }

    /// Adds a row with its sums to `rows`, unless no event fell into it.
    #[inline]
    fn show<'o>(&'o self, (at, sums): &(u32, RowSums), rows: &mut Vec<Shown<'o>>) {
        if sums.n > 0 {
            rows.push(sums.shown(&self.rows[*at as usize]));
        }
    }
}

/// Rows that are added up together, one family of bets after the other: its sums then stay in
/// registers, and the lines of many rows are fetched at once.
const BATCH: usize = 64;

/// Sums of the cells of a row.
#[derive(Debug, Clone, Copy, Default)]
struct RowSums {
    n: u64,
    y: u64,
    z: u128,
    z2: u128,
}

impl RowSums {
    fn add(&mut self, cell: &Cell) {
        self.n += cell.n;
        self.y += cell.y;
        self.z += u128::from(cell.z);
        self.z2 += u128::from(cell.z2);
    }

    fn shown<'o>(&self, row: &'o Row) -> Shown<'o> {
        Shown {
            row,
            events: self.n,
            n: self.n as f64,
            y: self.y as f64,
            z: from_fixed(self.z as i128),
            variance: from_fixed(self.z as i128 - self.z2 as i128),
        }
    }
}

/// A row and the sums of its cells.
struct Shown<'o> {
    row: &'o Row,
    events: u64,
    n: f64,
    y: f64,
    z: f64,
    variance: f64,
}

/// Cells that one row stands for.
struct Span {
    cells: usize,
    edges: (f64, f64),
}

/// The rows of a grid: cells of level [`LEVEL_MAX`] at most, fewer in the middle.
fn spans(grid: Grid) -> Vec<Span> {
    let level = grid.level().min(LEVEL_MAX);
    let mut all: Vec<Span> = Vec::new();
    for index in 0..1 << level {
        let (low, high) = grid.edges(level, index);
        let joins = |s: &&mut Span| {
            let width = high - s.edges.0;
            s.edges.0 >= MIDDLE
                && high <= 1.0 - MIDDLE
                && width <= MIDDLE_WIDTH
                && places(s.edges) == places((low, high))
        };
        match all.last_mut().filter(joins) {
            Some(span) => {
                span.cells += 1;
                span.edges.1 = high;
            }
            None => all.push(Span {
                cells: 1,
                edges: (low, high),
            }),
        }
    }
    all
}

/// Cells of the finest scales of z and u that a row belongs to, by its centre.
fn places((low, high): (f64, f64)) -> [u32; 2] {
    [Z_SCALES - 1, Z_SCALES + U_SCALES - 1].map(|k| Scale::of(k).cell_of(0.5 * (low + high)) as u32)
}

/// β of the bet towards the probability that `bet` gives to score `z`, against scores right up to
/// `tolerance`.
fn excess(bet: mixture::Bet, tolerance: f64, z: f64) -> f64 {
    let q = match bet {
        mixture::Bet::Shift(d) => z + d,
        mixture::Bet::Noise(e) => z + e * (1.0 - 2.0 * z),
        _ => z,
    };
    let of = |p: f64| {
        if p <= 0.0 {
            f64::NEG_INFINITY
        } else if p >= 1.0 {
            f64::INFINITY
        } else {
            logit(p)
        }
    };
    let delta = of(q) - of(z);
    let beyond = (delta.abs() - tolerance).max(0.0);
    beyond.min(TOWARDS_MAX).copysign(delta)
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
    let towards: [Bet; TOWARDS_ROOM] = std::array::from_fn(|i| match i < TOWARDS {
        true => Bet::new(excess(towards(i), tolerance, centre), tolerance, centre),
        false => Bet::default(),
    });
    Row {
        intercept_level: intercept.map(|b| b.level),
        intercept_slope: intercept.map(|b| b.slope),
        beta: slope.map(|b| b.beta),
        level: slope.map(|b| b.level),
        slope: slope.map(|b| b.slope),
        towards_beta: towards.map(|b| b.beta),
        towards_level: towards.map(|b| b.level),
        towards_slope: towards.map(|b| b.slope),
        places: places(edges),
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

/// Adds rows to the likelihoods, but the bets towards a probability to `towards`.
fn settle(rows: &[Shown], towards: &mut [f64; TOWARDS_ROOM], all: &mut Likelihoods) {
    let (intercept, slope) = all.directed.split_at_mut(DIRECTED);
    add_towards(rows, towards);
    add_intercept(rows, intercept, &mut all.cells);
    add_slope(rows, slope);
}

/// Adds rows to the bets towards a probability.
fn add_towards(rows: &[Shown], all: &mut [f64; TOWARDS_ROOM]) {
    let mut sum = *all;
    for Shown { row, n, y, z, .. } in rows {
        for (i, sum) in sum.iter_mut().enumerate() {
            *sum += row.towards_beta[i] * y - row.towards_level[i] * n - row.towards_slope[i] * z;
        }
    }
    *all = sum;
}

/// Adds rows to the bets on the slope.
fn add_slope(rows: &[Shown], all: &mut [f64]) {
    let mut sum = [0.0; DIRECTED];
    sum.copy_from_slice(all);
    for Shown { row, n, y, z, .. } in rows {
        for (i, sum) in sum.iter_mut().enumerate() {
            *sum += row.beta[i] * y - row.level[i] * n - row.slope[i] * z;
        }
    }
    all.copy_from_slice(&sum);
}

/// Adds rows to the bets on the intercept, and to those of the finest cells.
fn add_intercept(rows: &[Shown], all: &mut [f64], cells: &mut [CellLikelihood]) {
    let finest = [Z_SCALES - 1, Z_SCALES + U_SCALES - 1].map(|k| Scale::of(k).first);
    let mut sum = [0.0; DIRECTED];
    sum.copy_from_slice(all);
    for shown in rows {
        let Shown { row, n, y, z, .. } = shown;
        let mut constant = [0.0; DIRECTED];
        for i in 0..DIRECTED {
            constant[i] =
                AMPLITUDE[i] * y - row.intercept_level[i] * n - row.intercept_slope[i] * z;
            sum[i] += constant[i];
        }
        let mut one = CellLikelihood {
            variance: shown.variance,
            n: shown.events,
            ..CellLikelihood::default()
        };
        for j in 0..LEARNT {
            one.plus[j] = constant[2 * (j + CELL_OFFSET)];
            one.minus[j] = constant[2 * (j + CELL_OFFSET) + 1];
        }
        for (first, place) in finest.iter().zip(row.places) {
            cells[first + place as usize].merge(&one);
        }
    }
    all.copy_from_slice(&sum);
}

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
mod tests;
