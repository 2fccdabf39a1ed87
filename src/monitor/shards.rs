//! The shards of a process whose partitions may move: one per partition, and a monitor over all.
//!
//! A [`LocalShard`] is one partition of a topic, with that of its topic of outcomes.
//!
//! ```text
//!   partition 0 ─► shard ─┐ deltas
//!   partition 3 ─► shard ─┼────────► monitor ─► windows, verdicts, alerts
//!   partition 7 ─► shard ─┘
//! ```
//!
//! The monitor seals at the least watermark of the shards that are being read. When a shard comes
//! or goes, the monitor is rebuilt from the retained windows of all shards ([`Monitor::rebuild`]).
//! A worker has no monitor: another process judges the deltas in the delta logs of its partitions.
//!
//! Each shard has its own watermark: lateness counts from the newest event of its partition and not
//! from the slowest partition. While a partition has nothing to read, its pending predictions
//! mature by the event time of the others ([`LocalShard::follow`]). Caps hold for each shard; the
//! memory for pending predictions is divided equally.
//!
//! Published counters are those of this process, for each shard since it came. A shard brings and
//! takes along predictions and outcomes that are still open; these are counted as moved.

use super::delta_log::DeltaLog;
use super::local_shard::LocalShard;
use super::monitor::{Monitor, MonitorView, comparisons};
use super::shard::ShardView;
use super::snapshot::VerdictState;
use super::watchdog::{Frontier, Watchdog};
use crate::collect::{Counters, Pair, PairCounts, PartitionId, Passed, SourceCounters, Wanted};
use crate::judge::{
    Change, ComparisonReport, Plan, Runtime, StreamId, StreamReport, WindowJudgement,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What moved with partitions while it was open: records brought here, and taken away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Brought.
    pub brought: u64,
    /// Taken away.
    pub taken: u64,
}

/// See the module.
pub struct Shards {
    plan: Plan,
    /// For each source, the source whose partitions its own follow.
    copartitions: Vec<u16>,
    shards: Vec<LocalShard>,
    /// Index of the shard of the last record.
    last: usize,
    /// The monitor; `None` if another process judges.
    monitor: Option<Monitor>,
    watchdog: Watchdog,
    /// Whether a shard came or went since the monitor was made.
    stale: bool,
    /// Verdicts and alerts that came with shards since then.
    verdicts: Vec<VerdictState>,
    /// Counts of the shards that have left, by source.
    gone: Vec<SourceCounters>,
    moved: Vec<Moved>,
    /// By name of the model's plan, where rows of pairs went in shards that have left.
    gone_pairs: BTreeMap<String, PairCounts>,
    /// Streams that did not fit, of shards that have left.
    streams_dropped: u64,
}

impl Shards {
    /// No shard; `copartitions` has, for each source, the source whose partitions its own follow.
    pub fn new(plan: Plan, copartitions: Vec<u16>) -> Shards {
        Shards {
            monitor: Some(Monitor::new(plan.clone())),
            ..Shards::of_worker(plan, copartitions)
        }
    }

