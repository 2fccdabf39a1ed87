//! The counts from which the guide sizes a fleet (`deploy/guide/sizing.md`), on fleets to which
//! nothing happens.
//!
//! Each of three models has ten events a second on every partition, so every window has enough of
//! them from its first pane on.

use std::time::Duration;

use super::clock::wall_ms;
use super::scenario::{BEGIN, Fleet, Kind, Record, Scenario, UNTIL, draw};
use super::start::Start;
use super::world::{JUDGE_PARTITIONS, count};

const MODELS: usize = 3;
/// Slides of the windows of 30 s and 1 m, seconds.
const SLIDES_S: [u64; 2] = [5, 10];

/// A fleet without faults, whose records come in time.
fn steady(seed: u64, fleet: Fleet, interval_s: u64) -> Scenario {
    let mut scenario = draw(seed, fleet);
    scenario.faults.clear();
    scenario.records.clear();
    (scenario.joined, scenario.expires) = (None, false);
    (scenario.schemas, scenario.start) = (false, Start::Earliest);
    scenario.interval_s = interval_s;
    let streams = MODELS as i32 * scenario.partitions;
    let each = Duration::from_millis(100) / streams as u32;
    let n = (UNTIL - BEGIN).as_nanos() / each.as_nanos();
    let record = |i: u32| {
        let (at, stream) = (BEGIN + i * each, i as i32 % streams);
        let (model, log) = (stream as usize % MODELS, stream / MODELS as i32);
        let (time_ms, outcome) = (wall_ms(at), (i / streams as u32).is_multiple_of(2));
        let name = ["a", "b", "c"][model];
        Record {
            at,
            log,
            time_ms,
            stamp_ms: time_ms,
            text: format!(
                r#"{{"id":"{i}","model":"{name}","time_ms":{time_ms},"score":0.5,"outcome":{}}}"#,
                u8::from(outcome)
            ),
            kind: Kind::Good { model, outcome },
        }
    };
    scenario.records = (0..n as u32).map(record).collect();
    scenario
}

/// Every window is judged once a slide, whatever the number of partitions is.
#[test]
fn a_judge_evaluates_each_window_of_each_stream_once_a_slide() {
    for (seed, interval_s) in [(0, 3), (1, 10)] {
        let scenario = steady(seed, Fleet::Judged, interval_s);
        let counts = count(&scenario);
        let seconds = (UNTIL - BEGIN).as_secs();
        let slides: u64 = SLIDES_S.iter().map(|slide| seconds / slide).sum();
        let expected = slides * MODELS as u64;
        // A window is also judged while its first slide fills, and the last slides wait for the
        // watermark.
        let most = 5 * MODELS as u64;
        println!(
            "{expected} evaluations by the guide, {}",
            counts.evaluations
        );
        assert!(
            counts.evaluations.abs_diff(expected) <= most,
            "{} evaluations, {expected} by the guide",
            counts.evaluations
        );
    }
}

/// A partition with news is written at every interval: once whole, and once divided among the judge
/// partitions.
#[test]
fn a_worker_writes_each_partition_once_an_interval_and_once_for_each_judge_partition() {
    for (seed, interval_s) in [(2, 3), (3, 10)] {
        let scenario = steady(seed, Fleet::Shared, interval_s);
        let counts = count(&scenario);
        let seconds = (UNTIL - BEGIN).as_secs();
        let partitions = scenario.partitions as u64;
        let expected = partitions * (seconds / interval_s);
        // The first, the last, and one for a moment in which the one before was under way.
        let most = 4 * partitions;
        println!(
            "{expected} checkpoints by the guide, {}; {} parts of them for judges",
            counts.checkpoints, counts.parts
        );
        assert!(
            counts.checkpoints.abs_diff(expected) <= most,
            "{} checkpoints, {expected} by the guide",
            counts.checkpoints
        );
        assert_eq!(counts.parts, counts.checkpoints * JUDGE_PARTITIONS);
    }
}
