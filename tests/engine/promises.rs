//! The promises of the engine, on generated events with disorder, duplicates and restarts.
//!
//! Each law compares the whole engine with another way of reaching the same state: another order,
//! another split over partitions, a restart, a recomputation from the raw events. "The same" is
//! equality of every integer sum, verdict and p-value, not closeness.

use proptest::prelude::*;
use trueline::alert::AlertState;
use trueline::collect::{Disposition, Event, Origin, Reason, Segmenting};
use trueline::judge::{Change, JudgeOptions, StreamReport, WindowReport, seed};
use trueline::monitor::{Caps, Engine, ModelPlan, Plan};
use trueline::stats::algebra::{Merge, Retract};
use trueline::stats::attribute::Attribute;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::clusters::Bucket;
use trueline::stats::evaluation::evaluate;
use trueline::stats::fixed::Score;
use trueline::stats::sums::Sums;
use trueline::stats::view::{Outcome, Prediction, View, project};
use trueline::window::{Ladder, Width, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_000_000;
const LATENESS_MS: i64 = 2_500;
const SOURCE: u16 = 0;

#[derive(Debug, Clone)]
struct Record {
    model: usize,
    time_ms: i64,
    /// Added to the time for the order of arrival.
    delay_ms: i64,
    score: f64,
    outcome: bool,
    partition: i32,
}

fn plan() -> Plan {
    let windows = vec![
        WindowSpec::time("6s", 6_000),
        WindowSpec::time("36s", 36_000),
        WindowSpec::time("72s", 72_000),
        WindowSpec::last(40),
    ];
    let model = |name: &str, views: Vec<View>, axis| ModelPlan {
        name: name.to_owned(),
        segmenting: Segmenting::default(),
        views,
        classes: Vec::new(),
        ladder: Ladder::new(windows.clone(), LATENESS_MS).unwrap(),
        grid: Grid::new(axis, 8),
        judge: JudgeOptions {
            min_events: 10,
            pending_ms: 2_000,
            keep_firing_ms: 2_000,
            ..JudgeOptions::default()
        },
    };
    let logit = Axis::Logit {
        low: 1e-4,
        high: 0.9,
    };
    let mut two = model("two", vec![View::TopLabel, View::Class(1)], Axis::Linear);
    two.grid = two.grid.clustered();
    Plan {
        joins: Vec::new(),
        ids: Vec::new(),
        models: vec![
            model("one", vec![View::Binary], Axis::Linear),
            two,
            model("*", vec![View::Binary], logit),
        ],
        caps: Caps::default(),
    }
}

const MODELS: [(&str, &str); 4] = [("one", "1"), ("one", "2"), ("two", ""), ("other", "")];

impl Record {
    /// One of twenty users; only the model "two" looks at them.
    fn cluster(&self) -> Bucket {
        Bucket::of(&(self.time_ms % 20).to_le_bytes())
    }
}

fn feed(engine: &mut Engine, partition: i32, offset: i64, r: &Record) -> Disposition {
    let (model, version) = MODELS[r.model];
    let vector = [1.0 - r.score, r.score];
    let event = Event {
        weight: None,
        cluster: Some(r.cluster()),
        model,
        version,
        segment: "",
        id: b"",
        time_ms: r.time_ms,
        arrival_ms: None,
        prediction: if model == "two" {
            Prediction::Vector(&vector)
        } else {
            Prediction::Score(r.score)
        },
        outcome: Some(Outcome::Binary(r.outcome)),
    };
    let origin = Origin {
        source: SOURCE,
        partition,
        offset,
    };
    engine.observe(origin, &event)
}

/// What must be the same.
#[derive(Debug, PartialEq)]
struct Result {
    reports: Vec<StreamReport>,
    sums: Vec<(String, Sums)>,
    changes: Vec<String>,
}

fn result(engine: &mut Engine, mut changes: Vec<Change>) -> Result {
    changes.extend(engine.finish());
    let mut told: Vec<_> = changes
        .iter()
        .map(|c| {
            (
                c.at_ms,
                c.stream.clone(),
                c.window.clone(),
                c.sentence.clone(),
            )
        })
        .collect();
    // Streams are walked in the order in which they began, which the order of arrival decides.
    told.sort();
    let mut reports: Vec<_> = engine.reports().cloned().collect();
    reports.sort_by(|a, b| a.id.cmp(&b.id));
    let mut sums: Vec<_> = engine
        .totals()
        .map(|(id, report, sums)| (format!("{id} {}", report.window), sums))
        .collect();
    sums.sort_by(|a, b| a.0.cmp(&b.0));
    Result {
        reports,
        sums,
        changes: told.into_iter().map(|t| t.3).collect(),
    }
}

fn run(records: &[Record], partitions: i32) -> Result {
    let mut engine = Engine::new(plan());
    (0..partitions).for_each(|p| assert_eq!(engine.assign((SOURCE, p).into()), None));
    let mut changes = Vec::new();
    for (offset, r) in (0..).zip(records) {
        let end = feed(&mut engine, r.partition % partitions, offset, r);
        assert_eq!(end, Disposition::Observed);
        // Ticks at odd moments must not matter.
        if offset % 7 == 3 {
            changes.extend(engine.tick(r.time_ms));
        }
    }
    result(&mut engine, changes)
}

/// Verdicts and alerts, which a restart must not change even where it has to wait for the numbers.
fn published(engine: &Engine) -> Vec<(String, String, u64, i64, AlertState)> {
    let windows = engine.reports().flat_map(|r| {
        let row = |w: &WindowReport| {
            let name = format!("{} {}", r.id, w.window);
            (name, w.verdict.to_string(), w.n, w.end_ms, w.alert)
        };
        r.windows.iter().map(row)
    });
    windows.collect()
}

fn records(n: usize, delay_max_ms: i64) -> impl Strategy<Value = Vec<Record>> {
    let record = (
        0..MODELS.len(),
        0i64..90_000,
        0..delay_max_ms,
        0.0..=1.0f64,
        any::<bool>(),
        0i32..1000,
    );
    let record = record.prop_map(|(model, at, delay_ms, score, outcome, partition)| Record {
        model,
        time_ms: BEGIN_MS + at,
        delay_ms,
        // Few distinct scores in half of the models, so that the exact test runs too.
        score: if model % 2 == 0 {
            score
        } else {
            (score * 8.0).round() / 8.0
        },
        outcome,
        partition,
    });
    proptest::collection::vec(record, 1..n)
}

fn in_order(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|r| r.time_ms);
    records
}

