//! A restored engine shows what it showed, and drops by name what its plan does not hold any more.

use super::{plan, stream, window};
use trueline::monitor::Engine;
use trueline::stats::axis::{Axis, Grid};

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
