//! A restored engine shows what it showed, and drops by name what its plan does not hold any more.

use super::{BEGIN_MS, Record, feed, plan, stream};
use std::iter::repeat_n;
use std::sync::Arc;
use trueline::judge::StreamReport;
use trueline::monitor::Engine;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::rng::Rng;

#[test]
fn a_restored_engine_reports_to_the_bit_what_it_reported() {
    for seconds in [5, 9, 20, 41, 90] {
        let mut engine = Engine::new(plan());
        stream(&mut engine, 0..seconds, 100, true);
        let restored = Engine::restore(plan(), engine.snapshot()).expect("a sound snapshot");
        assert_eq!(reports(&restored), reports(&engine), "{seconds} s");
    }
}

#[test]
fn late_and_rare_events_are_reported_the_same_after_a_restart() {
    let mut engine = Engine::new(plan());
    let mut offset = 0;
    let mut evaluated = 0;
    for second in 0..90 {
        // More come late than are left of the widest window once its first events are dropped.
        let n = match second {
            0..4 => 8,
            _ => usize::from(second % 3 == 0),
        };
        let late = if (60..65).contains(&second) { 10 } else { 0 };
        for second in repeat_n(second, n).chain(repeat_n(5, late)) {
            let outcome = offset % 2 == 0;
            feed(&mut engine, 0, offset, &record(second * 1_000, outcome));
            offset += 1;
        }
        let restored = Engine::restore(plan(), engine.snapshot()).expect("a sound snapshot");
        assert_eq!(reports(&restored), reports(&engine), "second {second}");
        let windows = engine.reports().flat_map(|r| &r.windows);
        evaluated += windows.filter(|w| w.numbers.is_some()).count();
    }
    assert!(evaluated > 0);
}

/// A wide window is judged seldom, and its stream measures its outcomes at each pane.
#[test]
fn a_restored_window_is_corrected_for_the_dispersion_at_its_judgement() {
    let mut engine = Engine::new(plan());
    let (mut rng, mut offset, mut older) = (Rng::new(11), 0, 0);
    for second in 0..90 {
        let outcome = rng.uniform() < 0.5;
        for i in 0..200 {
            feed(
                &mut engine,
                0,
                offset,
                &record(second * 1_000 + i * 5, outcome),
            );
            offset += 1;
        }
        engine.tick(BEGIN_MS + second * 1_000);
        let restored = Engine::restore(plan(), engine.snapshot()).expect("a sound snapshot");
        assert_eq!(reports(&restored), reports(&engine), "second {second}");
        let Some(report) = engine.reports().next() else {
            continue;
        };
        let windows = report.windows.iter();
        let now_ms = windows.clone().map(|w| w.evaluated_at_ms).max();
        let older_ones = windows.filter(|w| Some(w.evaluated_at_ms) < now_ms);
        let gated = older_ones.filter_map(|w| w.scores()?.overdispersion?.gated());
        older += gated.count();
    }
    assert!(older > 0);
}

fn record(at_ms: i64, outcome: bool) -> Record {
    Record {
        model: 0,
        time_ms: BEGIN_MS + at_ms,
        delay_ms: 0,
        score: 0.5,
        outcome,
        partition: 0,
    }
}

fn reports(engine: &Engine) -> Vec<&Arc<StreamReport>> {
    engine.reports().collect()
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
    assert_eq!(restored.brought().streams_dropped, 0, "it is dropped now");
    assert!(
        restored.dropped()[0].starts_with("one/1/"),
        "{:?}",
        restored.dropped()
    );
    let next = |e: &Engine| e.shard().partitions().positions().collect::<Vec<_>>();
    assert_eq!(next(&restored), next(&engine));
    let same = Engine::restore(plan(), snapshot).unwrap();
    assert!(same.dropped().is_empty());
}
