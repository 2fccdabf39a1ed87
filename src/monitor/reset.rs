//! Moves the watermark of a snapshot back, after records with future times have moved it ahead.
//!
//! The reset drops everything after the given time: open and sealed panes, verdicts on them, rows
//! that wait for other versions, and what the dispersion of outcomes is measured by. Positions,
//! counters, pending predictions, detectors, and the panes of windows before that time stay. Events
//! after that time count again. Events before it are late, as they were before the reset.

use super::snapshot::Snapshot;
use crate::alert::Alert;
use crate::judge::{JudgeState, Undecided, Verdict};
use crate::window::PaneState;

/// What a reset took back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reset {
    /// How far event time had come.
    pub was_ms: Option<i64>,
    /// Panes that were dropped.
    pub panes: usize,
    /// Windows whose verdict was dropped.
    pub verdicts: usize,
}

impl Snapshot {
    /// See the module.
    pub fn reset_watermark(&mut self, to_ms: i64) -> Reset {
        let mut reset = Reset {
            was_ms: self
                .partitions
                .newest_ms()
                .max(self.partitions.frontier_ms()),
            ..Reset::default()
        };
        self.partitions.reset(to_ms);
        let mut watermarks = Vec::new();
        for model in &mut self.models {
            let watermark_ms = to_ms - to_ms.rem_euclid(model.ladder.pane_ms);
            model.sealed_until_ms = model.sealed_until_ms.min(watermark_ms);
            watermarks.push((watermark_ms, model.ladder.pane_ms.max(1)));
        }
        let watermark_of = |model: u32| {
            watermarks
                .get(model as usize)
                .copied()
                .unwrap_or((to_ms, 1))
        };
        for s in &mut self.streams {
            let (watermark_ms, pane_ms) = watermark_of(s.model);
            let before = s.open.len() + s.pending.len();
            s.newest_ms = s.newest_ms.min(to_ms);
            s.open.retain(|(start_ms, _)| *start_ms <= watermark_ms);
            s.late_outcomes
                .retain(|(start_ms, _)| *start_ms <= watermark_ms);
            s.pending.retain(|pane| pane.end_ms <= watermark_ms);
            reset.panes += before - s.open.len() - s.pending.len();
            for judge in &mut s.judges {
                reset_judge(judge, watermark_ms, pane_ms, &mut reset);
            }
        }
        for v in &mut self.vectors {
            let (watermark_ms, pane_ms) = watermark_of(v.model);
            v.newest_ms = v.newest_ms.min(to_ms);
            for view in &mut v.views {
                let before = view.open.open.len() + view.pending.open.len();
                view.open.open.retain(|pane| pane.start_ms <= watermark_ms);
                view.pending.open.retain(|pane| pane.end_ms <= watermark_ms);
                reset.panes += before - view.open.open.len() - view.pending.open.len();
                reset_judge(&mut view.judge, watermark_ms, pane_ms, &mut reset);
            }
        }
        for c in &mut self.compared {
            c.pairing.reset(watermark_of(c.model).0);
        }
        reset
    }
}

/// Resets a judge; `pane_ms` is the width of the base panes.
fn reset_judge(judge: &mut JudgeState, watermark_ms: i64, pane_ms: i64, reset: &mut Reset) {
    // A pane of the future would keep out all panes before it until its time has come.
    judge.dispersion.cut(watermark_ms.div_euclid(pane_ms));
    let stays = |pane: &PaneState| pane.end_ms <= watermark_ms;
    for ring in &mut judge.rings {
        let before = ring.panes.len() + ring.gathering.len();
        ring.panes.retain(stays);
        ring.gathering.retain(stays);
        reset.panes += before - ring.panes.len() - ring.gathering.len();
    }
    for window in judge
        .verdicts
        .iter_mut()
        .filter(|w| w.end_ms > watermark_ms)
    {
        window.verdict = Verdict::Undecided(Undecided::TooFew);
        (window.start_ms, window.end_ms, window.n) = (0, 0, 0);
        window.alert = since(window.alert, watermark_ms);
        reset.verdicts += 1;
    }
    judge.alert = since(judge.alert, watermark_ms);
    if let Some(detector) = &mut judge.detector {
        detector.at_ms = detector.at_ms.map(|ms| ms.min(watermark_ms));
    }
}

/// An alert that began no later than `watermark_ms`.
fn since(alert: Alert, watermark_ms: i64) -> Alert {
    let by = |ms: Option<i64>| ms.map(|ms| ms.min(watermark_ms));
    Alert {
        since_ms: by(alert.since_ms),
        bad_ms: by(alert.bad_ms),
        page_ms: by(alert.page_ms),
        ended_ms: by(alert.ended_ms),
        counts_from_ms: by(alert.counts_from_ms),
        ..alert
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::Key;
    use crate::monitor::snapshot::StreamState;
    use crate::stats::overdispersion::{Dispersion, PaneTotals};
    use crate::window::LateOutcomes;

    #[test]
    fn late_outcomes_that_go_with_panes_after_the_time_go_with_them() {
        let late = |ms: i64| (ms, vec![LateOutcomes::default()]);
        let stream = StreamState {
            late_outcomes: [10, 20, 30].map(late).to_vec(),
            ..StreamState::new(&Key::new("m", "", ""))
        };
        let mut snapshot = Snapshot {
            streams: vec![stream],
            ..Snapshot::default()
        };
        snapshot.reset_watermark(20);
        assert_eq!(snapshot.streams[0].late_outcomes, [late(10), late(20)]);
    }

    #[test]
    fn a_pane_of_the_future_keeps_none_after_the_time_out_of_the_dispersion() {
        let pane = PaneTotals {
            n: 1,
            ..PaneTotals::default()
        };
        let mut judge = JudgeState::default();
        judge.dispersion.observe(1_000_000, &pane);
        let stream = StreamState {
            judges: vec![judge],
            ..StreamState::new(&Key::new("m", "", ""))
        };
        let mut snapshot = Snapshot {
            streams: vec![stream],
            ..Snapshot::default()
        };
        snapshot.reset_watermark(20);
        let found = &mut snapshot.streams[0].judges[0].dispersion;
        found.observe(20, &pane);
        let mut expected = Dispersion::default();
        expected.observe(20, &pane);
        assert_eq!(*found, expected);
    }
}
