//! The detector before a pane that may raise its alert.

use crate::judge::detector::Detector;
use crate::judge::report::DetectorStep;
use crate::window::Packed;

/// The detector before a pane: a copy of 24 kB, which most panes drop again unused.
pub(super) struct Before<'p> {
    pub(super) detector: Box<Detector>,
    pub(super) pane: &'p Packed,
    pub(super) span_ms: (i64, i64),
}

impl Before<'_> {
    pub(super) fn step(&self) -> DetectorStep {
        DetectorStep {
            before: self.detector.state(),
            share: self.detector.share(),
            pane: self.pane.clone(),
            span_ms: self.span_ms,
        }
    }
}
