//! The axis on which scores are cut into cells.
//!
//! `Linear` cuts [0, 1] into 2ᵇ equal cells. `Logit` cuts the log-odds between two clips into equal
//! cells, for models whose scores all sit near 0: a fraud score of 10⁻⁴ and one of 10⁻³ share a
//! linear cell of width 2⁻¹² for most of their range, and an error between them would be invisible.
//! Any monotone axis keeps the level of every test; it moves only the power.
//!
//! Always: cell of z is ⌊t(z)·2ᵇ⌋ with t the axis, the last cell closed, so z = 1 has a cell; cells
//! of level b are unions of two neighbours of level b + 1; scores beyond the clips of a logit axis
//! fall in the outermost cells and are not altered (their sums are those of the scores themselves).
//! The cell of a score is the same on every machine: the logarithm is our own.

use super::ln::ln;

/// Finest level allowed: 2¹⁶ cells.
pub const LEVEL_MAX: u32 = 16;

/// How [0, 1] is laid out into equal cells.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Axis {
    /// Equal cells of the score.
    Linear,
    /// Equal cells of log(z/(1−z)) between the log-odds of two clips, 0 < low < high < 1.
    Logit {
        /// Score at which the first cell's inner range begins.
        low: f64,
        /// Score at which the last cell's inner range ends.
        high: f64,
    },
}

/// An axis with its finest level and the constants of the cell function. It also states which kind
/// of sums its cells hold, so that sums of two kinds are never merged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    axis: Axis,
    level: u32,
    cells: u32,
    offset: f64,
    scale: f64,
    weighted: bool,
    clustered: bool,
}

impl Grid {
    /// A grid of 2^`level` cells. It is an error to call this with a level above [`LEVEL_MAX`] or
    /// clips that are not 0 < low < high < 1; the configuration checks both.
    pub fn new(axis: Axis, level: u32) -> Grid {
        assert!((1..=LEVEL_MAX).contains(&level), "level 1 to {LEVEL_MAX}");
        let cells = 1u32 << level;
        let (offset, scale) = match axis {
            Axis::Linear => (0.0, f64::from(cells)),
            Axis::Logit { low, high } => {
                assert!(
                    0.0 < low && low < high && high < 1.0,
                    "clips 0 < low < high < 1"
                );
                (logit(low), f64::from(cells) / (logit(high) - logit(low)))
            }
        };
        Grid {
            axis,
            level,
            cells,
            offset,
            scale,
            weighted: false,
            clustered: false,
        }
    }

    /// This grid for weighted events, which have no clusters: their sums are [`super::weighted`]
    /// ones.
    pub fn weighted(self) -> Grid {
        Grid {
            weighted: true,
            clustered: false,
            ..self
        }
    }

    /// Whether its events are weighted.
    #[inline]
    pub fn is_weighted(&self) -> bool {
        self.weighted
    }

    /// This grid for clustered events, which have no weights: their sums are also kept by cluster
    /// ([`super::clusters`]).
    pub fn clustered(self) -> Grid {
        Grid {
            clustered: true,
            weighted: false,
            ..self
        }
    }

    /// Whether its events are clustered.
    #[inline]
    pub fn is_clustered(&self) -> bool {
        self.clustered
    }

