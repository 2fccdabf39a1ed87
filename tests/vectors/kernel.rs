//! The kernel view live: what a window says is what the events of its sample say offline, bit for
//! bit, in whatever order and over whatever partitions they came and through whatever restarts; its
//! tests keep their levels; what is capped or cannot be kept is said.

use crate::support::bars::Bar;
use crate::support::golden::published;
use crate::support::random::{shuffle, vector};
use crate::support::records::EVENT;
use std::sync::Arc;
use trueline::collect::{Disposition, Event, Origin, rank};
use trueline::judge::{
    JudgeOptions, ModelPlan, Plan, Step, StreamReport, Undecided, Verdict, WindowReport,
};
use trueline::monitor::{Engine, RecordSink};
use trueline::report::record::Record;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::kernel::conditional::draw;
use trueline::stats::kernel::features::Features;
use trueline::stats::kernel::window::{BLOCKS, KernelOptions};
use trueline::stats::kernel::{Blocks, Kernel, Options, Vectors, evaluate};
use trueline::stats::rng::Rng;
use trueline::stats::tolerance::Tolerance;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const START_MS: i64 = 1_760_000_040_000;
/// Ten minutes in panes of a minute.
const SPAN_MS: i64 = 600_000;
const PARTITIONS: i32 = 3;

/// A sample smaller than the windows, and features.
const SMALL: KernelOptions = KernelOptions {
    sample: 300,
    nu: Some(0.4),
    features: 8,
    seed: 11,
};

fn plan(classes: usize, keeping: KernelOptions) -> Plan {
    Plan {
        models: vec![ModelPlan {
            name: "*".into(),
            views: vec![View::TopLabel, View::Kernel],
            classes: (0..classes).map(|k| format!("class {k}")).collect(),
            ladder: Ladder::new(vec![WindowSpec::time("6m", 360_000)], SPAN_MS).unwrap(),
            grid: Grid::new(Axis::Linear, 8),
            judge: JudgeOptions {
                min_events: 50,
                kernel: keeping,
                ..JudgeOptions::plain()
            },
            segmenting: Default::default(),
        }],
        ..Plan::default()
    }
}

#[derive(Clone)]
struct Row {
    id: String,
    time_ms: i64,
    p: Vec<f64>,
    y: u32,
}

/// Calibrated events of some classes, `pushed` of the outcomes class 0 whatever was said.
fn rows(classes: usize, n: usize, pushed: f64, seed: u64) -> Vec<Row> {
    let mut rng = Rng::new(seed);
    let mut one = |i: usize| {
        let p = vector(&mut rng, classes);
        let y = match rng.uniform() < pushed {
            true => 0,
            false => draw(&p, rng.uniform()),
        };
        Row {
            id: format!("request-{seed}-{i}"),
            time_ms: START_MS + (i as i64 * SPAN_MS) / n as i64,
            p,
            y,
        }
    };
    (0..n).map(&mut one).collect()
}

fn origin(partition: i32, offset: usize) -> Origin {
    Origin {
        source: 0,
        partition,
        offset: offset as i64,
    }
}

fn event<'a>(version: &'a str, id: &'a str, row: &'a Row) -> Event<'a> {
    Event {
        model: "animals",
        version,
        id: id.as_bytes(),
        time_ms: row.time_ms,
        arrival_ms: Some(row.time_ms),
        prediction: Prediction::Vector(&row.p),
        outcome: Some(Outcome::Class(row.y)),
        ..EVENT
    }
}

/// All rows in the order of time, in one partition.
fn feed(plan: Plan, rows: &[Row]) -> Engine {
    let mut engine = Engine::new(plan);
    for (i, row) in rows.iter().enumerate() {
        engine.observe(origin(0, i), &event("7", &row.id, row));
    }
    engine
}

fn report(engine: &Engine, view: View) -> StreamReport {
    let mut all = engine.reports().filter(|r| r.id.view == view);
    all.next().unwrap().as_ref().clone()
}

fn window(engine: &Engine) -> WindowReport {
    report(engine, View::Kernel).windows[0].clone()
}

fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    shuffle(&mut order, &mut Rng::new(seed));
    order
}

