//! A judge in a snapshot, and a judge restored from one.
//!
//! Evaluations are not stored. They are computed again over the same panes, with the dispersion of
//! outcomes that was known at the judgement. The rest of the report is as it was judged.

use super::Judged;
use super::state::{JudgeState, WindowVerdict};
use super::{Detector, Judge, JudgeOptions, Numbers, Undecided, Verdict, WindowReport};
use crate::alert::Alert;
use crate::judge::detector_state::DetectorState;
use crate::window::PackError;

impl Judge {
    /// Its state, for a snapshot.
    pub fn state(&self) -> JudgeState {
        let windows = self.report.windows.iter();
        JudgeState {
            rings: self.windows.state(),
            verdicts: self.verdicts(),
            dispersion: self.windows.dispersion().clone(),
            detector: self.detector().map(Detector::state),
            recalibrations: windows.map(|w| w.recalibration.clone()).collect(),
            alert: self.alert(),
        }
    }

    /// Restores a snapshot; returns the state of its detector if that was made under other terms,
    /// or no detector is configured.
    pub fn restore(
        &mut self,
        state: JudgeState,
        options: &JudgeOptions,
    ) -> Result<Option<DetectorState>, PackError> {
        self.windows.restore(state.rings)?;
        self.windows.restore_dispersion(state.dispersion);
        self.measure_dispersion();
        self.restore_verdicts(&state.verdicts, state.alert, options)?;
        if state.recalibrations.len() != self.report.windows.len() {
            return Err(PackError::Corrupt);
        }
        if !state.recalibrations.iter().flatten().all(|r| r.is_whole()) {
            return Err(PackError::Corrupt);
        }
        for (report, kept) in self.edit().windows.iter_mut().zip(state.recalibrations) {
            report.recalibration = kept;
        }
        self.restore_detector(state.detector, options)
    }

    /// Verdict and alert of each window. A window that is still stale, though a prediction that
    /// waits came since, is stored as immature: a restore that finds only stale windows takes the
    /// stream for a stale one.
    pub fn verdicts(&self) -> Vec<WindowVerdict> {
        let returned = !self.stale && self.report.due_ms.is_some();
        let known = |(index, report): (usize, &WindowReport)| {
            let (mut verdict, numbers, alert) = self.judged(index, report);
            let scores = numbers.and_then(Numbers::scores);
            if returned && verdict == Verdict::Undecided(Undecided::Stale) {
                verdict = Verdict::Undecided(Undecided::Immature);
            }
            WindowVerdict {
                alert,
                start_ms: report.start_ms,
                end_ms: report.end_ms,
                since_ms: report.since_ms,
                n: report.n,
                verdict,
                overdispersion: scores.and_then(|e| e.overdispersion),
            }
        };
        self.report.windows.iter().enumerate().map(known).collect()
    }

    /// The alert of the stream.
    pub fn alert(&self) -> Alert {
        self.report.alert
    }

    /// Takes over the verdicts and alerts of another judge of the stream, over the panes that are
    /// held here. [Set](Judge::set_last_event_ms) the newest event time first.
    pub fn restore_verdicts(
        &mut self,
        verdicts: &[WindowVerdict],
        alert: Alert,
        options: &JudgeOptions,
    ) -> Result<(), PackError> {
        if verdicts.len() != self.alerts.len() {
            return Err(PackError::Corrupt);
        }
        self.withheld.clear();
        for (index, known) in verdicts.iter().enumerate() {
            let end_ms = known.end_ms;
            let evaluated = known.verdict.is_evaluated();
            let dispersion = known.overdispersion;
            let judged = match self.evaluate(index, end_ms, false, dispersion, options) {
                Err(error) if evaluated => return Err(error),
                Err(_) => Judged::undecided(Undecided::Capacity),
                Ok(judged) => judged,
            };
            self.alerts[index] = known.alert;
            let report = &mut self.edit().windows[index];
            report.start_ms = known.start_ms;
            report.end_ms = end_ms;
            report.since_ms = known.since_ms;
            report.evaluated_at_ms = end_ms;
            report.n = known.n;
            report.coverage = judged.coverage;
            report.verdict = known.verdict;
            report.alert = known.alert.state;
            report.alert_since_ms = known.alert.since_ms;
            report.numbers = judged.numbers.filter(|_| evaluated);
        }
        self.edit().alert = alert;
        self.stale = self.all_stale();
        Ok(())
    }

    /// Restores a detector; returns its state if that was made under other terms, or no detector is
    /// configured.
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
