//! What can be read from a monitor: reports, sums, sizes.

use super::together::entries;
use super::{Monitor, Stream};
use crate::collect::Counters;
use crate::judge::{
    AccountReport, Detector, Judge, Plan, Runtime, StreamId, StreamReport, WindowReport,
};
use crate::monitor::snapshot::VerdictState;
use crate::monitor::views::scalars;
use crate::stats::sums::Sums;
use crate::window::Total;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct MonitorView<'a>(pub(super) &'a Monitor);

impl Monitor {
    /// A view of the monitor.
    pub fn view(&self) -> MonitorView<'_> {
        MonitorView(self)
    }
}

impl<'a> MonitorView<'a> {
    /// The latest report of each stream.
    pub fn reports(self) -> impl Iterator<Item = &'a Arc<StreamReport>> {
        self.0
            .judges()
            .map(Judge::report)
            .chain(self.0.vectors.reports())
    }

    /// The sums of each window of each stream of scores, with the window's report.
    pub fn totals(self) -> impl Iterator<Item = (&'a StreamId, &'a WindowReport, Sums)> {
        self.0.judges().flat_map(|judge| {
            let (report, windows) = (judge.report(), judge.windows());
            (report.windows.iter().enumerate()).filter_map(move |(i, window)| {
                match windows.total(i, window.end_ms) {
                    Ok(Total::Scores(sums)) => Some((&report.id, window, sums)),
                    _ => None,
                }
            })
        })
    }

    /// The streams, each with its [late outcomes](Judge::unseen_late) that some window lacks.
    pub fn unseen_late(self) -> impl Iterator<Item = (&'a StreamId, u64)> {
        let judges = self.0.judges().chain(self.0.vectors.judges());
        let late = judges.map(|j| (&j.report().id, j.unseen_late()));
        late.filter(|(_, n)| *n > 0)
    }

    /// Verdicts, alerts and detectors of the streams whose model and version `of` accepts.
    pub fn verdicts(self, of: impl Fn(&str, &str) -> bool) -> Vec<VerdictState> {
        // A roll-up goes with any of its segments.
        let of = |id: &StreamId| of(&id.model, &id.version);
        let judges = self.0.judges().chain(self.0.vectors.judges());
        let wanted = judges.filter(|j| of(&j.report().id));
        let verdicts = wanted.map(|j| VerdictState {
            stream: j.report().id.clone(),
            windows: j.verdicts(),
            detector: j.detector().map(Detector::state),
            alert: j.alert(),
            notified: None,
        });
        verdicts.collect()
    }

    /// The runtime that the process lends.
    pub fn runtime(self) -> &'a Runtime {
        &self.0.runtime
    }

    /// The accounts of false alarms.
    pub fn ledger(self) -> Vec<AccountReport> {
        self.0.ledger.report(&entries(&self.0.streams))
    }

    /// Adds the judgements and the expired streams to the counters of records.
    pub fn add_counts_to(self, counters: &mut Counters) {
        counters.evaluations += self.0.counts.evaluations;
        counters.streams_expired += self.0.counts.streams_expired;
    }

    /// The plan.
    pub fn plan(self) -> &'a Plan {
        &self.0.plan
    }

    /// Up to where the panes of each model are sealed and judged.
    pub fn sealed_until_ms(self) -> &'a [i64] {
        &self.0.sealed_until_ms
    }

    /// Panes held over all streams; one that two windows share counts for each.
    pub fn panes(self) -> usize {
        let views = |s: &Stream| scalars(&self.0.plan.models[s.model]).count();
        let streams = self.0.streams.iter();
        let pending: usize = streams.map(|(_, s)| s.pending.len() * views(s)).sum();
        let sealed = self.0.judges().map(|j| j.windows().panes());
        pending + sealed.sum::<usize>() + self.0.vectors.panes()
    }

    /// Heap bytes of all state.
    pub fn bytes(self) -> usize {
        let stream = |s: &Stream| s.key.bytes() + s.pending.bytes();
        let streams = self.0.streams.iter().map(|(_, s)| stream(s));
        let odds = self.0.odds.iter().flatten().map(|o| o.bytes());
        self.0.streams.bytes()
            + streams.sum::<usize>()
            + self.0.judges().map(Judge::bytes).sum::<usize>()
            + self.0.vectors.bytes()
            + odds.sum::<usize>()
    }

    /// Heap bytes of the panes that wait for all shards.
    pub fn pending_bytes(self) -> usize {
        self.0.streams.iter().map(|(_, s)| s.pending.bytes()).sum()
    }

    /// Streams of the snapshot that the plan no longer fits, each with the reason.
    pub fn dropped(self) -> &'a [String] {
        &self.0.dropped
    }
}
