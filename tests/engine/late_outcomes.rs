//! Outcomes that come late, through the engine: any order, restarts, revisions, the bias of young
//! windows.

use crate::support::disk::Feed;
use crate::support::records::{EVENT, JOIN, origin, outcome_record};
use trueline::collect::join::{JoinPlan, Missing};
use trueline::collect::{Disposition, Event, Origin, Segmenting};
use trueline::judge::{
    DetectorOptions, DetectorState, JudgeOptions, Step, StreamId, Undecided, Verdict, WindowReport,
};
use trueline::monitor::{Engine, LocalShard, ModelPlan, PartitionEvent, Plan, RecordSink, Shards};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::clusters::Bucket;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_000_000 / 3_600_000 * 3_600_000;
const MINUTE: i64 = 60_000;

fn plan(maturity_ms: i64, missing: Missing, revise: bool) -> Plan {
    let windows = vec![
        WindowSpec::time("10m", 10 * MINUTE),
        WindowSpec::time("2h", 120 * MINUTE),
    ];
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Segmenting::default(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, 10_000).expect("a valid ladder"),
            grid: Grid::new(Axis::Linear, 8),
            judge: JudgeOptions {
                detector: Some(DetectorOptions::alone("1 per 30d".parse().unwrap(), 0.05)),
                stale_after_ms: i64::MAX,
                ..JudgeOptions::plain()
            },
        }],
        joins: vec![JoinPlan {
            maturity_ms,
            missing,
            revise,
            ..JOIN
        }],
        ..Plan::default()
    }
}

/// The same plan for clustered events.
fn clustered(mut plan: Plan) -> Plan {
    let model = &mut plan.models[0];
    model.grid = model.grid.clustered();
    plan
}

/// A prediction, or the outcome of one.
#[derive(Debug, Clone, Copy)]
struct Record {
    id: u32,
    time_ms: i64,
    said: Said,
}

#[derive(Debug, Clone, Copy)]
enum Said {
    Score(f64),
    Happened(bool),
}

/// Calibrated predictions, one every 50 ms; positives come after `positive_ms` on average,
/// negatives after `negative_ms`, each with an exponential delay; `missing` of them never.
fn records(n: u32, positive_ms: f64, negative_ms: f64, missing: f64, seed: u64) -> Vec<Record> {
    let mut rng = Rng::new(seed);
    let mut all = Vec::new();
    for id in 0..n {
        let time_ms = BEGIN_MS + i64::from(id) * 50;
        let score = rng.uniform();
        let happened = rng.uniform() < score;
        let said = Said::Score(score);
        all.push(Record { id, time_ms, said });
        let mean = if happened { positive_ms } else { negative_ms };
        let delay = -mean * (1.0 - rng.uniform()).ln();
        if rng.uniform() >= missing {
            let (time_ms, said) = (time_ms + delay as i64, Said::Happened(happened));
            all.push(Record { id, time_ms, said });
        }
    }
    all.sort_by_key(|r| r.time_ms);
    all
}

/// The source of a record's topic.
fn source(record: &Record) -> u16 {
    u16::from(matches!(record.said, Said::Happened(_)))
}

/// Shows a record that was read here.
fn show(sink: &mut impl RecordSink, origin: Origin, record: &Record) {
    let &Record { id, time_ms, said } = record;
    let bytes = id.to_le_bytes();
    match said {
        Said::Score(score) => {
            let event = Event {
                cluster: Some(Bucket::of(&(id / 50).to_le_bytes())),
                model: "m",
                id: &bytes,
                time_ms,
                prediction: Prediction::Score(score),
                ..EVENT
            };
            sink.observe(origin, &event);
        }
        Said::Happened(y) => {
            sink.observe_outcome(origin, &outcome_record(&bytes, time_ms, Outcome::Binary(y)));
        }
    }
}

fn take(feed: &mut Feed, record: &Record) {
    let origin = feed.next(source(record));
    show(&mut feed.engine, origin, record);
}

