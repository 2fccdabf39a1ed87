//! Cells and versions beyond their caps are counted, and leave a window undecided.

use super::{Row, SPAN_MS, START_MS, VIEWS, feed, plan, report, rows, take_of};
use std::sync::Arc;
use trueline::judge::{StreamReport, Undecided, Verdict};
use trueline::monitor::Engine;
use trueline::stats::tolerance::Tolerance;
use trueline::stats::view::View;
use trueline::window::{Ladder, WindowSpec};

#[test]
fn events_that_find_no_cell_are_counted_and_leave_their_windows_without_a_verdict() {
    let rows = rows(3000, 0.0, 9);
    let mut capped = plan();
    capped.caps.vector_cells_max = 3;
    let mut engine = feed(capped, &rows);
    engine.finish();
    let capacity = Verdict::Undecided(Undecided::Capacity);
    let kept: u64 = VIEWS
        .iter()
        .map(|(view, _)| {
            let w = report(&engine, *view).windows[0].clone();
            assert_eq!((w.verdict, w.cells().is_none()), (capacity, true));
            w.n
        })
        .sum();
    let refused = engine.counters().total().no_cell;
    assert!(
        refused > 0 && kept > 0 && kept + refused <= 2 * 3000,
        "{refused}"
    );
    // Scores are not touched.
    let scalar = report(&engine, View::TopLabel).windows[0].clone();
    assert!(scalar.verdict.is_evaluated());
    assert_eq!(engine.counters().total().observed, 3000);
}

#[test]
fn versions_beyond_the_cap_are_undecided_and_come_to_cells_when_others_go() {
    let mut two = plan();
    two.caps.vector_versions_max = 1;
    two.models[0].judge.evaluation.tolerance = Tolerance::absolute(0.5);
    two.models[0].ladder = Ladder::new(vec![WindowSpec::time("6m", 360_000)], 0).unwrap();
    let mut engine = Engine::new(two.clone());
    let all = rows(4000, 0.0, 10);
    for (i, row) in all.iter().enumerate() {
        take_of(&mut engine, ["a", "b"][i % 2], i, row);
    }
    let of = |engine: &Engine, version: &str| {
        let mine = |r: &&Arc<StreamReport>| r.id.view == View::Full && r.id.version == version;
        engine.reports().find(mine).unwrap().windows[0].clone()
    };
    assert_eq!(of(&engine, "a").verdict, Verdict::Calibrated);
    let capacity = Verdict::Undecided(Undecided::Capacity);
    assert_eq!(of(&engine, "b").verdict, capacity);
    assert_eq!(engine.counters().total().no_cell, 2 * 2000);
    // Of both only "b" goes on for a week, through a restart.
    let week = 7 * 86_400_000;
    engine.tick(START_MS);
    let mut engine = Engine::restore(two, engine.snapshot()).unwrap();
    for (i, row) in all.iter().take(10).enumerate() {
        let later = Row {
            time_ms: row.time_ms + week + SPAN_MS * 3 / 2,
            p: row.p.clone(),
            ..*row
        };
        take_of(&mut engine, "b", 4000 + i, &later);
    }
    engine.tick(START_MS + week);
    for (i, row) in all.iter().enumerate() {
        let later = Row {
            time_ms: row.time_ms + week + 2 * SPAN_MS,
            p: row.p.clone(),
            ..*row
        };
        take_of(&mut engine, "b", 5000 + i, &later);
    }
    assert!(engine.reports().all(|r| r.id.version == "b"));
    assert_eq!(of(&engine, "b").verdict, Verdict::Calibrated);
}

/// Each version is given events of segments beyond the cap, in turn with the other, and first after
/// a restart.
#[test]
fn events_of_segments_beyond_the_cap_count_in_the_vector_views_of_their_own_version() {
    let mut plan = plan();
    plan.models[0].segmenting.max = 1;
    plan.models[0].segmenting.other = true;
    plan.models[0].ladder = Ladder::new(vec![WindowSpec::time("10m", SPAN_MS)], 0).unwrap();
    let mut engine = Engine::new(plan.clone());
    let all = rows(3000, 0.0, 12);
    for (i, row) in all.iter().enumerate() {
        if i == 1500 {
            engine = Engine::restore(plan.clone(), engine.snapshot()).unwrap();
        }
        // A third of the events is of one of them.
        let version = ["a", "b"][usize::from(i % 3 == 2)];
        take_of(&mut engine, version, i, row);
    }
    engine.finish();
    let others = engine.reports().filter(|r| r.id.segment == "other");
    assert!(others.count() > 0);
    for version in ["a", "b"] {
        let n = |view: View, segmented: bool| -> u64 {
            let of = |r: &&Arc<StreamReport>| r.id.view == view && r.id.version == version;
            let of = engine.reports().filter(of);
            let of = of.filter(|r| (r.id.segment != "*") == segmented);
            of.map(|r| r.windows[0].n).sum()
        };
        let scores = n(View::TopLabel, true);
        assert!(scores > 800);
        assert_eq!(n(View::Full, false), scores, "version {version}");
    }
}
