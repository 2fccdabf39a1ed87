//! Distances from calibration: how far the scores are from true ones, measured without a choice of
//! cells.
//!
//! Binned errors depend on where the edges fall: a score that crosses an edge can change them by
//! any amount. The measures here are continuous in the scores, or come with bounds. Source:
//! Błasiok, Gopalan, Hu, Nakkiran, *A unifying theory of distance from calibration* (2023), and for
//! smECE Błasiok, Nakkiran (2024).
//!
//! | measure | function | exact from raw scores | from m cells |
//! |---|---|---|---|
//! | smooth calibration error | [`smooth`] | O(n) after sorting | ± mean of U times the way to the cell's mean |
//! | lower distance | [`lower`] | cutting planes, proved bounds | ± mean way to the cell's mean |
//! | interval error | [`interval`] | O(n²) | an upper bound, no error term |
//! | surrogate interval error | [`random_interval`] | O(n log n) | an upper bound of the interval error |
//! | Laplace kernel error | [`laplace`] | O(n) after sorting | ± |
//! | smECE | [`smooth_ece`] | on a grid | ± |
//! | upper distance | [`mod@upper`] | at most 14 scores | bounds ([`sandwich`]) |
//! | binned errors, sampled kernel terms | [`binned`] | for comparison with the paper | |
//!
//! [`of_scores`] and [`of_cells`] compute them all from the same [`Points`]. They are computed at
//! query time, from the sums that a window holds anyway, so they cost nothing while events arrive.
//! Cost for 4096 occupied cells on one core: smooth, interval and Laplace error together 1 to 2.5
//! ms, lower distance 6 to 30 ms, smECE 2 ms (`cargo bench --bench distance`).

pub mod binned;
pub mod interval;
pub mod laplace;
pub mod lower;
pub mod points;
pub mod program;
pub mod random_interval;
pub mod sandwich;
pub mod smooth;
pub mod smooth_ece;
pub mod upper;

pub use laplace::Laplace;
pub use lower::{Effort, Lower};
pub use points::{Atom, Points};
pub use sandwich::Bounds;
pub use smooth_ece::SmoothEce;

use super::levels::{Level, ascending};

/// Scale ν of the Laplace kernel: that of the paper, for which the bounds are proved.
const NU: f64 = 1.0;

/// Up to this many distinct scores everything is computed from them exactly; beyond, those measures
/// whose cost is more than proportional are computed from this many cells, and say so by their
/// errors.
pub const EXACT_MAX: usize = 4096;

/// Which distances are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Extent {
    /// No distances.
    Off,
    /// Those that cost about as much as the test: smooth, Laplace kernel and surrogate interval
    /// error. With 4096 occupied cells 0.3 to 0.6 ms.
    Cheap,
    /// Also interval error, lower distance, smECE and, of few scores, the upper distance: 10 to 35
    /// ms.
    All,
}

/// The distances of one sample, each on the scale of scores, with how far it may be off that of the
/// raw scores; `None` for what the extent leaves out.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Distances {
    /// Smooth calibration error.
    pub smooth: f64,
    /// How far `smooth` may be off.
    pub smooth_error: f64,
    /// Laplace kernel calibration error with its null law, ν = 1.
    pub laplace: Laplace,
    /// Lower distance to calibration with proved bounds.
    pub lower: Option<Lower>,
    /// Interval calibration error, or an upper bound of it.
    pub interval: Option<f64>,
    /// Whether `interval` is exactly that of the raw scores, not only an upper bound.
    pub interval_exact: bool,
    /// Surrogate interval error; at least the interval error of the raw scores.
    pub surrogate: f64,
    /// smECE with the automatic bandwidth.
    pub smooth_ece: Option<SmoothEce>,
    /// Upper distance, for a few distinct scores.
    pub upper: Option<f64>,
    /// Where the true distance lies for certain.
    pub distance: Bounds,
}

impl Distances {
    /// The distances of dependent outcomes: without p-values, because the null law of the kernel
    /// error is not known for them.
    pub(crate) fn of_dependent(mut self) -> Distances {
        (self.laplace.p_value, self.laplace.p_value_bound) = (None, 1.0);
        self
    }
}

