//! One partition that may move: its shard, its windows, and its deltas on their way.
//!
//! Its sums depend on the records of the partition alone, to the bit: not on the other partitions
//! of the process, nor on the process that read the partition before. So another process can take
//! it over, and a shard that is dropped without notice takes away exactly what it had contributed.
//! There is one exception: while the partition has nothing to read, its predictions without an
//! outcome are counted when event time in the other partitions says so ([`LocalShard::follow`]).

use super::delta::Delta;
use super::delta_log::{DeltaBatch, DeltaLog};
use super::restore::{Fit, RestoreError, SegmentOf};
use super::retained::{Contribution, PartitionWindows};
use super::shard::{DeltaSink, Shard, ShardHolder, ShardUpkeep, ShardView};
use super::snapshot::Snapshot;
use crate::collect::join::{JournalDelta, SpillBackend};
use crate::collect::{Counters, PairCounts, PartitionId};
use crate::judge::Plan;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One partition: its shard, its windows, and its deltas on their way. See the module.
pub struct LocalShard {
    /// The partition, of the topic whose partitions others follow.
    pub at: PartitionId,
    shard: Shard,
    sealed: Sealed,
    /// Names of the topics as the shard numbers them.
    topics: Vec<String>,
    /// Deltas for a judge in another process.
    log: Option<DeltaLog>,
    /// The deltas of the checkpoint that was taken over, and its epoch.
    found: Option<(i64, DeltaBatch)>,
    /// Whether it began with state.
    restored: bool,
    /// Counts that it brought, without what was dropped then.
    brought: Counters,
    /// Counts of rows of pairs that it brought.
    brought_pairs: Vec<PairCounts>,
    dropped: Vec<String>,
}

/// What was sealed of the partition: its windows, and what the monitor of this process lacks.
pub(super) struct Sealed {
    windows: PartitionWindows,
    deltas: Vec<Delta>,
}

impl DeltaSink for Sealed {
    fn take(&mut self, delta: Delta) -> u64 {
        let lost = self.windows.apply(&delta);
        self.deltas.push(delta);
        lost
    }

    fn advance(&mut self, model: usize, until_ms: i64) {
        self.windows.advance(model, until_ms);
    }
}

impl Plan {
    /// The plan of a shard whose windows are retained: roll-ups are the monitor's.
    fn of_partition(&self) -> Plan {
        let mut plan = self.clone();
        for model in &mut plan.models {
            model.segmenting.rollup = false;
        }
        plan
    }
}

impl ShardHolder for LocalShard {
    type Sink = Sealed;

    #[inline]
    fn parts(&mut self) -> (&mut Shard, &mut Sealed) {
        (&mut self.shard, &mut self.sealed)
    }

    fn let_others_go(&mut self) {
        self.shard.drain_into(&mut self.sealed);
        self.hand_over();
    }
}

impl LocalShard {
    /// A partition that has no state. `spills` is a store for pending predictions that do not fit
    /// into memory, with the number of shards that share the memory.
    pub fn new(
        at: PartitionId,
        plan: &Plan,
        topics: Vec<String>,
        spills: Option<(Arc<dyn SpillBackend>, usize)>,
    ) -> LocalShard {
        let mut shard = Shard::new(plan.of_partition());
        if let Some((spills, shared_by)) = spills {
            shard.upkeep().spill_to(spills, shared_by);
        }
        let windows = PartitionWindows::new(plan.of_partition());
        LocalShard::of(at, shard, windows, topics)
    }

