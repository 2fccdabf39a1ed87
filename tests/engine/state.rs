//! State with pending predictions goes through an export and back to the bit, journals and all.

use crate::support::disk::restore_joined;
use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use std::path::{Path, PathBuf};

use trueline::collect::join::JoinPlan;
use trueline::collect::{Event, Segmenting};
use trueline::judge::JudgeOptions;
use trueline::monitor::snapshot::{FollowedState, Snapshot};
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::store::inspect::{FileRole, inspect};
use trueline::store::{FormatError, journal, load_with_journals, save, transfer};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_064_000;

pub(crate) fn plan() -> Plan {
    let windows = vec![WindowSpec::time("6s", 6_000), WindowSpec::last(100)];
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Segmenting {
                rollup: true,
                ..Segmenting::default()
            },
            views: vec![View::TopLabel, View::Class(1), View::Full],
            classes: vec!["no".to_owned(), "yes".to_owned()],
            ladder: Ladder::new(windows, 2_000).expect("a valid ladder"),
            grid: Grid::new(Axis::Linear, 6),
            judge: JudgeOptions {
                min_events: 10,
                ..JudgeOptions::plain()
            },
        }],
        joins: vec![JoinPlan {
            maturity_ms: 4_000,
            revise: true,
            pending_max: 100_000,
            ..JOIN
        }],
        ..Plan::default()
    }
}

/// Feeds predictions with their outcomes from `from` on, one each 10 ms.
fn feed(engine: &mut Engine, from: i64, n: i64) {
    feed_each(10, engine, from, n);
}

/// The same, one each `step_ms`. Outcomes come up to six seconds late.
pub(crate) fn feed_each(step_ms: i64, engine: &mut Engine, from: i64, n: i64) {
    let mut rng = Rng::new(from as u64 + 1);
    for i in from..from + n {
        let score = rng.uniform();
        let time_ms = BEGIN_MS + i * step_ms;
        let origin = |source| origin(source, (i % 2) as i32, i);
        let event = Event {
            model: "m",
            version: "1",
            segment: ["k=a", "k=b", ""][i as usize % 3],
            id: &i.to_le_bytes(),
            time_ms,
            prediction: Prediction::Vector(&[1.0 - score, score]),
            ..EVENT
        };
        engine.observe(origin(0), &event);
        let of = i - (rng.uniform() * 6_000.0) as i64 / step_ms;
        let id = of.to_le_bytes();
        let outcome = Outcome::Class(u32::from(rng.uniform() < 0.5));
        engine.observe_outcome(origin(1), &outcome_record(&id, time_ms, outcome));
    }
}

pub(crate) fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

#[test]
fn an_exported_state_with_pending_predictions_goes_on_elsewhere_to_the_bit() {
    let (here, there) = (scratch("here"), scratch("there"));
    let mut engine = Engine::new(plan());
    feed(&mut engine, 0, 3_000);
    journal::append(&here, &engine.take_journals()).expect("journals");
    save(&here, &engine.snapshot()).expect("a snapshot");
    let file = here.with_extension("jsonl");
    let mut out = std::fs::File::create(&file).expect("a file");
    let exported = transfer::export(&here, || Ok(None), &mut out).expect("an export");
    assert!(exported.segments.iter().flatten().any(|s| !s.is_empty()));
    let imported = transfer::import(&file, &there, |_| Ok(())).expect("an import");
    assert!(exported.snapshot == imported.snapshot);
    assert!(exported.segments == imported.segments);
    // Exported again it is the same file.
    let mut again = Vec::new();
    transfer::export(&there, || Ok(None), &mut again).expect("an export");
    assert!(again == std::fs::read(&file).expect("the file"));
    // And it goes on as if nothing had been.
    let found = load_with_journals(&there)
        .expect("sound")
        .expect("a snapshot");
    let mut moved = restore_joined(plan(), found.snapshot, &found.segments);
    assert_eq!(*moved.brought(), engine.counters());
    for engine in [&mut engine, &mut moved] {
        feed(engine, 3_000, 2_000);
        engine.finish();
    }
    let reports = |e: &Engine| e.reports().cloned().collect::<Vec<_>>();
    assert_eq!(reports(&engine), reports(&moved));
    assert_eq!(engine.counters(), moved.counters());
    assert!(engine.counters().total().revised > 0);
    // Of its records it has read the second part, and went on with those that were open.
    let (total, brought) = (moved.counters().total(), moved.brought().total());
    let here = total.since(&brought);
    assert!(here.records > 0 && here.records < total.records);
    assert_eq!(here.records + brought.open(), here.disposed());
}

