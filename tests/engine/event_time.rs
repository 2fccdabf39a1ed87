//! Event time that never stops and never runs away: records that are not counted, clocks that are
//! wrong, partitions that are idle, unread or held back, in one engine, in shards that may move,
//! and in the judge of checkpoints.
//!
//! Time is virtual: arrivals and ticks are numbers. Each test fails where the rule that it names is
//! taken out.

mod resets;
mod stalls;

use crate::support::records::{EVENT, origin};
use proptest::prelude::*;
use trueline::collect::{Disposition, Event, Origin, PartitionId, Reason, Refusal, Segmenting};
use trueline::judge::{JudgeOptions, Undecided, Verdict, WindowReport};
use trueline::monitor::liveness::Freshness;
use trueline::monitor::{
    Aggregator, Caps, Engine, LocalShard, ModelPlan, MonitorView, PartitionEvent, Plan, RecordSink,
    Shards,
};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_000_000;
const LATENESS_MS: i64 = 1_000;
const SLIDE_MS: i64 = 2_000;
const HOUR_MS: i64 = 3_600_000;
const YEAR_MS: i64 = 365 * 24 * HOUR_MS;

/// One model, `fraud`; all others are not watched.
fn plan() -> Plan {
    let windows = vec![WindowSpec::time("12s", 12_000)];
    let ladder = Ladder::new(windows, LATENESS_MS).expect("a ladder");
    assert_eq!(ladder.pane_ms, SLIDE_MS);
    Plan {
        models: vec![ModelPlan {
            name: "fraud".to_owned(),
            segmenting: Segmenting::default(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder,
            grid: Grid::new(Axis::Linear, 6),
            judge: JudgeOptions {
                min_events: 10,
                ..JudgeOptions::plain()
            },
        }],
        caps: Caps::default(),
        ..Plan::default()
    }
}

fn event(model: &str, time_ms: i64, arrival_ms: Option<i64>) -> Event<'_> {
    Event {
        model,
        time_ms,
        arrival_ms,
        prediction: Prediction::Score(0.25 + 0.5 * ((time_ms / 7 % 97) as f64 / 97.0)),
        outcome: Some(Outcome::Binary(time_ms % 2 == 0)),
        ..EVENT
    }
}

/// Feeds partitions, each with offsets of its own.
#[derive(Default)]
struct Feed([i64; 4]);

impl Feed {
    fn next(&mut self, partition: i32) -> Origin {
        let offset = &mut self.0[partition as usize];
        *offset += 1;
        origin(0, partition, *offset - 1)
    }

    /// An event of this time that arrives at once.
    fn good(&mut self, to: &mut impl RecordSink, partition: i32, time_ms: i64) -> Disposition {
        let event = event("fraud", time_ms, Some(time_ms));
        to.observe(self.next(partition), &event)
    }

    /// An event of long ago that arrives now.
    fn old(&mut self, to: &mut impl RecordSink, partition: i32, at_ms: i64) {
        let event = event("fraud", at_ms - HOUR_MS, Some(at_ms));
        to.observe(self.next(partition), &event);
    }

    /// A record that is in no sum.
    fn other(&mut self, to: &mut impl RecordSink, partition: i32, at_ms: i64, bad: bool) {
        let origin = self.next(partition);
        match bad {
            true => to.reject(origin, Some(at_ms), Reason::Malformed),
            false => to.observe(origin, &event("churn", at_ms, Some(at_ms))),
        };
    }
}

fn window(monitor: MonitorView<'_>) -> &WindowReport {
    &monitor.reports().next().expect("a stream").windows[0]
}

/// What stands in every window, and up to where.
fn said(engine: &Engine) -> Vec<String> {
    let all = engine.monitor().totals();
    all.map(|(id, w, sums)| format!("{id} {} {} {} {sums:?}", w.end_ms, w.n, w.verdict))
        .collect()
}

fn late(engine: &Engine) -> u64 {
    engine.counters().total().late
}

fn frontier_ms(engine: &Engine) -> Option<i64> {
    engine.snapshot().partitions.frontier_ms()
}

const P1: PartitionId = PartitionId {
    source: 0,
    partition: 1,
};

