//! The judge of what other processes count, alone or as one of several.
//!
//! [`Judges`] holds the [tasks](JudgeTask) of this process and what feeds them: the one judge
//! follows the whole state topic ([`Follower`]) and has one task; a member of a group has one for
//! each judge partition that is assigned to it ([`JudgeGroup`]). After reading the checkpoints, it
//! asks the brokers how long the topics of the sources are, and lets the tasks judge.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::checkpoint_store::CheckpointAge;
use super::follower::Follower;
use super::judge_group::JudgeGroup;
use super::judge_member::Tasks;
use super::judge_task::{JudgeTask, SourcePartition};
use super::lengths::{Lengths, Wanted};
use super::migrations::Migrations;
use super::options::FollowerOptions;
use crate::app::AppError;
use crate::app::clock;
use crate::app::outputs::snapshots::Written;
use crate::collect::{Counters, Origin, PartitionId};
use crate::judge::{Change, ComparisonReport, Plan, StreamId, WindowJudgement};
use crate::kafka::{Consumer, FollowState, KafkaError};
use crate::monitor::Aggregator;
use crate::monitor::watchdog::Watchdog;
use crate::monitor::{MonitorView, RestoreError, Snapshot};
use crate::notify::{DeliveryListener, Transfers};
use crate::telemetry::facts::CheckpointCounts;
use crate::telemetry::published::Beat;

mod role;

/// Shortest and longest time between two looks for the partitions that verdicts wait for.
const LOOKS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));

/// Shortest time between two looks while a backlog is judged and no broker answers: a look changes
/// nothing before the end of the backlog, and judging waits while brokers are asked.
const UNANSWERED: Duration = Duration::from_secs(30);

/// How often the partitions of the sources are counted.
const COUNTS: Duration = Duration::from_secs(60);

/// Panes of views that are judged in one turn, by all tasks: a fraction of a second, or some
/// seconds if each pane ends many or large windows.
const PANES: usize = 1024;

/// Key of the task of the one judge.
const ALL: i32 = 0;

/// Where checkpoints come from.
enum Feed {
    /// The whole state topic.
    One(Box<Follower>),
    /// Judge partitions, as the group assigns them.
    Group(Box<JudgeGroup>),
}

/// The tasks of this process and what feeds them. See the module.
pub struct Judges {
    plan: Plan,
    topics: Vec<String>,
    copartitions: Vec<u16>,
    tasks: Tasks,
    feed: Feed,
    /// How long topics are, as far as the brokers answered.
    lengths: Lengths,
    looked: Instant,
    /// Number of partitions of each topic whose partitions have checkpoints, and when they were
    /// counted.
    partitions: BTreeMap<u16, i32>,
    counted: Option<Instant>,
    /// Counts of what happened to checkpoints that the one judge read.
    counts: CheckpointCounts,
}

impl Judges {
    /// The one judge, without state or with that of its snapshot.
    pub fn one(
        plan: Plan,
        topics: Vec<String>,
        options: FollowerOptions,
        snapshot: Option<Snapshot>,
    ) -> Result<Judges, RestoreError> {
        let task = JudgeTask::new(&plan, &topics, &options, snapshot)?;
        let copartitions = options.copartitions.clone();
        let feed = Feed::One(Box::new(Follower::new(topics.clone(), options)));
        let mut judges = Judges::fed_by(feed, plan, topics, copartitions);
        judges.tasks.insert(ALL, task);
        Ok(judges)
    }

    /// One of several judges, which share this many judge partitions.
    pub fn of_group(
        plan: Plan,
        topics: Vec<String>,
        options: FollowerOptions,
        partitions: i32,
    ) -> Result<Judges, AppError> {
        let copartitions = options.copartitions.clone();
        let group = JudgeGroup::new(plan.clone(), topics.clone(), options, partitions)?;
        let feed = Feed::Group(Box::new(group));
        Ok(Judges::fed_by(feed, plan, topics, copartitions))
    }

