//! The fixed mixture of bets: what is bet on, with what weight, and where each component stands.
//!
//! A *bet* of log-odds β on an outcome y of probability p multiplies its stake by L = e^(βy)/(1 −
//! p + p·e^β), the likelihood ratio of "the odds are e^β times what the score says". Its mean is 1
//! where the score is right, so no score law can make it grow by calibrated outcomes.
//!
//! | components | bet | number | weight in all |
//! |---|---|---|---|
//! | intercept | ±b | 12 | .275 |
//! | slope | ±(b/2)·logit z | 12 | .225 |
//! | cells of z, 2, 4, …, 256 | ±c with a sign learnt by each cell | 8 × 4 | .035 |
//! | cells of expit(logit(z)/3), 2, …, 32 | the same | 5 × 4 | .01 |
//! | shift | towards z ± d, in probability | 10 | .16 |
//! | label noise | towards z + ε(1 − 2z) | 5 | .03 |
//! | bumps | ±c on 2 or 3 neighbouring cells of 8, 16 or 32, nothing elsewhere | 196 | .265 |
//!
//! The reasons: amplitudes by factors of 2 lose at most 17 % of the growth of the best one. Models
//! fail by a shift of odds or of probabilities, a temperature, noise in the labels, or one range of
//! scores that goes wrong, and each of these has a direction of its own. A shift of .05 or 3 % of
//! noise is enormous in log-odds near 0 and 1, and no intercept or slope can express it. Bumps
//! overlap by half or more, so any range of a sixteenth to a quarter has one that fits it. A
//! component of weight w costs log(1/w) nats of delay compared with a bet on it alone: about 3 for
//! the commonest directions, 5 to 8 for a bump. The common amplitude with a sign for each cell is
//! the prior of T-Cal's lower bound, so m weak cells add up like √m; the second axis resolves
//! scores of 10⁻⁵ that share the first cell of z. Nothing is tuned to a stream, and nothing but the
//! signs is learnt. An error below 1/64 in log-odds, or narrower than 1/256 of z, is not seen.
//!
//! Errors of rare scores that cancel within a cell of u are not seen either: below .02 the
//! narrowest cells span a factor of 1.8 to 9. Grades .001, .002, .004, .006, .008, .012 and .016
//! whose true rates are .001, .004, .002, .008, .006, .016 and .012, neighbours exchanged, were
//! found in 6 of 20 streams within 100,000 events (budget `5% ever`); the test of a window of
//! 40,000 rejects 39 of 40.
//!
//! A slope downwards has twice the weight of one upwards: models are over-confident more often than
//! under-confident (Guo, Pleiss, Sun, Weinberger, *On calibration of modern neural networks*,
//! 2017).
//!
//! [The module](super) derives the bets. Source: Shin, Ramdas, Rinaldo, *E-detectors: a
//! nonparametric framework for sequential change detection* (2023).

use crate::axis::logit;
use std::sync::LazyLock;

/// b, amplitudes of the one-parameter bets.
pub const AMPLITUDES: [f64; 6] = [0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0];

/// c, amplitudes of the bets of cells: the second to the fifth of [`AMPLITUDES`].
pub const CELL_AMPLITUDES: [f64; 4] = [0.0625, 0.125, 0.25, 0.5];

/// Where [`CELL_AMPLITUDES`] begin among [`AMPLITUDES`]: the bets are the same.
pub const CELL_OFFSET: usize = 1;

/// One-parameter bets of one family: each amplitude with either sign, `2j` for + and `2j + 1` for
/// −.
pub const DIRECTED: usize = 2 * AMPLITUDES.len();

/// Amplitudes of cell bets.
pub const LEARNT: usize = CELL_AMPLITUDES.len();

/// Number of scales in z: 2¹ to 2⁸ cells.
pub const Z_SCALES: usize = 8;

