//! Weighted windows of the engine are the same to the bit in any order, joined and after restarts;
//! a weight that is none is counted.

use super::{Weighted, heavy, sample};
use crate::support::disk::Disk;
use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use std::collections::BTreeMap;
use trueline::collect::join::{JoinPlan, Missing};
use trueline::collect::{Disposition, Event, Origin, Reason, Segmenting};
use trueline::decode::{DecodeOptions, Decoder};
use trueline::judge::JudgeOptions;
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::attribute::Attribute;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::stats::weight::Weight;
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_000_000 / 3_600_000 * 3_600_000;
const MINUTE: i64 = 60_000;

fn plan(joined: bool) -> Plan {
    let windows = vec![
        WindowSpec::time("10m", 10 * MINUTE),
        WindowSpec::time("1h", 60 * MINUTE),
    ];
    let join = JoinPlan {
        maturity_ms: MINUTE,
        missing: Missing::Class(0),
        revise: true,
        pending_max: 100_000,
        ..JOIN
    };
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Segmenting {
                rollup: true,
                ..Segmenting::default()
            },
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, 10_000).expect("a ladder"),
            grid: Grid::new(Axis::Linear, 8).weighted(),
            judge: JudgeOptions {
                stale_after_ms: i64::MAX,
                ..JudgeOptions::plain()
            },
        }],
        joins: joined.then_some(join).into_iter().collect(),
        ..Plan::default()
    }
}

/// An event every 50 ms in one of two segments; where outcomes come apart, positives come up to
/// three minutes later, after a minute as revisions, and negatives never.
fn events() -> Vec<(i64, Weighted, i64)> {
    let mut rng = Rng::new(3);
    let all = sample(&mut rng, heavy, |z| z, 20_000);
    let timed = (0i64..).zip(all).map(|(i, e)| {
        let delay = (rng.uniform() * 3.0 * MINUTE as f64) as i64;
        (i, e, delay)
    });
    timed.collect()
}

fn at(source: u16, offset: i64) -> Origin {
    origin(source, 0, offset)
}

fn take(engine: &mut Engine, offset: i64, &(i, (z, y, w), _): &(i64, Weighted, i64), joined: bool) {
    let id = i.to_le_bytes();
    let event = Event {
        model: "m",
        segment: if i % 3 == 0 { "c=a" } else { "c=b" },
        id: &id,
        time_ms: BEGIN_MS + 50 * i,
        prediction: Prediction::Score(z),
        outcome: (!joined).then_some(Outcome::Binary(y)),
        weight: Some(Weight::new(w).unwrap()),
        ..EVENT
    };
    let end = engine.observe(at(0, offset), &event);
    assert!(
        matches!(end, Disposition::Observed | Disposition::Pending),
        "{end:?}"
    );
}

fn totals(engine: &mut Engine) -> BTreeMap<(String, String), Sums> {
    engine.finish();
    for (source, c) in engine.counters().sources() {
        assert_eq!(c.records, c.disposed(), "source {source}");
    }
    let all = engine.monitor().totals();
    all.map(|(id, w, s)| ((id.segment.clone(), w.window.clone()), s))
        .collect()
}

