//! A restored engine shows what it showed, and drops by name what its plan does not hold any more.

use super::{BEGIN_MS, Record, feed, plan, stream, window};
use trueline::judge::StreamReport;
use trueline::judge::alarm::condition;
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
fn what_is_put_to_an_alert_is_the_same_after_a_restart_that_has_to_wait_for_numbers() {
    let mut engine = Engine::new(plan());
    let mut offset = 0;
    let mut take = |engine: &mut Engine, second: i64| {
        let record = Record {
            model: 0,
            time_ms: BEGIN_MS + second * 1_000,
            delay_ms: 0,
            score: 0.5,
            outcome: offset % 2 == 0,
            partition: 0,
        };
        feed(engine, 0, offset, &record);
        offset += 1;
    };
    let mut waited = 0;
    for second in 0..90 {
        // More come late than are left of the widest window once its first events are dropped.
        let n = match second {
            0..4 => 8,
            _ => i32::from(second % 3 == 0),
        };
        (0..n).for_each(|_| take(&mut engine, second));
        if (60..65).contains(&second) {
            (0..10).for_each(|_| take(&mut engine, 5));
        }
        let restored = Engine::restore(plan(), engine.snapshot()).expect("a sound snapshot");
        let (Some(was), Some(is)) = (engine.reports().next(), restored.reports().next()) else {
            continue;
        };
        assert_eq!(condition(was, true), condition(is, true), "second {second}");
        let begins = |r: &StreamReport| r.windows.iter().map(|w| w.begins_ms()).collect::<Vec<_>>();
        assert_eq!(begins(was), begins(is), "second {second}");
        let numbers = |r: &StreamReport| r.windows.iter().filter(|w| w.numbers.is_some()).count();
        waited += usize::from(numbers(is) == 0 && numbers(was) > 0);
    }
    assert!(waited > 0);
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
