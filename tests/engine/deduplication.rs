//! Records that are delivered twice: every sum, verdict and p-value is as if they had come once, in
//! any order of partitions, after restarts, and while partitions move.

use crate::support::disk::restore_joined;
use crate::support::records::{EVENT, origin};
use std::collections::BTreeMap;

use crate::support::partitions::{judged, restored};
use trueline::collect::join::JournalDelta;
use trueline::collect::{Disposition, Event, IdPlan, Segmenting, SourceCounters};
use trueline::judge::JudgeOptions;
use trueline::monitor::{Caps, Engine, LocalShard, ModelPlan, Plan, RecordSink, Shards};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::kernel::window::KernelOptions;
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_064_000;
const LATENESS_MS: i64 = 2_000;
const HORIZON_MS: i64 = 3_000;
const PARTITIONS: usize = 3;

/// Single scores and vectors, with views of every kind.
fn plan(ids_max: usize) -> Plan {
    let windows = vec![
        WindowSpec::time("6s", 6_000),
        WindowSpec::time("60s", 60_000),
        WindowSpec::last(1_000),
    ];
    let model = |name: &str, views: &[View]| ModelPlan {
        name: name.to_owned(),
        segmenting: Segmenting {
            rollup: true,
            ..Segmenting::default()
        },
        views: views.to_vec(),
        classes: ["no", "yes"].map(str::to_owned).to_vec(),
        ladder: Ladder::new(windows.clone(), LATENESS_MS).expect("a valid ladder"),
        grid: Grid::new(Axis::Linear, 6),
        judge: JudgeOptions {
            min_events: 10,
            kernel: KernelOptions {
                sample: 24,
                ..KernelOptions::default()
            },
            ..JudgeOptions::plain()
        },
    };
    Plan {
        models: vec![
            model("scores", &[View::Binary]),
            model("vectors", &[View::TopLabel, View::Full, View::Kernel]),
        ],
        caps: Caps {
            ids_max,
            ..Caps::default()
        },
        ids: vec![IdPlan {
            source: 0,
            horizon_ms: HORIZON_MS,
        }],
        ..Plan::default()
    }
}

#[derive(Debug, Clone)]
struct Record {
    id: String,
    time_ms: i64,
    segment: &'static str,
    score: f64,
    outcome: bool,
    /// Delivered before, and the first of them counted.
    repeat: bool,
}

/// The records of a partition, disordered within the lateness; some come again after up to `after`
/// others, some of these with a new timestamp within the horizon.
fn log(seed: u64, partition: usize, n: usize, after: usize) -> Vec<Record> {
    let mut rng = Rng::new(seed * 100 + partition as u64);
    let mut draw = move |below: usize| (rng.uniform() * below as f64) as usize;
    let mut all: Vec<Record> = Vec::new();
    let mut again: BTreeMap<usize, Vec<Record>> = BTreeMap::new();
    for i in 0..n {
        let record = Record {
            id: format!("{partition}-{i}"),
            time_ms: BEGIN_MS + i as i64 * 40 + draw(1_700) as i64,
            segment: ["k=a", "k=b"][draw(2)],
            score: (draw(1 << 20) as f64 + 0.5) / f64::from(1 << 20),
            outcome: draw(10) < 4,
            repeat: false,
        };
        if draw(20) == 0 {
            let time_ms = record.time_ms + draw(2) as i64 * draw(HORIZON_MS as usize) as i64;
            let repeated = Record {
                time_ms,
                repeat: true,
                ..record.clone()
            };
            again.entry(i + draw(after)).or_default().push(repeated);
        }
        all.push(record);
        all.extend(again.remove(&i).unwrap_or_default());
    }
    // One that closes all windows.
    all.push(Record {
        id: format!("last {partition}"),
        time_ms: BEGIN_MS + n as i64 * 40 + 15_000,
        segment: "k=a",
        score: 0.5,
        outcome: true,
        repeat: false,
    });
    all
}

fn logs(seed: u64, n: usize) -> Vec<Vec<Record>> {
    (0..PARTITIONS).map(|p| log(seed, p, n, 5)).collect()
}

/// Records of both models that come again.
fn repeats(logs: &[Vec<Record>]) -> u64 {
    2 * logs.iter().flatten().filter(|r| r.repeat).count() as u64
}

