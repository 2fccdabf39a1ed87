//! What people were notified of moves with judge partitions.

use super::judges::as_judge;
use super::{Inline, Topic, follower, options};
use crate::alert::Alert;
use crate::app::cluster::judge_member::{GroupHandler, Membership, Tasks, with_notified};
use crate::app::cluster::judge_store::JudgeStore;
use crate::app::cluster::migrations::Migrations;
use crate::app::cluster::notified_writer::RETRY;
use crate::judge::StreamId;
use crate::kafka::Handler;
use crate::monitor::repartition::judge_partition;
use crate::monitor::snapshot::StreamState;
use crate::monitor::{Plan, VerdictState};
use crate::notify::entry::TransferredAlert;
use crate::notify::missed::Missed;
use crate::notify::notification::Links;
use crate::notify::{Delivered, Notification, fingerprint_of};
use crate::store::checkpoint::{Notified, PartitionCheckpoint};
use crate::store::reader::{CheckpointReader, FoundCheckpoint};
use crate::telemetry::facts::CheckpointCounts;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn stream(model: &str) -> StreamId {
    crate::notify::tests::stream(model, "1", "")
}

fn notified(model: &str, text: &str) -> Notified {
    Notified {
        stream: stream(model),
        text: text.to_owned(),
    }
}

/// What a checkpoint has of the alert of a model, and of its notification.
fn verdict(model: &str, text: Option<&str>) -> VerdictState {
    VerdictState {
        stream: stream(model),
        windows: Vec::new(),
        detector: None,
        alert: Alert {
            since_ms: Some(7),
            ..Alert::default()
        },
        notified: text.map(str::to_owned),
    }
}

#[test]
fn what_people_were_notified_of_is_written_at_once_and_goes_once_two_checkpoints_have_it() {
    let (topic, mut counts) = (Topic::default(), CheckpointCounts::default());
    let mut store = JudgeStore::new(&options(&topic, Inline), 1).expect("a store");
    let epoch = store.take_over(0, &mut counts).expect("claimed").epoch;
    let key = |n| format!("g//0/{epoch}/notified/{n}/{}", stream("m").fingerprint());
    let notified = notified("m", "fires");
    // Returns how many records were written.
    let write = |store: &mut JudgeStore| {
        let before = topic.next.load(Ordering::Relaxed);
        store.notified().write(Instant::now());
        topic.next.load(Ordering::Relaxed) - before
    };
    let is_first = store.put_notified(0, &notified);
    assert!(is_first, "there is no checkpoint to which it is added");
    assert_eq!(write(&mut store), 1);
    for revision in 1..=4 {
        store.write(vec![(0, revision, PartitionCheckpoint::default())]);
        let written = store.wait(Duration::ZERO, &mut counts);
        assert!(written.is_some_and(|w| w.result.is_ok()));
        let deleted = std::mem::take(&mut *topic.deleted.lock());
        match revision {
            1 => assert_eq!(deleted, [""; 0]),
            n => assert_eq!(deleted, [key(n - 2)]),
        }
        assert!(!store.put_notified(0, &notified));
        assert_eq!(write(&mut store), 1);
    }
    // After a failed checkpoint, new notifications do not count as later than the next one.
    topic.set_away(true);
    store.write(vec![(0, 5, PartitionCheckpoint::default())]);
    let written = store.wait(Duration::ZERO, &mut counts);
    assert!(written.is_some_and(|w| w.result.is_err()));
    store.put_notified(0, &notified);
    topic.set_away(false);
    assert_eq!(write(&mut store), 1);
    for (revision, superseded) in [(5, vec![3]), (6, vec![4, 5])] {
        store.write(vec![(0, revision, PartitionCheckpoint::default())]);
        let written = store.wait(Duration::ZERO, &mut counts);
        assert!(written.is_some_and(|w| w.result.is_ok()));
        let deleted = std::mem::take(&mut *topic.deleted.lock());
        let superseded: Vec<_> = superseded.into_iter().map(key).collect();
        assert_eq!(deleted, superseded);
    }
}

