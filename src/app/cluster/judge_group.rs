//! Several processes judge what many count: the group of judges assigns judge partitions to each of
//! them.
//!
//! The processes are a consumer group over the topic of judges ([`super::judge_topic`]). For each
//! judge partition that is assigned, a process claims it, restores its newest checkpoint as a
//! [task](super::judge_task::JudgeTask), and reads the partition from its start; it holds the
//! shares of the checkpoints of all workers. Before a partition is given up, its last checkpoint is
//! written. A process that is killed loses nothing: the next owner restores its last checkpoint and
//! judges the slides after it again, to the same verdicts.
//!
//! ```text
//!   workers ─► judge partition 0 ─► task ─► verdicts, alerts, checkpoint of the task ─► judge partition 0
//!              judge partition 1 ─► task …
//! ```
//!
//! [`super::judge_member`] handles the assignments of the group. What people were notified of is in
//! the checkpoint. Until the next one it is in separate records, which are written at once. A
//! process that dies between a sink's answer and that record leaves a notification that the next
//! owner sends again with the same key, by which receivers recognise it.
//!
//! A judge that was frozen reads before it judges. So it first finds a later claim among the
//! records of its partition, or learns that the group has assigned the partition to another member.

use std::time::{Duration, Instant};

use super::checkpoint_store::CheckpointAge;
use super::follower::{AGAIN, TURN};
use super::judge_member::{GroupHandler, Membership, Tasks, checkpoint_of};
use super::judge_store::JudgeStore;
use super::judge_topic::judge_topic;
use super::options::{FollowerOptions, with_beat};
use crate::app::AppError;
use crate::app::outputs::snapshots::Written;
use crate::app::worker::spawn;
use crate::judge::{Plan, StreamId};
use crate::kafka::{Consumer, FollowState, KafkaError, KafkaOptions, StartAt, Truncated};
use crate::monitor::repartition::judge_partition;
use crate::notify::Transfers;
use crate::store::checkpoint::Notified;
use crate::telemetry::published::Beat;

