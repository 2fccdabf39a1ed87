//! A store begins empty; one that fails says why, and its failure is no answer.

use super::{END_MS, Side, Told, directory, plan};
use std::fs;
use std::sync::Arc;
use trueline::collect::join::{
    Key, OutcomeResult, Predicted, Repeated, SpillBackend, SpillEntries, SpillError, SpillTable,
};
use trueline::store::spill::{FOLDER, SpillStore};

#[test]
fn a_store_begins_empty_and_is_not_there_before_something_spills() {
    let directory = directory();
    let folder = directory.path().join(FOLDER);
    fs::create_dir_all(folder.join("keyspaces/7")).expect("writable");
    fs::write(folder.join("0.jnl"), b"what a crash left").expect("writable");
    let store = SpillStore::new(directory.path()).expect("a store");
    assert!(!folder.exists() && store.bytes() == 0);
    let mut corner = store.open().expect("a corner");
    let mut entries = [(&b"a"[..], Some(&b"1"[..])), (b"b", Some(b"2"))].into_iter();
    corner.write(&mut entries).expect("written");
    let mut other = store.open().expect("another");
    let mut value = Vec::new();
    assert!(corner.read(b"b", &mut value).expect("readable"));
    assert_eq!(value, b"2");
    assert!(!other.read(b"b", &mut value).expect("readable"));
    let mut entries = [(&b"a"[..], None), (b"b", Some(&b"3"[..]))].into_iter();
    corner.write(&mut entries).expect("written");
    assert!(!corner.read(b"a", &mut value).expect("readable"));
    assert!(corner.read(b"b", &mut value).expect("readable"));
    assert_eq!(value, b"3");
    assert!(store.bytes() > 0);
}

#[test]
fn a_store_that_cannot_be_made_says_where_and_what_to_do() {
    let directory = directory();
    let store = SpillStore::new(directory.path()).expect("nothing to remove");
    fs::write(directory.path().join(FOLDER), b"a file in its place").expect("writable");
    let error = store.open().expect_err("no folder").to_string();
    assert!(
        error.contains(FOLDER) && error.contains("pending_memory"),
        "{error}"
    );
}

/// A store whose disk fills up, or that forgets.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Broken {
    Full,
    Unreadable,
    Forgetful,
}

impl SpillBackend for Broken {
    fn open(&self) -> Result<Box<dyn SpillTable>, SpillError> {
        Ok(Box::new(*self))
    }
}

impl SpillTable for Broken {
    fn write(&mut self, _: &mut SpillEntries<'_>) -> Result<(), SpillError> {
        match self {
            Broken::Full => Err(SpillError("no space left on device".into())),
            _ => Ok(()),
        }
    }

    fn read(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<bool, SpillError> {
        match self {
            Broken::Forgetful => Ok(false),
            _ => Err(SpillError("input/output error".into())),
        }
    }
}

#[test]
fn a_store_that_fails_is_told_and_never_taken_for_a_miss() {
    for broken in [Broken::Full, Broken::Unreadable, Broken::Forgetful] {
        let plan = plan(Repeated::First, false, 5_000);
        let mut side = Side::new(plan, Some(Arc::new(broken)));
        let ends: Vec<Told> = (0..200)
            .map(|id| side.predict((id, 0), 0, i64::from(id) * 10, 1))
            .collect();
        if broken == Broken::Full {
            let refused = Told::Predicted(Predicted::Refused);
            assert!(ends.contains(&refused), "nothing is taken any more");
        } else {
            // The oldest of a partition have spilled: their outcome must not be taken for one that
            // came too early.
            let ends = [(1u16, 0), (3, 1)].map(|(id, partition)| {
                let key = Key::new(None, &id.to_le_bytes());
                (side.joins).observe_outcome(0, partition, key, None, 40, 1, &[2], |_, _| ())
            });
            if broken == Broken::Unreadable {
                assert!(ends.contains(&OutcomeResult::Refused), "{ends:?}");
                assert!(!ends.contains(&OutcomeResult::Waiting), "{ends:?}");
            }
            side.mature(END_MS);
        }
        let fault = side.joins.fault().expect("a fault").to_string();
        let expected = match broken {
            Broken::Full => "no space left",
            Broken::Unreadable => "input/output error",
            Broken::Forgetful => "has 0 of",
        };
        assert!(fault.contains(expected), "{fault}");
    }
}
