//! A maturity that is too short for one outcome and not for the other: positives come after five minutes, negatives after
//! forty on average, and predictions are mature after thirty. In time the calibrated model looks far too low. Where late
//! outcomes reach the stream (`revise = true`) the detector holds before it alarms; outcomes that are late by chance
//! hold nothing.

use super::feed::{BEGIN_MS, alarms, plan};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use trueline::collect::join::{JoinPlan, Missing, Repeated};
use trueline::collect::{Event, Label, Origin};
use trueline::judge::Change;
use trueline::monitor::Engine;
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction};
use trueline::window::{Ladder, WindowSpec};

const MINUTE_MS: f64 = 60_000.0;
const MATURITY_MS: i64 = 30 * 60_000;

/// An engine that joins, with a window wide enough for late outcomes to find their predictions.
fn engine(revise: bool) -> Engine {
    let mut plan = plan("1 per 30d", 0.05, 500);
    // As in the default configuration.
    plan.models[0].judge.detector.as_mut().unwrap().streams = 1000.0;
    let window = WindowSpec::time("2h", 2 * 3_600_000);
    plan.models[0].ladder = Ladder::new(vec![window], 0).unwrap();
    plan.joins = vec![JoinPlan {
        predictions: 0,
        outcomes: 1,
        maturity_ms: MATURITY_MS,
        missing: Missing::Drop,
        repeated: Repeated::First,
        revise,
        by_model: false,
        model: None,
        pending_max: 1_000_000,
        pending_memory: usize::MAX,
    }];
    let mut engine = Engine::new(plan);
    engine.assign(0, 0);
    engine.assign(1, 0);
    engine
}

/// Three hours of a calibrated model, an event a second, whose outcomes come after these mean minutes; all changes.
fn play(engine: &mut Engine, seed: u64, positive: f64, negative: f64) -> Vec<Change> {
    let (mut rng, mut coming) = (Rng::new(seed), BinaryHeap::new());
    let (mut labels, mut changes) = (0, Vec::new());
    for i in 0..3 * 3600i64 {
        let time_ms = BEGIN_MS + i * 1000;
        while let Some(&Reverse((at_ms, id, happened))) = coming.peek() {
            if at_ms > time_ms {
                break;
            }
            coming.pop();
            let label = Label {
                model: None,
                id: &i64::to_le_bytes(id),
                time_ms: at_ms,
                arrival_ms: None,
                outcome: Outcome::Binary(happened),
            };
            let origin = Origin {
                source: 1,
                partition: 0,
                offset: labels,
            };
            labels += 1;
            engine.label(origin, &label);
        }
        let z = rng.uniform();
        let happened = rng.uniform() < z;
        let event = Event {
            model: "net",
            version: "1",
            segment: "",
            id: &i.to_le_bytes(),
            time_ms,
            arrival_ms: None,
            prediction: Prediction::Score(z),
            outcome: None,
            weight: None,
            cluster: None,
        };
        let origin = Origin {
            source: 0,
            partition: 0,
            offset: i,
        };
        engine.observe(origin, &event);
        let mean = if happened { positive } else { negative };
        let delay = -(1.0 - rng.uniform()).ln() * mean * MINUTE_MS;
        coming.push(Reverse((time_ms + delay as i64, i, happened)));
        if i % 60 == 0 {
            changes.extend(engine.tick(time_ms));
            engine.take_journals();
        }
    }
    changes
}

fn held(engine: &Engine) -> bool {
    let report = engine.reports().next().unwrap();
    let detector = report.detector.as_ref().unwrap();
    detector.held_ms.is_some()
}

#[test]
fn a_maturity_that_is_too_short_holds_the_detector_before_it_alarms() {
    for seed in 0..8 {
        let mut engine = engine(true);
        let changes = play(&mut engine, seed, 5.0, 40.0);
        let said: Vec<_> = (changes.iter().filter(|c| c.window == "detector"))
            .map(|c| ((c.at_ms - BEGIN_MS) / 60_000, &c.sentence))
            .collect();
        assert_eq!(alarms(&changes).count(), 0, "seed {seed}: {said:?}");
        assert!(held(&engine), "seed {seed}");
        let says = |c: &&Change| c.sentence.contains("maturity is too short");
        assert_eq!(changes.iter().filter(says).count(), 1, "seed {seed}");
    }
}

#[test]
fn outcomes_that_are_late_whatever_they_are_hold_nothing() {
    for seed in 0..4 {
        let mut engine = engine(true);
        let changes = play(&mut engine, seed, 25.0, 25.0);
        assert_eq!(alarms(&changes).count(), 0, "seed {seed}");
        let missed = engine.reports().next().unwrap();
        let missed = missed.detector.as_ref().unwrap().missed.added;
        assert!(missed > 500, "{missed} came late, seed {seed}");
        assert!(!held(&engine), "seed {seed}");
    }
}

/// What the hold is for.
#[test]
fn without_late_outcomes_the_same_stream_alarms() {
    let mut engine = engine(false);
    let changes = play(&mut engine, 0, 5.0, 40.0);
    assert!(alarms(&changes).count() > 0);
}
