//! How well scores separate positives from negatives: AUC and accuracy. Neither says whether the
//! scores are true.
//!
//! The area under the ROC curve is the probability that a positive has a greater score than a
//! negative, where equal scores count one half (Hanley and McNeil, Radiology 143, 1982):
//!
//! ```text
//! AUC = 1/(P·N) Σ_{i positive} Σ_{j negative} [z_i > z_j] + ½[z_i = z_j]
//! ```
//!
//! with P positives and N negatives; of weighted events a pair counts w_i·w_j, and P and N are Σw.
//! Its standard error is that of DeLong, DeLong and Clarke-Pearson (Biometrics 44, 1988, equation
//! (2) with one curve): the variance over the positives of the share of negatives below each,
//! divided by P, plus the variance over the negatives of the share of positives above each, divided
//! by N. It takes events as independent. The interval is symmetric in log-odds, where the standard
//! error is error/(AUC(1 − AUC)), so it stays within [0, 1]; its quantile is Student's, with one
//! degree fewer than the rarer outcome has events. If all pairs are ordered, the error is 0 and
//! says nothing. Pairs that share no event are independent, there are m = min(P, N) of them, and
//! that all m are ordered has the probability AUCᵐ: AUC ≥ (α/2)^(1/m).
//!
//! From cells, the order of events within a cell is unknown. Pairs of a cell count one half, and
//! `unresolved` says by how much the AUC of the scores themselves may differ: by half the share of
//! such pairs.
//!
//! The accuracy is the share of events whose outcome the score predicts at the threshold ½ (a score
//! of ½ predicts a positive). It is shown beside the share of the commoner outcome, which a
//! constant prediction reaches.
//!
//! Cost: one sort of the scores; from cells, one pass.

use super::corp::{CurveCell, points};
use super::fixed::CLIP;
use super::kernel::Vectors;
use super::recalibration::Point;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Probability of either tail of an interval.
const TAIL: f64 = 0.025;

/// How well scores separate the outcomes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Discrimination {
    /// Area under the ROC curve; `None` where all outcomes are the same.
    pub auc: Option<Auc>,
    /// Share of events whose outcome the score predicts at the threshold ½; of cells, at their mean
    /// scores.
    pub accuracy: f64,
    /// Share of the commoner outcome.
    pub commoner: f64,
}

/// An area under the ROC curve, in [0, 1]; ½ is chance.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Auc {
    /// The estimate.
    pub value: f64,
    /// Its standard error; `None` of weighted events, and with fewer than two events of one
    /// outcome.
    pub standard_error: Option<f64>,
    /// Its interval at 95 %, in [0, 1]; `None` as above, and if all pairs are tied.
    pub interval: Option<(f64, f64)>,
    /// The most by which the AUC of the raw scores differs, because cells hide the order within; 0
    /// from raw scores.
    pub unresolved: f64,
}

impl Discrimination {
    /// Measures raw scores with their outcomes; `None` without events.
    pub fn of_scores(sample: &[(f64, bool)]) -> Option<Discrimination> {
        of_points(&Point::of_scores(sample), true, false)
    }

    /// Measures raw scores, outcomes and weights above 0; `None` without events.
    pub fn of_weighted(sample: &[(f64, bool, f64)]) -> Option<Discrimination> {
        of_points(&Point::of_weighted(sample.iter().copied()), false, false)
    }

    /// Measures cells in ascending order; `None` without events.
    pub fn of_cells(cells: &[CurveCell]) -> Option<Discrimination> {
        of_points(&points(cells), cells.iter().all(|c| c.counted), true)
    }
}

/// Points ascend; `counted` if they hold numbers of events, `cells` if the scores within one may
/// differ.
fn of_points(points: &[Point], counted: bool, cells: bool) -> Option<Discrimination> {
    let n: f64 = points.iter().map(|p| p.n).sum();
    let y: f64 = points.iter().map(|p| p.y).sum();
    if n <= 0.0 {
        return None;
    }
    let right = |p: &Point| if p.z >= 0.5 { p.y } else { p.n - p.y };
    Some(Discrimination {
        auc: auc(points, (y, n - y), counted, cells),
        accuracy: points.iter().map(right).sum::<f64>() / n,
        commoner: y.max(n - y) / n,
    })
}

fn auc(
    points: &[Point],
    (positives, negatives): (f64, f64),
    counted: bool,
    cells: bool,
) -> Option<Auc> {
    if positives <= 0.0 || negatives <= 0.0 {
        return None;
    }
    // A positive counts the share of negatives below it, a negative the share of positives above
    // it.
    let (mut below, mut above, mut tied) = (0.0, positives, 0.0);
    let (mut sum, mut squares, mut other_squares) = (0.0, 0.0, 0.0);
    for p in points {
        let negative = p.n - p.y;
        above -= p.y;
        let place = (below + 0.5 * negative) / negatives;
        let other = (above.max(0.0) + 0.5 * p.y) / positives;
        sum += p.y * place;
        squares += p.y * place * place;
        other_squares += negative * other * other;
        tied += p.y * negative;
        below += negative;
    }
    let value = sum / positives;
    let variance = |squares: f64, n: f64| ((squares - n * value * value) / (n - 1.0)).max(0.0) / n;
    let enough = counted && positives >= 2.0 && negatives >= 2.0;
    let standard_error =
        enough.then(|| (variance(squares, positives) + variance(other_squares, negatives)).sqrt());
    Some(Auc {
        value,
        standard_error,
        interval: standard_error.and_then(|e| interval(value, e, positives.min(negatives))),
        unresolved: match cells {
            true => 0.5 * tied / (positives * negatives),
            false => 0.0,
        },
    })
}

