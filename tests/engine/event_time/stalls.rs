//! Verdicts while the watermark stands still, and once it moves again.

use super::*;

#[test]
fn a_watermark_that_stands_still_makes_verdicts_stalled_and_names_the_partition() {
    let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
    (0..2).for_each(|p| _ = engine.assign((0, p).into()));
    for i in 0..600 {
        feed.good(&mut engine, 0, BEGIN_MS + i * 100);
        feed.good(&mut engine, 1, BEGIN_MS + i * 100);
    }
    engine.tick(0);
    assert!(window(engine.monitor()).numbers.is_some());
    // Partition 1 is not read any further, and not at its end.
    let more = |engine: &mut Engine, feed: &mut Feed, from: i64| {
        (from..from + 100).for_each(|i| _ = feed.good(engine, 0, BEGIN_MS + i * 100));
    };
    more(&mut engine, &mut feed, 600);
    engine.tick(299_999);
    assert!(window(engine.monitor()).numbers.is_some());
    more(&mut engine, &mut feed, 700);
    engine.tick(300_000);
    let stalled = Verdict::Undecided(Undecided::Stalled);
    assert_eq!(window(engine.monitor()).verdict, stalled);
    assert!(window(engine.monitor()).numbers.is_none());
    assert_eq!(engine.watchdog().frontier().holder, Some(P1));
    assert!(engine.watchdog().is_stalled());
    // It goes on by itself.
    engine.on_partition((0, 1).into(), PartitionEvent::Ended);
    engine.tick(300_001);
    assert!(!engine.watchdog().is_stalled());
    assert!(window(engine.monitor()).numbers.is_some());
    // Nothing new comes: that is no stall, however long.
    engine.on_partition((0, 0).into(), PartitionEvent::Ended);
    engine.tick(900_000);
    assert!(!engine.watchdog().is_stalled());
}

#[test]
fn a_window_says_again_what_it_said_before_a_stall_as_soon_as_the_watermark_moves() {
    let mut plan = plan();
    let windows = vec![
        WindowSpec::time("12s", 12_000),
        WindowSpec::time("120s", 120_000),
    ];
    plan.models[0].ladder = Ladder::new(windows, LATENESS_MS).expect("a ladder");
    let (mut engine, mut feed) = (Engine::new(plan.clone()), Feed::default());
    (0..2).for_each(|p| _ = engine.assign((0, p).into()));
    let mut second = |engine: &mut Engine, partitions: std::ops::Range<i32>, s: i64| {
        for i in 0..10 {
            let time_ms = BEGIN_MS + s * 1_000 + i * 100;
            partitions
                .clone()
                .for_each(|p| _ = feed.good(engine, p, time_ms));
        }
    };
    // The long window slides every 20 s, the watermark stands 1 s behind the least advanced
    // partition.
    (0..123).for_each(|s| second(&mut engine, 0..2, s));
    let said = |engine: &Engine| {
        let windows = engine.reports().next().expect("a stream").windows.iter();
        let all = windows.map(|w| (w.end_ms, w.verdict, format!("{:?}", w.numbers)));
        all.collect::<Vec<_>>()
    };
    engine.tick(0);
    let before = said(&engine);
    assert!(before.iter().all(|(_, verdict, _)| verdict.is_evaluated()));
    second(&mut engine, 0..1, 123);
    engine.tick(1);
    second(&mut engine, 0..1, 124);
    engine.tick(300_001);
    let stalled = Verdict::Undecided(Undecided::Stalled);
    assert!(
        said(&engine)
            .iter()
            .all(|(_, verdict, _)| *verdict == stalled)
    );
    let verdicts = |all: &[(i64, Verdict, String)]| {
        let all = all.iter().map(|(end_ms, verdict, _)| (*end_ms, *verdict));
        all.collect::<Vec<_>>()
    };
    // However long it lasts: no verdict has become older in event time.
    engine.tick(20_000_000);
    let all = said(&engine);
    assert!(all.iter().all(|(_, verdict, _)| *verdict == stalled));
    // A stall is what one process sees: the next one has what was judged.
    let next = Engine::restore(plan, engine.snapshot()).expect("a sound snapshot");
    assert_eq!(verdicts(&said(&next)), verdicts(&before));
    // The watermark passes the end of a pane; only the short window slides there.
    second(&mut engine, 1..2, 123);
    second(&mut engine, 1..2, 124);
    let after = said(&engine);
    assert_eq!(after[1], before[1]);
    assert!(after[0].0 > before[0].0 && after[0].1.is_evaluated());
    engine.tick(20_000_001);
    assert_eq!(said(&engine), after);
}

#[test]
fn values_are_withdrawn_by_the_age_of_what_was_judged_though_events_come() {
    let mut plan = plan();
    plan.models[0].judge.stale_after_ms = 30_000;
    plan.caps.stalled_after_ms = i64::MAX;
    let (mut engine, mut feed) = (Engine::new(plan), Feed::default());
    (0..2).for_each(|p| _ = engine.assign((0, p).into()));
    for i in 0..600 {
        feed.good(&mut engine, 0, BEGIN_MS + i * 100);
        feed.good(&mut engine, 1, BEGIN_MS + i * 100);
    }
    for second in 0..=32 {
        // Events of partition 0 alone, so nothing more is judged.
        feed.good(&mut engine, 0, BEGIN_MS + 60_000 + second);
        engine.tick(second * 1_000);
        let shown = window(engine.monitor()).numbers.is_some();
        assert_eq!(shown, second * 1_000 < 30_000 + SLIDE_MS, "{second}");
    }
    let stale = Verdict::Undecided(Undecided::Stale);
    assert_eq!(window(engine.monitor()).verdict, stale);
}