    /// The shards of a worker: another process judges.
    pub fn of_worker(plan: Plan, copartitions: Vec<u16>) -> Shards {
        Shards {
            monitor: None,
            watchdog: Watchdog::default(),
            plan,
            shards: Vec::new(),
            last: 0,
            stale: false,
            verdicts: Vec::new(),
            gone: vec![SourceCounters::default(); copartitions.len()],
            moved: vec![Moved::default(); copartitions.len()],
            gone_pairs: BTreeMap::new(),
            copartitions,
            streams_dropped: 0,
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The monitor, to read; `None` for a worker.
    pub fn monitor(&self) -> Option<MonitorView<'_>> {
        self.monitor.as_ref().map(Monitor::view)
    }

    /// Sets how many shards share the memory that the plan allows pending predictions.
    pub fn share_memory(&mut self, by: usize) {
        for shard in &mut self.shards {
            shard.upkeep().share_memory(by);
        }
    }

    /// Brings one shard one step nearer to the memory that it may use now. See
    /// [`ShardUpkeep::spill_some`](super::ShardUpkeep::spill_some).
    pub fn spill_some(&mut self) {
        self.shards.iter_mut().any(|s| s.upkeep().spill_some());
    }

    /// The partition that a partition follows.
    pub fn copartition(&self, at: PartitionId) -> PartitionId {
        let known = self.copartitions.get(usize::from(at.source));
        let source = known.copied().unwrap_or(at.source);
        PartitionId { source, ..at }
    }

    /// The shard of a partition of any source.
    #[inline]
    pub fn get_mut(&mut self, at: PartitionId) -> Option<&mut LocalShard> {
        let lead = self.copartition(at);
        let is = |s: &LocalShard| s.at == lead;
        if !self.shards.get(self.last).is_some_and(is) {
            self.last = self.shards.iter().position(is)?;
        }
        self.shards.get_mut(self.last)
    }

    /// All shards.
    pub fn all(&self) -> &[LocalShard] {
        &self.shards
    }

    /// All shards, to change them.
    pub fn all_mut(&mut self) -> &mut [LocalShard] {
        &mut self.shards
    }

    /// Whether checkpoints are due at once, because many deltas wait for them.
    pub fn deltas_due(&self) -> bool {
        let mut logs = self.shards.iter().filter_map(LocalShard::log);
        logs.any(DeltaLog::is_due)
    }

    /// Whether nothing more may be read until checkpoints are stored: their deltas take all the
    /// memory that they may.
    pub fn deltas_full(&self) -> bool {
        let mut logs = self.shards.iter().filter_map(LocalShard::log);
        logs.any(DeltaLog::is_full)
    }

    /// Takes a shard in, with verdicts and alerts of its streams if they came along.
    pub fn adopt(&mut self, mut shard: LocalShard, verdicts: Vec<VerdictState>) {
        for (source, counts) in shard.brought().sources() {
            if let Some(moved) = self.moved.get_mut(usize::from(source)) {
                moved.brought += counts.open();
            }
        }
        if self.monitor.is_none() {
            shard.keep_log();
        } else {
            self.verdicts.extend(verdicts);
            self.stale = true;
        }
        self.shards.push(shard);
    }

    /// Removes a shard.
    pub fn release(&mut self, at: PartitionId) -> Option<LocalShard> {
        self.get_mut(at)?;
        let shard = self.shards.remove(self.last);
        self.streams_dropped += shard.streams_dropped();
        self.stale = true;
        for (source, counts) in shard.view().counters().sources() {
            let index = usize::from(source);
            if let (Some(gone), Some(moved)) = (self.gone.get_mut(index), self.moved.get_mut(index))
            {
                let mut here = counts.since(&shard.brought().source(source));
                (here.pending, here.waiting) = (0, 0);
                gone.add(&here);
                moved.taken += counts.open();
            }
        }
        for (name, counts, _) in shard.pair_counts() {
            self.gone_pairs.entry(name).or_default().add(&counts);
        }
        Some(shard)
    }

    /// Verdicts and alerts of the streams of a shard, to move with it.
    pub fn verdicts(&mut self, at: PartitionId) -> Vec<VerdictState> {
        self.advance();
        if self.get_mut(at).is_none() {
            return Vec::new();
        }
        let shard = self.shards[self.last].view();
        let monitor = self.monitor();
        let of = |model: &str, version: &str| shard.serves(model, version);
        monitor.map_or(Vec::new(), |m| m.verdicts(of))
    }

    /// Brings the monitor up to what the shards have sealed.
    pub fn advance(&mut self) {
        let watermarks_ms = self.watermarks_ms();
        self.shards
            .iter_mut()
            .for_each(|s| s.follow(&watermarks_ms));
        let Some(monitor) = &mut self.monitor else {
            self.shards.iter_mut().for_each(LocalShard::log_deltas);
            return;
        };
        if self.stale {
            self.rebuild();
        } else {
            for shard in &mut self.shards {
                for delta in shard.take_deltas() {
                    // What does not fit the plan was never counted.
                    let _ = monitor.apply(delta);
                }
            }
        }
        let watermarks_ms = self.watermarks_ms();
        if let Some(monitor) = &mut self.monitor {
            monitor.advance_to(&watermarks_ms, usize::MAX);
        }
    }

    /// Time up to which each model can be judged: the least event time reached by a shard that is
    /// being read, but at most the latest sealed time of any shard. If all are read to their ends,
    /// that latest time.
    fn watermarks_ms(&self) -> Vec<i64> {
        let all = || self.shards.iter().map(LocalShard::view);
        let live = all()
            .filter(|s| !s.partitions().are_idle())
            .map(ShardView::reached_ms);
        judged_until(
            all().map(ShardView::sealed_until_ms),
            live,
            self.plan.models.len(),
        )
    }

    /// Rebuilds the monitor from the windows of all shards.
    fn rebuild(&mut self) {
        self.stale = false;
        let Some(monitor) = &mut self.monitor else {
            return;
        };
        let mut verdicts = monitor.view().verdicts(|_, _| true);
        verdicts.append(&mut self.verdicts);
        // Their deltas are in the windows too.
        for shard in &mut self.shards {
            shard.take_deltas();
        }
        let parts = self.shards.iter().map(LocalShard::contribution);
        monitor.rebuild(&parts.collect::<Vec<_>>(), verdicts);
    }

    /// Advances the clock to `now_ms`: withdraws stale values and expires unused streams. Returns
    /// all changes since the last call.
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        self.advance();
        if let Some(monitor) = &mut self.monitor {
            let due_ms = self.shards.iter().map(|s| s.view().due_ms());
            let due_ms = earliest(due_ms, self.plan.models.len());
            let shards = self.shards.iter().map(LocalShard::view);
            monitor.observe(due_ms, shards.map(|s| (s.activity(), s.vector_activity())));
        }
        self.hold_ahead();
        self.shards.iter_mut().for_each(|s| s.tick(now_ms));
        let all = || self.shards.iter().map(LocalShard::view);
        let frontier = Frontier::of(all().map(|s| (s.partitions(), true)));
        let whole = all().all(ShardView::is_whole);
        let stalled_after_ms = self.plan.caps.stalled_after_ms;
        let stalled = self.watchdog.look(now_ms, frontier, stalled_after_ms);
        let monitor = self.monitor.as_mut();
        monitor.map_or(Vec::new(), |m| m.tick(now_ms, stalled, whole))
    }

