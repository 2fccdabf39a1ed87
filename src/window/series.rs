//! The series of base panes by which the dispersion of a stream is measured.
//!
//! It takes each base pane once, in whatever order, and late corrections of panes. So it is the
//! same whether an outcome came before its pane was sealed here or after.

use super::pane::{Correction, Pane};
use super::windows::Windows;
use crate::stats::overdispersion::{Dispersion, PaneTotals};

impl Windows {
    /// How much the outcomes vary over all base panes that were taken, in whatever order.
    pub fn dispersion(&self) -> &Dispersion {
        &self.dispersion
    }

    /// Restores the dispersion of a snapshot.
    pub fn restore_dispersion(&mut self, dispersion: Dispersion) {
        (self.dispersion, self.dispersed) = (dispersion, true);
    }

    /// Whether the dispersion may have changed since the last call.
    pub fn take_dispersed(&mut self) -> bool {
        std::mem::take(&mut self.dispersed)
    }

    /// Adds the dispersion of the windows of other partitions.
    pub(super) fn merge_dispersion(&mut self, theirs: &Dispersion) {
        self.dispersion.merge(theirs);
        self.dispersed = true;
    }

    /// Takes a base pane into the dispersion.
    pub(super) fn disperse(&mut self, pane: &Pane) {
        if let Some(sums) = pane.sums.scores() {
            self.dispersion
                .observe(self.number(pane.start_ms), sums.totals());
            self.dispersed = true;
        }
    }

    /// Takes a correction of a base pane into the dispersion.
    pub(super) fn disperse_correction(&mut self, c: &Correction) {
        let [minus, plus] = [&c.minus, &c.plus].map(PaneTotals::of);
        self.dispersion
            .revise(self.number(c.start_ms), &minus, &plus);
        self.dispersed = true;
    }

    /// The number of a base pane since the epoch.
    fn number(&self, start_ms: i64) -> i64 {
        start_ms.div_euclid(self.pane_ms.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::{Axis, Grid};
    use crate::window::sums_of;
    use crate::window::{Ladder, PaneSums, WindowSpec};

    #[test]
    fn an_outcome_that_comes_after_its_pane_was_sealed_counts_as_one_before() {
        let grid = Grid::new(Axis::Linear, 4);
        let ladder = Ladder::new(vec![WindowSpec::time("60", 60)], 0).expect("a ladder");
        let sealed = |events: &[(f64, bool)]| {
            let sums = sums_of(grid, events.iter().copied());
            let pane = Pane::of_scores(0, ladder.pane_ms, &sums);
            let mut windows = Windows::new(&ladder, PaneSums::Scores(grid));
            windows.seal(Some(&pane), pane.end_ms).expect("sound");
            windows
        };
        let before = sealed(&[(0.2, true), (0.7, true), (0.9, false)]);
        let mut after = sealed(&[(0.2, false), (0.7, true)]);
        assert!(after.take_dispersed() && !after.take_dispersed());
        assert_ne!(after.dispersion(), before.dispersion());
        let correction = Correction {
            start_ms: 0,
            minus: sums_of(grid, [(0.2, false)]),
            plus: sums_of(grid, [(0.2, true), (0.9, false)]),
            labelled: Vec::new(),
        };
        after.correct(&correction).expect("its own pane");
        assert_eq!(after.dispersion(), before.dispersion());
        assert!(after.take_dispersed());
    }
}