fn once(logs: &[Vec<Record>]) -> Vec<Vec<Record>> {
    let first = |log: &Vec<Record>| log.iter().filter(|r| !r.repeat).cloned().collect();
    logs.iter().map(first).collect()
}

/// Each record counts for both models.
fn feed(sink: &mut impl RecordSink, partition: usize, offset: usize, r: &Record) {
    for (model, at) in [("scores", 2 * offset), ("vectors", 2 * offset + 1)] {
        let vector = [1.0 - r.score, r.score];
        let event = Event {
            model,
            version: "1",
            segment: r.segment,
            id: r.id.as_bytes(),
            time_ms: r.time_ms,
            prediction: match model {
                "scores" => Prediction::Score(r.score),
                _ => Prediction::Vector(&vector),
            },
            outcome: Some(Outcome::Class(u32::from(r.outcome))),
            ..EVENT
        };
        let origin = origin(0, partition as i32, at as i64);
        sink.observe(origin, &event);
    }
}

fn engine(ids_max: usize) -> Engine {
    let mut engine = Engine::new(plan_of_views(ids_max));
    (0..PARTITIONS).for_each(|p| {
        engine.assign((0, p as i32).into());
    });
    engine
}

/// The binary view is of single scores alone.
fn plan_of_views(ids_max: usize) -> Plan {
    let mut plan = plan(ids_max);
    plan.models[0].classes.clear();
    plan
}

/// Plays all records, of the partitions in turn, so many of each at a time.
fn play(logs: &[Vec<Record>], at_a_time: usize) -> Engine {
    let mut engine = engine(usize::MAX);
    play_from(&mut engine, logs, at_a_time, 0);
    engine
}

fn play_from(engine: &mut Engine, logs: &[Vec<Record>], at_a_time: usize, from: usize) {
    let most = logs.iter().map(Vec::len).max().unwrap_or(0);
    for start in (from..most).step_by(at_a_time) {
        for (p, log) in logs.iter().enumerate() {
            for (offset, r) in log.iter().enumerate().skip(start).take(at_a_time) {
                feed(engine, p, offset, r);
            }
        }
    }
}

#[test]
fn what_is_delivered_twice_counts_once_to_the_bit_in_any_order_of_partitions() {
    for seed in 1..=2 {
        let logs = logs(seed, 2_000);
        let clean = play(&once(&logs), 1);
        let expected = judged(clean.monitor());
        assert!(expected.len() > 20);
        // Unrecognised, the repeats would show.
        let mut blind = plan_of_views(0);
        blind.ids.clear();
        let mut blind = Engine::new(blind);
        play_from(&mut blind, &logs, 1, 0);
        assert!(judged(blind.monitor()) != expected);
        for at_a_time in [1, 7, 5_000] {
            let engine = play(&logs, at_a_time);
            assert!(
                judged(engine.monitor()) == expected,
                "seed {seed}, {at_a_time}"
            );
            let counts = engine.counters().source(0);
            assert_eq!(counts.records, counts.disposed());
            assert_eq!(counts.observed, clean.counters().source(0).observed);
            assert_eq!(counts.duplicate, repeats(&logs));
            assert_eq!(
                (counts.conflict, counts.late, counts.ids_evicted),
                (0, 0, 0)
            );
        }
    }
}

#[test]
fn what_is_delivered_long_after_is_late_or_a_duplicate_and_never_counts_twice() {
    let logs: Vec<Vec<Record>> = (0..PARTITIONS).map(|p| log(3, p, 2_000, 400)).collect();
    let clean = play(&once(&logs), 1);
    // Panes say how many events were late, and windows do not.
    let windows = |e: &Engine| {
        let mut all = judged(e.monitor());
        all.retain(|name, _| !name.contains(" panes "));
        all
    };
    for at_a_time in [1, 5_000] {
        let engine = play(&logs, at_a_time);
        assert!(windows(&engine) == windows(&clean));
        let counts = engine.counters().source(0);
        assert!(counts.late > 100 && counts.duplicate > 100);
        assert_eq!(counts.duplicate + counts.late, repeats(&logs));
    }
}

/// Journals as a disk keeps them: segments by their place, appended to.
#[derive(Default)]
struct Disk(BTreeMap<(u16, i32, u64), Vec<u8>>);

