//! Roll-ups are the sums of their segments, to the bit, and of nothing that is in none; segments that are too
//! many go to `other`; a new version starts fresh; and an adversary who invents names does not get past the bound that `check` prints.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use trueline::collect::join::{JoinPlan, Missing, Repeated};
use trueline::collect::{Disposition, Event, Label, OTHER, Origin, ROLL_UP, Refusal, Segmenting};
use trueline::config::Config;
use trueline::config::bounds::MemoryBound;
use trueline::config::value::Outside;
use trueline::judge::{JudgeOptions, StreamId, StreamReport};
use trueline::monitor::{Caps, Engine, ModelPlan, Plan};
use trueline::stats::algebra::Merge;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::telemetry::{Limits, Published, collector};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_064_000;
const LATENESS_MS: i64 = 2_500;
const VERSIONS: [&str; 2] = ["1", "2"];
const SEGMENTS: [&str; 6] = ["", "k=a", "k=b", "k=c", "k=d", "k=e"];

fn grid() -> Grid {
    Grid::new(Axis::Linear, 7)
}

fn plan(segmenting: Segmenting, streams_max: usize) -> Plan {
    let windows = vec![
        WindowSpec::time("6s", 6_000),
        WindowSpec::time("36s", 36_000),
        WindowSpec::time("72s", 72_000),
    ];
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting,
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, LATENESS_MS).expect("a valid ladder"),
            grid: grid(),
            judge: JudgeOptions {
                min_events: 10,
                ..JudgeOptions::default()
            },
        }],
        caps: Caps {
            streams_max,
            ..Caps::default()
        },
        joins: Vec::new(),
        ids: Vec::new(),
    }
}

fn rolled(max: usize) -> Segmenting {
    Segmenting {
        rollup: true,
        max,
        other: true,
    }
}

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
        weight: None,
        cluster: None,
        model: "m",
        version: VERSIONS[r.version],
        segment: SEGMENTS[r.segment],
        id: b"",
        time_ms: r.time_ms,
        arrival_ms: None,
        prediction: Prediction::Score(r.score),
        outcome: Some(Outcome::Binary(r.outcome)),
    };
    let origin = Origin {
        source: 0,
        partition: r.partition,
        offset,
    };
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

/// Begin, number of events as judged, and sums of what is held of it, by stream and window.
type Totals = BTreeMap<(StreamId, String), (i64, u64, Sums)>;

fn totals(engine: &Engine) -> Totals {
    let all = engine.totals();
    all.map(|(id, w, sums)| ((id.clone(), w.window.clone()), (w.start_ms, w.n, sums)))
        .collect()
}

/// Sums of all segments of a version, by window.
fn summed(totals: &Totals, version: &str, window: &str) -> Sums {
    let mut sum = Sums::new(grid());
    for ((id, name), (_, _, sums)) in totals {
        let segmented = id.segment != ROLL_UP && !id.segment.is_empty();
        if id.version == version && segmented && name == window {
            sum.merge(sums).expect("no overflow");
        }
    }
    sum
}

