//! Maps probabilities to places in a square, on the axis of the model.
//!
//! On a linear axis both sides run from 0 to the smallest round number above the values, so that a
//! model of rare events fills the square. On a logit axis, for models whose scores lie near 0 or 1,
//! both sides are log-odds between the outermost values. 0 and 1 lie on the edges, and look like
//! values just inside.

use crate::stats::axis::Axis;
use crate::stats::evaluation::ReliabilityCell;

/// Side of the square, and the margin around it, in SVG units.
pub(super) const SIDE: f64 = 360.0;
pub(super) const LEFT: f64 = 68.0;
pub(super) const TOP: f64 = 10.0;

/// Furthest log-odds to draw.
const LOGIT_MAX: f64 = 16.0;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// From 0 to this.
    Linear(f64),
    /// Between these log-odds.
    Logit(f64, f64),
}

impl Scale {
    /// The scale that holds the scores and rates of the cells that matter: those with at least a
    /// hundredth of the events, or a thousandth on a logit axis.
    pub(super) fn of(axis: Axis, cells: &[&ReliabilityCell]) -> Scale {
        let total: u64 = cells.iter().map(|cell| cell.n).sum();
        let matters = cells.iter().filter(|cell| cell.n * 100 >= total);
        match axis {
            Axis::Linear => {
                let top = |cell: &&&ReliabilityCell| {
                    let rate = cell.rate_high.unwrap_or(cell.event_rate);
                    cell.mean_score.max(rate).max(cell.null_high)
                };
                linear(matters.map(|c| top(&c)).fold(0.0, f64::max))
            }
            Axis::Logit { .. } => {
                let matters = cells.iter().filter(|cell| cell.n * 1000 >= total);
                let values = matters.flat_map(|cell| {
                    [
                        cell.mean_score,
                        cell.event_rate,
                        cell.null_low,
                        cell.null_high,
                    ]
                });
                let inner = values.filter(|v| *v > 0.0 && *v < 1.0).map(logit);
                let (low, high) = inner.fold((f64::MAX, f64::MIN), |(low, high), x| {
                    (low.min(x), high.max(x))
                });
                match low < high {
                    true => Scale::Logit((low - 0.6).max(-LOGIT_MAX), (high + 0.6).min(LOGIT_MAX)),
                    false => Scale::Logit(-5.0, 5.0),
                }
            }
        }
    }

    /// Share of the side at which a probability lies, in [0, 1] on a logit axis.
    fn share(self, p: f64) -> f64 {
        match self {
            Scale::Linear(range) => p / range,
            Scale::Logit(low, high) => ((logit(p) - low) / (high - low)).clamp(0.0, 1.0),
        }
    }

    /// Whether a score lies within the square.
    pub(super) fn holds(self, score: f64) -> bool {
        match self {
            Scale::Linear(range) => score <= range,
            Scale::Logit(low, high) => (low..=high).contains(&logit(score)),
        }
    }

    pub(super) fn x(self, score: f64) -> f64 {
        LEFT + SIDE * self.share(score)
    }

    pub(super) fn y(self, rate: f64) -> f64 {
        TOP + SIDE * (1.0 - self.share(rate))
    }

    /// The probability at this share of the side.
    pub(super) fn at(self, share: f64) -> f64 {
        match self {
            Scale::Linear(range) => share * range,
            Scale::Logit(low, high) => {
                let x = low + share * (high - low);
                1.0 / (1.0 + (-x).exp())
            }
        }
    }

    /// Probabilities with a line and a label.
    pub(super) fn ticks(self) -> Vec<f64> {
        let Scale::Logit(low, high) = self else {
            return (0..=5).map(|i| self.at(f64::from(i) / 5.0)).collect();
        };
        // Powers of ten go first; others are added if their labels have room.
        let mut kept: Vec<f64> = Vec::new();
        let tens = |factor: f64| (1..=6).map(move |exponent| factor * 10f64.powi(-exponent));
        let all = std::iter::once(0.5)
            .chain(tens(1.0))
            .chain(tens(2.0))
            .chain(tens(5.0));
        for p in all.flat_map(|p| [p, 1.0 - p]) {
            let shown = (low..=high).contains(&logit(p));
            let room = |other: &f64| (self.x(p) - self.x(*other)).abs() >= 46.0;
            if shown && kept.iter().all(room) {
                kept.push(p);
            }
        }
        kept
    }
}

fn linear(reach: f64) -> Scale {
    let steps = [1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
    let fitting = steps.into_iter().rev().find(|&step| step > reach);
    Scale::Linear(fitting.unwrap_or(1.0))
}

fn logit(p: f64) -> f64 {
    (p / (1.0 - p))
        .ln()
        .clamp(-2.0 * LOGIT_MAX, 2.0 * LOGIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_events_fill_the_square() {
        assert_eq!(linear(0.06), Scale::Linear(0.1));
        assert_eq!(linear(0.98), Scale::Linear(1.0));
    }

    #[test]
    fn a_logit_scale_spreads_small_probabilities_and_keeps_all_inside() {
        let scale = Scale::Logit(-9.0, -1.0);
        assert!(scale.x(0.001) - scale.x(0.0001) > 80.0);
        assert_eq!((scale.x(0.0), scale.x(1.0)), (LEFT, LEFT + SIDE));
        assert!((scale.at(0.5) - 1.0 / (1.0 + 5f64.exp())).abs() < 1e-12);
        let ticks = scale.ticks();
        assert!(ticks.contains(&0.001) && ticks.len() >= 4, "{ticks:?}");
        assert!(
            ticks
                .iter()
                .all(|p| (LEFT..=LEFT + SIDE).contains(&scale.x(*p)))
        );
    }
}