fn finish(feed: &mut Feed) -> Vec<(String, Sums)> {
    feed.engine.finish();
    feed.conserved();
    let totals = feed.engine.monitor().totals();
    totals.map(|(_, w, s)| (w.window.clone(), s)).collect()
}

/// What the detectors know, late outcomes included.
fn detectors(feed: &Feed) -> Vec<DetectorState> {
    let streams = feed.engine.snapshot().streams.into_iter();
    let judges = streams.flat_map(|s| s.judges);
    judges.filter_map(|j| j.detector).collect()
}

/// Without printing thousands of cells where they differ.
fn same(left: &[(String, Sums)], right: &[(String, Sums)], what: &str) {
    let ns = |all: &[(String, Sums)]| -> Vec<_> {
        all.iter().map(|(w, s)| (w.clone(), s.n())).collect()
    };
    assert_eq!(ns(left), ns(right), "{what}");
    assert!(left == right, "{what}: same numbers of events, other sums");
}

fn counts(feed: &Feed) -> Vec<(u16, trueline::collect::SourceCounters)> {
    let counters = feed.engine.counters();
    let sources = counters.sources();
    sources.map(|(source, c)| (source, c.clone())).collect()
}

/// Swaps records that lie near each other in time: within the lateness of ten seconds.
fn shuffle(records: &[Record], seed: u64) -> Vec<Record> {
    let mut rng = Rng::new(seed);
    let mut keyed: Vec<(i64, Record)> = records
        .iter()
        .map(|r| (r.time_ms + (rng.uniform() * 9_000.0) as i64, *r))
        .collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, r)| r).collect()
}

#[test]
fn arrival_order_and_restarts_change_no_bit() {
    let all = records(20_000, 20_000.0, 60_000.0, 0.1, 7);
    for (missing, revise, by_cluster) in [
        (Missing::Drop, false, false),
        (Missing::Class(0), false, true),
        (Missing::Class(0), true, false),
        (Missing::Drop, true, false),
        (Missing::Class(0), true, true),
    ] {
        let plan = || match plan(2 * MINUTE, missing, revise) {
            plan if by_cluster => clustered(plan),
            plan => plan,
        };
        let mut straight = Feed::new(plan());
        all.iter().for_each(|r| take(&mut straight, r));
        let expected = finish(&mut straight);
        assert!(expected.iter().all(|(_, s)| s.n() > 1000), "the test bites");
        let kept = |s: &Sums| s.clusters().map(|c| c.n());
        let whole = |(_, s): &(String, Sums)| kept(s) == by_cluster.then_some(s.n());
        assert!(expected.iter().all(whole), "each event is in one cluster");
        let c = &counts(&straight)[0].1;
        assert!(
            c.pending == 0 && (c.expired > 500 || c.implied > 500),
            "{c:?}"
        );
        assert_eq!(counts(&straight)[1].1.revised > 100, revise);
        let detectors_of_one = detectors(&straight);
        assert_eq!(detectors_of_one.len(), 1);
        for seed in [1, 2] {
            let mut feed = Feed::new(plan());
            for (i, record) in shuffle(&all, seed).iter().enumerate() {
                take(&mut feed, record);
                if i % 3001 == 3000 {
                    feed.restart();
                    feed.conserved();
                }
            }
            same(
                &finish(&mut feed),
                &expected,
                &format!("{missing:?} revise {revise}"),
            );
            assert_eq!(counts(&feed), counts(&straight));
            assert!(
                detectors(&feed) == detectors_of_one,
                "{missing:?} revise {revise}"
            );
        }
    }
}

