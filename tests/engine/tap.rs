//! Tapped pairs of predictions and separate outcomes: each is shown once, when its second half
//! comes, in either order. The tap changes no count.

use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use trueline::collect::join::{JoinPlan, Missing};
use trueline::collect::{Disposition, Event, Origin, Segmenting};
use trueline::judge::JudgeOptions;
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_064_000;

const DAY_MS: i64 = 86_400_000;

fn engine() -> Engine {
    engine_of("60s", 60_000)
}

fn engine_of(window: &str, width_ms: i64) -> Engine {
    let windows = vec![WindowSpec::time(window, width_ms)];
    let mut engine = Engine::new(Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Segmenting::default(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, 1_000).expect("a valid ladder"),
            grid: Grid::new(Axis::Linear, 6),
            judge: JudgeOptions::plain(),
        }],
        joins: vec![JoinPlan {
            maturity_ms: 10_000,
            missing: Missing::Class(0),
            revise: true,
            pending_max: 1_000,
            ..JOIN
        }],
        ..Plan::default()
    });
    engine.assign((0, 0).into());
    engine.assign((1, 0).into());
    engine
}

fn at(source: u16, offset: i64) -> Origin {
    origin(source, 0, offset)
}

fn predict(engine: &mut Engine, offset: i64, id: &str, time_ms: i64) -> Disposition {
    let event = Event {
        model: "m",
        version: "1",
        segment: "k=a",
        id: id.as_bytes(),
        time_ms,
        prediction: Prediction::Score(0.25),
        ..EVENT
    };
    engine.observe(at(0, offset), &event)
}

fn happen(engine: &mut Engine, offset: i64, id: &str, time_ms: i64) -> Disposition {
    engine.observe_outcome(
        at(1, offset),
        &outcome_record(id.as_bytes(), time_ms, Outcome::Binary(true)),
    )
}

/// Four pairs and two halves; what was tapped, by id and how it ended.
fn play(engine: &mut Engine) -> Vec<(String, Disposition, Option<i64>)> {
    let time = |s: i64| BEGIN_MS + s * 1_000;
    predict(engine, 0, "before", time(0));
    happen(engine, 0, "before", time(1));
    happen(engine, 1, "after", time(1));
    predict(engine, 1, "after", time(0));
    predict(engine, 2, "late", time(0));
    predict(engine, 3, "never", time(0));
    happen(engine, 2, "of nothing", time(2));
    // The pane matures.
    predict(engine, 4, "clock", time(60));
    happen(engine, 3, "clock", time(61));
    happen(engine, 4, "late", time(61));
    let (pairs, _) = engine.tap(0);
    for pair in &pairs {
        assert_eq!((pair.model.as_str(), pair.segment.as_str()), ("m", "k=a"));
        assert_eq!(pair.scores, [(View::Binary, 0.25)]);
        assert_eq!(pair.outcome, 1);
    }
    let told = pairs.into_iter().map(|p| (p.id, p.how, p.outcome_ms));
    told.collect()
}

#[test]
fn a_joined_pair_is_tapped_once_when_its_second_half_comes_in_either_order() {
    let mut engine = engine();
    engine.tap(100);
    let second = |s: i64| Some(BEGIN_MS + s * 1_000);
    let expected = [
        ("before", Disposition::Matched, second(1)),
        ("after", Disposition::Matched, second(1)),
        ("clock", Disposition::Matched, second(61)),
        ("late", Disposition::Revised, second(61)),
    ];
    let expected = expected.map(|(id, how, at)| (id.to_owned(), how, at));
    assert_eq!(play(&mut engine), expected);
}

#[test]
fn an_outcome_that_versions_share_is_tapped_with_each_of_them() {
    let mut engine = engine();
    engine.tap(100);
    let mut scored = |offset: i64, version: &str, time_ms: i64| {
        let event = Event {
            model: "m",
            version,
            id: b"shared",
            time_ms,
            prediction: Prediction::Score(0.25),
            ..EVENT
        };
        engine.observe(at(0, offset), &event);
    };
    scored(0, "1", BEGIN_MS);
    scored(1, "2", BEGIN_MS + 5);
    happen(&mut engine, 0, "shared", BEGIN_MS + 1_000);
    let (pairs, _) = engine.tap(100);
    let mut versions: Vec<&str> = pairs.iter().map(|p| p.version.as_str()).collect();
    versions.sort_unstable();
    assert_eq!(versions, ["1", "2"]);
    assert!(pairs.iter().all(|p| p.outcome_ms == Some(BEGIN_MS + 1_000)));
    // The same outcome once more changes nothing and is not shown.
    happen(&mut engine, 1, "shared", BEGIN_MS + 1_000);
    assert_eq!(engine.tap(100).0.len(), 0);
    // An earlier one holds in its place, and that is no pair that forms.
    happen(&mut engine, 2, "shared", BEGIN_MS + 500);
    assert_eq!(engine.tap(0).0.len(), 0);
}

#[test]
fn an_outcome_a_month_late_is_tapped_with_its_own_time() {
    let mut engine = engine_of("120d", 120 * DAY_MS);
    for (i, id) in (0..).zip(["a", "b"]) {
        predict(&mut engine, i, id, BEGIN_MS);
    }
    // Their pane of 20 days matures.
    predict(&mut engine, 2, "clock", BEGIN_MS + 30 * DAY_MS);
    happen(&mut engine, 0, "clock", BEGIN_MS + 30 * DAY_MS);
    engine.tap(1);
    for (i, id) in (1..).zip(["a", "b"]) {
        let end = happen(&mut engine, i, id, BEGIN_MS + 40 * DAY_MS);
        assert_eq!(end, Disposition::Revised);
    }
    let (pairs, passed) = engine.tap(10);
    let told: Vec<_> = pairs
        .iter()
        .map(|p| (p.id.as_str(), p.outcome_ms))
        .collect();
    assert_eq!(told, [("a", Some(BEGIN_MS + 40 * DAY_MS))]);
    assert_eq!(passed.all, 1);
    // Once more is once too often, though it is not known how late the first was.
    assert_eq!(
        happen(&mut engine, 3, "a", BEGIN_MS + 40 * DAY_MS),
        Disposition::Duplicate
    );
    assert_eq!(engine.tap(0).0.len(), 0);
}

#[test]
fn looking_changes_nothing_and_what_finds_no_room_is_counted() {
    let (mut open, mut shut, mut narrow) = (engine(), engine(), engine());
    open.tap(100);
    narrow.tap(1);
    assert_eq!(play(&mut open).len(), 4);
    assert_eq!(play(&mut shut).len(), 0);
    happen(&mut narrow, 0, "a", BEGIN_MS);
    predict(&mut narrow, 0, "a", BEGIN_MS);
    predict(&mut narrow, 1, "b", BEGIN_MS);
    happen(&mut narrow, 1, "b", BEGIN_MS);
    let (pairs, passed) = narrow.tap(0);
    assert_eq!((pairs.len(), passed.all), (1, 1));
    open.finish();
    shut.finish();
    assert_eq!(open.counters(), shut.counters());
    assert_eq!(open.snapshot(), shut.snapshot());
}
