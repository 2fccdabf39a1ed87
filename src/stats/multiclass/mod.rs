//! Calibration of several classes at once, by cells in k dimensions.
//!
//! | part | holds |
//! |---|---|
//! | [`events`] | the vector views `full` and `top_k:k` |
//! | [`cell`] | cubes over the truncated chamber; equal-volume simplices; how they nest |
//! | [`level`], [`estimate`] | occupied cells; estimators and exact null moments |
//! | [`tcal`](mod@tcal), [`interval`](mod@interval) | the adaptive test; the interval with covariances |
//! | [`classwise`](mod@classwise) | every class against the rest with one error |
//! | [`weighted`] | the same of events with weights |
//! | [`sums`], [`ranked`] | the integer sums that a window keeps of a vector view, and what it needs of a prediction |
//!
//! Sources: Lee, Huang, Hassani, Dobriban, *T-Cal* (2022), appendix 8.2; Sun, Chaudhari, Barnett,
//! Dobriban (2024). With K classes there are m^(K−1) cells, so beyond a few classes and fine levels
//! hardly any cell holds two events and the test loses its power (its rate is n^(−2s/(4s+K−1))):
//! `shared` in the report says how many do. Prefer `top_k` of a small k, `classwise`, or the kernel
//! tests.

pub mod cell;
pub mod classwise;
pub mod estimate;
pub mod events;
pub mod interval;
pub mod level;
mod plain;
pub mod ranked;
pub mod shape;
pub mod sums;
pub mod tcal;
pub mod weighted;

pub use classwise::{ClassResult, Classwise, classwise};
pub use events::{Events, VectorView};
pub use interval::{VectorInterval, interval};
pub use level::{VectorCell, VectorLevel};
pub use ranked::Ranked;
pub use sums::VectorSums;
pub use tcal::{VectorTCal, tcal, tcal_fixed};

use super::evaluation::Weights;
use super::kernel::Vectors;

/// What is said of a vector view.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Evaluation {
    /// The view.
    pub view: VectorView,
    /// n.
    pub n: usize,
    /// K.
    pub classes: usize,
    /// k.
    pub dimension: usize,
    /// The adaptive test.
    pub tcal: VectorTCal,
    /// α of the test.
    pub alpha: f64,
    /// The interval.
    pub interval: VectorInterval,
    /// ℓ1-ECE in total variation at the interval's level.
    pub ece_l1: f64,
    /// What is said of the weights, where events have some.
    pub weights: Option<Weights>,
}

/// Evaluates a vector view; `None` without events. `slices`: of the interval, or its default.
pub fn evaluate(
    sample: &Vectors,
    view: VectorView,
    alpha: f64,
    confidence: f64,
    slices: Option<u32>,
) -> Option<Evaluation> {
    evaluate_events(&Events::of(sample, view), alpha, confidence, slices)
}

/// The same of events, which may have weights.
pub fn evaluate_events(
    events: &Events,
    alpha: f64,
    confidence: f64,
    slices: Option<u32>,
) -> Option<Evaluation> {
    let d = events.free_dimension();
    let effective = events.effective();
    let n = effective.map_or(events.len(), |n| n as usize);
    let slices = slices.unwrap_or(interval::default_slices(n, d));
    let slices = slices.clamp(1, cell::SLICES_MAX);
    Some(Evaluation {
        view: events.view,
        n: events.len(),
        classes: events.classes,
        dimension: events.dimension,
        interval: interval::interval(events, slices, confidence)?,
        tcal: tcal::tcal(events, alpha),
        alpha,
        ece_l1: estimate::ece_l1(&VectorLevel::of(events, slices)),
        weights: effective.map(|effective| Weights {
            sum: events.total(),
            effective,
        }),
    })
}

/// Evaluates the sums of a window; `None` without events. Levels to the finest that is kept; the
/// interval at its default slices, or the finest.
pub fn evaluate_sums(sums: &VectorSums, alpha: f64, confidence: f64) -> Option<Evaluation> {
    let shape = sums.shape();
    let n = sums.n() as usize;
    let dimension = shape.dimension()?;
    let free_dimension = match shape.view {
        VectorView::Full => (dimension - 1).max(1),
        VectorView::TopK(k) => k,
    };
    let weights = sums.weights().map(|(sum, squares)| Weights {
        sum,
        effective: sum * sum / squares,
    });
    let speak = weights.map_or(n as f64, |w| w.effective);
    let levels = sums.levels(tcal::scales(speak, free_dimension).max(1));
    let wanted = interval::default_slices(speak as usize, free_dimension);
    let at = levels.iter().rfind(|l| l.slices <= wanted);
    let at = at.or(levels.first()).filter(|_| n > 0)?;
    let about = tcal::Shape {
        classes: shape.classes,
        free_dimension,
    };
    Some(Evaluation {
        view: shape.view,
        n,
        classes: shape.classes,
        dimension,
        interval: interval::of_level(at, confidence),
        ece_l1: estimate::ece_l1(at),
        tcal: tcal::of_levels(if n >= 2 { &levels } else { &[] }, &about, alpha),
        alpha,
        weights,
    })
}

#[cfg(test)]
mod tests;
