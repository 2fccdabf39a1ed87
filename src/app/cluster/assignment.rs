//! The shards of a process whose partitions may move, with the store of their checkpoints.
//!
//! The group assigns partitions: this process takes each one over from its newest checkpoint,
//! within the rebalance. If a broker does not answer, only the first partition waits for it. The
//! rest of the rebalance is suspended, and all are claimed again when the consumer has rejoined.
//! When the group revokes a partition, its last checkpoint is written before it is given up. The
//! checkpoint includes the verdicts and alerts of its streams, and what people were notified of.

use std::collections::BTreeMap;
use std::time::Duration;

use super::checkpoint_store::{CheckpointAge, CheckpointStore, TakeOver};
use super::cursor::Superseded;
use super::migrations::Migrations;
use crate::app::outputs::snapshots::Written;
use crate::collect::PartitionId;
use crate::collect::join::SpillError;
use crate::judge::StreamId;
use crate::kafka::KafkaError;
use crate::monitor::{Shards, VerdictState};
use crate::telemetry::facts::CheckpointCounts;
use crate::telemetry::published::Beat;

/// The shards of this process and the store of their checkpoints. See the module.
pub struct Assignment {
    shards: Shards,
    store: CheckpointStore,
    /// Names of the topics by number.
    topics: Vec<String>,
    /// Partitions that are assigned and must not be read, with the reason.
    suspended: BTreeMap<PartitionId, String>,
    trouble: Option<KafkaError>,
    /// Why a partition of this rebalance could not be taken over. If set, no other partition waits
    /// for a broker.
    away: Option<String>,
    /// What is known of the streams of partitions that this rebalance revokes.
    leaving: BTreeMap<PartitionId, Vec<VerdictState>>,
    /// Why the store of pending predictions failed while a partition was taken over.
    fault: Option<SpillError>,
    /// What people were notified of, by stream: for alerts that fire or whose end waits for sinks.
    /// It moves with the streams. At first it is what their checkpoints say.
    notified: BTreeMap<StreamId, String>,
    /// Streams that came, and streams that may have left, since [`Assignment::take_migrations`].
    migrations: Migrations,
}

impl Assignment {
    /// An assignment without shards.
    pub fn new(shards: Shards, store: CheckpointStore, topics: Vec<String>) -> Assignment {
        Assignment {
            shards,
            store,
            topics,
            suspended: BTreeMap::new(),
            trouble: None,
            away: None,
            leaving: BTreeMap::new(),
            fault: None,
            notified: BTreeMap::new(),
            migrations: Migrations::default(),
        }
    }

    /// The shards.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }

    /// The shards, to feed them.
    pub fn shards_mut(&mut self) -> &mut Shards {
        &mut self.shards
    }

    /// Verdicts and alerts of the streams of a shard with what was notified of them, for its
    /// checkpoint.
    fn verdicts(&mut self, at: PartitionId) -> Vec<VerdictState> {
        let mut all = self.shards.verdicts(at);
        for verdict in &mut all {
            verdict.notified = self.notified.get(&verdict.stream).cloned();
        }
        all
    }

    /// Reports this thread as alive, through `beat`, between two waits for brokers.
    pub fn beat_with(&mut self, beat: Beat) {
        self.store.beat_with(beat);
    }

    /// Begins a rebalance that assigns partitions: [`Assignment::assign`] follows for each.
    pub fn assigning(&mut self) {
        self.away = None;
    }

    /// Begins a rebalance that revokes these partitions: [`Assignment::revoke`] follows for each.
    /// The checkpoints get the verdicts as they are now: once the first partition has left, the
    /// verdicts on the others would have to be made again.
    pub fn revoking(&mut self, all: impl Iterator<Item = PartitionId>) {
        self.store.begin_revocation();
        self.leaving.clear();
        for at in all {
            if self.shards.copartition(at) == at {
                let verdicts = self.verdicts(at);
                self.leaving.insert(at, verdicts);
            }
        }
    }

    /// Takes a partition over; returns the offset to seek to, if known.
    pub fn assign(&mut self, at: PartitionId) -> Option<i64> {
        if self.shards.copartition(at) == at {
            self.take_over(at);
        }
        self.shards.get_mut(at)?.assign(at)
    }

    fn take_over(&mut self, at: PartitionId) {
        // An assignment may be lost without notice: what this process held of it is no longer its
        // own.
        self.shards.release(at);
        self.store.forget(at);
        self.suspended.remove(&at);
        self.leaving.remove(&at);
        if let Some(why) = &self.away {
            self.suspended.insert(at, why.clone());
            return;
        }
        let shards = self.shards.all().len() + 1;
        self.store.share(shards);
        self.shards.share_memory(shards);
        let (topic, partition) = (self.topics.get(usize::from(at.source)), at.partition);
        match self.store.take_over(at, &self.topics, self.shards.plan()) {
            Ok(TakeOver::Shard(shard, verdicts)) => {
                let notified = verdicts.iter().filter_map(VerdictState::notified);
                self.notified.extend(notified);
                self.migrations.came.extend(verdicts.iter().cloned());
                self.shards.adopt(*shard, verdicts);
                // The new shard was restored with only the joins' share of the memory.
                self.shards.share_memory(shards);
            }
            Ok(TakeOver::Suspended(why)) => {
                tracing::error!(topic, partition, why, "partition is not read");
                self.suspended.insert(at, why);
            }
            Ok(TakeOver::Broken(error)) => {
                tracing::error!(topic, partition, %error, "partition could not be taken over");
                self.suspended.insert(at, error.to_string());
                self.fault = Some(error);
            }
            Err(error) => {
                self.suspended.insert(at, error.to_string());
                self.away = Some(error.to_string());
                self.trouble = Some(error);
            }
        }
    }

