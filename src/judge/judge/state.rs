//! A judge in a snapshot, and a judge restored from one.
//!
//! Evaluations are not stored. They are computed again over the panes that are held; the report then says
//! the begin and number of these, and all else is as it was judged.

use super::{Detector, Judge, JudgeOptions, Judged, Undecided, Verdict, WindowReport};
use crate::alert::Alert;
use crate::judge::detector_state::DetectorState;
use crate::judge::mending::MendingState;
use crate::window::{PackError, RingState};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is kept of a window besides its panes and what can be computed from them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The alert.
    pub alert: Alert,
    /// Begin of the window at its last judgement.
    pub start_ms: i64,
    /// End of the window at its last judgement.
    pub end_ms: i64,
    /// Its number of events.
    pub n: u64,
    /// The verdict.
    pub verdict: Verdict,
}

/// A judge in a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgeState {
    /// Panes of each window.
    pub rings: Vec<RingState>,
    /// Verdict and alert of each window.
    pub memories: Vec<Memory>,
    /// The detector, where one watches.
    pub detector: Option<DetectorState>,
    /// Recalibration maps of each window.
    pub mendings: Vec<Option<MendingState>>,
    /// The alert of the stream.
    pub alert: Alert,
}

impl Judge {
    /// Its state, for a snapshot.
    pub fn state(&self) -> JudgeState {
        let mending = |r: &WindowReport| r.mending.as_deref().map(MendingState::of);
        JudgeState {
            rings: self.windows.state(),
            memories: self.memories(),
            detector: self.detector().map(Detector::state),
            mendings: self.report.windows.iter().map(mending).collect(),
            alert: self.alert(),
        }
    }

    /// Restores a snapshot; answers the state of its detector if that was made under other terms, or no
    /// detector is configured.
    pub fn restore(
        &mut self,
        state: JudgeState,
        options: &JudgeOptions,
    ) -> Result<Option<DetectorState>, PackError> {
        self.windows.restore(state.rings)?;
        self.remember(&state.memories, state.alert, options)?;
        if state.mendings.len() != self.report.windows.len() {
            return Err(PackError::Corrupt);
        }
        for (report, state) in self.report.windows.iter_mut().zip(&state.mendings) {
            report.mending = match state {
                None => None,
                Some(state) => Some(Arc::new(state.mending().ok_or(PackError::Corrupt)?)),
            };
        }
        self.restore_detector(state.detector, options)
    }

    /// Verdict and alert of each window.
    pub fn memories(&self) -> Vec<Memory> {
        let memory = |(alert, report): (&Alert, &WindowReport)| Memory {
            alert: *alert,
            start_ms: report.start_ms,
            end_ms: report.end_ms,
            n: report.n,
            verdict: report.verdict,
        };
        let windows = self.alerts.iter().zip(&self.report.windows);
        windows.map(memory).collect()
    }

    /// The alert of the stream.
    pub fn alert(&self) -> Alert {
        self.report.alert
    }

    /// Takes over the verdicts and alerts of another judge of the stream, over the panes that are held here.
    pub fn remember(
        &mut self,
        memories: &[Memory],
        alert: Alert,
        options: &JudgeOptions,
    ) -> Result<(), PackError> {
        if memories.len() != self.alerts.len() {
            return Err(PackError::Corrupt);
        }
        for (index, memory) in memories.iter().enumerate() {
            let end_ms = memory.end_ms;
            let decided = !matches!(memory.verdict, Verdict::Undecided(_));
            let judged = match self.evaluate(index, end_ms, options) {
                Err(error) if decided => return Err(error),
                Err(_) => Judged::undecided(Undecided::Capacity),
                Ok(judged) => judged,
            };
            self.alerts[index] = memory.alert;
            let report = &mut self.report.windows[index];
            report.start_ms = memory.start_ms;
            report.end_ms = end_ms;
            report.since_ms = self.windows.since_ms(index, end_ms);
            report.evaluated_at_ms = end_ms;
            report.n = memory.n;
            report.coverage = judged.coverage;
            report.verdict = memory.verdict;
            report.alert = memory.alert.state;
            report.alert_since_ms = memory.alert.since_ms;
            report.numbers = judged.numbers.filter(|_| decided);
        }
        self.report.alert = alert;
        Ok(())
    }

    /// Restores a detector; answers a state that was made under other terms, or where none is configured.
    pub fn restore_detector(
        &mut self,
        state: Option<DetectorState>,
        options: &JudgeOptions,
    ) -> Result<Option<DetectorState>, PackError> {
        let terms = options.detector.as_ref().map(|o| o.terms());
        let Some(state) = state else { return Ok(None) };
        if terms.as_ref() != Some(&state.terms) {
            return Ok(Some(state));
        }
        if let Some(detector) = &mut self.detector {
            detector.restore(&state).map_err(|_| PackError::Corrupt)?;
            self.detector_reported = false;
            self.report_detector();
        }
        Ok(None)
    }
}