#[test]
fn a_kernel_window_equals_its_sample_evaluated_offline() {
    let rows = rows(4, 3000, 0.3, 5);
    let plan = || plan(4, SMALL);
    let mut whole = feed(plan(), &rows);
    whole.finish();
    let mut apart = Engine::new(plan());
    let order = shuffled(rows.len(), 8);
    let take = |engine: &mut Engine, at: usize| {
        let row = &rows[order[at]];
        let place = origin(at as i32 % PARTITIONS, at / PARTITIONS as usize);
        engine.observe(place, &event("7", &row.id, row))
    };
    for at in 0..order.len() {
        take(&mut apart, at);
        if at % 700 == 699 {
            apart = Engine::restore(plan(), apart.snapshot()).unwrap();
            // What was read before the snapshot comes again.
            for again in at - 50..=at {
                assert_eq!(take(&mut apart, again), Disposition::Replayed);
            }
        }
    }
    apart.finish();
    let a = window(&whole);
    assert_eq!(a, window(&apart));
    // The events of lowest rank, in that order, through the offline form.
    let inside = |r: &&Row| (a.start_ms..a.end_ms).contains(&r.time_ms);
    let mut ranked: Vec<(u64, &Row)> = rows
        .iter()
        .filter(inside)
        .map(|r| (rank(11, origin(9, 9), 0, &event("", &r.id, r)), r))
        .collect();
    ranked.sort_by_key(|r| r.0);
    let mut sample = Vectors::new(4);
    for (_, r) in ranked.iter().take(300) {
        sample.push(&r.p, r.y).unwrap();
    }
    let options = Options {
        nu: Some(0.4),
        quadratic_max: usize::MAX,
        seed: 11,
        ..Options::default()
    };
    let e = a.kernel().cloned().unwrap();
    assert_eq!(Some(&e.sample), evaluate(&sample, &options).as_ref());
    // Features are of all events, and decide.
    let mut features = Features::new(4, 0.4, 8, 11);
    ranked.iter().for_each(|(_, r)| features.observe(&r.p, r.y));
    let f = e.features.as_ref().unwrap();
    assert_eq!(Some((f.biased, f.unbiased)), features.estimates());
    assert_eq!((a.n, e.n), (ranked.len() as u64, ranked.len() as u64));
    // Linear and block sums add up over panes of a minute, each by rank.
    let mut want = [Blocks::default(); 2];
    for start_ms in (a.start_ms..a.end_ms).step_by(60_000) {
        let mine = |r: &&(u64, &Row)| (start_ms..start_ms + 60_000).contains(&r.1.time_ms);
        let mut pane = Vectors::new(4);
        for (_, r) in ranked.iter().filter(mine).take(300) {
            pane.push(&r.p, r.y).unwrap();
        }
        for (want, size) in want.iter_mut().zip(BLOCKS) {
            want.merge(&Blocks::of(&pane, Kernel::TotalVariation { nu: 0.4 }, size));
        }
    }
    for (got, want) in e.blocks.iter().zip(&want) {
        assert_eq!(got.count as f64, want.count);
        assert!((got.estimate - want.estimate().unwrap()).abs() < 1e-8);
    }
    assert_eq!(e.blocks.len(), 2);
    assert!(e.by_features && e.p_value == f.p_value);
    assert_eq!(a.verdict, Verdict::Miscalibrated);
    // After a restart the report is what it was, from the panes.
    let back = Engine::restore(plan(), whole.snapshot()).unwrap();
    assert_eq!(window(&back), a);
}

#[test]
fn every_slide_is_what_its_own_events_say_from_scratch() {
    let rows = rows(3, 3000, 0.1, 15);
    let keeping = KernelOptions {
        sample: 100,
        ..KernelOptions::default()
    };
    let mut tight = plan(3, keeping);
    tight.models[0].ladder = Ladder::new(vec![WindowSpec::time("6m", 360_000)], 0).unwrap();
    let mut engine = Engine::new(tight);
    let (mut ends, mut last) = (0, 0);
    for (i, row) in rows.iter().enumerate() {
        engine.observe(origin(0, i), &event("7", &row.id, row));
        let Some(seen) = engine.reports().find(|r| r.id.view == View::Kernel) else {
            continue;
        };
        let w = &seen.windows[0];
        let Some(e) = w.kernel().filter(|_| w.end_ms > last) else {
            continue;
        };
        (last, ends) = (w.end_ms, ends + 1);
        let inside = |r: &&Row| (w.start_ms..w.end_ms).contains(&r.time_ms);
        let mut ranked: Vec<(u64, &Row)> = rows[..=i]
            .iter()
            .filter(inside)
            .map(|r| (rank(0, origin(0, 0), 0, &event("", &r.id, r)), r))
            .collect();
        ranked.sort_by_key(|r| r.0);
        let mut sample = Vectors::new(3);
        for (_, r) in ranked.iter().take(100) {
            sample.push(&r.p, r.y).unwrap();
        }
        let options = Options {
            quadratic_max: usize::MAX,
            ..Options::default()
        };
        let scratch = evaluate(&sample, &options);
        assert_eq!(
            (Some(&e.sample), w.n),
            (scratch.as_ref(), ranked.len() as u64)
        );
    }
    assert_eq!(ends, 9);
}

