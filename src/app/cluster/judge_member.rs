//! A member of the group of judges: handles the judge partitions that the group assigns and
//! revokes.
//!
//! An assigned judge partition is claimed, and its newest checkpoint restored, within the
//! rebalance. If no broker serves it, it is [not taken over](UnservedPartitions) then: the member
//! judges the others, and joins again later to claim it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::judge_store::JudgeStore;
use super::judge_task::JudgeTask;
use super::judge_topic::judge_topic;
use super::migrations::Migrations;
use super::options::FollowerOptions;
use super::unserved::UnservedPartitions;
use crate::alert::Alert;
use crate::app::candidates::caught;
use crate::app::dropped::report_dropped;
use crate::app::ingest::contest::grace;
use crate::judge::{Change, Plan, StreamId, WindowJudgement};
use crate::kafka::{Begin, Handler, KafkaError, Partition, Record};
use crate::monitor::VerdictState;
use crate::monitor::repartition::judge_partition;
use crate::store::checkpoint::{Notified, PartitionCheckpoint, claim_key};
use crate::store::reader::FoundCheckpoint;
use crate::telemetry::facts::CheckpointCounts;

/// The tasks of a process, by judge partition.
pub(super) type Tasks = BTreeMap<i32, JudgeTask>;

/// State of a member of the group besides its tasks.
#[derive(Default)]
pub(super) struct Membership {
    /// Offsets of our claims, by judge partition.
    pub(super) claims: BTreeMap<i32, i64>,
    /// Judge partitions that are assigned and not judged, each with the reason.
    pub(super) suspended: BTreeMap<i32, String>,
    /// Judge partitions that another process claimed while they were assigned here.
    pub(super) superseded: BTreeMap<i32, Instant>,
    /// Why the consumer can no longer be used, or is idle.
    pub(super) trouble: Option<String>,
    pub(super) failed: bool,
    /// Judge partitions that could not be taken over.
    pub(super) unserved: UnservedPartitions,
    /// When the group removed the member or the member left; `None` once it has partitions again.
    pub(super) lost_since: Option<Instant>,
    /// The error that made the member leave, or the last error since.
    pub(super) refused: Option<String>,
    /// Another member has taken the `instance`.
    pub(super) fencing: Fencing,
    /// What people were notified of, by stream, for alerts that fire or whose end waits for sinks.
    /// At first it is what the checkpoints say.
    pub(super) notified: BTreeMap<StreamId, String>,
    pub(super) migrations: Migrations,
    /// Changes and judgements of streams that left, since they were last taken. The next owner of
    /// the streams continues after them.
    pub(super) changes: Vec<Change>,
    pub(super) judgements: Vec<WindowJudgement>,
    pub(super) counts: CheckpointCounts,
}

impl Membership {
    /// The streams of a judge partition came, with their stored verdicts.
    pub(super) fn came(&mut self, verdicts: Vec<VerdictState>) {
        let notified = verdicts.iter().filter_map(VerdictState::notified);
        self.notified.extend(notified);
        self.migrations.came.extend(verdicts);
    }

    /// The streams of a judge partition, one of `partitions`, left. Streams of it that came and
    /// were not reported yet belong to its next owner.
    pub(super) fn left(&mut self, partition: i32, partitions: i32, task: &JudgeTask) {
        let of = |model: &str| judge_partition(model, partitions);
        let came = &mut self.migrations.came;
        came.retain(|verdict| of(&verdict.stream.model) != partition);
        self.migrations.left.extend(task.streams());
    }

    /// The member has no place in the group until the next assignment.
    pub(super) fn lose(&mut self) {
        self.lost_since.get_or_insert_with(Instant::now);
    }

    /// Why nothing is judged, if the group has not let the member in again for a while.
    pub(super) fn thrown_out(&self) -> Option<String> {
        let time = self.lost_since?.elapsed();
        let why = self.refused.as_deref();
        let why = format!(
            "this process lost all judge partitions {} s ago, and the group has given it none since: {}",
            time.as_secs(),
            why.unwrap_or("it does not answer the request to join")
        );
        (time >= LET_IN_WITHIN).then_some(why)
    }
}

/// How long a group may take to let a member in again before the delay is reported.
const LET_IN_WITHIN: Duration = Duration::from_secs(30);
/// How many times the wait doubles while a member keeps being fenced.
const DOUBLINGS: u32 = 3;
/// After this time without being fenced, the wait is the first one again.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// When a member that was fenced joins again under its `instance`.
///
/// Another process may have the name. Or this process joined twice, because a network failure lost
/// the answer to its first join. So it waits as long as another process may take to end, and longer
/// if it is fenced again: two judges of one name then take turns, ever more rarely. Each partition
/// has its own claim, so nothing is judged twice.
#[derive(Debug, Default)]
pub(super) struct Fencing {
    /// When it was last fenced, and how often in a row.
    last: Option<(Instant, u32)>,
}

