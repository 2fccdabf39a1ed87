//! Streams judged beside each other: what comes of it is what one thread makes of the same records,
//! to the bit.

use crate::support::records::{EVENT, origin};
use std::sync::Arc;
use trueline::collect::{Event, Segmenting};
use trueline::judge::{DetectorOptions, JudgeOptions, Runtime};
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_000_000;
const STREAMS: usize = 40;

/// Two versions with 20 segments each, and roll-ups. One version comes late; one segment in four is
/// overconfident.
fn plan() -> Plan {
    let windows = vec![
        WindowSpec::time("1m", 60_000),
        WindowSpec::time("6m", 360_000),
        WindowSpec::last(500),
    ];
    let budget = "1 per 30d".parse().expect("a budget");
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, 10_000).expect("a ladder"),
            grid: Grid::new(Axis::Linear, 10),
            segmenting: Segmenting {
                rollup: true,
                max: STREAMS,
                other: true,
            },
            judge: JudgeOptions {
                min_events: 100,
                detector: Some(DetectorOptions::alone(budget, 0.05)),
                ..JudgeOptions::plain()
            },
        }],
        ..Plan::default()
    }
}

/// Everything that an engine says of these records: changes at each tick and at the end, reports,
/// and its state.
fn read(threads: usize, seed: u64) -> (String, usize) {
    let mut engine = Engine::new(plan());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    engine.run_on(Runtime {
        stopwatch: None,
        threads: (threads > 0).then(|| Arc::new(pool.expect("threads"))),
        ..Runtime::default()
    });
    let segments: Vec<String> = (0..STREAMS / 2).map(|i| format!("k={i}")).collect();
    let mut rng = Rng::new(seed);
    let (mut changes, mut said) = (0, String::new());
    for i in 0..60_000 {
        let stream = (rng.uniform() * STREAMS as f64) as usize;
        let (version, segment) = (stream % 2, stream / 2);
        let z = rng.uniform();
        let p = match segment % 4 {
            0 => 0.5 + 0.4 * (z - 0.5),
            _ => z,
        };
        let late_ms = (rng.uniform() * 12_000.0) as i64 * version as i64;
        let event = Event {
            model: "fraud",
            version: ["1", "2"][version],
            segment: &segments[segment],
            time_ms: BEGIN_MS + 20 * i - late_ms,
            prediction: Prediction::Score(z),
            outcome: Some(Outcome::Binary(rng.uniform() < p)),
            ..EVENT
        };
        engine.observe(origin(0, 0, i), &event);
        if i % 5_000 == 0 {
            let new = engine.tick(BEGIN_MS + 20 * i);
            changes += new.len();
            said += &format!("{new:?}\n");
        }
    }
    let new = engine.finish();
    changes += new.len();
    let reports: Vec<_> = engine.reports().collect();
    said += &format!("{new:?}\n{reports:?}\n{:?}", engine.snapshot());
    (said, changes)
}

#[test]
fn any_number_of_threads_judges_as_one_does() {
    for seed in 0..2 {
        let (alone, changes) = read(0, seed);
        assert!(changes > 2 * STREAMS, "{changes}");
        for threads in [1, 2, 5] {
            let (beside, _) = read(threads, seed);
            assert!(
                beside == alone,
                "{threads} threads judge otherwise, seed {seed}"
            );
        }
    }
}