fn as_they_arrive(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|r| r.time_ms + r.delay_ms);
    records
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn order_within_the_lateness_does_not_matter(r in records(600, LATENESS_MS)) {
        let shuffled = run(&as_they_arrive(r.clone()), 1);
        prop_assert_eq!(run(&in_order(r), 1), shuffled);
    }

    #[test]
    fn the_split_over_partitions_does_not_matter(r in records(600, LATENESS_MS), partitions in 2i32..6) {
        let split = run(&as_they_arrive(r.clone()), partitions);
        prop_assert_eq!(run(&in_order(r), 1), split);
    }

    #[test]
    fn a_restart_anywhere_does_not_matter(
        r in records(600, 3 * LATENESS_MS), at in 0.0..1.0f64, again in 0usize..50
    ) {
        let r = as_they_arrive(r);
        let cut = (r.len() as f64 * at) as usize;
        let whole = |cuts: bool| {
            let mut engine = Engine::new(plan());
            engine.assign((SOURCE, 0).into());
            let mut changes = Vec::new();
            for (offset, record) in r.iter().enumerate() {
                if cuts && offset == cut {
                    changes.extend(engine.tick(BEGIN_MS));
                    let before = published(&engine);
                    engine = Engine::restore(plan(), engine.snapshot()).unwrap();
                    assert_eq!(before, published(&engine));
                    let next = engine.assign((SOURCE, 0).into()).unwrap_or(0);
                    assert_eq!(next, cut as i64);
                    // A source that does not seek gives old records again.
                    let first = cut.saturating_sub(again);
                    for (old, record) in (first as i64..).zip(&r[first..cut]) {
                        let end = feed(&mut engine, 0, old, record);
                        assert_eq!(end, Disposition::Replayed);
                    }
                }
                feed(&mut engine, 0, offset as i64, record);
            }
            let mut total = engine.counters().total();
            assert_eq!(total.records, total.disposed());
            total.records -= total.replayed;
            total.replayed = 0;
            (result(&mut engine, changes), total)
        };
        prop_assert_eq!(whole(false), whole(true));
    }

    #[test]
    fn a_window_is_its_recomputation_from_the_accepted_events(r in records(800, 4 * LATENESS_MS)) {
        let mut engine = Engine::new(plan());
        let (mut accepted, mut late) = (Vec::new(), 0);
        for (offset, record) in (0..).zip(as_they_arrive(r)) {
            match feed(&mut engine, 0, offset, &record) {
                Disposition::Observed => accepted.push(record),
                Disposition::Late => late += 1,
                end => prop_assert!(false, "{end:?}"),
            }
        }
        engine.finish();
        let total = engine.counters().total();
        prop_assert_eq!((total.observed, total.late), (accepted.len() as u64, late));
        let plan = plan();
        for (id, report, sums) in engine.totals() {
            let grid = sums.grid();
            let within = |begin: i64| {
                let mut sums = Sums::new(grid);
                for record in &accepted {
                    let (model, version) = MODELS[record.model];
                    let mine = (model, version) == (id.model.as_str(), id.version.as_str());
                    if mine && begin <= record.time_ms && record.time_ms < report.end_ms {
                        let vector = [1.0 - record.score, record.score];
                        let prediction = if model == "two" {
                            Prediction::Vector(&vector)
                        } else {
                            Prediction::Score(record.score)
                        };
                        let outcome = Outcome::Binary(record.outcome);
                        let (z, y) = project(id.view, &prediction, outcome).unwrap();
                        let attribute = match grid.is_clustered() {
                            true => Attribute::Cluster(record.cluster()),
                            false => Attribute::None,
                        };
                        sums.observe_with(z, y, attribute).unwrap();
                    }
                }
                sums
            };
            let again = within(report.start_ms);
            prop_assert_eq!(report.n, again.n(), "{} {}", id, report.window);
            if let Some(evaluation) = report.scores() {
                prop_assert_eq!(evaluation.clusters.is_some(), id.model == "two");
                let mut options = plan.models[0].judge.evaluation.clone();
                options.tcal.seed = seed(id, &report.window, report.end_ms, 0);
                prop_assert_eq!(Some(evaluation.clone()), evaluate(&again, &options));
            }
            // The slide that leaves next may have been dropped after the judgement.
            let spec = plan.models[0].ladder.windows.iter().find(|w| w.name == report.window);
            let trimmed = match spec.map(|w| w.width) {
                Some(Width::Time { slide_ms, .. }) if report.end_ms % slide_ms == 0 => slide_ms,
                _ => 0,
            };
            prop_assert_eq!(&sums, &within(report.start_ms + trimmed), "{} {}", id, report.window);
        }
    }

    #[test]
    fn a_window_by_count_is_the_fewest_newest_panes_that_hold_n(r in records(600, 1)) {
        let mut engine = Engine::new(plan());
        let r = in_order(r);
        for (offset, record) in (0..).zip(&r) {
            feed(&mut engine, 0, offset, record);
        }
        engine.finish();
        for (id, report, sums) in engine.totals().filter(|(_, w, _)| w.window == "last:40") {
            let mine = |r: &&Record| MODELS[r.model] == (id.model.as_str(), id.version.as_str());
            let times: Vec<i64> = r.iter().filter(mine).map(|r| r.time_ms).collect();
            let holds = |start: i64| times.iter().filter(|&&t| t >= start).count();
            prop_assert_eq!(sums.n() as usize, holds(report.start_ms));
            // All there are, or enough, and without the oldest pane not enough.
            prop_assert!(sums.n() >= 40.min(times.len() as u64));
            prop_assert!(holds(report.start_ms + 1_000) < 40);
        }
    }

    #[test]
    fn merging_then_subtracting_a_pane_leaves_the_rest(r in records(400, 1), at in 0.0..1.0f64) {
        let grid = Grid::new(Axis::Linear, 8);
        let sums = |r: &[Record]| {
            let mut sums = Sums::new(grid);
            for record in r {
                sums.observe(Score::new(record.score).unwrap(), record.outcome).unwrap();
            }
            sums
        };
        let (left, right) = r.split_at((r.len() as f64 * at) as usize);
        let mut both = sums(left);
        both.merge(&sums(right)).unwrap();
        prop_assert_eq!(&both, &sums(&r));
        both.retract(&sums(right)).unwrap();
        let left = sums(left);
        prop_assert!(both.occupied().eq(left.occupied()));
        prop_assert_eq!(both.logs(), left.logs());
    }

    #[test]
    fn every_record_ends_in_exactly_one_counter(
        r in records(300, 5 * LATENESS_MS), ends in proptest::collection::vec(0usize..9, 300)
    ) {
        let mut plan = plan();
        plan.models.pop();
        plan.caps.streams_max = 3;
        plan.caps.open_panes_max = 4;
        let mut engine = Engine::new(plan);
        for (offset, (record, how)) in (0..).zip(as_they_arrive(r).into_iter().zip(ends)) {
            let mut record = record;
            let origin = Origin { source: 1, partition: 0, offset };
            match how {
                0 => { engine.reject(origin, None, Reason::Malformed); }
                1 => { record.score = f64::NAN; feed(&mut engine, 0, offset, &record); }
                2 => { record.score = 1.2; feed(&mut engine, 0, offset, &record); }
                3 => { record.time_ms = 0; feed(&mut engine, 0, offset, &record); }
                4 => { feed(&mut engine, 0, offset / 2, &record); }
                _ => { feed(&mut engine, 0, offset, &record); }
            }
            let read = offset as u64 + 1;
            let total = engine.counters().total();
            prop_assert_eq!(total.records, read);
            prop_assert_eq!(total.disposed(), read);
        }
    }
}