    /// A partition that resumes from its checkpoint.
    pub fn restore<'s>(
        at: PartitionId,
        plan: &Plan,
        mut snapshot: Snapshot,
        segment: SegmentOf<'s, '_>,
        spills: Option<(Arc<dyn SpillBackend>, usize)>,
    ) -> Result<LocalShard, RestoreError> {
        let plan = plan.of_partition();
        snapshot.carry_over(&plan).map_err(RestoreError::windows)?;
        let fit = Fit::new(&plan, &snapshot)?;
        let shard = Shard::restore(plan.clone(), &snapshot, &fit, segment, spills)?;
        let windows = PartitionWindows::restore(plan, &snapshot, &fit)?;
        let dropped = [windows.dropped(), shard.view().dropped()].concat();
        let mut restored = LocalShard::of(at, shard, windows, snapshot.topics);
        restored.brought = snapshot.counters;
        (restored.restored, restored.dropped) = (true, dropped);
        restored.retain_windows();
        Ok(restored)
    }

    fn of(
        at: PartitionId,
        shard: Shard,
        windows: PartitionWindows,
        topics: Vec<String>,
    ) -> LocalShard {
        LocalShard {
            at,
            brought: Counters::default(),
            brought_pairs: shard
                .view()
                .pair_counts()
                .into_iter()
                .map(|c| c.1)
                .collect(),
            shard,
            sealed: Sealed {
                windows,
                deltas: Vec::new(),
            },
            topics,
            log: None,
            found: None,
            restored: false,
            dropped: Vec::new(),
        }
    }

    /// Makes its deltas follow those of the checkpoint of this epoch, which was taken over. If a
    /// part of the checkpoint did not fit, its deltas may be of other panes, and judges take the
    /// windows instead.
    pub fn after(mut self, epoch: i64, found: Option<DeltaBatch>) -> LocalShard {
        let found = found.filter(|_| self.dropped.is_empty());
        self.found = found.map(|deltas| (epoch, deltas));
        self
    }

    /// Assigns a partition for reading; returns the offset to seek to, if one is known.
    pub fn assign(&mut self, at: PartitionId) -> Option<i64> {
        self.shard.assign(at)
    }

    /// Seals everything at the end of the input.
    pub fn finish(&mut self) {
        for model in 0..self.shard.view().due_ms().len() {
            let watermark_ms = self.shard.view().last_watermark_ms(model, i64::MAX);
            self.shard.seal_until(model, watermark_ms, &mut self.sealed);
        }
        self.correct();
    }

    /// Seals the panes that the other shards of this process have passed (`watermarks_ms`, by
    /// model), if the partition was read to its end and predictions wait in it. Otherwise these
    /// panes would stay open until its next record, and detectors do not see the events of a pane
    /// that was judged before they came.
    pub(super) fn follow(&mut self, watermarks_ms: &[i64]) {
        if !self.shard.view().partitions().are_idle() {
            return;
        }
        for (model, watermark_ms) in watermarks_ms.iter().enumerate() {
            if self.shard.view().waits_before(model, *watermark_ms) {
                self.shard
                    .seal_until(model, *watermark_ms, &mut self.sealed);
            }
        }
    }

    fn hand_over(&mut self) {
        self.shard.upkeep().hand_over(&mut self.sealed);
    }

    fn correct(&mut self) {
        self.shard.correct(&mut self.sealed);
    }

    pub(super) fn hold_ahead(&mut self, common_ms: Option<Vec<i64>>) {
        self.shard.upkeep().hold_ahead(common_ms);
    }

    /// Advances the clock to `now_ms`: expires unused streams.
    pub fn tick(&mut self, now_ms: i64) {
        // Streams expire once in days; looking for them at every tick would cost more than all
        // else.
        if self.shard.tick(now_ms) {
            self.retain_windows();
        }
    }

    /// Keeps the windows of the streams that the shard has.
    fn retain_windows(&mut self) {
        let (shard, windows) = (&self.shard, &mut self.sealed.windows);
        let streams = shard.view().activity().map(|a| a.of.names().text());
        let streams: BTreeSet<_> = streams.collect();
        let versions: BTreeSet<_> = shard.view().vector_activity().map(|a| a.of).collect();
        windows.retain(
            |key| streams.contains(&key.names().text()),
            |name| versions.contains(&name),
        );
    }

    /// What happened in joins since the last call, to be written before the next checkpoint.
    pub fn take_journals(&mut self) -> Vec<JournalDelta> {
        self.correct();
        self.shard.upkeep().take_journals()
    }

    /// Moves its deltas into its log, if another process judges.
    pub fn log_deltas(&mut self) {
        self.hand_over();
        if let Some(log) = &mut self.log {
            let Sealed { windows, deltas } = &mut self.sealed;
            log.extend(deltas.drain(..), || windows.bytes());
        }
    }

    /// The log of its deltas, if another process judges.
    pub fn log(&self) -> Option<&DeltaLog> {
        self.log.as_ref()
    }

    /// How many deltas, which no checkpoint has, its log has cut since the last call.
    pub fn take_cut(&mut self) -> u64 {
        self.log.as_mut().map_or(0, DeltaLog::take_cut)
    }

    /// The deltas for its next checkpoint; `None` if this process judges.
    pub fn delta_batch(&mut self) -> Option<DeltaBatch> {
        self.log_deltas();
        let log = self.log.as_ref()?;
        Some(log.batch(self.shard.view().pending(), self.shard.view().due_ms()))
    }

    /// Notes that the deltas before `next` are stored.
    pub fn deltas_stored(&mut self, next: u64) {
        if let Some(log) = &mut self.log {
            log.stored_until(next);
        }
    }

    /// Notes that a checkpoint with its deltas could not be written.
    pub fn deltas_not_stored(&mut self) {
        if let Some(log) = &mut self.log {
            log.not_stored();
        }
    }

    /// The shard, to read.
    pub fn view(&self) -> ShardView<'_> {
        self.shard.view()
    }

    /// The shard, for upkeep.
    pub fn upkeep(&mut self) -> ShardUpkeep<'_> {
        self.shard.upkeep()
    }

    /// Takes over what may change in a plan at run time.
    pub fn reload(&mut self, new: &Plan) {
        self.shard.reload(new);
    }

    /// All state for a checkpoint.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            topics: self.topics.clone(),
            ..self.shard.view().snapshot()
        };
        self.sealed.windows.save_to(&mut snapshot);
        snapshot
    }

    /// Parts of its checkpoint that were dropped, each with the reason.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// What it contributes to a monitor that is rebuilt.
    pub fn contribution(&self) -> Contribution<'_> {
        Contribution {
            sealed_until_ms: self.shard.view().sealed_until_ms(),
            streams: self.shard.view().activity().collect(),
            versions: self.shard.view().vector_activity().collect(),
            windows: &self.sealed.windows,
        }
    }

    /// Keeps its deltas from now on for a judge in another process.
    pub fn keep_log(&mut self) {
        self.log = Some(match self.found.take() {
            Some((epoch, deltas)) => DeltaLog::resume(epoch, deltas, self.sealed.windows.bytes()),
            None if self.restored => DeltaLog::after_windows(),
            None => DeltaLog::default(),
        });
    }

    /// Takes out the deltas for the monitor of this process.
    pub fn take_deltas(&mut self) -> Vec<Delta> {
        self.hand_over();
        std::mem::take(&mut self.sealed.deltas)
    }

    /// Counts that it brought.
    pub fn brought(&self) -> &Counters {
        &self.brought
    }

    /// Streams of its checkpoint that were dropped here.
    pub fn streams_dropped(&self) -> u64 {
        self.shard.view().counters().streams_dropped - self.brought.streams_dropped
    }

    /// Panes held, open and in windows.
    pub fn panes(&self) -> usize {
        self.shard.view().panes() + self.sealed.windows.panes()
    }

    /// Heap bytes of all state.
    pub fn bytes(&self) -> usize {
        let log = self.log.as_ref().map_or(0, DeltaLog::bytes);
        self.shard.view().bytes() + self.sealed.windows.bytes() + log
    }

    /// Where rows of pairs went here, by model that has pairs: its name, the counts, and how many
    /// wait.
    pub fn pair_counts(&self) -> impl Iterator<Item = (String, PairCounts, usize)> {
        let now = self.shard.view().pair_counts().into_iter();
        let all = now.zip(&self.brought_pairs);
        all.map(|((name, now, waiting), brought)| (name, now.since(brought), waiting))
    }
}
