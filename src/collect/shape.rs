//! What the first stage knows of a model, and how it reads an event by it.

use super::event::{Event, Reason};
use super::join::{self, JoinPlan, Matured, RowLayout};
use super::pairing::PairShape;
use super::segment::Segmenting;
use crate::stats::attribute::Attribute;
use crate::stats::axis::Grid;
use crate::stats::fixed::{Score, Scored};
use crate::stats::sampling::Sampling;
use crate::stats::view::{Checked, Prediction, View, ViewError, positive};

/// What the collector must know of a model.
#[derive(Debug, Clone)]
pub struct ModelShape {
    /// Name, or "*" for all others.
    pub name: String,
    /// What is tested of single scores.
    pub views: Vec<View>,
    /// How many of the largest probabilities are kept of a prediction that waits, for vector views.
    pub depth: usize,
    /// Seed of the ranks by which a kernel view samples whole vectors, if there is one: they wait
    /// too.
    pub sampled: Option<u64>,
    /// Entries of a vector; 0: any number.
    pub classes: usize,
    /// Width of a base pane.
    pub pane_ms: i64,
    /// Allowed lateness.
    pub lateness_ms: i64,
    /// Cells.
    pub grid: Grid,
    /// How long its predictions wait for their outcomes; 0 if both come together.
    pub maturity_ms: i64,
    /// How long a sealed pane is held by some window.
    pub retention_ms: i64,
    /// Its segments.
    pub segmenting: Segmenting,
    /// How its negatives were sampled; scores of the view `binary` are carried accordingly.
    pub sampling: Sampling,
    /// How its versions are compared, if they are.
    pub compare: Option<PairShape>,
}

/// What an event needs to know of its model, in a quarter of a cache line.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelFacts {
    /// Width of a base pane.
    pub pane_ms: i64,
    /// Whether its one view is binary, of scores as they come.
    plain: bool,
    /// Whether its versions are compared.
    pub paired: bool,
}

impl ModelFacts {
    /// The facts about `shape`.
    pub fn new(shape: &ModelShape) -> ModelFacts {
        ModelFacts {
            pane_ms: shape.pane_ms,
            paired: shape.compare.is_some(),
            plain: shape.views == [View::Binary]
                && shape.sampling.is_none()
                && shape.grid.is_plain(),
        }
    }

    /// The score and outcome of an event that has one score, of a model with one plain view, as
    /// most have; `None` for others.
    #[inline]
    pub fn only(&self, event: &Event<'_>) -> Result<Option<Scored>, Reason> {
        let Prediction::Score(z) = event.prediction else {
            return Ok(None);
        };
        if !self.plain {
            return Ok(None);
        }
        let outcome = event.outcome.ok_or(Reason::MissingField)?;
        let score = Score::new(z).map_err(ViewError::from)?;
        Ok(Some(Scored::new(score, positive(outcome)?)))
    }
}

impl ModelShape {
    /// What is kept of its predictions while they wait.
    pub(super) fn row_layout(&self) -> RowLayout {
        RowLayout {
            views: self.views.len(),
            depth: self.depth,
            full_vector: self
                .sampled
                .map_or(0, |_| join::full_vector::entries(self.classes)),
            attribute: !self.grid.is_plain(),
        }
    }

    /// Whether there are vector views, so that vectors wait.
    pub(super) fn has_vectors(&self) -> bool {
        self.depth > 0 || self.sampled.is_some()
    }

    /// Start of the pane of an event.
    #[inline]
    pub(super) fn start_of(&self, time_ms: i64) -> i64 {
        time_ms.saturating_sub(time_ms.rem_euclid(self.pane_ms))
    }

    /// The watermark, before which panes can be sealed, when event time has come to `time_ms`.
    pub fn watermark_at(&self, time_ms: i64) -> i64 {
        let at_ms = time_ms.saturating_sub(self.lateness_ms + self.maturity_ms);
        at_ms.saturating_sub(at_ms.rem_euclid(self.pane_ms))
    }

    /// Event time up to which outcomes of a pane's predictions are on time.
    pub(super) fn due_ms(&self, start_ms: i64, maturity_ms: i64) -> i64 {
        start_ms + self.pane_ms + maturity_ms
    }

    /// The score of a view, carried to the scale of the events that are there.
    #[inline]
    pub(super) fn carried(&self, view: View, score: Score) -> Score {
        if self.sampling.is_none() || view != View::Binary {
            return score;
        }
        self.sampling.carry(score)
    }

    #[inline]
    pub(super) fn check<'e>(&self, prediction: Prediction<'e>) -> Result<Checked<'e>, Reason> {
        let checked = Checked::new(prediction)?;
        match prediction {
            Prediction::Vector(p) if self.classes > 0 && p.len() != self.classes => {
                Err(Reason::VectorLength)
            }
            _ => Ok(checked),
        }
    }

    #[inline]
    pub(super) fn attribute_of(&self, event: &Event<'_>) -> Result<Attribute, Reason> {
        let attribute = if self.grid.is_plain() {
            Some(Attribute::None)
        } else if self.grid.is_weighted() {
            event.weight.map(Attribute::Weight)
        } else {
            event.cluster.map(Attribute::Cluster)
        };
        attribute.ok_or(Reason::MissingField)
    }

    pub(super) fn attribute_kept(&self, m: &Matured<'_>) -> Attribute {
        let kept = if self.grid.is_weighted() {
            m.weight().map(Attribute::Weight)
        } else if self.grid.is_clustered() {
            m.cluster().map(Attribute::Cluster)
        } else {
            None
        };
        kept.unwrap_or_default()
    }

    /// Number of classes that an outcome may name; 0: any.
    pub(super) fn outcomes(&self) -> u32 {
        let binary = self.views.contains(&View::Binary);
        if binary { 2 } else { self.classes as u32 }
    }
}

/// By join: the models for which an outcome that names no model waits. If the source names no model
/// either, these are all models without a source of their own, or all models if there are none. (A
/// joiner adds the models of predictions that it retains.)
pub(super) fn unnamed_models(joins: &[JoinPlan], models: &[ModelShape]) -> Vec<Vec<usize>> {
    let all = || 0..models.len();
    let named = |name: &str| all().find(|m| models[*m].name == name);
    let elsewhere = |m: usize| {
        joins
            .iter()
            .any(|j| j.model.as_ref() == Some(&models[m].name))
    };
    let of = |plan: &JoinPlan| -> Vec<usize> {
        let ours: Vec<usize> = match plan.model.as_deref() {
            Some(name) => named(name).or_else(|| named("*")).into_iter().collect(),
            None => all().filter(|m| !elsewhere(*m)).collect(),
        };
        if ours.is_empty() {
            all().collect()
        } else {
            ours
        }
    };
    joins.iter().map(of).collect()
}

/// Sets `seen` to the score and outcome of the event for each view; returns whether a vector was
/// divided by its sum.
#[inline]
pub(super) fn project(
    shape: &ModelShape,
    event: &Event<'_>,
    seen: &mut Vec<Scored>,
) -> Result<bool, Reason> {
    let outcome = event.outcome.ok_or(Reason::MissingField)?;
    let checked = shape.check(event.prediction)?;
    shape.attribute_of(event)?;
    seen.clear();
    for view in &shape.views {
        let (score, outcome) = checked.project(*view, outcome)?;
        seen.push(Scored::new(shape.carried(*view, score), outcome));
    }
    Ok(checked.renormalised())
}