#[test]
fn records_that_are_not_counted_hold_no_verdict() {
    for bad in [false, true] {
        let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
        (0..2).for_each(|p| _ = engine.assign((0, p).into()));
        for i in 0..600 {
            let at_ms = BEGIN_MS + i * 100;
            feed.good(&mut engine, 0, at_ms);
            if i % 10 == 0 {
                feed.other(&mut engine, 1, at_ms, bad);
            }
        }
        let end_ms = window(engine.monitor()).end_ms;
        let newest_ms = BEGIN_MS + 59_900;
        // What is heard is the least arrival of three such records in a row, one a second.
        assert!(
            newest_ms - end_ms <= LATENESS_MS + 3_000 + SLIDE_MS,
            "{bad}: {end_ms}"
        );
        assert_eq!(late(&engine), 0);
        // Alone they carry nothing on: no event of a counted model has come since.
        let before = said(&engine);
        (0..100).for_each(|i| feed.other(&mut engine, 1, newest_ms + i * 1_000, bad));
        engine.on_partition((0, 0).into(), PartitionEvent::Ended);
        (0..100).for_each(|i| feed.other(&mut engine, 1, newest_ms + i * 1_000, bad));
        assert!(frontier_ms(&engine) <= Some(newest_ms));
        assert_eq!(said(&engine).len(), before.len());
    }
}

#[test]
fn a_backfill_into_one_partition_holds_no_verdict() {
    let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
    for p in 0..2 {
        engine.assign((0, p).into());
        feed.good(&mut engine, p, BEGIN_MS);
    }
    for i in 0..600 {
        let at_ms = BEGIN_MS + i * 100;
        feed.good(&mut engine, 0, at_ms);
        // Late, from the second pane on.
        if i % 10 == 0 {
            feed.old(&mut engine, 1, at_ms);
        }
    }
    let end_ms = window(engine.monitor()).end_ms;
    let behind_ms = BEGIN_MS + 59_900 - end_ms;
    assert!(behind_ms <= LATENESS_MS + 3_000 + SLIDE_MS, "{behind_ms}");
    assert!(late(&engine) > 50);
}

#[test]
fn one_bad_record_with_a_clock_ahead_in_a_backlog_makes_none_late() {
    // It is bounded by the time of reading alone, which is that of the end of the backlog.
    let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
    (0..2).for_each(|p| _ = engine.assign((0, p).into()));
    let read_ms = BEGIN_MS + 60_000;
    feed.other(&mut engine, 1, read_ms, true);
    feed.other(&mut engine, 1, read_ms, true);
    for partition in [0, 1] {
        (0..600).for_each(|i| _ = feed.good(&mut engine, partition, BEGIN_MS + i * 100));
    }
    assert_eq!(late(&engine), 0);
    // However many come in one reading, they say nothing of when they arrived.
    let before_ms = frontier_ms(&engine);
    (0..300).for_each(|_| feed.other(&mut engine, 1, read_ms + 5_000, true));
    feed.good(&mut engine, 0, read_ms);
    assert_eq!(frontier_ms(&engine), before_ms);
    // Those of three readings move time: a partition may have no other.
    (0..3).for_each(|i| feed.other(&mut engine, 1, read_ms + 5_000 + i * 100, true));
    feed.good(&mut engine, 0, read_ms);
    assert!(frontier_ms(&engine) > before_ms);
}

#[test]
fn bad_records_among_old_events_make_none_late() {
    // Events of last year, written today: what is heard goes by the delay of the partition's
    // events.
    let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
    (0..2).for_each(|p| _ = engine.assign((0, p).into()));
    for i in 0..600 {
        let (time_ms, arrival_ms) = (BEGIN_MS + i * 100, BEGIN_MS + YEAR_MS + i * 100);
        for partition in 0..2 {
            let one = event(
                "fraud",
                time_ms - 40 * i64::from(partition),
                Some(arrival_ms),
            );
            engine.observe(feed.next(partition), &one);
            feed.other(&mut engine, partition, arrival_ms, true);
        }
    }
    let total = engine.counters().total();
    assert_eq!((total.late, total.observed), (0, 1_200));
}