impl Disk {
    fn append(&mut self, deltas: Vec<JournalDelta>) {
        for d in deltas {
            let segment = self.0.entry((d.join, d.partition, d.segment)).or_default();
            segment.truncate(d.offset as usize);
            assert_eq!(segment.len(), d.offset as usize);
            segment.extend(d.bytes);
        }
    }

    fn segments(&self, snapshot: &trueline::monitor::Snapshot) -> Vec<Vec<Vec<u8>>> {
        let of = |j: &trueline::collect::join::JoinState| {
            let marks = j.marks.iter();
            marks
                .map(|m| self.0[&(j.join, j.partition, m.segment)].clone())
                .collect()
        };
        snapshot.joins.iter().map(of).collect()
    }
}

#[test]
fn a_restart_counts_nothing_twice_wherever_it_comes() {
    let logs = logs(9, 1_500);
    let straight = play(&logs, 1);
    let expected = judged(straight.monitor());
    let mut rng = Rng::new(9);
    let (mut disk, mut snapshot, mut at) = (Disk::default(), None, 0);
    for _ in 0..8 {
        // From the snapshot on, past it, and killed without another one.
        let mut engine = match snapshot.take() {
            None => engine(usize::MAX),
            Some(snapshot) => {
                let segments = disk.segments(&snapshot);
                restore_joined(plan_of_views(usize::MAX), snapshot, &segments)
            }
        };
        let until = at + 1 + (rng.uniform() * 300.0) as usize;
        let part: Vec<Vec<Record>> = logs
            .iter()
            .map(|l| l[..until.min(l.len())].to_vec())
            .collect();
        play_from(&mut engine, &part, 1, at);
        disk.append(engine.take_journals());
        snapshot = Some(engine.snapshot());
        at = until;
        let beyond: Vec<Vec<Record>> = logs
            .iter()
            .map(|l| l[..(until + 40).min(l.len())].to_vec())
            .collect();
        play_from(&mut engine, &beyond, 1, at);
    }
    let snapshot = snapshot.unwrap();
    let segments = disk.segments(&snapshot);
    let mut engine = restore_joined(plan_of_views(usize::MAX), snapshot, &segments);
    play_from(&mut engine, &logs, 1, at);
    assert!(judged(engine.monitor()) == expected);
    let of = |e: &Engine| -> SourceCounters { e.counters().source(0) };
    assert_eq!(of(&engine), of(&straight));
}

#[test]
fn ids_move_with_their_partition() {
    let logs = logs(17, 1_500);
    let expected = judged(play(&once(&logs), 1).monitor());
    let mut disk = Disk::default();
    let mut processes = [(); 2].map(|()| Shards::new(plan_of_views(usize::MAX), vec![0]));
    let adopt = |shards: &mut Shards, mut shard: LocalShard, p: usize, verdicts| {
        shard.assign((0, p as i32).into());
        shards.adopt(shard, verdicts);
    };
    for p in 0..PARTITIONS {
        let shard = LocalShard::new((0, p as i32).into(), processes[0].plan(), Vec::new(), None);
        adopt(&mut processes[0], shard, p, Vec::new());
    }
    let mut carry = |processes: &mut [Shards; 2], p: usize, from: usize, to: usize| {
        let verdicts = processes[from].verdicts((0, p as i32).into());
        let shard = processes[from].get_mut((0, p as i32).into()).expect("ours");
        disk.append(shard.take_journals());
        let snapshot = shard.snapshot();
        processes[from].release((0, p as i32).into()).expect("ours");
        let segments = disk.segments(&snapshot);
        let shard = restored(
            (0, p as i32).into(),
            processes[to].plan(),
            &snapshot,
            &segments,
        );
        adopt(&mut processes[to], shard, p, verdicts);
    };
    let mut owners = [0; PARTITIONS];
    let most = logs.iter().map(Vec::len).max().unwrap_or(0);
    for offset in 0..most {
        for p in 0..PARTITIONS {
            let owner = (offset / 200 + p) % 2;
            if owner != owners[p] {
                carry(&mut processes, p, owners[p], owner);
                owners[p] = owner;
            }
            // The clock is left for the end.
            if let Some(r) = logs[p].get(offset).filter(|_| offset + 1 < logs[p].len()) {
                let shard = processes[owner]
                    .get_mut((0, p as i32).into())
                    .expect("ours");
                feed(shard, p, offset, r);
            }
        }
        processes.iter_mut().for_each(Shards::advance);
    }
    for p in (0..PARTITIONS).filter(|p| owners[*p] == 1) {
        carry(&mut processes, p, 1, 0);
    }
    processes[0].advance();
    for (p, log) in logs.iter().enumerate() {
        let shard = processes[0].get_mut((0, p as i32).into()).expect("ours");
        feed(shard, p, log.len() - 1, &log[log.len() - 1]);
        processes[0].advance();
    }
    assert!(judged(processes[0].monitor().expect("it judges")) == expected);
    let counted = processes.iter().map(|s| s.counters().source(0).duplicate);
    assert_eq!(counted.sum::<u64>(), repeats(&logs));
}

