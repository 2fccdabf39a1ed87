//! A roll-up is the sum of its segments to the bit, and of nothing that is in none, with late
//! outcomes and restarts.

use super::{BEGIN_MS, LATENESS_MS, SEGMENTS, grid, plan, restarted, rolled, summed, totals};
use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use trueline::collect::join::{JoinPlan, Missing};
use trueline::collect::{Disposition, Event, OTHER, ROLL_UP};
use trueline::judge::{StreamId, StreamReport};
use trueline::monitor::{Engine, RecordSink};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::stats::view::{Outcome, Prediction};

const VERSIONS: [&str; 2] = ["1", "2"];

#[derive(Debug, Clone)]
struct Record {
    version: usize,
    segment: usize,
    time_ms: i64,
    delay_ms: i64,
    score: f64,
    outcome: bool,
    partition: i32,
}

fn feed(engine: &mut Engine, offset: i64, r: &Record) -> Disposition {
    let event = Event {
        model: "m",
        version: VERSIONS[r.version],
        segment: SEGMENTS[r.segment],
        time_ms: r.time_ms,
        prediction: Prediction::Score(r.score),
        outcome: Some(Outcome::Binary(r.outcome)),
        ..EVENT
    };
    let origin = origin(0, r.partition, offset);
    engine.observe(origin, &event)
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let record = (
        0..VERSIONS.len(),
        0..SEGMENTS.len(),
        0i64..90_000,
        0..LATENESS_MS,
        0.0..=1.0f64,
        any::<bool>(),
        0i32..3,
    );
    let record = record.prop_map(
        |(version, segment, at, delay_ms, score, outcome, partition)| Record {
            version,
            segment,
            time_ms: BEGIN_MS + at,
            delay_ms,
            score,
            outcome,
            partition,
        },
    );
    proptest::collection::vec(record, 1..600).prop_map(|mut all| {
        all.sort_by_key(|r| r.time_ms + r.delay_ms);
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_roll_up_is_the_sum_of_its_segments_and_of_the_raw_events(
        all in records(), max in 1usize..7, cut in 0usize..600,
    ) {
        let mut engine = Engine::new(plan(rolled(max), 1000));
        (0..3).for_each(|p| { engine.assign((0, p).into()); });
        for (offset, r) in (0..).zip(&all) {
            prop_assert_eq!(feed(&mut engine, offset, r), Disposition::Observed);
            if offset as usize == cut {
                engine = restarted(&engine);
            }
            if offset % 11 == 0 {
                engine.tick(r.time_ms);
            }
        }
        engine.finish();
        let found = totals(&engine);
        for ((id, window), (start_ms, n, sums)) in &found {
            if id.segment != ROLL_UP {
                continue;
            }
            prop_assert!(&summed(&found, &id.version, window) == sums, "segments of {id} in {window}");
            let mut raw = Sums::new(grid());
            let mine = all.iter().filter(|r| VERSIONS[r.version] == id.version && r.segment > 0);
            for r in mine.filter(|r| r.time_ms >= *start_ms) {
                let score = Score::new(r.score).expect("a score");
                raw.observe(score, r.outcome).expect("no overflow");
            }
            prop_assert_eq!(raw.n(), *n, "raw events of {} in {}", id, window);
            prop_assert!(&raw == sums, "raw events of {id} in {window}");
        }
        let segmented = all.iter().filter(|r| r.segment > 0).map(|r| r.version);
        let versions: std::collections::BTreeSet<usize> = segmented.collect();
        let rollups = found.keys().filter(|(id, w)| id.segment == ROLL_UP && w == "6s");
        prop_assert_eq!(rollups.count(), versions.len());
        // Names may be many, streams not.
        for version in VERSIONS {
            let named = found.keys().filter(|(id, w)| {
                id.version == version && id.segment.starts_with("k=") && w == "6s"
            });
            prop_assert!(named.count() <= max);
        }
        let other: u64 = engine.counters().total().other;
        prop_assert_eq!(other > 0, found.keys().any(|(id, _)| id.segment == OTHER));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    // In every slide, and between any two.
    #[test]
    fn a_restart_changes_nothing_that_is_reported_of_segments_and_roll_up(
        all in records(), max in 1usize..7, each in 3usize..30,
    ) {
        let mut engine = Engine::new(plan(rolled(max), 1000));
        (0..3).for_each(|p| { engine.assign((0, p).into()); });
        for (offset, r) in (0..).zip(&all) {
            feed(&mut engine, offset, r);
            if (offset as usize).is_multiple_of(each) {
                engine.tick(r.time_ms);
                prop_assert_eq!(reports(&restarted(&engine)), reports(&engine));
            }
        }
    }
}

fn reports(engine: &Engine) -> BTreeMap<StreamId, Arc<StreamReport>> {
    engine
        .reports()
        .map(|r| (r.id.clone(), r.clone()))
        .collect()
}

#[test]
fn late_outcomes_correct_the_roll_up_with_their_segment() {
    let mut with_join = plan(rolled(3), 1000);
    with_join.joins = vec![JoinPlan {
        maturity_ms: 5_000,
        missing: Missing::Class(0),
        revise: true,
        pending_max: 100_000,
        ..JOIN
    }];
    let mut engine = Engine::new(with_join);
    engine.assign((0, 0).into());
    engine.assign((1, 0).into());
    let mut rng = Rng::new(5);
    let mut later: Vec<(i64, u32)> = Vec::new();
    let mut offsets = [0i64; 2];
    let mut origin = |source: u16| {
        let offset = &mut offsets[usize::from(source)];
        *offset += 1;
        origin(source, 0, *offset)
    };
    for i in 0..4_000u32 {
        let time_ms = BEGIN_MS + i64::from(i) * 15;
        let event = Event {
            model: "m",
            version: "1",
            segment: SEGMENTS[i as usize % SEGMENTS.len()],
            id: &i.to_le_bytes(),
            time_ms,
            prediction: Prediction::Score(rng.uniform()),
            ..EVENT
        };
        assert_eq!(engine.observe(origin(0), &event), Disposition::Pending);
        // Half of the outcomes in time, half of them late.
        later.push((time_ms + 10 + (rng.uniform() * 12_000.0) as i64, i));
        later.sort_unstable();
        while let Some(&(at_ms, id)) = later.first().filter(|(at, _)| *at <= time_ms) {
            later.remove(0);
            let id = id.to_le_bytes();
            engine.observe_outcome(
                origin(1),
                &outcome_record(&id, at_ms, Outcome::Binary(rng.uniform() < 0.5)),
            );
        }
    }
    engine.finish();
    let total = engine.counters().total();
    assert!(total.revised > 500 && total.other > 500, "{total:?}");
    assert_eq!(total.records, total.disposed());
    let found = totals(&engine);
    for window in ["6s", "36s", "72s"] {
        let key = |(id, w): &&(StreamId, String)| id.segment == ROLL_UP && w == window;
        let rollup = found.keys().find(key).expect("a roll-up");
        assert!(found[rollup].2.n() > 0);
        assert!(summed(&found, "1", window) == found[rollup].2, "{window}");
    }
}