#[test]
fn revisions_end_where_patience_would_have() {
    // The same outcomes, once with a horizon that all come within, once with revisions.
    let all = records(20_000, 60_000.0, 60_000.0, 0.0, 11);
    let mut patient = Feed::new(clustered(plan(30 * MINUTE, Missing::Class(0), false)));
    let mut hasty = Feed::new(clustered(plan(MINUTE, Missing::Class(0), true)));
    for record in &all {
        take(&mut patient, record);
        take(&mut hasty, record);
    }
    let (patient, revised) = (finish(&mut patient), finish(&mut hasty));
    assert!(counts(&hasty)[1].1.revised > 1000);
    let wide = |all: &[(String, Sums)]| all[1].1.clone();
    assert!(wide(&patient) == wide(&revised));
}

/// Whether any window of a run was ever called miscalibrated, and how many were judged.
fn alarms(plan: Plan, records: &[Record]) -> (bool, u64) {
    let mut feed = Feed::new(plan);
    let mut alarmed = false;
    let mut look = |changes: Vec<trueline::judge::Change>| {
        alarmed |= changes.iter().any(|c| {
            matches!(
                c.step,
                Step::Verdict {
                    to: Verdict::Miscalibrated,
                    ..
                }
            )
        });
    };
    for record in records {
        take(&mut feed, record);
        look(feed.engine.tick(record.time_ms));
    }
    (alarmed, feed.engine.counters().evaluations)
}

#[test]
fn positives_that_come_sooner_alarm_without_maturity_and_not_with_it() {
    // Positives after half a minute, negatives after five: ten times later.
    let all = records(72_000, 0.5 * MINUTE as f64, 5.0 * MINUTE as f64, 0.0, 3);
    let mut strict = plan(40 * MINUTE, Missing::Drop, false);
    let mut none = plan(MINUTE, Missing::Drop, false);
    for plan in [&mut strict, &mut none] {
        // Twenty windows are judged: one test of each at 0.1 % is below 2 % over all.
        plan.models[0].judge.evaluation.tcal.alpha = 0.001;
        plan.models[0].judge.coverage_min = 0.0;
    }
    let (alarmed, judged) = alarms(strict, &all);
    assert!(
        !alarmed && judged > 10,
        "with maturity: {alarmed}, {judged} judged"
    );
    let (alarmed, judged) = alarms(none, &all);
    assert!(
        alarmed && judged > 10,
        "without: {alarmed}, {judged} judged"
    );
}

#[test]
fn a_stream_whose_outcomes_are_not_due_is_immature_and_says_until_when() {
    let mut feed = Feed::new(plan(30 * MINUTE, Missing::Drop, false));
    for record in records(1000, 1000.0, 1000.0, 0.0, 5) {
        take(&mut feed, &record);
    }
    feed.engine.tick(BEGIN_MS);
    let report = feed.engine.reports().next().expect("a stream");
    let immature = Verdict::Undecided(Undecided::Immature);
    assert!(report.windows.iter().all(|w| w.verdict == immature));
    // The first pane is 100 s long (a sixth of ten minutes), lateness 10 s.
    assert_eq!(
        report.due_ms,
        Some(BEGIN_MS + 100_000 + 10_000 + 30 * MINUTE)
    );
}

#[test]
fn segments_of_which_no_event_was_taken_are_no_streams_of_the_monitor() {
    let mut plan = plan(30 * MINUTE, Missing::Drop, false);
    plan.models[0].segmenting.max = 1000;
    let mut engine = Engine::new(plan);
    engine.assign((0, 0).into());
    for i in 0..100 {
        let event = Event {
            id: b"one",
            segment: &format!("k={i}"),
            time_ms: BEGIN_MS + i,
            ..EVENT
        };
        let end = engine.observe(origin(0, 0, i), &event);
        assert_eq!(end == Disposition::Pending, i == 0);
        engine.tick(i);
    }
    assert_eq!(engine.reports().count(), 1);
}

