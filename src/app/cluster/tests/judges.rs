//! Judges over the state topic in memory.

use super::{Inline, Topic, follower, options};
use crate::app::cluster::judge_group::JudgeGroup;
use crate::app::cluster::judge_member::{GroupHandler, Membership, Tasks};
use crate::app::cluster::judge_store::JudgeStore;
use crate::app::cluster::judge_task::JudgeTask;
use crate::app::cluster::judges::Judges;
use crate::app::cluster::lengths::Lengths;
use crate::app::cluster::options::FollowerOptions;
use crate::app::{Threads, clock};
use crate::kafka::{Handler, KafkaError, Record};
use crate::monitor::Plan;
use crate::monitor::liveness::Freshness;
use crate::store::checkpoint::{PartitionCheckpoint, records};
use crate::telemetry::facts::{CheckpointCounts, FreshnessCounts, Role};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A task that has read all records of the topic.
fn read_task(options: &FollowerOptions) -> JudgeTask {
    let task = JudgeTask::new(&Plan::default(), &["t".to_owned()], options, None);
    let mut task = task.expect("without state");
    task.begin(1);
    task.end(0, &mut CheckpointCounts::default());
    task
}

/// Runs `act` as a member of the group of judges.
pub(super) fn as_judge(topic: &Topic, act: impl FnOnce(&mut GroupHandler<'_>)) {
    let options = follower(topic, Duration::ZERO);
    act(&mut GroupHandler {
        options: &options,
        plan: &Plan::default(),
        topics: &["t".to_owned()],
        store: &mut JudgeStore::new(&options.checkpoints, 4).expect("a store"),
        member: &mut Membership::default(),
        tasks: &mut Tasks::new(),
    });
}

#[test]
fn a_judge_partition_whose_topic_was_cut_is_claimed_again() {
    let topic = Topic::default();
    as_judge(&topic, |handler| {
        handler.assigning();
        for partition in [0, 1] {
            handler.assigned((0, partition).into());
        }
        handler.rewound((0, 1).into(), 7);
        assert!(handler.tasks.contains_key(&0) && !handler.tasks.contains_key(&1));
        assert!(handler.member.suspended[&1].contains("joins the judges again"));
        let (unserved, now) = (&mut handler.member.unserved, Instant::now());
        assert!(!unserved.is_due(true, now), "it judges others");
        assert!(unserved.is_due(true, now + Duration::from_secs(61)));
    });
}

#[test]
fn a_judge_waits_for_a_broker_that_is_away_twice_in_a_rebalance() {
    let topic = Topic::default();
    topic.set_away(true);
    as_judge(&topic, |handler| {
        for n in 1..=3 {
            handler.assigning();
            for partition in 0..4 {
                handler.assigned((0, partition).into());
            }
            assert_eq!((topic.claims(), handler.member.suspended.len()), (2 * n, 4));
            assert!(handler.tasks.is_empty());
            let unserved = &mut handler.member.unserved;
            assert!(
                unserved.is_due(false, Instant::now()),
                "it judges nothing else"
            );
            unserved.leave();
        }
    });
}

#[test]
fn a_judge_goes_on_with_others_while_nobody_serves_a_judge_partition() {
    let topic = Topic::default();
    topic.leaderless.lock().insert(1);
    as_judge(&topic, |handler| {
        let second = Duration::from_secs(1);
        let join = |handler: &mut GroupHandler<'_>| {
            handler.assigning();
            for partition in 0..4 {
                handler.assigned((0, partition).into());
            }
        };
        for wait in [60, 120, 240, 480, 480] {
            join(handler);
            assert!(handler.tasks.keys().eq(&[0, 2, 3]) && !handler.member.failed);
            assert!(handler.member.suspended.keys().eq(&[1]));
            let (unserved, now) = (&mut handler.member.unserved, Instant::now());
            assert!(!unserved.is_due(true, now + (wait - 5) * second), "{wait}");
            assert!(unserved.is_due(true, now + wait * second), "{wait}");
            unserved.leave();
            assert!(!unserved.is_due(false, now), "it has left");
        }
        topic.leaderless.lock().clear();
        join(handler);
        assert_eq!(handler.tasks.len(), 4);
        assert!(handler.member.suspended.is_empty());
        let unserved = &mut handler.member.unserved;
        assert!(!unserved.is_due(true, Instant::now() + 9999 * second));
        // The next failure counts as the first again.
        topic.leaderless.lock().insert(1);
        join(handler);
        let unserved = &mut handler.member.unserved;
        assert!(unserved.is_due(true, Instant::now() + 60 * second));
        // The group gives it to another judge.
        handler.revoked((0, 1).into(), false);
        assert!(
            !handler
                .member
                .unserved
                .is_due(true, Instant::now() + 9999 * second)
        );
    });
}

