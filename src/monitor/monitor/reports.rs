//! What a monitor says of itself: reports, sums, sizes, and the settings that may change while it runs.

use super::{Monitor, Stream};
use crate::collect::Counters;
use crate::judge::{
    Judge, JudgeOptions, Plan, Stopwatch, StreamId, StreamReport, WindowJudgement, WindowReport,
};
use crate::monitor::views::scalars;
use crate::stats::sums::Sums;
use crate::window::Total;

impl Monitor {
    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &StreamReport> {
        self.judges()
            .map(Judge::report)
            .chain(self.vectors.reports())
    }

    /// The sums of the panes that every window of every stream of scores holds, with its report; less than the
    /// report's where a pane was dropped after the judgement.
    pub fn totals(&self) -> impl Iterator<Item = (&StreamId, &WindowReport, Sums)> {
        self.judges().flat_map(|judge| {
            let id = &judge.report().id;
            (0..judge.report().windows.len()).filter_map(move |i| match judge.total(i) {
                Ok((report, Total::Scores(sums))) => Some((id, report, sums)),
                _ => None,
            })
        })
    }

    /// Adds what was judged, and which streams were let go, to the counters of records.
    pub fn add_counts_to(&self, counters: &mut Counters) {
        counters.evaluations += self.counts.evaluations;
        counters.streams_expired += self.counts.streams_expired;
    }

    /// What is monitored.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Takes over what may change in a plan at run time. See
    /// [`Engine::reload`](crate::monitor::Engine::reload).
    pub fn reload(&mut self, new: &Plan) {
        for model in &mut self.plan.models {
            let Some(theirs) = new.models.iter().find(|m| m.name == model.name) else {
                continue;
            };
            let sampling = model.judge.evaluation.sampling;
            model.judge = JudgeOptions {
                detector: model.judge.detector.take(),
                compare: model.judge.compare.take(),
                kernel: model.judge.kernel,
                ..theirs.judge.clone()
            };
            // The sums hold scores that were carried by it.
            model.judge.evaluation.sampling = sampling;
            model.segmenting.max = theirs.segmenting.max;
            model.segmenting.other = theirs.segmenting.other;
        }
        self.plan.caps.vector_versions_max = new.caps.vector_versions_max;
        self.plan.caps.streams_max = new.caps.streams_max;
        self.plan.caps.expire_after_ms = new.caps.expire_after_ms;
        self.plan.caps.stalled_after_ms = new.caps.stalled_after_ms;
    }

    /// Lets the alerts of these streams rest on data from now on only, and ends those that fire if
    /// they are to `close`. Returns the number of streams.
    pub fn start_over(&mut self, of: impl Fn(&StreamId) -> bool, close: bool) -> usize {
        let Monitor {
            streams,
            vectors,
            plan,
            sealed_until_ms,
            changes,
            ..
        } = self;
        let judges = streams.iter_mut();
        let judges = judges.flat_map(|(_, s)| s.judges.iter_mut().map(|j| (s.model, j)));
        let mut found = 0;
        for (model, judge) in judges.chain(vectors.judges_of_models()) {
            if of(&judge.report().id) {
                let (at_ms, options) = (sealed_until_ms[model], &plan.models[model].judge);
                judge.start_over(at_ms, close, options, changes);
                found += 1;
            }
        }
        found
    }

    /// Times every evaluation from now on; see [`Monitor::take_judgements`].
    pub fn time_by(&mut self, stopwatch: Stopwatch) {
        self.stopwatch = Some(stopwatch);
        let judges = self.streams.iter_mut().flat_map(|(_, s)| &mut s.judges);
        judges.for_each(|judge| judge.time_by(Some(stopwatch)));
        self.vectors.time_by(stopwatch);
    }

    /// The judgements since the last call; none without a stopwatch.
    pub fn take_judgements(&mut self) -> Vec<WindowJudgement> {
        let mut all = Vec::new();
        if self.stopwatch.is_some() {
            let judges = self.streams.iter_mut().flat_map(|(_, s)| &mut s.judges);
            judges.for_each(|judge| judge.take_judgements(&mut all));
            self.vectors.take_judgements(&mut all);
        }
        all
    }

    /// The lateness of the model that allows most: what is older than a partition's newest event by more
    /// is complete for every model.
    pub fn lateness_ms(&self) -> i64 {
        let lateness = self.plan.models.iter().map(|m| m.ladder.lateness_ms);
        lateness.max().unwrap_or(0)
    }

    /// Up to where the panes of each model are sealed and judged.
    pub fn sealed_until_ms(&self) -> &[i64] {
        &self.sealed_until_ms
    }

    /// Panes held over all streams; one that two windows share counts for each.
    pub fn panes(&self) -> usize {
        let views = |s: &Stream| scalars(&self.plan.models[s.model]).count();
        let streams = self.streams.iter();
        let pending: usize = streams.map(|(_, s)| s.pending.len() * views(s)).sum();
        let sealed = self.judges().map(|j| j.windows().panes());
        pending + sealed.sum::<usize>() + self.vectors.panes()
    }

    /// Heap bytes of all state.
    pub fn bytes(&self) -> usize {
        let stream = |s: &Stream| s.key.bytes() + s.pending.bytes();
        let streams = self.streams.iter().map(|(_, s)| stream(s));
        let odds = self.odds.iter().flatten().map(|o| o.bytes());
        self.streams.bytes()
            + streams.sum::<usize>()
            + self.judges().map(Judge::bytes).sum::<usize>()
            + self.vectors.bytes()
            + odds.sum::<usize>()
    }

    /// Heap bytes of the panes that wait for all shards.
    pub fn pending_bytes(&self) -> usize {
        self.streams.iter().map(|(_, s)| s.pending.bytes()).sum()
    }

    /// Streams of the snapshot that the plan no longer fits, each with the reason.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }
}
