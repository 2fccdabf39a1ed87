//! How a process is placed among others, behind one interface.
//!
//! Without a topic for state a process has one [`Engine`], whose snapshots lie in its directory.
//! With one it has a shard for each partition ([`Assignment`]), whose checkpoints lie in the topic.
//! A process that judges what others count follows their checkpoints ([`Judges`]). The rest of the
//! program does not ask which.

use std::sync::Arc;
use std::time::Duration;

use super::assignment::Assignment;
use super::checkpoint_store::CheckpointAge;
use super::judges::Judges;
use super::migrations::Migrations;
use super::options::with_beat;
use crate::app::outputs::snapshots::Written;
use crate::collect::join::{JoinPlan, SpillError, WrongPartition, wrong_partitions};
use crate::collect::{
    Counters, Origin, Pair, PairCounts, PartitionId, PartitionState, Passed, Wanted,
};
use crate::judge::{
    AccountReport, Change, ComparisonReport, StreamId, StreamReport, WindowJudgement,
};
use crate::kafka::Consumer;
use crate::monitor::activity::Unjudged;
use crate::monitor::shards::Moved;
use crate::monitor::watchdog::Watchdog;
use crate::monitor::{
    Engine, LocalShard, MonitorView, PartitionEvent, Plan, RecordSink, ShardView, Snapshot,
};
use crate::notify::{DeliveryListener, Transfers};
use crate::telemetry::facts::{CheckpointCounts, EngineFacts, Role};
use crate::telemetry::published::Beat;

mod partitions;

/// How this process is placed: what counts or judges here. See the module.
pub enum Topology {
    /// One engine over all partitions.
    Single(Box<Engine>),
    /// A shard for each partition.
    Sharded(Box<Assignment>),
    /// The judge of what others count, or one of several.
    Judges(Box<Judges>),
}

impl Topology {
    /// What counts the records of a partition; `None` where this process does not own the
    /// partition.
    #[inline]
    pub fn sink_of(&mut self, at: PartitionId) -> Option<&mut dyn RecordSink> {
        match self {
            Topology::Single(engine) => Some(engine.as_mut()),
            Topology::Sharded(m) => Some(m.shards_mut().get_mut(at)?),
            Topology::Judges(_) => None,
        }
    }

    /// Reports the thread as alive, through `beat`, while it judges and where one step waits for
    /// brokers more than once.
    pub fn beat_with(&mut self, beat: &Beat) {
        match self {
            Topology::Single(engine) => {
                let runtime = with_beat(engine.monitor().runtime(), beat);
                engine.run_on(runtime);
            }
            Topology::Sharded(m) => {
                let monitor = m.shards().monitor();
                if let Some(runtime) = monitor.map(|m| with_beat(m.runtime(), beat)) {
                    m.shards_mut().run_on(runtime);
                }
                m.beat_with(beat.clone());
            }
            Topology::Judges(judges) => judges.beat_with(beat),
        }
    }

    /// Applies an event of a partition.
    pub fn on_partition(&mut self, at: PartitionId, what: PartitionEvent) {
        if let Some(sink) = self.sink_of(at) {
            sink.on_partition(at, what);
        }
    }

    /// The frontier and how long it has been stalled; `None` on a worker, whose judge watches it.
    pub fn watchdog(&self) -> Option<&Watchdog> {
        match self {
            Topology::Single(engine) => Some(engine.watchdog()),
            Topology::Sharded(m) => Some(m.shards().watchdog()).filter(|_| !self.counts_only()),
            Topology::Judges(judges) => judges.watchdog(),
        }
    }

    /// Moves some predictions that exceed memory since a shard arrived to the store: one step per
    /// call, so that nothing else waits long.
    pub fn spill_some(&mut self) {
        match self {
            Topology::Single(engine) => {
                engine.upkeep().spill_some();
            }
            Topology::Sharded(m) => m.shards_mut().spill_some(),
            Topology::Judges(_) => {}
        }
    }

    /// Judges what was read, where each partition has a shard.
    pub fn advance(&mut self) {
        if let Topology::Sharded(m) = self {
            m.shards_mut().advance();
        }
    }

    /// Event time up to which all is read and judged, before the lateness of models; `None` where
    /// this process does not judge.
    pub fn judged_ms(&self) -> Option<i64> {
        match self {
            Topology::Judges(judges) => judges.judged_ms(),
            Topology::Single(_) | Topology::Sharded(_) => self.watchdog()?.frontier().time_ms,
        }
    }