fn restarted(engine: &Engine) -> Engine {
    Engine::restore(engine.plan().clone(), engine.snapshot()).expect("a sound snapshot")
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
            // Of a window that slid at the very end the oldest pane has been dropped since.
            prop_assert!(&raw == sums || sums.n() < *n, "raw events of {id} in {window}");
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

/// An event of a version and segment, a tenth of a second apart.
fn event<'a>(i: i64, version: &'a str, segment: &'a str) -> Event<'a> {
    Event {
        weight: None,
        cluster: None,
        model: "m",
        version,
        segment,
        id: b"",
        time_ms: BEGIN_MS + i * 100,
        arrival_ms: None,
        prediction: Prediction::Score((i as f64 * 0.618).fract()),
        outcome: Some(Outcome::Binary(i % 2 == 0)),
    }
}

fn at(offset: i64) -> Origin {
    Origin {
        source: 0,
        partition: 0,
        offset,
    }
}

fn one(engine: &mut Engine, i: i64, version: &str, segment: &str) -> Disposition {
    engine.observe(at(i), &event(i, version, segment))
}

fn streams(engine: &mut Engine) -> Vec<String> {
    engine.tick(BEGIN_MS);
    let mut all: Vec<String> = engine.reports().map(|r| r.id.to_string()).collect();
    all.sort();
    all
}

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
        let n = |r: &StreamReport| (r.id.to_string(), r.windows[2].n);
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
        let of = |r: &&StreamReport| r.id.version == version && r.id.segment == segment;
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

#[test]
fn late_outcomes_correct_the_roll_up_with_their_segment() {
    let mut with_join = plan(rolled(3), 1000);
    with_join.joins = vec![JoinPlan {
        predictions: 0,
        outcomes: 1,
        maturity_ms: 5_000,
        missing: Missing::Class(0),
        repeated: Repeated::First,
        revise: true,
        by_model: false,
        model: None,
        pending_max: 100_000,
        pending_memory: usize::MAX,
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
        Origin {
            source,
            partition: 0,
            offset: *offset,
        }
    };
    for i in 0..4_000u32 {
        let time_ms = BEGIN_MS + i64::from(i) * 15;
        let event = Event {
            weight: None,
            cluster: None,
            model: "m",
            version: "1",
            segment: SEGMENTS[i as usize % SEGMENTS.len()],
            id: &i.to_le_bytes(),
            time_ms,
            arrival_ms: None,
            prediction: Prediction::Score(rng.uniform()),
            outcome: None,
        };
        assert_eq!(engine.observe(origin(0), &event), Disposition::Pending);
        // Half of the outcomes in time, half of them late.
        later.push((time_ms + 10 + (rng.uniform() * 12_000.0) as i64, i));
        later.sort_unstable();
        while let Some(&(at_ms, id)) = later.first().filter(|(at, _)| *at <= time_ms) {
            later.remove(0);
            let label = Label {
                model: None,
                id: &id.to_le_bytes(),
                time_ms: at_ms,
                arrival_ms: None,
                outcome: Outcome::Binary(rng.uniform() < 0.5),
            };
            engine.label(origin(1), &label);
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

/// What an adversary is held against: all that `check` adds up, with few streams and pending predictions.
const ADVERSARY: &str = r#"version = 1
[kafka]
brokers = "b:1"
[[source]]
topics = "p"
[source.fields]
id = "id"
score = "s"
version = "v"
segments = ["k"]
[source.outcomes]
topics = "o"
maturity = "10m"
pending_max = 3000
[[model]]
name = "*"
level = 6
windows = ["5m", "1h", "24h"]
segments_max = 40
[limits]
streams_max = 200
stream_expiry = "6h"
series_max = 20000
"#;

/// The same with outcomes at hand and all that is kept of vectors.
const ADVERSARY_OF_CLASSES: &str = r#"version = 1
[kafka]
brokers = "b:1"
[[source]]
topics = "p"
[source.fields]
id = "id"
probabilities = "s"
outcome = "y"
version = "v"
segments = ["k"]
[[model]]
name = "*"
classes = ["a", "b", "c"]
views = ["top_label", "full", "top_k:2", "kernel"]
level = 6
windows = ["5m", "1h", "24h"]
segments_max = 40
[model.kernel]
sample = 200
bandwidth = 0.5
features = 8
[limits]
streams_max = 200
stream_expiry = "6h"
series_max = 20000
"#;

/// Ids, segments and versions that an adversary invents in a day.
const NAMES: i64 = 100_000;

/// Puts a day of invented names through an engine, `send` writing the records of each, and holds it
/// against every bound that `check` prints.
fn a_day_of_an_adversary(config: &str, send: impl Fn(&mut Engine, i64, Event<'_>, &mut Rng)) {
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::new(),
    };
    let config = Config::parse(config, "adversary.toml", &outside).expect("sound");
    let bound = MemoryBound::of(&config);
    let vectors = config.plan.models[0].views.iter().filter(|v| v.is_vector());
    // A version has each vector view once, whatever its segments.
    let streams_max = bound.streams_max as usize * (1 + vectors.count());
    let mut engine = Engine::new(config.plan.clone());
    engine.assign((0, 0).into());
    engine.assign((1, 0).into());
    let mut rng = Rng::new(11);
    let day_ms = 86_400_000i64;
    let (mut most, mut streams_most, mut series_most) = (0, 0, 0.0f64);
    for i in 0..NAMES {
        let time_ms = BEGIN_MS + i * day_ms / NAMES;
        // Every id is new, and of every five records one names a new segment, one a new version, one both.
        let (version, segment) = match i % 5 {
            0 => ("1".to_owned(), format!("k={i}")),
            1 => (format!("{i}"), "k=de".to_owned()),
            2 => (format!("{i}"), format!("k={i}")),
            _ => ("1".to_owned(), format!("k={}", i % 7)),
        };
        let event = Event {
            weight: None,
            cluster: None,
            model: "m",
            version: &version,
            segment: &segment,
            id: &i.to_le_bytes(),
            time_ms,
            arrival_ms: None,
            prediction: Prediction::Score(0.5),
            outcome: None,
        };
        send(&mut engine, i, event, &mut rng);
        if i % 100 == 0 {
            engine.tick(time_ms);
            engine.take_journals();
        }
        if i % 1000 == 999 {
            most = most.max(engine.bytes() as u64);
            streams_most = streams_most.max(engine.reports().count());
        }
        if i % 10_000 == 9_999 {
            series_most = series_most.max(series(&engine, config.http.series_max));
        }
    }
    engine.finish();
    let total = engine.counters().total();
    assert_eq!(total.records, total.disposed());
    println!(
        "{most} of {} bytes, {streams_most} of {streams_max} streams, {series_most} of {} series; {} in other, {} refused",
        bound.state(),
        config.http.series_max,
        total.other,
        total.refused(Refusal::Streams)
    );
    assert!(most <= bound.state(), "{most} > {}", bound.state());
    assert!(streams_most <= streams_max, "{streams_most}");
    assert!(series_most <= config.http.series_max as f64);
    // The cap did bite, and what it kept out of streams of their own is in other.
    assert!(total.other > 5_000 && total.refused(Refusal::Streams) > 10_000);
}

#[test]
fn invented_ids_segments_and_versions_stay_under_the_printed_bounds() {
    a_day_of_an_adversary(ADVERSARY, |engine, i, event, rng| {
        let at = |source| Origin {
            source,
            partition: 0,
            offset: i,
        };
        let prediction = Prediction::Score(rng.uniform());
        engine.observe(
            at(0),
            &Event {
                prediction,
                ..event
            },
        );
        // Every other outcome is of no prediction at all.
        let of = if i % 2 == 0 { i } else { -i };
        let label = Label {
            model: None,
            id: &of.to_le_bytes(),
            time_ms: event.time_ms + 1,
            arrival_ms: None,
            outcome: Outcome::Binary(rng.uniform() < 0.5),
        };
        engine.label(at(1), &label);
        assert_eq!(engine.counters().total().records, 2 * (i as u64 + 1));
    });
}

#[test]
fn invented_ids_with_vectors_of_three_classes_stay_under_the_printed_bounds() {
    a_day_of_an_adversary(ADVERSARY_OF_CLASSES, |engine, i, event, rng| {
        let (a, b) = (rng.uniform(), rng.uniform());
        let (low, high) = (a.min(b), a.max(b));
        let event = Event {
            prediction: Prediction::Vector(&[low, high - low, 1.0 - high]),
            outcome: Some(Outcome::Class((rng.uniform() * 3.0) as u32)),
            ..event
        };
        let origin = Origin {
            source: 0,
            partition: 0,
            offset: i,
        };
        engine.observe(origin, &event);
    });
}

/// Series of streams and windows on /metrics.
fn series(engine: &Engine, series_max: usize) -> f64 {
    let published = Published::new(Limits {
        series_max,
        ..Limits::default()
    });
    for report in engine.reports() {
        published.publish(Arc::new(report.clone()));
    }
    let text = collector::text(&published).expect("a text");
    let text = String::from_utf8(text).expect("UTF-8");
    text.lines().filter(|l| l.contains("window=\"")).count() as f64
}
