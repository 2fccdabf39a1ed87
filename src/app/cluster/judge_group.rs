//! Several processes judge what many count: each has the judge partitions that their group assigns to it.
//!
//! The processes are a consumer group over the topic of judges ([`super::judge_topic`]). For each judge
//! partition that comes there is a [task](JudgeTask): it is claimed, its newest checkpoint is restored, and
//! the partition is read from its beginning, where the parts of checkpoints of all workers lie. When a
//! partition goes, its last checkpoint is written first. A process that is killed loses nothing: the next
//! owner restores its last checkpoint and judges the slides after it again, to the same verdicts.
//!
//! ```text
//!   workers ─► judge partition 0 ─► task ─► verdicts, alerts, checkpoint of the task ─► judge partition 0
//!              judge partition 1 ─► task …
//! ```
//!
//! What people were notified of goes along in the checkpoint. A process that dies between a notification
//! and its next checkpoint, which is then due at once, leaves a notification that the next owner sends
//! again with the same key, by which receivers recognise it.
//!
//! A judge that was frozen finds a later claim among the records of its partition, or that the group has
//! given the partition away, before it judges anything more: it reads first.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::assignment::Moves;
use super::checkpoint_store::{CheckpointAge, CheckpointCounts};
use super::follower::{AGAIN, TURN};
use super::judge_store::JudgeStore;
use super::judge_task::JudgeTask;
use super::judge_topic::judge_topic;
use super::options::FollowerOptions;
use crate::app::AppError;
use crate::app::dropped::report_dropped;
use crate::app::outputs::snapshots::Written;
use crate::judge::Plan;
use crate::kafka::{
    Begin, Consumer, FollowState, Handler, KafkaError, KafkaOptions, Partition, Record, StartAt,
};
use crate::monitor::VerdictState;
use crate::store::checkpoint::{PartitionCheckpoint, claim_key};
use crate::store::reader::FoundCheckpoint;

/// Longest wait for the last checkpoint of a task, where sessions are long.
const LEAVE_MAX: Duration = Duration::from_secs(10);

/// How long the last batch of checkpoints may take at the end.
const LAST: Duration = Duration::from_secs(20);

/// The tasks of a process, by judge partition.
pub(super) type Tasks = BTreeMap<i32, JudgeTask>;

/// See the module.
pub struct JudgeGroup {
    options: FollowerOptions,
    /// What tasks that come are judged by.
    pub(super) plan: Plan,
    topics: Vec<String>,
    topic: String,
    store: JudgeStore,
    consumer: Option<Consumer>,
    link: Option<Box<dyn FollowState>>,
    member: Member,
    tried: Option<Instant>,
}

/// What a member of the group knows besides its tasks.
#[derive(Default)]
struct Member {
    /// Claims of our tasks.
    claims: BTreeMap<i32, i64>,
    /// Judge partitions that are assigned and not judged, each with the reason.
    suspended: BTreeMap<i32, String>,
    /// Judge partitions that another process claimed while they were assigned here.
    superseded: BTreeMap<i32, Instant>,
    /// Why the consumer is of no more use, or does nothing.
    trouble: Option<String>,
    failed: bool,
    /// Another process has taken the `instance`.
    fenced: bool,
    /// What people were notified of alerts that fire, by fingerprint of a stream.
    notified: BTreeMap<String, String>,
    moves: Moves,
    counts: CheckpointCounts,
}

impl JudgeGroup {
    /// A member that has not joined yet.
    pub fn new(
        plan: Plan,
        topics: Vec<String>,
        options: FollowerOptions,
        partitions: i32,
    ) -> Result<JudgeGroup, AppError> {
        Ok(JudgeGroup {
            store: JudgeStore::new(&options.checkpoints, partitions)?,
            topic: judge_topic(&options.checkpoints.topic),
            options,
            plan,
            topics,
            consumer: None,
            link: None,
            member: Member::default(),
            tried: None,
        })
    }