    /// See [`Engine::tick`].
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        match self {
            Topology::Single(engine) => engine.tick(now_ms),
            Topology::Sharded(m) => m.shards_mut().tick(now_ms),
            Topology::Judges(judges) => judges.tick(now_ms),
        }
    }

    /// Streams that came or left since the last call.
    pub fn take_migrations(&mut self) -> Migrations {
        match self {
            Topology::Single(_) => Migrations::default(),
            Topology::Sharded(m) => m.take_migrations(),
            Topology::Judges(judges) => judges.take_migrations(),
        }
    }

    /// Whether streams may move between processes.
    pub fn may_move(&self) -> bool {
        match self {
            Topology::Single(_) => false,
            Topology::Sharded(_) => true,
            Topology::Judges(judges) => judges.may_move(),
        }
    }

    /// Whether the streams of a model may be in several processes.
    pub fn divides_models(&self) -> bool {
        matches!(self, Topology::Sharded(_))
    }

    /// Takes what people were notified of, by stream, which moves with its streams. Returns whether
    /// it must be saved at once.
    pub fn carry(&mut self, notified: Transfers<StreamId>) -> bool {
        match self {
            Topology::Single(_) => false,
            Topology::Sharded(m) => m.carry(notified.open),
            Topology::Judges(judges) => judges.carry(notified),
        }
    }

    /// The listener that writes deliveries at once; only judges in a group have one.
    pub fn delivery_listener(&self) -> Option<DeliveryListener> {
        match self {
            Topology::Single(_) | Topology::Sharded(_) => None,
            Topology::Judges(judges) => judges.delivery_listener(),
        }
    }

    /// Writes what people were notified of, where that need not wait for a checkpoint.
    pub fn write_notified(&mut self) {
        if let Topology::Judges(judges) = self {
            judges.write_notified();
        }
    }

    /// What is monitored.
    pub fn plan(&self) -> &Plan {
        match self {
            Topology::Single(engine) => engine.plan(),
            Topology::Sharded(m) => m.shards().plan(),
            Topology::Judges(judges) => judges.plan(),
        }
    }

    /// The shards that count here; none on a judge.
    pub fn shards(&self) -> impl Iterator<Item = ShardView<'_>> {
        let (one, several) = match self {
            Topology::Single(engine) => (Some(engine.shard()), &[][..]),
            Topology::Sharded(m) => (None, m.shards().all()),
            Topology::Judges(_) => (None, &[][..]),
        };
        one.into_iter().chain(several.iter().map(LocalShard::view))
    }

    /// The monitors that judge here; none on a worker.
    pub fn monitors(&self) -> impl Iterator<Item = MonitorView<'_>> {
        let (one, several) = match self {
            Topology::Single(engine) => (Some(engine.monitor()), None),
            Topology::Sharded(m) => (m.shards().monitor(), None),
            Topology::Judges(judges) => (None, Some(judges.monitors())),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    /// The snapshot from which a restart continues, if it lies in the directory of this process.
    pub fn snapshot(&self) -> Option<Snapshot> {
        match self {
            Topology::Single(engine) => Some(engine.snapshot()),
            Topology::Sharded(_) => None,
            Topology::Judges(judges) => judges.snapshot(),
        }
    }

    /// Whether another process judges what is counted here.
    pub fn counts_only(&self) -> bool {
        matches!(self, Topology::Sharded(m) if m.shards().monitor().is_none())
    }

    /// Whether this process is configured as the judge and another process judges in its place.
    pub fn stands_by(&self) -> bool {
        matches!(self, Topology::Judges(judges) if judges.stands_by())
    }

    /// Reads what others have counted, if it is judged here; waits at most `wait` for the first
    /// record. Returns the number of records.
    pub fn follow(&mut self, wait: Duration) -> usize {
        match self {
            Topology::Judges(judges) => judges.follow(wait),
            Topology::Single(_) | Topology::Sharded(_) => 0,
        }
    }

    /// The parts that keep verdicts from being given, over all partitions or those of this process,
    /// each with the reason.
    pub fn waits_for(&self) -> Vec<(String, String)> {
        match self {
            Topology::Judges(judges) => judges.waits_for(),
            Topology::Sharded(m) => m.superseded(),
            Topology::Single(_) => Vec::new(),
        }
    }

    /// The role of this process among others.
    pub fn role(&self) -> Role {
        match self {
            Topology::Judges(judges) => judges.role(),
            _ if self.counts_only() => Role::Worker,
            Topology::Single(_) | Topology::Sharded(_) => Role::Alone,
        }
    }

    /// Whether this process judges what others count.
    pub fn judges_all(&self) -> bool {
        matches!(self, Topology::Judges(_))
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &Arc<StreamReport>> {
        self.monitors().flat_map(MonitorView::reports)
    }

    /// What waits of streams that were not judged yet; known only if one engine has all partitions.
    pub fn unjudged(&self) -> Vec<Unjudged> {
        match self {
            Topology::Single(engine) => engine.unjudged(),
            _ => Vec::new(),
        }
    }

    /// The accounts of false alarms.
    pub fn ledger(&self) -> Vec<AccountReport> {
        if self.stands_by() {
            return Vec::new();
        }
        AccountReport::add_up(self.monitors().flat_map(MonitorView::ledger))
    }

    /// Versions that scored the same ids.
    pub fn comparisons(&self) -> Vec<ComparisonReport> {
        match self {
            Topology::Single(engine) => engine.comparisons(),
            Topology::Sharded(m) => m.shards().comparisons(),
            Topology::Judges(judges) => judges.comparisons(),
        }
    }

    /// See [`Engine::pair_counts`].
    pub fn pair_counts(&self) -> Vec<(String, PairCounts, usize)> {
        match self {
            Topology::Single(engine) => engine.pair_counts(),
            Topology::Sharded(m) => m.shards().pair_counts(),
            // Pairs are counted where they are made.
            Topology::Judges(_) => Vec::new(),
        }
    }

    /// What became of every record that this process read, and of those in [`Topology::brought`].
    pub fn counters(&self) -> Counters {
        match self {
            Topology::Single(engine) => engine.counters(),
            Topology::Sharded(m) => m.shards().counters(),
            Topology::Judges(judges) => judges.counters(),
        }
    }

    /// The part of [`Topology::counters`] that earlier processes counted.
    pub fn brought(&self) -> Counters {
        match self {
            Topology::Single(engine) => engine.brought().clone(),
            Topology::Sharded(_) | Topology::Judges(_) => Counters::default(),
        }
    }

    /// Records without an end that moved with their partitions.
    pub fn moved(&self, source: u16) -> Moved {
        match self {
            Topology::Single(_) | Topology::Judges(_) => Moved::default(),
            Topology::Sharded(m) => m.shards().moved(source),
        }
    }

    /// See [`Engine::reload`].
    pub fn reload(&mut self, new: &Plan) {
        match self {
            Topology::Single(engine) => engine.reload(new),
            Topology::Sharded(m) => m.shards_mut().reload(new),
            Topology::Judges(judges) => judges.reload(new),
        }
    }

    /// See [`Engine::start_over`]; `None` where this process does not judge.
    pub fn start_over(
        &mut self,
        of: impl Fn(&StreamId) -> bool,
        close: Option<&str>,
    ) -> Option<usize> {
        if self.counts_only() || self.stands_by() {
            return None;
        }
        Some(match self {
            Topology::Single(engine) => engine.start_over(of, close),
            Topology::Sharded(m) => m.shards_mut().start_over(of, close),
            Topology::Judges(judges) => judges.start_over(of, close),
        })
    }

    /// See [`Engine::tap`].
    pub fn tap(&mut self, wanted: Wanted) -> (Vec<Pair>, Passed) {
        match self {
            Topology::Single(engine) => engine.tap(wanted),
            Topology::Sharded(m) => m.shards_mut().tap(&wanted),
            // The server refuses to tap a judge.
            Topology::Judges(_) => (Vec::new(), Passed::default()),
        }
    }

    /// See [`Engine::take_judgements`].
    pub fn take_judgements(&mut self) -> Vec<WindowJudgement> {
        match self {
            Topology::Single(engine) => engine.take_judgements(),
            Topology::Sharded(m) => m.shards_mut().take_judgements(),
            Topology::Judges(judges) => judges.take_judgements(),
        }
    }

    /// How far each partition was read.
    pub fn partitions(&self) -> Vec<PartitionState> {
        self.shards()
            .flat_map(|s| s.partitions().states())
            .collect()
    }

    /// The next offset of each partition that was read.
    pub fn positions(&self) -> Vec<Origin> {
        if let Topology::Judges(judges) = self {
            return judges.positions();
        }
        let all = self.shards().flat_map(|s| s.partitions().positions());
        all.collect()
    }

    /// The size of the state: panes of shards and of the windows over them, heap bytes, and
    /// predictions that are retained for outcomes or revisions.
    pub fn usage(&self) -> EngineFacts {
        let (panes, bytes) = match self {
            Topology::Single(e) => (e.panes(), e.bytes()),
            Topology::Sharded(m) => (m.shards().panes(), m.shards().bytes()),
            Topology::Judges(judges) => (judges.panes(), judges.bytes()),
        };
        let mut facts = EngineFacts {
            panes: panes as u64,
            state_bytes: bytes as u64,
            ..EngineFacts::default()
        };
        for shard in self.shards() {
            let (spilled, pending_bytes) = shard.spilled();
            facts.retained += shard.retained() as u64;
            facts.spilled += spilled as u64;
            facts.pending_bytes += pending_bytes as u64;
        }
        facts
    }

    /// For each join, a sample of the outcomes that wait, and how many of them have a prediction
    /// that waits on another partition of this process.
    pub fn wrong_partitions(&self) -> Vec<WrongPartition> {
        let all: Vec<_> = self.shards().map(ShardView::joins).collect();
        wrong_partitions(&all)
    }

    /// The joins of this process; none if it counts nothing.
    pub fn joins(&self) -> &[JoinPlan] {
        match self {
            Topology::Judges(_) => &[],
            _ => &self.plan().joins,
        }
    }

    /// Why the store of pending predictions failed, if it did.
    pub fn fault(&self) -> Option<&SpillError> {
        let taken_over = match self {
            Topology::Sharded(m) => m.fault(),
            Topology::Single(_) | Topology::Judges(_) => None,
        };
        taken_over.or_else(|| self.shards().find_map(ShardView::fault))
    }

    /// Takes out the member of the group of judges, when the process ends.
    pub fn take_member(&mut self) -> Option<Consumer> {
        match self {
            Topology::Single(_) | Topology::Sharded(_) => None,
            Topology::Judges(judges) => judges.take_member(),
        }
    }

    /// See [`Shards::deltas_due`](crate::monitor::Shards::deltas_due).
    pub fn deltas_due(&self) -> bool {
        matches!(self, Topology::Sharded(m) if m.shards().deltas_due())
    }

    /// See [`Shards::deltas_full`](crate::monitor::Shards::deltas_full).
    pub fn deltas_full(&self) -> bool {
        matches!(self, Topology::Sharded(m) if m.shards().deltas_full())
    }

    /// Bytes of the journals of joins and ids that were not yet handed over to be written.
    pub fn journal_bytes(&self) -> usize {
        self.shards().map(ShardView::journal_bytes).sum()
    }

    /// Whether checkpoints are being written.
    pub fn is_writing(&self) -> bool {
        match self {
            Topology::Single(_) => false,
            Topology::Sharded(m) => m.is_writing(),
            Topology::Judges(judges) => judges.is_writing(),
        }
    }

    /// Hands what has changed to the checkpoint store, if there is one.
    pub fn write(&mut self) {
        match self {
            Topology::Single(_) => {}
            Topology::Sharded(m) => m.write(),
            Topology::Judges(judges) => judges.write(),
        }
    }

    /// Returns once what became of the last checkpoints handed over, if known.
    pub fn written(&mut self) -> Option<Written> {
        match self {
            Topology::Single(_) => None,
            Topology::Sharded(m) => m.written(),
            Topology::Judges(judges) => judges.written(),
        }
    }

    /// Waits for the checkpoints under way, when the process ends.
    pub fn wait_written(&mut self, within: Duration) -> Option<Written> {
        match self {
            Topology::Single(_) => None,
            Topology::Sharded(m) => m.wait_written(within),
            Topology::Judges(judges) => judges.wait_written(within),
        }
    }

    /// Counts and ages of checkpoints, where there are any.
    pub fn checkpoints(&self) -> Option<(&CheckpointCounts, Vec<CheckpointAge<'_>>)> {
        match self {
            Topology::Single(_) => None,
            Topology::Sharded(m) => Some(m.checkpoints()),
            Topology::Judges(judges) => Some(judges.checkpoints()),
        }
    }
}
