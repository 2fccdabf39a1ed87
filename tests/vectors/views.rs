//! Vector views live: what windows say of `top_k` and `full` is what the same events say offline, in whatever order they
//! came and through whatever restarts; segments go together; what is capped is said; tests keep their levels.

use crate::support::golden::published;
use std::path::Path;
use trueline::collect::{Disposition, Event, Origin};
use trueline::config::Config;
use trueline::config::bounds::{COORDINATE_BYTES, MemoryBound};
use trueline::config::value::Outside;
use trueline::judge::{
    Caps, JudgeOptions, ModelPlan, Plan, Step, StreamReport, Undecided, Verdict, WindowReport,
};
use trueline::monitor::Engine;
use trueline::report::record::Record;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::kernel::Vectors;
use trueline::stats::kernel::conditional::draw;
use trueline::stats::multiclass::sums::{Shape, VectorSums};
use trueline::stats::multiclass::{self, Events, VectorLevel, VectorView, tcal};
use trueline::stats::rng::Rng;
use trueline::stats::tolerance::Tolerance;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const START_MS: i64 = 1_760_000_040_000;
/// Ten minutes in panes of a minute.
const SPAN_MS: i64 = 600_000;
const VIEWS: [(View, VectorView); 2] = [
    (View::TopK(2), VectorView::TopK(2)),
    (View::Full, VectorView::Full),
];

fn plan_of(classes: usize, views: &[View], windows: Vec<WindowSpec>, lateness_ms: i64) -> Plan {
    Plan {
        models: vec![ModelPlan {
            name: "*".into(),
            views: views.to_vec(),
            classes: (0..classes).map(|k| format!("class {k}")).collect(),
            ladder: Ladder::new(windows, lateness_ms).unwrap(),
            grid: Grid::new(Axis::Linear, 8),
            judge: JudgeOptions {
                min_events: 50,
                ..JudgeOptions::default()
            },
            segmenting: Default::default(),
        }],
        caps: Caps::default(),
        joins: Vec::new(),
        ids: Vec::new(),
    }
}

fn plan() -> Plan {
    let windows = vec![WindowSpec::time("6m", 360_000), WindowSpec::last(500)];
    plan_of(
        4,
        &[View::TopLabel, View::TopK(2), View::Full],
        windows,
        SPAN_MS,
    )
}

struct Row {
    time_ms: i64,
    segment: &'static str,
    p: Vec<f64>,
    y: u32,
}

/// Calibrated events of some classes, `pushed` of the outcomes class 0 whatever was said.
fn rows_of(classes: usize, n: usize, pushed: f64, seed: u64) -> Vec<Row> {
    let mut rng = Rng::new(seed);
    let mut one = |i: usize| {
        let mut p: Vec<f64> = (0..classes).map(|_| -(1.0 - rng.uniform()).ln()).collect();
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= sum);
        let y = match rng.uniform() < pushed {
            true => 0,
            false => draw(&p, rng.uniform()),
        };
        Row {
            time_ms: START_MS + (i as i64 * SPAN_MS) / n as i64,
            segment: ["country=de", "country=fr", "country=fr"][i % 3],
            p,
            y,
        }
    };
    (0..n).map(&mut one).collect()
}

fn rows(n: usize, pushed: f64, seed: u64) -> Vec<Row> {
    rows_of(4, n, pushed, seed)
}

fn take_of(engine: &mut Engine, version: &str, offset: usize, row: &Row) -> Disposition {
    let event = Event {
        model: "animals",
        version,
        segment: row.segment,
        id: b"",
        time_ms: row.time_ms,
        arrival_ms: Some(row.time_ms),
        prediction: Prediction::Vector(&row.p),
        outcome: Some(Outcome::Class(row.y)),
        weight: None,
        cluster: None,
    };
    let origin = Origin {
        source: 0,
        partition: 0,
        offset: offset as i64,
    };
    engine.observe(origin, &event)
}

fn take(engine: &mut Engine, offset: usize, row: &Row) -> Disposition {
    take_of(engine, "7", offset, row)
}

fn feed(plan: Plan, rows: &[Row]) -> Engine {
    let mut engine = Engine::new(plan);
    for (i, row) in rows.iter().enumerate() {
        take(&mut engine, i, row);
    }
    engine
}

