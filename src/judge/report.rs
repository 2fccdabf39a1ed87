//! What a judge reports: one report per window of a stream, and the changes from one to the next.

use super::coverage::Coverage;
use super::detector_report::DetectorReport;
use super::detector_state::DetectorState;
use super::options::JudgeOptions;
use super::recalibration::Recalibration;
use super::stream::StreamId;
use super::verdict::{Numbers, Undecided, Verdict};
use crate::alert::{Alert, AlertState, Condition};
use crate::stats::axis::Grid;
use crate::stats::evaluation::Evaluation;
use crate::stats::kernel::window::WindowEvaluation;
use crate::stats::multiclass;
use crate::stats::overdispersion::Overdispersion;
use crate::window::{Ladder, Packed, PaneSums};
use std::sync::Arc;

/// The latest judgement of one window of one stream.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowReport {
    /// Name of the window.
    pub window: String,
    /// Event time at which the window begins.
    pub start_ms: i64,
    /// Event time at which it ends, exclusive.
    pub end_ms: i64,
    /// Start of the oldest pane in it: later than `start_ms` while the stream is younger than the
    /// window, or was silent when it began.
    pub since_ms: i64,
    /// Number of events.
    pub n: u64,
    /// How many predictions have an outcome; `None` if none was missing.
    pub coverage: Option<Box<Coverage>>,
    /// The verdict.
    pub verdict: Verdict,
    /// State of the window's alert.
    pub alert: AlertState,
    /// When that state began.
    pub alert_since_ms: Option<i64>,
    /// All numbers; `None` if the window was not evaluated.
    pub numbers: Option<Numbers>,
    /// Its result among all classes; for class views only, while decided.
    pub family: Option<Family>,
    /// Event time of the judgement: the end of the newest pane in it.
    pub evaluated_at_ms: i64,
    /// Its recalibration; `None` unless it was miscalibrated since it was last calibrated.
    pub recalibration: Option<Arc<Recalibration>>,
}

impl WindowReport {
    /// The report of a window that was never judged.
    pub fn blank(name: &str) -> WindowReport {
        WindowReport {
            window: name.to_owned(),
            start_ms: 0,
            end_ms: 0,
            since_ms: 0,
            n: 0,
            coverage: None,
            verdict: Verdict::Undecided(Undecided::TooFew),
            alert: AlertState::Inactive,
            alert_since_ms: None,
            numbers: None,
            family: None,
            evaluated_at_ms: 0,
            recalibration: None,
        }
    }

    /// The numbers, if the verdict rests on them; `None` if the window was not evaluated.
    pub fn evaluated(&self) -> Option<&Numbers> {
        self.numbers
            .as_ref()
            .filter(|_| self.verdict.is_evaluated())
    }

    /// The numbers of single scores.
    pub fn scores(&self) -> Option<&Evaluation> {
        self.evaluated()?.scores()
    }

    /// The numbers of vectors by cells.
    pub fn cells(&self) -> Option<&multiclass::Evaluation> {
        self.evaluated()?.cells()
    }

    /// The numbers of the kernel test.
    pub fn kernel(&self) -> Option<&WindowEvaluation> {
        self.evaluated()?.kernel()
    }

    /// Start of its data.
    pub fn begins_ms(&self) -> i64 {
        self.start_ms.max(self.since_ms)
    }

    /// Lower end of its interval, or 0.
    pub fn lower(&self) -> f64 {
        self.numbers.as_ref().map_or(0.0, Numbers::lower)
    }
}

/// A class's part in its family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Family {
    /// Classes that are tested together.
    pub classes: u32,
    /// p-value of the class, adjusted for all of them.
    pub adjusted_p_value: f64,
    /// Smallest adjusted p-value: that of the hypothesis that all classes are calibrated.
    pub p_value: f64,
    /// The class is rejected at α of the whole family.
    pub reject: bool,
}

