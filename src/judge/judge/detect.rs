//! What a judge does with the detector of its stream.

use super::Judge;
use crate::judge::detector::Detector;
use crate::judge::detector_report::sentence;
use crate::judge::report::{Change, DetectorStep, Step};
use crate::stats::sequential::Outcome;
use crate::window::{Packed, Pane};
use std::sync::Arc;

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

impl Judge {
    /// Lets a detector that has seen nothing watch the stream.
    pub fn watch_by(&mut self, detector: Detector) {
        self.detector = Some(Box::new(detector));
    }

    /// Shows the pane to the detector; answers what it was before.
    pub(super) fn step_detector<'p>(
        &mut self,
        pane: Option<&'p Pane>,
        changes: &mut Vec<Change>,
    ) -> Option<Before<'p>> {
        let (detector, pane) = (self.detector.as_mut()?, pane?);
        detector.observe_missing(pane);
        if !self.report.alert.counts(pane.start_ms) {
            return None;
        }
        // The windows that take the pane report one that does not unpack.
        let packed = pane.sums.scores()?;
        let sums = packed.unpack(self.grid).ok()?;
        let before = Before {
            detector: detector.clone(),
            pane: packed,
            span_ms: (pane.start_ms, pane.end_ms),
        };
        let outcome = detector.observe(&sums, before.span_ms);
        let told = outcome != Outcome::Quiet
            || detector.held_ms().is_some() != before.detector.held_ms().is_some();
        self.detector_reported = false;
        // The report is made when it is read, but at once where an alert depends on it.
        if told || self.report.detector.is_none() {
            self.report_detector();
        }
        if told && let Some(report) = self.report.detector.as_deref() {
            changes.push(Change {
                stream: self.report.id.clone(),
                window: "detector".to_owned(),
                at_ms: pane.end_ms,
                step: Step::Detector {
                    alarm: outcome == Outcome::Alarm,
                    again: outcome == Outcome::Alarm
                        && report.alarm.as_ref().is_some_and(|a| a.times > 1),
                },
                sentence: sentence(&self.report.id.to_string(), report),
                facts: None,
            });
        }
        self.windows.know(packed, sums);
        Some(before)
    }

    /// Puts into the report what the detector says now; done before reports are read, not at each
    /// pane.
    pub fn report_detector(&mut self) {
        self.measure_dispersion();
        if let (false, Some(detector)) = (self.detector_reported, &self.detector) {
            let report = detector.report().map(Arc::new);
            self.edit().detector = report;
            self.detector_reported = true;
        }
    }

    /// Says whether the fleet calls the stream.
    pub fn call(&mut self, called: bool, at_ms: i64) {
        if let Some(detector) = &mut self.detector
            && detector.called_ms().is_some() != called
        {
            detector.call(called, at_ms);
            self.detector_reported = false;
        }
    }
}