#[test]
fn what_people_were_notified_of_is_written_once_the_broker_takes_it_unless_it_is_superseded() {
    let (topic, mut counts) = (Topic::default(), CheckpointCounts::default());
    let mut store = JudgeStore::new(&options(&topic, Inline), 2).expect("a store");
    for partition in [0, 1] {
        store.take_over(partition, &mut counts).expect("claimed");
    }
    // After the pause that follows a failure.
    let write = |store: &mut JudgeStore| {
        let before = topic.next.load(Ordering::Relaxed);
        store.notified().write(Instant::now() + RETRY);
        topic.next.load(Ordering::Relaxed) - before
    };
    topic.set_away(true);
    for partition in [0, 1] {
        store.put_notified(partition, &notified("m", "fires"));
    }
    assert_eq!(write(&mut store), 0);
    store.put_notified(1, &notified("m", "over"));
    assert_eq!(write(&mut store), 0);
    // Its next owner may still read it.
    store.forget(1);
    topic.set_away(false);
    for revision in [1, 2] {
        store.write(vec![(0, revision, PartitionCheckpoint::default())]);
        let written = store.wait(Duration::ZERO, &mut counts);
        assert!(written.is_some_and(|w| w.result.is_ok()));
    }
    assert_eq!(write(&mut store), 1, "two checkpoints have the other");
    assert_eq!(write(&mut store), 0);
}

/// The alerts that the next owner of a judge partition finds, by model.
fn found(topic: &Topic, prefix: String) -> Vec<(String, String)> {
    let mut reader = CheckpointReader::new(prefix);
    for (key, value) in &*topic.written.lock() {
        reader.read(key.as_bytes(), value.as_deref());
    }
    let found = reader.newest().expect("readable").expect("a checkpoint");
    let all = with_notified(found.checkpoint.verdicts, found.notified);
    let all = all.into_iter();
    all.map(|v| (v.stream.model, v.notified.unwrap_or_default()))
        .collect()
}

#[test]
fn what_was_delivered_is_found_by_the_next_owner_before_the_engine_knows_of_it() {
    let text = |at_ms, waits: bool| {
        let notification = Notification::trial(at_ms, Links::default());
        let missed = [("s".to_owned(), Missed::default())];
        let alert = TransferredAlert {
            notification,
            sinks: BTreeSet::new(),
            missed: missed.into_iter().filter(|_| waits).collect(),
            ack: None,
            earlier: None,
        };
        serde_json::to_string(&alert).expect("plain data")
    };
    let (waits, done, later) = (text(7, true), text(7, false), text(9, false));
    let partition = judge_partition("m", 4);
    for (checkpoints, engine_knows) in [(0, false), (1, false), (0, true), (1, true)] {
        let (topic, mut counts) = (Topic::default(), CheckpointCounts::default());
        let mut store = JudgeStore::new(&options(&topic, Inline), 4).expect("a store");
        store.take_over(partition, &mut counts).expect("claimed");
        let mut write = |store: &mut JudgeStore, revision, known: &str| {
            let checkpoint = PartitionCheckpoint {
                verdicts: vec![verdict("m", Some(known))],
                ..PartitionCheckpoint::default()
            };
            store.write(vec![(partition, revision, checkpoint)]);
            let written = store.wait(Duration::ZERO, &mut counts);
            assert!(written.is_some_and(|w| w.result.is_ok()));
        };
        write(&mut store, 1, "");
        store.put_notified(partition, &notified("m", &waits));
        let delivered = Delivered {
            fingerprint: fingerprint_of(&done).expect("an alert"),
            stream: stream("m"),
            text: done.clone(),
        };
        store.notified().delivered(delivered);
        if engine_knows {
            store.put_notified(partition, &notified("m", &later));
            store.notified().write(Instant::now());
        }
        for revision in 0..checkpoints {
            write(&mut store, 2 + revision, &waits);
            store.notified().write(Instant::now());
        }
        let expected = match (checkpoints, engine_knows) {
            (_, false) => &done,
            (0, true) => &later,
            // The checkpoint has it.
            (_, true) => &waits,
        };
        let expected = [("m".to_owned(), expected.clone())];
        assert_eq!(
            found(&topic, store.prefix(partition)),
            expected,
            "{checkpoints}"
        );
    }
    // What a sink's thread has written is not written again, unless a checkpoint was begun since.
    let (topic, mut counts) = (Topic::default(), CheckpointCounts::default());
    let mut store = JudgeStore::new(&options(&topic, Inline), 4).expect("a store");
    store.take_over(partition, &mut counts).expect("claimed");
    let records = |store: &mut JudgeStore, text: &str| {
        let before = topic.next.load(Ordering::Relaxed);
        store.put_notified(partition, &notified("m", text));
        store.notified().write(Instant::now());
        topic.next.load(Ordering::Relaxed) - before
    };
    for (of_the_engine, expected) in [(&done, 0), (&done, 1), (&later, 1)] {
        if expected == 0 || *of_the_engine == later {
            store.notified().delivered(Delivered {
                fingerprint: fingerprint_of(&done).expect("an alert"),
                stream: stream("m"),
                text: done.clone(),
            });
        }
        assert_eq!(records(&mut store, of_the_engine), expected);
    }
    // Another process has the partition.
    let (topic, mut counts) = (Topic::default(), CheckpointCounts::default());
    let mut store = JudgeStore::new(&options(&topic, Inline), 4).expect("a store");
    store.take_over(partition, &mut counts).expect("claimed");
    store.forget(partition);
    let before = topic.next.load(Ordering::Relaxed);
    store.notified().delivered(Delivered {
        fingerprint: "a".to_owned(),
        stream: stream("m"),
        text: done,
    });
    assert_eq!(topic.next.load(Ordering::Relaxed), before);
}

