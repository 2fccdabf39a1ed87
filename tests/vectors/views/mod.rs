//! Vector views live: what windows say of `top_k` and `full` is what the same events say offline,
//! in whatever order they came and through whatever restarts; segments go together; what is capped
//! is said; tests keep their levels.

mod caps;
mod classes;
mod levels;
mod windows;

use crate::support::random::vector;
use crate::support::records::{EVENT, origin};
use trueline::collect::{Disposition, Event};
use trueline::judge::{JudgeOptions, ModelPlan, Plan, StreamReport};
use trueline::monitor::{Engine, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::kernel::conditional::draw;
use trueline::stats::multiclass::VectorView;
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const START_MS: i64 = 1_760_000_040_000;

/// Ten minutes in panes of a minute.
const SPAN_MS: i64 = 600_000;
const VIEWS: [(View, VectorView); 2] = [
    (View::TopK(2), VectorView::TopK(2)),
    (View::Full, VectorView::Full),
];

fn plan_of(classes: usize, views: &[View], windows: Vec<WindowSpec>, lateness_ms: i64) -> Plan {
    Plan {
        models: vec![ModelPlan {
            name: "*".into(),
            views: views.to_vec(),
            classes: (0..classes).map(|k| format!("class {k}")).collect(),
            ladder: Ladder::new(windows, lateness_ms).unwrap(),
            grid: Grid::new(Axis::Linear, 8),
            judge: JudgeOptions {
                min_events: 50,
                ..JudgeOptions::plain()
            },
            segmenting: Default::default(),
        }],
        ..Plan::default()
    }
}

fn plan() -> Plan {
    let windows = vec![WindowSpec::time("6m", 360_000), WindowSpec::last(500)];
    plan_of(
        4,
        &[View::TopLabel, View::TopK(2), View::Full],
        windows,
        SPAN_MS,
    )
}

struct Row {
    time_ms: i64,
    segment: &'static str,
    p: Vec<f64>,
    y: u32,
}

/// Calibrated events of some classes, `pushed` of the outcomes class 0 whatever was said.
fn rows_of(classes: usize, n: usize, pushed: f64, seed: u64) -> Vec<Row> {
    let mut rng = Rng::new(seed);
    let mut one = |i: usize| {
        let p = vector(&mut rng, classes);
        let y = match rng.uniform() < pushed {
            true => 0,
            false => draw(&p, rng.uniform()),
        };
        Row {
            time_ms: START_MS + (i as i64 * SPAN_MS) / n as i64,
            segment: ["country=de", "country=fr", "country=fr"][i % 3],
            p,
            y,
        }
    };
    (0..n).map(&mut one).collect()
}

fn rows(n: usize, pushed: f64, seed: u64) -> Vec<Row> {
    rows_of(4, n, pushed, seed)
}

fn take_of(engine: &mut Engine, version: &str, offset: usize, row: &Row) -> Disposition {
    let event = Event {
        model: "animals",
        version,
        segment: row.segment,
        time_ms: row.time_ms,
        arrival_ms: Some(row.time_ms),
        prediction: Prediction::Vector(&row.p),
        outcome: Some(Outcome::Class(row.y)),
        ..EVENT
    };
    let origin = origin(0, 0, offset as i64);
    engine.observe(origin, &event)
}

fn take(engine: &mut Engine, offset: usize, row: &Row) -> Disposition {
    take_of(engine, "7", offset, row)
}

fn feed(plan: Plan, rows: &[Row]) -> Engine {
    let mut engine = Engine::new(plan);
    for (i, row) in rows.iter().enumerate() {
        take(&mut engine, i, row);
    }
    engine
}

fn report(engine: &Engine, view: View) -> StreamReport {
    let mut all = engine.reports().filter(|r| r.id.view == view);
    all.next().unwrap().as_ref().clone()
}
