//! A window, by time or by count, says what its own events say offline, and nothing once data stop.

use super::{Row, SPAN_MS, START_MS, VIEWS, feed, plan, plan_of, report, rows, take};
use crate::support::random::shuffle;
use std::sync::Arc;
use trueline::collect::Disposition;
use trueline::judge::{Numbers, Undecided, Verdict};
use trueline::monitor::Engine;
use trueline::stats::kernel::Vectors;
use trueline::stats::kernel::conditional::draw;
use trueline::stats::multiclass::sums::{Shape, VectorSums};
use trueline::stats::multiclass::{self, VectorView};
use trueline::stats::rng::Rng;
use trueline::stats::tolerance::Tolerance;
use trueline::stats::view::View;
use trueline::window::{Ladder, WindowSpec};

/// What is said of the events from `from_ms` on, offline.
fn offline(rows: &[Row], from_ms: i64, view: VectorView) -> multiclass::Evaluation {
    offline_between(rows, (from_ms, i64::MAX), view)
}

/// What is said of the events between two moments, offline.
fn offline_between(
    rows: &[Row],
    (from_ms, to_ms): (i64, i64),
    view: VectorView,
) -> multiclass::Evaluation {
    let shape = Shape {
        view,
        classes: 4,
        cells_max: 4096,
        weighted: false,
    };
    let mut sums = VectorSums::new(shape).unwrap();
    for row in rows
        .iter()
        .filter(|r| (from_ms..to_ms).contains(&r.time_ms))
    {
        assert!(sums.observe(&row.p, 1.0, row.y, None));
    }
    multiclass::evaluate_sums(&sums, 0.05, 0.9).unwrap()
}

#[test]
fn a_vector_window_equals_its_events_evaluated_offline() {
    let rows = rows(3000, 0.4, 5);
    let mut whole = feed(plan(), &rows);
    whole.finish();
    let mut shuffled = Engine::new(plan());
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let mut rng = Rng::new(8);
    shuffle(&mut order, &mut rng);
    for (offset, &i) in order.iter().enumerate() {
        take(&mut shuffled, offset, &rows[i]);
        if offset % 700 == 699 {
            shuffled = Engine::restore(plan(), shuffled.snapshot()).unwrap();
            // What was read before the snapshot comes again.
            for again in offset - 50..=offset {
                let end = take(&mut shuffled, again, &rows[order[again]]);
                assert_eq!(end, Disposition::Replayed);
            }
        }
    }
    shuffled.finish();
    for (view, vector) in VIEWS {
        let (a, b) = (report(&whole, view), report(&shuffled, view));
        // A window by count has no vector view; segments are together.
        assert_eq!((a.windows.len(), a.id.segment.as_str()), (2, "*"));
        let (a, b) = (&a.windows[0], &b.windows[0]);
        assert_eq!(a, b);
        let want = offline(&rows, a.start_ms, vector);
        assert_eq!(a.cells(), Some(&want));
        assert_eq!((a.n, a.verdict), (want.n as u64, Verdict::Miscalibrated));
        // And floats of the events themselves agree as far as sums of 2⁻³² can.
        let mut sample = Vectors::new(4);
        for r in rows.iter().filter(|r| r.time_ms >= a.start_ms) {
            sample.push(&r.p, r.y).unwrap();
        }
        let slices = Some(want.interval.slices);
        let exact = multiclass::evaluate(&sample, vector, 0.05, 0.9, slices).unwrap();
        let off = want.interval.estimate_squared - exact.interval.estimate_squared;
        assert!(off.abs() < 1e-7, "{off}");
        // After a restart the report is what it was, from the panes.
        let back = Engine::restore(plan(), whole.snapshot()).unwrap();
        assert_eq!(&report(&back, view).windows[0], a);
    }
}