/// A stream with `n` events a second, calibrated or saying 0.2 too much.
fn stream(engine: &mut Engine, seconds: std::ops::Range<i64>, n: i64, wrong: bool) -> Vec<Change> {
    let mut changes = Vec::new();
    for second in seconds {
        for i in 0..n {
            let score = 0.3 + 0.4 * ((i * 37 % n) as f64 / n as f64);
            let truth = if wrong { score - 0.2 } else { score };
            // Outcomes as even as can be: the fraction of the golden ratio.
            let draw = ((second * n + i) as f64 * 0.618_033_988_749).fract();
            let record = Record {
                model: 0,
                time_ms: BEGIN_MS + second * 1_000 + i * 1_000 / n,
                delay_ms: 0,
                score,
                outcome: draw < truth,
                partition: 0,
            };
            feed(engine, 0, second * n + i, &record);
        }
        changes.extend(engine.tick(BEGIN_MS + second * 1_000));
    }
    changes
}

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
    // Streams expire by event time: the clock alone takes nothing away.
    engine.tick(now + 3_600_000);
    assert_eq!(engine.reports().count(), 1);
    let later = Record {
        model: 3,
        time_ms: BEGIN_MS + 100_000,
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
fn one_event_far_ahead_of_its_arrival_does_not_make_all_others_late() {
    let mut engine = Engine::new(plan());
    let event = |time_ms, arrival_ms| Event {
        weight: None,
        cluster: None,
        model: "one",
        version: "",
        segment: "",
        id: b"",
        time_ms,
        arrival_ms,
        prediction: Prediction::Score(0.5),
        outcome: Some(Outcome::Binary(true)),
    };
    let at = |offset| Origin {
        source: 0,
        partition: 0,
        offset,
    };
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

/// Reports of the only stream, by window.
fn window<'a>(engine: &'a Engine, name: &str) -> &'a WindowReport {
    let report = engine.reports().next().expect("a stream");
    let found = report.windows.iter().find(|w| w.window == name);
    found.expect("a window of that name")
}