    fn fed_by(feed: Feed, plan: Plan, topics: Vec<String>, copartitions: Vec<u16>) -> Judges {
        Judges {
            plan,
            topics,
            copartitions,
            tasks: Tasks::new(),
            feed,
            lengths: Lengths::default(),
            looked: Instant::now(),
            partitions: BTreeMap::new(),
            counted: None,
            counts: CheckpointCounts::default(),
        }
    }

    /// Reads the available records, and judges a bounded number of panes; waits at most `wait` for
    /// the first record. Returns the number of records.
    pub fn follow(&mut self, wait: Duration) -> usize {
        let behind = self.tasks.values().any(JudgeTask::is_behind);
        let wait = if behind { Duration::ZERO } else { wait };
        let read = match &mut self.feed {
            Feed::One(follower) => self
                .tasks
                .get_mut(&ALL)
                .map_or(0, |task| follower.read(task, &mut self.counts, wait)),
            Feed::Group(group) => group.read(&mut self.tasks, wait),
        };
        let (often, seldom) = LOOKS;
        let since = self.looked.elapsed();
        let mut read_tasks = self.tasks.values().filter(|t| t.is_read());
        let due = match since >= seldom {
            true => read_tasks.next().is_some(),
            false => since >= often && read_tasks.any(|t| t.has_news() || !t.began()),
        };
        let unanswered = behind && self.lengths.is_failing() && since < UNANSWERED;
        if due && !unanswered && !self.stands_by() {
            self.looked = Instant::now();
            self.look();
        }
        let most = PANES / self.tasks.len().max(1);
        self.tasks.values_mut().for_each(|t| t.advance(most));
        read
    }

    /// Finds the partitions that verdicts wait for.
    fn look(&mut self) {
        let link = match &self.feed {
            Feed::One(follower) => follower.link(),
            Feed::Group(group) => group.link(),
        };
        let Some(link) = link else { return };
        if self.counted.is_none_or(|at| at.elapsed() >= COUNTS) {
            match count(link, &self.copartitions, &self.topics) {
                Ok(partitions) => self.partitions = partitions,
                Err(error) => {
                    // The partitions counted before still exist; the next look uses that count.
                    self.counted = self.counted.map(|_| Instant::now());
                    return self.lengths.fail(&error);
                }
            }
            self.counted = Some(Instant::now());
        }
        let partitions = self.partitions.iter();
        let all = partitions.flat_map(|(source, n)| (0..*n).map(|p| (*source, p).into()));
        for at in all.collect::<Vec<PartitionId>>() {
            self.tasks
                .values_mut()
                .for_each(|task| task.await_partition(at));
        }
        let mut wanted = Wanted::default();
        for task in self.tasks.values().filter(|task| task.is_read()) {
            let positions = task.positions();
            for SourcePartition {
                checkpointed: at,
                source,
                name,
            } in task.source_partitions()
            {
                // The position in a checkpoint is past the start of the partition.
                if !positions.contains_key(&PartitionId { source, ..at }) {
                    wanted.begins.insert(name.clone());
                }
                // A record behind an open transaction is waited for like any other, until the
                // worker gives up waiting.
                if task.leaves_out(at) {
                    wanted.stable.insert(name.clone());
                }
                wanted.ends.insert(name);
            }
        }
        if !self.lengths.ask(link, &wanted, Instant::now()) {
            return;
        }
        for task in self.tasks.values_mut().filter(|task| task.is_read()) {
            task.look(&self.lengths);
        }
    }