#[test]
fn an_outcome_of_a_stream_without_events_for_long_goes_into_no_other_stream() {
    let mut plan = plan(MINUTE, Missing::Drop, true);
    let windows = vec![
        WindowSpec::time("5m", 5 * MINUTE),
        WindowSpec::time("24h", 24 * 60 * MINUTE),
    ];
    plan.models[0].ladder = Ladder::new(windows, 10_000).expect("a valid ladder");
    plan.caps.expire_after_ms = 60 * MINUTE;
    let mut engine = Engine::new(plan);
    let mut offsets = [0; 2];
    let mut next = |source: usize| {
        offsets[source] += 1;
        origin(source as u16, 0, offsets[source] - 1)
    };
    let mut predict = |engine: &mut Engine, version, id: u32, minute: i64| {
        let event = Event {
            version,
            id: &id.to_le_bytes(),
            time_ms: BEGIN_MS + minute * MINUTE,
            ..EVENT
        };
        engine.observe(next(0), &event);
        engine.tick(event.time_ms);
    };
    (0..50).for_each(|id| predict(&mut engine, "old", id, 0));
    (1..120).for_each(|minute| predict(&mut engine, "other", 1000 + minute as u32, minute));
    (120..140).for_each(|minute| predict(&mut engine, "new", 1000 + minute as u32, minute));
    for id in 0..50u32 {
        let (bytes, outcome) = (id.to_le_bytes(), Outcome::Binary(true));
        let record = outcome_record(&bytes, BEGIN_MS + 130 * MINUTE, outcome);
        engine.observe_outcome(origin(1, 0, i64::from(id)), &record);
    }
    engine.finish();
    assert_eq!(engine.counters().source(1).revised, 50);
    for (version, n) in [("old", 50), ("new", 0)] {
        let of = |w: &(&StreamId, &WindowReport, Sums)| w.0.version == version;
        let mut all = engine
            .monitor()
            .totals()
            .filter(of)
            .filter(|w| w.1.window == "24h");
        assert_eq!(all.next().expect("a window").2.n(), n, "{version}");
    }
    let mut new = engine.reports().filter(|r| r.id.version == "new");
    let detector = new.next().expect("a stream").detector.clone();
    assert_eq!(detector.map_or(0, |d| d.missed.added), 0);
}

/// Two versions score the same ids, the second when those of the first are mature. It has their
/// outcomes: in its own records, or apart.
fn versions(plan: Plan, own: bool) -> Engine {
    let mut engine = Engine::new(plan);
    let ids: Vec<u32> = (0..200).collect();
    let mut offsets = [0; 2];
    let mut next = |source: usize| {
        offsets[source] += 1;
        origin(source as u16, 0, offsets[source] - 1)
    };
    let mut predict = |engine: &mut Engine, version, id: u32, ms, outcome| {
        let event = Event {
            version,
            id: &id.to_le_bytes(),
            time_ms: BEGIN_MS + ms,
            prediction: Prediction::Score(f64::from(id) / 200.0),
            outcome,
            ..EVENT
        };
        engine.observe(next(0), &event);
    };
    for id in &ids {
        predict(&mut engine, "1", *id, i64::from(*id), None);
    }
    // The predictions of the first version are mature long before.
    let mut labels = Vec::new();
    for id in &ids {
        let (ms, outcome) = (20 * MINUTE + i64::from(*id), Outcome::Binary(id % 3 == 0));
        predict(&mut engine, "2", *id, ms, own.then_some(outcome));
        labels.push((*id, ms, outcome));
    }
    for (id, ms, outcome) in labels.into_iter().filter(|_| !own) {
        let bytes = id.to_le_bytes();
        let record = outcome_record(&bytes, BEGIN_MS + ms, outcome);
        engine.observe_outcome(origin(1, 0, i64::from(id)), &record);
    }
    engine.finish();
    engine
}