fn report(engine: &Engine, view: View) -> StreamReport {
    let mut all = engine.reports().filter(|r| r.id.view == view);
    all.next().unwrap().clone()
}

/// What is said of the events from `from_ms` on, offline.
fn offline(rows: &[Row], from_ms: i64, view: VectorView) -> multiclass::Evaluation {
    offline_between(rows, (from_ms, i64::MAX), view)
}

/// What is said of the events between two moments, offline.
fn offline_between(
    rows: &[Row],
    (from_ms, to_ms): (i64, i64),
    view: VectorView,
) -> multiclass::Evaluation {
    let shape = Shape {
        view,
        classes: 4,
        cells_max: 4096,
        weighted: false,
    };
    let mut sums = VectorSums::new(shape).unwrap();
    for row in rows
        .iter()
        .filter(|r| (from_ms..to_ms).contains(&r.time_ms))
    {
        assert!(sums.observe(&row.p, 1.0, row.y, None));
    }
    multiclass::evaluate_sums(&sums, 0.05, 0.9).unwrap()
}

#[test]
fn a_vector_window_equals_its_events_evaluated_offline() {
    let rows = rows(3000, 0.4, 5);
    let mut whole = feed(plan(), &rows);
    whole.finish();
    let mut shuffled = Engine::new(plan());
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let mut rng = Rng::new(8);
    for i in 0..order.len() {
        let j = i + (rng.uniform() * (order.len() - i) as f64) as usize;
        order.swap(i, j);
    }
    for (offset, &i) in order.iter().enumerate() {
        take(&mut shuffled, offset, &rows[i]);
        if offset % 700 == 699 {
            shuffled = Engine::restore(plan(), shuffled.snapshot()).unwrap();
            // What was read before the snapshot comes again.
            for again in offset - 50..=offset {
                let end = take(&mut shuffled, again, &rows[order[again]]);
                assert_eq!(end, Disposition::Replayed);
            }
        }
    }
    shuffled.finish();
    for (view, vector) in VIEWS {
        let (a, b) = (report(&whole, view), report(&shuffled, view));
        // A window by count has no vector view; segments are together.
        assert_eq!((a.windows.len(), a.id.segment.as_str()), (2, "*"));
        let (a, b) = (&a.windows[0], &b.windows[0]);
        assert_eq!(a, b);
        let want = offline(&rows, a.start_ms, vector);
        assert_eq!(a.cells(), Some(&want));
        assert_eq!((a.n, a.verdict), (want.n as u64, Verdict::Miscalibrated));
        // And floats of the events themselves agree as far as sums of 2⁻³² can.
        let mut sample = Vectors::new(4);
        for r in rows.iter().filter(|r| r.time_ms >= a.start_ms) {
            sample.push(&r.p, r.y).unwrap();
        }
        let slices = Some(want.interval.slices);
        let exact = multiclass::evaluate(&sample, vector, 0.05, 0.9, slices).unwrap();
        let off = want.interval.estimate_squared - exact.interval.estimate_squared;
        assert!(off.abs() < 1e-7, "{off}");
        // After a restart the report is what it was, from the panes.
        let back = Engine::restore(plan(), whole.snapshot()).unwrap();
        assert_eq!(&report(&back, view).windows[0], a);
    }
}

#[test]
fn every_slide_is_what_its_own_events_say_from_scratch() {
    let rows = rows(3000, 0.1, 15);
    let tight = plan_of(
        4,
        &[View::TopLabel, View::Full],
        vec![WindowSpec::time("6m", 360_000)],
        0,
    );
    let mut engine = Engine::new(tight);
    let mut ends = 0;
    let mut last = 0;
    for (i, row) in rows.iter().enumerate() {
        take(&mut engine, i, row);
        let Some(seen) = engine.reports().find(|r| r.id.view == View::Full) else {
            continue;
        };
        let w = &seen.windows[0];
        let Some(vector) = w.cells().filter(|_| w.end_ms > last) else {
            continue;
        };
        (last, ends) = (w.end_ms, ends + 1);
        let mut sums = VectorSums::new(Shape {
            view: VectorView::Full,
            classes: 4,
            cells_max: 4096,
            weighted: false,
        })
        .unwrap();
        let inside = rows[..=i]
            .iter()
            .filter(|r| (w.start_ms..w.end_ms).contains(&r.time_ms));
        inside.for_each(|r| assert!(sums.observe(&r.p, 1.0, r.y, None)));
        let scratch = multiclass::evaluate_sums(&sums, 0.05, 0.9).unwrap();
        assert_eq!((vector, w.n), (&scratch, sums.n()));
    }
    assert_eq!(ends, 9);
}

