//! The views of a model, those of scores and those of vectors, and the name of a version.

use crate::collect::{Event, Key, LateVector, Names, ROLL_UP};
use crate::judge::{ModelPlan, StreamId};
use crate::stats::multiclass::sums::Shape;
use crate::stats::view::View;
use crate::window::{VectorCorrection, ViewShape, ViewSums};
use std::sync::Arc;

/// The name of a version; its events with segments and its events without form two versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionName<'a> {
    /// Name of the model as it came.
    pub model: &'a str,
    /// Version.
    pub version: &'a str,
    /// Whether its events have segments.
    pub segmented: bool,
}

impl<'a> VersionName<'a> {
    /// The version of an event.
    pub fn of_event(event: &Event<'a>) -> VersionName<'a> {
        VersionName {
            model: event.model,
            version: event.version,
            segmented: !event.segment.is_empty(),
        }
    }

    /// The version of a stream of scores.
    pub fn of_key(key: &'a Key) -> VersionName<'a> {
        VersionName {
            model: key.model(),
            version: key.version(),
            segmented: !key.segment().is_empty(),
        }
    }

    /// The version of a vector stream.
    pub fn of_stream(id: &'a StreamId) -> VersionName<'a> {
        VersionName {
            model: &id.model,
            version: &id.version,
            segmented: !id.segment.is_empty(),
        }
    }

    /// Hash of all bytes.
    pub fn hash(self) -> u64 {
        Names::new(self.model, self.version, self.segment()).hash()
    }

    /// Segment of its vector streams.
    fn segment(self) -> &'static str {
        if self.segmented { ROLL_UP } else { "" }
    }

    /// Its vector stream of this view; one with segments is under segment `*`.
    pub fn stream(self, view: View) -> StreamId {
        StreamId {
            model: self.model.to_owned(),
            version: self.version.to_owned(),
            segment: self.segment().to_owned(),
            view,
        }
    }
}

/// A pane of a vector view without events, with room for `cells_max` cells; `None` for a scalar
/// view.
pub fn blank(plan: &ModelPlan, view: View, cells_max: usize) -> Option<Arc<ViewSums>> {
    let classes = plan.classes.len();
    let shape = match view {
        View::Kernel => ViewShape::Kernel {
            classes,
            keeping: plan.judge.kernel,
        },
        _ => ViewShape::Cells(Shape {
            view: view.cells()?,
            classes,
            cells_max,
            weighted: plan.grid.is_weighted(),
        }),
    };
    let mut blank = shape.blank()?;
    blank.set_cells_max(cells_max);
    Some(Arc::new(blank))
}

/// The vector views of a model.
pub fn vectors(plan: &ModelPlan) -> impl Iterator<Item = View> {
    plan.views.iter().copied().filter(|v| v.is_vector())
}

/// The scalar views of a model, which the collector counts.
pub fn scalars(plan: &ModelPlan) -> impl Iterator<Item = View> {
    plan.views.iter().copied().filter(|v| !v.is_vector())
}

/// The correction that a late outcome makes.
pub fn correction(late: &LateVector) -> VectorCorrection<'_> {
    VectorCorrection {
        time_ms: late.time_ms,
        vector: late.vector(),
        before: late.before,
        implied: late.implied,
        now: late.now,
    }
}