    /// Stops shards that are ahead from opening panes while the panes that wait for the others take
    /// all the bytes that they may.
    fn hold_ahead(&mut self) {
        let waiting = self.monitor().map_or(0, MonitorView::pending_bytes);
        let full = waiting >= self.plan.caps.open_bytes_max;
        let common_ms = full.then(|| self.watermarks_ms());
        for shard in &mut self.shards {
            // A shard that is behind may come far until the next tick.
            let sealed_ms = shard.view().sealed_until_ms();
            let ahead = |all: &Vec<i64>| sealed_ms.iter().zip(all).any(|(ours, all)| ours > all);
            shard.hold_ahead(common_ms.clone().filter(ahead));
        }
    }

    /// The frontier, and for how long it has not moved.
    pub fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &Arc<StreamReport>> {
        self.monitor().into_iter().flat_map(MonitorView::reports)
    }

    /// Keeps the streams that have no report here.
    pub fn without_reports(&self, streams: &mut Vec<StreamId>) {
        let here: BTreeSet<&StreamId> = self.reports().map(|r| &r.id).collect();
        streams.retain(|id| !here.contains(id));
    }

    /// What was counted in this process; open records are those that its shards hold now.
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        for (source, gone) in (0..).zip(&self.gone) {
            let ours = counters.source_mut(source);
            ours.add(gone);
            for shard in &self.shards {
                let now = shard.view().counters().source(source);
                ours.add(&now.since(&shard.brought().source(source)));
            }
        }
        if let Some(monitor) = &self.monitor {
            monitor.view().add_counts_to(&mut counters);
        }
        let dropped = self.shards.iter().map(LocalShard::streams_dropped);
        counters.streams_dropped += self.streams_dropped + dropped.sum::<u64>();
        counters
    }

    /// The comparisons of versions that scored the same ids, over all shards.
    pub fn comparisons(&self) -> Vec<ComparisonReport> {
        if self.monitor.is_none() {
            return Vec::new();
        }
        comparisons(
            &self.plan,
            self.shards.iter().map(|s| s.view().comparisons()),
        )
    }

    /// Where rows of pairs went in this process, by name of the model's plan, with how many wait
    /// now.
    pub fn pair_counts(&self) -> Vec<(String, PairCounts, usize)> {
        let gone = self.gone_pairs.iter();
        let mut all: BTreeMap<String, (PairCounts, usize)> =
            gone.map(|(name, c)| (name.clone(), (*c, 0))).collect();
        for (name, counts, waiting) in self.shards.iter().flat_map(LocalShard::pair_counts) {
            let ours = all.entry(name).or_default();
            ours.0.add(&counts);
            ours.1 += waiting;
        }
        let all = all.into_iter();
        all.map(|(name, (counts, waiting))| (name, counts, waiting))
            .collect()
    }

    /// What moved of a source.
    pub fn moved(&self, source: u16) -> Moved {
        let moved = self.moved.get(usize::from(source));
        moved.copied().unwrap_or_default()
    }

    /// Takes over what may change in a plan at run time. See
    /// [`Engine::reload`](super::Engine::reload).
    pub fn reload(&mut self, new: &Plan) {
        self.plan.reload(new);
        if let Some(monitor) = &mut self.monitor {
            monitor.reload(new);
        }
        for shard in &mut self.shards {
            shard.reload(new);
        }
    }

    /// See [`Monitor::start_over`]; 0 if another process judges.
    pub fn start_over(&mut self, of: impl Fn(&StreamId) -> bool, close: Option<&str>) -> usize {
        let monitor = self.monitor.as_mut();
        monitor.map_or(0, |monitor| monitor.start_over(of, close))
    }

    /// See [`ShardUpkeep::tap`](super::ShardUpkeep::tap).
    pub fn tap(&mut self, wanted: &Wanted) -> (Vec<Pair>, Passed) {
        let each = wanted.share(self.shards.len());
        let (mut pairs, mut passed) = (Vec::new(), Passed::default());
        for shard in &mut self.shards {
            let (theirs, more) = shard.upkeep().tap(each.clone());
            pairs.extend(theirs);
            passed.add(more);
        }
        (pairs, passed)
    }

    /// See [`Monitor::run_on`].
    pub fn run_on(&mut self, runtime: Runtime) {
        if let Some(monitor) = &mut self.monitor {
            monitor.run_on(runtime);
        }
    }

    /// The judgements since the last call.
    pub fn take_judgements(&mut self) -> Vec<WindowJudgement> {
        let monitor = self.monitor.iter_mut();
        monitor.flat_map(Monitor::take_judgements).collect()
    }

    /// Panes held, those of shards and of the windows over them alike.
    pub fn panes(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(LocalShard::panes).sum::<usize>() + self.monitor().map_or(0, MonitorView::panes)
    }

    /// Heap bytes of all state.
    pub fn bytes(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(LocalShard::bytes).sum::<usize>() + self.monitor().map_or(0, MonitorView::bytes)
    }
}