    /// Whether its events have neither weights nor clusters.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.weighted && !self.clustered
    }

    /// The axis.
    pub fn axis(&self) -> Axis {
        self.axis
    }

    /// The finest level b; there are 2ᵇ cells.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Number of finest cells.
    pub fn cells(&self) -> u32 {
        self.cells
    }

    /// Finest cell of a score in [0, 1].
    #[inline]
    pub fn cell_of(&self, z: f64) -> u32 {
        let t = match self.axis {
            Axis::Linear => z * self.scale,
            // z = 0 and 1 lie far beyond any clip; the cast saturates them into the outermost
            // cells.
            Axis::Logit { .. } => (logit(z) - self.offset) * self.scale,
        };
        (t as u32).min(self.cells - 1)
    }

    /// Writes the finest cell of each score to `cells`, equal to [`Grid::cell_of`]. A linear axis
    /// uses vector code: it rounds the scaled score to the nearest integer, and subtracts 1 where
    /// that was up.
    #[inline]
    pub(crate) fn cells_of(&self, scores: impl Iterator<Item = f64>, cells: &mut [u32]) {
        // The low bits of a double of this size are an integer.
        const INTEGER: f64 = (1u64 << 52) as f64;
        if let Axis::Logit { .. } = self.axis {
            for (cell, z) in cells.iter_mut().zip(scores) {
                *cell = self.cell_of(z);
            }
            return;
        }
        let most = self.scale - 0.5;
        for (cell, z) in cells.iter_mut().zip(scores) {
            let t = z * self.scale;
            let t = if t < most { t } else { most };
            let sum = t + INTEGER;
            let up = sum - INTEGER > t;
            *cell = (sum.to_bits() as u32).wrapping_sub(u32::from(up));
        }
    }

    /// The lower and upper edge of cell `index` of `level`, which is at most the grid's; scores in
    /// [0, 1].
    pub fn edges(&self, level: u32, index: u32) -> (f64, f64) {
        let m = f64::from(1u32 << level);
        match self.axis {
            Axis::Linear => (f64::from(index) / m, f64::from(index + 1) / m),
            Axis::Logit { .. } => {
                let at = |i: u32| {
                    let x = f64::from(i) / m * f64::from(self.cells) / self.scale + self.offset;
                    1.0 / (1.0 + (-x).exp())
                };
                let low = if index == 0 { 0.0 } else { at(index) };
                let high = if f64::from(index + 1) >= m {
                    1.0
                } else {
                    at(index + 1)
                };
                (low, high)
            }
        }
    }
}

/// Log-odds of z in [0, 1]; below −708 at 0 and above 709 at 1.
#[inline]
pub fn logit(z: f64) -> f64 {
    ln(z / (1.0 - z))
}

#[cfg(test)]
mod tests {
    use super::super::rng::Rng;
    use super::*;

    #[test]
    fn the_last_cell_is_closed_and_the_others_are_half_open() {
        let g = Grid::new(Axis::Linear, 3);
        assert_eq!(g.cell_of(0.0), 0);
        assert_eq!(g.cell_of(0.125), 1);
        assert_eq!(g.cell_of(0.124_999_999), 0);
        assert_eq!(g.cell_of(1.0), 7);
    }

    #[test]
    fn cells_of_many_are_those_of_each() {
        let mut rng = Rng::new(5);
        for level in 1..=LEVEL_MAX {
            let grid = Grid::new(Axis::Linear, level);
            let edges = (0..=grid.cells()).map(|i| f64::from(i) / f64::from(grid.cells()));
            let near = edges.flat_map(|z| [z, z.next_up(), z.next_down()]);
            let any = (0..10_000).map(|_| rng.uniform());
            let small = [0.0, f64::MIN_POSITIVE / 3.0, 1e-300];
            let all = near.chain(any).chain(small);
            let scores: Vec<f64> = all.filter(|z| (0.0..=1.0).contains(z)).collect();
            let mut cells = vec![0; scores.len()];
            grid.cells_of(scores.iter().copied(), &mut cells);
            let singly: Vec<u32> = scores.iter().map(|z| grid.cell_of(*z)).collect();
            assert_eq!(cells, singly);
        }
    }

    #[test]
    fn every_score_lies_between_the_edges_of_its_cell_on_both_axes() {
        for axis in [
            Axis::Linear,
            Axis::Logit {
                low: 1e-5,
                high: 0.5,
            },
        ] {
            let g = Grid::new(axis, 8);
            for i in 0..=1000 {
                let z = f64::from(i) / 1000.0;
                let (low, high) = g.edges(8, g.cell_of(z));
                assert!(
                    low <= z + 1e-12 && z <= high + 1e-12,
                    "{axis:?} {z} {low} {high}"
                );
            }
        }
    }
}
