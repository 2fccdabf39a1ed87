//! Partitions that come and go, over a state topic in memory, whose broker each test can make
//! unavailable.

use super::assignment::Assignment;
use super::checkpoint_records::{OffsetFloors, begins_again};
use super::checkpoint_store::CheckpointStore;
use super::options::{CheckpointOptions, FollowerOptions};
use super::topology::Topology;
use crate::app::{AppError, Job, Threads, Worker, Workers};
use crate::judge::Runtime;
use crate::kafka::{
    Brokers, Ends, FollowState, Followed, GroupClient, KafkaError, KafkaOptions, ReadState,
    TopicPartition, WriteState,
};
use crate::monitor::{PartitionEvent, Plan, RecordSink, Shards};
use crate::store::checkpoint::KeyedRecord;
use crate::telemetry::Published;
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

mod backlog;
mod deltas;
mod judges;
mod notified;
mod slots;

/// An empty topic that numbers what is written.
#[derive(Debug, Default, Clone)]
struct Topic {
    away: Arc<AtomicBool>,
    next: Arc<AtomicI64>,
    /// Number of attempts to claim a partition.
    claims: Arc<AtomicUsize>,
    /// The leader of partition 1 of the source does not answer.
    silent: Arc<AtomicBool>,
    /// The follower of the topic was informed that it has ended.
    ended: Arc<AtomicBool>,
    /// The topic has a key of an earlier claim of each partition.
    used: Arc<AtomicBool>,
    /// Partitions that no broker serves.
    leaderless: Arc<Mutex<BTreeSet<i32>>>,
    /// Nothing can be deleted.
    keeps: Arc<AtomicBool>,
    deleted: Arc<Mutex<Vec<String>>>,
    /// All records that were written, in order.
    written: Arc<Mutex<Vec<KeyedRecord>>>,
    /// Records that a follower reads after the end, each with its offset.
    come: Arc<Mutex<VecDeque<(i64, KeyedRecord)>>>,
    /// How often the length of the source was requested.
    asked: Arc<AtomicUsize>,
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
        of: i32,
        _: i64,
        _: Duration,
        _: &dyn Fn(),
        each: &mut dyn FnMut(&[u8], Option<&[u8]>),
    ) -> Result<(), KafkaError> {
        if self.used.load(Ordering::Relaxed) {
            each(format!("g/t/{of}/-7/body/0/0").as_bytes(), Some(b"x"));
        }
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
        let leaderless = self.leaderless.lock();
        if records.iter().any(|(of, _)| leaderless.contains(of)) {
            return Err(absent());
        }
        let all = records.iter().map(|(_, record)| (*record).clone());
        self.written.lock().extend(all);
        let deleted = records.iter().filter(|(_, r)| r.1.is_none());
        let deleted: Vec<String> = deleted.map(|(_, r)| r.0.clone()).collect();
        if !deleted.is_empty() && self.keeps.load(Ordering::Relaxed) {
            return Err(absent());
        }
        self.deleted.lock().extend(deleted);
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
        if let Some((offset, (key, value))) = self.come.lock().pop_front() {
            each(Followed::Record {
                state_partition: 0,
                offset,
                at_ms: None,
                key: key.as_bytes(),
                value: value.as_deref(),
            });
            return Ok(true);
        }
        std::thread::sleep(within);
        Ok(false)
    }

    fn partitions(&self, topic: &str) -> Result<Option<i32>, KafkaError> {
        Ok(Some(if topic == "t" { 2 } else { 1 }))
    }

    fn ends(&self, of: &[TopicPartition], _: Duration) -> Result<Ends, KafkaError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.reached()?;
        let silent = self.silent.load(Ordering::Relaxed);
        let there = of.iter().filter(|(_, p)| *p != 1 || !silent);
        Ok(there.map(|place| (place.clone(), 0)).collect())
    }

    fn stable_ends(&self, of: &[TopicPartition], within: Duration) -> Result<Ends, KafkaError> {
        self.ends(of, within)
    }

    fn begins(&self, of: &[TopicPartition], within: Duration) -> Result<Ends, KafkaError> {
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

    fn state_follower(
        &self,
        _: &KafkaOptions,
        _: &str,
    ) -> Result<Box<dyn FollowState>, KafkaError> {
        Ok(Box::new(self.clone()))
    }
}

/// Workers whose jobs are done when they are handed over.
#[derive(Debug)]
struct Inline;

impl Workers for Inline {
    fn worker(&self, _: &str) -> Result<Box<dyn Worker>, AppError> {
        Ok(Box::new(Inline))
    }
}

impl Worker for Inline {
    fn start(&mut self, job: Job) -> bool {
        job();
        true
    }