/// By model, when the oldest prediction of any shard is mature.
pub(super) fn earliest(
    all: impl Iterator<Item = Vec<Option<i64>>>,
    models: usize,
) -> Vec<Option<i64>> {
    all.fold(vec![None; models], |all, one| {
        let earlier = |(a, b): (Option<i64>, Option<i64>)| a.into_iter().chain(b).min();
        all.into_iter().zip(one).map(earlier).collect()
    })
}

/// By model, the least event time reached by a shard that is waited for, but at most the latest
/// sealed time. If no shard is waited for, the latest sealed time.
pub(super) fn judged_until(
    sealed: impl Iterator<Item = Vec<i64>>,
    waited: impl Iterator<Item = Vec<i64>>,
    models: usize,
) -> Vec<i64> {
    let furthest = fold(sealed, models, i64::MIN, i64::max);
    let least = fold(waited, models, i64::MAX, i64::min);
    let both = furthest.into_iter().zip(least);
    both.map(|(furthest, least)| furthest.min(least)).collect()
}

/// By model, the fold of its times.
pub(super) fn fold(
    times_ms: impl Iterator<Item = Vec<i64>>,
    models: usize,
    first: i64,
    f: impl Fn(i64, i64) -> i64,
) -> Vec<i64> {
    times_ms.fold(vec![first; models], |all, one| {
        all.into_iter().zip(one).map(|(a, b)| f(a, b)).collect()
    })
}
