//! Partitions that come and go, over a state topic in memory whose broker each test can take away.

use super::assignment::Assignment;
use super::checkpoint_store::CheckpointStore;
use super::judge_group::JudgeGroup;
use super::judge_member::{GroupHandler, Member, Tasks};
use super::judge_store::JudgeStore;
use super::judge_task::JudgeTask;
use super::judges::Judges;
use super::lengths::Lengths;
use super::options::{CheckpointOptions, FollowerOptions};
use crate::app::clock;
use crate::app::{AppError, Job, Threads, Worker, Workers};
use crate::judge::Runtime;
use crate::kafka::{
    Brokers, Ends, FollowState, Followed, GroupClient, Handler, KafkaError, KafkaOptions,
    Partition, ReadState, WriteState,
};
use crate::monitor::liveness::{At, Freshness};
use crate::monitor::{Plan, Shards};
use crate::store::checkpoint::{PartitionCheckpoint, records};
use crate::telemetry::Published;
use crate::telemetry::facts::CheckpointCounts;
use crate::telemetry::facts::Role;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An empty topic that numbers what is written.
#[derive(Debug, Default, Clone)]
struct Topic {
    away: Arc<AtomicBool>,
    next: Arc<AtomicI64>,
    /// How often somebody tried to claim a partition.
    claims: Arc<AtomicUsize>,
    /// The leader of partition 1 of the source does not answer.
    silent: Arc<AtomicBool>,
    /// Who follows the topic was told that it has ended.
    ended: Arc<AtomicBool>,
}

impl Topic {
    fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
    }

    fn claims(&self) -> usize {
        self.claims.load(Ordering::Relaxed)
    }

    fn reached(&self) -> Result<(), KafkaError> {
        match self.away.load(Ordering::Relaxed) {
            true => Err(absent()),
            false => Ok(()),
        }
    }
}

fn absent() -> KafkaError {
    KafkaError::Other("the broker is away".to_owned())
}

impl ReadState for Topic {
    fn state_partition(&mut self, of: i32, _: &[String]) -> Result<i32, KafkaError> {
        Ok(of)
    }

    fn partitions(&mut self, at_creation: i32) -> Result<i32, KafkaError> {
        Ok(at_creation)
    }

    fn committed(&mut self, _: &str, _: &str, _: i32) -> Result<Option<i64>, KafkaError> {
        Ok(None)
    }

    fn read(
        &self,
        _: i32,
        _: i64,
        _: Duration,
        _: &dyn Fn(),
        _: &mut dyn FnMut(&[u8], Option<&[u8]>),
    ) -> Result<(), KafkaError> {
        self.reached()
    }

    fn read_after(
        &self,
        _: i32,
        _: i64,
        _: Option<i64>,
        _: Duration,
        _: &mut dyn FnMut(i64, &[u8], Option<&[u8]>),
    ) -> Result<(), KafkaError> {
        self.reached()
    }
}

impl WriteState for Topic {
    fn put(
        &self,
        records: &[(i32, &(String, Option<Vec<u8>>))],
        _: Duration,
        _: &dyn Fn(),
    ) -> Result<Vec<i64>, KafkaError> {
        let claims = records.iter().filter(|(_, r)| r.0.ends_with("claim"));
        self.claims.fetch_add(claims.count(), Ordering::Relaxed);
        self.reached()?;
        let offset = |_| self.next.fetch_add(1, Ordering::Relaxed);
        Ok(records.iter().map(offset).collect())
    }
}

impl FollowState for Topic {
    fn begin(&self, _: i32) -> Result<(), KafkaError> {
        Ok(())
    }

    fn poll(
        &self,
        within: Duration,
        each: &mut dyn FnMut(Followed<'_>),
    ) -> Result<bool, KafkaError> {
        if !self.ended.swap(true, Ordering::Relaxed) {
            each(Followed::End(0));
            return Ok(true);
        }
        std::thread::sleep(within);
        Ok(false)
    }

    fn partitions(&self, topic: &str) -> Result<Option<i32>, KafkaError> {
        Ok(Some(if topic == "t" { 2 } else { 1 }))
    }

    fn ends(&self, of: &[(String, i32)], _: Duration) -> Result<Ends, KafkaError> {
        let silent = self.silent.load(Ordering::Relaxed);
        let there = of.iter().filter(|(_, p)| *p != 1 || !silent);
        Ok(there.map(|place| (place.clone(), 0)).collect())
    }

    fn stable_ends(&self, of: &[(String, i32)], within: Duration) -> Result<Ends, KafkaError> {
        self.ends(of, within)
    }

    fn begins(&self, of: &[(String, i32)], within: Duration) -> Result<Ends, KafkaError> {
        self.ends(of, within)
    }
}

impl Brokers for Topic {
    fn join(&self, _: &KafkaOptions) -> Result<Box<dyn GroupClient>, KafkaError> {
        Err(absent())
    }