/// Number of scales in u = expit(logit(z)/3): 2¹ to 2⁵ cells.
pub const U_SCALES: usize = 5;

/// Number of scales in all, those of z first.
pub const SCALES: usize = Z_SCALES + U_SCALES;

/// d, which the shift bets add to probabilities or subtract.
pub const SHIFTS: [f64; 5] = [0.01, 0.02, 0.05, 0.1, 0.2];

/// ε, shares of flipped outcomes.
pub const NOISES: [f64; 5] = [0.005, 0.01, 0.02, 0.05, 0.1];

/// Bets towards a probability: each shift with either sign, `2k` for + and `2k + 1` for −, then
/// noise.
pub const TOWARDS: usize = 2 * SHIFTS.len() + NOISES.len();

/// A kind of bump.
struct BumpKind {
    scale: usize,
    /// Neighbouring cells of that scale that it covers.
    cells: usize,
    /// Index of [`CELL_AMPLITUDES`].
    amplitude: usize,
    /// Weight of all of the kind.
    weight: f64,
}

const fn bump_kind(scale: usize, cells: usize, amplitude: usize, weight: f64) -> BumpKind {
    BumpKind {
        scale,
        cells,
        amplitude,
        weight,
    }
}

/// Widths of 1/4, 1/8, 3/32 and 1/16.
const BUMPS: [BumpKind; 5] = [
    bump_kind(2, 2, 2, 0.035),
    bump_kind(3, 2, 2, 0.02),
    bump_kind(3, 2, 3, 0.09),
    bump_kind(4, 3, 3, 0.09),
    bump_kind(4, 2, 3, 0.03),
];

/// First component that bets towards a probability.
const TOWARDS_FIRST: usize = 2 * DIRECTED + SCALES * LEARNT;

/// First component that bets on a bump.
const BUMPS_FIRST: usize = TOWARDS_FIRST + TOWARDS;

/// Number of components.
pub const COMPONENTS: usize = BUMPS_FIRST + 2 * (7 + 15 + 15 + 30 + 31);

/// Cells of all scales of z: 2 + 4 + … + 256.
pub const Z_CELLS: usize = (2 << Z_SCALES) - 2;

/// Cells of all scales: 510 in z, then 62 in u.
pub const CELLS: usize = Z_CELLS + (2 << U_SCALES) - 2;

/// Beyond these log-odds the slope bets stay as they are: e⁻¹² is a score of 6·10⁻⁶.
pub const LOGIT_CLIP: f64 = 12.0;

/// Weight of both signs of each amplitude of the intercept.
const INTERCEPT_WEIGHT: [f64; 6] = [0.005, 0.01, 0.02, 0.04, 0.15, 0.05];

/// Weight of both signs of each amplitude of the slope.
const SLOPE_WEIGHT: [f64; 6] = [0.005, 0.01, 0.03, 0.08, 0.08, 0.02];

/// Share of a slope's weight that bets on a slope upwards.
const SLOPE_UP: f64 = 1.0 / 3.0;

/// Weight of both signs of each shift.
const SHIFT_WEIGHT: [f64; 5] = [0.01, 0.03, 0.07, 0.03, 0.02];

/// Weight of the noises, in equal parts.
const NOISE_WEIGHT: f64 = 0.03;

/// Weights of the cells of z and of u, in equal parts.
const CELLS_WEIGHT: [f64; 2] = [0.035, 0.01];

/// A scale of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Whether it cuts u = expit(logit(z)/3) instead of z.
    pub warped: bool,
    /// m, its number of cells.
    pub cells: usize,
    /// Index of its first cell among all [`CELLS`].
    pub first: usize,
}

impl Scale {
    /// Scale `k`, below [`SCALES`].
    pub fn of(k: usize) -> Scale {
        let warped = k >= Z_SCALES;
        let (k, before) = if warped {
            (k - Z_SCALES, Z_CELLS)
        } else {
            (k, 0)
        };
        let cells = 2 << k;
        Scale {
            warped,
            cells,
            first: before + cells - 2,
        }
    }