#[test]
fn windows_move_on_and_calibrated_ones_are_called_so_until_data_stop() {
    let rows = rows(3000, 0.0, 6);
    let mut plan_tight = plan();
    plan_tight.models[0].judge.evaluation.tolerance = Tolerance::absolute(0.5);
    plan_tight.models[0].ladder = Ladder::new(vec![WindowSpec::time("6m", 360_000)], 0).unwrap();
    let mut tight = feed(plan_tight, &rows);
    // With ten minutes of lateness nothing is sealed yet; without, all but the last pane is.
    let wide = feed(plan(), &rows);
    let of_vectors = wide.reports().filter(|r| r.id.view.is_vector());
    assert!(of_vectors.map(|r| r.windows[0].n).all(|n| n == 0));
    let seen = report(&tight, View::Full);
    let w = &seen.windows[0];
    assert_eq!(w.verdict, Verdict::Calibrated);
    assert_eq!(w.end_ms - w.start_ms, 360_000);
    let inside = |r: &&Row| (w.start_ms..w.end_ms).contains(&r.time_ms);
    assert_eq!(w.n, rows.iter().filter(inside).count() as u64);
    // Silence by the clock withdraws the values.
    tight.tick(START_MS + SPAN_MS);
    let changes = tight.tick(START_MS + SPAN_MS + 2 * 3_600_000);
    assert!(changes.iter().any(|c| c.stream.view == View::Full));
    assert!(report(&tight, View::Full).windows[0].cells().is_none());
    // A week of it lets no stream go: the clock says nothing about events that are still to be read.
    let streams = tight.reports().count();
    tight.tick(START_MS + SPAN_MS + 8 * 86_400_000);
    assert_eq!(tight.reports().count(), streams);
}

#[test]
fn a_wide_window_of_vectors_is_judged_while_its_first_slide_fills() {
    let windows = vec![
        WindowSpec::time("6m", 360_000),
        WindowSpec::time("24h", 86_400_000),
    ];
    let plan = plan_of(4, &[View::TopLabel, View::TopK(2), View::Full], windows, 0);
    let rows = rows(3000, 0.4, 5);
    let engine = feed(plan.clone(), &rows);
    let restored = Engine::restore(plan, engine.snapshot()).unwrap();
    let scores = report(&engine, View::TopLabel).windows[1].clone();
    for (view, vector) in VIEWS {
        let wide = report(&engine, view).windows[1].clone();
        // The first slide of four hours ends three hours after the last event.
        assert!(wide.end_ms < START_MS + SPAN_MS && wide.end_ms % 60_000 == 0);
        assert_eq!(wide.end_ms, scores.end_ms);
        assert_eq!((wide.since_ms, wide.n), (START_MS, 2700));
        let want = offline_between(&rows, (START_MS, wide.end_ms), vector);
        assert_eq!(wide.cells(), Some(&want));
        assert_eq!(wide.verdict, Verdict::Miscalibrated);
        assert_eq!(report(&restored, view).windows[1], wide);
    }
}

#[test]
fn a_window_by_count_of_vectors_says_what_its_newest_panes_say_offline() {
    let mut plan = plan();
    plan.models[0].ladder.lateness_ms = 0;
    let rows = rows(3000, 0.4, 5);
    let mut engine = Engine::new(plan.clone());
    let mut judged = 0;
    for (offset, row) in rows.iter().enumerate() {
        take(&mut engine, offset, row);
        if offset % 500 == 499 {
            engine = Engine::restore(plan.clone(), engine.snapshot()).unwrap();
        }
        for (view, vector) in VIEWS {
            let last = report(&engine, view).windows[1].clone();
            assert_eq!(last.window, "last:500");
            // Panes of 300 events: the newest two hold 500.
            let n = if judged < 2 { last.n } else { 600 };
            if last.end_ms <= START_MS + 60_000 * judged || last.n != n {
                continue;
            }
            if view == View::Full {
                judged = (last.end_ms - START_MS) / 60_000;
            }
            let want = offline_between(&rows, (last.since_ms, last.end_ms), vector);
            assert_eq!((last.cells(), last.n), (Some(&want), want.n as u64));
        }
    }
    assert_eq!(judged, 9);
}