#[test]
fn events_without_an_id_are_known_by_their_place_and_row() {
    let rows = rows(3, 900, 0.0, 4);
    let feed = |each: usize| {
        let mut engine = Engine::new(plan(
            3,
            KernelOptions {
                sample: 100,
                ..KernelOptions::default()
            },
        ));
        for (i, row) in rows.iter().enumerate() {
            let place = origin(0, i / each);
            if i % each > 0 {
                engine.next_row(place);
            }
            assert_eq!(
                engine.observe(place, &event("7", "", row)),
                Disposition::Observed
            );
        }
        engine.finish();
        window(&engine)
    };
    // Three rows a record: again the same, and another sample than of one a record.
    assert_eq!(feed(3), feed(3));
    let (single, triple) = (
        feed(1).kernel().cloned().unwrap(),
        feed(3).kernel().cloned().unwrap(),
    );
    assert_eq!((single.n, single.sample.n), (triple.n, triple.sample.n));
    assert!(single.sample.biased != triple.sample.biased);
    // The rows of one record are not of one fate: 100 of 300 records, whole, would be 33.
    let ranks: Vec<u64> = (0..3)
        .map(|row| rank(0, origin(0, 5), row, &event("7", "", &rows[0])))
        .collect();
    assert!(ranks[0] != ranks[1] && ranks[1] != ranks[2]);
    // And neither what was said nor what happened has a say.
    let of = |row: &Row| rank(0, origin(0, 5), 0, &event("7", "", row));
    assert_eq!(of(&rows[0]), of(&rows[1]));
}

