//! A watermark of the future: taken back, so that what was counted after it is counted again; or
//! not believed at all.

use super::*;
use crate::support::disk::{Disk, restore_joined};
use crate::support::records::JOIN;
use trueline::collect::join::JoinPlan;

#[test]
fn a_watermark_of_the_future_can_be_taken_back() {
    let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
    (0..600).for_each(|i| _ = feed.good(&mut engine, 0, BEGIN_MS + i * 100));
    // Enough of them to be believed.
    (0..5).for_each(|i| _ = feed.good(&mut engine, 0, BEGIN_MS + 10 * YEAR_MS + i * 10_000));
    assert_eq!(
        feed.good(&mut engine, 0, BEGIN_MS + 60_000),
        Disposition::Late
    );
    let mut snapshot = engine.snapshot();
    let reset = snapshot.reset_watermark(BEGIN_MS + 60_000);
    assert!(reset.was_ms >= Some(BEGIN_MS + 10 * YEAR_MS) && reset.panes > 0);
    let mut engine = Engine::restore(plan(), snapshot).expect("a sound snapshot");
    for i in 600..1_200 {
        let end = feed.good(&mut engine, 0, BEGIN_MS + i * 100);
        assert_eq!(end, Disposition::Observed);
    }
    let w = window(engine.monitor());
    assert!(w.numbers.is_some() && BEGIN_MS + 119_900 - w.end_ms <= LATENESS_MS + SLIDE_MS);
    assert_eq!(w.n, 120);
}

/// The same plan with separate outcomes: source 0 has the predictions, source 1 the outcomes.
fn joined_plan() -> Plan {
    Plan {
        joins: vec![JoinPlan {
            maturity_ms: 10_000,
            ..JOIN
        }],
        ..plan()
    }
}

#[test]
fn a_watermark_of_the_future_can_be_taken_back_where_outcomes_come_apart() {
    let (mut engine, mut feed) = (Engine::new(joined_plan()), Feed::default());
    let mut disk = Disk::default();
    let predict = |engine: &mut Engine, feed: &mut Feed, i: i64| {
        let one = Event {
            id: &i.to_le_bytes(),
            outcome: None,
            ..event("fraud", BEGIN_MS + i * 100, Some(BEGIN_MS + i * 100))
        };
        assert_eq!(engine.observe(feed.next(0), &one), Disposition::Pending);
    };
    (0..600).for_each(|i| predict(&mut engine, &mut feed, i));
    let counts = engine.counters().source(0);
    assert!(counts.expired > 400 && counts.pending > 100, "{counts:?}");
    disk.append(engine.take_journals());
    let mut snapshot = engine.snapshot();
    // A few panes of what has matured are to be counted again.
    snapshot.reset_watermark(BEGIN_MS + 59_900 - 10_000 - LATENESS_MS - 4 * SLIDE_MS);
    let segments = disk.segments(&snapshot);
    let mut engine = restore_joined(joined_plan(), snapshot, &segments);
    let again = engine.counters().source(0);
    let more = again.pending - counts.pending;
    assert!(more > 20, "{again:?}");
    assert_eq!(again.records, again.disposed());
    (600..1_200).for_each(|i| predict(&mut engine, &mut feed, i));
    engine.finish();
    let end = engine.counters().source(0);
    assert_eq!((end.pending, end.records), (0, end.disposed()));
    assert_eq!(end.expired, 1_200 + more);
}

#[test]
fn predictions_of_streams_that_expired_do_not_come_back_as_those_of_the_streams_in_their_slots() {
    let (mut engine, mut feed) = (Engine::new(joined_plan()), Feed::default());
    let (mut disk, mut ids) = (Disk::default(), 0i64..);
    let mut predict = |engine: &mut Engine, version: &str, time_ms: i64| {
        let id = ids.next().expect("an id").to_le_bytes();
        let one = Event {
            id: &id,
            version,
            outcome: None,
            ..event("fraud", time_ms, Some(time_ms))
        };
        engine.observe(feed.next(0), &one)
    };
    for i in 0..300 {
        for version in ["1", "2"] {
            let end = predict(&mut engine, version, BEGIN_MS + i * 100);
            assert_eq!(end, Disposition::Pending);
        }
    }
    for i in 0..5 {
        let end = predict(&mut engine, "3", BEGIN_MS + 10 * YEAR_MS + i * 10_000);
        assert_eq!(end, Disposition::Pending);
    }
    // Everything before is mature, and its streams expire. They begin once more in another order.
    engine.tick(1);
    for version in ["2", "1"] {
        let end = predict(&mut engine, version, BEGIN_MS + 30_000);
        assert_eq!(end, Disposition::Late);
    }
    disk.append(engine.take_journals());
    let mut snapshot = engine.snapshot();
    let slot_of = |version: &str| {
        let mut streams = snapshot.streams.iter();
        streams.find(|s| s.version == version).and_then(|s| s.slot)
    };
    assert_eq!(
        ["1", "2", "3"].map(slot_of),
        [Some(1), Some(0), Some(2)],
        "the first two have changed places"
    );
    snapshot.reset_watermark(BEGIN_MS + 11_000);
    let segments = disk.segments(&snapshot);
    let mut engine = restore_joined(joined_plan(), snapshot, &segments);
    let counts = engine.counters().source(0);
    assert_eq!(counts.pending, 5, "those of the third");
    assert_eq!(counts.records, counts.disposed());
    engine.finish();
    let counts = engine.counters().source(0);
    let all = (counts.pending, counts.records);
    assert_eq!(all, (5, counts.disposed()), "they are far ahead");
}

#[test]
fn a_refused_prediction_whose_time_is_set_aside_counts_once() {
    let mut plan = joined_plan();
    plan.joins[0].pending_max = 1;
    let (mut engine, mut feed) = (Engine::new(plan), Feed::default());
    let mut predict = |id: &[u8], time_ms: i64| {
        let one = Event {
            id,
            outcome: None,
            ..event("fraud", time_ms, Some(time_ms))
        };
        engine.observe(feed.next(0), &one)
    };
    assert_eq!(predict(b"a", BEGIN_MS), Disposition::Pending);
    let refused = Disposition::Refused(Refusal::Pending);
    assert_eq!(predict(b"b", BEGIN_MS + YEAR_MS), refused);
    assert_eq!(engine.counters().source(0).ahead, 1);
}
