//! A maturity that is too short for one outcome and not for the other: positives come after five
//! minutes, negatives after forty on average, and predictions are mature after thirty. In time the
//! calibrated model looks far too low. The detector holds before it alarms, whether late outcomes
//! correct windows (`revise`) or not; outcomes that are late by chance hold nothing.

use super::feed::{BEGIN_MS, Truth, alarms, plan};
use crate::support::bars::{Bar, count, data_sets, is_long};
use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use trueline::collect::Event;
use trueline::collect::join::{JoinPlan, Missing};
use trueline::judge::Change;
use trueline::monitor::{Engine, RecordSink};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction};
use trueline::window::{Ladder, WindowSpec};

const MINUTE_MS: f64 = 60_000.0;
const MATURITY_MS: i64 = 30 * 60_000;

/// An engine that joins; where late outcomes correct windows, these are wide enough to hold the
/// predictions.
fn engine(revise: bool, missing: Missing) -> Engine {
    let mut plan = plan("1 per 30d", 0.05, 500);
    // As in the default configuration.
    plan.models[0].judge.detector.as_mut().unwrap().streams = 1000.0;
    let window = WindowSpec::time("5m", 300_000);
    let wide = WindowSpec::time("2h", 2 * 3_600_000);
    let windows = if revise {
        vec![window, wide]
    } else {
        vec![window]
    };
    plan.models[0].ladder = Ladder::new(windows, 0).unwrap();
    plan.joins = vec![JoinPlan {
        maturity_ms: MATURITY_MS,
        missing,
        revise,
        ..JOIN
    }];
    let mut engine = Engine::new(plan);
    engine.assign((0, 0).into());
    engine.assign((1, 0).into());
    engine
}

/// When an outcome comes after its prediction of this score, in minutes; `None`: never.
type Delay = fn(&mut Rng, f64, bool) -> Option<f64>;

fn exponential(rng: &mut Rng, mean: f64) -> Option<f64> {
    Some(-(1.0 - rng.uniform()).ln() * mean)
}

/// Positives after five minutes, negatives after forty on average.
fn slow_negatives(rng: &mut Rng, _: f64, happened: bool) -> Option<f64> {
    exponential(rng, if happened { 5.0 } else { 40.0 })
}

/// The maturity cuts off every fifth positive, which comes within half an hour after it.
fn cut_positives(rng: &mut Rng, _: f64, happened: bool) -> Option<f64> {
    match happened && rng.uniform() < 0.2 {
        true => Some(30.0 + 30.0 * rng.uniform()),
        false => exponential(rng, 4.0),
    }
}

/// A fifth of the outcomes never comes, and some come late, whatever they are.
fn right_maturity(rng: &mut Rng, _: f64, _: bool) -> Option<f64> {
    match rng.uniform() < 0.2 {
        true => None,
        false => exponential(rng, 9.0),
    }
}

/// As many outcomes are late as in time, whatever they are.
fn slow(rng: &mut Rng, _: f64, _: bool) -> Option<f64> {
    exponential(rng, 40.0)
}

/// Every fifth outcome of the upper half of the scores is late, as if someone had to look at it.
fn reviewed(rng: &mut Rng, score: f64, _: bool) -> Option<f64> {
    match score > 0.5 && rng.uniform() < 0.2 {
        true => Some(30.0 + 30.0 * rng.uniform()),
        false => exponential(rng, 4.0),
    }
}

/// Three hours of a model, so many events a second; all changes.
fn play(engine: &mut Engine, seed: u64, rate: i64, truth: Truth, delay: Delay) -> Vec<Change> {
    let (mut rng, mut coming) = (Rng::new(seed), BinaryHeap::new());
    let (mut labels, mut changes) = (0, Vec::new());
    for i in 0..3 * 3600 * rate {
        let time_ms = BEGIN_MS + i * 1000 / rate;
        while let Some(&Reverse((at_ms, id, happened))) = coming.peek() {
            if at_ms > time_ms {
                break;
            }
            coming.pop();
            let origin = origin(1, 0, labels);
            labels += 1;
            let id = i64::to_le_bytes(id);
            engine.observe_outcome(
                origin,
                &outcome_record(&id, at_ms, Outcome::Binary(happened)),
            );
        }
        let z = rng.uniform();
        let happened = rng.uniform() < truth.of(z);
        let event = Event {
            model: "net",
            version: "1",
            id: &i.to_le_bytes(),
            time_ms,
            prediction: Prediction::Score(z),
            ..EVENT
        };
        let origin = origin(0, 0, i);
        engine.observe(origin, &event);
        if let Some(minutes) = delay(&mut rng, z, happened) {
            coming.push(Reverse((
                time_ms + (minutes * MINUTE_MS) as i64,
                i,
                happened,
            )));
        }
        if i % (60 * rate) == 0 {
            changes.extend(engine.tick(time_ms));
            engine.take_journals();
        }
    }
    changes
}

fn held(engine: &Engine) -> bool {
    let report = engine.reports().next().unwrap();
    let detector = report.detector.as_ref().unwrap();
    detector.hold.is_some()
}