    fn state_reader(
        &self,
        _: &KafkaOptions,
        _: &str,
        _: usize,
    ) -> Result<Box<dyn ReadState>, KafkaError> {
        Ok(Box::new(self.clone()))
    }

    fn state_writer(&self, _: &KafkaOptions, _: &str) -> Result<Arc<dyn WriteState>, KafkaError> {
        Ok(Arc::new(self.clone()))
    }

    fn claim_writer(&self, _: &KafkaOptions, _: &str) -> Result<Arc<dyn WriteState>, KafkaError> {
        Ok(Arc::new(self.clone()))
    }

    fn state_follower(
        &self,
        _: &KafkaOptions,
        _: &str,
    ) -> Result<Box<dyn FollowState>, KafkaError> {
        Ok(Box::new(self.clone()))
    }
}

/// Workers that never begin.
#[derive(Debug)]
struct Idle;

impl Workers for Idle {
    fn worker(&self, _: &str) -> Result<Box<dyn Worker>, AppError> {
        Ok(Box::new(IdleWorker(Mutex::default())))
    }
}

struct IdleWorker(Mutex<Vec<Job>>);

impl Worker for IdleWorker {
    fn start(&mut self, job: Job) -> bool {
        self.0.lock().expect("no panic").push(job);
        true
    }