/// The distances of raw scores in [0, 1]; `None` without events or with nothing wanted.
pub fn of_scores(sample: &[(f64, bool)], extent: Extent) -> Option<Distances> {
    match extent {
        Extent::Off => None,
        _ => of_ascending(&ascending(sample), extent),
    }
}

/// [`of_scores`] of a sample in ascending order.
pub(super) fn of_ascending(sample: &[(f64, bool)], extent: Extent) -> Option<Distances> {
    if extent == Extent::Off {
        return None;
    }
    let exact = Points::of_ascending(sample)?;
    if exact.atoms().len() <= EXACT_MAX {
        let terms: Vec<f64> = (0..=SURROGATE_LAST)
            .map(|k| random_interval::random_interval(&exact, k))
            .collect();
        let surrogate = random_interval::surrogate(&terms);
        let effort = if exact.atoms().len() <= 512 {
            Effort::EXACT
        } else {
            Effort::WINDOW
        };
        let coarse = (extent == Extent::All).then_some((&exact, effort));
        return Some(gather(&exact, coarse, surrogate));
    }
    let level = Level::of_ascending(sample, EXACT_MAX as u64);
    let m = EXACT_MAX as f64;
    let cells = Points::from_level(&level, |i| (i as f64 / m, (i + 1) as f64 / m))?;
    let surrogate = random_interval::surrogate(&random_interval::aligned(&level));
    let coarse = (extent == Extent::All).then_some((&cells, Effort::WINDOW));
    Some(gather(&exact, coarse, surrogate))
}

/// The last k that the surrogate error tries: later ones would lower it by less than 2⁻¹².
const SURROGATE_LAST: u32 = 12;

/// The distances of a window, from the cells of its finest level; `edges` gives the scores between
/// which cell `index` lies, `linear` says that they are equal cells of [0, 1]. `None` without
/// events or with nothing wanted.
pub fn of_cells(
    level: &Level,
    edges: impl Fn(u64) -> (f64, f64),
    linear: bool,
    extent: Extent,
) -> Option<Distances> {
    if extent == Extent::Off {
        return None;
    }
    let cells = Points::from_level(level, edges)?;
    let surrogate = if linear {
        random_interval::surrogate(&random_interval::aligned(level))
    } else {
        surrogate_with_error(&cells)
    };
    let coarse = (extent == Extent::All).then_some((&cells, Effort::WINDOW));
    Some(gather(&cells, coarse, surrogate))
}

/// An upper bound of the raw scores' surrogate error from cells that do not nest in 2^−k: each term
/// moves by 2^(k+1)·spread at most (a residual changes bins with probability 2^k times its way, at
/// 2|U|).
fn surrogate_with_error(cells: &Points) -> f64 {
    let term = |k: u32| {
        let scale = f64::from(1u32 << k);
        random_interval::random_interval(cells, k) + 1.0 / scale + 2.0 * scale * cells.spread()
    };
    (0..=SURROGATE_LAST).map(term).fold(f64::MAX, f64::min)
}

/// Computes the distances: from `fine` those of cost proportional to its points, from `coarse` the
/// others, where they are wanted.
fn gather(fine: &Points, coarse: Option<(&Points, Effort)>, surrogate: f64) -> Distances {
    let (smooth, smooth_error) = (smooth::smooth(fine), fine.spread());
    let laplace = laplace::laplace(fine, NU);
    let lower = coarse.map(|(points, effort)| lower::lower(points, effort));
    let interval = coarse.map(|(points, _)| interval::interval(points));
    let around = Bounds {
        low: smooth - smooth_error,
        high: smooth + smooth_error,
    };
    let lowest = match &lower {
        Some(l) => Bounds {
            low: l.low - l.error,
            high: l.high + l.error,
        },
        None => sandwich::of_lower(around, &laplace),
    };
    Distances {
        smooth,
        smooth_error,
        laplace,
        distance: sandwich::of_true(lowest, interval.map_or(surrogate, |i| i.min(surrogate))),
        lower,
        interval,
        interval_exact: coarse.is_some_and(|(points, _)| points.shift() == 0.0),
        surrogate,
        smooth_ece: coarse.map(|_| smooth_ece::smooth_ece(fine)),
        upper: coarse
            .and_then(|_| upper::upper(fine))
            .filter(|_| fine.shift() == 0.0),
    }
}

#[cfg(test)]
mod tests;
