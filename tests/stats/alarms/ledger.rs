//! The ledger through the engine: shares, what is never forgotten, restarts, and outcomes that come
//! too late.

use super::feed::{BEGIN_MS, PANE_MS, Stream, Truth, event, plan};
use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use crate::support::streams::{LAWS, score};
use trueline::collect::Event;
use trueline::collect::join::{JoinPlan, Repeated};
use trueline::monitor::{Engine, Plan, RecordSink};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction};

/// Calibrated events of `streams` streams, ten in each of `panes` panes.
fn fill(engine: &mut Engine, streams: std::ops::Range<usize>, panes: std::ops::Range<i64>) {
    let mut rng = Rng::new(3);
    for i in panes.start * 10..panes.end * 10 {
        let time_ms = BEGIN_MS + i * PANE_MS / 10;
        for s in streams.clone() {
            let z = score(LAWS[0].1, &mut rng);
            let y = rng.uniform() < z;
            let offset = i * 1000 + s as i64;
            event(engine, &format!("s={s:03}"), offset, time_ms, (z, Some(y)));
        }
    }
}

fn share(engine: &Engine) -> f64 {
    engine.ledger()[0].share
}

#[test]
fn streams_share_one_budget_and_give_back_only_what_they_did_not_stake() {
    let mut plan = plan("1 per 30d", 0.05, u64::MAX);
    plan.caps.expire_after_ms = 1000;
    plan.models[0].judge.detector.as_mut().unwrap().streams = 50.0;
    let mut engine = Engine::new(plan);
    fill(&mut engine, 0..40, 0..3);
    engine.tick(0);
    let all = 40.0 / 50.0;
    assert!((share(&engine) - all).abs() < 1e-12);
    let before = engine.ledger()[0].clone();
    assert_eq!(before.streams, 40);
    // Two panes of the three are sealed.
    let staked = all * 2.0 * PANE_MS as f64 / 1000.0;
    assert!((before.staked - staked).abs() < 1e-9, "{}", before.staked);

    // The clock takes nobody away; events that are seconds of event time later do.
    engine.tick(2000);
    engine.tick(4000);
    assert_eq!(engine.ledger()[0], before);
    fill(&mut engine, 100..102, 10..12);
    engine.tick(4000);
    let after = engine.ledger()[0].clone();
    assert_eq!(after.streams, 2);
    assert!(after.staked >= staked, "{}", after.staked);
    // The same share whoever was there before.
    let again = 2.0 / 50.0;
    assert!((share(&engine) - again).abs() < 1e-12, "{}", share(&engine));
}

#[test]
fn under_ever_each_stream_has_the_whole_promise() {
    let mut engine = Engine::new(plan("5% ever", 0.05, u64::MAX));
    fill(&mut engine, 0..3, 0..3);
    engine.tick(0);
    assert!((share(&engine) - 3.0).abs() < 1e-12);
    let reports: Vec<f64> = (engine.reports())
        .map(|r| r.detector.as_ref().unwrap().share)
        .collect();
    assert_eq!(reports, [1.0; 3]);
}

#[test]
fn an_event_is_staked_once_however_many_streams_it_reaches() {
    let mut plan = plan("2000000 events", 0.05, u64::MAX);
    plan.models[0].segmenting.rollup = true;
    let mut engine = Engine::new(plan);
    fill(&mut engine, 0..7, 0..20);
    for i in 0..200 {
        let time_ms = BEGIN_MS + 20 * PANE_MS + i * PANE_MS / 10;
        event(
            &mut engine,
            "",
            1_000_000 + i,
            time_ms,
            (0.5, Some(i % 2 == 0)),
        );
    }
    engine.finish();
    let ledger = engine.ledger();
    let streams = "seven, their roll-up, and events without a segment, which no roll-up counts";
    assert_eq!(ledger[0].streams, 9, "{streams}");
    assert!(
        (ledger[0].staked - 8.0 * 200.0).abs() < 1e-9,
        "{}",
        ledger[0].staked
    );
}

