//! What judges the checkpoints of one reader: of the whole state topic, or of one judge partition.
//!
//! A task hands every new checkpoint to its [`Aggregator`], which judges slide by slide, over all
//! partitions that verdicts wait for ([`crate::monitor::liveness`]). It reads no topic itself: the
//! one judge of all workers has one task ([`super::follower`]), and a member of a group of judges
//! one for each judge partition that the group assigns to it ([`super::judge_group`]).

use super::judge_topic::judge_topic;
use super::lengths::Lengths;
use super::options::{FollowerOptions, with_beat};
use super::reader::{Arrival, JudgeLease, Replaced, StateTopicReader};
use crate::app::clock;
use crate::collect::PartitionId;
use crate::judge::{Change, Plan, StreamId, StreamReport, WindowJudgement};
use crate::kafka::TopicPartition;
use crate::monitor::Aggregator;
use crate::monitor::liveness::{Freshness, PartitionLiveness};
use crate::monitor::{RestoreError, Snapshot, VerdictState};
use crate::telemetry::facts::CheckpointCounts;
use crate::telemetry::published::Beat;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A topic partition that belongs to a checkpointed partition.
pub(super) struct SourcePartition {
    /// The checkpointed partition.
    pub(super) checkpointed: PartitionId,
    /// Number of the topic.
    pub(super) source: u16,
    /// The partition with the name of its topic.
    pub(super) name: TopicPartition,
}

/// How long panes that came at once may wait for their judgement before the delay is reported.
const BACKLOG_MS: i64 = 10_000;

/// Judges the checkpoints of one reader. See the module.
pub struct JudgeTask {
    options: FollowerOptions,
    plan: Plan,
    topics: Vec<String>,
    aggregator: Aggregator,
    reader: StateTopicReader,
    liveness: PartitionLiveness,
    /// Partitions whose length the brokers do not report.
    unknown: BTreeSet<PartitionId>,
    /// Its topic was recreated while it was read.
    rewound: bool,
    /// Checkpoints came since the last [look](JudgeTask::look).
    news: bool,
    /// All that was in the topic at the start was read, and a look followed.
    began: bool,
    /// Since when it has been behind: it has not judged all that it can.
    behind_since_ms: Option<i64>,
    /// Since when new checkpoints have waited for their judging to begin.
    next_since_ms: Option<i64>,
    /// The frontier up to which it judges, and the one up to which it has.
    frontiers_ms: [Option<i64>; 2],
    /// Counts changes of what a checkpoint of the task would hold.
    revision: u64,
}

impl JudgeTask {
    /// A task without state, or with that of a snapshot.
    pub(super) fn new(
        plan: &Plan,
        topics: &[String],
        options: &FollowerOptions,
        snapshot: Option<Snapshot>,
    ) -> Result<JudgeTask, RestoreError> {
        let followed = snapshot.as_ref().and_then(|s| s.followed.clone());
        let (plan, topics) = (plan.clone(), topics.to_vec());
        let mut aggregator = match snapshot {
            None => Aggregator::new(plan.clone(), topics.clone()),
            Some(snapshot) => Aggregator::restore(plan.clone(), topics.clone(), snapshot)?,
        };
        aggregator.run_on(options.runtime.clone());
        let lead = |source: &u16| options.copartitions.get(usize::from(*source)) == Some(source);
        let namespace = &options.checkpoints.namespace;
        let keyed = (0u16..).zip(&topics).filter(|(source, _)| lead(source));
        let keyed = keyed.map(|(source, topic)| (source, namespace.clone(), topic.clone()));
        let reader = StateTopicReader::new(keyed.collect(), &followed.unwrap_or_default().offsets);
        let missing_after_ms = i64::try_from(options.missing_after.as_millis());
        Ok(JudgeTask {
            liveness: PartitionLiveness::new(missing_after_ms.unwrap_or(i64::MAX)),
            options: options.clone(),
            plan,
            topics,
            aggregator,
            reader,
            unknown: BTreeSet::new(),
            rewound: false,
            news: false,
            began: false,
            behind_since_ms: None,
            next_since_ms: None,
            frontiers_ms: [None; 2],
            revision: 0,
        })
    }

    /// Reports this thread as alive, through `beat`, after each stream that is judged.
    pub(super) fn beat_with(&mut self, beat: &Beat) {
        self.options.runtime = with_beat(&self.options.runtime, beat);
        self.aggregator.run_on(self.options.runtime.clone());
    }

    /// The partitions of the task and what judges them.
    pub fn aggregator(&self) -> &Aggregator {
        &self.aggregator
    }