/// A record: its partition, its time, and whether it is counted.
type Any = (i32, i64, bool);

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Records that are not counted say the same in whatever order partitions are read, and after a
    /// restart.
    #[test]
    fn what_uncounted_records_say_depends_on_the_records_alone(
        counted in proptest::collection::vec((0..3i32, any::<bool>()), 400), cut in 0..400usize, seed in any::<u64>(),
    ) {
        let all: Vec<Any> = (0..).zip(&counted).map(|(i, &(p, c))| (p, BEGIN_MS + i * 150, c || p == 0)).collect();
        let play = |order: &[Any], cut: usize| {
            let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
            (0..3).for_each(|p| _ = engine.assign((0, p).into()));
            for (i, &(p, at_ms, counted)) in order.iter().enumerate() {
                if i == cut {
                    let snapshot = engine.snapshot();
                    engine = Engine::restore(plan(), snapshot).expect("a sound snapshot");
                    (0..3).for_each(|p| _ = engine.assign((0, p).into()));
                }
                match counted {
                    true => _ = feed.good(&mut engine, p, at_ms),
                    false => feed.other(&mut engine, p, at_ms, at_ms % 4 == 0),
                }
            }
            let frontier = frontier_ms(&engine);
            engine.finish();
            (said(&engine), late(&engine), frontier)
        };
        // Partition by partition, in runs of any length: within each the order stays.
        let mut rng = trueline::stats::rng::Rng::new(seed);
        let mut logs: Vec<Vec<Any>> = vec![Vec::new(); 3];
        all.iter().for_each(|r| logs[r.0 as usize].push(*r));
        let mut at = [0; 3];
        let mut mixed = Vec::new();
        while mixed.len() < all.len() {
            let p = (rng.uniform() * 3.0) as usize;
            let to = (at[p] + (rng.uniform() * 50.0) as usize).min(logs[p].len());
            mixed.extend_from_slice(&logs[p][at[p]..to]);
            at[p] = to;
        }
        let straight = play(&all, usize::MAX);
        prop_assert_eq!(&straight, &play(&mixed, usize::MAX));
        prop_assert_eq!(&straight, &play(&all, cut));
        prop_assert_eq!(straight.1, 0);
    }
}

#[test]
fn a_shard_of_uncounted_records_holds_no_verdict_of_the_others_here_or_at_the_judge() {
    let (mut shards, mut worker) = (
        Shards::new(plan(), vec![0]),
        Shards::of_worker(plan(), vec![0]),
    );
    let mut judge = Aggregator::new(plan(), vec!["topic".to_owned()]);
    for all in [&mut shards, &mut worker] {
        for p in 0..2 {
            let mut shard =
                LocalShard::new((0, p).into(), all.plan(), vec!["topic".to_owned()], None);
            shard.assign((0, p).into());
            all.adopt(shard, Vec::new());
        }
        let mut feed = Feed::default();
        for i in 0..600 {
            let at_ms = BEGIN_MS + i * 100;
            feed.good(all.get_mut((0, 0).into()).expect("ours"), 0, at_ms);
            feed.other(
                all.get_mut((0, 1).into()).expect("ours"),
                1,
                at_ms,
                i % 2 == 0,
            );
            all.advance();
        }
    }
    for shard in worker.all_mut() {
        let (at, deltas) = (shard.at, shard.delta_batch());
        judge.take(at, 1, shard.snapshot(), deltas).expect("usable");
        judge.set_freshness(at, Freshness::Behind);
    }
    judge.advance();
    shards.tick(0);
    judge.tick(0);
    for (placed, monitor) in [
        ("shards", shards.monitor()),
        ("judge", Some(judge.monitor())),
    ] {
        let end_ms = window(monitor.expect("it judges")).end_ms;
        assert!(
            BEGIN_MS + 59_900 - end_ms <= LATENESS_MS + SLIDE_MS,
            "{placed}: {end_ms}"
        );
    }
}