#[test]
fn events_that_find_no_cell_are_counted_and_leave_their_windows_without_a_verdict() {
    let rows = rows(3000, 0.0, 9);
    let mut capped = plan();
    capped.caps.vector_cells_max = 3;
    let mut engine = feed(capped, &rows);
    engine.finish();
    let capacity = Verdict::Undecided(Undecided::Capacity);
    let kept: u64 = VIEWS
        .iter()
        .map(|(view, _)| {
            let w = report(&engine, *view).windows[0].clone();
            assert_eq!((w.verdict, w.cells().is_none()), (capacity, true));
            w.n
        })
        .sum();
    let refused = engine.counters().total().no_cell;
    assert!(
        refused > 0 && kept > 0 && kept + refused <= 2 * 3000,
        "{refused}"
    );
    // Scores are not touched.
    let scalar = report(&engine, View::TopLabel).windows[0].clone();
    assert!(scalar.verdict.is_evaluated());
    assert_eq!(engine.counters().total().observed, 3000);
}

#[test]
fn versions_beyond_the_cap_are_undecided_and_come_to_cells_when_others_go() {
    let mut two = plan();
    two.caps.vector_versions_max = 1;
    two.models[0].judge.evaluation.tolerance = Tolerance::absolute(0.5);
    two.models[0].ladder = Ladder::new(vec![WindowSpec::time("6m", 360_000)], 0).unwrap();
    let mut engine = Engine::new(two.clone());
    let all = rows(4000, 0.0, 10);
    for (i, row) in all.iter().enumerate() {
        take_of(&mut engine, ["a", "b"][i % 2], i, row);
    }
    let of = |engine: &Engine, version: &str| {
        let mine = |r: &&StreamReport| r.id.view == View::Full && r.id.version == version;
        engine.reports().find(mine).unwrap().windows[0].clone()
    };
    assert_eq!(of(&engine, "a").verdict, Verdict::Calibrated);
    let capacity = Verdict::Undecided(Undecided::Capacity);
    assert_eq!(of(&engine, "b").verdict, capacity);
    assert_eq!(engine.counters().total().no_cell, 2 * 2000);
    // Of both only "b" goes on for a week, through a restart.
    let week = 7 * 86_400_000;
    engine.tick(START_MS);
    let mut engine = Engine::restore(two, engine.snapshot()).unwrap();
    for (i, row) in all.iter().take(10).enumerate() {
        let later = Row {
            time_ms: row.time_ms + week + SPAN_MS * 3 / 2,
            p: row.p.clone(),
            ..*row
        };
        take_of(&mut engine, "b", 4000 + i, &later);
    }
    engine.tick(START_MS + week);
    for (i, row) in all.iter().enumerate() {
        let later = Row {
            time_ms: row.time_ms + week + 2 * SPAN_MS,
            p: row.p.clone(),
            ..*row
        };
        take_of(&mut engine, "b", 5000 + i, &later);
    }
    assert!(engine.reports().all(|r| r.id.version == "b"));
    assert_eq!(of(&engine, "b").verdict, Verdict::Calibrated);
}

#[test]
fn a_window_with_more_late_events_than_events_in_time_has_no_verdict() {
    let mut tight = plan();
    tight.models[0].ladder = Ladder::new(vec![WindowSpec::time("6m", 360_000)], 0).unwrap();
    let mut engine = Engine::new(tight);
    let rows = rows(600, 0.0, 11);
    let mut offset = 0;
    for row in &rows[480..] {
        take(&mut engine, offset, row);
        offset += 1;
    }
    for row in &rows[..240] {
        assert_eq!(take(&mut engine, offset, row), Disposition::Late);
        offset += 1;
    }
    engine.finish();
    let late = Verdict::Undecided(Undecided::Late);
    let streams = engine.reports().filter(|r| r.id.view.is_vector());
    let verdicts: Vec<Verdict> = streams.map(|r| r.windows[0].verdict).collect();
    assert_eq!(verdicts, [late, late]);
}