#[test]
fn an_outcome_that_comes_with_a_prediction_revises_others_as_one_apart_does() {
    let plan = || plan(MINUTE, Missing::Drop, true);
    let totals = |engine: &Engine| -> Vec<(String, String, Sums)> {
        let all = engine.monitor().totals();
        all.map(|(id, w, s)| (id.to_string(), w.window.clone(), s))
            .collect()
    };
    let (apart, own) = (versions(plan(), false), versions(plan(), true));
    assert_eq!(apart.counters().source(1).matched, 200);
    // Nothing of the first version was counted when it matured.
    let all = totals(&apart)
        .into_iter()
        .filter(|(_, window, _)| window == "2h");
    assert_eq!(all.map(|(.., s)| s.n()).collect::<Vec<_>>(), [200, 200]);
    assert!(totals(&own) == totals(&apart));
}

#[test]
fn missing_outcomes_are_shown_by_score_and_below_the_floor_there_is_no_verdict() {
    // Low scores never get an outcome: applications that were turned down.
    let all: Vec<Record> = records(40_000, 1000.0, 1000.0, 0.0, 9)
        .into_iter()
        .filter(|r| source(r) == 0 || r.id % 3 == 0)
        .collect();
    let mut feed = Feed::new(plan(MINUTE, Missing::Drop, false));
    all.iter().for_each(|r| take(&mut feed, r));
    feed.engine.finish();
    let report = feed.engine.reports().next().expect("a stream");
    let window = &report.windows[1];
    assert_eq!(window.verdict, Verdict::Undecided(Undecided::Coverage));
    let coverage = window.coverage.as_ref().expect("outcomes are missing");
    assert_eq!(coverage.predictions, coverage.labelled + coverage.dropped);
    assert!((coverage.share() - 1.0 / 3.0).abs() < 0.01, "{coverage:?}");
    let cells: u64 = coverage.cells.iter().map(|c| c.predictions).sum();
    assert_eq!(cells, coverage.predictions);
}

#[test]
fn a_partition_with_nothing_to_read_holds_no_prediction_back_from_the_detector() {
    // One record a second. Partition 1 has every other one of the first 200. Every tenth has no
    // outcome.
    let begin = |id: u32| BEGIN_MS + 1000 * i64::from(id);
    let of = |id: u32| {
        let record = |time_ms, said| Record { id, time_ms, said };
        let happened = Said::Happened(id.is_multiple_of(2));
        let outcome = record(begin(id) + 100, happened);
        let outcome = (id % 10 != 9).then_some(outcome);
        (record(begin(id), Said::Score(0.5)), outcome)
    };
    let mut shards = Shards::new(plan(MINUTE, Missing::Class(0), false), vec![0, 0]);
    for partition in [0, 1] {
        let mut shard = LocalShard::new((0, partition).into(), shards.plan(), Vec::new(), None);
        for source in [0, 1] {
            shard.assign((source, partition).into());
        }
        shards.adopt(shard, Vec::new());
    }
    let mut offsets = [[0; 2]; 2];
    let mut read = |shards: &mut Shards, partition: usize, id: u32| {
        let shard = shards.get_mut((0, partition as i32).into()).expect("ours");
        let (prediction, outcome) = of(id);
        let records = [Some(prediction), outcome];
        for (offset, record) in offsets[partition].iter_mut().zip(records) {
            if let Some(record) = record {
                let origin = origin(source(&record), partition as i32, *offset);
                show(shard, origin, &record);
                *offset += 1;
            }
        }
    };
    for id in 0..200 {
        read(&mut shards, (id % 2) as usize, id);
    }
    let shard = shards.get_mut((0, 1).into()).expect("ours");
    for source in [0, 1] {
        shard.on_partition((source, 1).into(), PartitionEvent::Ended);
    }
    for id in 200..1000 {
        read(&mut shards, 0, id);
        shards.advance();
    }
    let report = shards.reports().next().expect("a stream");
    let detector = report.detector.as_ref().expect("a detector");
    assert_eq!(detector.missed.added, 0, "{:?}", detector.missed);
    // The first pane is 100 s long; those before the last full one within lateness and maturity are
    // judged.
    let window = &report.windows[1];
    let seconds = (window.end_ms - BEGIN_MS) / 1000;
    assert_eq!((window.n, seconds), (900, 900));
}
