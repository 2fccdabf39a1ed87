//! One judgement of one window in short, for histories and timings.
//!
//! A judge makes these only if it has a stopwatch, that is, in a running service. No judgement
//! depends on them: they are derived, and nobody has to take them.

use super::report::WindowReport;
use super::stream::StreamId;
use super::verdict::{Numbers, Verdict};
use crate::stats::tolerance::Ratio;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// A judgement of a window of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowJudgement {
    /// The stream.
    pub stream: StreamId,
    /// Name of the window.
    pub window: String,
    /// The result.
    pub point: HistoryPoint,
    /// How long the evaluation took; `None` if the window was not evaluated.
    pub nanos: Option<u64>,
}

/// A window at the end of one of its panes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HistoryPoint {
    /// Event time at which the window ended.
    pub end_ms: i64,
    /// Number of events.
    pub n: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// The ℓ2-ECE, or for a kernel view the kernel calibration error; `None` if the window was not
    /// evaluated.
    pub error: Option<HistoryError>,
    /// Observed divided by expected outcomes of the rarer kind, if it may decide.
    pub ratio: Option<HistoryError>,
    /// Verdicts of older windows that this point stands for besides its own. A file has them apart.
    #[serde(skip)]
    pub besides: Verdicts,
}

/// How many verdicts of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    /// Calibrated ones.
    pub calibrated: u32,
    /// Undecided ones, for any reason.
    pub undecided: u32,
    /// Miscalibrated ones.
    pub miscalibrated: u32,
}

/// An error, or a ratio, with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HistoryError {
    /// Estimate; for the ℓ2-ECE the debiased one, 0 if its square is negative.
    pub estimate: f32,
    /// Lower end of the interval.
    pub lower: f32,
    /// Upper end.
    pub upper: f32,
}

impl HistoryPoint {
    /// The last judgement of a window.
    pub fn of(report: &WindowReport) -> HistoryPoint {
        HistoryPoint {
            end_ms: report.end_ms,
            n: report.n,
            verdict: report.verdict,
            error: report.evaluated().map(HistoryError::of),
            ratio: (report.scores())
                .and_then(|e| e.tolerance.ratio)
                .map(HistoryError::of_ratio),
            besides: Verdicts::default(),
        }
    }

    /// All verdicts that it stands for.
    pub fn verdicts(&self) -> Verdicts {
        let mut all = self.besides;
        let own = match self.verdict {
            Verdict::Calibrated => &mut all.calibrated,
            Verdict::Undecided(_) => &mut all.undecided,
            Verdict::Miscalibrated => &mut all.miscalibrated,
        };
        *own = own.saturating_add(1);
        all
    }
}

impl Verdicts {
    /// Of all kinds.
    pub fn total(&self) -> u64 {
        [self.calibrated, self.undecided, self.miscalibrated]
            .map(u64::from)
            .iter()
            .sum()
    }
}

impl AddAssign for Verdicts {
    fn add_assign(&mut self, more: Verdicts) {
        self.calibrated = self.calibrated.saturating_add(more.calibrated);
        self.undecided = self.undecided.saturating_add(more.undecided);
        self.miscalibrated = self.miscalibrated.saturating_add(more.miscalibrated);
    }
}

impl HistoryError {
    fn of(numbers: &Numbers) -> HistoryError {
        let estimate = match numbers {
            Numbers::Kernel(e) => e.kce,
            _ => numbers.ece_squared().unwrap_or(0.0).max(0.0).sqrt(),
        };
        HistoryError {
            estimate: estimate as f32,
            lower: numbers.lower() as f32,
            upper: numbers.upper() as f32,
        }
    }

    fn of_ratio(ratio: Ratio) -> HistoryError {
        HistoryError {
            estimate: ratio.estimate() as f32,
            lower: ratio.lower as f32,
            upper: ratio.upper as f32,
        }
    }
}