    /// The judgements since the last call.
    pub(super) fn take_judgements(&mut self) -> Vec<WindowJudgement> {
        self.aggregator.take_judgements()
    }

    /// The changes since the last tick.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        self.aggregator.take_changes()
    }

    /// The [`Aggregator`], to be changed.
    pub fn aggregator_mut(&mut self) -> &mut Aggregator {
        self.revision += 1;
        &mut self.aggregator
    }

    /// Begins to read this many partitions of its topic.
    pub(super) fn begin(&mut self, state_partitions: i32) {
        self.reader.begin(state_partitions);
    }

    /// Takes the next record of a partition of its topic.
    pub(super) fn take(
        &mut self,
        state_partition: i32,
        offset: i64,
        at_ms: Option<i64>,
        key: &[u8],
        value: Option<&[u8]>,
        counts: &mut CheckpointCounts,
    ) {
        counts.read_bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
        let came = self.reader.take(state_partition, offset, at_ms, key, value);
        self.find_replaced();
        came.into_iter().for_each(|a| self.arrive(a, counts));
    }

    /// A partition of its topic was read to its end.
    pub(super) fn end(&mut self, state_partition: i32, counts: &mut CheckpointCounts) {
        let came = self.reader.end(state_partition);
        self.find_replaced();
        came.into_iter().for_each(|a| self.arrive(a, counts));
    }

    /// Handles a state topic that was replaced by another.
    fn find_replaced(&mut self) {
        let Some(replaced) = self.reader.take_replaced() else {
            return;
        };
        let topic = &self.options.checkpoints.topic;
        tracing::warn!(
            topic,
            "the state topic is not the one that was read before, or was cut: windows are taken from its checkpoints"
        );
        self.rewound |= replaced == Replaced::Rewound;
        self.revision += 1;
        self.aggregator.forget_positions();
    }

    /// Whether its topic was recreated since the last call, while it was read.
    pub(super) fn take_rewound(&mut self) -> bool {
        std::mem::take(&mut self.rewound)
    }

    /// Who claimed last to judge what the task judges.
    pub(super) fn lease(&self) -> Option<&JudgeLease> {
        self.reader.lease()
    }

    fn arrive(&mut self, arrival: Arrival, counts: &mut CheckpointCounts) {
        let now_ms = clock::steady_ms();
        let (at, at_ms) = (arrival.at, arrival.at_ms);
        self.news = true;
        if self.began {
            self.next_since_ms.get_or_insert(now_ms);
        }
        self.revision += 1;
        let taken = arrival.found.and_then(|found| {
            let (epoch, checkpoint) = (found.epoch, found.checkpoint);
            self.aggregator
                .take(at, epoch, checkpoint.snapshot, checkpoint.deltas)
        });
        match taken {
            Ok(()) => {
                counts.read += 1;
                self.liveness.checkpoint_came(at, at_ms, now_ms);
            }
            Err(why) => {
                counts.refused += 1;
                let (topic, partition) = (self.name(at.source), at.partition);
                crate::warn_limited!(topic, partition, why, "checkpoint cannot be used");
                self.liveness.refuse(at, why, now_ms);
            }
        }
    }

    fn name(&self, source: u16) -> &str {
        let topic = self.topics.get(usize::from(source));
        topic.map_or("", String::as_str)
    }

    /// Another process judges from now on: withdraws what was published here.
    pub(super) fn withdraw(&mut self) {
        self.aggregator = Aggregator::new(self.plan.clone(), self.topics.clone());
        self.began = false;
        (self.behind_since_ms, self.next_since_ms) = (None, None);
        self.frontiers_ms = [None; 2];
    }

    /// Whether all that was in the topic at the start was read.
    pub(super) fn is_read(&self) -> bool {
        self.reader.are_read()
    }

    /// Whether checkpoints came since the last [look](JudgeTask::look).
    pub(super) fn has_news(&self) -> bool {
        self.news
    }

    /// Whether the task judges yet.
    pub(super) fn began(&self) -> bool {
        self.began
    }

    /// This partition of a source exists: verdicts wait for it.
    pub(super) fn await_partition(&mut self, at: PartitionId) {
        self.liveness.await_partition(at, clock::steady_ms());
    }

    /// The partitions of sources that the task judges.
    pub(super) fn source_partitions(&self) -> Vec<SourcePartition> {
        let all = self.liveness.all(clock::steady_ms());
        all.flat_map(|(at, ..)| {
            let group = (0u16..).zip(&self.options.copartitions);
            let group = group.filter(move |(_, lead)| **lead == at.source);
            let name = move |source| (self.name(source).to_owned(), at.partition);
            group.map(move |(source, _)| SourcePartition {
                checkpointed: at,
                source,
                name: name(source),
            })
        })
        .collect()
    }

    /// Whether a partition's worker no longer waits for an open transaction.
    pub(super) fn leaves_out(&self, at: PartitionId) -> bool {
        self.aggregator.leaves_out(at)
    }

    /// The offset up to which checkpoints hold each partition of a source.
    pub(super) fn positions(&self) -> BTreeMap<PartitionId, i64> {
        let positions = self.aggregator.positions().into_iter();
        positions.map(|o| (o.partition_id(), o.offset)).collect()
    }

    /// Finds the partitions that verdicts wait for, from the sources' offsets at the brokers;
    /// [`JudgeTask::advance`] then judges what is ready.
    pub(super) fn look(&mut self, lengths: &Lengths) {
        let now_ms = clock::steady_ms();
        let (partitions, positions) = (self.source_partitions(), self.positions());
        let unknown = partitions.iter().filter(|p| !lengths.knows(&p.name));
        self.unknown = unknown.map(|p| p.checkpointed).collect();
        let mut of_each: BTreeMap<PartitionId, Vec<&SourcePartition>> = BTreeMap::new();
        for p in &partitions {
            of_each.entry(p.checkpointed).or_default().push(p);
        }
        let all: Vec<PartitionId> = self.liveness.all(now_ms).map(|(at, ..)| at).collect();
        for at in all {
            let idle = self.aggregator.idle(at);
            let unended = idle == Some(false);
            let idle = idle.unwrap_or(false);
            let mut uncovered = 0;
            for p in of_each.get(&at).into_iter().flatten() {
                let of = PartitionId::from((p.source, at.partition));
                let position = positions.get(&of).copied();
                uncovered += lengths.uncovered(&p.name, position, idle);
                if let Some((position, end)) = position.zip(lengths.end(&p.name)) {
                    self.liveness.follow(at, p.source, position, end, now_ms);
                }
            }
            self.liveness.set_uncovered(at, uncovered, unended, now_ms);
        }
        let all: Vec<_> = self.liveness.all(now_ms).collect();
        let exist: BTreeSet<PartitionId> = all.iter().map(|(at, ..)| *at).collect();
        self.aggregator.drop_gone(|at| exist.contains(at));
        for (at, _, freshness) in all {
            self.aggregator.set_freshness(at, freshness);
        }
        // A task that is behind first judges what was known before.
        if !self.is_behind() {
            self.behind_since_ms = self.next_since_ms.take().or(Some(now_ms));
            self.frontiers_ms[0] = self.aggregator.frontier().time_ms;
        }
        (self.news, self.began) = (false, true);
    }

    /// Whether the task has not yet judged all that it can.
    pub(super) fn is_behind(&self) -> bool {
        self.behind_since_ms.is_some()
    }

    /// For how long panes have waited to be judged.
    pub(super) fn behind_ms(&self) -> i64 {
        let since_ms = self.behind_since_ms.or(self.next_since_ms);
        since_ms.map_or(0, |since_ms| clock::steady_ms() - since_ms)
    }

    /// Event time up to which all is read and judged, before the lateness of models.
    pub(super) fn judged_ms(&self) -> Option<i64> {
        let steps_ms = self.is_behind().then(|| self.aggregator.judged_ms());
        self.frontiers_ms[1].max(steps_ms.flatten())
    }

    /// If the task is behind, judges about `most` more panes of views.
    pub(super) fn advance(&mut self, most: usize) {
        if !self.is_behind() {
            return;
        }
        let before = self.aggregator.skipped();
        match self.aggregator.advance_some(most) {
            true => {
                let [to_ms, judged_ms] = &mut self.frontiers_ms;
                *judged_ms = (*judged_ms).max(*to_ms);
                self.behind_since_ms = None;
            }
            false => self.revision += 1,
        }
        let panes = self.aggregator.skipped() - before;
        if panes > 0 {
            let topic = self.topic();
            crate::warn_limited!(
                topic,
                panes,
                "panes have no verdict, as the judge did not read all deltas: unless it has just begun, either the broker \
                 compacted checkpoints away first (set min.compaction.lag.ms of the topic to 60000 or more), or a worker \
                 could not write them in time (its trueline_checkpoint_deltas_cut_total grows)"
            );
        }
    }

    fn topic(&self) -> String {
        let topic = &self.options.checkpoints.topic;
        match self.options.checkpoints.judge_partitions {
            Some(_) => judge_topic(topic),
            None => topic.clone(),
        }
    }

    /// Advances the clock to `now_ms`. Returns all changes since the last call.
    pub(super) fn tick(&mut self, now_ms: i64) -> Vec<Change> {
        if !self.began {
            return Vec::new();
        }
        let changes = self.aggregator.tick(now_ms);
        self.revision += u64::from(!changes.is_empty());
        changes
    }

    /// The snapshot from which a restart continues; `None` until the topic was read once.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        if !self.began {
            return None;
        }
        let mut snapshot = self.aggregator.snapshot();
        if let Some(followed) = &mut snapshot.followed {
            followed.offsets = self.reader.next();
        }
        Some(snapshot)
    }

    /// Something changed that is part of its checkpoint.
    pub(super) fn touch(&mut self) {
        self.revision += 1;
    }

    /// Counts changes of what a checkpoint of the task would hold.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// The alerts of its streams that ever fired, each with what people were notified of.
    pub(super) fn alerts(&self, notified: &BTreeMap<StreamId, String>) -> Vec<VerdictState> {
        let reports = self.aggregator.monitor().reports();
        let state = |r: &Arc<StreamReport>| VerdictState {
            stream: r.id.clone(),
            windows: Vec::new(),
            detector: None,
            alert: r.alert,
            notified: notified.get(&r.id).cloned(),
        };
        let all = reports.map(state);
        all.filter(|v| v.notified.is_some() || v.alert.since_ms.is_some())
            .collect()
    }

    pub(super) fn streams(&self) -> Vec<StreamId> {
        let reports = self.aggregator.monitor().reports();
        reports.map(|r| r.id.clone()).collect()
    }

    /// The parts that keep verdicts over all partitions from being given, each with the reason.
    pub(super) fn waits_for(&self) -> Vec<(String, String)> {
        let topic = &self.options.checkpoints.topic;
        let mut all = Vec::new();
        for (at, known, freshness) in self.liveness.all(clock::steady_ms()) {
            let part = format!("partition {}/{}", self.name(at.source), at.partition);
            let n = known.uncovered;
            let why = match (freshness, known.written_ms, &known.fault) {
                (Freshness::Covered, ..) => continue,
                (_, _, Some(fault)) => format!("its newest checkpoint cannot be used: {fault}"),
                // If that lasts, the part about its brokers names it.
                (Freshness::Behind, ..) if self.unknown.contains(&at) => continue,
                _ if self.unknown.contains(&at) => format!(
                    "no broker says how long it is, and no checkpoint came for {:?} or more: verdicts go on without it",
                    self.options.missing_after
                ),
                (_, None, None) => {
                    format!("no worker has written a checkpoint of its {n} records into {topic}")
                }
                (Freshness::Behind, ..) => continue,
                (_, Some(_), None) if n == 0 => format!(
                    "no checkpoint came for {:?} or more, and the last one does not say that the partition was read \
                     to its end: verdicts go on without it",
                    self.options.missing_after
                ),
                (_, Some(_), None) => format!(
                    "no checkpoint came for {:?} or more, and {n} of its records are in none: verdicts go on without it",
                    self.options.missing_after
                ),
            };
            let shared = self.options.checkpoints.judge_partitions.is_some();
            let why = match shared && self.reader.ignores(at) {
                false => why,
                true => format!(
                    "{why}. The newest checkpoint is ignored, since it is of an earlier claim than one before it: if \
                     {topic} was made again, delete {} too",
                    judge_topic(topic)
                ),
            };
            all.push((part, why));
        }
        let behind_ms = self.behind_ms();
        if behind_ms >= BACKLOG_MS {
            let why = format!(
                "for {} s panes that came at once have waited to be judged: verdicts are of earlier event time until \
                 they are",
                behind_ms / 1000
            );
            all.push(("judge backlog".to_owned(), why));
        }
        all
    }

    /// Upper bound of the age of records that no checkpoint holds yet, in milliseconds; `None`
    /// while unknown.
    pub(super) fn lag_ms(&self, now_ms: i64) -> Option<i64> {
        self.liveness.lag_ms(now_ms)
    }

    /// The state of each partition: its uncovered records, and when its checkpoint was written.
    pub(super) fn standing(
        &self,
        now_ms: i64,
    ) -> impl Iterator<Item = (PartitionId, u64, Option<i64>, Freshness)> {
        let all = self.liveness.all(now_ms);
        all.map(|(at, known, freshness)| (at, known.uncovered, known.written_ms, freshness))
    }
}