    /// The cell of score z at this scale; the last cell is closed.
    pub fn cell_of(&self, z: f64) -> usize {
        let x = if self.warped { warp(z) } else { z };
        ((x * self.cells as f64) as usize).min(self.cells - 1)
    }

    /// The lower and upper edge of a cell of this scale, as scores.
    pub fn edges(&self, cell: usize) -> (f64, f64) {
        let at = |i: usize| {
            let x = i as f64 / self.cells as f64;
            if !self.warped || i == 0 || i == self.cells {
                x
            } else {
                expit(3.0 * logit(x))
            }
        };
        (at(cell), at(cell + 1))
    }
}

/// 1/(1 + e⁻ˣ).
pub(super) fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// u of the warped scales; clipped at both ends, which only merges what lies beyond.
fn warp(z: f64) -> f64 {
    expit(logit_clipped(z) / 3.0)
}

/// Log-odds of z in [0, 1], within ±[`LOGIT_CLIP`].
pub fn logit_clipped(z: f64) -> f64 {
    if z <= 0.0 {
        -LOGIT_CLIP
    } else if z >= 1.0 {
        LOGIT_CLIP
    } else {
        (z / (1.0 - z)).ln().clamp(-LOGIT_CLIP, LOGIT_CLIP)
    }
}

/// Component of bet `i` towards a probability.
pub fn towards_component(i: usize) -> usize {
    TOWARDS_FIRST + i
}

/// Component of bump `i` of [`bumps`].
pub fn bump_component(i: usize) -> usize {
    BUMPS_FIRST + i
}

/// Component of amplitude `j` at scale `k`.
pub fn component(k: usize, j: usize) -> usize {
    2 * DIRECTED + k * LEARNT + j
}

/// What a component bets on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bet {
    /// Odds of all scores times e^β.
    Intercept(f64),
    /// Log-odds of all scores times 1 + β.
    Slope(f64),
    /// Cells of a scale, each with a sign of its own.
    Cells(Scale),
    /// This much added to all probabilities.
    Shift(f64),
    /// This share of the outcomes flipped.
    Noise(f64),
    /// Odds of the scores from `low` to `high` times e^β.
    Bump {
        /// Least score.
        low: f64,
        /// Largest score.
        high: f64,
        /// Log-odds.
        beta: f64,
    },
}

/// A bump: neighbouring cells, an amplitude, and whether it is upwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bump {
    /// Index of its first cell among all [`CELLS`].
    pub first: usize,
    /// Number of them.
    pub cells: usize,
    /// Index of [`CELL_AMPLITUDES`].
    pub amplitude: usize,
    /// Whether outcomes are more frequent there than the scores say.
    pub up: bool,
    /// Weight.
    weight: f64,
    /// Its scale.
    scale: Scale,
}

impl Bump {
    /// The scores that it covers.
    fn span(&self) -> (f64, f64) {
        let cell = self.first - self.scale.first;
        let last = cell + self.cells - 1;
        (self.scale.edges(cell).0, self.scale.edges(last).1)
    }
}

/// The bumps, in the order of their components.
pub fn bumps() -> impl Iterator<Item = Bump> {
    BUMPS.into_iter().flat_map(|kind| {
        let scale = Scale::of(kind.scale);
        let places = scale.cells + 1 - kind.cells;
        (0..2 * places).map(move |i| Bump {
            first: scale.first + i / 2,
            cells: kind.cells,
            amplitude: kind.amplitude,
            up: i % 2 == 0,
            weight: kind.weight / (2 * places) as f64,
            scale,
        })
    })
}

/// The alternative of bet `i` towards a probability, below [`TOWARDS`].
pub fn towards(i: usize) -> Bet {
    let shifts = 2 * SHIFTS.len();
    if i >= shifts {
        Bet::Noise(NOISES[i - shifts])
    } else {
        Bet::Shift(signed(SHIFTS[i / 2], i))
    }
}