#[test]
fn live_tests_keep_their_level_and_find_a_class_that_is_pushed() {
    let run = |sets: u64, pushed: f64, seed: u64, keeping: KernelOptions| {
        let mut hits = 0;
        for set in 0..sets {
            let mut engine = feed(plan(3, keeping), &rows(3, 1000, pushed, seed + set));
            engine.finish();
            hits += u64::from(window(&engine).kernel().is_some_and(|e| e.reject));
        }
        hits
    };
    let plain = KernelOptions {
        sample: 150,
        ..KernelOptions::default()
    };
    let waves = KernelOptions {
        sample: 100,
        ..SMALL
    };
    let level = Bar::new(400, 0.03..=0.055, &[0.15, 0.001]);
    let power = Bar::new(60, 0.98..=1.0, &[0.75]);
    let mut failures = Vec::new();
    for (name, keeping) in [("sample", plain), ("features", waves)] {
        let found = run(400, 0.0, 20_000, keeping);
        level.check(&format!("{name}, level"), found, &mut failures);
        let found = run(60, 0.3, 30_000, keeping);
        power.check(&format!("{name}, power"), found, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_tolerance_is_held_against_a_lower_end_of_the_error() {
    let verdict = |tolerance: f64| {
        let mut plan = plan(3, SMALL);
        plan.models[0].judge.evaluation.tolerance = Tolerance::absolute(tolerance);
        let mut engine = feed(plan, &rows(3, 20_000, 0.6, 3));
        engine.finish();
        window(&engine)
    };
    let (none, much) = (verdict(0.02), verdict(0.9));
    let e = none.kernel().unwrap();
    assert!(e.reject && e.lower > 0.02 && e.lower < e.kce, "{e:?}");
    assert_eq!(none.verdict, Verdict::Miscalibrated);
    // An upper end of KCE bounds no error from above.
    let inconclusive = Verdict::Undecided(Undecided::Inconclusive);
    assert_eq!(much.verdict, inconclusive);
}

#[test]
fn an_alert_is_recomputed_from_its_record_to_the_bit() {
    let mut engine = feed(plan(4, SMALL), &rows(4, 3000, 0.4, 12));
    let changes = engine.finish();
    let mine = |c: &&_| matches!(c, trueline::judge::Change { step: Step::Stream { .. }, stream, .. } if stream.view == View::Kernel);
    let change = changes.iter().find(mine).unwrap();
    assert!(change.facts.is_some());
    let text = serde_json::to_string(&Record::of(change, "", Vec::new()).unwrap()).unwrap();
    let record = Record::read(&text).unwrap();
    let checked = record.recompute();
    assert!(checked.different.is_empty(), "{checked:?}");
    assert!(checked.equal.iter().any(|p| p.contains("evaluation")));
    assert!(record.words().contains("KCE") && record.sentence.contains("KCE"));
    let broken = text.replacen("\"p_value\":", "\"p_value\":1", 1);
    assert!(
        !Record::read(&broken)
            .unwrap()
            .recompute()
            .different
            .is_empty()
    );
}

#[test]
fn versions_beyond_the_cap_are_undecided_and_counted() {
    let mut one = plan(3, KernelOptions::default());
    one.caps.vector_versions_max = 1;
    one.models[0].judge.evaluation.tolerance = Tolerance::absolute(0.5);
    let mut engine = Engine::new(one.clone());
    for (i, row) in rows(3, 2000, 0.0, 10).iter().enumerate() {
        engine.observe(origin(0, i), &event(["a", "b"][i % 2], &row.id, row));
    }
    engine.finish();
    let of = |engine: &Engine, version: &str| {
        let mine = |r: &&Arc<StreamReport>| r.id.view == View::Kernel && r.id.version == version;
        engine.reports().find(mine).unwrap().windows[0].clone()
    };
    let inconclusive = Verdict::Undecided(Undecided::Inconclusive);
    assert_eq!(of(&engine, "a").verdict, inconclusive);
    let capacity = Verdict::Undecided(Undecided::Capacity);
    assert_eq!(of(&engine, "b").verdict, capacity);
    assert_eq!(engine.counters().total().no_cell, 1000);
    let back = Engine::restore(one, engine.snapshot()).unwrap();
    assert_eq!(of(&back, "a"), of(&engine, "a"));
    assert_eq!(of(&back, "b").verdict, capacity);
}

#[test]
fn a_snapshot_of_another_sample_is_dropped_with_the_reason() {
    let mut engine = feed(plan(3, SMALL), &rows(3, 2000, 0.0, 13));
    engine.finish();
    let other = KernelOptions { seed: 12, ..SMALL };
    let back = Engine::restore(plan(3, other), engine.snapshot()).unwrap();
    assert!(back.reports().all(|r| r.id.view != View::Kernel));
    let dropped = back.dropped();
    assert!(
        dropped.iter().any(|d| d.contains("vector views")),
        "{dropped:?}"
    );
}

#[test]
fn published_networks_in_a_window_say_what_they_say_offline() {
    let name = "published_networks_in_a_window_say_what_they_say_offline";
    let Some(folder) = published(name, "cifar10_multiclass") else {
        return;
    };
    let labels = std::fs::read_to_string(folder.join("labels.csv")).unwrap();
    let table = std::fs::read_to_string(folder.join("resnet18.csv")).unwrap();
    let row = |(i, (row, label)): (usize, (&str, &str))| Row {
        id: i.to_string(),
        time_ms: START_MS + i as i64 * 30,
        p: row.split(',').map(|p| p.parse().unwrap()).collect(),
        y: label.parse::<f64>().unwrap() as u32 - 1,
    };
    let lines = table.lines().zip(labels.lines()).enumerate();
    let rows: Vec<Row> = lines.map(row).take(4000).collect();
    // A sample that holds every event, so that both see the same.
    let keeping = KernelOptions {
        sample: 4000,
        ..KernelOptions::default()
    };
    let mut engine = feed(plan(10, keeping), &rows);
    engine.finish();
    let live = window(&engine).kernel().cloned().unwrap();
    let mut sample = Vectors::new(10);
    rows.iter().for_each(|r| sample.push(&r.p, r.y).unwrap());
    sample.normalise();
    let whole = evaluate(&sample, &Options::default()).unwrap();
    assert_eq!((live.n, live.sample.n), (4000, 4000));
    assert_eq!(live.sample.nu, whole.nu);
    let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{a} {b}");
    near(live.sample.biased, whole.biased);
    near(live.sample.unbiased.unwrap(), whole.unbiased.unwrap());
    let p = |e: &trueline::stats::kernel::Evaluation| e.biased_p.conditional.unwrap();
    assert!((p(&live.sample) / p(&whole) - 1.0).abs() < 1e-6);
}

#[test]
fn the_bound_covers_what_the_engine_holds() {
    let rows = rows(10, 20_000, 0.0, 77);
    let keeping = KernelOptions {
        sample: 400,
        ..SMALL
    };
    let mut engine = feed(plan(10, keeping), &rows);
    let open = engine.bytes();
    engine.finish();
    // Six slides of the window and eleven open panes, at the cost of a full one each.
    let pane = keeping.pane_bytes(10) + 4096;
    let scalar = 2 << 20;
    assert!(open < 12 * pane + scalar, "{open} {pane}");
    assert!(engine.bytes() < 19 * pane + scalar);
}