#[test]
fn every_slide_is_what_its_own_events_say_from_scratch() {
    let rows = rows(3000, 0.1, 15);
    let tight = plan_of(
        4,
        &[View::TopLabel, View::Full],
        vec![WindowSpec::time("6m", 360_000)],
        0,
    );
    let mut engine = Engine::new(tight);
    let mut ends = 0;
    let mut last = 0;
    for (i, row) in rows.iter().enumerate() {
        take(&mut engine, i, row);
        let Some(seen) = engine.reports().find(|r| r.id.view == View::Full) else {
            continue;
        };
        let w = &seen.windows[0];
        let Some(vector) = w.cells().filter(|_| w.end_ms > last) else {
            continue;
        };
        (last, ends) = (w.end_ms, ends + 1);
        let mut sums = VectorSums::new(Shape {
            view: VectorView::Full,
            classes: 4,
            cells_max: 4096,
            weighted: false,
        })
        .unwrap();
        let inside = rows[..=i]
            .iter()
            .filter(|r| (w.start_ms..w.end_ms).contains(&r.time_ms));
        inside.for_each(|r| assert!(sums.observe(&r.p, 1.0, r.y, None)));
        let scratch = multiclass::evaluate_sums(&sums, 0.05, 0.9).unwrap();
        assert_eq!((vector, w.n), (&scratch, sums.n()));
    }
    assert_eq!(ends, 9);
}

#[test]
fn windows_move_on_and_calibrated_ones_are_called_so_until_data_stop() {
    let rows = rows(3000, 0.0, 6);
    let mut plan_tight = plan();
    plan_tight.models[0].judge.evaluation.tolerance = Tolerance::absolute(0.5);
    plan_tight.models[0].ladder = Ladder::new(vec![WindowSpec::time("6m", 360_000)], 0).unwrap();
    let mut tight = feed(plan_tight, &rows);
    // With ten minutes of lateness nothing is sealed yet; without, all but the last pane is.
    let wide = feed(plan(), &rows);
    let of_vectors = wide.reports().filter(|r| r.id.view.is_vector());
    assert!(of_vectors.map(|r| r.windows[0].n).all(|n| n == 0));
    let seen = report(&tight, View::Full);
    let w = &seen.windows[0];
    assert_eq!(w.verdict, Verdict::Calibrated);
    assert_eq!(w.end_ms - w.start_ms, 360_000);
    let inside = |r: &&Row| (w.start_ms..w.end_ms).contains(&r.time_ms);
    assert_eq!(w.n, rows.iter().filter(inside).count() as u64);
    // Silence by the clock withdraws the values.
    tight.tick(START_MS + SPAN_MS);
    let changes = tight.tick(START_MS + SPAN_MS + 2 * 3_600_000);
    assert!(changes.iter().any(|c| c.stream.view == View::Full));
    assert!(report(&tight, View::Full).windows[0].cells().is_none());
    // A week of it lets no stream go: the clock says nothing about events that are still to be
    // read.
    let streams = tight.reports().count();
    tight.tick(START_MS + SPAN_MS + 8 * 86_400_000);
    assert_eq!(tight.reports().count(), streams);
}

#[test]
fn a_wide_window_of_vectors_is_judged_while_its_first_slide_fills() {
    let windows = vec![
        WindowSpec::time("6m", 360_000),
        WindowSpec::time("24h", 86_400_000),
    ];
    let plan = plan_of(4, &[View::TopLabel, View::TopK(2), View::Full], windows, 0);
    let rows = rows(3000, 0.4, 5);
    let engine = feed(plan.clone(), &rows);
    let restored = Engine::restore(plan, engine.snapshot()).unwrap();
    let scores = report(&engine, View::TopLabel).windows[1].clone();
    for (view, vector) in VIEWS {
        let wide = report(&engine, view).windows[1].clone();
        // The first slide of four hours ends three hours after the last event.
        assert!(wide.end_ms < START_MS + SPAN_MS && wide.end_ms % 60_000 == 0);
        assert_eq!(wide.end_ms, scores.end_ms);
        assert_eq!((wide.since_ms, wide.n), (START_MS, 2700));
        let want = offline_between(&rows, (START_MS, wide.end_ms), vector);
        assert_eq!(wide.cells(), Some(&want));
        assert_eq!(wide.verdict, Verdict::Miscalibrated);
        assert_eq!(report(&restored, view).windows[1], wide);
    }
}

