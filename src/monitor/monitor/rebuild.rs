//! A monitor rebuilt from the windows of all partitions, when one comes or goes.

use super::Monitor;
use super::together::adjust_families;
use crate::judge::StreamId;
use crate::monitor::activity::Activity;
use crate::monitor::retained::Contribution;
use crate::monitor::snapshot::VerdictState;
use std::collections::BTreeMap;

impl Monitor {
    /// Builds the monitor again from the windows of all partitions and their known verdicts. It
    /// starts at the furthest watermark of all partitions and judges from the next slides on. Until
    /// then it shows the last judgements. Its counts, and changes not yet taken, stay.
    pub fn rebuild(&mut self, parts: &[Contribution<'_>], verdicts: Vec<VerdictState>) {
        let mut monitor = Monitor::new(self.plan.clone());
        monitor.ledger.restore(&self.ledger.state());
        monitor.run_on(self.runtime.clone());
        monitor.sealed_until_ms.clone_from(&self.sealed_until_ms);
        monitor.counts = self.counts;
        monitor.judgements = self.take_judgements();
        monitor.changes = std::mem::take(&mut self.changes);
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
            let known = self.streams.find(&stream.key.names());
            let known = known.and_then(|slot| self.streams.get(slot));
            let seen_ms = known.and_then(|s| s.last.seen_ms);
            stream.last.seen_ms = stream.last.seen_ms.max(seen_ms);
        }
        monitor.restore_verdicts(verdicts);
        *self = monitor;
    }

    /// Adds the windows of a partition, none of whose watermarks is beyond ours.
    fn absorb(&mut self, part: &Contribution<'_>) {
        // A stream without an event that was taken has nothing to judge.
        for a in part.streams.iter().filter(|a| a.last.newest_ms > i64::MIN) {
            let Some(slot) = self.find_or_begin(a.of) else {
                continue;
            };
            if let Some(stream) = self.streams.get_mut(slot) {
                stream.last.merge(a.last);
            }
            let windows = part.windows.of(a.of).unwrap_or_default();
            for slot in self.with_rollup(slot) {
                if let Some(stream) = self.streams.get_mut(slot) {
                    stream.last.newest_ms = stream.last.newest_ms.max(a.last.newest_ms);
                }
                self.make_judges(slot);
                let Some(stream) = self.streams.get_mut(slot) else {
                    continue;
                };
                let sealed_until_ms = self.sealed_until_ms[stream.model];
                for (judge, windows) in stream.judges.iter_mut().zip(windows) {
                    // Sums that do not fit stay out, as in `Monitor::place`.
                    let _ = judge.absorb(windows, sealed_until_ms);
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
                let _ = self.apply_pane(a.of, a.last.newest_ms, &pane);
            }
        }
        for windows in part.windows.versions() {
            self.vectors.absorb_pending(windows, &self.sealed_until_ms);
        }
    }

    /// Takes over the verdicts, alerts and detectors of existing streams. If a stream has two, the
    /// later wins.
    fn restore_verdicts(&mut self, all: Vec<VerdictState>) {
        let mut states = latest(all);
        for (_, stream) in self.streams.iter_mut() {
            let options = &self.plan.models[stream.model].judge;
            for judge in &mut stream.judges {
                let Some(known) = states.remove(&judge.report().id) else {
                    continue;
                };
                // Verdicts of another ladder say nothing about these windows.
                let _ = judge.restore_verdicts(&known.windows, known.alert, options);
                let other = judge.restore_detector(known.detector, options);
                if let Ok(Some(other)) = other {
                    self.ledger.keep(&other);
                }
            }
        }
        for (judge, options) in self.vectors.judges_with(&self.plan) {
            if let Some(known) = states.remove(&judge.report().id) {
                let _ = judge.restore_verdicts(&known.windows, known.alert, options);
            }
        }
        for (model, plan) in self.plan.models.iter().enumerate() {
            adjust_families(&mut self.streams, model, plan);
        }
    }
}

/// The last judgements of each stream.
fn latest(all: Vec<VerdictState>) -> BTreeMap<StreamId, VerdictState> {
    let mut latest: BTreeMap<StreamId, VerdictState> = BTreeMap::new();
    for verdict in all {
        let stream = verdict.stream.clone();
        let verdict = match latest.remove(&stream) {
            Some(before) => before.later(verdict),
            None => verdict,
        };
        latest.insert(stream, verdict);
    }
    latest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::Alert;
    use crate::judge::{Verdict, WindowVerdict};
    use crate::stats::view::View;

    fn verdict(model: &str, end_ms: i64) -> VerdictState {
        VerdictState {
            stream: StreamId {
                model: model.to_owned(),
                version: String::new(),
                segment: String::new(),
                view: View::TopLabel,
            },
            windows: vec![WindowVerdict {
                alert: Alert::default(),
                start_ms: 0,
                end_ms,
                since_ms: 0,
                n: 0,
                verdict: Verdict::Calibrated,
                overdispersion: None,
            }],
            detector: None,
            alert: Alert::default(),
            notified: None,
        }
    }

    #[test]
    fn of_each_stream_the_later_verdict_counts_whatever_the_order() {
        let all = [("a", 5), ("b", 2), ("a", 9), ("a", 7), ("b", 1)];
        let found = latest(all.map(|(model, at)| verdict(model, at)).into());
        let found = found.into_values();
        let found: Vec<_> = found
            .map(|v| (v.stream.model, v.windows[0].end_ms))
            .collect();
        assert_eq!(found, [("a".to_owned(), 9), ("b".to_owned(), 2)]);
    }
}