#[test]
fn what_counts_after_a_deployment_begins_after_the_newest_prediction() {
    let mut engine = Engine::new(plan());
    feed(&mut engine, 0, 3_000);
    let newest_ms = engine.reports().map(|r| r.last_event_ms).max();
    assert!(engine.start_over(|_| true, None) > 0);
    let sealed_ms = engine
        .reports()
        .flat_map(|r| r.windows.iter().map(|w| w.end_ms));
    assert!(sealed_ms.max() < newest_ms);
    let from = engine
        .reports()
        .filter_map(|r| r.alert.counts_from_ms)
        .max();
    assert_eq!(from, newest_ms.map(|ms| ms + 1));
}

#[test]
fn how_far_a_judge_has_followed_the_workers_goes_through_an_export() {
    let (here, there) = (scratch("followed"), scratch("followed-there"));
    std::fs::create_dir_all(&here).expect("a directory");
    let snapshot = Snapshot {
        followed: Some(FollowedState::default()),
        ..Engine::new(plan()).snapshot()
    };
    save(&here, &snapshot).expect("a snapshot");
    let file = here.with_extension("jsonl");
    let mut out = std::fs::File::create(&file).expect("a file");
    transfer::export(&here, || Ok(None), &mut out).expect("an export");
    let imported = transfer::import(&file, &there, |_| Ok(())).expect("an import");
    assert!(imported.snapshot == snapshot);
}

#[test]
fn windows_may_change_and_what_the_old_ones_hold_stays() {
    let with = |widths: &[(&str, i64)]| {
        let mut plan = plan();
        let windows = widths.iter().map(|(name, ms)| WindowSpec::time(name, *ms));
        plan.models[0].ladder = Ladder::new(windows.collect(), 2_000).expect("a valid ladder");
        plan.models[0].views = vec![View::TopLabel, View::Class(1)];
        plan.joins.clear();
        plan
    };
    let feed = |engine: &mut Engine, from: i64, n: i64| {
        for i in from..from + n {
            let mut rng = Rng::new(i as u64);
            let score = rng.uniform();
            let event = Event {
                model: "m",
                version: "1",
                segment: ["k=a", "k=b", ""][i as usize % 3],
                time_ms: BEGIN_MS + i * 10,
                prediction: Prediction::Vector(&[1.0 - score, score]),
                outcome: Some(Outcome::Class(u32::from(rng.uniform() < score))),
                ..EVENT
            };
            let origin = origin(0, 0, i);
            engine.observe(origin, &event);
        }
    };
    let before = with(&[("6s", 6_000), ("36s", 36_000)]);
    let mut old = Engine::new(before);
    feed(&mut old, 0, 6_000);
    old.tick(BEGIN_MS);
    let windows_of = |engine: &Engine| {
        let reports = engine.reports();
        let all = reports.flat_map(|r| {
            let windows = r.windows.iter();
            windows.map(|w| {
                (
                    (r.id.to_string(), w.window.clone()),
                    (w.n, w.end_ms, w.verdict),
                )
            })
        });
        all.collect::<std::collections::BTreeMap<_, _>>()
    };
    let after = with(&[("6s", 6_000), ("36s", 36_000), ("72s", 72_000)]);
    let mut new = Engine::restore(after, old.snapshot()).expect("a sound snapshot");
    assert_eq!(new.dropped(), [""; 0]);
    let (kept, all) = (windows_of(&old), windows_of(&new));
    for (window, judged) in &kept {
        assert_eq!(all.get(window), Some(judged), "{window:?}");
    }
    assert_eq!(all.len(), kept.len() / 2 * 3);
    // The new window begins with what the longest old one has, and goes on from there.
    feed(&mut old, 6_000, 1_500);
    feed(&mut new, 6_000, 1_500);
    old.tick(BEGIN_MS);
    new.tick(BEGIN_MS);
    let (kept, all) = (windows_of(&old), windows_of(&new));
    for ((stream, window), judged) in &kept {
        let name = (stream.clone(), window.clone());
        assert_eq!(all.get(&name), Some(judged), "{name:?}");
        let long = all[&(stream.clone(), "72s".to_owned())].0;
        assert!(
            window != "36s" || long > judged.0,
            "{stream}: {long} in 72s, {judged:?} in 36s"
        );
    }
    // Another shortest slide cuts other panes, and nothing is kept.
    let other = with(&[("12s", 12_000)]);
    let new = Engine::restore(other, old.snapshot()).expect("a sound snapshot");
    let why = "changed: the shortest slide of `windows`";
    let said = |what: &String| what.ends_with(why);
    assert!(new.dropped().iter().any(said), "{:?}", new.dropped());
}

