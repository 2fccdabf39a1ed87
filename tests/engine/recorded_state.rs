//! State directories that the program of each format wrote, `tests/engine/recorded_state/format-N`.
//!
//! That of today's format is what the program writes today, byte by byte: a layout that changes
//! needs a new number, else an upgrade would read sums for what they are not. An engine that starts
//! with it goes on to the bit. One of an older format is refused by its name, and stays as it was,
//! so that the way back is open; where a version reads the one before, this is the place to say so
//! (deploy/guide/installation.md, "Upgrade and rollback").
//!
//! `TRUELINE_RECORD=1 cargo test --test engine recorded_state` writes the folder of a format that
//! has none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::state::{feed_each, plan, scratch};
use crate::support::disk::restore_joined;
use trueline::judge::DetectorOptions;
use trueline::monitor::{Engine, Plan};
use trueline::store::format::VERSION;
use trueline::store::inspect::inspect;
use trueline::store::{FormatError, StoreError, journal, load_with_journals, save};

const RECORDED: i64 = 300;
const STEP_MS: i64 = 50;

fn folder(format: u32) -> PathBuf {
    let name = format!("tests/engine/recorded_state/format-{format}");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Top label, a class and whole vectors with a detector, joined with revisions, by segment.
fn detecting() -> Plan {
    let mut plan = plan();
    let budget = "1 per 30d".parse().expect("a budget");
    plan.models[0].judge.detector = Some(DetectorOptions::alone(budget, 0.05));
    plan
}

/// Predictions and outcomes up to a moment at which some are sealed, some wait, and some may be
/// revised.
fn written(dir: &Path) -> Engine {
    let mut engine = Engine::new(detecting());
    feed_each(STEP_MS, &mut engine, 0, RECORDED);
    journal::append(dir, &engine.take_journals()).expect("journals");
    save(dir, &engine.snapshot()).expect("a snapshot");
    engine
}

/// Every file below a folder.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("below").to_owned();
                all.insert(name, std::fs::read(&path).expect("a file"));
            }
        }
    }
    all
}

/// A copy, which a test may use as its own.
fn copy(format: u32) -> PathBuf {
    let to = scratch(&format!("format-{format}"));
    for (name, bytes) in files(&folder(format)) {
        let path = to.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, bytes).expect("written");
    }
    to
}

#[test]
fn the_layout_of_a_state_is_the_recorded_one_of_its_format() {
    let recorded = folder(VERSION);
    if std::env::var_os("TRUELINE_RECORD").is_some() && !recorded.exists() {
        written(&recorded);
    }
    let now = scratch("now");
    written(&now);
    let (now, recorded) = (files(&now), files(&recorded));
    let names = |all: &BTreeMap<PathBuf, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&now), names(&recorded));
    for (name, bytes) in &now {
        assert!(
            *bytes == recorded[name],
            "{name:?}: state is written otherwise than format {VERSION} was; give it the next number \
             (src/store/format.rs) and record that"
        );
    }
}

#[test]
fn a_recorded_state_goes_on_to_the_bit() {
    let found = load_with_journals(&copy(VERSION))
        .expect("sound")
        .expect("a snapshot");
    let mut upgraded = restore_joined(detecting(), found.snapshot, &found.segments);
    let mut undisturbed = Engine::new(detecting());
    feed_each(STEP_MS, &mut undisturbed, 0, RECORDED);
    let sealed = |engine: &Engine| engine.reports().map(|r| r.windows[0].n).sum::<u64>();
    assert!(sealed(&upgraded) > 0);
    for engine in [&mut upgraded, &mut undisturbed] {
        feed_each(STEP_MS, engine, RECORDED, 2_000);
        engine.finish();
    }
    let reports = |e: &Engine| e.reports().cloned().collect::<Vec<_>>();
    assert_eq!(reports(&upgraded), reports(&undisturbed));
    assert_eq!(upgraded.counters(), undisturbed.counters());
    assert!(upgraded.counters().total().revised > 0);
}

#[test]
fn the_state_of_a_version_before_is_refused_by_its_format_and_left_as_it_is() {
    // Before 1.0 no version reads an older format.
    let past = VERSION - 1;
    let dir = copy(past);
    let why = load_with_journals(&dir).expect_err("an older format");
    let StoreError::Refused(snapshots) = &why else {
        panic!("{why}");
    };
    assert_eq!(snapshots.len(), 1);
    assert_eq!(snapshots[0].1, FormatError::Past(past));
    let said = why.to_string();
    assert!(
        said.contains(&format!("format {past}, this program reads {VERSION}")),
        "{said}"
    );
    let listed = inspect(&dir).expect("readable");
    let formats = listed.files.iter().filter_map(|f| f.format);
    assert_eq!(formats.collect::<Vec<_>>(), [past]);
    assert_eq!(files(&dir), files(&folder(past)));
}