    /// The group of the judges.
    fn group(&self) -> String {
        format!("{}-judges", self.options.checkpoints.namespace)
    }

    /// Reads what there is; waits for the first no longer than `wait`. Answers how many records there were.
    pub(super) fn read(&mut self, tasks: &mut Tasks, wait: Duration) -> usize {
        if self.consumer.is_none() {
            self.connect();
        }
        let Some(consumer) = &mut self.consumer else {
            std::thread::sleep(wait);
            return 0;
        };
        let mut handler = GroupHandler {
            options: &self.options,
            plan: &self.plan,
            topics: &self.topics,
            store: &mut self.store,
            member: &mut self.member,
            tasks,
        };
        let (begun, mut wait, mut read) = (Instant::now(), wait, 0);
        loop {
            let n = consumer.poll(wait, &mut handler);
            read += n;
            wait = Duration::ZERO;
            if n == 0 || begun.elapsed() >= TURN {
                break;
            }
        }
        self.give_up_if_failed(tasks);
        read
    }

    /// Leaves the group where its client failed, or another process has claimed what is assigned here for
    /// longer than a session: then nobody judges it, and joining again claims it again.
    fn give_up_if_failed(&mut self, tasks: &mut Tasks) {
        let session = Duration::from_millis(self.options.checkpoints.kafka.session_ms());
        let mut stray = self.member.superseded.iter();
        let stray = stray.find(|(_, since)| since.elapsed() >= session);
        if let Some((partition, _)) = stray {
            let partition = *partition;
            tracing::error!(partition, "claiming the judge partition again");
        } else if !std::mem::take(&mut self.member.failed) {
            return;
        }
        for (partition, task) in std::mem::take(tasks) {
            self.member.moves.left.extend(task.streams());
            self.store.forget(partition);
        }
        self.member.claims.clear();
        self.member.suspended.clear();
        self.member.superseded.clear();
        if let Some(consumer) = self.consumer.take() {
            // Leaving may take as long as the brokers are away.
            let leave = std::thread::Builder::new().name("leave".to_owned());
            let _ = leave.spawn(move || drop(consumer));
        }
        self.tried = Some(Instant::now());
    }

    fn connect(&mut self) {
        if self.member.fenced || self.tried.is_some_and(|at| at.elapsed() < AGAIN) {
            return;
        }
        self.tried = Some(Instant::now());
        match self.try_connect() {
            Ok((consumer, link)) => {
                tracing::info!(
                    group = self.group(),
                    topic = self.topic,
                    "joining the judges"
                );
                self.consumer = Some(consumer);
                self.link = Some(link);
                self.member.trouble = None;
            }
            Err(error) => {
                tracing::warn!(%error, "the group of judges cannot be joined");
                self.member.trouble = Some(error.to_string());
            }
        }
    }

    fn try_connect(&mut self) -> Result<(Consumer, Box<dyn FollowState>), KafkaError> {
        self.store.ensure()?;
        let checkpoints = &self.options.checkpoints;
        let brokers = checkpoints.brokers.as_ref();
        let options = KafkaOptions {
            group: self.group(),
            topics: vec![self.topic.clone()],
            copartitions: 0,
            dead_letter: None,
            start: StartAt::Earliest,
            ..checkpoints.kafka.clone()
        };
        let link = brokers.state_follower(&checkpoints.kafka, &checkpoints.topic)?;
        Ok((Consumer::new(&options, brokers)?, link))
    }

    /// Who can be asked how long topics are.
    pub(super) fn link(&self) -> Option<&dyn FollowState> {
        self.link.as_deref()
    }

