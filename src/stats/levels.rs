//! All dyadic levels of one sample: 2, 4, 8, … cells.
//!
//! Level b is the pairwise sum of level b + 1, so everything comes from the finest level: that of a
//! window's sums, or offline of raw scores to any depth.

pub use super::level::{Level, LevelCell, WeightMoments};
pub(super) use super::level::{ascending, ascending_weighted};

use super::sums::Sums;

/// Levels 1 to B of one sample, coarse to fine.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    n: f64,
    levels: Vec<Level>,
}

impl Levels {
    /// All levels of a window, from 2 cells to those of its grid.
    pub fn from_sums(sums: &Sums) -> Levels {
        Self::above(Level::from_sums(sums), sums.grid().level())
    }

    /// Levels 1 to `finest` (at most 52) of raw scores in [0, 1], in double precision.
    pub fn from_scores(sample: &[(f64, bool)], finest: u32) -> Levels {
        Self::above(Level::from_scores(sample, 1 << finest), finest)
    }

    /// All levels from 2 cells to `finest`, which has 2^`depth` cells.
    pub(crate) fn above(finest: Level, depth: u32) -> Levels {
        let mut levels = vec![finest];
        for _ in 1..depth {
            let parent = levels[levels.len() - 1].parent();
            levels.push(parent);
        }
        levels.reverse();
        let (mut n, mut squares) = (0.0, 0.0);
        for (c, weights) in levels[0].squares() {
            n += c.n;
            squares += weights.w2;
        }
        // Kish's effective number; n·(n/n) is n, to the bit.
        let n = if n > 0.0 { n * (n / squares) } else { 0.0 };
        Levels { n, levels }
    }

    /// n, the number of events; where they are weighted the effective one, (Σw)²/Σw².
    pub fn n(&self) -> f64 {
        self.n
    }

    /// Levels with 2, 4, …, 2^B cells, in this order.
    pub fn as_slice(&self) -> &[Level] {
        &self.levels
    }

    /// The finest level.
    pub fn finest(&self) -> &Level {
        &self.levels[self.levels.len() - 1]
    }
}