/// The interval at 95 %, symmetric in log-odds; the rarer outcome has `rarer` events.
fn interval(auc: f64, error: f64, rarer: f64) -> Option<(f64, f64)> {
    let ordered = TAIL.powf(1.0 / rarer);
    if auc >= 1.0 || auc <= 0.0 {
        return Some(if auc >= 1.0 {
            (ordered, 1.0)
        } else {
            (0.0, 1.0 - ordered)
        });
    }
    let student = StudentsT::new(0.0, 1.0, rarer - 1.0).ok()?;
    let reach = student.inverse_cdf(1.0 - TAIL) * error / (auc * (1.0 - auc));
    let at = |log_odds: f64| 1.0 / (1.0 + (-log_odds).exp());
    let middle = (auc / (1.0 - auc)).ln();
    (error > 0.0).then(|| (at(middle - reach), at(middle + reach)))
}

/// The customary scores of vectors of class probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct VectorScores {
    /// Share of events whose greatest probability is that of the class that happened; of equal ones
    /// the first counts.
    pub accuracy: f64,
    /// Mean −ln p of the class that happened, in nats, p clipped at 2⁻³².
    pub log_loss: f64,
    /// Brier's score of all classes, in [0, 2]: the mean of Σ_k (p_k − \[k happened\])² (Brier,
    /// Monthly Weather Review 78, 1950, equation (2)).
    pub brier: f64,
}

