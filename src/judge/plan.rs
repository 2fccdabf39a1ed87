//! What to monitor: read-only, made by the configuration, taken by the engine.

use super::options::JudgeOptions;
use crate::collect::join::JoinPlan;
use crate::collect::{IdPlan, Segmenting};
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
    /// Segments, and what becomes of too many.
    pub segmenting: Segmenting,
}

impl ModelPlan {
    /// Whether a sample of its vectors is kept, for a kernel view.
    pub fn samples(&self) -> bool {
        self.views.contains(&View::Kernel)
    }
}

/// Bounds on memory and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Most streams; a record that would begin another is refused.
    pub streams_max: usize,
    /// Most open panes of a stream; a record that would open another is refused.
    pub open_panes_max: usize,
    /// Most bytes of open panes of all streams, beyond those within the lateness; a record that
    /// would open another is refused.
    pub open_bytes_max: usize,
    /// A stream without events for this long, by event time, is let go, but not before its longest
    /// window by time is empty.
    pub expire_after_ms: i64,
    /// For how long the watermark may stand still while events are counted after it.
    pub stalled_after_ms: i64,
    /// An event further ahead of its arrival than this is rejected, lest it push the watermark.
    pub future_max_ms: i64,
    /// Most cells of a pane of a vector view; an event that would begin another makes its windows
    /// undecided.
    pub vector_cells_max: usize,
    /// Most versions that have cells for vector views; windows of the others are undecided.
    pub vector_versions_max: usize,
    /// Most ids of counted records that are remembered; beyond it the oldest are forgotten.
    pub ids_max: usize,
}

impl Default for Caps {
    /// 10,000 streams; 10,000 open panes (a partition a week ahead of another at panes of a
    /// minute), of 256 MiB in all; a week without events; an hour of clock error; 4096 cells of a
    /// vector view, 64 versions with some; four million ids.
    fn default() -> Caps {
        Caps {
            streams_max: 10_000,
            open_panes_max: 10_000,
            open_bytes_max: 256 << 20,
            expire_after_ms: 7 * 86_400_000,
            stalled_after_ms: 300_000,
            future_max_ms: 3_600_000,
            vector_cells_max: 4096,
            vector_versions_max: 64,
            ids_max: 4_000_000,
        }
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
            // The sums hold scores that were carried by it.
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