#[test]
fn a_refused_event_moves_time() {
    let mut plan = plan();
    // More lateness than there may be open panes.
    plan.models[0].ladder =
        Ladder::new(vec![WindowSpec::time("12s", 12_000)], 60_000).expect("a ladder");
    plan.caps.open_panes_max = 10;
    let (mut engine, mut feed) = (Engine::new(plan), Feed::default());
    let mut ends = Vec::new();
    for i in 0..3_000 {
        ends.push(feed.good(&mut engine, 0, BEGIN_MS + i * 100));
    }
    assert!(ends.contains(&Disposition::Refused(Refusal::Panes)));
    let last = &ends[ends.len() - 1_000..];
    assert!(
        last.contains(&Disposition::Observed),
        "everything is refused for ever"
    );
}

#[test]
fn an_event_ahead_of_its_arrival_moves_time_to_its_arrival() {
    let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
    for i in 0..2_000 {
        let at_ms = BEGIN_MS + i * 100;
        feed.good(&mut engine, 0, at_ms);
        if i == 1_000 {
            // 58 minutes ahead, read now: less than `future_max`.
            let one = event("fraud", at_ms + 58 * 60_000, Some(at_ms));
            assert_eq!(engine.observe(feed.next(0), &one), Disposition::Observed);
        }
    }
    assert_eq!(late(&engine), 0);
    assert_eq!(frontier_ms(&engine), Some(BEGIN_MS + 199_900));
}

#[test]
fn one_record_far_ahead_needs_witnesses() {
    let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
    for i in 0..2_000 {
        feed.good(&mut engine, 0, BEGIN_MS + i * 100);
        if i % 400 == 100 {
            // Its timestamp is by the same wrong clock, and it is read long after.
            feed.good(&mut engine, 0, BEGIN_MS + 10 * YEAR_MS);
        }
    }
    let total = engine.counters().total();
    assert_eq!((total.late, total.ahead), (0, 5));
    assert_eq!(frontier_ms(&engine), Some(BEGIN_MS + 199_900));
    // Rows of one record are one witness.
    let origin = feed.next(0);
    for row in 0..5 {
        if row > 0 {
            engine.next_row(origin);
        }
        let ahead_ms = BEGIN_MS + YEAR_MS + row;
        engine.observe(origin, &event("fraud", ahead_ms, Some(ahead_ms)));
    }
    assert_eq!(frontier_ms(&engine), Some(BEGIN_MS + 199_900));
    // Time has really gone on: others say so.
    feed.good(&mut engine, 0, BEGIN_MS + YEAR_MS + 10);
    feed.good(&mut engine, 0, BEGIN_MS + YEAR_MS + 20);
    assert_eq!(frontier_ms(&engine), Some(BEGIN_MS + YEAR_MS));
}

#[test]
fn another_partition_is_a_witness() {
    let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
    (0..2).for_each(|p| _ = feed.good(&mut engine, p, BEGIN_MS));
    let night_ms = BEGIN_MS + 9 * HOUR_MS;
    (0..3).for_each(|i| _ = feed.good(&mut engine, 0, night_ms + i));
    assert_eq!(frontier_ms(&engine), Some(BEGIN_MS));
    feed.good(&mut engine, 1, night_ms + 5);
    assert_eq!(frontier_ms(&engine), Some(night_ms));
}

