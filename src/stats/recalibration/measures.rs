//! How true scores are, in the few measures by which maps are compared.
//!
//! Recalibrated scores are other numbers than the raw scores, so they are cut into cells again, on
//! the axis of the window ([`Cut::Grid`]) or on the linear one ([`Cut::Scores`]). The same
//! estimators as for any sample then measure them: the debiased ℓ2-ECE with its interval, the
//! ℓ1-ECE, T-Cal. The raw scores are measured in the same way at the same points, so that a
//! difference is due to the map.

use super::point::{Point, logs};
use crate::axis::Grid;
use crate::classical;
use crate::columns::Columns;
use crate::evaluation::Options;
use crate::interval::{self, NullReach, interval};
use crate::levels::{Level, LevelCell, Levels};
use crate::tcal::tcal;
use std::borrow::Cow;

/// Level of the ℓ1-ECE on a grid: 16 cells, the dyadic number nearest to 15.
const ECE_LEVEL: u32 = 4;

/// Cells of the ℓ1-ECE of raw scores, as the literature has it.
const ECE_CELLS: u64 = 15;

/// Finest level of raw scores, as in an evaluation.
const SCORES_LEVEL: u32 = 12;

/// Into which cells scores are cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cut {
    /// The cells of a window, and unions of them.
    Grid(Grid),
    /// Equal cells of [0, 1], in any number.
    Scores,
}

impl Cut {
    fn finest(&self) -> u32 {
        match self {
            Cut::Grid(grid) => grid.level(),
            Cut::Scores => SCORES_LEVEL,
        }
    }

    fn index(&self, z: f64, m: u64) -> u64 {
        match self {
            Cut::Grid(grid) => u64::from(grid.cell_of(z)) * m / u64::from(grid.cells()),
            Cut::Scores => ((z * m as f64) as u64).min(m - 1),
        }
    }

    fn level(&self, points: &[Point], m: u64) -> Level {
        let mut occupied = Columns::default();
        for p in points {
            occupied.add(cell(p, self.index(p.z, m)));
        }
        Level {
            cells: m,
            occupied,
            weights: Vec::new(),
        }
    }
}

/// The sums of a point whose events all have its score.
fn cell(p: &Point, index: u64) -> LevelCell {
    let (n, y, z) = (p.n, p.y, p.z);
    let v = z * (1.0 - z);
    let mu3 = v * (1.0 - 2.0 * z);
    LevelCell {
        index,
        n,
        count: n,
        y,
        z: n * z,
        u: y - n * z,
        u2: y * (1.0 - z) * (1.0 - z) + (n - y) * z * z,
        v: n * v,
        v2: n * v * v,
        v3: n * v * v * v,
        mu3: n * mu3,
        mu3_2: n * mu3 * mu3,
    }
}

/// How true the scores of a sample are.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Measures {
    /// Mean log loss in nats, scores clipped at 2⁻³².
    pub log_loss: f64,
    /// Mean squared difference of score and outcome.
    pub brier: f64,
    /// ℓ1-ECE, plug-in: over 16 cells of the grid, over 15 of raw scores.
    pub ece_l1: f64,
    /// Debiased estimate of the squared ℓ2-ECE; may be negative.
    pub ece_l2_squared: f64,
    /// Lower end of the interval for the ℓ2-ECE.
    pub lower: f64,
    /// Upper end of this interval.
    pub upper: f64,
    /// p-value of T-Cal.
    pub p_value: f64,
}

impl Measures {
    /// The measures of points, at least one event in all.
    pub fn of(points: &[Point], cut: &Cut, o: &Options) -> Measures {
        let mut points = points.to_vec();
        // Rounding may swap neighbours that a map puts on one score.
        points.sort_by(|a, b| a.z.total_cmp(&b.z));
        let n: f64 = points.iter().map(|p| p.n).sum();
        let levels = Levels::above(cut.level(&points, 1 << cut.finest()), cut.finest());
        let wanted = o
            .interval_cells
            .unwrap_or(interval::default_cells(n as u64));
        let (ece, cells) = match cut {
            Cut::Grid(grid) => {
                let level = wanted.max(2).next_power_of_two().ilog2().min(grid.level());
                (1 << ECE_LEVEL.min(grid.level()), 1 << level)
            }
            Cut::Scores => (ECE_CELLS, wanted.max(1)),
        };
        let level = cut.level(&points, cells);
        let level = match o.null_reach {
            NullReach::Conditional => level.joined(),
            NullReach::Paper { .. } => Cow::Borrowed(&level),
        };
        let found = interval(&level, n, o.confidence, o.null_reach);
        let (mut loss, mut square) = (0.0, 0.0);
        for p in &points {
            let costs = Costs::of(p.z);
            loss += p.y * costs.loss[1] + (p.n - p.y) * costs.loss[0];
            square += p.y * costs.square[1] + (p.n - p.y) * costs.square[0];
        }
        Measures {
            log_loss: loss / n,
            brier: square / n,
            ece_l1: classical::ece_l1(&cut.level(&points, ece), n),
            ece_l2_squared: found.estimate_squared,
            lower: found.lower,
            upper: found.upper,
            p_value: tcal(&levels, &o.tcal).p_value,
        }
    }

    /// The debiased ℓ2-ECE, 0 where its square is estimated below 0.
    pub fn ece_l2(&self) -> f64 {
        self.ece_l2_squared.max(0.0).sqrt()
    }
}

/// The log loss and the squared error of a score, for the outcomes 0 and 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pub loss: [f64; 2],
    pub square: [f64; 2],
}

impl Costs {
    pub fn of(z: f64) -> Costs {
        let (ln_z, ln_rest) = logs(z);
        Costs {
            loss: [-ln_rest, -ln_z],
            square: [z * z, (1.0 - z) * (1.0 - z)],
        }
    }
}

/// A mean of paired differences, positive where the second is better.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Gain {
    /// The mean difference an event.
    pub mean: f64,
    /// Standard error of the mean; 0 below two events.
    pub standard_error: f64,
}

/// The trial of one map.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Trial {
    /// The measures of the recalibrated scores.
    pub recalibrated: Measures,
    /// By how much log loss falls.
    pub log_loss: Gain,
    /// By how much the Brier score falls.
    pub brier: Gain,
}