    fn ends_within(&mut self, _: Duration) -> bool {
        true
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
        self.0.lock().push(job);
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

/// A rebalance that assigns this many partitions.
fn assign(assignment: &mut Assignment, partitions: i32) {
    assignment.assigning();
    for p in 0..partitions {
        assignment.assign((0, p).into());
    }
}

/// A rebalance that revokes these partitions.
fn revoke(assignment: &mut Assignment, partitions: &[i32]) {
    assignment.revoking(partitions.iter().map(|p| (0, *p).into()));
    for p in partitions {
        assignment.revoke((0, *p).into(), false);
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
    assert!((0..4).all(|p| assignment.suspends((0, p).into())));
    // A member that joins again claims all of them.
    topic.set_away(false);
    assign(&mut assignment, 4);
    assert_eq!(topic.claims(), 5);
    assert_eq!(assignment.suspended().count(), 0);
    assert_eq!(assignment.shards().all().len(), 4);
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
fn nothing_more_is_stored_in_a_state_topic_that_was_made_again() {
    let topic = Topic::default();
    let mut assignment = assignment(&topic, Threads);
    assign(&mut assignment, 2);
    assert_eq!(topic.next.swap(0, Ordering::Relaxed), 2, "two claims");
    // The bodies are written and reveal the new topic. No heads follow, and no later batch.
    for _ in 0..2 {
        assignment.write();
        let written = assignment.wait_written(Duration::MAX).expect("a batch");
        let why = written.result.expect_err("it is another topic");
        assert!(why.contains("recreated"), "{why}");
        assert_eq!(topic.next.load(Ordering::Relaxed), 2);
    }
}

#[test]
fn what_a_failed_batch_did_not_delete_is_deleted_with_the_next() {
    let topic = Topic::default();
    topic.used.store(true, Ordering::Relaxed);
    let mut assignment = assignment(&topic, Threads);
    assign(&mut assignment, 1);
    let at = (0, 0).into();
    // The key is deleted with the third checkpoint, which is not the first attempt.
    for (offset, keeps, is_ok, deleted) in [
        (1, true, true, 0),
        (2, true, true, 0),
        (3, true, false, 0),
        (4, true, false, 0),
        (5, false, true, 1),
        (6, false, true, 1),
    ] {
        topic.keeps.store(keeps, Ordering::Relaxed);
        let sink = assignment.shards_mut().get_mut(at).expect("a shard");
        sink.on_partition(at, PartitionEvent::Rewound(offset));
        assignment.write();
        let written = assignment.wait_written(Duration::MAX).expect("a batch");
        assert_eq!(written.result.is_ok(), is_ok, "{offset}: {written:?}");
        let keys = topic.deleted.lock();
        assert_eq!(keys.len(), deleted, "{offset}: {keys:?}");
    }
}

#[test]
fn that_a_partition_was_found_too_short_is_written_and_belongs_to_it_alone() {
    let topic = Topic::default();
    let mut assignment = assignment(&topic, Threads);
    assign(&mut assignment, 2);
    let at = |partition: i32| (0, partition).into();
    let written = |assignment: &mut Assignment| {
        let before = topic.next.load(Ordering::Relaxed);
        assignment.write();
        let written = assignment.wait_written(Duration::MAX).expect("a batch");
        assert!(written.result.is_ok(), "{written:?}");
        topic.next.load(Ordering::Relaxed) > before
    };
    for partition in 0..2 {
        let sink = assignment.shards_mut().get_mut(at(partition));
        let sink = sink.expect("a shard");
        sink.on_partition(at(partition), PartitionEvent::Rewound(1000));
    }
    assert!(written(&mut assignment));
    assert!(!written(&mut assignment), "nothing has changed");
    let sink = assignment.shards_mut().get_mut(at(1)).expect("a shard");
    sink.on_partition(at(1), PartitionEvent::Truncated(300));
    assert!(written(&mut assignment));
    let topology = Topology::Sharded(Box::new(assignment));
    assert_eq!(topology.truncated_at(at(0)), None);
    assert_eq!(topology.truncated_at(at(1)), Some(300));
}

#[test]
fn offsets_that_grow_or_are_not_known_are_those_of_the_same_topic() {
    let known = OffsetFloors::from([(0, 7), (1, 3)]);
    for (written, again) in [(8, false), (-1, false), (7, true), (0, true)] {
        let offsets = [(0, vec![9, written]), (1, vec![4]), (2, vec![0])];
        assert_eq!(begins_again(&known, &offsets.into()), again, "{written}");
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
        assignment.assign((0, p).into());
        assert!(beat.silence() < before);
    }
}