    fn ends_within(&mut self, _: Duration) -> bool {
        true
    }
}

fn options(topic: &Topic, workers: impl Workers + 'static) -> CheckpointOptions {
    let session = ("session.timeout.ms".to_owned(), "2000".to_owned());
    CheckpointOptions {
        kafka: KafkaOptions {
            options: [session].into(),
            ..KafkaOptions::default()
        },
        namespace: "g".to_owned(),
        groups: vec!["g".to_owned()],
        topic: "state".to_owned(),
        judge_partitions: None,
        counts_only: true,
        restore_within: Duration::from_secs(5),
        fresh: false,
        brokers: Arc::new(topic.clone()),
        workers: Arc::new(workers),
    }
}

fn follower(topic: &Topic, missing_after: Duration) -> FollowerOptions {
    FollowerOptions {
        checkpoints: options(topic, Threads),
        missing_after,
        copartitions: vec![0],
        runtime: Runtime::default(),
    }
}

fn assignment(topic: &Topic, workers: impl Workers + 'static) -> Assignment {
    let store = CheckpointStore::new(options(topic, workers)).expect("a store");
    let shards = Shards::of_worker(Plan::default(), vec![0]);
    Assignment::new(shards, store, vec!["t".to_owned()])
}

/// A rebalance that gives so many partitions.
fn assign(assignment: &mut Assignment, partitions: i32) {
    assignment.assigning();
    for p in 0..partitions {
        assignment.assign(0, p);
    }
}

/// A rebalance that takes these partitions.
fn revoke(assignment: &mut Assignment, partitions: &[i32]) {
    assignment.revoking(partitions.iter().map(|p| (0, *p)));
    for p in partitions {
        assignment.revoke(0, *p, false);
    }
}

#[test]
fn a_broker_that_is_away_is_waited_for_once_in_a_rebalance() {
    let topic = Topic::default();
    let mut assignment = assignment(&topic, Threads);
    topic.set_away(true);
    assign(&mut assignment, 4);
    assert_eq!(topic.claims(), 1);
    assert!(assignment.take_trouble().is_some());
    assert_eq!(assignment.suspended().count(), 4);
    assert!((0..4).all(|p| assignment.suspends(0, p)));
    // Whoever joins again claims all of them.
    topic.set_away(false);
    assign(&mut assignment, 4);
    assert_eq!(topic.claims(), 5);
    assert_eq!(assignment.suspended().count(), 0);
    assert_eq!(assignment.shards().all().len(), 4);
}

#[test]
fn a_judge_waits_for_a_broker_that_is_away_once_in_a_rebalance() {
    let topic = Topic::default();
    let (options, topics) = (follower(&topic, Duration::ZERO), ["t".to_owned()]);
    let mut store = JudgeStore::new(&options.checkpoints, 4).expect("a store");
    let (mut member, mut tasks) = (Member::default(), Tasks::new());
    topic.set_away(true);
    let mut handler = GroupHandler {
        options: &options,
        plan: &Plan::default(),
        topics: &topics,
        store: &mut store,
        member: &mut member,
        tasks: &mut tasks,
    };
    for partition in 0..4 {
        let topic = 0;
        handler.assigned(Partition { topic, partition });
    }
    assert_eq!(topic.claims(), 1);
    assert!(member.failed && tasks.is_empty());
    assert_eq!(
        member.suspended.len(),
        3,
        "and the first is named by itself"
    );
}

#[test]
fn all_partitions_that_a_rebalance_takes_share_one_wait() {
    let topic = Topic::default();
    let mut assignment = assignment(&topic, Idle);
    assign(&mut assignment, 5);
    assignment.write();
    assert!(assignment.is_writing());
    let begun = Instant::now();
    revoke(&mut assignment, &[0, 1, 2, 3, 4]);
    // Half a session each would be five seconds.
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert!(assignment.shards().all().is_empty());
}

#[test]
fn what_became_of_a_batch_is_told_though_a_partition_that_left_waited_for_it() {
    let topic = Topic::default();
    let mut assignment = assignment(&topic, Threads);
    assign(&mut assignment, 2);
    assignment.write();
    revoke(&mut assignment, &[0]);
    let written = assignment.written().expect("the batch of both");
    assert!(written.result.is_ok() && written.bytes > 0);
    assert!(assignment.written().is_none() && !assignment.is_writing());
    // A failed batch is reported too.
    topic.set_away(true);
    assignment.write();
    revoke(&mut assignment, &[1]);
    let written = assignment.written().expect("the batch before");
    assert!(written.result.is_err());
}

#[test]
fn what_became_of_a_batch_of_judges_is_told_though_a_partition_that_left_waited_for_it() {
    let topic = Topic::default();
    let mut counts = CheckpointCounts::default();
    let mut store = JudgeStore::new(&options(&topic, Threads), 2).expect("a store");
    for partition in [0, 1] {
        store.take_over(partition, &mut counts).expect("claimed");
    }
    store.write(vec![(1, 7, PartitionCheckpoint::default())]);
    store.begin_leaving();
    store.wait_to_leave(&mut counts);
    assert!(!store.is_due(1, 7));
    assert!(store.write_last((0, 3, PartitionCheckpoint::default()), &mut counts));
    let written = store.answer(&mut counts).expect("the batch before");
    assert!(written.result.is_ok());
    assert!(store.answer(&mut counts).is_none());
}

#[test]
fn a_judge_of_several_says_that_all_is_stored_while_nothing_comes() {
    let (topic, mut counts) = (Topic::default(), CheckpointCounts::default());
    let (options, topics) = (follower(&topic, Duration::ZERO), vec!["t".to_owned()]);
    let task = JudgeTask::new(&Plan::default(), &topics, &options, None);
    let mut task = task.expect("without state");
    task.begin(1);
    task.end(0, &mut counts);
    task.look(&Lengths::default());
    let group = JudgeGroup::new(Plan::default(), topics, options, 1);
    let mut group = group.expect("a store");
    // Without judge partitions nothing is said of them.
    group.write(&Tasks::new());
    assert!(group.written().is_none());
    group.store.take_over(0, &mut counts).expect("claimed");
    let tasks = Tasks::from([(0, task)]);
    group.write(&tasks);
    let written = group.wait_written().expect("a checkpoint");
    assert!(written.result.is_ok() && written.bytes > 0);
    for _ in 0..2 {
        group.write(&tasks);
        assert!(!group.is_writing());
        let written = group.written().expect("an answer");
        assert!(written.result.is_ok() && written.at_ms >= clock::now_ms() - 60_000);
        assert!(group.written().is_none());
    }
}

#[test]
fn the_heart_beats_with_each_partition_that_is_taken_over() {
    let topic = Topic::default();
    let mut assignment = assignment(&topic, Threads);
    let beat = Published::default().beat("engine");
    assignment.beat_with(beat.clone());
    for p in 0..2 {
        std::thread::sleep(Duration::from_millis(50));
        let before = beat.silence();
        assignment.assign(0, p);
        assert!(beat.silence() < before);
    }
}

#[test]
fn a_partition_whose_length_nobody_says_is_waited_for_and_then_named() {
    let (hour, at): (Duration, At) = (Duration::from_secs(3600), (0, 3));
    for (missing_after, freshness) in [
        (hour, Freshness::Behind),
        (Duration::ZERO, Freshness::Missing),
    ] {
        let options = follower(&Topic::default(), missing_after);
        let topics = ["t".to_owned()];
        let task = JudgeTask::new(&Plan::default(), &topics, &options, None);
        let mut task = task.expect("without state");
        task.begin(1);
        task.end(0, &mut CheckpointCounts::default());
        task.expect(at);
        task.look(&Lengths::default());
        let standing = task.standing(clock::steady_ms());
        let standing: Vec<_> = standing.map(|(at, n, _, is)| (at, n, is)).collect();
        assert_eq!(standing, [(at, 1, freshness)]);
        let named = task.waits_for().into_iter();
        let named: Vec<_> = named
            .map(|(part, why)| (part, why.contains("no broker says")))
            .collect();
        match freshness {
            Freshness::Missing => assert_eq!(named, [("partition t/3".to_owned(), true)]),
            _ => assert_eq!(named, []),
        }
    }
}

#[test]
fn a_judge_of_several_names_a_state_topic_that_was_made_again_without_that_of_judges() {
    for judge_partitions in [Some(1), None] {
        let mut options = follower(&Topic::default(), Duration::ZERO);
        options.checkpoints.judge_partitions = judge_partitions;
        let task = JudgeTask::new(&Plan::default(), &["t".to_owned()], &options, None);
        let (mut task, mut counts) = (task.expect("without state"), CheckpointCounts::default());
        task.begin(1);
        task.end(0, &mut counts);
        let (mut offset, mut named) = (0, Vec::new());
        // Claims begin again with the state topic.
        for epoch in [9, 3, 12] {
            let checkpoint = records(&PartitionCheckpoint::default(), "g/t/3/", epoch, 1);
            let (body, head) = checkpoint.expect("encoded");
            for (key, value) in body.iter().chain([&head]) {
                let keyed = (key.as_bytes(), value.as_deref());
                task.take((0, offset), None, keyed, &mut counts);
                offset += 1;
            }
            task.look(&Lengths::default());
            let waits_for = task.waits_for();
            let [(part, why)] = &waits_for[..] else {
                panic!("one part: {waits_for:?}");
            };
            assert_eq!(part, "partition t/3");
            named.push(why.ends_with("if state was made again, delete state-judges too"));
        }
        assert_eq!(named, [false, judge_partitions.is_some(), false]);
    }
}

/// Follows until so many partitions are covered, and so many behind.
fn follow_until(judges: &mut Judges, covered: u64, behind: u64) {
    let begun = Instant::now();
    loop {
        judges.follow(Duration::from_millis(10));
        let Role::Judge(facts) = judges.role() else {
            panic!("it judges");
        };
        if facts.partitions == [covered, behind, 0, 0] {
            return;
        }
        let stands = facts.partitions;
        assert!(begun.elapsed() < Duration::from_secs(10), "{stands:?}");
    }
}

#[test]
fn a_leader_that_does_not_answer_holds_its_partitions_and_the_judge_goes_on() {
    let topic = Topic::default();
    let options = follower(&topic, Duration::from_secs(3600));
    let judges = Judges::one(Plan::default(), vec!["t".to_owned()], options, None);
    let mut judges = judges.expect("without state");
    follow_until(&mut judges, 2, 0);
    topic.silent.store(true, Ordering::Relaxed);
    follow_until(&mut judges, 1, 1);
    // It is not named before that lasts.
    assert_eq!(judges.waits_for(), []);
    topic.silent.store(false, Ordering::Relaxed);
    follow_until(&mut judges, 2, 0);
}