#[test]
fn the_ledger_survives_restarts_and_other_terms_but_not_another_budget() {
    let terms = |budget: &str, tolerance| plan(budget, tolerance, u64::MAX);
    let mut engine = Engine::new(terms("1 per 30d", 0.05));
    fill(&mut engine, 0..5, 0..30);
    engine.tick(0);
    let before = engine.ledger();
    let stored = engine.snapshot();
    let restored = |plan: Plan| Engine::restore(plan, stored.clone()).unwrap();

    assert_eq!(restored(terms("1 per 30d", 0.05)).ledger(), before);

    let other = restored(terms("1 per 30d", 0.1));
    assert!((other.ledger()[0].staked - before[0].staked).abs() < 1e-9);
    assert!((other.ledger()[0].share - before[0].share).abs() < 1e-12);
    assert!(
        other.reports().all(|r| r.detector.is_none()),
        "starts empty"
    );
    // And once more, so that nothing is kept twice.
    let again = Engine::restore(terms("1 per 30d", 0.1), other.snapshot()).unwrap();
    assert!((again.ledger()[0].staked - before[0].staked).abs() < 1e-9);

    assert_eq!(restored(terms("1 per 60d", 0.05)).ledger()[0].staked, 0.0);
}

/// Outcomes that are revised after maturity: windows show them, the detector counts them and says
/// what it said.
#[test]
fn revised_outcomes_reach_windows_and_not_the_detector() {
    let mut plan = plan("1 per 30d", 0.05, u64::MAX);
    plan.joins = vec![JoinPlan {
        maturity_ms: PANE_MS,
        repeated: Repeated::Last,
        revise: true,
        pending_max: 10_000,
        ..JOIN
    }];
    let mut engine = Engine::new(plan);
    engine.assign((0, 0).into());
    engine.assign((1, 0).into());
    let mut rng = Rng::new(8);
    let at = |i: i64| BEGIN_MS + i * 100;
    let mut labels = 0;
    let mut observe_outcome = |engine: &mut Engine, id: i64, time_ms: i64, happened: bool| {
        let origin = origin(1, 0, labels);
        labels += 1;
        let id = id.to_le_bytes();
        engine.observe_outcome(
            origin,
            &outcome_record(&id, time_ms, Outcome::Binary(happened)),
        );
    };
    for i in 0..1000i64 {
        let z = rng.uniform();
        let event = Event {
            model: "net",
            version: "1",
            id: &i.to_le_bytes(),
            time_ms: at(i),
            prediction: Prediction::Score(z),
            ..EVENT
        };
        let origin = origin(0, 0, i);
        engine.observe(origin, &event);
        // One in ten comes late.
        if i % 10 != 0 {
            observe_outcome(&mut engine, i, at(i), rng.uniform() < z);
        }
    }
    engine.tick(0);
    let told = |engine: &Engine| engine.reports().next().unwrap().detector.clone().unwrap();
    let before = told(&engine);
    assert_eq!((before.missed.added, before.missed.revised), (0, 0));
    // Of the newest pane that is sealed and held.
    for i in 700..800i64 {
        observe_outcome(&mut engine, i, at(999), true);
    }
    engine.take_journals();
    engine.tick(0);
    let after = told(&engine);
    assert_eq!(after.missed.added, 10, "{:?}", after.missed);
    assert!(after.missed.revised > 20, "{:?}", after.missed);
    assert_eq!(after.evidence, before.evidence);
    assert_eq!(after.bounds, before.bounds);
}