#[test]
fn beyond_the_cap_the_oldest_ids_are_forgotten_and_counted() {
    let logs = logs(5, 2_000);
    let mut engine = engine(200);
    play_from(&mut engine, &logs, 1, 0);
    let counts = engine.counters().source(0);
    assert!(counts.ids_evicted > 0);
    assert_eq!(counts.records, counts.disposed());
    // Repeats after a few records are still recognised.
    assert!(counts.duplicate > 0);
}

#[test]
fn a_late_repeat_of_a_folded_segment_is_late_with_and_without_a_restart() {
    let mut plan = plan_of_views(usize::MAX);
    for model in &mut plan.models {
        (model.segmenting.max, model.segmenting.other) = (1, true);
    }
    let observe = |engine: &mut Engine, offset: i64, segment: &str, id: &str, ms: i64| {
        let event = Event {
            model: "scores",
            version: "1",
            segment,
            id: id.as_bytes(),
            time_ms: BEGIN_MS + ms,
            outcome: Some(Outcome::Binary(true)),
            ..EVENT
        };
        engine.observe(origin(0, 0, offset), &event)
    };
    // The other model never has an event, so that ids are remembered for ever.
    let mut engine = Engine::new(plan.clone());
    engine.assign((0, 0).into());
    let (mut disk, mut offset) = (Disk::default(), 0);
    let mut next = || {
        offset += 1;
        offset
    };
    for (segment, id, ms) in [("k=a", "a", 0), ("k=b", "b", 0), ("k=a", "c", 30_000)] {
        let end = observe(&mut engine, next(), segment, id, ms);
        assert_eq!(end, Disposition::Observed);
    }
    for _ in 0..2 {
        for (segment, id) in [("k=a", "a"), ("k=b", "b")] {
            let end = observe(&mut engine, next(), segment, id, 0);
            assert_eq!(end, Disposition::Late, "{segment}");
        }
        disk.append(engine.take_journals());
        let snapshot = engine.snapshot();
        let segments = disk.segments(&snapshot);
        engine = restore_joined(plan.clone(), snapshot, &segments);
    }
}

#[test]
fn another_prediction_under_a_known_id_is_a_conflict_and_none_without_id_is_a_repeat() {
    let mut engine = engine(usize::MAX);
    let mut observe = |offset: i64, id: &str, score: f64, outcome: bool, ms: i64| {
        let event = Event {
            model: "scores",
            version: "1",
            id: id.as_bytes(),
            time_ms: BEGIN_MS + ms,
            prediction: Prediction::Score(score),
            outcome: Some(Outcome::Binary(outcome)),
            ..EVENT
        };
        let origin = origin(0, 0, offset);
        engine.observe(origin, &event)
    };
    assert_eq!(observe(0, "a", 0.25, true, 0), Disposition::Observed);
    assert_eq!(observe(1, "a", 0.25, true, 0), Disposition::Duplicate);
    assert_eq!(observe(2, "a", 0.25, false, 0), Disposition::Conflict);
    assert_eq!(
        observe(3, "a", 0.75, true, HORIZON_MS),
        Disposition::Conflict
    );
    assert_eq!(
        observe(4, "a", 0.25, true, HORIZON_MS + 1),
        Disposition::Observed
    );
    assert_eq!(observe(5, "", 0.25, true, 0), Disposition::Observed);
    assert_eq!(observe(6, "", 0.25, true, 0), Disposition::Observed);
    // A record that was refused or rejected was not counted, and may come again.
    assert!(matches!(
        observe(7, "b", 1.5, true, 0),
        Disposition::Rejected(_)
    ));
    assert_eq!(observe(8, "b", 0.5, true, 0), Disposition::Observed);
}
