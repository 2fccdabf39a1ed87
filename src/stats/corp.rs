//! The CORP reliability curve: isotonic regression over fine cells, with the band of calibration.
//!
//! The rate of a cell depends on where the cells are cut. The curve does not: it is the rising
//! function of the score that fits the outcomes best, found by pooling adjacent violators
//! ([`super::recalibration::isotonic`]), and so it is consistent, optimally binned and reproducible
//! (Dimitriadis, Gneiting & Jordan, *Stable reliability diagrams for probabilistic classifiers*,
//! PNAS 118, 2021, "The CORP approach"). Scores enter by the finest level with at most
//! [`CELLS_MAX`] occupied cells, each at its mean score: a model of rare events has its cells where
//! its scores are.
//!
//! The band shows where the curve falls if the scores are true (there, "Uncertainty
//! quantification", consistency bands by resampling): outcomes are drawn [`DRAWS`] times with the
//! scores' probabilities, each draw is pooled, and the band at a score is the range of its rate
//! without the tails of [`TAIL`] on each side. It holds at each score by itself, not at all at
//! once: under calibration the curve leaves it at one score in twenty. Outcomes are drawn
//! independently, so where they depend on each other the band is too narrow.
//!
//! A cell of N events at the mean score z has Binomial(N, z) positives, which is a little wider
//! than the law of its events; of weighted events the normal law of the same mean and variance is
//! drawn. The seed is fixed: the same cells have the same band.
//!
//! Cost: some 5 ms for 128 occupied cells, when a page is asked for; an evaluation only copies the
//! cells.

use super::level::{Level, LevelCell};
use super::levels::Levels;
use super::recalibration::Point;
use super::recalibration::isotonic::{Pool, pool};
use super::rng::Rng;

/// Most cells of a curve: 5 kB.
pub const CELLS_MAX: usize = 128;

/// Number of redrawn sets of outcomes. With the observed one they are 400: 10 lie in each tail.
pub const DRAWS: usize = 399;

/// Share of the sets outside the band on each side.
pub const TAIL: f64 = 0.025;

/// Variance of a count from which it is drawn by its Cornish–Fisher expansion.
const SMALL: f64 = 25.0;

const SEED: u64 = 0x636f_7270;

/// The events of a fine cell.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CurveCell {
    /// Number of events; Σw of weighted ones.
    pub n: f64,
    /// Σy; Σwy of weighted ones.
    pub y: f64,
    /// Mean score, in [0, 1].
    pub z: f64,
    /// Variance of Σy if the scores are true.
    pub variance: f64,
    /// Whether `n` is a count, so that Σy is binomial.
    pub counted: bool,
}

/// The band at one score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// The score.
    pub z: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The occupied cells of the finest level that has at most [`CELLS_MAX`] of them.
pub fn cells(levels: &Levels) -> Vec<CurveCell> {
    let fits = |level: &&Level| level.occupied.len() <= CELLS_MAX;
    let finest = levels.as_slice().iter().rev().find(fits);
    let level = finest.unwrap_or(&levels.as_slice()[0]);
    let counted = !level.is_weighted();
    let one = |c: LevelCell| {
        let z = (c.z / c.n).clamp(0.0, 1.0);
        CurveCell {
            n: c.n,
            y: c.y,
            z,
            variance: if counted { c.n * z * (1.0 - z) } else { c.v },
            counted,
        }
    };
    level.occupied.iter().map(one).collect()
}

/// The curve: blocks of scores with one rate, both rising; straight between blocks.
pub fn curve(cells: &[CurveCell]) -> Vec<Pool> {
    pool(&points(cells))
}

/// The band at the mean score of each cell.
pub fn band(cells: &[CurveCell]) -> Vec<Band> {
    let mut rng = Rng::new(SEED);
    let mut points = points(cells);
    let mut rates = vec![Vec::with_capacity(DRAWS); cells.len()];
    for _ in 0..DRAWS {
        for (point, cell) in points.iter_mut().zip(cells) {
            point.y = draw(cell, &mut rng);
        }
        let pools = pool(&points);
        let mut at = 0;
        for (cell, rates) in cells.iter().zip(&mut rates) {
            while at + 1 < pools.len() && pools[at].high < cell.z {
                at += 1;
            }
            rates.push(pools[at].rate());
        }
    }
    let outside = ((DRAWS + 1) as f64 * TAIL) as usize;
    let range = |(cell, rates): (&CurveCell, &mut Vec<f64>)| {
        rates.sort_by(f64::total_cmp);
        Band {
            z: cell.z,
            low: rates[outside - 1],
            high: rates[DRAWS - outside],
        }
    };
    cells.iter().zip(&mut rates).map(range).collect()
}

/// The points to which the curve is fitted, one for each cell.
pub(super) fn points(cells: &[CurveCell]) -> Vec<Point> {
    let point = |c: &CurveCell| Point {
        z: c.z,
        n: c.n,
        y: c.y,
    };
    cells.iter().map(point).collect()
}

