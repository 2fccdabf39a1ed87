//! What a snapshot holds of a judge.

use crate::alert::Alert;
use crate::judge::detector_state::DetectorState;
use crate::judge::recalibration::Recalibration;
use crate::judge::verdict::Verdict;
use crate::stats::overdispersion::{Dispersion, Overdispersion};
use crate::stats::stored::checked;
use crate::window::{PaneState, RingState};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is kept of a window besides its panes and what can be computed from them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WindowVerdict {
    /// The alert.
    pub alert: Alert,
    /// Start of the window at its last judgement.
    #[serde(deserialize_with = "checked")]
    pub start_ms: i64,
    /// End of the window at its last judgement.
    #[serde(deserialize_with = "checked")]
    pub end_ms: i64,
    /// Since when the window had data at its last judgement.
    #[serde(deserialize_with = "checked")]
    pub since_ms: i64,
    /// Its number of events.
    #[serde(deserialize_with = "checked")]
    pub n: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// How much the outcomes of the stream varied, as the evaluation of scores took it.
    pub overdispersion: Option<Overdispersion>,
}

/// A judge in a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgeState {
    /// Panes of each window.
    pub rings: Vec<RingState>,
    /// Verdict and alert of each window.
    pub verdicts: Vec<WindowVerdict>,
    /// What the stream has measured of the dispersion of its outcomes.
    pub dispersion: Dispersion,
    /// The detector, if one watches.
    pub detector: Option<DetectorState>,
    /// Recalibration maps of each window.
    pub recalibrations: Vec<Option<Arc<Recalibration>>>,
    /// The alert of the stream.
    pub alert: Alert,
}

impl JudgeState {
    fn rings(&self) -> impl Iterator<Item = &PaneState> {
        let rings = self.rings.iter();
        rings.flat_map(|r| r.panes.iter().chain(&r.gathering))
    }

    /// Panes of its windows.
    pub fn panes(&self) -> usize {
        self.rings().count()
    }

    /// Bytes of these panes, packed.
    pub fn pane_bytes(&self) -> usize {
        self.rings().map(PaneState::bytes).sum()
    }
}
