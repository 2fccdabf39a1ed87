//! Verdicts, and when they are due.
//!
//! Both `miscalibrated` and `calibrated` need evidence from the test and the interval together
//! ([`crate::stats::tolerance`]): the error exceeds the tolerance, or is within it. Everything else
//! is undecided, with the reason. A window that was evaluated without such evidence reports its
//! numbers; a window that could not be evaluated has none.

use super::comparison::CompareOptions;
use super::detector::DetectorOptions;
use crate::alert::{Condition, Holds, Severity};
use crate::stats::evaluation::Options;
use crate::stats::kernel::window::KernelOptions;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why there is no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Undecided {
    /// Fewer events than the configured least number.
    TooFew,
    /// Its predictions still wait for their outcomes.
    Immature,
    /// No event came, or nothing was judged, for a while.
    Stale,
    /// The watermark stands still though events are counted.
    Stalled,
    /// More events came after their pane was sealed than in time.
    Late,
    /// A sum reached the end of its integer, or an event found no cell left.
    Capacity,
    /// Too many predictions have no outcome.
    Coverage,
    /// Evaluated: too few positives, or negatives, are to be expected to show anything.
    FewOutcomes,
    /// Evaluated: events are clustered, and there are too few clusters to show anything.
    FewClusters,
    /// Evaluated: the error is shown neither to exceed the tolerance nor to be within it.
    Inconclusive,
}

/// What is known of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// The error is shown to be within the tolerance.
    Calibrated,
    /// The error is shown to exceed the tolerance.
    Miscalibrated,
    /// Neither is shown.
    Undecided(Undecided),
}

impl Undecided {
    /// All reasons.
    pub const ALL: [Undecided; 10] = [
        Undecided::TooFew,
        Undecided::Immature,
        Undecided::Stale,
        Undecided::Stalled,
        Undecided::Late,
        Undecided::Capacity,
        Undecided::Coverage,
        Undecided::FewOutcomes,
        Undecided::FewClusters,
        Undecided::Inconclusive,
    ];

    /// Its name, as in labels and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Undecided::TooFew => "too_few",
            Undecided::Immature => "immature",
            Undecided::Stale => "stale",
            Undecided::Stalled => "stalled",
            Undecided::Late => "late",
            Undecided::Capacity => "capacity",
            Undecided::Coverage => "coverage",
            Undecided::FewOutcomes => "few_outcomes",
            Undecided::FewClusters => "few_clusters",
            Undecided::Inconclusive => "inconclusive",
        }
    }
}

impl Verdict {
    /// The verdict without its reason: `calibrated`, `miscalibrated` or `undecided`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Calibrated => "calibrated",
            Verdict::Miscalibrated => "miscalibrated",
            Verdict::Undecided(_) => "undecided",
        }
    }

    /// Whether the window was evaluated, so that numbers stand behind the verdict.
    pub fn is_evaluated(self) -> bool {
        match self {
            Verdict::Calibrated | Verdict::Miscalibrated => true,
            Verdict::Undecided(why) => matches!(
                why,
                Undecided::Inconclusive | Undecided::FewOutcomes | Undecided::FewClusters
            ),
        }
    }

    /// The condition that it puts to an alert.
    pub fn condition(self) -> Condition {
        match self {
            Verdict::Calibrated => Condition::Good,
            Verdict::Miscalibrated => Condition::Bad(Severity::Warn),
            Verdict::Undecided(_) => Condition::Unknown,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Undecided(why) => write!(f, "undecided({})", why.as_str()),
            _ => f.write_str(self.as_str()),
        }
    }
}

/// How windows are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeOptions {
    /// What is computed, with the tolerance; its seed is overridden by the judge.
    pub evaluation: Options,
    /// Fewer events than this are `too_few`; of weighted ones, fewer effective ones.
    pub min_events: u64,
    /// Share of the predictions that must be counted, in [0, 1]: not dropped for want of an
    /// outcome.
    pub coverage_min: f64,
    /// A verdict must be bad this long before its alert fires.
    pub pending_ms: i64,
    /// A verdict must not be bad this long before its alert stops firing.
    pub keep_firing_ms: i64,
    /// An alert that fires again this soon after its end is held longer.
    pub flap_within_ms: i64,
    /// Whether a window's verdict alone raises an alert. Otherwise only the detector does.
    pub window_alerts: bool,
    /// Without an event for this long, values are withdrawn.
    pub stale_after_ms: i64,
    /// The detector of each stream; `None` for none.
    pub detector: Option<DetectorOptions>,
    /// How versions are compared; `None` where they are not.
    pub compare: Option<CompareOptions>,
    /// What a kernel view keeps.
    pub kernel: KernelOptions,
}

impl JudgeOptions {
    /// Hold times of alerts.
    pub fn holds(&self) -> Holds {
        Holds {
            pending_ms: self.pending_ms,
            keep_firing_ms: self.keep_firing_ms,
            flap_within_ms: self.flap_within_ms,
        }
    }
}

impl Default for JudgeOptions {
    /// 500 events: the least n at which the default test was measured to hold its level. An hour
    /// without events is stale; alerts have no hold times. There is no detector, so windows raise
    /// alerts. The defaults of a configuration file differ: a detector raises alerts, and windows
    /// do not.
    fn default() -> JudgeOptions {
        JudgeOptions {
            evaluation: Options::default(),
            min_events: 500,
            coverage_min: 0.5,
            pending_ms: 0,
            keep_firing_ms: 0,
            flap_within_ms: 0,
            window_alerts: true,
            stale_after_ms: 3_600_000,
            detector: None,
            compare: None,
            kernel: KernelOptions::default(),
        }
    }
}