#[test]
fn a_stream_expires_by_event_time_and_only_while_all_partitions_are_read() {
    let mut plan = plan();
    plan.caps.expire_after_ms = 20_000;
    plan.models[0].name = "*".to_owned();
    let (mut engine, mut feed) = (Engine::new(plan.clone()), Feed::default());
    (0..2).for_each(|p| _ = engine.assign((0, p).into()));
    for i in 0..100 {
        feed.good(&mut engine, 0, BEGIN_MS + i * 100);
        feed.other(&mut engine, 1, BEGIN_MS + i * 100, false);
    }
    let streams = |e: &Engine| e.reports().count();
    engine.tick(BEGIN_MS);
    assert_eq!(streams(&engine), 2);
    // A clock that steps ten years, and back.
    let before = engine.snapshot();
    engine.tick(BEGIN_MS + 10 * YEAR_MS);
    engine.tick(BEGIN_MS);
    assert_eq!(engine.snapshot().streams.len(), before.streams.len());
    assert_eq!(streams(&engine), 2);

    // After a downtime: the partition of one stream is assigned later than the other.
    let mut engine = Engine::restore(plan, before).expect("a sound snapshot");
    engine.tick(BEGIN_MS + YEAR_MS);
    engine.assign((0, 1).into());
    engine.on_partition((0, 0).into(), PartitionEvent::Ended);
    engine.on_partition((0, 0).into(), PartitionEvent::Revoked);
    for i in 100..600 {
        feed.other(&mut engine, 1, BEGIN_MS + i * 100, false);
    }
    engine.tick(BEGIN_MS + YEAR_MS);
    assert_eq!(
        streams(&engine),
        2,
        "the partition of one of them is not read"
    );
    engine.assign((0, 0).into());
    engine.on_partition((0, 0).into(), PartitionEvent::Ended);
    engine.tick(BEGIN_MS + YEAR_MS);
    assert_eq!(streams(&engine), 1);
    assert_eq!(engine.counters().streams_expired, 1);
}

#[test]
fn a_stream_stays_while_a_window_holds_its_events() {
    let mut plan = plan();
    plan.caps.expire_after_ms = 20_000;
    plan.models[0].name = "*".to_owned();
    let windows = vec![
        WindowSpec::time("12s", 12_000),
        WindowSpec::time("120s", 120_000),
    ];
    plan.models[0].ladder = Ladder::new(windows, LATENESS_MS).expect("a ladder");
    let (mut engine, mut feed) = (Engine::new(plan), Feed::default());
    feed.other(&mut engine, 0, BEGIN_MS, false);
    let mut left_s = None;
    for second in 0..200 {
        let at_ms = BEGIN_MS + second * 1_000;
        feed.good(&mut engine, 0, at_ms);
        engine.tick(at_ms);
        let streams = engine.snapshot().streams.len();
        assert_eq!(streams, engine.reports().count());
        if streams == 1 && left_s.is_none() && second > 0 {
            left_s = Some(second);
        }
    }
    // A window that slides every 20 s may hold an event for 140 s.
    assert!(
        (140..150).contains(&left_s.expect("it expires")),
        "{left_s:?}"
    );
}

#[test]
fn an_idle_partition_whose_log_grows_is_waited_for_and_one_left_out_is_not() {
    let (mut engine, mut feed) = (Engine::new(plan()), Feed::default());
    (0..2).for_each(|p| _ = feed.good(&mut engine, p, BEGIN_MS));
    engine.on_partition((0, 1).into(), PartitionEvent::Ended);
    (0..50).for_each(|i| _ = feed.good(&mut engine, 0, BEGIN_MS + i * 100));
    assert_eq!(frontier_ms(&engine), Some(BEGIN_MS + 4_900));
    // A transaction opens in partition 1: its records come when it ends.
    engine.on_partition((0, 1).into(), PartitionEvent::Grown);
    (50..500).for_each(|i| _ = feed.good(&mut engine, 0, BEGIN_MS + i * 100));
    assert_eq!(frontier_ms(&engine), Some(BEGIN_MS + 4_900));
    (50..400).for_each(|i| _ = feed.good(&mut engine, 1, BEGIN_MS + i * 100));
    assert_eq!(
        (late(&engine), frontier_ms(&engine)),
        (0, Some(BEGIN_MS + 39_900))
    );
    // Another stays open for too long; verdicts go on without the partition until it moves.
    engine.on_partition((0, 1).into(), PartitionEvent::LeftOut);
    assert_eq!(frontier_ms(&engine), Some(BEGIN_MS + 49_900));
    engine.on_partition((0, 1).into(), PartitionEvent::Grown);
    (500..600).for_each(|i| _ = feed.good(&mut engine, 0, BEGIN_MS + i * 100));
    assert_eq!(frontier_ms(&engine), Some(BEGIN_MS + 59_900));
    feed.good(&mut engine, 1, BEGIN_MS + 59_950);
    (600..700).for_each(|i| _ = feed.good(&mut engine, 0, BEGIN_MS + i * 100));
    assert_eq!(frontier_ms(&engine), Some(BEGIN_MS + 59_950));
}
