//! A member of the group of judges: what it does with the judge partitions that the group gives and
//! takes.
//!
//! A judge partition that comes is claimed and its newest checkpoint is restored, within the
//! rebalance. If a broker is away, the first that cannot be taken over ends the member: it joins
//! again, and claims all of them then.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use super::assignment::Moves;
use super::judge_store::JudgeStore;
use super::judge_task::JudgeTask;
use super::judge_topic::judge_topic;
use super::options::FollowerOptions;
use crate::app::dropped::report_dropped;
use crate::judge::Plan;
use crate::kafka::{Begin, Handler, KafkaError, Partition, Record};
use crate::monitor::VerdictState;
use crate::store::checkpoint::{PartitionCheckpoint, claim_key};
use crate::store::reader::FoundCheckpoint;
use crate::telemetry::facts::CheckpointCounts;

/// The tasks of a process, by judge partition.
pub(super) type Tasks = BTreeMap<i32, JudgeTask>;

/// What a member of the group knows besides its tasks.
#[derive(Default)]
pub(super) struct Member {
    /// Claims of our tasks.
    pub(super) claims: BTreeMap<i32, i64>,
    /// Judge partitions that are assigned and not judged, each with the reason.
    pub(super) suspended: BTreeMap<i32, String>,
    /// Judge partitions that another process claimed while they were assigned here.
    pub(super) superseded: BTreeMap<i32, Instant>,
    /// Why the consumer is of no more use, or does nothing.
    pub(super) trouble: Option<String>,
    pub(super) failed: bool,
    /// Another process has taken the `instance`.
    pub(super) fenced: bool,
    /// What people were notified of alerts that fire, by fingerprint of a stream.
    pub(super) notified: BTreeMap<String, String>,
    pub(super) moves: Moves,
    pub(super) counts: CheckpointCounts,
}

/// What a judge partition goes on from elsewhere; nothing while it is read for the first time.
pub(super) fn checkpoint_of(
    task: &JudgeTask,
    notified: &BTreeMap<String, String>,
) -> Option<PartitionCheckpoint> {
    Some(PartitionCheckpoint {
        snapshot: task.snapshot()?,
        verdicts: task.alerts(notified),
        ..PartitionCheckpoint::default()
    })
}

/// A member that borrows its tasks for one poll.
pub(super) struct GroupHandler<'a> {
    pub(super) options: &'a FollowerOptions,
    pub(super) plan: &'a Plan,
    pub(super) topics: &'a [String],
    pub(super) store: &'a mut JudgeStore,
    pub(super) member: &'a mut Member,
    pub(super) tasks: &'a mut Tasks,
}