#[test]
fn a_judge_partition_is_read_once_its_own_claim_comes_though_it_never_ends() {
    let topic = Topic::default();
    // What is in the topic before the claim.
    topic.next.store(7, Ordering::Relaxed);
    as_judge(&topic, |handler| {
        let at = (0, 2).into();
        handler.assigned(at);
        for (offset, is_read) in [(6, false), (7, true), (8, true)] {
            handler.records(&[Record {
                partition: 2,
                offset,
                key: Some(b"of somebody"),
                payload: b"x",
                ..Record::default()
            }]);
            assert_eq!(handler.tasks[&2].is_read(), is_read, "at {offset}");
        }
    });
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
    store.begin_revocation();
    store.wait_to_leave(&mut counts);
    assert!(!store.is_due(1, 7));
    let last = store.write_last((0, 3, PartitionCheckpoint::default()), &mut counts);
    assert_eq!(last, Ok(()));
    let written = store.answer(&mut counts).expect("the batch before");
    assert!(written.result.is_ok());
    assert!(store.answer(&mut counts).is_none());
}

#[test]
fn a_partition_that_no_broker_serves_holds_back_no_checkpoint_of_the_others() {
    let (topic, mut counts) = (Topic::default(), CheckpointCounts::default());
    let mut store = JudgeStore::new(&options(&topic, Inline), 4).expect("a store");
    for partition in 0..4 {
        store.take_over(partition, &mut counts).expect("claimed");
    }
    let batch = |revision| -> Vec<_> {
        let one = |partition| (partition, revision, PartitionCheckpoint::default());
        (0..4).map(one).collect()
    };
    topic.leaderless.lock().insert(1);
    store.write(batch(7));
    let written = store.wait(Duration::ZERO, &mut counts).expect("an answer");
    assert!(written.result.is_err() && written.bytes > 0);
    let due = [0, 1, 2, 3].map(|partition| store.is_due(partition, 7));
    assert_eq!((due, counts.written), ([false, true, false, false], 3));
    // Two that nobody serves do not keep the others back for ever.
    topic.leaderless.lock().insert(0);
    for _ in 0..2 {
        store.write(batch(8));
        store.wait(Duration::ZERO, &mut counts).expect("an answer");
    }
    let due = [0, 1, 2, 3].map(|partition| store.is_due(partition, 8));
    assert_eq!(due, [true, true, false, false]);
    // If all brokers are away, not every partition waits.
    topic.set_away(true);
    store.write(batch(7));
    let written = store.wait(Duration::ZERO, &mut counts).expect("an answer");
    assert!(written.result.is_err() && written.bytes == 0);
    topic.set_away(false);
    topic.leaderless.lock().clear();
    store.write(batch(7));
    let written = store.wait(Duration::ZERO, &mut counts).expect("an answer");
    assert!(written.result.is_ok() && !store.is_due(1, 7));
}

#[test]
fn a_judge_does_not_go_on_from_a_claim_whose_offset_nobody_knows() {
    let topic = Topic::default();
    topic.next.store(-1, Ordering::Relaxed);
    as_judge(&topic, |handler| {
        handler.assigned((0, 2).into());
        assert!(handler.tasks.is_empty() && handler.member.suspended.contains_key(&2));
    });
}

#[test]
fn a_judge_of_several_says_that_all_is_stored_while_nothing_comes() {
    let (topic, mut counts) = (Topic::default(), CheckpointCounts::default());
    let options = follower(&topic, Duration::ZERO);
    let mut task = read_task(&options);
    task.look(&Lengths::default());
    let group = JudgeGroup::new(Plan::default(), vec!["t".to_owned()], options, 1);
    let mut group = group.expect("a store");
    // Without judge partitions nothing is reported about them.
    group.write(&Tasks::new());
    assert!(group.written().is_none());
    group.store.take_over(0, &mut counts).expect("claimed");
    let tasks = Tasks::from([(0, task)]);
    group.write(&tasks);
    let written = group.wait_written(Duration::MAX).expect("a checkpoint");
    assert!(written.result.is_ok() && written.bytes > 0);
    for _ in 0..2 {
        group.write(&tasks);
        assert!(!group.store.is_writing());
        let written = group.written().expect("an answer");
        assert!(written.result.is_ok() && written.at_ms >= clock::now_ms() - 60_000);
        assert!(group.written().is_none());
    }
}