impl Fencing {
    /// The broker has fenced the member.
    fn fence(&mut self, now: Instant) {
        let recent = self
            .last
            .filter(|(at, _)| now.duration_since(*at) < FORGOTTEN);
        let times = recent.map_or(0, |(_, times)| times);
        self.last = Some((now, times.saturating_add(1)));
    }

    /// How long the member still waits; `None` if it need not.
    pub(super) fn left(&self, session: Duration, now: Instant) -> Option<Duration> {
        let (at, times) = self.last?;
        let wait = grace(session) * (1 << (times - 1).min(DOUBLINGS));
        let left = wait.saturating_sub(now.duration_since(at));
        (!left.is_zero()).then_some(left)
    }
}

/// The checkpoint from which another process can continue; `None` while the partition is read for
/// the first time.
pub(super) fn checkpoint_of(
    task: &JudgeTask,
    notified: &BTreeMap<StreamId, String>,
) -> Option<PartitionCheckpoint> {
    Some(PartitionCheckpoint {
        snapshot: task.snapshot()?,
        verdicts: task.alerts(notified),
        ..PartitionCheckpoint::default()
    })
}

/// Adds to the alerts of a checkpoint what people were notified of after it was begun. This comes
/// first: an alert of several streams is stored with one of them, and the first text found counts.
pub(super) fn with_notified(
    alerts: Vec<VerdictState>,
    notified: Vec<Notified>,
) -> Vec<VerdictState> {
    let alerts = alerts
        .into_iter()
        .map(|alert| (alert.stream.clone(), alert));
    let mut alerts: BTreeMap<StreamId, VerdictState> = alerts.collect();
    let add = |Notified { stream, text }: Notified| VerdictState {
        notified: Some(text),
        ..alerts.remove(&stream).unwrap_or(VerdictState {
            stream,
            windows: Vec::new(),
            detector: None,
            alert: Alert::default(),
            notified: None,
        })
    };
    let mut all: Vec<VerdictState> = notified.into_iter().map(add).collect();
    all.extend(alerts.into_values());
    all
}

