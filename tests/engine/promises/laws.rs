//! Laws over generated events with disorder, duplicates and restarts.
//!
//! Each law compares the whole engine with another way of reaching the same state: another order,
//! another split over partitions, a restart, a recomputation from the raw events. "The same" is
//! equality of every integer sum, verdict and p-value, not closeness.

use super::{BEGIN_MS, LATENESS_MS, MODELS, Record, SOURCE, feed, plan};
use crate::support::records::origin;
use proptest::prelude::*;
use std::sync::Arc;
use trueline::alert::AlertState;
use trueline::collect::{Disposition, Reason};
use trueline::judge::{Change, StreamReport, WindowReport};
use trueline::monitor::{Engine, RecordSink};
use trueline::stats::algebra::{Merge, Retract};
use trueline::stats::attribute::Attribute;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::evaluation::evaluate;
use trueline::stats::fixed::Score;
use trueline::stats::sums::Sums;
use trueline::stats::view::{Outcome, Prediction, project};

/// What must be the same.
#[derive(Debug, PartialEq)]
struct Result {
    reports: Vec<Arc<StreamReport>>,
    sums: Vec<(String, Sums)>,
    changes: Vec<String>,
}

fn result(engine: &mut Engine, mut changes: Vec<Change>) -> Result {
    changes.extend(engine.finish());
    let mut told: Vec<_> = changes
        .iter()
        .map(|c| (c.at_ms, c.stream.clone(), c.sentence.clone()))
        .collect();
    // Streams are walked in the order in which they began, which the order of arrival decides. The
    // window that the change of a stream's alert names is no key: until the next slide after a
    // restart it may be another one, since bounds are those of the panes that are held.
    told.sort();
    let mut reports: Vec<_> = engine.reports().cloned().collect();
    reports.sort_by(|a, b| a.id.cmp(&b.id));
    let mut sums: Vec<_> = engine
        .monitor()
        .totals()
        .map(|(id, report, sums)| (format!("{id} {}", report.window), sums))
        .collect();
    sums.sort_by(|a, b| a.0.cmp(&b.0));
    Result {
        reports,
        sums,
        changes: told.into_iter().map(|t| t.2).collect(),
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
        for (id, report, sums) in engine.monitor().totals() {
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
                options.tcal.seed = id.seed(&report.window, report.end_ms, 0);
                prop_assert_eq!(Some(evaluation.clone()), evaluate(&again, &options));
            }
            prop_assert_eq!(&sums, &again, "{} {}", id, report.window);
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
        for (id, report, sums) in engine.monitor().totals().filter(|(_, w, _)| w.window == "last:40") {
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
            let origin = origin(1, 0, offset);
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
