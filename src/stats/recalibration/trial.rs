//! Maps on trial: their gain on events that they were not fitted to.
//!
//! The gain of a map is the mean decrease of log loss per event, with the standard error of that
//! mean. Differences are paired, so the common part (how hard the events are) cancels. From cells
//! the paired differences take two values a cell, one for each outcome, and their sums follow from
//! N and Σy. If the outcomes of the stream vary φ times as much as independent ones, the standard
//! error is √φ times as large.

use super::advice::Advice;
use super::map::{Fits, Method};
use super::measures::{Costs, Cut, Gain, Measures, Trial};
use super::point::Point;
use crate::evaluation::{Options, dispersion};

/// All maps on trial over the same events.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Judgement {
    /// Number of events.
    pub n: u64,
    /// Number of positive outcomes.
    pub positives: u64,
    /// The measures of the scores as they are.
    pub original: Measures,
    /// The trials, in the order of [`Method::ALL`]; `None` where no map was fitted.
    pub trials: [Option<Trial>; 3],
    /// Which map to apply, or why none.
    pub advice: Advice,
}

impl Judgement {
    /// Judges the fits on points that they were not fitted to; `None` without events.
    pub fn of(fits: &Fits, points: &[Point], cut: &Cut, o: &Options) -> Option<Judgement> {
        let n: f64 = points.iter().map(|p| p.n).sum();
        let y: f64 = points.iter().map(|p| p.y).sum();
        if n <= 0.0 {
            return None;
        }
        let before: Vec<Costs> = points.iter().map(|p| Costs::of(p.z)).collect();
        let dispersion = dispersion(o).map_or(1.0, |(factor, _)| factor);
        let gain = |before: &[Costs], after: &[Costs], cost: fn(&Costs) -> [f64; 2]| {
            gain(points, before, after, cost, dispersion)
        };
        let after = Method::ALL.map(|method| {
            let map = fits.map(method)?;
            let recalibrated = points.iter().map(|p| Point {
                z: map.rate(p.z),
                ..*p
            });
            Some(recalibrated.collect::<Vec<Point>>())
        });
        let costs = after.each_ref().map(|recalibrated| {
            let recalibrated = recalibrated.as_ref()?;
            Some(
                recalibrated
                    .iter()
                    .map(|p| Costs::of(p.z))
                    .collect::<Vec<_>>(),
            )
        });
        let trials = Method::ALL.map(|method| {
            let recalibrated = after[method as usize].as_ref()?;
            let costs = costs[method as usize].as_ref()?;
            Some(Trial {
                recalibrated: Measures::of(recalibrated, cut, o),
                log_loss: gain(&before, costs, |c| c.loss),
                brier: gain(&before, costs, |c| c.square),
            })
        });
        let against = |stiff: Method, free: Method| {
            let (stiff, free) = (&costs[stiff as usize], &costs[free as usize]);
            Some(gain(stiff.as_ref()?, free.as_ref()?, |c| c.loss))
        };
        Some(Judgement {
            n: n as u64,
            positives: y as u64,
            original: Measures::of(points, cut, o),
            trials,
            advice: Advice::of(fits, (n as u64, y as u64), &trials, &against),
        })
    }

    /// The trial of a family.
    pub fn trial(&self, method: Method) -> Option<&Trial> {
        self.trials[method as usize].as_ref()
    }
}

/// Mean decrease of the cost of an event from `before` to `after`, with its standard error;
/// `dispersion` is φ.
fn gain(
    points: &[Point],
    before: &[Costs],
    after: &[Costs],
    cost: impl Fn(&Costs) -> [f64; 2],
    dispersion: f64,
) -> Gain {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for ((p, before), after) in points.iter().zip(before).zip(after) {
        let (before, after) = (cost(before), cost(after));
        for (count, y) in [(p.n - p.y, 0), (p.y, 1)] {
            let less = before[y] - after[y];
            n += count;
            sum += count * less;
            squares += count * less * less;
        }
    }
    let mean = sum / n;
    let variance = ((squares - sum * mean) / (n - 1.0).max(1.0)).max(0.0);
    Gain {
        mean,
        standard_error: (dispersion * variance / n).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(points: &[(f64, f64, f64)]) -> Vec<Point> {
        points.iter().map(|&(z, n, y)| Point { z, n, y }).collect()
    }

    #[test]
    fn the_gain_of_two_events_is_had_by_hand() {
        let points = of(&[(0.5, 2.0, 1.0)]);
        let before = [Costs::of(0.5)];
        let after = [Costs::of(0.25)];
        let found = gain(&points, &before, &after, |c| c.square, 1.0);
        // 0.25 − 0.0625 and 0.25 − 0.5625: mean −0.0625, each 0.25 off it.
        assert!((found.mean + 0.0625).abs() < 1e-15);
        assert!((found.standard_error - 0.25).abs() < 1e-15);
        let dispersed = gain(&points, &before, &after, |c| c.square, 4.0);
        assert!((dispersed.standard_error - 0.5).abs() < 1e-15);
    }

    #[test]
    fn no_events_have_no_judgement() {
        let fits = Fits::of(&of(&[(0.25, 8.0, 2.0), (0.75, 8.0, 6.0)]));
        let judged = Judgement::of(&fits, &[], &Cut::Scores, &Options::default());
        assert_eq!(judged, None);
    }
}
