//! A version that stops while its model goes on: its verdicts are withdrawn once, its alert ends,
//! and nothing more is said of it, also after a restart and by a judge of checkpoints. When its
//! data come back, it is judged again.

use crate::support::disk::Disk;
use crate::support::records::{EVENT, JOIN, origin};
use std::ops::Range;
use std::sync::Arc;
use trueline::alert::AlertState;
use trueline::collect::join::JoinPlan;
use trueline::collect::{Event, Segmenting};
use trueline::judge::{
    Change, DetectorOptions, JudgeOptions, Step, StreamReport, Undecided, Verdict,
};
use trueline::monitor::liveness::Freshness;
use trueline::monitor::{
    Aggregator, Engine, LocalShard, ModelPlan, MonitorView, Plan, RecordSink, Shards,
};
use trueline::report::holding::holding;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_000_000;
const STEP_MS: i64 = 50;
const LATENESS_MS: i64 = 10_000;
const STALE_MS: i64 = 60_000;
const KEEP_MS: i64 = 30_000;

/// Events of version 3: the truth turns to temperature 2 at the first, and the second is the first
/// of version 4, which is calibrated.
const BAD: i64 = 20_000;
const STOP: i64 = 22_000;
/// The event with which version 3 is found to have stopped.
const QUIET: i64 = STOP + STALE_MS / STEP_MS;
/// Its last bad pane ends before that, by the lateness; one pane more for the alert to end.
const ENDED: i64 = QUIET + (KEEP_MS + LATENESS_MS) / STEP_MS;
/// The longest window holds nothing of version 3 any more.
const EMPTY: i64 = STOP + 9_600;
/// Between two ticks.
const TICK: i64 = 20;
/// Where outcomes are waited for, all predictions of version 3 are mature and judged at the second.
const MATURITY_MS: i64 = 600_000;
const MATURED: i64 = STOP + (MATURITY_MS + 2 * LATENESS_MS) / STEP_MS;

fn plan() -> Plan {
    let windows = vec![
        WindowSpec::time("1m", 60_000),
        WindowSpec::time("6m", 360_000),
    ];
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, LATENESS_MS).unwrap(),
            grid: Grid::new(Axis::Linear, 12),
            segmenting: Segmenting::default(),
            judge: JudgeOptions {
                keep_firing_ms: KEEP_MS,
                stale_after_ms: STALE_MS,
                window_alerts: false,
                detector: Some(DetectorOptions::alone("1 per 30d".parse().unwrap(), 0.05)),
                ..JudgeOptions::plain()
            },
        }],
        ..Plan::default()
    }
}

/// The same for predictions that wait; each brings its outcome.
fn joined() -> Plan {
    Plan {
        joins: vec![JoinPlan {
            maturity_ms: MATURITY_MS,
            ..JOIN
        }],
        ..plan()
    }
}

fn observe(sink: &mut impl RecordSink, i: i64, version: &str) {
    let mut rng = Rng::new(i as u64);
    let z = rng.uniform().clamp(1e-6, 1.0 - 1e-6);
    let h = (z / (1.0 - z)).ln();
    let bad = (BAD..STOP).contains(&i);
    let p = 1.0 / (1.0 + (if bad { -0.5 * h } else { -h }).exp());
    let event = Event {
        model: "fraud",
        version,
        id: &i.to_le_bytes(),
        time_ms: BEGIN_MS + STEP_MS * i,
        prediction: Prediction::Score(z),
        outcome: Some(Outcome::Binary(rng.uniform() < p)),
        ..EVENT
    };
    sink.observe(origin(0, 0, i), &event);
}

/// The clock at event `i`: it stands still until version 3 stops.
fn now_ms(i: i64) -> i64 {
    STEP_MS * (i - STOP).max(0)
}

/// An engine that has read version 3.
fn begun(plan: Plan) -> Engine {
    let mut engine = Engine::new(plan);
    (0..STOP).for_each(|i| observe(&mut engine, i, "3"));
    engine.tick(now_ms(STOP));
    engine
}

/// What was said of version 3, and when.
fn said(changes: &[Change]) -> Vec<(i64, String)> {
    let ours = changes.iter().filter(|c| c.stream.version == "3");
    ours.map(|c| (c.at_ms, c.sentence.clone())).collect()
}

