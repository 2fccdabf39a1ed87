//! Which streams there are: segments beyond the cap count in `other`, and versions and roll-ups
//! come and go without mixing.

use super::{at, event, one, plan, restarted, rolled, streams, totals};
use std::sync::Arc;
use trueline::collect::{Disposition, Event, ROLL_UP, Refusal, Segmenting};
use trueline::judge::StreamReport;
use trueline::monitor::{Caps, Engine, RecordSink};
use trueline::stats::view::{Outcome, Prediction, View};

#[test]
fn segments_beyond_the_cap_count_in_other_or_are_refused_as_configured() {
    let mut engine = Engine::new(plan(rolled(2), 1000));
    for (i, k) in (0..).zip([0, 1, 2, 3, 0, 4, 2]) {
        let end = one(&mut engine, i, "1", &format!("k={k}"));
        assert_eq!(end, Disposition::Observed);
    }
    let names = [
        "m/1/*/binary",
        "m/1/k=0/binary",
        "m/1/k=1/binary",
        "m/1/other/binary",
    ];
    assert_eq!(streams(&mut engine), names);
    assert_eq!(engine.counters().total().other, 4);

    let refusing = Segmenting {
        other: false,
        ..rolled(2)
    };
    let mut engine = Engine::new(plan(refusing, 1000));
    let ends: Vec<Disposition> = (0..4)
        .map(|i| one(&mut engine, i, "1", &format!("k={i}")))
        .collect();
    let refused = Disposition::Refused(Refusal::Streams);
    assert_eq!(ends[..2], [Disposition::Observed; 2]);
    assert_eq!(ends[2..], [refused; 2]);
}

#[test]
fn room_for_other_is_kept_so_that_a_known_version_is_never_refused() {
    // Roll-up, segment and other of one version: the whole cap.
    let mut engine = Engine::new(plan(rolled(100), 4));
    for i in 0..20 {
        let end = one(&mut engine, i, "1", &format!("k={i}"));
        assert_eq!(end, Disposition::Observed, "{i}");
    }
    assert_eq!(engine.counters().total().other, 18);
    assert_eq!(streams(&mut engine).len(), 4);
    let refused = Disposition::Refused(Refusal::Streams);
    assert_eq!(one(&mut engine, 20, "2", "k=0"), refused);
    // Not even after a restart.
    let mut engine = restarted(&engine);
    assert_eq!(one(&mut engine, 21, "1", "k=fresh"), Disposition::Observed);
    assert_eq!(streams(&mut engine).len(), 4);
}

#[test]
fn a_roll_up_goes_when_its_last_segment_has_expired() {
    let mut engine = Engine::new(plan(rolled(100), 1000));
    one(&mut engine, 0, "1", "k=a");
    one(&mut engine, 1, "1", "k=b");
    // Streams expire by event time, an event each 100 ms.
    let week = Caps::default().expire_after_ms / 100;
    one(&mut engine, week / 2, "1", "k=b");
    one(&mut engine, week + 1_000, "2", "k=b");
    assert_eq!(streams(&mut engine).len(), 4, "k=a of version 1 is gone");
    one(&mut engine, 2 * week + 2_000, "2", "k=b");
    assert_eq!(streams(&mut engine).len(), 2, "version 1 is gone");
    one(&mut engine, 2 * week + 2_001, "1", "k=b");
    assert_eq!(streams(&mut engine).len(), 4);
}

#[test]
fn events_without_a_segment_are_judged_once_whichever_come_first() {
    // Version 1 has segments and events without, version 2 only the latter.
    let kinds = [("1", "k=a"), ("1", ""), ("2", "")];
    let names = [
        "m/1/*/binary",
        "m/1//binary",
        "m/1/k=a/binary",
        "m/2//binary",
    ];
    let mut found = Vec::new();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut engine = Engine::new(plan(rolled(9), 1000));
        for i in 0..300 {
            let (version, segment) = kinds[order[i as usize % 3]];
            let event = event(i / 3, version, segment);
            assert_eq!(engine.observe(at(i), &event), Disposition::Observed);
            if i == 150 {
                engine = restarted(&engine);
            }
        }
        assert_eq!(streams(&mut engine), names);
        engine.finish();
        let n = |segment: &str| {
            let all = totals(&engine);
            let mine = all
                .iter()
                .filter(|((id, w), _)| id.segment == segment && w == "72s");
            mine.map(|(_, (_, n, _))| n).sum::<u64>()
        };
        assert_eq!((n(ROLL_UP), n("k=a"), n("")), (100, 100, 200));
        found.push(totals(&engine));
    }
    assert!(found[0] == found[1] && found[1] == found[2]);
}

