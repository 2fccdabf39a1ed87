//! Tests of the client of the event logs.

use super::*;
use crate::store::event_log::{EventLog, LogLimits};
use std::collections::BTreeMap;
use tempfile::TempDir;

const LIMITS: LogLimits = LogLimits {
    bytes_max: 1 << 20,
    keep_ms: 1 << 40,
};

#[test]
fn a_topic_with_a_backlog_does_not_hold_up_the_others() {
    let folder = TempDir::with_prefix("trueline-fair-").expect("a folder");
    let names = ["asked", "answered", "idle"];
    let mut logs = EventLogs::new();
    for (name, count) in names.into_iter().zip([20, 4, 0]) {
        let log = EventLog::open(&folder.path().join(name), LIMITS).expect("it opens");
        for _ in 0..count {
            log.append(None, 0, vec!["{}".to_owned()]).expect("room");
        }
        logs.insert(name.to_owned(), Arc::new(log));
    }
    let options = KafkaOptions {
        topics: names.map(str::to_owned).into(),
        ..KafkaOptions::default()
    };
    let mut client = LogBrokers(logs).join(&options).expect("it joins");
    let mut all = TopicPartitionList::new();
    for name in names {
        let from = Offset::Offset(0);
        all.add_partition_offset(name, 0, from).expect("an offset");
    }
    client.assign(&all).expect("assigned");
    // Each call takes one event.
    let mut read: BTreeMap<u16, usize> = BTreeMap::new();
    let mut calls = 0;
    while read.get(&1) != Some(&4) {
        calls += 1;
        client.fetch(1, Duration::ZERO, &mut |batch| {
            for fetched in batch {
                *read.entry(fetched.record.topic).or_default() += 1;
            }
        });
        assert!(calls <= 12, "{read:?}");
    }
    assert!(read[&0] >= 4, "{read:?}");
}

#[test]
fn the_fault_of_a_client_that_is_gone_does_not_stay() {
    let folder = TempDir::with_prefix("trueline-gone-").expect("a folder");
    let log = Arc::new(EventLog::open(folder.path(), LIMITS).expect("it opens"));
    let logs = EventLogs::from([("posted".to_owned(), Arc::clone(&log))]);
    let options = KafkaOptions {
        topics: vec!["posted".to_owned()],
        ..KafkaOptions::default()
    };
    log.reader().report(Some("it cannot be read".to_owned()));
    assert!(log.facts().read_fault.is_some());
    LogBrokers(logs).join(&options).expect("it joins");
    assert_eq!(log.facts().read_fault, None);
}

/// The events that are handed over next, at most `max`.
fn taken(state: &mut State, max: usize) -> Vec<(i64, String)> {
    let mut all = Vec::new();
    state.fetch(max, &mut |batch| {
        all.extend(batch.iter().map(|fetched| {
            let text = String::from_utf8_lossy(fetched.record.payload);
            (fetched.record.offset, text.into_owned())
        }));
    });
    all
}

#[test]
fn a_log_that_could_not_be_read_is_read_on_from_the_same_event() {
    let folder = TempDir::with_prefix("trueline-again-").expect("a folder");
    let log = EventLog::open(folder.path(), LIMITS).expect("it opens");
    let event = |i: i64| format!("{{\"id\":{i}}}");
    for i in 0..3 {
        log.append(None, 0, vec![event(i)]).expect("room");
    }
    let mut state = State {
        topics: vec![Topic {
            name: "posted".to_owned(),
            reader: log.reader(),
            assigned: true,
            paused: false,
            stopped: false,
            failed: None,
        }],
        first: 0,
        errors: Vec::new(),
    };
    assert_eq!(taken(&mut state, 1), [(0, event(0))]);
    // A text that does not match the checksum, in the open file.
    let second = event(1).into_bytes();
    let of = |bytes: &[u8]| bytes.windows(second.len()).position(|w| w == second);
    let files = std::fs::read_dir(folder.path()).expect("a folder");
    let files = files.map(|file| file.expect("a file").path());
    let mut files = files.map(|path| (std::fs::read(&path).expect("its bytes"), path));
    let (whole, path) = files.find(|(b, _)| of(b).is_some()).expect("it");
    let mut damaged = whole.clone();
    damaged[of(&whole).expect("the event") + 6] = b'7';
    std::fs::write(&path, damaged).expect("written");
    let wait = |state: &mut State| state.topics[0].failed = Instant::now().checked_sub(READ_AGAIN);
    for tries in 1..3 {
        assert_eq!(taken(&mut state, 1), []);
        assert_eq!(state.errors.len(), tries);
        let fault = log.facts().read_fault.expect("it is said");
        assert!(fault.contains("is damaged"), "{fault}");
        // Not before the pause has passed.
        assert_eq!(taken(&mut state, 1), []);
        assert_eq!(state.errors.len(), tries);
        wait(&mut state);
    }
    std::fs::write(&path, whole).expect("written");
    assert_eq!(taken(&mut state, 1), [(1, event(1))]);
    assert_eq!(log.facts().read_fault, None);
    assert_eq!(taken(&mut state, 1), [(2, event(2))]);
}