/// Feeds events of a version, with a tick each second; answers what changed.
fn go_on(engine: &mut Engine, range: Range<i64>, version: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    for i in range {
        observe(engine, i, version);
        if i % TICK == 0 {
            changes.extend(engine.tick(now_ms(i)));
        }
    }
    changes
}

/// Of these changes, the verdicts of version 3.
fn verdicts(changes: &[Change]) -> Vec<(i64, String)> {
    let mut verdicts = changes.to_vec();
    verdicts.retain(|c| matches!(c.step, Step::Verdict { .. }));
    said(&verdicts)
}

fn third(monitor: MonitorView<'_>) -> &Arc<StreamReport> {
    let mut reports = monitor.reports();
    reports.find(|r| r.id.version == "3").expect("version 3")
}

fn is_stale(report: &StreamReport) -> bool {
    let stale = Verdict::Undecided(Undecided::Stale);
    report.windows.iter().all(|w| w.verdict == stale)
}

#[test]
fn the_alert_of_a_version_that_stopped_ends_though_its_model_goes_on() {
    let mut engine = begun(plan());
    assert_eq!(third(engine.monitor()).alert.state, AlertState::Firing);
    go_on(&mut engine, STOP..QUIET, "4");
    assert!(!is_stale(third(engine.monitor())));
    go_on(&mut engine, QUIET..QUIET + 1, "4");
    let report = third(engine.monitor());
    assert!(is_stale(report));
    assert_eq!(report.alert.state, AlertState::Firing);
    let holds = plan().models[0].judge.holds();
    let words = holding(report, &holds, false, 0, |ms: i64| ms.to_string()).join(" ");
    assert!(words.contains("Nothing can be said since"), "{words}");

    let changes = go_on(&mut engine, QUIET + 1..ENDED, "4");
    let ours = changes.iter().filter(|c| c.stream.version == "3");
    let steps: Vec<_> = ours.map(|c| c.step).collect();
    assert!(
        matches!(steps[..], [Step::Stream { to, .. }] if to.state == AlertState::Inactive),
        "{:?}",
        said(&changes)
    );
    assert_eq!(said(&go_on(&mut engine, ENDED..EMPTY, "4")), []);
    let report = third(engine.monitor());
    assert!(is_stale(report) && report.windows.iter().all(|w| w.n == 0));

    // One pane of version 3: the detector still stands in alarm.
    let pane = LATENESS_MS / STEP_MS;
    go_on(&mut engine, EMPTY..EMPTY + 2 * pane + TICK, "3");
    let report = third(engine.monitor());
    let few = Verdict::Undecided(Undecided::TooFew);
    assert_eq!(report.windows[0].verdict, few);
    assert_eq!(report.alert.state, AlertState::Firing);
}

#[test]
fn the_end_of_the_input_says_nothing_of_a_version_that_stopped() {
    let mut engine = begun(plan());
    go_on(&mut engine, STOP..ENDED + TICK, "4");
    let stopped = Arc::clone(third(engine.monitor()));
    assert!(is_stale(&stopped) && stopped.windows.iter().any(|w| w.n > 0));
    let changes = engine.finish();
    assert_eq!(said(&changes), []);
    let third = third(engine.monitor());
    assert!(is_stale(third) && third.alert == stopped.alert);
    let fourth = engine.reports().find(|r| r.id.version == "4");
    assert!(fourth.is_some_and(|r| r.windows.iter().all(|w| w.numbers.is_some())));
}

#[test]
fn a_restart_does_not_bring_a_version_back_that_stopped() {
    let mut whole = begun(plan());
    let cut = QUIET + 10 * TICK;
    go_on(&mut whole, STOP..cut, "4");
    assert!(is_stale(third(whole.monitor())));
    let mut again = Engine::restore(plan(), whole.snapshot()).expect("a sound snapshot");
    let expected = said(&go_on(&mut whole, cut..EMPTY, "4"));
    assert_eq!(expected.len(), 1, "the alert ends: {expected:?}");
    assert_eq!(said(&go_on(&mut again, cut..EMPTY, "4")), expected);
    assert_eq!(third(again.monitor()), third(whole.monitor()));
}

