//! Both stages in one thread: records in, changes and reports out.
//!
//! An engine takes records as a [`RecordSink`](super::RecordSink): the call that moves the
//! watermark past the end of a pane drains the [`Shard`] into the [`Monitor`], which judges pane by
//! pane if several are due. So judgements and late events depend on the records alone and not on
//! when anyone calls [`Engine::tick`]. The clock (`now_ms` of `tick`) does one thing only: it
//! withdraws the values of streams without events, and the values of all streams while the
//! watermark is stalled. A tick also expires unused streams, by event time.
//!
//! Always, after every call: records read equal the sum of the dispositions; all panes of a model
//! before its watermark are sealed and judged; an engine restored from a snapshot and fed the
//! records after its offsets gives the same results as this engine, bit for bit.

use super::activity::Unjudged;
use super::monitor::{Monitor, MonitorView, comparisons};
use super::restore::{Fit, RestoreError, SegmentOf};
use super::shard::{DeltaSink, Shard, ShardHolder, ShardUpkeep, ShardView};
use super::snapshot::Snapshot;
use super::watchdog::Watchdog;
use crate::collect::join::{JoinState, JournalDelta, JournalError, SpillBackend};
use crate::collect::{Counters, Pair, PairCounts, PartitionId, Passed, Wanted};
use crate::judge::{
    AccountReport, Change, ComparisonReport, Plan, Runtime, StreamId, StreamReport, WindowJudgement,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A shard over all partitions, and the monitor that judges it. See the module.
#[derive(Debug)]
pub struct Engine {
    shard: Shard,
    monitor: Monitor,
    watchdog: Watchdog,
    /// Parts of the snapshot that were dropped, each with the reason.
    dropped: Vec<String>,
    /// What the snapshot had counted.
    brought: Counters,
    brought_pairs: Vec<PairCounts>,
}

impl ShardHolder for Engine {
    type Sink = Monitor;

    #[inline]
    fn parts(&mut self) -> (&mut Shard, &mut Monitor) {
        (&mut self.shard, &mut self.monitor)
    }
}

impl Engine {
    /// An engine without state.
    pub fn new(plan: Plan) -> Engine {
        Engine {
            shard: Shard::new(plan.clone()),
            monitor: Monitor::new(plan),
            watchdog: Watchdog::default(),
            dropped: Vec::new(),
            brought: Counters::default(),
            brought_pairs: Vec::new(),
        }
    }

    /// Assigns a partition for reading; returns the offset to seek to, if one is known.
    pub fn assign(&mut self, at: PartitionId) -> Option<i64> {
        self.shard.assign(at)
    }

    /// Advances the clock to `now_ms`: withdraws stale values and expires unused streams. Returns
    /// all changes since the last call.
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        self.monitor.begin(&self.shard);
        self.shard.tick(now_ms);
        let stalled_after_ms = self.plan().caps.stalled_after_ms;
        let frontier = self.shard.view().frontier();
        let stalled = self.watchdog.look(now_ms, frontier, stalled_after_ms);
        self.monitor
            .tick(now_ms, stalled, self.shard.view().is_whole())
    }

    /// The frontier, and for how long it has not moved.
    pub fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    /// Seals and judges everything at the end of the input. Returns all changes since the last
    /// tick.
    pub fn finish(&mut self) -> Vec<Change> {
        self.finish_by(i64::MAX)
    }

    /// [`Engine::finish`] for outcomes that come separately and may be missing:
    /// predictions that are not mature at the newest event of all streams stay pending.
    pub fn finish_mature(&mut self) -> Vec<Change> {
        self.finish_by(
            self.shard
                .view()
                .partitions()
                .newest_ms()
                .unwrap_or(i64::MIN),
        )
    }

    fn finish_by(&mut self, newest_ms: i64) -> Vec<Change> {
        self.monitor.begin(&self.shard);
        self.correct();
        for model in 0..self.plan().models.len() {
            let watermark_ms = self.shard.view().last_watermark_ms(model, newest_ms);
            self.shard
                .seal_until(model, watermark_ms, &mut self.monitor);
            // Late outcomes of the panes that were sealed last.
            self.correct();
            self.monitor.finish(model, watermark_ms);
        }
        self.monitor.end();
        self.monitor.take_changes()
    }

    /// Applies what late outcomes change.
    fn correct(&mut self) {
        self.shard.correct(&mut self.monitor);
    }

    /// The shard, to read.
    pub fn shard(&self) -> ShardView<'_> {
        self.shard.view()
    }

    /// The shard, for upkeep.
    pub fn upkeep(&mut self) -> ShardUpkeep<'_> {
        self.shard.upkeep()
    }

    /// The monitor, to read.
    pub fn monitor(&self) -> MonitorView<'_> {
        self.monitor.view()
    }

    /// The accounts of false alarms.
    pub fn ledger(&self) -> Vec<AccountReport> {
        self.monitor.view().ledger()
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &Arc<StreamReport>> {
        self.monitor.view().reports()
    }

    /// Streams that were not judged yet, each with the number of its events that wait in open panes
    /// and the event time that ends the first of them.
    pub fn unjudged(&self) -> Vec<Unjudged> {
        let blank = |r: &&Arc<StreamReport>| r.windows.iter().all(|w| w.end_ms == 0);
        let blank: BTreeSet<[&str; 3]> = self
            .reports()
            .filter(blank)
            .map(|r| [&*r.id.model, &*r.id.version, &*r.id.segment])
            .collect();
        if blank.is_empty() {
            return Vec::new();
        }
        self.shard.view().unsealed(|key| {
            let names = [key.model(), key.version(), key.segment()];
            blank.contains(&names)
        })
    }

    /// Comparisons of versions that scored the same ids.
    pub fn comparisons(&self) -> Vec<ComparisonReport> {
        comparisons(self.plan(), [self.shard.view().comparisons()].into_iter())
    }

    /// Where rows of pairs went since this engine began, by name of the model's plan, with how many
    /// wait now.
    pub fn pair_counts(&self) -> Vec<(String, PairCounts, usize)> {
        let mut all = self.shard.view().pair_counts();
        for ((_, counts, _), brought) in all.iter_mut().zip(&self.brought_pairs) {
            *counts = counts.since(brought);
        }
        all
    }

    /// Where every record went, also before the snapshot that this engine resumed from.
    pub fn counters(&self) -> Counters {
        let mut counters = self.shard.view().counters().clone();
        self.monitor.view().add_counts_to(&mut counters);
        counters
    }

    /// What the snapshot that this engine resumed from had counted.
    pub fn brought(&self) -> &Counters {
        &self.brought
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        self.monitor.view().plan()
    }

    /// Takes over what may change in a plan at run time: tests, tolerances and hold times from the
    /// next judgement of each window on, caps at once. Other differences are ignored.
    pub fn reload(&mut self, new: &Plan) {
        self.shard.reload(new);
        self.monitor.reload(new);
    }

    /// See [`Monitor::start_over`].
    pub fn start_over(&mut self, of: impl Fn(&StreamId) -> bool, close: Option<&str>) -> usize {
        self.monitor.start_over(of, close)
    }

    /// See [`ShardUpkeep::tap`].
    pub fn tap(&mut self, wanted: impl Into<Wanted>) -> (Vec<Pair>, Passed) {
        self.shard.upkeep().tap(wanted.into())
    }

    /// Parts of the snapshot that the plan no longer fits, each with the reason.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// See [`Monitor::run_on`].
    pub fn run_on(&mut self, runtime: Runtime) {
        self.monitor.run_on(runtime);
    }

    /// The judgements since the last call; empty without a stopwatch.
    pub fn take_judgements(&mut self) -> Vec<WindowJudgement> {
        self.monitor.take_judgements()
    }

    /// Panes held over all streams, open and sealed; one that two windows share counts for each.
    pub fn panes(&self) -> usize {
        self.shard.view().panes() + self.monitor.view().panes()
    }

    /// Heap bytes of all state.
    pub fn bytes(&self) -> usize {
        self.shard.view().bytes() + self.monitor.view().bytes()
    }

    /// The events of joins since the last call. Write them to the journals before the next
    /// snapshot: that snapshot cannot be restored without them.
    pub fn take_journals(&mut self) -> Vec<JournalDelta> {
        self.correct();
        self.shard.upkeep().take_journals()
    }

    /// All state, to be restored by [`Engine::restore`]; if outcomes come separately, together with
    /// the journals. See [`Engine::take_journals`].
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.shard.view().snapshot();
        self.monitor.view().save_to(&mut snapshot);
        snapshot
    }

    /// An engine that resumes from a snapshot without journals. Streams whose views, cells or
    /// windows are no longer those of the plan are dropped, counted in `streams_dropped` and listed
    /// by [`Engine::dropped`].
    pub fn restore(plan: Plan, s: Snapshot) -> Result<Engine, RestoreError> {
        let missing = |_: &JoinState, _: usize| Err(JournalError::Torn);
        Engine::restore_spilling(plan, s, &missing, None)
    }

    /// [`Engine::restore`] with the segments of the journals that the snapshot marks, a store for
    /// predictions that do not fit into memory, and the number of engines that share the memory.
    /// See [`ShardUpkeep::spill_to`].
    pub fn restore_spilling<'s>(
        plan: Plan,
        mut s: Snapshot,
        segment: SegmentOf<'s, '_>,
        spills: Option<(Arc<dyn SpillBackend>, usize)>,
    ) -> Result<Engine, RestoreError> {
        s.carry_over(&plan).map_err(RestoreError::windows)?;
        let fit = Fit::new(&plan, &s)?;
        let shard = Shard::restore(plan.clone(), &s, &fit, segment, spills)?;
        let monitor = Monitor::restore(plan, &s, &fit)?;
        let pairs = shard.view().pair_counts().into_iter();
        let mut dropped = monitor.view().dropped().to_vec();
        dropped.extend_from_slice(shard.view().dropped());
        Ok(Engine {
            shard,
            monitor,
            watchdog: Watchdog::default(),
            dropped,
            brought_pairs: pairs.map(|(_, counts, _)| counts).collect(),
            brought: s.counters,
        })
    }
}