/// The latest judgements of one stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamReport {
    /// The stream.
    pub id: StreamId,
    /// Newest event time.
    pub last_event_ms: i64,
    /// Event time at which the oldest predictions that wait for outcomes are mature.
    pub due_ms: Option<i64>,
    /// How much more its outcomes vary than independent ones, between stretches of two hours at
    /// most; `None` while that is not known, and for vectors. Evaluations have that of their
    /// window.
    pub overdispersion: Option<Overdispersion>,
    /// The report of the detector; `None` without a detector, or before its first pane.
    pub detector: Option<Arc<DetectorReport>>,
    /// The alert of the stream.
    pub alert: Alert,
    /// One report for each window of the ladder, in its order.
    pub windows: Vec<WindowReport>,
}

impl StreamReport {
    /// The report of a stream that was never judged.
    pub fn blank(id: StreamId, ladder: &Ladder) -> StreamReport {
        let windows = ladder.windows.iter();
        StreamReport {
            id,
            last_event_ms: 0,
            due_ms: None,
            overdispersion: None,
            detector: None,
            alert: Alert::default(),
            windows: windows.map(|w| WindowReport::blank(&w.name)).collect(),
        }
    }

    /// Whether the verdicts of all windows are withdrawn, because data stopped or the watermark is
    /// stalled.
    pub fn is_withdrawn(&self) -> bool {
        let withdrawn = [Undecided::Stale, Undecided::Stalled].map(Verdict::Undecided);
        self.windows.iter().all(|w| withdrawn.contains(&w.verdict))
    }

    /// Newest event time; `None` while every event came too late to count.
    pub fn last_event_ms(&self) -> Option<i64> {
        (self.last_event_ms != i64::MIN).then_some(self.last_event_ms)
    }
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The verdict of a window.
    Verdict {
        /// Before.
        from: Verdict,
        /// After.
        to: Verdict,
    },
    /// The detector raised an alarm, or its alarm is over.
    Detector {
        /// Whether it was raised.
        alarm: bool,
        /// Whether it confirms one that was raised before and is not over.
        again: bool,
    },
    /// The state of the window's alert: its verdict, held.
    Alert {
        /// Before.
        from: AlertState,
        /// After.
        to: AlertState,
    },
    /// The alert of the stream, which notifications are sent for.
    Stream {
        /// Before.
        from: Alert,
        /// After.
        to: Alert,
    },
}

/// What was known of a stream when its alert changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The alert after the change.
    pub alert: Alert,
    /// The window that speaks for the stream.
    pub window: WindowReport,
    /// What the detector said.
    pub detector: Option<Arc<DetectorReport>>,
    /// Everything it rested on, for a record.
    pub evidence: Option<Box<AlertGround>>,
}

/// Everything a change of an alert rested on.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertGround {
    /// The alert before.
    pub from: Alert,
    /// The condition that was put to it.
    pub condition: Condition,
    /// The stream's report, with the alert after the change.
    pub report: StreamReport,
    /// The sums of its windows; `None` for those that are undecided or were judged before.
    pub sums: Vec<Option<PaneSums>>,
    /// How windows were judged.
    pub options: JudgeOptions,
    /// Cells.
    pub grid: Grid,
    /// The detector before the pane that it took last, and that pane, if it took one now.
    pub step: Option<DetectorStep>,
}

/// One step of a detector.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectorStep {
    /// Its state before.
    pub before: DetectorState,
    /// What it stakes of what the budget hands out.
    pub share: f64,
    /// The pane.
    pub pane: Packed,
    /// Its start and end.
    pub span_ms: (i64, i64),
}

/// A change of a window's verdict or alert, of the detector, or of the stream's alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The stream.
    pub stream: StreamId,
    /// Name of the window; `detector` for the stream's detector; for the stream's alert, the window
    /// that speaks for the stream.
    pub window: String,
    /// When: event time for judgements, the clock's for staleness.
    pub at_ms: i64,
    /// What changed.
    pub step: Step,
    /// The change in words, with its numbers.
    pub sentence: String,
    /// What was known, if a notification may be needed.
    pub facts: Option<Arc<Facts>>,
}
