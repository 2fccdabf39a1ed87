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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{JudgeOptions, StreamId, Verdict};
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::rng::Rng;
    use crate::stats::view::View;
    use crate::window::{Ladder, Pane, WindowSpec, sums_of};

    #[test]
    fn an_hour_of_a_model_that_is_wrong_each_night_is_miscalibrated() {
        const HOUR_MS: i64 = 60 * 60 * 1000;
        let grid = Grid::new(Axis::Linear, 8);
        let hour = WindowSpec::time("1h", HOUR_MS);
        let ladder = Ladder::new(vec![hour], 0).expect("a valid ladder");
        let id = StreamId {
            model: "fraud".to_owned(),
            version: String::new(),
            segment: String::new(),
            view: View::Binary,
        };
        let (mut judge, options) = (Judge::new(id, &ladder, grid), JudgeOptions::plain());
        let (mut rng, mut changes) = (Rng::new(3), Vec::new());
        let panes = HOUR_MS / ladder.pane_ms;
        for pane in 0..4 * 24 * panes {
            let end_ms = (pane + 1) * ladder.pane_ms;
            let factor = match pane / panes % 24 {
                0..16 => 1.0,
                _ => 2.0,
            };
            let events = (0..600).map(|_| {
                let z = rng.uniform();
                (z, rng.uniform() < factor * z / (1.0 - z + factor * z))
            });
            let sums = sums_of(grid, events.collect::<Vec<_>>());
            let pane = Pane::of_scores(end_ms - ladder.pane_ms, end_ms, &sums);
            judge.set_last_event_ms(end_ms - 1);
            judge.seal(Some(&pane), end_ms, &options, &mut changes);
        }
        let report = judge.report();
        assert_eq!(report.windows[0].verdict, Verdict::Miscalibrated);
        let of_window = report.windows[0].scores().and_then(|e| e.overdispersion);
        assert_eq!(of_window, judge.dispersion_within(HOUR_MS));
        // Wider stretches say that outcomes depend on each other.
        let all = judge.windows().dispersion().measure().expect("many panes");
        assert!(all.factor > 20.0 && all.gated().is_some(), "{all:?}");
    }
}