#[test]
fn an_alert_of_a_vector_view_is_recomputed_from_its_record_to_the_bit() {
    let mut tight = plan();
    tight.models[0].ladder = Ladder::new(vec![WindowSpec::time("6m", 360_000)], 0).unwrap();
    let mut engine = feed(tight, &rows(3000, 0.3, 12));
    let changes = engine.finish();
    let alerts = changes
        .iter()
        .filter(|c| matches!(c.step, Step::Stream { .. }) && c.stream.view.is_vector());
    let mut seen = 0;
    for change in alerts {
        let text = serde_json::to_string(&Record::of(change, "", Vec::new()).unwrap()).unwrap();
        let record = Record::read(&text).unwrap();
        let checked = record.recompute();
        assert!(checked.different.is_empty(), "{checked:?}");
        assert!(checked.equal.iter().any(|p| p.contains("evaluation")));
        assert!(record.words().contains("l2-ECE"));
        // Another count of one cell is another p-value.
        let broken = text.replacen("\"p_value\":", "\"p_value\":1", 1);
        let broken = Record::read(&broken).unwrap().recompute();
        assert!(!broken.different.is_empty());
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn live_tests_keep_their_level_and_find_a_class_that_is_pushed() {
    let spec = || vec![WindowSpec::time("10m", SPAN_MS)];
    let plan = || {
        plan_of(
            3,
            &[View::TopLabel, View::TopK(2), View::Full],
            spec(),
            SPAN_MS,
        )
    };
    let run = |sets: u64, n: usize, pushed: f64, seed: u64| {
        let mut rejected = [0u32; 2];
        for set in 0..sets {
            let mut engine = feed(plan(), &rows_of(3, n, pushed, seed + set));
            engine.finish();
            for (hits, (view, _)) in rejected.iter_mut().zip(VIEWS) {
                let w = report(&engine, view).windows[0].clone();
                *hits += u32::from(w.numbers.is_some_and(|e| e.reject()));
            }
        }
        rejected.map(|hits| f64::from(hits) / sets as f64)
    };
    // Four binomial deviations of 400 sets around 0.05, both sides.
    let bar = 4.0 * (0.05 * 0.95 / 400.0_f64).sqrt();
    for level in run(400, 400, 0.0, 20_000) {
        println!("level {level}");
        assert!((level - 0.05).abs() < bar, "{level}");
    }
    for power in run(100, 1000, 0.3, 30_000) {
        println!("power {power}");
        assert!(power > 0.9, "{power}");
    }
}

/// How many views are tested together goes with the views, which no reload changes.
#[test]
fn a_reload_of_the_same_file_changes_nothing() {
    let mut engine = Engine::new(classes_plan());
    let before = engine.plan().clone();
    assert_eq!(before.models[0].judge.evaluation.family, 4);
    engine.reload(&classes_plan());
    assert_eq!(*engine.plan(), before);
}

fn classes_plan() -> Plan {
    let views: Vec<View> = (0..4).map(View::Class).collect();
    plan_of(4, &views, vec![WindowSpec::time("10m", SPAN_MS)], SPAN_MS)
}

fn unsegmented(rows: Vec<Row>) -> Vec<Row> {
    rows.into_iter().map(|r| Row { segment: "", ..r }).collect()
}

#[test]
fn class_views_are_adjusted_for_each_other_by_holm() {
    let mut engine = feed(classes_plan(), &unsegmented(rows(3000, 0.1, 7)));
    engine.finish();
    let named = hold_to_holm(&engine);
    // The pushed class is the one that is named.
    assert!(named[0], "{named:?}");
    // After a restart evaluations are of the panes still held, and their family with them.
    let back = Engine::restore(classes_plan(), engine.snapshot()).unwrap();
    assert!(hold_to_holm(&back)[0]);
    // Withdrawn with the values.
    engine.tick(START_MS);
    engine.tick(START_MS + 2 * 3_600_000);
    assert!(engine.reports().all(|r| r.windows[0].family.is_none()));
}

/// Holm's adjustment written out, of the p-values that the reports have; answers which classes are rejected.
fn hold_to_holm(engine: &Engine) -> Vec<bool> {
    let window = |class: u32| report(engine, View::Class(class)).windows[0].clone();
    let p = |w: &WindowReport| w.scores().map(|e| e.p_value).unwrap();
    let seen: Vec<WindowReport> = (0..4).map(window).collect();
    let mut order: Vec<usize> = (0..4).collect();
    order.sort_by(|&a, &b| p(&seen[a]).total_cmp(&p(&seen[b])));
    let mut before = 0f64;
    for (rank, &k) in order.iter().enumerate() {
        before = before.max(((4 - rank) as f64 * p(&seen[k])).min(1.0));
        let family = seen[k].family.unwrap();
        assert_eq!((family.classes, family.adjusted_p_value), (4, before));
        assert_eq!(family.reject, before <= 0.05);
        assert_eq!(family.p_value, 4.0 * p(&seen[order[0]]));
    }
    let rejects = |w: &WindowReport| w.family.unwrap().reject;
    seen.iter().map(rejects).collect()
}

#[test]
fn the_error_of_all_classes_together_keeps_its_level_where_single_tests_do_not() {
    let (mut family, mut single) = (0, 0);
    let sets = 400;
    for set in 0..sets {
        let mut engine = feed(classes_plan(), &unsegmented(rows(500, 0.0, 40_000 + set)));
        engine.finish();
        let windows: Vec<WindowReport> = engine.reports().map(|r| r.windows[0].clone()).collect();
        family += u32::from(windows.iter().any(|w| w.family.unwrap().reject));
        let rejects = |w: &WindowReport| w.scores().unwrap().reject;
        single += u32::from(windows.iter().any(rejects));
    }
    let share = |hits: u32| f64::from(hits) / sets as f64;
    println!("family {} single {}", share(family), share(single));
    let bar = 4.0 * (0.05 * 0.95 / sets as f64).sqrt();
    // Bonferroni's first step is nearly exact for four classes; one test for each rejects far more often.
    assert!(share(family) < 0.05 + bar && share(family) > 0.005);
    assert!(share(single) > 0.05 + bar);
}

/// Rows of a network on CIFAR-10 as they stand in the files.
fn network(folder: &Path, model: &str) -> Vec<Row> {
    let labels = std::fs::read_to_string(folder.join("labels.csv")).unwrap();
    let rows = std::fs::read_to_string(folder.join(format!("{model}.csv"))).unwrap();
    let row = |(i, (row, label)): (usize, (&str, &str))| Row {
        time_ms: START_MS + i as i64 * 50,
        segment: "",
        p: row.split(',').map(|p| p.parse().unwrap()).collect(),
        y: label.parse::<f64>().unwrap() as u32 - 1,
    };
    rows.lines()
        .zip(labels.lines())
        .enumerate()
        .map(row)
        .collect()
}

#[test]
fn published_networks_in_a_window_say_what_they_say_offline() {
    let name = "published_networks_in_a_window_say_what_they_say_offline";
    let Some(folder) = published(name, "cifar10_multiclass") else {
        return;
    };
    for model in ["densenet121", "resnet18"] {
        let rows = network(&folder, model);
        let views = [View::TopLabel, View::TopK(2), View::Full];
        let windows = vec![WindowSpec::time("1h", 3_600_000)];
        let mut engine = feed(plan_of(10, &views, windows, 3_600_000), &rows);
        engine.finish();
        let mut sample = Vectors::new(10);
        rows.iter().for_each(|r| sample.push(&r.p, r.y).unwrap());
        for (view, vector) in VIEWS {
            let w = report(&engine, view).windows[0].clone();
            let live = w.cells().cloned().unwrap();
            assert_eq!((w.n, live.n), (10_000, 10_000));
            let slices = Some(live.interval.slices);
            let whole = multiclass::evaluate(&sample, vector, 0.05, 0.9, slices).unwrap();
            let near = |what: &str, a: f64, b: f64, bar: f64| {
                assert!((a - b).abs() <= bar, "{model} {view} {what}: {a} {b}");
            };
            let (a, b) = (&live.interval, &whole.interval);
            near("estimate", a.estimate_squared, b.estimate_squared, 1e-6);
            near("lower", a.lower, b.lower, 1e-5);
            near("upper", a.upper, b.upper, 1e-5);
            near("l1", live.ece_l1, whole.ece_l1, 1e-6);
            // The live test has the levels whose cells are kept: the offline form's coarsest ones.
            let kept = &live.tcal.levels;
            let events = Events::of(&sample, vector);
            let levels: Vec<VectorLevel> = (kept.iter())
                .map(|l| VectorLevel::of(&events, l.slices))
                .collect();
            let exact = tcal::of_levels(&levels, &tcal::Shape::of(&events), 0.05);
            assert!(!kept.is_empty() && kept.len() <= whole.tcal.levels.len());
            for ((a, b), c) in kept.iter().zip(&exact.levels).zip(&whole.tcal.levels) {
                assert_eq!(
                    (a.slices, a.occupied, a.shared),
                    (b.slices, b.occupied, b.shared)
                );
                near("plug-in", a.plug_in, b.plug_in, 1e-6);
                near("debiased", a.debiased, c.debiased, 1e-6);
                near("null deviation", a.null_sd / b.null_sd, 1.0, 1e-4);
                near("p of a level", a.p_value, c.p_value, 0.02);
            }
            near("p", live.tcal.p_value, exact.p_value, 0.02);
            println!(
                "{model} {view}: {} of {} levels, p {:.1e} live, {:.1e} offline, ECE {:.4} to {:.4}",
                kept.len(),
                whole.tcal.levels.len(),
                live.tcal.p_value,
                whole.tcal.p_value,
                a.lower,
                a.upper
            );
            assert_eq!(live.tcal.reject, whole.tcal.reject);
        }
    }
}

fn configuration(views: &str, model: &str, source: &str, rest: &str) -> Result<Config, String> {
    let text = format!(
        "version = 1\n[kafka]\nbrokers = \"b:9092\"\n[[source]]\ntopics = [\"t\"]\n[source.fields]\n\
         probabilities = \"p\"\noutcome = \"y\"\n{source}[[model]]\nname = \"m\"\nviews = {views}\n{model}{rest}"
    );
    let outside = Outside {
        variable: &|_| None,
        directory: ".".into(),
    };
    Config::parse(&text, "t.toml", &outside).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        all.join("\n")
    })
}