    /// What keeps judge partitions from being judged here, by part, each with the reason.
    pub(super) fn waits_for(&self, tasks: &Tasks) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let joined = self.consumer.as_ref().is_some_and(Consumer::joined);
        if let Some(why) = &self.member.trouble {
            all.push(("judges".to_owned(), why.clone()));
        } else if !joined {
            all.push((
                "judges".to_owned(),
                format!("joining group {}", self.group()),
            ));
        }
        let name = |partition: i32| format!("judge partition {partition}");
        for (partition, why) in &self.member.suspended {
            all.push((name(*partition), why.clone()));
        }
        for (partition, since) in &self.member.superseded {
            let seconds = since.elapsed().as_secs();
            let why = format!(
                "another process claimed it {seconds} s ago while it was assigned here; this one claims it again \
                 after a session, unless the group gives it away"
            );
            all.push((name(*partition), why));
        }
        for partition in tasks.iter().filter(|(_, t)| !t.began()).map(|(p, _)| *p) {
            all.push((
                name(partition),
                format!("{} is read from its begin", self.topic),
            ));
        }
        all
    }

    /// Streams that came or left since the last call.
    pub(super) fn moves(&mut self) -> Moves {
        std::mem::take(&mut self.member.moves)
    }

    /// What people were notified of alerts that fire, by fingerprint of a stream.
    pub(super) fn carry(&mut self, notified: BTreeMap<String, String>, tasks: &mut Tasks) {
        self.member.notified = notified;
        tasks.values_mut().for_each(JudgeTask::touch);
    }

    /// Hands over the checkpoints of tasks that have changed.
    pub(super) fn write(&mut self, tasks: &Tasks) {
        let due = tasks
            .iter()
            .filter(|(p, t)| self.store.is_due(**p, t.revision()));
        let all = due.filter_map(|(p, task)| {
            let checkpoint = checkpoint_of(task, &self.member.notified)?;
            Some((*p, task.revision(), checkpoint))
        });
        let all: Vec<_> = all.collect();
        if !all.is_empty() {
            self.store.write(all);
        }
    }

    /// Takes out the member of the group, for the end.
    pub(super) fn take_member(&mut self) -> Option<Consumer> {
        self.consumer.take()
    }

    /// Whether checkpoints are being written.
    pub(super) fn is_writing(&self) -> bool {
        self.store.busy()
    }

    /// What became of the checkpoints handed over last, once, if it is known.
    pub(super) fn written(&mut self) -> Option<Written> {
        self.store.answer(&mut self.member.counts)
    }

    /// Waits for the checkpoints under way, for the end.
    pub(super) fn wait_written(&mut self) -> Option<Written> {
        self.store.wait(LAST, &mut self.member.counts)
    }

    /// What happened to checkpoints of workers and tasks.
    pub(super) fn counts(&self) -> &CheckpointCounts {
        &self.member.counts
    }

    /// How old the checkpoint of each task is.
    pub(super) fn ages(&self) -> impl Iterator<Item = CheckpointAge<'_>> {
        let all = self.store.ages();
        all.map(|(partition, at_ms)| (self.topic.as_str(), partition, at_ms))
    }
}

fn checkpoint_of(
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
struct GroupHandler<'a> {
    options: &'a FollowerOptions,
    plan: &'a Plan,
    topics: &'a [String],
    store: &'a mut JudgeStore,
    member: &'a mut Member,
    tasks: &'a mut Tasks,
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
        let half = Duration::from_millis(self.options.checkpoints.kafka.session_ms() / 2);
        let (start, within) = (Instant::now(), half.min(LEAVE_MAX));
        self.store.wait(within, &mut self.member.counts);
        let checkpoint = checkpoint_of(task, &self.member.notified);
        let due = self.store.is_due(partition, task.revision());
        let (Some(checkpoint), true, false) = (checkpoint, due, self.store.busy()) else {
            return;
        };
        let last = (partition, task.revision(), checkpoint);
        self.store.write(vec![last]);
        let left = within.saturating_sub(start.elapsed());
        let written = self.store.wait(left, &mut self.member.counts);
        if written.is_none_or(|w| w.result.is_err()) {
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
        if let Err(error) = self.take_over(partition) {
            self.error(KafkaError::Fatal(error.to_string()));
        }
        Some(0)
    }

    fn begins(&mut self, _: Partition, _: Begin) {}

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
