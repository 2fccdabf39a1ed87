//! The detector in the engine: alarm, report, all-clear, snapshot, and that late outcomes never
//! reach it.

use crate::support::records::{EVENT, origin};
use std::fmt::Write;
use trueline::collect::{Event, Segmenting};
use trueline::judge::{Change, DetectorOptions, JudgeOptions, Step};
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink, Snapshot};
use trueline::report::detector;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::direction::Direction;
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_000_000;
const STEP_MS: i64 = 50;

fn plan(budget: Option<&str>) -> Plan {
    let windows = vec![WindowSpec::time("1m", 60_000)];
    let options = |budget: &str| DetectorOptions::alone(budget.parse().unwrap(), 0.05);
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, 10_000).unwrap(),
            grid: Grid::new(Axis::Linear, 12),
            segmenting: Segmenting::default(),
            judge: JudgeOptions {
                detector: budget.map(options),
                ..JudgeOptions::plain()
            },
        }],
        ..Plan::default()
    }
}

/// Feeds events `from` to `to` of one stream; the truth turns to temperature 2 at `change` and back
/// at `fixed`.
fn feed(engine: &mut Engine, range: std::ops::Range<i64>, change: i64, fixed: i64) -> Vec<Change> {
    for i in range {
        let mut rng = Rng::new(i as u64);
        let z = rng.uniform().clamp(1e-6, 1.0 - 1e-6);
        let h = (z / (1.0 - z)).ln();
        let bad = (change..fixed).contains(&i);
        let p = 1.0 / (1.0 + (if bad { -0.5 * h } else { -h }).exp());
        let event = Event {
            model: "fraud",
            version: "3",
            time_ms: BEGIN_MS + STEP_MS * i,
            prediction: Prediction::Score(z),
            outcome: Some(Outcome::Binary(rng.uniform() < p)),
            ..EVENT
        };
        let origin = origin(0, 0, i);
        engine.observe(origin, &event);
    }
    engine.tick(BEGIN_MS)
}

fn steps(changes: &[Change]) -> Vec<bool> {
    let step = |c: &Change| match c.step {
        Step::Detector { alarm, .. } => Some(alarm),
        _ => None,
    };
    changes.iter().filter_map(step).collect()
}

#[test]
fn a_change_is_told_with_its_kind_and_its_time_and_is_clear_after_it_is_mended() {
    let (change, fixed) = (20_000, 22_000);
    let mut engine = Engine::new(plan(Some("1 per 30d")));
    assert!(steps(&feed(&mut engine, 0..change, change, fixed)).is_empty());
    let changes = feed(&mut engine, change..fixed, change, fixed);
    assert_eq!(steps(&changes).first(), Some(&true));
    let first = changes.iter().find(|c| c.window == "detector").unwrap();
    println!("{}", first.sentence);
    assert!(
        first.sentence.contains("over-confident"),
        "{}",
        first.sentence
    );
    let begun = BEGIN_MS + STEP_MS * change;
    assert!(
        first.at_ms > begun && first.at_ms < begun + 60_000,
        "{}",
        first.at_ms
    );

    let report = engine.reports().next().unwrap();
    let told = report.detector.as_deref().unwrap();
    let alarm = told.alarm.as_ref().unwrap();
    assert_eq!(alarm.evidence.direction, Direction::OverConfident);
    let json = detector::json(told);
    assert_eq!(json["alarm"]["evidence"]["direction"], "over_confident");
    assert!(json["always_valid"]["ece_l2_lower"].is_number());

    // 6,000 events after the mending; the alarm took some hundreds.
    let after = feed(&mut engine, fixed..fixed + 6000, change, fixed);
    assert_eq!(steps(&after).last(), Some(&false), "{after:?}");
    let report = engine.reports().next().unwrap();
    assert!(report.detector.as_ref().unwrap().alarm.is_none());
}

#[test]
fn a_restart_while_alarmed_goes_on_with_the_same_bits_and_does_not_alarm_again() {
    let plan = plan(Some("1 per 30d"));
    let mut whole = Engine::new(plan.clone());
    feed(&mut whole, 0..22_000, 20_000, 100_000);
    let detector = |e: &Engine| e.reports().next().unwrap().detector.clone();
    assert!(detector(&whole).unwrap().alarm.is_some());
    let stored = whole.snapshot();
    let mut again = Engine::restore(plan, stored).unwrap();
    assert_eq!(again.snapshot(), whole.snapshot());
    assert_eq!(detector(&again), detector(&whole));
    assert!(steps(&again.tick(BEGIN_MS)).is_empty());
    for engine in [&mut whole, &mut again] {
        feed(engine, 22_000..26_000, 20_000, 100_000);
    }
    assert_eq!(detector(&again), detector(&whole));
    assert_eq!(again.snapshot(), whole.snapshot());
}

#[test]
fn under_another_budget_the_detector_starts_over_and_without_one_there_is_none() {
    let mut engine = Engine::new(plan(Some("1 per 30d")));
    feed(&mut engine, 0..5000, 9999, 9999);
    let stored: Snapshot = engine.snapshot();
    let other = Engine::restore(plan(Some("2000000 events")), stored.clone()).unwrap();
    assert!(other.reports().next().unwrap().detector.is_none());
    let without = Engine::restore(plan(None), stored).unwrap();
    assert!(without.reports().next().unwrap().detector.is_none());
    assert_eq!(
        other.reports().next().unwrap().windows,
        without.reports().next().unwrap().windows
    );
}

#[test]
fn late_events_join_no_detector() {
    let mut engine = Engine::new(plan(Some("1 per 30d")));
    feed(&mut engine, 0..5000, 9999, 9999);
    let before = engine.reports().next().unwrap().detector.clone();
    let mut seen = String::new();
    for i in 0..200 {
        let event = Event {
            model: "fraud",
            version: "3",
            time_ms: BEGIN_MS + i,
            prediction: Prediction::Score(0.01),
            outcome: Some(Outcome::Binary(true)),
            ..EVENT
        };
        let origin = origin(0, 0, 5000 + i);
        let _ = writeln!(seen, "{:?}", engine.observe(origin, &event));
    }
    assert!(seen.contains("Late"), "{seen}");
    assert_eq!(engine.reports().next().unwrap().detector, before);
}