#[test]
fn predictions_that_mature_do_not_bring_a_version_back_that_stopped() {
    let mut engine = begun(joined());
    go_on(&mut engine, STOP..QUIET, "4");
    assert!(!is_stale(third(engine.monitor())));
    go_on(&mut engine, QUIET..QUIET + 1, "4");
    assert!(is_stale(third(engine.monitor())));
    let cut = QUIET + 100 * TICK;
    assert_eq!(verdicts(&go_on(&mut engine, QUIET + 1..cut, "4")), []);
    let mut again = Disk::default().restart(&mut engine, joined());
    for engine in [&mut engine, &mut again] {
        assert_eq!(verdicts(&go_on(engine, cut..MATURED, "4")), []);
        let report = third(engine.monitor());
        assert!(is_stale(report) && report.windows.iter().all(|w| w.n > 0));
        // The next prediction brings it back, before it is mature: each window slides once.
        go_on(engine, MATURED..MATURED + 70_000 / STEP_MS, "3");
        let stale = Verdict::Undecided(Undecided::Stale);
        let windows = &third(engine.monitor()).windows;
        assert!(windows.iter().all(|w| w.verdict != stale));
    }
}

#[test]
fn a_restart_forgets_no_prediction_that_came_after_a_silence() {
    let mut whole = begun(joined());
    // Windows slide at `QUIET`, and not in the two ticks with predictions.
    let back = QUIET + TICK + 1;
    let cut = back + 2 * TICK;
    go_on(&mut whole, STOP..back, "4");
    go_on(&mut whole, back..cut, "3");
    assert!(is_stale(third(whole.monitor())));
    let mut again = Disk::default().restart(&mut whole, joined());
    // The next slide, before the silence has lasted as long again.
    for engine in [&mut whole, &mut again] {
        go_on(engine, cut..cut + STALE_MS / STEP_MS / 2, "4");
    }
    let [whole, again] = [&whole, &again].map(|e| &third(e.monitor()).windows[0]);
    assert_ne!(whole.verdict, Verdict::Undecided(Undecided::Stale));
    assert_eq!((again.verdict, again.n), (whole.verdict, whole.n));
}

#[test]
fn nor_do_they_where_a_judge_sees_them_in_checkpoints() {
    let (judge, changes) = judged_by_checkpoints(&joined(), QUIET + 1..MATURED);
    assert_eq!(verdicts(&changes), []);
    let report = third(judge.monitor());
    assert!(is_stale(report) && report.windows.iter().all(|w| w.n > 0));
}

/// A judge of the checkpoints of a worker that reads to the end of the range, and what changed
/// within it.
fn judged_by_checkpoints(plan: &Plan, range: Range<i64>) -> (Aggregator, Vec<Change>) {
    let topics = ["t", "u"].map(str::to_owned).to_vec();
    let mut worker = Shards::of_worker(plan.clone(), vec![0, 0]);
    let mut shard = LocalShard::new((0, 0).into(), worker.plan(), topics.clone(), None);
    shard.assign((0, 0).into());
    worker.adopt(shard, Vec::new());
    let mut judge = Aggregator::new(plan.clone(), topics);
    let mut changes = Vec::new();
    for i in 0..range.end {
        let version = if i < STOP { "3" } else { "4" };
        observe(worker.get_mut((0, 0).into()).expect("ours"), i, version);
        if i % TICK != 0 {
            continue;
        }
        worker.advance();
        let shard = worker.get_mut((0, 0).into()).expect("ours");
        let deltas = shard.delta_batch();
        shard.deltas_stored(deltas.as_ref().expect("it counts").next);
        let taken = judge.take((0, 0).into(), 1, shard.snapshot(), deltas);
        taken.expect("usable");
        judge.set_freshness((0, 0).into(), Freshness::Behind);
        judge.advance();
        let new = judge.tick(now_ms(i));
        changes.extend(new.into_iter().filter(|_| range.contains(&i)));
    }
    (judge, changes)
}

#[test]
fn a_judge_of_checkpoints_says_the_same_of_a_version_that_stopped() {
    let (judge, changes) = judged_by_checkpoints(&plan(), STOP..EMPTY);
    let mut engine = begun(plan());
    let expected = said(&go_on(&mut engine, STOP..EMPTY, "4"));
    assert!(expected.len() > 1, "{expected:?}");
    assert_eq!(said(&changes), expected);
    let (ours, theirs) = (third(judge.monitor()), third(engine.monitor()));
    assert_eq!(ours.alert, theirs.alert);
    let verdicts = |r: &StreamReport| {
        let all = r.windows.iter().map(|w| (w.end_ms, w.n, w.verdict));
        all.collect::<Vec<_>>()
    };
    assert_eq!(verdicts(ours), verdicts(theirs));
}