/// A stream of another model draws on its own account.
#[test]
fn models_divide_the_budget_by_weight_or_have_one_of_their_own() {
    let text = r#"
version = 1
[kafka]
brokers = "localhost:9092"
[[source]]
topics = ["t"]
[source.fields]
score = "score"
[detector]
budget = "1 per 7d"
confidence = 0.99
[[model]]
name = "a"
[model.alert]
budget_weight = 3
[[model]]
name = "b"
[[model]]
name = "c"
[model.alert]
budget = "5% ever"
[[model]]
name = "d"
[model.alert]
budget = "none"
"#;
    let outside = trueline::config::value::Outside {
        variable: &|_| None,
        directory: std::path::PathBuf::new(),
    };
    let config = trueline::config::Config::parse(text, "t.toml", &outside).unwrap();
    let of = |i: usize| config.plan.models[i].judge.detector.clone();
    let (a, b, c) = (of(0).unwrap(), of(1).unwrap(), of(2).unwrap());
    assert_eq!(
        (a.account.as_str(), a.streams, a.weight),
        ("fleet", 1000.0, 1.0)
    );
    assert_eq!((b.account.as_str(), b.streams), ("fleet", 1000.0));
    assert_eq!(
        (c.account.as_str(), c.streams, c.weight),
        ("model:c", 1.0, 1.0)
    );
    assert!((b.weight - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(c.budget.to_string(), "0.05 ever");
    assert!((a.alpha - 0.01).abs() < 1e-12);
    assert!(of(3).is_none());
    let ledger = Engine::new(config.plan.clone()).ledger();
    let names: Vec<&str> = ledger.iter().map(|a| a.account.as_str()).collect();
    assert_eq!(names, ["fleet", "model:c"]);
}

/// What stays bad is alarmed again, what is fixed clears, both through the engine.
#[test]
fn what_is_mended_clears_and_what_is_not_confirms() {
    for fixed in [true, false] {
        let mut engine = Engine::new(plan("2000000 events", 0.05, u64::MAX));
        let mut stream = Stream::new(7, LAWS[0].1, 100);
        let (mut raised, mut cleared) = (0, 0);
        for t in 0..1000 {
            let bad = (40..if fixed { 60 } else { 1000 }).contains(&t);
            let truth = match bad {
                true => Truth::Temperature(2.0),
                false => Truth::Calibrated,
            };
            for change in stream.feed(&mut engine, truth) {
                match change.step {
                    trueline::judge::Step::Detector { alarm: true, .. } => raised += 1,
                    trueline::judge::Step::Detector { alarm: false, .. } => cleared += 1,
                    _ => {}
                }
            }
        }
        let report = engine.reports().next().unwrap().detector.clone().unwrap();
        if fixed {
            assert!(
                raised >= 1 && cleared == 1 && report.alarm.is_none(),
                "{raised} {cleared}"
            );
        } else {
            let alarm = report.alarm.as_ref().unwrap();
            assert!(
                raised > 50 && cleared == 0 && alarm.times == raised,
                "{raised} {cleared}"
            );
            let onset = (alarm.onset_ms - BEGIN_MS as f64) / PANE_MS as f64;
            assert!((onset - 40.0).abs() < 4.0, "dated by the first: {onset}");
        }
    }
}

/// Right after an alarm the detector holds nothing, which JSON has no number for.
#[test]
fn a_state_with_an_alarm_and_a_ledger_is_exported_and_imported_to_the_bit() {
    let dir = |name: &str| {
        let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("alarms-{name}"));
        let _ = std::fs::remove_dir_all(&dir);
        dir
    };
    let (here, there) = (dir("here"), dir("there"));
    let mut plan = plan("1 per 30d", 0.05, u64::MAX);
    plan.caps.expire_after_ms = 1000;
    let mut engine = Engine::new(plan.clone());
    fill(&mut engine, 0..2, 0..3);
    for now_ms in [0, 2000, 4000] {
        engine.tick(now_ms);
    }
    let mut stream = Stream::new(7, LAWS[0].1, 100);
    // Behind all offsets so far.
    stream.next = 100_000;
    let mut panes = 0;
    while engine.ledger()[0].alarms == 0 && panes < 100 {
        stream.feed(&mut engine, Truth::Temperature(3.0));
        panes += 1;
    }
    assert_eq!(engine.ledger()[0].alarms, 1);
    let snapshot = engine.snapshot();
    trueline::store::save(&here, &snapshot).unwrap();
    let file = here.with_extension("jsonl");
    let mut out = std::fs::File::create(&file).unwrap();
    trueline::store::transfer::export(&here, || Ok(None), &mut out).unwrap();
    let imported = trueline::store::transfer::import(&file, &there, |_| Ok(())).unwrap();
    assert!(imported.snapshot == snapshot);
    let again = Engine::restore(plan, imported.snapshot).unwrap();
    assert_eq!(again.ledger(), engine.ledger());
    let told = |e: &Engine| e.reports().map(|r| r.detector.clone()).collect::<Vec<_>>();
    assert_eq!(told(&again), told(&engine));
}
