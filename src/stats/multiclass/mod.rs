//! Calibration of several classes at once, by cells in k dimensions.
//!
//! | part | holds |
//! |---|---|
//! | [`events`] | the vector views `full` and `top_k:k` |
//! | [`cell`] | cubes over the truncated chamber; equal-volume simplices; how they nest |
//! | [`level`], [`estimate`] | occupied cells; estimators and exact null moments |
//! | [`tcal`](mod@tcal), [`interval`](mod@interval) | the adaptive test; the interval with covariances |
//! | `conditional` | p-values where outcomes are few |
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
mod conditional;
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

pub use classwise::{ClassResult, Classwise, classwise, of_class};
pub use events::{Events, VectorView};
pub use interval::{VectorInterval, interval};
pub use level::{VectorCell, VectorLevel};
pub use ranked::Ranked;
pub use sums::VectorSums;
pub use tcal::{VectorTCal, tcal, tcal_fixed};

use super::evaluation::Weights;
use super::kernel::Vectors;

/// The results for a vector view.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Evaluation {
    /// The view.
    pub view: VectorView,
    /// n, the number of events.
    pub n: usize,
    /// K, the number of classes.
    pub classes: usize,
    /// k, the number of coordinates of the view.
    pub dimension: usize,
    /// The adaptive test.
    pub tcal: VectorTCal,
    /// α of the test.
    pub alpha: f64,
    /// The interval for the ℓ2-ECE.
    pub interval: VectorInterval,
    /// ℓ1-ECE in total variation at the interval's level.
    pub ece_l1: f64,
    /// ΣV, about the expected number of rarer outcomes; of weighted events, the number of outcomes
    /// of equal weight that say as much. Under ten the interval's ends do not hold.
    pub information: f64,
    /// Mean of what the scores leave to all coordinates but the one with the largest mean, 0 to ½.
    /// A relative tolerance is a share of this, as it is a share of the mean score of the rarer
    /// outcome for single scores.
    pub rare_mean: f64,
    /// Sum and effective number of weights, where events have them.
    pub weights: Option<Weights>,
}

/// Evaluates a vector view; `None` without events. `slices` are those of the interval; `None` for
/// the default.
pub fn evaluate(
    sample: &Vectors,
    view: VectorView,
    alpha: f64,
    confidence: f64,
    slices: Option<u32>,
) -> Option<Evaluation> {
    evaluate_events(&Events::of(sample, view), alpha, confidence, slices)
}

/// [`evaluate`] for events of a view, which may have weights.
pub fn evaluate_events(
    events: &Events,
    alpha: f64,
    confidence: f64,
    slices: Option<u32>,
) -> Option<Evaluation> {
    let d = events.free_dimension();
    let effective = events.effective();
    let n = effective.map_or(events.len(), |n| n as usize);
    if events.is_empty() {
        return None;
    }
    let levels = tcal::levels(events);
    let wanted = slices.unwrap_or(interval::default_slices(n, d));
    let mut at = VectorLevel::of(events, wanted.clamp(1, cell::SLICES_MAX));
    // Fewer slices where those by default are too fine for the events.
    while slices.is_none() && at.slices > 2 && interval::is_too_fine(&at) {
        at = VectorLevel::of(events, at.slices / 2);
    }
    let shown = levels.iter().position(|l| l.slices == at.slices);
    let (tcal, null) = tcal::test(&levels, &tcal::Shape::of(events), alpha, shown);
    Some(Evaluation {
        view: events.view,
        n: events.len(),
        classes: events.classes,
        dimension: events.dimension,
        information: conditional::information(levels.last().unwrap_or(&at)),
        interval: interval::guarded(&at, confidence, |m, t| null.zero_p_value(m, t)),
        tcal,
        alpha,
        ece_l1: estimate::ece_l1(&at),
        rare_mean: at.rare_mean(),
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
    let shown = levels.iter().rposition(|l| l.slices <= wanted).unwrap_or(0);
    let at = levels.get(shown).filter(|_| n > 0)?;
    let about = tcal::Shape {
        classes: shape.classes,
        free_dimension,
    };
    let tested = if n >= 2 { &levels[..] } else { &[] };
    let (tcal, null) = tcal::test(tested, &about, alpha, Some(shown));
    Some(Evaluation {
        view: shape.view,
        n,
        classes: shape.classes,
        dimension,
        information: levels.last().map_or(0.0, conditional::information),
        interval: interval::guarded(at, confidence, |m, t| null.zero_p_value(m, t)),
        ece_l1: estimate::ece_l1(at),
        rare_mean: at.rare_mean(),
        tcal,
        alpha,
        weights,
    })
}

#[cfg(test)]
mod tests;
