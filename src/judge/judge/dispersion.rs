//! How much the outcomes of the stream vary, as far as it concerns a window.
//!
//! A stream measures its dispersion over days, between stretches of event time of several widths. A
//! window takes the widths up to its own. Beyond two hours none counts, whatever the window: most
//! streams have a daily cycle, and a model that is wrong every night, or an error that grows over
//! days, differs between wide stretches as if outcomes depended on each other. Of stretches of two
//! hours at most, a change at dusk and one at dawn touch a sixth of the differences, and the
//! estimate leaves out the largest fifth.

use super::Judge;
use crate::stats::overdispersion::Overdispersion;

/// Longest dependence that is distinguished from a changing error.
const DEPENDENCE_MS_MAX: i64 = 2 * 60 * 60 * 1000;

impl Judge {
    /// Measures again if panes have changed, and puts the overdispersion of the stream into the
    /// report.
    pub(super) fn measure_dispersion(&mut self) {
        if !self.windows.take_dispersed() {
            return;
        }
        self.scales = self.windows.dispersion().scales();
        let overdispersion = self.dispersion_within(i64::MAX);
        if self.report.overdispersion != overdispersion {
            self.edit().overdispersion = overdispersion;
        }
    }

    /// The overdispersion that concerns a window of this width.
    pub(super) fn dispersion_within(&self, width_ms: i64) -> Option<Overdispersion> {
        let scales = self.scales.as_ref()?;
        let pane_ms = self.windows.pane_ms().max(1);
        Some(scales.within(width_ms.min(DEPENDENCE_MS_MAX) as f64 / pane_ms as f64))
    }
}
