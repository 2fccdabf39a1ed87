//! Estimators of the calibration error at one level.
//!
//! All read the occupied cells of a [`Level`]; N events in a cell, n in all, U = y − z. They are
//! plain functions of a level, not methods of a test, because the test, the interval and the
//! reports each need a different one. Each costs one pass over the occupied cells.
//!
//! Always: a cell of one event adds exactly 0 to the debiased and the unbiased estimator, whatever
//! the rounding of the sums; and ΣU² of a cell is at least (ΣU)²/N. Both hold of the true sums
//! (Cauchy–Schwarz), and fixed-point sums of tiny scores can miss them by a unit of 2⁻³²: scores of
//! 10⁻⁵ have squares below that unit. So [`off_diagonal`] restores them before it subtracts.

use super::classical::Mce;
use super::levels::{Level, LevelCell};

/// Σ_{a≠b} x_a x_b of a cell from Σx and Σx², N events: (Σx)² − Σx², with Σx² first raised to its
/// lower bound where rounding left it below. 0 for one event.
#[inline]
pub(super) fn off_diagonal(sum: f64, squares: f64, n: f64) -> f64 {
    if n < 2.0 {
        return 0.0;
    }
    let square = sum * sum;
    square - raised(squares, square, n)
}

/// Σx², raised to its lower bound (Σx)²/N. Divides only where Σx² is not clearly above the bound: a
/// division costs as much as all other work on a cell.
#[inline]
pub(super) fn raised(squares: f64, square: f64, n: f64) -> f64 {
    if clearly_above(squares, square, n) {
        squares
    } else {
        squares.max(square / n)
    }
}

/// Whether Σx² is above (Σx)²/N whatever the rounding.
#[inline]
pub(super) fn clearly_above(squares: f64, square: f64, n: f64) -> bool {
    const CLEARLY: f64 = 1.0 + 8.0 * f64::EPSILON;
    squares * n > square * CLEARLY
}

/// Σ_{a≠b} U_a U_b of a cell.
#[inline]
pub(super) fn pairs_u(cell: &LevelCell) -> f64 {
    off_diagonal(cell.u, cell.u2, cell.count)
}

/// Plug-in estimator of the squared ℓ2-ECE: T_b = (1/n) Σ (ΣU)²/N.
///
/// Never negative; biased upwards under every law, by about (1/n) Σ mean(V) over the occupied
/// cells, also where the model is calibrated. Defined from n = 1; 0 without events. The cells are
/// those of the level. \[T-Cal, Lee et al. 2022, (5)\]
///
/// Two events with scores 0.25, both negative, in one cell: ΣU = −0.5, T_b = 0.25/2/2 = 1/16.
pub fn plug_in(level: &Level) -> f64 {
    let mut n = 0.0;
    let mut sum = 0.0;
    for c in level.occupied.iter() {
        n += c.n;
        sum += c.u * c.u / c.n;
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

/// Debiased plug-in estimator: T_d = (1/n) Σ [(ΣU)² − ΣU²]/N.
///
/// Negative values mean less error than chance alone would show and are kept. Mean 0 under the null
/// given the scores; off the null it is low by the factor 1 − 1/N a cell. Cells of one event add
/// nothing; 0 when there are no others. \[T-Cal (6)\]
///
/// Two events with scores 0.25, both negative: (0.25 − 0.125)/2/2 = 1/32.
pub fn debiased(level: &Level) -> f64 {
    let mut n = 0.0;
    let mut sum = 0.0;
    for c in level.occupied.iter() {
        n += c.n;
        sum += pairs_u(&c) / c.n;
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

/// Unbiased estimator: T = (1/n) Σ_{N≥2} [(ΣU)² − ΣU²]/(N − 1).
///
/// Mean 0 under the null, and off it the squared ℓ2-ECE of the binned model over cells of two
/// events or more, without the factor of [`debiased`]; of weighted events with Σw − Σw²/Σw for N
/// − 1. May be negative. 0 when no cell holds two events. \[Sun et al. 2024, (4)\]
///
/// Two events with scores 0.25, both negative: (0.25 − 0.125)/1/2 = 1/16, the square of 0.25.
pub fn unbiased(level: &Level) -> f64 {
    let mut n = 0.0;
    let mut sum = 0.0;
    for (c, moments) in level.squares() {
        n += c.n;
        if c.count >= 2.0 {
            sum += pairs_u(&c) / (c.n - moments.w2 / c.n);
        }
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

/// ℓ1-ECE: (1/n) Σ |ΣU|. Never negative, biased upwards (by about √(2mV/πn) when calibrated); 0
/// without events. Papers report it over 15 equal cells.
pub fn ece_l1(level: &Level) -> f64 {
    let mut n = 0.0;
    let mut sum = 0.0;
    for c in level.occupied.iter() {
        n += c.n;
        sum += c.u.abs();
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

/// Maximum calibration error: max |ΣU|/N over cells of at least `least` events, the first of
/// equals. Biased upwards, the more the smaller the cells, hence `least` and the count that comes
/// with it. `None` when no cell holds that many.
pub fn mce(level: &Level, least: u64) -> Option<Mce> {
    let mut worst: Option<Mce> = None;
    for c in level.occupied.iter().filter(|c| c.count >= least as f64) {
        let value = c.u.abs() / c.n;
        if worst.is_none_or(|w| value > w.value) {
            let n = c.count as u64;
            worst = Some(Mce { value, n });
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_events_give_the_numbers_of_the_documentation() {
        let level = Level::from_scores(&[(0.25, false), (0.25, false)], 2);
        assert_eq!(plug_in(&level), 1.0 / 16.0);
        assert_eq!(debiased(&level), 1.0 / 32.0);
        assert_eq!(unbiased(&level), 1.0 / 16.0);
        assert_eq!(ece_l1(&level), 0.25);
        assert_eq!(mce(&level, 2), Some(Mce { value: 0.25, n: 2 }));
        assert_eq!(mce(&level, 3), None);
    }

    #[test]
    fn single_events_and_no_events_say_nothing() {
        let level = Level::from_scores(&[(0.1, true), (0.9, false)], 2);
        assert_eq!((debiased(&level), unbiased(&level)), (0.0, 0.0));
        let none = Level::from_scores(&[], 2);
        assert_eq!((plug_in(&none), ece_l1(&none)), (0.0, 0.0));
        assert_eq!(mce(&none, 1), None);
    }
}
