//! How windows are judged.

use super::comparison::CompareOptions;
use super::detector::DetectorOptions;
use crate::alert::Holds;
use crate::stats::evaluation::Options;
use crate::stats::kernel::window::KernelOptions;

/// How windows are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeOptions {
    /// What is computed, with the tolerance; its seed is overridden by the judge.
    pub evaluation: Options,
    /// Fewer events than this are `too_few`; for weighted events, fewer effective events.
    pub min_events: u64,
    /// Least share of the predictions that must have an outcome (implied ones count), in [0, 1].
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
    /// How versions are compared; `None` if they are not.
    pub compare: Option<CompareOptions>,
    /// What a kernel view keeps.
    pub kernel: KernelOptions,
}

impl JudgeOptions {
    /// Options without a configuration file.
    ///
    /// 500 events: the least n at which the default test was measured to hold its level. An hour
    /// without events is stale; alerts have no hold times. There is no detector, so windows raise
    /// alerts. The defaults of a configuration file differ: a detector raises alerts, and windows
    /// do not.
    pub fn plain() -> JudgeOptions {
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

    /// Hold times of alerts.
    pub fn holds(&self) -> Holds {
        Holds {
            pending_ms: self.pending_ms,
            keep_firing_ms: self.keep_firing_ms,
            flap_within_ms: self.flap_within_ms,
        }
    }
}