    /// Gives a partition up; `lost` if the group has given it away already.
    pub fn revoke(&mut self, at: PartitionId, lost: bool) {
        if self.shards.copartition(at) != at {
            return;
        }
        self.suspended.remove(&at);
        let verdicts = self.leaving.remove(&at);
        let verdicts = verdicts.unwrap_or_else(|| self.verdicts(at));
        let streams = verdicts.iter().map(|v| v.stream.clone());
        self.migrations.left.extend(streams);
        let shard = self.shards.release(at);
        self.shards.share_memory(self.shards.all().len());
        if let Some(mut shard) = shard
            && !lost
        {
            let others = self.shards.all_mut();
            self.store.leave(&mut shard, &verdicts, others);
        }
        self.store.forget(at);
    }

    /// Whether a partition that is assigned must not be read.
    pub fn suspends(&self, at: PartitionId) -> bool {
        self.suspended.contains_key(&self.shards.copartition(at))
    }

    /// Partitions that are assigned and are not read, by topic, each with the reason.
    pub fn suspended(&self) -> impl Iterator<Item = (&str, i32, &str)> {
        self.suspended.iter().map(|(at, why)| {
            let topic = self.topics.get(usize::from(at.source));
            (topic.map_or("", String::as_str), at.partition, why.as_str())
        })
    }

    /// Why a partition of these topics must be taken over again: another process has superseded its
    /// claim for longer than the group would need to take the partition away.
    pub fn must_claim_again(&self, ours: impl Fn(u16) -> bool) -> Option<String> {
        let after = self.store.claims_again_after();
        let mut due = self
            .store
            .superseded()
            .filter(|(at, _, s)| ours(at.source) && s.since.elapsed() >= after);
        due.next().map(|(at, topic, other)| {
            let partition = at.partition;
            format!(
                "{topic}/{partition} was claimed by {} at offset {} of the state topic, and the group has left it \
                 here: claiming it again",
                other.by, other.offset
            )
        })
    }

    /// Partitions that another process has claimed while they are held here, by part, each with
    /// what that means.
    pub fn superseded(&self) -> Vec<(String, String)> {
        let after = self.store.claims_again_after();
        let why = |(at, topic, other): (PartitionId, &str, &Superseded)| {
            let why = format!(
                "{} claimed it at offset {} of the state topic; a judge ignores what this process writes of it. This \
                 process claims it again within {} s, unless the group gives it away",
                other.by,
                other.offset,
                after.saturating_sub(other.since.elapsed()).as_secs() + 1
            );
            (format!("claim of {topic}/{}", at.partition), why)
        };
        self.store.superseded().map(why).collect()
    }

    /// Returns once why a partition could not be taken over for now.
    pub fn take_trouble(&mut self) -> Option<KafkaError> {
        self.trouble.take()
    }

    /// Why the store of pending predictions failed while a partition was taken over, if it did.
    pub fn fault(&self) -> Option<&SpillError> {
        self.fault.as_ref()
    }

    /// Takes what people were notified of, by stream, for alerts that fire or whose end waits for
    /// sinks. Returns whether there is something to save.
    pub fn carry(&mut self, mut notified: BTreeMap<StreamId, String>) -> bool {
        self.migrations.add_notified(&mut notified);
        let before = std::mem::replace(&mut self.notified, notified);
        before != self.notified
    }

    /// Streams that came or left since the last call.
    pub fn take_migrations(&mut self) -> Migrations {
        let mut all = std::mem::take(&mut self.migrations);
        if !all.left.is_empty() {
            self.shards.advance();
            self.shards.without_reports(&mut all.left);
            // Streams that came and left again belong to their next owner.
            all.came.retain(|came| !all.left.contains(&came.stream));
        }
        all
    }

    /// Hands over all changed shards to be written.
    pub fn write(&mut self) {
        let all: Vec<PartitionId> = self.shards.all().iter().map(|s| s.at).collect();
        let verdicts = all.into_iter().map(|at| (at, self.verdicts(at))).collect();
        self.store.write(self.shards.all_mut(), &verdicts);
    }

    /// Whether checkpoints are being written.
    pub fn is_writing(&self) -> bool {
        self.store.is_writing()
    }

    /// Returns once what became of the last checkpoints handed over, if known.
    pub fn written(&mut self) -> Option<Written> {
        self.store.answer(self.shards.all_mut())
    }

    /// Waits for the checkpoints under way, when the process ends.
    pub fn wait_written(&mut self, within: Duration) -> Option<Written> {
        self.store.wait(self.shards.all_mut(), within)
    }

    /// Counts of what happened to checkpoints, and how old each is.
    pub fn checkpoints(&self) -> (&CheckpointCounts, Vec<CheckpointAge<'_>>) {
        (self.store.counts(), self.store.ages().collect())
    }
}