/// A member, with its tasks, borrowed for one poll.
pub(super) struct GroupHandler<'a> {
    pub(super) options: &'a FollowerOptions,
    pub(super) plan: &'a Plan,
    pub(super) topics: &'a [String],
    pub(super) store: &'a mut JudgeStore,
    pub(super) member: &'a mut Membership,
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
        let made = found.and_then(|found| self.restore(partition, found));
        match made {
            Ok((mut task, verdicts)) => {
                task.begin(1);
                self.member.claims.insert(partition, taken.epoch);
                self.member.came(verdicts);
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

    /// Makes the task of a judge partition from its checkpoint, if any, with the verdicts and
    /// alerts of its streams.
    pub(super) fn restore(
        &mut self,
        partition: i32,
        found: Option<FoundCheckpoint>,
    ) -> Result<(JudgeTask, Vec<VerdictState>), String> {
        let (snapshot, verdicts) = match found {
            None => (None, Vec::new()),
            Some(FoundCheckpoint {
                checkpoint: c,
                notified,
                ..
            }) => (Some(c.snapshot), with_notified(c.verdicts, notified)),
        };
        let of = |snapshot| {
            let new = || JudgeTask::new(self.plan, self.topics, self.options, snapshot);
            caught(new)?.map_err(|error| error.to_string())
        };
        match of(snapshot) {
            Ok(task) => {
                let dropped = task.aggregator().monitor().dropped();
                report_dropped("checkpoint", dropped.iter(), "");
                Ok((task, verdicts))
            }
            Err(error) if self.options.checkpoints.fresh => {
                tracing::error!(%error, "a judge partition begins without what was judged");
                let fresh = of(None)?;
                self.store.begin_fresh(partition);
                // People who were notified must still learn of the end.
                Ok((fresh, verdicts))
            }
            Err(error) => Err(error),
        }
    }

    /// Drops what is known of a judge partition; returns its task.
    fn drop_task(&mut self, partition: i32) -> Option<JudgeTask> {
        self.member.unserved.remove(partition);
        self.member.claims.remove(&partition);
        let task = self.tasks.remove(&partition)?;
        let partitions = self.store.partitions();
        self.member.left(partition, partitions, &task);
        Some(task)
    }

    /// Writes the last checkpoint of a task, if the group leaves enough time.
    fn leave(&mut self, partition: i32, task: &mut JudgeTask) {
        self.store.wait_to_leave(&mut self.member.counts);
        let due = self.store.is_due(partition, task.revision());
        let written = match checkpoint_of(task, &self.member.notified).filter(|_| due) {
            None => Ok(()),
            Some(_) if self.store.is_writing() => Err("the one before takes too long".to_owned()),
            Some(checkpoint) => {
                let last = (partition, task.revision(), checkpoint);
                self.store.write_last(last, &mut self.member.counts)
            }
        };
        match written {
            Ok(()) => {
                self.member.changes.extend(task.take_changes());
                self.member.judgements.extend(task.take_judgements());
            }
            Err(why) => tracing::warn!(
                partition,
                why,
                "last checkpoint of a judge partition not written; its next owner judges more again"
            ),
        }
    }

    /// Hands a record of the topic to the task of its partition.
    fn take(&mut self, record: &Record<'_>) {
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
        let claim = self.member.claims.get(&partition);
        let after_claim = claim.is_some_and(|ours| offset >= *ours);
        if let Some(task) = self.tasks.get_mut(&partition) {
            let value = Some(record.payload).filter(|value| !value.is_empty());
            let counts = &mut self.member.counts;
            task.take(0, offset, record.timestamp_ms, key, value, counts);
            // Our claim comes after all records that were there at the start. The end may never be
            // reported, because workers write without a pause.
            if after_claim && !task.is_read() {
                task.end(0, counts);
            }
        }
    }
}

impl Handler for GroupHandler<'_> {
    fn records(&mut self, batch: &[Record<'_>]) {
        for record in batch {
            self.take(record);
        }
    }

    fn assigning(&mut self) {
        (self.member.lost_since, self.member.refused) = (None, None);
        self.member.unserved.begin();
    }

    fn assigned(&mut self, partition: Partition) -> Option<i64> {
        let partition = partition.partition;
        self.drop_task(partition);
        self.member.suspended.remove(&partition);
        self.member.superseded.remove(&partition);
        tracing::info!(partition, "judge partition assigned");
        // Otherwise each partition would wait again for a broker that is away.
        let taken = match self.member.unserved.are_many() {
            true => Err("others were waited for in vain".to_owned()),
            false => self.take_over(partition).map_err(|error| error.to_string()),
        };
        if let Err(why) = taken {
            tracing::error!(partition, why, "judge partition is not taken over yet");
            let why = format!("{why}; it is claimed when this process joins the judges again");
            self.member.suspended.insert(partition, why);
            self.member.unserved.add(partition, Instant::now());
        }
        Some(0)
    }

    fn begins(&mut self, _: Partition, _: Begin) {}

    fn revoking(&mut self, _: &[Partition]) {
        self.store.begin_revocation();
    }

    fn revoked(&mut self, partition: Partition, lost: bool) {
        let partition = partition.partition;
        tracing::info!(partition, lost, "judge partition revoked");
        if lost {
            self.member.lose();
        }
        self.member.suspended.remove(&partition);
        self.member.superseded.remove(&partition);
        if let Some(mut task) = self.drop_task(partition)
            && !lost
        {
            self.leave(partition, &mut task);
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
        self.suspended(
            partition,
            "its topic was cut or made again; it is claimed when this process joins the judges again",
        );
        self.member
            .unserved
            .add(partition.partition, Instant::now());
    }

    fn suspended(&mut self, partition: Partition, why: &str) {
        let partition = partition.partition;
        tracing::error!(partition, why, "judge partition is no longer read");
        self.drop_task(partition);
        self.store.forget(partition);
        self.member.suspended.insert(partition, why.to_owned());
    }

    fn error(&mut self, error: KafkaError) {
        if error.is_fatal() || self.member.lost_since.is_some() {
            self.member.refused = Some(error.to_string());
        }
        if error.is_fatal() {
            tracing::error!(%error, "the member of the judges failed and joins again");
            if matches!(error, KafkaError::Fenced(_)) && !self.member.failed {
                self.member.fencing.fence(Instant::now());
            }
            self.member.failed = true;
            self.member.trouble = Some(error.to_string());
        } else {
            tracing::warn!(%error, "kafka");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fenced_member_joins_again_and_waits_longer_each_time_in_a_row() {
        let (session, second) = (Duration::from_secs(6), Duration::from_secs(1));
        let mut fencing = Fencing::default();
        let mut now = Instant::now();
        assert_eq!(fencing.left(session, now), None);
        // The grace period of this session is 16 s.
        for wait in [16, 32, 64, 128, 128] {
            fencing.fence(now);
            assert_eq!(
                fencing.left(session, now + 5 * second),
                Some((wait - 5) * second)
            );
            now += wait * second;
            assert_eq!(fencing.left(session, now), None);
        }
        now += FORGOTTEN;
        fencing.fence(now);
        assert_eq!(fencing.left(session, now), Some(16 * second));
    }
}