impl GroupHandler<'_> {
    /// Claims a judge partition and restores its task.
    fn take_over(&mut self, partition: i32) -> Result<(), KafkaError> {
        let taken = self.store.take_over(partition, &mut self.member.counts)?;
        let found = match taken.found {
            Err(why) if self.options.checkpoints.fresh => {
                tracing::error!(partition, why, "a judge partition begins without its state");
                Ok(None)
            }
            found => found,
        };
        let made = found.and_then(|found| self.restore(found));
        match made {
            Ok((mut task, verdicts)) => {
                task.begin(1);
                self.member.claims.insert(partition, taken.epoch);
                self.member.moves.came.extend(verdicts);
                self.tasks.insert(partition, task);
            }
            Err(why) => {
                tracing::error!(partition, why, "judge partition is not judged");
                let topic = judge_topic(&self.options.checkpoints.topic);
                let why = format!(
                    "no checkpoint of it in {topic} can be used: {why}; mend the topic, or set [state] on_broken = \
                     \"fresh\" to begin without what was judged"
                );
                self.member.suspended.insert(partition, why);
            }
        }
        Ok(())
    }

    fn restore(
        &self,
        found: Option<FoundCheckpoint>,
    ) -> Result<(JudgeTask, Vec<VerdictState>), String> {
        let checkpoint = found.map(|found| found.checkpoint);
        let (snapshot, verdicts) = match checkpoint {
            None => (None, Vec::new()),
            Some(c) => (Some(c.snapshot), c.verdicts),
        };
        let of = |snapshot| JudgeTask::new(self.plan, self.topics, self.options, snapshot);
        match of(snapshot) {
            Ok(task) => {
                let dropped = task.aggregator().monitor().dropped();
                report_dropped("checkpoint", dropped.iter(), "");
                Ok((task, verdicts))
            }
            Err(error) if self.options.checkpoints.fresh => {
                tracing::error!(%error, "a judge partition begins without what was judged");
                let fresh = of(None).map_err(|error| error.to_string())?;
                Ok((fresh, Vec::new()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Drops what is known of a judge partition; answers its task.
    fn drop_task(&mut self, partition: i32) -> Option<JudgeTask> {
        self.member.claims.remove(&partition);
        let task = self.tasks.remove(&partition)?;
        self.member.moves.left.extend(task.streams());
        Some(task)
    }

    /// Writes the last checkpoint of a task, as far as the group leaves time for it.
    fn leave(&mut self, partition: i32, task: &JudgeTask) {
        self.store.wait_to_leave(&mut self.member.counts);
        let checkpoint = checkpoint_of(task, &self.member.notified);
        let due = self.store.is_due(partition, task.revision());
        let (Some(checkpoint), true, false) = (checkpoint, due, self.store.busy()) else {
            return;
        };
        let last = (partition, task.revision(), checkpoint);
        if !self.store.write_last(last, &mut self.member.counts) {
            tracing::warn!(
                partition,
                "last checkpoint of a judge partition not written; its next owner judges more again"
            );
        }
    }
}

impl Handler for GroupHandler<'_> {
    fn record(&mut self, record: Record<'_>) {
        let (partition, offset) = (record.partition, record.offset);
        let key = record.key.unwrap_or_default();
        let claim = self.member.claims.get(&partition);
        if claim.is_some_and(|ours| offset > *ours)
            && key == claim_key(&self.store.prefix(partition)).as_bytes()
        {
            let by = String::from_utf8_lossy(record.payload);
            tracing::error!(partition, %by, "another process has claimed a judge partition");
            self.drop_task(partition);
            self.store.forget(partition);
            self.member.superseded.insert(partition, Instant::now());
            self.member.counts.superseded += 1;
        }
        if let Some(task) = self.tasks.get_mut(&partition) {
            let value = Some(record.payload).filter(|value| !value.is_empty());
            let counts = &mut self.member.counts;
            task.take((0, offset), record.timestamp_ms, (key, value), counts);
        }
    }

    fn assigned(&mut self, partition: Partition) -> Option<i64> {
        let partition = partition.partition;
        self.drop_task(partition);
        self.member.suspended.remove(&partition);
        self.member.superseded.remove(&partition);
        tracing::info!(partition, "judge partition assigned");
        if self.member.failed {
            // Whoever is away would be waited for again, for each partition.
            let why = "it is claimed when the member joins again";
            self.member.suspended.insert(partition, why.to_owned());
        } else if let Err(error) = self.take_over(partition) {
            self.error(KafkaError::Fatal(error.to_string()));
        }
        Some(0)
    }

    fn begins(&mut self, _: Partition, _: Begin) {}

    fn revoking(&mut self, _: &[Partition]) {
        self.store.begin_leaving();
    }

    fn revoked(&mut self, partition: Partition, lost: bool) {
        let partition = partition.partition;
        tracing::info!(partition, lost, "judge partition revoked");
        self.member.suspended.remove(&partition);
        self.member.superseded.remove(&partition);
        if let Some(task) = self.drop_task(partition)
            && !lost
        {
            self.leave(partition, &task);
        }
        self.store.forget(partition);
    }

    fn end_of_partition(&mut self, partition: Partition) {
        if let Some(task) = self.tasks.get_mut(&partition.partition) {
            task.end(0, &mut self.member.counts);
        }
    }

    fn lost(&mut self, _: Partition, _: Range<i64>) {}

    fn rewound(&mut self, partition: Partition, _: i64) {
        self.suspended(partition, "its topic was cut or made again");
    }

    fn suspended(&mut self, partition: Partition, why: &str) {
        let partition = partition.partition;
        tracing::error!(partition, why, "judge partition is no longer read");
        self.drop_task(partition);
        self.store.forget(partition);
        self.member.suspended.insert(partition, why.to_owned());
    }

    fn error(&mut self, error: KafkaError) {
        self.member.fenced |= matches!(error, KafkaError::Fenced(_));
        if error.is_fatal() || self.member.fenced {
            tracing::error!(%error, "the member of the judges failed and joins again");
            self.member.failed = true;
            self.member.trouble = Some(error.to_string());
        } else {
            tracing::warn!(%error, "kafka");
        }
    }
}