#[test]
fn a_partition_whose_length_nobody_says_is_waited_for_and_then_named() {
    let (hour, at) = (Duration::from_secs(3600), (0, 3).into());
    for (missing_after, freshness) in [
        (hour, Freshness::Behind),
        (Duration::ZERO, Freshness::Missing),
    ] {
        let mut task = read_task(&follower(&Topic::default(), missing_after));
        task.await_partition(at);
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
        let (mut task, mut counts) = (read_task(&options), CheckpointCounts::default());
        let (mut offset, mut named) = (0, Vec::new());
        // Claims restart with the state topic.
        for epoch in [9, 3, 12] {
            let checkpoint = records(&PartitionCheckpoint::default(), "g/t/3/", epoch, 1);
            let (body, head) = checkpoint.expect("encoded");
            for (key, value) in body.iter().chain([&head]) {
                let (key, value) = (key.as_bytes(), value.as_deref());
                task.take(0, offset, None, key, value, &mut counts);
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

#[test]
fn a_judge_that_is_not_let_in_again_for_a_while_says_so_until_it_is() {
    as_judge(&Topic::default(), |handler| {
        let at = (0, 2).into();
        handler.assigned(at);
        handler.revoked(at, false);
        assert!(handler.member.lost_since.is_none());
        handler.revoked(at, true);
        assert_eq!(
            handler.member.thrown_out(),
            None,
            "it may come back at once"
        );
        handler.member.lost_since = Instant::now().checked_sub(Duration::from_secs(40));
        let why = handler.member.thrown_out().expect("it lasts");
        assert!(
            why.contains(" 40 s ago") && why.ends_with("to join"),
            "{why}"
        );
        handler.error(KafkaError::Other("another assignor".to_owned()));
        handler.revoked(at, true);
        let why = handler.member.thrown_out().expect("since the first time");
        assert!(why.ends_with("another assignor"), "{why}");
        handler.assigning();
        assert_eq!(handler.member.thrown_out(), None);
    });
}

#[test]
fn a_partition_that_only_the_snapshot_of_a_judge_has_is_forgotten() {
    let options = follower(&Topic::default(), Duration::ZERO);
    let (mut task, mut counts) = (read_task(&options), CheckpointCounts::default());
    let checkpoint = records(&PartitionCheckpoint::default(), "g/t/3/", 0, 1);
    let (body, head) = checkpoint.expect("encoded");
    for (offset, (key, value)) in (0..).zip(body.iter().chain([&head])) {
        let (key, value) = (key.as_bytes(), value.as_deref());
        task.take(0, offset, None, key, value, &mut counts);
    }
    task.look(&Lengths::default());
    let known = |task: &JudgeTask| {
        let followed = task.aggregator().snapshot().followed;
        followed.map_or(0, |f| f.applied.len())
    };
    assert_eq!(known(&task), 1);
    // Partition 3 exists at the source, or it does not.
    for (exists, left) in [(true, 1), (false, 0)] {
        let again = JudgeTask::new(
            &Plan::default(),
            &["t".to_owned()],
            &options,
            task.snapshot(),
        );
        let mut again = again.expect("it fits");
        again.begin(1);
        // The topic is as long as before.
        let last = body.len() as i64;
        again.take(0, last, None, b"of somebody", None, &mut counts);
        again.end(0, &mut counts);
        if exists {
            again.await_partition((0, 3).into());
        }
        assert_eq!(known(&again), 1);
        again.look(&Lengths::default());
        assert_eq!(known(&again), left);
    }
}

/// Follows until this many partitions are covered, and this many behind.
fn follow_until(judges: &mut Judges, covered: u64, behind: u64) {
    let begun = Instant::now();
    let wanted = FreshnessCounts {
        covered,
        behind,
        ..FreshnessCounts::default()
    };
    loop {
        judges.follow(Duration::from_millis(10));
        let Role::Judge(facts) = judges.role() else {
            panic!("it judges");
        };
        let stands = facts.partitions;
        if stands == wanted {
            return;
        }
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
    // A missing answer is not reported before it lasts.
    assert_eq!(judges.waits_for(), []);
    topic.silent.store(false, Ordering::Relaxed);
    follow_until(&mut judges, 2, 0);
}