/// Draws the positives of a cell whose scores are true.
fn draw(cell: &CurveCell, rng: &mut Rng) -> f64 {
    let CurveCell {
        n,
        z,
        variance,
        counted,
        ..
    } = *cell;
    if counted && variance < SMALL {
        return match z > 0.5 {
            true => n - few(n, 1.0 - z, rng),
            false => few(n, z, rng),
        };
    }
    let (sd, g) = (variance.sqrt(), rng.normal());
    let skew = if counted && sd > 0.0 {
        (1.0 - 2.0 * z) / sd
    } else {
        0.0
    };
    let y = n * z + sd * (g + skew * (g * g - 1.0) / 6.0);
    (if counted { y.round() } else { y }).clamp(0.0, n)
}

/// A draw of Binomial(n, p), p ≤ ½, by adding up probabilities from 0: n·p is at most 2·SMALL.
fn few(n: f64, p: f64, rng: &mut Rng) -> f64 {
    let u = rng.uniform();
    let odds = p / (1.0 - p);
    let mut probability = (n * (-p).ln_1p()).exp();
    let (mut below, mut count) = (probability, 0.0);
    while below < u && count < n {
        probability *= (n - count) / (count + 1.0) * odds;
        count += 1.0;
        below += probability;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::{Axis, Grid};
    use crate::samples;

    /// Cells of `n` events of scores u², whose outcomes have the probability `truth(score)`.
    fn sample(n: usize, seed: u64, truth: fn(f64) -> f64) -> Vec<CurveCell> {
        let events = samples::events(&mut Rng::new(seed), n, |u| u.powi(2), truth);
        let sums = samples::sums(Grid::new(Axis::Linear, 6), &events);
        cells(&Levels::from_sums(&sums))
    }

    fn rate(cells: &[CurveCell], at: usize) -> f64 {
        let pools = curve(cells);
        let holds = pools.iter().find(|p| p.high >= cells[at].z);
        holds.expect("the last pool ends at the last cell").rate()
    }

    /// Whether the curve leaves its band at each of these cells.
    fn outside<const N: usize>(cells: &[CurveCell], at: [usize; N]) -> [bool; N] {
        let band = band(cells);
        at.map(|at| {
            let rate = rate(cells, at);
            rate < band[at].low || rate > band[at].high
        })
    }

    #[test]
    fn a_draw_has_the_mean_and_variance_of_its_law() {
        let mut rng = Rng::new(5);
        for (n, z) in [(40.0, 0.03), (40.0, 0.97), (300.0, 0.4), (1e6, 0.001)] {
            let variance = n * z * (1.0 - z);
            let cell = CurveCell {
                n,
                y: 0.0,
                z,
                variance,
                counted: true,
            };
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..40_000 {
                let y = draw(&cell, &mut rng);
                assert!((0.0..=n).contains(&y) && y.fract() == 0.0);
                sum += y - n * z;
                squares += (y - n * z).powi(2);
            }
            // Five standard errors of the mean; 5 % of the variance.
            assert!((sum / 4e4).abs() < 5.0 * (variance / 4e4).sqrt(), "{n} {z}");
            assert!((squares / 4e4 / variance - 1.0).abs() < 0.05, "{n} {z}");
        }
    }

    /// 1200 calibrated samples: the curve leaves a band of 95 % in 37 to 85 of them with
    /// probability above 0.999, one of 90 % or 98 % with probability at most 0.01. (Where all
    /// events of the last pool happen, its rate is 1 and cannot leave the band above: not at these
    /// cells.)
    #[test]
    fn the_curve_of_a_calibrated_sample_is_in_the_band_as_often_as_promised() {
        let at = [4, 24, 44];
        let all = (0..1200).map(|s| outside(&sample(3000, (1 << 20) + s, |z| z), at));
        let all: Vec<[bool; 3]> = all.collect();
        for (i, at) in at.into_iter().enumerate() {
            let out = all.iter().filter(|out| out[i]).count();
            assert!((37..=85).contains(&out), "cell {at}: {out} of 1200");
        }
    }

    #[test]
    fn the_curve_of_scores_that_are_too_extreme_leaves_the_band() {
        let tame = |z| 0.5 + 0.7 * (z - 0.5);
        let all = (0..50).map(|s| outside(&sample(3000, s, tame), [2, 58]));
        let all: Vec<[bool; 2]> = all.collect();
        for i in [0, 1] {
            assert!(all.iter().filter(|out| out[i]).count() >= 45, "cell {i}");
        }
    }

    #[test]
    fn rare_events_have_fine_cells_where_their_scores_are() {
        let events = samples::events(&mut Rng::new(3), 5000, |u| 0.02 * u, |_| 0.0);
        let sums = samples::sums(Grid::new(Axis::Linear, 12), &events);
        let fine = cells(&Levels::from_sums(&sums));
        assert!((80..=CELLS_MAX).contains(&fine.len()), "{}", fine.len());
        assert_eq!(fine.iter().map(|c| c.n).sum::<f64>(), 5000.0);
        assert!(fine.windows(2).all(|w| w[0].z < w[1].z));
        assert_eq!(band(&fine), band(&fine));
    }
}