/// + for even indices, − for odd ones.
fn signed(x: f64, i: usize) -> f64 {
    if i.is_multiple_of(2) { x } else { -x }
}

/// What all components bet on, in their order.
pub static BETS: LazyLock<Vec<Bet>> = LazyLock::new(|| {
    let directed = |bet: fn(f64) -> Bet, of: f64| {
        (0..DIRECTED).map(move |i| bet(of * signed(AMPLITUDES[i / 2], i)))
    };
    let cells = (0..SCALES * LEARNT).map(|i| Bet::Cells(Scale::of(i / LEARNT)));
    let bump = |b: Bump| {
        let (low, high) = b.span();
        Bet::Bump {
            low,
            high,
            beta: signed(CELL_AMPLITUDES[b.amplitude], usize::from(!b.up)),
        }
    };
    let all = directed(Bet::Intercept, 1.0).chain(directed(Bet::Slope, 0.5));
    all.chain(cells)
        .chain((0..TOWARDS).map(towards))
        .chain(bumps().map(bump))
        .collect()
});

/// Share of the stake on each component; they sum to 1.
pub static WEIGHTS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let intercept = (0..DIRECTED).map(|i| 0.5 * INTERCEPT_WEIGHT[i / 2]);
    let slope = (0..DIRECTED).map(|i| {
        let up = if i % 2 == 0 { SLOPE_UP } else { 1.0 - SLOPE_UP };
        up * SLOPE_WEIGHT[i / 2]
    });
    let scales = [Z_SCALES, U_SCALES].into_iter().zip(CELLS_WEIGHT);
    let cells = scales
        .flat_map(|(k, weight)| std::iter::repeat_n(weight / (k * LEARNT) as f64, k * LEARNT));
    let shift = (0..2 * SHIFTS.len()).map(|i| 0.5 * SHIFT_WEIGHT[i / 2]);
    let noise = NOISES.map(|_| NOISE_WEIGHT / NOISES.len() as f64);
    let all = intercept.chain(slope).chain(cells).chain(shift);
    all.chain(noise).chain(bumps().map(|b| b.weight)).collect()
});

/// The logarithms of [`WEIGHTS`].
pub static LOG_WEIGHTS: LazyLock<Vec<f64>> =
    LazyLock::new(|| WEIGHTS.iter().map(|weight| weight.ln()).collect());

/// Variance after which a cell of a scale of `cells` has forgotten, in units of 1/c²: about three
/// times what detecting the smallest error of that scale takes, so that noise before a change is
/// not locked in.
pub fn horizon(cells: usize) -> f64 {
    let m = cells as f64;
    3.0 * (16.0 + 4.0 * m.sqrt()) / m
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_one_and_scales_fill_the_cells() {
        let sum: f64 = WEIGHTS.iter().sum();
        assert!((sum - 1.0).abs() < 1e-12);
        let mut next = 0;
        for k in 0..SCALES {
            assert_eq!(Scale::of(k).first, next);
            next += Scale::of(k).cells;
        }
        assert_eq!((next, COMPONENTS), (CELLS, 287));
        assert_eq!((WEIGHTS.len(), BETS.len()), (COMPONENTS, COMPONENTS));
    }

    #[test]
    fn a_score_lies_between_the_edges_of_its_cell_and_scales_nest() {
        for k in 0..SCALES {
            let scale = Scale::of(k);
            for i in 0..=2000 {
                let z = f64::from(i) / 2000.0;
                let cell = scale.cell_of(z);
                let (low, high) = scale.edges(cell);
                assert!(low <= z + 1e-12 && z <= high + 1e-12, "{scale:?} {z}");
                if scale.cells > 2 {
                    assert_eq!(Scale::of(k - 1).cell_of(z), cell / 2);
                }
            }
        }
    }
}
