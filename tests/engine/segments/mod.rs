//! Segments of a version: what they add up to, how many there may be, and what their names may
//! cost.

mod bounds;
mod streams;
mod sums;

use crate::support::records::{EVENT, origin};
use std::collections::BTreeMap;
use trueline::collect::{Disposition, Event, Origin, ROLL_UP, Segmenting};
use trueline::judge::{JudgeOptions, StreamId};
use trueline::monitor::{Caps, Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::algebra::Merge;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::sums::Sums;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_064_000;
const LATENESS_MS: i64 = 2_500;
const SEGMENTS: [&str; 6] = ["", "k=a", "k=b", "k=c", "k=d", "k=e"];

fn grid() -> Grid {
    Grid::new(Axis::Linear, 7)
}

fn plan(segmenting: Segmenting, streams_max: usize) -> Plan {
    let windows = vec![
        WindowSpec::time("6s", 6_000),
        WindowSpec::time("36s", 36_000),
        WindowSpec::time("72s", 72_000),
    ];
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting,
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, LATENESS_MS).expect("a valid ladder"),
            grid: grid(),
            judge: JudgeOptions {
                min_events: 10,
                ..JudgeOptions::plain()
            },
        }],
        caps: Caps {
            streams_max,
            ..Caps::default()
        },
        ..Plan::default()
    }
}

fn rolled(max: usize) -> Segmenting {
    Segmenting {
        rollup: true,
        max,
        other: true,
    }
}

/// Begin, number of events as judged, and sums of what is held of it, by stream and window.
type Totals = BTreeMap<(StreamId, String), (i64, u64, Sums)>;

fn totals(engine: &Engine) -> Totals {
    let all = engine.monitor().totals();
    all.map(|(id, w, sums)| ((id.clone(), w.window.clone()), (w.start_ms, w.n, sums)))
        .collect()
}

/// Sums of all segments of a version, by window.
fn summed(totals: &Totals, version: &str, window: &str) -> Sums {
    let mut sum = Sums::new(grid());
    for ((id, name), (_, _, sums)) in totals {
        let segmented = id.segment != ROLL_UP && !id.segment.is_empty();
        if id.version == version && segmented && name == window {
            sum.merge(sums).expect("no overflow");
        }
    }
    sum
}

fn restarted(engine: &Engine) -> Engine {
    Engine::restore(engine.plan().clone(), engine.snapshot()).expect("a sound snapshot")
}

/// An event of a version and segment, a tenth of a second apart.
fn event<'a>(i: i64, version: &'a str, segment: &'a str) -> Event<'a> {
    Event {
        model: "m",
        version,
        segment,
        time_ms: BEGIN_MS + i * 100,
        prediction: Prediction::Score((i as f64 * 0.618).fract()),
        outcome: Some(Outcome::Binary(i % 2 == 0)),
        ..EVENT
    }
}

fn at(offset: i64) -> Origin {
    origin(0, 0, offset)
}

fn one(engine: &mut Engine, i: i64, version: &str, segment: &str) -> Disposition {
    engine.observe(at(i), &event(i, version, segment))
}

fn streams(engine: &mut Engine) -> Vec<String> {
    engine.tick(BEGIN_MS);
    let mut all: Vec<String> = engine.reports().map(|r| r.id.to_string()).collect();
    all.sort();
    all
}
