//! The fixed mixture of bets: what is bet on, with what weight, and where each component stands.
//!
//! A *bet* of log-odds β on an outcome y of probability p multiplies its stake by L = e^(βy)/(1 −
//! p + p·e^β), the likelihood ratio of "the odds are e^β times what the score says". Its mean is 1
//! where the score is right, so no score law can make it grow by calibrated outcomes.
//!
//! | components | bet | number | weight in all |
//! |---|---|---|---|
//! | intercept | ±b | 12 | ¼ |
//! | slope | ±(b/2)·logit z | 12 | ¼ |
//! | cells of z, 2, 4, …, 256 | ±c with a sign learnt by each cell | 8 × 4 | ¼ |
//! | cells of expit(logit(z)/3), 2, …, 32 | the same | 5 × 4 | ¼ |
//!
//! Why so: amplitudes by factors of 2 lose at most 17 % of the growth of the best one; the common
//! amplitude with a sign for each cell is the prior of T-Cal's lower bound, so m weak cells add up
//! like √m; the second axis resolves scores of 10⁻⁵ that share the first cell of z. Nothing is
//! tuned to a stream, and nothing but the signs is learnt. An error below 1/64 in log-odds, or
//! narrower than 1/256 of z, is not seen.
//!
//! [The module](super) derives the bets. Source: Shin, Ramdas, Rinaldo, *E-detectors: a
//! nonparametric framework for sequential change detection* (2023).

use crate::axis::logit;

/// b, amplitudes of the one-parameter bets.
pub const AMPLITUDES: [f64; 6] = [0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0];

/// c, amplitudes of the bets of cells: the second to the fifth of [`AMPLITUDES`].
pub const CELL_AMPLITUDES: [f64; 4] = [0.0625, 0.125, 0.25, 0.5];

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

/// Number of components.
pub const COMPONENTS: usize = 2 * DIRECTED + SCALES * LEARNT;

/// Cells of all scales of z: 2 + 4 + … + 256.
pub const Z_CELLS: usize = (2 << Z_SCALES) - 2;

/// Cells of all scales: 510 in z, then 62 in u.
pub const CELLS: usize = Z_CELLS + (2 << U_SCALES) - 2;

/// Beyond these log-odds the slope bets stay as they are: e⁻¹² is a score of 6·10⁻⁶.
pub const LOGIT_CLIP: f64 = 12.0;

/// A quarter of the stake on each family.
const FAMILY_WEIGHT: f64 = 0.25;

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

    /// Its cell of score z, the last one closed.
    pub fn cell_of(&self, z: f64) -> usize {
        let x = if self.warped { warp(z) } else { z };
        ((x * self.cells as f64) as usize).min(self.cells - 1)
    }

    /// Scores between which its cell lies.
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

/// Component of amplitude `j` at scale `k`.
pub fn component(k: usize, j: usize) -> usize {
    2 * DIRECTED + k * LEARNT + j
}

/// Share of the stake on a component; they sum to 1.
pub fn weight(component: usize) -> f64 {
    let of = match component {
        c if c < 2 * DIRECTED => DIRECTED,
        c if c < 2 * DIRECTED + Z_SCALES * LEARNT => Z_SCALES * LEARNT,
        _ => U_SCALES * LEARNT,
    };
    FAMILY_WEIGHT / of as f64
}

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
        let sum: f64 = (0..COMPONENTS).map(weight).sum();
        assert!((sum - 1.0).abs() < 1e-12);
        let mut next = 0;
        for k in 0..SCALES {
            assert_eq!(Scale::of(k).first, next);
            next += Scale::of(k).cells;
        }
        assert_eq!((next, COMPONENTS), (CELLS, 76));
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
