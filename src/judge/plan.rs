//! What to monitor: read-only, made by the configuration, taken by the engine.

use super::alarm;
use super::options::JudgeOptions;
use crate::collect::join::JoinPlan;
use crate::collect::{Caps, IdPlan, Segmenting};
use crate::stats::axis::Grid;
use crate::stats::view::View;
use crate::window::Ladder;

/// Name of the plan that serves models without one of their own.
pub const ANY_MODEL: &str = "*";

/// How one model is monitored.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelPlan {
    /// Name of the model, or [`ANY_MODEL`].
    pub name: String,
    /// What is tested of each observation; one stream for each.
    pub views: Vec<View>,
    /// Names of the classes; a vector must have as many entries. Empty: any number.
    pub classes: Vec<String>,
    /// Windows and lateness.
    pub ladder: Ladder,
    /// Cells.
    pub grid: Grid,
    /// Verdicts and alerts.
    pub judge: JudgeOptions,
    /// Segments, and what becomes of those beyond the cap.
    pub segmenting: Segmenting,
}

impl ModelPlan {
    /// Whether a sample of its vectors is kept, for a kernel view.
    pub fn samples(&self) -> bool {
        self.views.contains(&View::Kernel)
    }

    /// Why its streams of single scores raise no alert and what to do, if they raise none.
    pub fn no_alert(&self) -> Option<String> {
        if self.judge.window_alerts || self.judge.detector.is_some() {
            return None;
        }
        Some(alarm::no_alert(match self.grid.is_weighted() {
            true => "events have weights",
            false => "`budget` is \"none\"",
        }))
    }
}

/// What to monitor, and within which bounds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// Models by name; [`ANY_MODEL`] serves the rest.
    pub models: Vec<ModelPlan>,
    /// Bounds.
    pub caps: Caps,
    /// Sources whose outcomes arrive separately from their predictions.
    pub joins: Vec<JoinPlan>,
    /// Sources whose records carry their outcome and an id, and are counted once.
    pub ids: Vec<IdPlan>,
}

impl Plan {
    /// Index of the plan that serves models of this name.
    pub fn serves(&self, name: &str) -> Option<usize> {
        let named = |name: &str| self.models.iter().position(|m| m.name == name);
        named(name).or_else(|| named(ANY_MODEL))
    }

    /// The plan that serves models of this name.
    pub fn serving(&self, name: &str) -> Option<&ModelPlan> {
        self.serves(name).map(|at| &self.models[at])
    }

    /// The lateness of the model that allows most: what is older than a partition's newest event by
    /// more is complete for every model.
    pub fn lateness_ms(&self) -> i64 {
        let lateness = self.models.iter().map(|m| m.ladder.lateness_ms);
        lateness.max().unwrap_or(0)
    }

    /// Takes over the settings that may change at run time: tests, tolerances, hold times and caps.
    /// Settings that determine the sums stay as they are.
    pub fn reload(&mut self, new: &Plan) {
        for model in &mut self.models {
            let Some(theirs) = new.models.iter().find(|m| m.name == model.name) else {
                continue;
            };
            let (sampling, family) = (
                model.judge.evaluation.sampling,
                model.judge.evaluation.family,
            );
            model.judge = JudgeOptions {
                detector: model.judge.detector.take(),
                compare: model.judge.compare.take(),
                kernel: model.judge.kernel,
                ..theirs.judge.clone()
            };
            // The sums hold scores that were carried by the old sampling.
            model.judge.evaluation.sampling = sampling;
            // The views are the same.
            model.judge.evaluation.family = family;
            model.segmenting.max = theirs.segmenting.max;
            model.segmenting.other = theirs.segmenting.other;
        }
        self.caps.vector_versions_max = new.caps.vector_versions_max;
        self.caps.streams_max = new.caps.streams_max;
        self.caps.expire_after_ms = new.caps.expire_after_ms;
        self.caps.stalled_after_ms = new.caps.stalled_after_ms;
    }
}