#[test]
fn a_wide_window_is_judged_from_the_first_seal_on_and_says_since_when_it_has_data() {
    let mut engine = Engine::new(plan());
    // The 72s window slides by 12 s, gathering from the 36s window's slides of 6 s, those from 1 s.
    let begin = BEGIN_MS + 5_000;
    assert_eq!(BEGIN_MS % 12_000, 8_000);
    stream(&mut engine, 5..10, 100, true);
    let young = window(&engine, "36s");
    assert_eq!((young.since_ms, young.n), (begin, 200));
    assert_eq!(young.end_ms, begin + 2_000);
    assert!(young.scores().is_some(), "{young:?}");
    // Nothing has come to the widest window through the one between yet.
    assert_eq!(window(&engine, "72s").n, 0);
    // The one between slides at second 10, and the widest is judged in the middle of its slide.
    stream(&mut engine, 10..13, 100, true);
    let young = window(&engine, "72s");
    assert_eq!((young.since_ms, young.n), (begin, 500));
    assert_eq!(young.end_ms, begin + 5_000);
    assert!(young.scores().is_some(), "{young:?}");
    // Afterwards it is judged at its own slides, as ever.
    stream(&mut engine, 13..19, 100, true);
    assert_eq!(window(&engine, "72s").end_ms, BEGIN_MS + 16_000);
    assert_eq!(window(&engine, "72s").n, 1_100);
    stream(&mut engine, 19..28, 100, true);
    assert_eq!(window(&engine, "72s").end_ms, BEGIN_MS + 16_000);
}