impl VectorScores {
    /// Measures a sample; `None` without events.
    pub fn of(sample: &Vectors) -> Option<VectorScores> {
        if sample.is_empty() {
            return None;
        }
        let (mut right, mut loss, mut square) = (0.0, 0.0, 0.0);
        for i in 0..sample.len() {
            let (row, class) = (sample.row(i), sample.outcome(i) as usize);
            let first = |best: usize, k: usize| if row[k] > row[best] { k } else { best };
            right += f64::from(u8::from((0..row.len()).fold(0, first) == class));
            loss -= row[class].max(CLIP).ln();
            let off = |(k, p): (usize, &f64)| (p - f64::from(u8::from(k == class))).powi(2);
            square += row.iter().enumerate().map(off).sum::<f64>();
        }
        let n = sample.len() as f64;
        Some(VectorScores {
            accuracy: right / n,
            log_loss: loss / n,
            brier: square / n,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{Axis, Grid};
    use crate::corp;
    use crate::levels::Levels;
    use crate::rng::Rng;
    use crate::samples;

    /// Scores on a lattice of `steps`, so that many are equal, and more positives at greater ones.
    fn sample(n: usize, steps: f64, seed: u64) -> Vec<(f64, bool)> {
        let score = |u: f64| (u * steps).floor() / steps;
        samples::events(&mut Rng::new(seed), n, score, |z| 0.2 + 0.5 * z)
    }

    /// By all pairs, as the formula says.
    fn pairs(sample: &[(f64, bool, f64)]) -> f64 {
        let (mut won, mut all) = (0.0, 0.0);
        for &(z, _, w) in sample.iter().filter(|e| e.1) {
            for &(x, _, v) in sample.iter().filter(|e| !e.1) {
                let share = if z > x { 1.0 } else { 0.0 };
                won += w * v * if z == x { 0.5 } else { share };
                all += w * v;
            }
        }
        won / all
    }

    #[test]
    fn the_area_is_the_share_of_pairs_with_ties_as_halves() {
        for (steps, seed) in [(5.0, 1), (20.0, 2), (1e9, 3)] {
            let plain = sample(300, steps, seed);
            let mut rng = Rng::new(seed + 50);
            let weighted: Vec<_> = plain
                .iter()
                .map(|&(z, y)| (z, y, 0.2 + rng.uniform()))
                .collect();
            let ones: Vec<_> = plain.iter().map(|&(z, y)| (z, y, 1.0)).collect();
            let found = Discrimination::of_scores(&plain).unwrap();
            assert!((found.auc.unwrap().value - pairs(&ones)).abs() < 1e-12);
            let right = plain.iter().filter(|(z, y)| (*z >= 0.5) == *y).count();
            assert!((found.accuracy - right as f64 / 300.0).abs() < 1e-12);
            let found = Discrimination::of_weighted(&weighted).unwrap();
            assert!((found.auc.unwrap().value - pairs(&weighted)).abs() < 1e-12);
            assert_eq!(found.auc.unwrap().standard_error, None);
        }
    }

    /// scikit-learn's example of `roc_auc_score`, and by hand: placements of the positives ½ and 1,
    /// of the negatives 1 and ½.
    #[test]
    fn four_events_by_hand() {
        let sample = [(0.1, false), (0.4, false), (0.35, true), (0.8, true)];
        let found = Discrimination::of_scores(&sample).unwrap();
        let auc = found.auc.unwrap();
        assert_eq!((auc.value, auc.unresolved), (0.75, 0.0));
        let error = (2.0 * (0.125 / 2.0_f64)).sqrt();
        assert!((auc.standard_error.unwrap() - error).abs() < 1e-15);
        assert_eq!((found.accuracy, found.commoner), (0.75, 0.5));
        let same = Discrimination::of_scores(&[(0.3, true)]).unwrap();
        assert_eq!((same.auc, same.commoner), (None, 1.0));
        assert_eq!(Discrimination::of_scores(&[]), None);
        let separated = [(0.1, false), (0.2, false), (0.7, true), (0.8, true)];
        let found = Discrimination::of_scores(&separated).unwrap();
        let auc = found.auc.unwrap();
        assert_eq!(auc.value, 1.0);
        assert_eq!(auc.interval, Some((0.025_f64.sqrt(), 1.0)));
    }

    /// Draws samples whose scores have the law `law` and are true. Returns how often the interval
    /// at 95 % misses the area `truth`.
    fn misses(n: usize, truth: f64, law: impl Fn(&mut Rng) -> f64) -> f64 {
        let sets = 1000;
        let missed = (0..sets).filter(|seed| {
            let mut rng = Rng::new(*seed);
            let event = |_| {
                let z = law(&mut rng);
                (z, rng.uniform() < z)
            };
            let sample: Vec<_> = (0..n).map(event).collect();
            let found = Discrimination::of_scores(&sample);
            let interval = found.and_then(|found| found.auc?.interval);
            interval.is_some_and(|(low, high)| truth < low || truth > high)
        });
        missed.count() as f64 / sets as f64
    }

    /// For uniform scores the area is 5/6. For scores within .01 of 0 or 1 it is .99670 (mean of
    /// 2.4 million events), which 29.6 % of plain intervals miss with 400 events.
    #[test]
    fn intervals_hold_near_one_too() {
        let uniform = misses(200, 5.0 / 6.0, Rng::uniform);
        assert!((0.025..0.075).contains(&uniform), "{uniform}");
        let apart = |rng: &mut Rng| {
            let z = 0.01 * rng.uniform();
            if rng.uniform() < 0.5 { z } else { 1.0 - z }
        };
        let near_one = misses(400, 0.9967, apart);
        assert!(near_one < 0.12, "{near_one}");
    }

    /// 1000 samples of 200 events: the spread of the estimates is what the standard error says,
    /// within 8 % (their standard deviation has a relative error of 2.2 %).
    #[test]
    fn the_standard_error_is_the_spread_of_estimates() {
        let one = |seed: u64| {
            let found = Discrimination::of_scores(&sample(200, 10.0, 1000 + seed));
            found.and_then(|found| found.auc).unwrap()
        };
        let all: Vec<Auc> = (0..1000).map(one).collect();
        let sum = |of: &dyn Fn(&Auc) -> f64| all.iter().map(of).sum::<f64>();
        let mean = sum(&|a| a.value) / 1e3;
        let spread = sum(&|a| (a.value - mean).powi(2)) / 999.0;
        let said = sum(&|a| a.standard_error.unwrap().powi(2)) / 1e3;
        let ratio = (spread / said).sqrt();
        assert!((0.92..1.08).contains(&ratio), "{ratio}");
    }

    #[test]
    fn cells_know_how_far_off_they_may_be() {
        let sample = sample(2000, 1e6, 9);
        let sums = samples::sums(Grid::new(Axis::Linear, 12), &sample);
        let cells = corp::cells(&Levels::from_sums(&sums));
        let exact = Discrimination::of_scores(&sample).unwrap();
        let found = Discrimination::of_cells(&cells).unwrap();
        let (a, b) = (found.auc.unwrap(), exact.auc.unwrap());
        assert!(a.unresolved > 0.0 && a.unresolved < 0.01, "{a:?}");
        assert!((a.value - b.value).abs() <= a.unresolved, "{a:?} {b:?}");
        // The cells end at ½.
        assert!((found.accuracy - exact.accuracy).abs() < 1e-12);
    }

    #[test]
    fn vectors_by_hand() {
        let mut sample = Vectors::new(3);
        sample.push(&[0.5, 0.25, 0.25], 0).unwrap();
        sample.push(&[0.2, 0.4, 0.4], 2).unwrap();
        let found = VectorScores::of(&sample).unwrap();
        // The first of equal ones is the answer, and wrong.
        assert_eq!(found.accuracy, 0.5);
        assert!((found.log_loss + (0.5_f64.ln() + 0.4_f64.ln()) / 2.0).abs() < 1e-15);
        assert!((found.brier - (0.375 + 0.56) / 2.0).abs() < 1e-15);
        assert_eq!(VectorScores::of(&Vectors::new(3)), None);
    }
}