#[test]
fn what_came_and_left_again_before_anybody_asked_is_its_next_owners() {
    let topic = Topic::default();
    as_judge(&topic, |handler| {
        let partitions = handler.store.partitions();
        let of = |model: &str| judge_partition(model, partitions);
        let other = (0..).map(|n| format!("other-{n}"));
        let other = other.into_iter().find(|name| of(name) != of("m"));
        let other = other.expect("there are four partitions");
        let at = (0, of("m")).into();
        let came = |handler: &GroupHandler<'_>| -> Vec<String> {
            let came = handler.member.migrations.came.iter();
            came.map(|verdict| verdict.stream.model.clone()).collect()
        };
        for (lost, stays) in [(true, false), (false, false), (false, true)] {
            handler.assigned(at);
            handler.member.migrations = Migrations::default();
            let verdicts = [("m", Some("fires")), (other.as_str(), None)];
            let verdicts = verdicts.map(|(model, text)| verdict(model, text));
            handler.member.came(verdicts.to_vec());
            if !stays {
                handler.revoked(at, lost);
            }
            let expected = match stays {
                true => vec!["m".to_owned(), other.clone()],
                false => vec![other.clone()],
            };
            assert_eq!(came(handler), expected);
        }
        // Until the notifier has taken the alert over, this is the text of the checkpoint.
        assert_eq!(handler.member.notified[&stream("m")], "fires");
        assert_eq!(handler.member.notified.len(), 1);
    });
}

#[test]
fn a_judge_that_takes_over_knows_first_what_people_were_notified_of_last() {
    let all = with_notified(
        vec![verdict("a", Some("old")), verdict("b", Some("fires"))],
        vec![notified("b", "over"), notified("c", "new")],
    );
    let said = all.iter().map(|v| {
        let text = v.notified.as_deref().unwrap_or_default();
        (v.stream.model.as_str(), text, v.alert.since_ms)
    });
    let said: Vec<_> = said.collect();
    let expected = [
        ("b", "over", Some(7)),
        ("c", "new", None),
        ("a", "old", Some(7)),
    ];
    assert_eq!(said, expected);
}

/// A checkpoint whose sums belong to no model.
fn unusable() -> FoundCheckpoint {
    let mut found = FoundCheckpoint::default();
    found.checkpoint.snapshot.streams.push(StreamState {
        model: 9,
        name: "m".to_owned(),
        version: String::new(),
        segment: String::new(),
        newest_ms: 0,
        late: 0,
        slot: None,
        open: Vec::new(),
        late_outcomes: Vec::new(),
        pending: Vec::new(),
        judges: Vec::new(),
    });
    found.checkpoint.verdicts.push(verdict("m", Some("fires")));
    found
}

#[test]
fn a_judge_that_begins_fresh_still_knows_who_was_notified() {
    let topic = Topic::default();
    for fresh in [false, true] {
        let mut options = follower(&topic, Duration::ZERO);
        options.checkpoints.fresh = fresh;
        let mut handler = GroupHandler {
            options: &options,
            plan: &Plan::default(),
            topics: &["t".to_owned()],
            store: &mut JudgeStore::new(&options.checkpoints, 4).expect("a store"),
            member: &mut Membership::default(),
            tasks: &mut Tasks::new(),
        };
        let restored = handler.restore(0, Some(unusable()));
        let known = restored.map(|(_, verdicts)| {
            let known = verdicts.iter().filter_map(VerdictState::notified);
            known.collect::<Vec<_>>()
        });
        match fresh {
            true => assert_eq!(known, Ok(vec![(stream("m"), "fires".to_owned())])),
            false => assert!(known.is_err()),
        }
    }
}
