//! The promises of the engine: the records that its laws are held against, and a stream of known
//! truth.

mod laws;
mod snapshots;
mod verdicts;
mod windows;

use crate::support::records::{EVENT, origin};
use trueline::collect::{Disposition, Event, Segmenting};
use trueline::judge::{Change, JudgeOptions, WindowReport};
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::clusters::Bucket;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_000_000;
const LATENESS_MS: i64 = 2_500;
const SOURCE: u16 = 0;

#[derive(Debug, Clone)]
struct Record {
    model: usize,
    time_ms: i64,
    /// Added to the time for the order of arrival.
    delay_ms: i64,
    score: f64,
    outcome: bool,
    partition: i32,
}

fn plan() -> Plan {
    let windows = vec![
        WindowSpec::time("6s", 6_000),
        WindowSpec::time("36s", 36_000),
        WindowSpec::time("72s", 72_000),
        WindowSpec::last(40),
    ];
    let model = |name: &str, views: Vec<View>, axis| ModelPlan {
        name: name.to_owned(),
        segmenting: Segmenting::default(),
        views,
        classes: Vec::new(),
        ladder: Ladder::new(windows.clone(), LATENESS_MS).unwrap(),
        grid: Grid::new(axis, 8),
        judge: JudgeOptions {
            min_events: 10,
            pending_ms: 2_000,
            keep_firing_ms: 2_000,
            ..JudgeOptions::plain()
        },
    };
    let logit = Axis::Logit {
        low: 1e-4,
        high: 0.9,
    };
    let mut two = model("two", vec![View::TopLabel, View::Class(1)], Axis::Linear);
    two.grid = two.grid.clustered();
    Plan {
        models: vec![
            model("one", vec![View::Binary], Axis::Linear),
            two,
            model("*", vec![View::Binary], logit),
        ],
        ..Plan::default()
    }
}

const MODELS: [(&str, &str); 4] = [("one", "1"), ("one", "2"), ("two", ""), ("other", "")];

impl Record {
    /// One of twenty users; only the model "two" looks at them.
    fn cluster(&self) -> Bucket {
        Bucket::of(&(self.time_ms % 20).to_le_bytes())
    }
}

fn feed(engine: &mut Engine, partition: i32, offset: i64, r: &Record) -> Disposition {
    let (model, version) = MODELS[r.model];
    let vector = [1.0 - r.score, r.score];
    let event = Event {
        cluster: Some(r.cluster()),
        model,
        version,
        time_ms: r.time_ms,
        prediction: if model == "two" {
            Prediction::Vector(&vector)
        } else {
            Prediction::Score(r.score)
        },
        outcome: Some(Outcome::Binary(r.outcome)),
        ..EVENT
    };
    let origin = origin(SOURCE, partition, offset);
    engine.observe(origin, &event)
}

/// A stream with `n` events a second, calibrated or saying 0.2 too much.
fn stream(engine: &mut Engine, seconds: std::ops::Range<i64>, n: i64, wrong: bool) -> Vec<Change> {
    let mut changes = Vec::new();
    for second in seconds {
        for i in 0..n {
            let score = 0.3 + 0.4 * ((i * 37 % n) as f64 / n as f64);
            let truth = if wrong { score - 0.2 } else { score };
            // Outcomes as even as can be: the fraction of the golden ratio.
            let draw = ((second * n + i) as f64 * 0.618_033_988_749).fract();
            let record = Record {
                model: 0,
                time_ms: BEGIN_MS + second * 1_000 + i * 1_000 / n,
                delay_ms: 0,
                score,
                outcome: draw < truth,
                partition: 0,
            };
            feed(engine, 0, second * n + i, &record);
        }
        changes.extend(engine.tick(BEGIN_MS + second * 1_000));
    }
    changes
}

/// Reports of the only stream, by window.
fn window<'a>(engine: &'a Engine, name: &str) -> &'a WindowReport {
    let report = engine.reports().next().expect("a stream");
    let found = report.windows.iter().find(|w| w.window == name);
    found.expect("a window of that name")
}
