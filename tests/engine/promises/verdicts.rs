//! A drift is found and told in words, and values go when data stop.

use super::{BEGIN_MS, Record, feed, plan, stream};
use crate::support::records::{EVENT, origin};
use trueline::collect::{Disposition, Event, Reason};
use trueline::monitor::{Engine, RecordSink};
use trueline::stats::view::{Outcome, Prediction};

#[test]
fn a_model_that_drifts_is_found_and_told_in_words() {
    let mut engine = Engine::new(plan());
    let calm = stream(&mut engine, 0..20, 200, false);
    assert!(calm.iter().all(|c| !c.sentence.contains("miscalibrated")));
    let drift = stream(&mut engine, 20..40, 200, true);
    let told = drift
        .iter()
        .find(|c| c.window == "6s" && c.sentence.contains("is miscalibrated"));
    let told = told.expect("the 6s window finds the drift");
    assert!(told.at_ms <= BEGIN_MS + 32_000, "within two windows");
    println!("{}", told.sentence);
    for word in [
        "one/1//binary over 6s",
        "event rate",
        "interval",
        "p = ",
        "n = 1200",
    ] {
        assert!(told.sentence.contains(word), "{word}: {}", told.sentence);
    }
    assert!(
        drift
            .iter()
            .any(|c| c.sentence.contains("is firing (was pending)"))
    );
}

#[test]
fn values_are_withdrawn_when_data_stops_and_the_stream_expires() {
    let mut plan = plan();
    plan.models[0].judge.stale_after_ms = 30_000;
    plan.caps.expire_after_ms = 60_000;
    let mut engine = Engine::new(plan);
    stream(&mut engine, 0..20, 100, false);
    let now = BEGIN_MS + 19_000;
    let has_values = |e: &Engine| {
        e.reports()
            .any(|r| r.windows.iter().any(|w| w.scores().is_some()))
    };
    assert!(has_values(&engine));
    engine.tick(now + 29_999);
    assert!(has_values(&engine));
    let changes = engine.tick(now + 30_000);
    assert!(!has_values(&engine));
    assert!(
        changes
            .iter()
            .any(|c| c.sentence.contains("undecided(stale)"))
    );
    // Streams expire by event time, and not before the longest window has passed: the clock alone
    // takes nothing away.
    engine.tick(now + 3_600_000);
    assert_eq!(engine.reports().count(), 1);
    let later = Record {
        model: 3,
        time_ms: BEGIN_MS + 200_000,
        delay_ms: 0,
        score: 0.5,
        outcome: true,
        partition: 0,
    };
    feed(&mut engine, 0, 2_000, &later);
    engine.tick(now + 60_000);
    let left: Vec<_> = engine.reports().map(|r| r.id.model.clone()).collect();
    assert_eq!(left, ["other"]);
    assert_eq!(engine.counters().streams_expired, 1);
}

#[test]
fn a_stream_that_begins_with_late_events_has_them_counted_whenever_the_clock_ticks() {
    let told = |ticks: bool| {
        let mut engine = Engine::new(plan());
        stream(&mut engine, 0..20, 10, false);
        for i in 0..30 {
            // The second version's first events are before the watermark, the others are not.
            let late = i < 18;
            let record = Record {
                model: 1,
                time_ms: BEGIN_MS + if late { 10_000 } else { 19_000 },
                delay_ms: 0,
                score: 0.5,
                outcome: i % 2 == 0,
                partition: 0,
            };
            let expected = match late {
                true => Disposition::Late,
                false => Disposition::Observed,
            };
            assert_eq!(feed(&mut engine, 0, 200 + i, &record), expected);
            if ticks {
                engine.tick(BEGIN_MS + 20_000);
            }
        }
        engine.finish();
        let second = engine.reports().find(|r| r.id.version == "2");
        let windows = second.expect("the second version").windows.iter();
        windows.map(|w| w.verdict.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(told(false), ["undecided(late)"; 4]);
    assert_eq!(told(true), told(false));
}

#[test]
fn one_event_far_ahead_of_its_arrival_does_not_make_all_others_late() {
    let mut engine = Engine::new(plan());
    let event = |time_ms, arrival_ms| Event {
        model: "one",
        time_ms,
        arrival_ms,
        prediction: Prediction::Score(0.5),
        outcome: Some(Outcome::Binary(true)),
        ..EVENT
    };
    let at = |offset| origin(0, 0, offset);
    let year = 365 * 86_400_000;
    let ends = [
        engine.observe(at(0), &event(BEGIN_MS, Some(BEGIN_MS))),
        engine.observe(at(1), &event(BEGIN_MS + year, Some(BEGIN_MS + 5))),
        engine.observe(at(2), &event(BEGIN_MS + 1_000, Some(BEGIN_MS + 1_000))),
        engine.observe(at(3), &event(0, None)),
        engine.observe(at(4), &event(7_258_118_400_000, None)),
    ];
    let out_of_range = Disposition::Rejected(Reason::TimeOutOfRange);
    let observed = Disposition::Observed;
    assert_eq!(
        ends,
        [observed, out_of_range, observed, out_of_range, out_of_range]
    );
}