#[test]
fn vectors_without_a_segment_are_a_stream_of_their_own_whichever_come_first() {
    let mut found = Vec::new();
    for order in [["k=a", ""], ["", "k=a"]] {
        let mut plan = plan(rolled(9), 1000);
        plan.models[0].views = vec![View::Full];
        plan.models[0].classes = ["no", "yes"].map(str::to_owned).to_vec();
        let mut engine = Engine::new(plan);
        for i in 0..200 {
            let z = (i as f64 * 0.618).fract();
            let event = Event {
                prediction: Prediction::Vector(&[z, 1.0 - z]),
                outcome: Some(Outcome::Class(i as u32 % 2)),
                ..event(i / 2, "1", order[i as usize % 2])
            };
            assert_eq!(engine.observe(at(i), &event), Disposition::Observed);
        }
        engine.finish();
        let n = |r: &Arc<StreamReport>| (r.id.to_string(), r.windows[2].n);
        let mut all: Vec<_> = engine.reports().map(n).collect();
        all.sort();
        found.push(all);
    }
    let expected = [("m/1/*/full", 100), ("m/1//full", 100)];
    let expected = expected.map(|(id, n)| (id.to_owned(), n));
    assert_eq!(found, [expected.clone(), expected]);
}

#[test]
fn a_roll_up_that_an_earlier_build_gave_a_version_without_segments_goes_at_the_restart() {
    let mut engine = Engine::new(plan(rolled(9), 1000));
    (0..100).for_each(|i| {
        one(&mut engine, i, "1", "");
    });
    assert_eq!(streams(&mut engine), ["m/1//binary"]);
    let mut snapshot = engine.snapshot();
    let mut twin = snapshot.streams[0].clone();
    (twin.segment, twin.slot) = (ROLL_UP.to_owned(), None);
    snapshot.streams.push(twin);
    let mut engine = Engine::restore(plan(rolled(9), 1000), snapshot).expect("sound");
    assert_eq!(streams(&mut engine), ["m/1//binary"]);
    assert!(
        engine.dropped()[0].contains("repeats its only stream"),
        "{:?}",
        engine.dropped()
    );
}

#[test]
fn a_new_version_starts_fresh_and_is_shown_beside_the_old_one() {
    let mut engine = Engine::new(plan(rolled(100), 1000));
    for i in 0..400 {
        one(&mut engine, i, "1", ["k=a", "k=b"][i as usize % 2]);
    }
    for i in 400..430 {
        // Both serve for a while.
        one(&mut engine, i, ["1", "2"][i as usize % 2], "k=a");
    }
    engine.finish();
    let n = |version: &str, segment: &str| {
        let of = |r: &&Arc<StreamReport>| r.id.version == version && r.id.segment == segment;
        let report = engine.reports().find(of).expect("the stream is there");
        let long = report.windows.iter().find(|w| w.window == "72s");
        long.map(|w| w.n).expect("the window")
    };
    assert_eq!(n("1", ROLL_UP), 415);
    assert_eq!(n("1", "k=a") + n("1", "k=b"), 415);
    assert_eq!((n("2", ROLL_UP), n("2", "k=a")), (15, 15));
    assert_eq!(engine.reports().count(), 5);
}

#[test]
fn a_roll_up_that_is_configured_later_begins_then_and_one_that_is_not_any_more_goes() {
    let mut engine = Engine::new(plan(Segmenting::default(), 1000));
    (0..100).for_each(|i| {
        one(&mut engine, i, "1", ["k=a", "k=b"][i as usize % 2]);
    });
    assert_eq!(engine.reports().count(), 2);
    let snapshot = engine.snapshot();
    let mut engine = Engine::restore(plan(rolled(9), 1000), snapshot).expect("sound");
    (100..200).for_each(|i| {
        one(&mut engine, i, "1", ["k=a", "k=b"][i as usize % 2]);
    });
    assert_eq!(streams(&mut engine).len(), 3);
    let snapshot = engine.snapshot();
    let engine = Engine::restore(plan(Segmenting::default(), 1000), snapshot).expect("sound");
    assert_eq!(engine.reports().count(), 2);
    assert_eq!(engine.dropped().len(), 1, "{:?}", engine.dropped());
}