#[test]
fn weighted_windows_are_the_same_to_the_bit_in_any_order_and_after_restarts() {
    let all = events();
    let mut straight = Engine::new(plan(false));
    for (offset, event) in (0..).zip(&all) {
        take(&mut straight, offset, event, false);
    }
    let expected = totals(&mut straight);
    let whole = &expected[&("*".to_owned(), "1h".to_owned())];
    assert_eq!(whole.n(), 20_000, "the roll-up holds all");
    let weighted: Vec<Weighted> = all.iter().map(|(_, e, _)| *e).collect();
    let mut direct = Sums::new(Grid::new(Axis::Linear, 8).weighted());
    for &(z, y, w) in &weighted {
        let (z, w) = (Score::new(z).unwrap(), Weight::new(w).unwrap());
        direct.observe_with(z, y, Attribute::Weight(w)).unwrap();
    }
    assert!(*whole == direct, "and is the sums of its events");
    let report = straight.reports().find(|r| r.id.segment == "*").unwrap();
    let e = report.windows[1].scores().cloned().expect("numbers");
    assert!(
        !e.reject && e.weights.unwrap().effective < 15_000.0,
        "{e:?}"
    );

    // Shuffled within the lateness, restarted every 3001 records.
    let mut rng = Rng::new(4);
    let mut shuffled: Vec<(i64, &(i64, Weighted, i64))> = all
        .iter()
        .map(|e| (50 * e.0 + (9000.0 * rng.uniform()) as i64, e))
        .collect();
    shuffled.sort_by_key(|(key, _)| *key);
    let mut engine = Engine::new(plan(false));
    for (offset, (_, event)) in (0i64..).zip(&shuffled) {
        take(&mut engine, offset, event, false);
        if offset % 3001 == 3000 {
            let snapshot = engine.snapshot();
            engine = Engine::restore(plan(false), snapshot).expect("a sound snapshot");
            assert!(engine.dropped().is_empty());
        }
    }
    assert!(totals(&mut engine) == expected, "another order, other bits");

    // Outcomes apart: in time, late as revisions, or never.
    let mut records: Vec<(i64, bool, &(i64, Weighted, i64))> = Vec::new();
    for event in &all {
        let time = 50 * event.0;
        records.push((time, false, event));
        if event.1.1 {
            records.push((time + event.2, true, event));
        }
    }
    records.sort_by_key(|(time, outcome, _)| (*time, *outcome));
    let mut joined = Engine::new(plan(true));
    let mut offsets = [0i64; 2];
    let mut disk = Disk::default();
    for (n, (time, outcome, event)) in records.iter().enumerate() {
        if *outcome {
            let id = event.0.to_le_bytes();
            joined.observe_outcome(
                at(1, offsets[1]),
                &outcome_record(&id, BEGIN_MS + time, Outcome::Binary(true)),
            );
            offsets[1] += 1;
        } else {
            take(&mut joined, offsets[0], event, true);
            offsets[0] += 1;
        }
        if n % 7001 == 7000 {
            joined = disk.restart(&mut joined, plan(true));
        }
    }
    let got = totals(&mut joined);
    let revised: u64 = joined.counters().sources().map(|(_, c)| c.revised).sum();
    assert!(revised > 1000, "the test bites: {revised}");
    let keys = |all: &BTreeMap<(String, String), Sums>| {
        let ns = all.iter().map(|(k, s)| (k.clone(), s.n()));
        ns.collect::<Vec<_>>()
    };
    assert_eq!(keys(&got), keys(&expected));
    assert!(
        got == expected,
        "joined: same numbers of events, other sums"
    );
}

#[test]
fn sums_of_weighted_events_are_not_gone_on_with_without_weights() {
    let mut engine = Engine::new(plan(false));
    for (offset, event) in (0..).zip(&events()[..2000]) {
        take(&mut engine, offset, event, false);
    }
    let mut other = plan(false);
    other.models[0].grid = Grid::new(Axis::Linear, 8);
    let restored = Engine::restore(other, engine.snapshot()).expect("a sound snapshot");
    assert_eq!(
        restored.dropped().len(),
        3,
        "two segments and their roll-up"
    );
}

#[test]
fn a_weight_that_is_none_is_rejected_by_name_and_counted() {
    let options = DecodeOptions {
        weight: Some("w".into()),
        ..DecodeOptions::default()
    };
    let mut decoder = Decoder::new(&options).unwrap();
    let mut engine = Engine::new(plan(false));
    let mut weigh = |offset: i64, w: &str| {
        let time_ms = BEGIN_MS + offset;
        let text = format!(r#"{{"model":"m","time_ms":{time_ms},"score":0.5,"outcome":1{w}}}"#);
        match decoder.decode(text.as_bytes(), None, None) {
            Ok(event) => engine.observe(at(0, offset), &event),
            Err(rejection) => {
                assert!(rejection.detail.contains("`w`"), "{}", rejection.detail);
                engine.reject(at(0, offset), None, rejection.reason)
            }
        }
    };
    let bad = Disposition::Rejected(Reason::BadWeight);
    for (offset, w, end) in [
        (0, ",\"w\":2.5", Disposition::Observed),
        (1, ",\"w\":0", bad),
        (2, ",\"w\":-1", bad),
        // A broken number is bad JSON before it is a bad weight; other formats can write it
        // (tests/decode/formats/values.rs).
        (3, ",\"w\":1e999", bad),
        (4, ",\"w\":65536", bad),
        (5, ",\"w\":1e-6", bad),
        (6, ",\"w\":\"1\"", bad),
        (7, ",\"w\":[1]", bad),
        (8, "", Disposition::Rejected(Reason::MissingField)),
        (
            9,
            ",\"w\":null",
            Disposition::Rejected(Reason::MissingField),
        ),
    ] {
        assert_eq!(weigh(offset, w), end, "{w}");
    }
    let counters = engine.counters();
    let (_, c) = counters.sources().next().unwrap();
    assert_eq!((c.records, c.observed), (10, 1));
    assert_eq!(c.records, c.disposed());
    // An event without weight, of a model that needs one, from whom has no decoder.
    let event = Event {
        model: "m",
        time_ms: BEGIN_MS,
        prediction: Prediction::Score(0.5),
        outcome: Some(Outcome::Binary(true)),
        ..EVENT
    };
    let end = engine.observe(at(0, 10), &event);
    assert_eq!(end, Disposition::Rejected(Reason::MissingField));
}
