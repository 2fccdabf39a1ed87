//! The recalibration of a window, fitted when the window is judged.

use super::Judge;
use crate::judge::options::JudgeOptions;
use crate::judge::recalibration::{JudgedWindow, Recalibration};
use crate::judge::verdict::Verdict;
use crate::window::{PackError, PaneSums};

impl Judge {
    /// Fits recalibration maps of scores from the window that was just judged.
    pub(super) fn refit(&mut self, index: usize, verdict: Verdict, options: &JudgeOptions) {
        if self.report.id.view.is_vector() {
            return;
        }
        let report = &self.report.windows[index];
        let window = JudgedWindow {
            start_ms: report.start_ms,
            end_ms: report.end_ms,
            n: report.n,
            verdict,
        };
        let total = || match self.windows.total(index, window.end_ms)? {
            PaneSums::Scores(sums) => Ok(sums),
            PaneSums::Vector(_) => Err(PackError::Corrupt),
        };
        // Sums that overflow are reported by the verdict.
        let next = Recalibration::step(report.recalibration.as_ref(), window, options, total)
            .unwrap_or(None);
        self.edit().windows[index].recalibration = next;
    }
}
