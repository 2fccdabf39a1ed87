//! Both stages in one thread: records in, changes and reports out.
//!
//! When the watermark passes the end of a pane, the call that moved it drains the [`Shard`] and
//! lets the [`Monitor`] judge, pane by pane if several are due. So judgements and late events
//! depend on the records alone and not on when anyone calls [`Engine::tick`]. The clock (`now_ms`
//! of `tick`) does one thing only: it withdraws the values of streams without events, and the
//! values of all streams while the watermark stands still. A tick also expires unused streams, by
//! event time.
//!
//! Always, after every call: records read equal the sum of the dispositions; all panes of a model
//! before its watermark are sealed and judged; an engine restored from a snapshot and fed the
//! records after its offsets gives the same results as this engine, bit for bit.

use super::activity::Unjudged;
use super::monitor::{Monitor, MonitorView, comparisons};
use super::restore::{Fit, RestoreError, SegmentOf};
use super::shard::{Batch, Shard, ShardHolder};
use super::snapshot::Snapshot;
use super::watchdog::Watchdog;
use crate::collect::join::{
    JoinState, Joins, JournalDelta, JournalError, SpillBackend, SpillError,
};
use crate::collect::{Counters, Origin, Pair, PairCounts, PartitionId, PartitionState};
use crate::judge::{
    AccountReport, Change, ComparisonReport, Plan, Runtime, StreamId, StreamReport, WindowJudgement,
};
use std::collections::BTreeSet;
use std::iter::once;
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
    #[inline]
    fn shard(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// Seals and judges what the watermark has passed.
    #[cold]
    fn seal(&mut self) {
        self.observe_activity();
        while let Some(batch) = self.shard.drain() {
            self.apply(batch);
        }
        self.monitor.compare_streams();
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

    /// A partition is to be read; returns the offset to seek to, where one is known.
    pub fn assign(&mut self, at: PartitionId) -> Option<i64> {
        self.shard.assign(at)
    }

    /// See [`Partitions::resume`](crate::collect::Partitions::resume).
    pub fn resume(&mut self) {
        self.shard.upkeep().resume();
    }

    fn apply(&mut self, batch: Batch) {
        for delta in batch.deltas {
            let source = delta.source();
            let applied = self.monitor.apply(delta);
            if let (Some(source), Some(lost)) = (source, applied) {
                self.shard.upkeep().count_no_cell(source, lost);
            }
        }
        if let Some((model, until_ms)) = batch.sealed {
            self.monitor.advance(model, until_ms);
        }
    }

    fn observe_activity(&mut self) {
        let shard = self.shard.view();
        let activity = (shard.activity(), shard.vector_activity());
        self.monitor.observe(shard.due_ms(), once(activity));
    }

    /// Advances the clock to `now_ms`: withdraws stale values and expires unused streams. Returns
    /// all changes since the last call.
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        self.observe_activity();
        self.shard.tick(now_ms);
        let stalled_after_ms = self.plan().caps.stalled_after_ms;
        let frontier = self.shard.view().frontier();
        let stalled = self.watchdog.look(now_ms, frontier, stalled_after_ms);
        self.monitor
            .tick(now_ms, stalled, self.shard.view().is_whole())
    }

    /// The frontier, and for how long it has stood still.
    pub fn watchdog(&self) -> &Watchdog {
        &self.watchdog
    }

    /// The input has ended: seals and judges everything. Returns all changes since the last tick.
    pub fn finish(&mut self) -> Vec<Change> {
        self.finish_by(i64::MAX)
    }

    /// The same where outcomes come separately and some may be missing: predictions that are not
    /// mature at the newest event of all streams stay pending.
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
        self.observe_activity();
        self.correct();
        for model in 0..self.plan().models.len() {
            let line_ms = self.shard.view().last_line_ms(model, newest_ms);
            let mut at_ms = i64::MIN;
            while at_ms < line_ms {
                let batch = self.shard.seal(model, line_ms);
                at_ms = batch.sealed.map_or(line_ms, |(_, until_ms)| until_ms);
                self.apply(batch);
            }
            // Late outcomes of what was sealed last.
            self.correct();
            self.monitor.finish(model, line_ms);
        }
        self.monitor.compare_streams();
        self.monitor.take_changes()
    }

    /// Applies what late outcomes change.
    fn correct(&mut self) {
        let batch = self.shard.upkeep().take_corrections();
        self.apply(batch);
    }

    /// What judges.
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

    /// What is monitored.
    pub fn plan(&self) -> &Plan {
        self.monitor.view().plan()
    }

    /// Takes over what may change in a plan at run time: tests, tolerances and hold times from the
    /// next judgement of each window on, caps at once. What else differs is left as it was.
    pub fn reload(&mut self, new: &Plan) {
        self.shard.reload(new);
        self.monitor.reload(new);
    }

    /// See [`Monitor::start_over`].
    pub fn start_over(&mut self, of: impl Fn(&StreamId) -> bool, close: Option<&str>) -> usize {
        self.monitor.start_over(of, close)
    }

    /// See [`ShardUpkeep::tap`](super::shard::ShardUpkeep::tap).
    pub fn tap(&mut self, room: usize) -> (Vec<Pair>, u64) {
        self.shard.upkeep().tap(room)
    }

    /// Parts of the snapshot that the plan no longer fits, each with the reason.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// See [`Monitor::run_on`].
    pub fn run_on(&mut self, runtime: Runtime) {
        self.monitor.run_on(runtime);
    }

    /// The judgements since the last call; none without a stopwatch.
    pub fn take_judgements(&mut self) -> Vec<WindowJudgement> {
        self.monitor.take_judgements()
    }

    /// How far each partition was read.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionState> {
        self.shard.view().partitions().states()
    }

    /// See [`MonitorView::lateness_ms`].
    pub fn lateness_ms(&self) -> i64 {
        self.monitor.view().lateness_ms()
    }

    /// Panes held over all streams, open and sealed; one that two windows share counts for each.
    pub fn panes(&self) -> usize {
        self.shard.view().panes() + self.monitor.view().panes()
    }

    /// The next offset of each partition that was read.
    pub fn positions(&self) -> Vec<Origin> {
        self.shard.view().partitions().positions().collect()
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

    /// All joins.
    pub fn joins(&self) -> &Joins {
        self.shard.view().joins()
    }

    /// Predictions that are retained for their outcomes, or for revisions.
    pub fn retained(&self) -> usize {
        self.shard.view().retained()
    }

    /// See [`ShardView::journal_bytes`](super::shard::ShardView::journal_bytes).
    pub fn journal_bytes(&self) -> usize {
        self.shard.view().journal_bytes()
    }

    /// See [`ShardUpkeep::spill_to`](super::shard::ShardUpkeep::spill_to).
    pub fn spill_to(&mut self, spills: Arc<dyn SpillBackend>, shared_by: usize) {
        self.shard.upkeep().spill_to(spills, shared_by);
    }

    /// See [`ShardUpkeep::spill_some`](super::shard::ShardUpkeep::spill_some).
    pub fn spill_some(&mut self) -> bool {
        self.shard.upkeep().spill_some()
    }

    /// See [`ShardView::fault`](super::shard::ShardView::fault).
    pub fn fault(&self) -> Option<&SpillError> {
        self.shard.view().fault()
    }

    /// See [`ShardView::spilled`](super::shard::ShardView::spilled).
    pub fn spilled(&self) -> (usize, usize) {
        self.shard.view().spilled()
    }

    /// All state, to be restored by [`Engine::restore`]; where outcomes come separately, together
    /// with the journals. See [`Engine::take_journals`].
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

    /// The same with the segments of the journals that the snapshot marks, a place for the
    /// predictions that memory has no room for, and the number of engines that share the memory.
    /// See [`ShardUpkeep::spill_to`](super::shard::ShardUpkeep::spill_to).
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