#[test]
fn a_window_by_count_of_vectors_says_what_its_newest_panes_say_offline() {
    let mut plan = plan();
    plan.models[0].ladder.lateness_ms = 0;
    let rows = rows(3000, 0.4, 5);
    let mut engine = Engine::new(plan.clone());
    let mut judged = 0;
    for (offset, row) in rows.iter().enumerate() {
        take(&mut engine, offset, row);
        if offset % 500 == 499 {
            engine = Engine::restore(plan.clone(), engine.snapshot()).unwrap();
        }
        for (view, vector) in VIEWS {
            let last = report(&engine, view).windows[1].clone();
            assert_eq!(last.window, "last:500");
            // Panes of 300 events: the newest two hold 500.
            let n = if judged < 2 { last.n } else { 600 };
            if last.end_ms <= START_MS + 60_000 * judged || last.n != n {
                continue;
            }
            if view == View::Full {
                judged = (last.end_ms - START_MS) / 60_000;
            }
            let want = offline_between(&rows, (last.since_ms, last.end_ms), vector);
            assert_eq!((last.cells(), last.n), (Some(&want), want.n as u64));
        }
    }
    assert_eq!(judged, 9);
}

#[test]
fn a_window_with_more_late_events_than_events_in_time_has_no_verdict() {
    let rows = rows(600, 0.0, 11);
    // Enough in time for a verdict, and too few.
    for in_time in [120, 20] {
        let mut tight = plan();
        tight.models[0].ladder = Ladder::new(vec![WindowSpec::time("6m", 360_000)], 0).unwrap();
        tight.models[0].judge.min_events = 100;
        let mut engine = Engine::new(tight);
        let late = &rows[..240];
        for (offset, row) in (0..).zip(rows[600 - in_time..].iter().chain(late)) {
            let disposition = take(&mut engine, offset, row);
            assert_eq!(disposition == Disposition::Late, offset >= in_time);
        }
        engine.finish();
        let late = Verdict::Undecided(Undecided::Late);
        let streams = engine.reports().filter(|r| r.id.view.is_vector());
        let verdicts: Vec<Verdict> = streams.map(|r| r.windows[0].verdict).collect();
        assert_eq!(verdicts, [late, late], "{in_time} in time");
    }
}

/// Three of four classes have half a percent each. A relative tolerance is a share of what the
/// scores leave to them.
#[test]
fn rare_classes_that_are_said_twice_as_likely_are_miscalibrated() {
    let shape = |view| Shape {
        view,
        classes: 4,
        cells_max: 4096,
        weighted: false,
    };
    let verdict = |seed: u64, view, factor: f64| {
        let (mut rng, mut sums) = (Rng::new(seed), VectorSums::new(shape(view)).unwrap());
        for _ in 0..20_000 {
            let rare = [0; 3].map(|_| 0.002 + 0.009 * rng.uniform().powi(2));
            let with = |factor: f64| {
                let [a, b, c] = rare.map(|q| factor * q);
                [1.0 - a - b - c, a, b, c]
            };
            let class = draw(&with(1.0), rng.uniform());
            assert!(sums.observe(&with(factor), 1.0, class, None));
        }
        let found = multiclass::evaluate_sums(&sums, 0.05, 0.9).unwrap();
        assert!((found.rare_mean - 0.015 * factor).abs() < 0.001);
        Numbers::Cells(Arc::new(found)).verdict(&Tolerance::default())
    };
    for view in [VectorView::Full, VectorView::TopK(2)] {
        for seed in 0..10 {
            assert_eq!(
                verdict(seed, view, 2.0),
                Verdict::Miscalibrated,
                "{view:?} {seed}"
            );
            assert_ne!(
                verdict(seed, view, 1.0),
                Verdict::Miscalibrated,
                "{view:?} {seed}"
            );
        }
    }
}