/// A member of the group of judges. See the module.
pub struct JudgeGroup {
    options: FollowerOptions,
    /// What new tasks monitor.
    pub(super) plan: Plan,
    topics: Vec<String>,
    topic: String,
    pub(super) store: JudgeStore,
    pub(super) consumer: Option<Consumer>,
    link: Option<Box<dyn FollowState>>,
    pub(super) member: Membership,
    tried: Option<Instant>,
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
            member: Membership::default(),
            tried: None,
        })
    }

    pub(super) fn beat_with(&mut self, beat: &Beat) {
        self.options.runtime = with_beat(&self.options.runtime, beat);
        self.store.beat_with(beat.clone());
    }

    fn group(&self) -> String {
        format!("{}-judges", self.options.checkpoints.namespace)
    }

    /// Reads the available records; waits at most `wait` for the first. Returns their number.
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

    /// Leaves the group if its client failed, or to try again to take over partitions that were not
    /// served. Also leaves if another process claimed, more than a session ago, a partition that is
    /// assigned here. Nobody judges that partition then; joining again claims it again.
    fn give_up_if_failed(&mut self, tasks: &mut Tasks) {
        let session = Duration::from_millis(self.options.checkpoints.kafka.session_ms());
        let mut stray = self.member.superseded.iter();
        let stray = stray.find(|(_, since)| since.elapsed() >= session);
        if let Some((partition, _)) = stray {
            let partition = *partition;
            tracing::error!(partition, "claiming the judge partition again");
        } else if self
            .member
            .unserved
            .is_due(!tasks.is_empty(), Instant::now())
        {
            self.member.refused = self.member.suspended.values().next().cloned();
            self.member.trouble.clone_from(&self.member.refused);
        } else if !std::mem::take(&mut self.member.failed) {
            return;
        }
        self.member.failed = false;
        self.member.unserved.leave();
        for (partition, task) in std::mem::take(tasks) {
            let partitions = self.store.partitions();
            self.member.left(partition, partitions, &task);
            self.store.forget(partition);
        }
        self.member.claims.clear();
        self.member.suspended.clear();
        self.member.superseded.clear();
        self.member.lose();
        if let Some(consumer) = self.consumer.take() {
            // While brokers are away, leaving waits for them.
            let _ = spawn("leave", move || drop(consumer));
        }
        self.tried = Some(Instant::now());
    }

    fn connect(&mut self) {
        let now = Instant::now();
        if self.fenced_for(now).is_some() || self.tried.is_some_and(|at| at.elapsed() < AGAIN) {
            return;
        }
        self.tried = Some(now);
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

    /// How long this member still leaves its `instance` to another member.
    fn fenced_for(&self, now: Instant) -> Option<Duration> {
        let session = Duration::from_millis(self.options.checkpoints.kafka.session_ms());
        self.member.fencing.left(session, now)
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
            // A truncated partition is taken over again; it is not read further.
            truncated: Truncated::Earliest,
            ..checkpoints.kafka.clone()
        };
        let link = brokers.state_follower(&checkpoints.kafka, &checkpoints.topic)?;
        Ok((Consumer::new(&options, brokers)?, link))
    }

    /// The client that can ask how long topics are, if there is one.
    pub(super) fn link(&self) -> Option<&dyn FollowState> {
        self.link.as_deref()
    }

    /// The published parts that are not judged here, each with the reason.
    pub(super) fn waits_for(&self, tasks: &Tasks) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let joined = self.consumer.as_ref().is_some_and(Consumer::joined);
        let why = if let Some(why) = &self.member.trouble {
            let left = self.fenced_for(Instant::now());
            let left = left.map(|left| format!(". It joins again in {} s", left.as_secs()));
            Some(why.clone() + &left.unwrap_or_default())
        } else {
            let joining = || (!joined).then(|| format!("joining group {}", self.group()));
            self.member.thrown_out().or_else(joining)
        };
        all.extend(why.map(|why| ("judges".to_owned(), why)));
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
            let why = format!("{} is read from its begin", self.topic);
            all.push((name(partition), why));
        }
        all
    }

    /// Takes what people were notified of, by stream; news of it is written next. Returns whether a
    /// checkpoint must be written at once.
    pub(super) fn carry(&mut self, notified: Transfers<StreamId>, tasks: &mut Tasks) -> bool {
        let Transfers { mut open, ended } = notified;
        self.member.migrations.add_notified(&mut open);
        let before = std::mem::replace(&mut self.member.notified, open);
        let open = &self.member.notified;
        let new = open
            .iter()
            .filter(|(id, text)| before.get(id) != Some(text));
        let new = new.map(|(id, text)| (id.clone(), text.clone()));
        let mut first = false;
        for (stream, text) in new.chain(ended) {
            let partition = judge_partition(&stream.model, self.store.partitions());
            if let Some(task) = tasks.get_mut(&partition) {
                task.touch();
                first |= self
                    .store
                    .put_notified(partition, &Notified { stream, text });
            }
        }
        first
    }

    /// Hands over the checkpoints of changed tasks to be written.
    pub(super) fn write(&mut self, tasks: &Tasks) {
        let due = tasks
            .iter()
            .filter(|(p, t)| self.store.is_due(**p, t.revision()));
        let due: Vec<_> = due.collect();
        if due.is_empty() && !tasks.is_empty() {
            self.store.nothing_due();
        }
        let all = due.into_iter().filter_map(|(p, task)| {
            let checkpoint = checkpoint_of(task, &self.member.notified)?;
            Some((*p, task.revision(), checkpoint))
        });
        let all: Vec<_> = all.collect();
        if !all.is_empty() {
            self.store.write(all);
        }
    }

    /// Returns once what became of the last checkpoints handed over, if known.
    pub(super) fn written(&mut self) -> Option<Written> {
        self.store.answer(&mut self.member.counts)
    }

    /// Waits for the checkpoints under way, when the process ends.
    pub(super) fn wait_written(&mut self, within: Duration) -> Option<Written> {
        self.store.wait(within, &mut self.member.counts)
    }

    /// How old the checkpoint of each task is.
    pub(super) fn ages(&self) -> impl Iterator<Item = CheckpointAge<'_>> {
        let all = self.store.ages();
        all.map(|(partition, at_ms)| (self.topic.as_str(), partition, at_ms))
    }
}