/// Whether the detector holds with its reason and has raised no alarm, in each of some streams.
fn holds(sets: u64, revise: bool, rate: i64, delay: Delay) -> u64 {
    count(sets, |seed| {
        let mut engine = engine(revise, Missing::Drop);
        let changes = play(&mut engine, seed, rate, Truth::Calibrated, delay);
        let says = |c: &&Change| c.sentence.contains("maturity is too short");
        let said = changes.iter().filter(says).count() > 0;
        said && held(&engine) && alarms(&changes).count() == 0
    })
}

/// A maturity that is too short is called so before anything alarms, with `revise` and without, in
/// streams of few events and of many.
#[test]
fn a_maturity_that_is_too_short_holds_the_detector_before_it_alarms() {
    let sets = data_sets(12);
    let many = if is_long() { 10 } else { 4 };
    let bar = Bar::new(sets, 0.97..=1.0, &[0.3]);
    let mut failures = Vec::new();
    for revise in [false, true] {
        for (name, rate, delay) in [
            ("slow negatives", 1, slow_negatives as Delay),
            ("slow negatives", many, slow_negatives),
            ("every fifth positive cut off", 1, cut_positives),
            ("every fifth positive cut off", many, cut_positives),
        ] {
            let place = format!("{name}, {rate} a second, revise = {revise}");
            bar.check(&place, holds(sets, revise, rate, delay), &mut failures);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Outcomes that are late, or never come, whatever they are hold nothing, and a calibrated model
/// raises no alarm.
#[test]
fn outcomes_that_are_late_whatever_they_are_hold_nothing() {
    let sets = data_sets(12);
    let bar = Bar::new(sets, 0.0..=0.03, &[0.7]);
    let mut failures = Vec::new();
    for revise in [false, true] {
        for (name, delay) in [
            ("right", right_maturity as Delay),
            ("slow", slow),
            ("reviewed", reviewed),
        ] {
            let wrong = count(sets, |seed| {
                let mut engine = engine(revise, Missing::Drop);
                let changes = play(&mut engine, seed, 1, Truth::Calibrated, delay);
                let report = engine.reports().next().unwrap();
                let missed = report.detector.as_ref().unwrap().missed.added;
                assert!(!revise || missed > 100, "{missed} came late");
                held(&engine) || alarms(&changes).count() > 0
            });
            let place = format!("{name} maturity, revise = {revise}");
            bar.check(&place, wrong, &mut failures);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// A model that is wrong alarms, though a fifth of its outcomes never comes, or late ones have high
/// scores: the alarm waits a maturity at most, and nothing holds the detector for long.
#[test]
fn a_model_that_is_wrong_alarms_under_a_right_maturity() {
    let sets = data_sets(12);
    let bar = Bar::new(sets, 0.97..=1.0, &[0.3]);
    let mut failures = Vec::new();
    for (name, rate, delay) in [
        ("right", 1, right_maturity as Delay),
        ("right", 10, right_maturity),
        ("reviewed", 1, reviewed),
        ("reviewed", 10, reviewed),
    ] {
        let alarmed = count(sets, |seed| {
            let mut engine = engine(false, Missing::Drop);
            let truth = Truth::Temperature(1.5);
            let changes = play(&mut engine, seed, rate, truth, delay);
            alarms(&changes).count() > 0 && !held(&engine)
        });
        let place = format!("{name} maturity, {rate} a second");
        bar.check(&place, alarmed, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Where a missing outcome counts as a negative, positives that come late say so too.
#[test]
fn positives_that_come_after_they_were_taken_for_negatives_hold_the_detector() {
    for seed in 0..3 {
        let mut engine = engine(false, Missing::Class(0));
        let delay = |rng: &mut Rng, score: f64, happened: bool| match happened {
            true => cut_positives(rng, score, true),
            false => None,
        };
        let changes = play(&mut engine, seed, 1, Truth::Calibrated, delay);
        assert_eq!(alarms(&changes).count(), 0, "seed {seed}");
        assert!(held(&engine), "seed {seed}");
    }
}

/// What the hold is for: outcomes that are lost for good are not seen, and the same stream alarms.
#[test]
fn where_the_late_outcomes_never_come_the_same_stream_alarms() {
    let mut engine = engine(false, Missing::Drop);
    let delay = |rng: &mut Rng, score: f64, happened: bool| {
        slow_negatives(rng, score, happened).filter(|minutes| *minutes < 29.0)
    };
    let changes = play(&mut engine, 0, 1, Truth::Calibrated, delay);
    assert!(alarms(&changes).count() > 0);
}

/// Some positives come and nothing else, as charge-backs do, and predictions without an outcome are
/// left out: the detector says so and raises no alarm.
#[test]
fn outcomes_of_one_kind_hold_the_detector() {
    let some_positives: Delay = |rng, _, happened| {
        let comes = happened && rng.uniform() < 0.5;
        exponential(rng, 5.0).filter(|_| comes)
    };
    for (seed, rate) in [(0, 1), (1, 4), (2, 10)] {
        let mut engine = engine(false, Missing::Drop);
        let changes = play(&mut engine, seed, rate, Truth::Calibrated, some_positives);
        assert_eq!(alarms(&changes).count(), 0, "seed {seed}");
        let says = |c: &Change| c.sentence.contains("too few predictions have outcomes");
        assert!(changes.iter().any(says) && held(&engine), "seed {seed}");
    }
}
