//! One judgement of one window in short, for histories and timings.
//!
//! A judge makes these only where a stopwatch is handed in, that is in a running service. Nothing
//! that is judged depends on them: they are derived, and nobody has to take them.

use super::report::WindowReport;
use super::stream::StreamId;
use super::verdict::{Numbers, Verdict};
use serde::{Deserialize, Serialize};

/// A judgement of a window of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowJudgement {
    /// The stream.
    pub stream: StreamId,
    /// Name of the window.
    pub window: String,
    /// What came of it.
    pub point: HistoryPoint,
    /// How long the evaluation took; `None` where the window was not evaluated.
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
    /// The error; `None` where the window was not evaluated.
    pub error: Option<HistoryError>,
}

/// An error with its interval: the ℓ2-ECE, of a kernel view the kernel calibration error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HistoryError {
    /// Debiased estimate, 0 where its square is negative.
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
        }
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
}