#[test]
fn every_file_is_named_with_what_it_is_and_what_is_wrong_with_it() {
    let dir = scratch("faults");
    let mut engine = Engine::new(plan());
    for from in [0, 1_000, 2_000] {
        feed(&mut engine, from, 1_000);
        journal::append(&dir, &engine.take_journals()).expect("journals");
        save(&dir, &engine.snapshot()).expect("a snapshot");
    }
    let snapshot = |n: u32| dir.join(format!("snapshot-{n:020}.trueline"));
    let mut future = std::fs::read(snapshot(2)).expect("a snapshot");
    future[8] = 99;
    std::fs::write(snapshot(2), future).expect("written");
    std::fs::write(dir.join("snapshot-00000000000000000003.part"), b"x").expect("written");
    std::fs::write(dir.join("notes.txt"), b"x").expect("written");
    let found = inspect(&dir).expect("readable");
    let of = |role: FileRole| found.files.iter().filter(move |f| f.role == role);
    let faults: Vec<_> = of(FileRole::Snapshot)
        .map(|f| (f.format, f.fault.clone()))
        .collect();
    let now = trueline::store::format::VERSION;
    let sound = (Some(now), None);
    let newer = (Some(99), Some(FormatError::Future(99)));
    assert_eq!(faults, [sound.clone(), sound, newer]);
    assert_eq!(of(FileRole::Part).count(), 1);
    assert_eq!(of(FileRole::Unknown).count(), 1);
    assert_eq!(of(FileRole::Journal).count(), 2);
    let newest = found.newest.expect("usable").expect("there");
    assert_eq!(newest.path, snapshot(1));
    // A journal that is cut short is named as the reason why its snapshots cannot be used.
    for file in std::fs::read_dir(dir.join("journal"))
        .expect("journals")
        .flatten()
    {
        std::fs::write(file.path(), b"").expect("written");
    }
    let found = inspect(&dir).expect("readable");
    assert!(found.newest.is_err());
    let torn = |f: &&trueline::store::inspect::FileReport| f.fault == Some(FormatError::Torn);
    assert!(
        found
            .files
            .iter()
            .filter(torn)
            .all(|f| f.role == FileRole::Journal)
    );
    assert!(found.files.iter().filter(torn).count() > 0);
    // So are one that is gone, once, and the snapshots that need it.
    std::fs::remove_dir_all(dir.join("journal")).expect("removed");
    let found = inspect(&dir).expect("readable");
    let of = |role: FileRole| found.files.iter().filter(move |f| f.role == role);
    assert!(of(FileRole::Journal).all(|f| f.fault == Some(FormatError::Missing)));
    assert_eq!(of(FileRole::Journal).count(), 1);
    let journal = &of(FileRole::Journal).next().expect("one").path;
    let needs: Vec<_> = of(FileRole::Snapshot).map(|f| f.needs.as_ref()).collect();
    let missing = Some((journal.clone(), FormatError::Missing));
    assert_eq!(needs, [missing.as_ref(), missing.as_ref(), None]);
    let why = found.newest.expect_err("none is usable").to_string();
    assert_eq!(why.matches(".log: missing").count(), 1, "{why}");
    assert!(why.contains("trueline state reset"), "{why}");
}
