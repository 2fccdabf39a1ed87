//! A monitor rebuilt from the windows of all partitions, when one comes or goes.

use super::Monitor;
use crate::judge::StreamId;
use crate::monitor::activity::Activity;
use crate::monitor::retained::Contribution;
use crate::monitor::snapshot::VerdictState;

impl Monitor {
    /// A monitor of the windows of all partitions, in place of `old`, with what is known of their verdicts.
    /// It stands at the furthest line of all and judges from the next slides on; until then it shows what
    /// was judged last.
    pub fn rebuild(
        old: &Monitor,
        parts: &[Contribution<'_>],
        verdicts: &[VerdictState],
    ) -> Monitor {
        let mut monitor = Monitor::new(old.plan.clone());
        monitor.ledger.restore(&old.ledger.state());
        monitor.run_on(old.runtime.clone());
        monitor.sealed_until_ms.clone_from(&old.sealed_until_ms);
        for part in parts {
            for (ours, theirs) in monitor
                .sealed_until_ms
                .iter_mut()
                .zip(&part.sealed_until_ms)
            {
                *ours = (*ours).max(*theirs);
            }
        }
        parts.iter().for_each(|part| monitor.absorb(part));
        parts.iter().for_each(|part| monitor.absorb_pending(part));
        for (_, stream) in monitor.streams.iter_mut() {
            let known = old.streams.find(&stream.key.names());
            let known = known.and_then(|slot| old.streams.get(slot));
            stream.seen_ms = stream.seen_ms.max(known.and_then(|s| s.seen_ms));
        }
        monitor.restore_verdicts(verdicts);
        monitor
    }

    /// Adds the windows of a partition, none of whose lines is beyond ours.
    fn absorb(&mut self, part: &Contribution<'_>) {
        for a in &part.streams {
            let Some(slot) = self.find_or_begin(a.of) else {
                continue;
            };
            if let Some(stream) = self.streams.get_mut(slot) {
                stream.newest_ms = stream.newest_ms.max(a.newest_ms);
                stream.seen |= a.seen;
                stream.seen_ms = stream.seen_ms.max(a.seen_ms);
            }
            let windows = part.windows.of(a.of).unwrap_or_default();
            for slot in self.with_rollup(slot) {
                self.make_judges(slot);
                let Some(stream) = self.streams.get_mut(slot) else {
                    continue;
                };
                let line_ms = self.sealed_until_ms[stream.model];
                for (judge, windows) in stream.judges.iter_mut().zip(windows) {
                    // Sums that do not fit stay out, as above.
                    let _ = judge.absorb(windows, line_ms);
                }
            }
        }
        for a in &part.versions {
            let begins = Activity { begins: true, ..*a };
            self.vectors.observe(&self.plan, &begins);
        }
        for windows in part.windows.versions() {
            self.vectors
                .absorb(&self.plan, windows, &self.sealed_until_ms);
        }
    }

    /// Adds the panes that the windows of a partition have not passed.
    fn absorb_pending(&mut self, part: &Contribution<'_>) {
        for a in &part.streams {
            for pane in part.windows.pending(a.of) {
                let _ = self.apply_pane(a.of, a.newest_ms, &pane);
            }
        }
        for windows in part.windows.versions() {
            self.vectors.absorb_pending(windows, &self.sealed_until_ms);
        }
    }

    /// Takes over verdicts, alerts and detectors for the streams that there are; the later ones where two
    /// are given.
    fn restore_verdicts(&mut self, all: &[VerdictState]) {
        let latest = |id: &StreamId| {
            let mine = all.iter().filter(|v| v.stream == *id);
            mine.cloned().reduce(VerdictState::later)
        };
        for slot in 0..self.streams.len() {
            let Some(stream) = self.streams.get(slot) else {
                continue;
            };
            let judges = stream.judges.iter();
            let known: Vec<_> = judges.map(|j| latest(&j.report().id)).collect();
            let Some(stream) = self.streams.get_mut(slot) else {
                continue;
            };
            let options = &self.plan.models[stream.model].judge;
            for (judge, known) in stream.judges.iter_mut().zip(known) {
                let Some(known) = known else { continue };
                // Of another ladder, they say nothing about these windows.
                let _ = judge.restore_verdicts(&known.windows, known.alert, options);
                let other = judge.restore_detector(known.detector, options);
                if let Ok(Some(other)) = other {
                    (self.ledger).keep(&other.account, &other.budget, other.staked, other.alarms);
                }
            }
        }
        for (judge, options) in self.vectors.judges_with(&self.plan) {
            if let Some(known) = latest(&judge.report().id) {
                let _ = judge.restore_verdicts(&known.windows, known.alert, options);
            }
        }
        (0..self.plan.models.len()).for_each(|model| self.adjust_families(model));
    }
}