#[test]
fn a_restored_engine_shows_an_evaluation_wherever_it_had_one() {
    for seconds in [5, 9, 20, 41, 90] {
        let mut engine = Engine::new(plan());
        stream(&mut engine, 0..seconds, 100, true);
        let restored = Engine::restore(plan(), engine.snapshot()).expect("a sound snapshot");
        for name in ["6s", "36s", "72s", "last:40"] {
            let (was, is) = (window(&engine, name), window(&restored, name));
            assert_eq!(was.numbers.is_some(), is.numbers.is_some(), "{name}");
            assert_eq!((was.verdict, was.alert), (is.verdict, is.alert), "{name}");
            assert_eq!((was.end_ms, was.n), (is.end_ms, is.n), "{name}");
            let Some(e) = is.scores() else { continue };
            assert!(e.n <= is.n && is.since_ms >= was.since_ms, "{name}");
            if e.n == is.n {
                assert_eq!(was.numbers, is.numbers, "{name}");
            }
        }
    }
}

#[test]
fn a_gap_of_years_is_skipped_and_empties_the_windows() {
    let mut engine = Engine::new(plan());
    stream(&mut engine, 0..20, 100, false);
    let start = std::time::Instant::now();
    let ten_years = 10 * 365 * 86_400;
    stream(&mut engine, ten_years..ten_years + 5, 3, false);
    assert!(start.elapsed().as_secs() < 5);
    let n: Vec<u64> = engine
        .reports()
        .next()
        .unwrap()
        .windows
        .iter()
        .map(|w| w.n)
        .collect();
    assert!(n.iter().take(3).all(|&n| n < 20), "{n:?}");
}

#[test]
fn a_snapshot_of_other_cells_or_windows_is_dropped_and_counted() {
    let mut engine = Engine::new(plan());
    stream(&mut engine, 0..5, 100, false);
    let snapshot = engine.snapshot();
    let mut other = plan();
    other.models[0].grid = Grid::new(Axis::Linear, 9);
    let restored = Engine::restore(other, snapshot.clone()).unwrap();
    assert_eq!(restored.counters().streams_dropped, 1);
    assert!(
        restored.dropped()[0].starts_with("one/1/"),
        "{:?}",
        restored.dropped()
    );
    assert_eq!(restored.positions(), engine.positions());
    let same = Engine::restore(plan(), snapshot).unwrap();
    assert!(same.dropped().is_empty());
}

#[test]
fn state_of_three_windows_with_4096_cells_is_under_a_mebibyte() {
    let minute = 60_000;
    let windows = vec![
        WindowSpec::time("5m", 5 * minute),
        WindowSpec::time("1h", 60 * minute),
        WindowSpec::time("24h", 24 * 60 * minute),
    ];
    assert!(matches!(
        windows[0].width,
        Width::Time {
            slide_ms: 50_000,
            ..
        }
    ));
    let mut plan = plan();
    plan.models.truncate(1);
    plan.models[0].ladder = Ladder::new(windows, 10_000).unwrap();
    plan.models[0].grid = Grid::new(Axis::Linear, 12);
    plan.models[0].judge.min_events = u64::MAX;
    let mut engine = Engine::new(plan);
    let mut x = 1u64;
    // Full windows need 24 hours and a pane of 4 hours more; 2000 events a base pane.
    let (mut offset, mut most) = (0, 0);
    for pane in 0..(28 * 72) {
        // Dense enough at the end for every base pane to have all cells.
        let n = if pane < 27 * 72 { 2_000 } else { 40_000 };
        for i in 0..n {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let record = Record {
                model: 0,
                time_ms: BEGIN_MS + pane * 50_000 + i * 50_000 / n,
                delay_ms: 0,
                score: (x >> 11) as f64 / (1u64 << 53) as f64,
                outcome: x >> 5 & 1 == 1,
                partition: 0,
            };
            feed(&mut engine, 0, offset, &record);
            offset += 1;
            if i == n / 10 || i == n - 1 {
                most = most.max(engine.bytes());
            }
        }
    }
    println!("state of one stream, three windows, 4096 cells: {most} bytes");
    assert!(most < 1 << 20, "{most}");
}