    /// Advances the clock to `now_ms`. Returns all changes since the last call.
    pub fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        let mut all = Vec::new();
        if let Some(group) = self.group_mut() {
            all.append(&mut group.member.changes);
        }
        let tasks = self.tasks.values_mut();
        all.extend(tasks.flat_map(|task| task.tick(now_ms)));
        all
    }

    /// The monitor of every task.
    pub fn monitors(&self) -> impl Iterator<Item = MonitorView<'_>> {
        self.aggregators().map(Aggregator::monitor)
    }

    /// The aggregator of every task, which also has the partitions of workers.
    pub fn aggregators(&self) -> impl Iterator<Item = &Aggregator> {
        self.tasks.values().map(JudgeTask::aggregator)
    }

    /// Whether this process should judge and another one judges in its place.
    pub fn stands_by(&self) -> bool {
        matches!(&self.feed, Feed::One(follower) if follower.rival().is_some())
    }

    /// Whether streams move with judge partitions.
    pub fn may_move(&self) -> bool {
        matches!(self.feed, Feed::Group(_))
    }

    /// The snapshot from which a restart of the one judge continues; `None` while the topic is read
    /// for the first time, or while another process judges.
    pub fn snapshot(&self) -> Option<Snapshot> {
        match &self.feed {
            Feed::One(_) if !self.stands_by() => self.tasks.get(&ALL)?.snapshot(),
            _ => None,
        }
    }

    /// The parts that keep verdicts over all partitions from being given, each with the reason.
    pub fn waits_for(&self) -> Vec<(String, String)> {
        let mut all = match &self.feed {
            Feed::One(follower) => {
                let task = self.tasks.get(&ALL);
                let waits_for = task.and_then(|task| follower.waits_for(task));
                if self.stands_by() {
                    return waits_for.into_iter().collect();
                }
                waits_for.into_iter().collect()
            }
            Feed::Group(group) => group.waits_for(&self.tasks),
        };
        if let Some(why) = self.lengths.trouble(Instant::now())
            && !self.tasks.is_empty()
        {
            all.push((format!("brokers of {}", self.topics.join(",")), why));
        }
        let of: BTreeMap<String, String> =
            self.tasks.values().flat_map(JudgeTask::waits_for).collect();
        all.into_iter().chain(of).collect()
    }

    /// Counts of checkpoints, and the age of each: those of workers, or of tasks.
    pub fn checkpoints(&self) -> (&CheckpointCounts, Vec<CheckpointAge<'_>>) {
        let steady_ms = clock::steady_ms();
        match &self.feed {
            Feed::Group(group) => (&group.member.counts, group.ages().collect()),
            Feed::One(_) => {
                let all = self
                    .tasks
                    .values()
                    .flat_map(|task| task.standing(steady_ms));
                let name = |source: u16| self.topics.get(usize::from(source));
                let ages = all.filter_map(|(at, _, written_ms, _)| {
                    Some((name(at.source)?.as_str(), at.partition, written_ms))
                });
                (&self.counts, ages.collect())
            }
        }
    }

    /// Reports this thread as alive, through `beat`, between two waits for brokers and while it
    /// judges.
    pub fn beat_with(&mut self, beat: &Beat) {
        for task in self.tasks.values_mut() {
            task.beat_with(beat);
        }
        if let Some(group) = self.group_mut() {
            group.beat_with(beat);
        }
    }

    fn group_mut(&mut self) -> Option<&mut JudgeGroup> {
        match &mut self.feed {
            Feed::One(_) => None,
            Feed::Group(group) => Some(group),
        }
    }

    /// Streams that came or left since the last call.
    pub fn take_migrations(&mut self) -> Migrations {
        let group = self.group_mut();
        group.map_or_else(Migrations::default, |g| {
            std::mem::take(&mut g.member.migrations)
        })
    }

    /// Takes what people were notified of, which moves with their streams. Returns whether
    /// checkpoints must be written at once.
    pub fn carry(&mut self, notified: Transfers<StreamId>) -> bool {
        match &mut self.feed {
            Feed::One(_) => false,
            Feed::Group(group) => group.carry(notified, &mut self.tasks),
        }
    }

    /// If tasks may move, the listener that writes deliveries without waiting for this thread.
    pub fn delivery_listener(&self) -> Option<DeliveryListener> {
        let Feed::Group(group) = &self.feed else {
            return None;
        };
        let writer = Arc::clone(group.store.notified());
        Some(Box::new(move |delivered| writer.delivered(delivered)))
    }

    /// If tasks may move, writes what people were notified of since the last checkpoints were
    /// begun.
    pub fn write_notified(&mut self) {
        if let Some(group) = self.group_mut() {
            group.store.notified().write(Instant::now());
        }
    }

    /// If tasks may move, hands over the checkpoints of changed tasks.
    pub fn write(&mut self) {
        if let Feed::Group(group) = &mut self.feed {
            group.write(&self.tasks);
        }
    }

    /// Takes out the member of the group of judges at the end: leaving the group may take long.
    pub fn take_member(&mut self) -> Option<Consumer> {
        self.group_mut()?.consumer.take()
    }

    /// Whether checkpoints are being written.
    pub fn is_writing(&self) -> bool {
        matches!(&self.feed, Feed::Group(group) if group.store.is_writing())
    }

    /// Returns once what became of the last checkpoints handed over, if known.
    pub fn written(&mut self) -> Option<Written> {
        self.group_mut()?.written()
    }

    /// Waits for the checkpoints under way, when the process ends.
    pub fn wait_written(&mut self, within: Duration) -> Option<Written> {
        self.group_mut()?.wait_written(within)
    }

    /// The frontier that has been stalled for longest.
    pub fn watchdog(&self) -> Option<&Watchdog> {
        let all = self.aggregators().map(Aggregator::watchdog);
        all.max_by_key(|watchdog| watchdog.stalled_for_ms())
    }

    /// Event time up to which all tasks that judge have read and judged, before the lateness of
    /// models.
    pub fn judged_ms(&self) -> Option<i64> {
        let begun = self.tasks.values().filter(|task| task.began());
        begun.map(JudgeTask::judged_ms).min().flatten()
    }

    /// Counts of what was judged here; records are counted where they are read.
    pub fn counters(&self) -> Counters {
        let mut all = Counters::default();
        for counters in self.aggregators().map(Aggregator::counters) {
            all.streams_expired += counters.streams_expired;
            all.streams_dropped += counters.streams_dropped;
            all.evaluations += counters.evaluations;
        }
        all
    }

    /// Versions that scored the same ids, over all partitions.
    pub fn comparisons(&self) -> Vec<ComparisonReport> {
        self.aggregators()
            .flat_map(Aggregator::comparisons)
            .collect()
    }

    /// The offset of each partition of a source up to which all tasks have its records.
    pub fn positions(&self) -> Vec<Origin> {
        let mut least: BTreeMap<PartitionId, Origin> = BTreeMap::new();
        for origin in self.aggregators().flat_map(Aggregator::positions) {
            let known = least.entry(origin.partition_id());
            let known = known.or_insert(origin);
            known.offset = known.offset.min(origin.offset);
        }
        least.into_values().collect()
    }

    /// Panes held.
    pub fn panes(&self) -> usize {
        self.aggregators().map(Aggregator::panes).sum()
    }

    /// Heap bytes of all state.
    pub fn bytes(&self) -> usize {
        self.aggregators().map(Aggregator::bytes).sum()
    }

    /// What is monitored.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Applies the parts of a plan that may change at run time.
    pub fn reload(&mut self, new: &Plan) {
        for task in self.tasks.values_mut() {
            task.aggregator_mut().reload(new);
        }
        self.plan.reload(new);
        if let Feed::Group(group) = &mut self.feed {
            group.plan = self.plan.clone();
        }
    }

    /// See [`Aggregator::start_over`].
    pub fn start_over(&mut self, of: impl Fn(&StreamId) -> bool, close: Option<&str>) -> usize {
        let tasks = self.tasks.values_mut();
        let begun = tasks.map(|task| task.aggregator_mut().start_over(&of, close));
        begun.sum()
    }

    /// The judgements since the last call.
    pub fn take_judgements(&mut self) -> Vec<WindowJudgement> {
        let mut all = Vec::new();
        if let Some(group) = self.group_mut() {
            all.append(&mut group.member.judgements);
        }
        let tasks = self.tasks.values_mut();
        all.extend(tasks.flat_map(JudgeTask::take_judgements));
        all
    }
}

/// The number of partitions of each topic whose partitions have checkpoints.
fn count(
    link: &dyn FollowState,
    copartitions: &[u16],
    topics: &[String],
) -> Result<BTreeMap<u16, i32>, KafkaError> {
    let mut all = BTreeMap::new();
    let sources = (0u16..).zip(copartitions).zip(topics);
    for ((source, _), topic) in sources.filter(|((source, lead), _)| source == *lead) {
        all.insert(source, link.partitions(topic)?.unwrap_or(0));
    }
    Ok(all)
}