#[test]
fn what_cannot_be_kept_live_is_refused_with_the_reason() {
    let four = "classes = [\"a\", \"b\", \"c\", \"d\"]\n";
    let good = "[\"top_label\", \"top_k:2\", \"full\"]";
    let config = configuration(good, four, "", "").unwrap();
    let bound = MemoryBound::of(&config);
    assert!(bound.vector_bytes > 0 && bound.state() > bound.vector_bytes);
    let fewer = configuration(good, four, "", "[limits]\nvector_cells_max = 100\n").unwrap();
    assert!(MemoryBound::of(&fewer).vector_bytes < bound.vector_bytes);
    let none = configuration("[\"top_label\"]", four, "", "").unwrap();
    assert_eq!(MemoryBound::of(&none).vector_bytes, 0);
    let thirteen: Vec<String> = (0..13).map(|k| format!("\"{k}\"")).collect();
    let thirteen = format!("classes = [{}]\n", thirteen.join(", "));
    let joined =
        "id = \"i\"\n[source.outcomes]\ntopics = [\"o\"]\nmaturity = \"1h\"\npending_max = 1000\n";
    let scalars = configuration("[\"top_label\"]", four, joined, "").unwrap();
    let vectors = configuration(good, four, joined, "").unwrap();
    let [fewer, more] = [&scalars, &vectors].map(|c| MemoryBound::of(c).pending_bytes);
    // Four probabilities for `full`, which serve `top_k:2` too.
    let waiting = vectors.plan.joins[0].pending_max as u64;
    assert_eq!(more - fewer, 4 * COORDINATE_BYTES * waiting);
    // Cells of weighted events are larger.
    let weighted = configuration(good, four, "weight = \"w\"\n", "").unwrap();
    assert!(MemoryBound::of(&weighted).vector_bytes > 2 * bound.vector_bytes);
    assert!(configuration(good, four, "", "[state]\ntopic = \"moves\"\n").is_ok());
    let cases = [
        (
            "[\"top_label\", \"full\"]",
            "",
            "",
            "",
            "needs to know the classes",
        ),
        (
            "[\"top_label\", \"full\"]",
            thirteen.as_str(),
            "",
            "",
            "too many coordinates",
        ),
        (
            "[\"top_label\", \"top_k:5\"]",
            four,
            "",
            "",
            "too many coordinates",
        ),
        ("[\"full\"]", four, "", "", "no view of single scores"),
        (
            "[\"top_label\", \"kernel\"]",
            four,
            "weight = \"w\"\n",
            "",
            "events of this model are weighted",
        ),
    ];
    for (views, model, source, rest, wanted) in cases {
        let told = configuration(views, model, source, rest).unwrap_err();
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
}
