//! What the evidence of a detector says: how strong, of what kind, about which scores, since when.
//!
//! Every component holds a share weight_c·M_c/M of the evidence. Added up by family and sign they
//! tell the kind: an intercept that is off, a slope, or cells that go their own ways. The signs of
//! the scale with the largest share tell which scores are off and to which side: a cell's *lean* is
//! 2w − 1, by worth over amplitudes, +1 where outcomes are surely more frequent than the scores
//! say.
//!
//! Shares sum to 1 from the first pane on; before an alarm they say little, since without evidence
//! the mixture's weights show through. The direction is the largest share's, so it is a
//! description, not a test.

use super::detector::{Detector, Place};
use super::mixture::{DIRECTED, LEARNT, SCALES, Scale, component};
use crate::direction::Direction;

/// Cells reported at most.
const CELLS_MAX: usize = 3;

/// A cell is reported from this lean on: odds of three to one for its sign.
const LEAN_MIN: f64 = 0.5;

/// Shares of the evidence, 1 in all.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Shares {
    /// Intercept up: outcomes more frequent than all scores say.
    pub intercept_up: f64,
    /// Intercept down.
    pub intercept_down: f64,
    /// Slope up: outcomes more decided than the scores.
    pub slope_up: f64,
    /// Slope down: outcomes less decided than the scores.
    pub slope_down: f64,
    /// Each scale of cells.
    pub scales: [f64; SCALES],
}

impl Shares {
    /// Of all scales of cells together.
    pub fn cells(&self) -> f64 {
        self.scales.iter().sum()
    }

    /// The kind with the largest share.
    pub fn direction(&self) -> Direction {
        let kinds = [
            (self.intercept_up, Direction::TooLow),
            (self.intercept_down, Direction::TooHigh),
            (self.slope_up, Direction::UnderConfident),
            (self.slope_down, Direction::OverConfident),
            (self.cells(), Direction::Local),
        ];
        let largest = kinds.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        largest.map_or(Direction::None, |(_, direction)| direction)
    }
}

/// A range of scores whose outcomes go one way.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Leaning {
    /// Least score.
    pub low: f64,
    /// Largest score.
    pub high: f64,
    /// −1 to 1; above 0 outcomes are more frequent than the scores say.
    pub lean: f64,
}

/// See the module.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Evidence {
    /// log M; an alarm when it reaches log A.
    pub log_worth: f64,
    /// By component.
    pub shares: Shares,
    /// The kind with the largest share.
    pub direction: Direction,
    /// The scores that lean most, at the scale with the largest share.
    pub cells: Vec<Leaning>,
    /// Posterior mean of the moment of the change.
    pub onset: Place,
}

impl Evidence {
    /// What `detector` holds; `None` before its first pane.
    pub fn of(detector: &Detector) -> Option<Evidence> {
        let log_worth = detector.log_worth();
        if log_worth == f64::NEG_INFINITY {
            return None;
        }
        let of: Vec<f64> = detector.worths().map(|w| (w - log_worth).exp()).collect();
        let shares = shares(&of);
        Some(Evidence {
            log_worth,
            direction: shares.direction(),
            cells: leanings(detector, &of, &shares),
            onset: onset(detector, &of),
            shares,
        })
    }
}

fn shares(of: &[f64]) -> Shares {
    let every_other = |first: usize| of[first..first + DIRECTED].iter().step_by(2).sum();
    Shares {
        intercept_up: every_other(0),
        intercept_down: of[1..DIRECTED].iter().step_by(2).sum(),
        slope_up: every_other(DIRECTED),
        slope_down: of[DIRECTED + 1..2 * DIRECTED].iter().step_by(2).sum(),
        scales: std::array::from_fn(|k| of[component(k, 0)..component(k, LEARNT)].iter().sum()),
    }
}

/// Mean onset of the components by worth.
fn onset(detector: &Detector, of: &[f64]) -> Place {
    let mut mean = Place::default();
    for (c, share) in detector.parts().components.iter().zip(of) {
        mean.event += share * c.onset.event;
        mean.ms += share * c.onset.ms;
    }
    // The shares sum to 1 but for rounding, which a time since 1970 shows by the millisecond.
    let whole: f64 = of.iter().sum();
    Place {
        event: mean.event / whole,
        ms: mean.ms / whole,
    }
}

fn leanings(detector: &Detector, of: &[f64], shares: &Shares) -> Vec<Leaning> {
    let largest = (0..SCALES).max_by(|&a, &b| shares.scales[a].total_cmp(&shares.scales[b]));
    let k = largest.unwrap_or(0);
    let (scale, whole) = (Scale::of(k), shares.scales[k]);
    if whole <= 0.0 {
        return Vec::new();
    }
    let signs = &detector.parts().signs[scale.first..scale.first + scale.cells];
    let lean = |(cell, w): (usize, &[f64; LEARNT])| {
        let sum: f64 = (0..LEARNT)
            .map(|j| of[component(k, j)] * (2.0 * w[j] - 1.0))
            .sum();
        let (low, high) = scale.edges(cell);
        Leaning {
            low,
            high,
            lean: sum / whole,
        }
    };
    let mut all: Vec<Leaning> = signs.iter().enumerate().map(lean).collect();
    all.retain(|l| l.lean.abs() >= LEAN_MIN);
    all.sort_by(|a, b| b.lean.abs().total_cmp(&a.lean.abs()));
    all.truncate(CELLS_MAX);
    all
}
