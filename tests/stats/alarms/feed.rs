//! An engine and events for it.

use crate::support::records::{EVENT, origin};
use crate::support::streams::{Law, expit, score};
use trueline::collect::{Event, Segmenting};
use trueline::judge::{Change, DetectorOptions, JudgeOptions, Step};
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, Width, WindowSpec};

/// A multiple of a pane.
pub const BEGIN_MS: i64 = 1_700_000_060_000;

/// Length of a pane of [`plan`].
pub const PANE_MS: i64 = 10_000;

/// One model with panes of [`PANE_MS`], one window of two of them, and a detector under this
/// budget. Windows are tested from `min_events` on.
pub fn plan(budget: &str, tolerance: f64, min_events: u64) -> Plan {
    let window = WindowSpec {
        name: "20s".to_owned(),
        width: Width::Time {
            width_ms: 2 * PANE_MS,
            slide_ms: PANE_MS,
        },
    };
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(vec![window], 0).unwrap(),
            grid: Grid::new(Axis::Linear, 12),
            segmenting: Segmenting::default(),
            judge: JudgeOptions {
                detector: Some(DetectorOptions::alone(budget.parse().unwrap(), tolerance)),
                min_events,
                stale_after_ms: i64::MAX,
                ..JudgeOptions::plain()
            },
        }],
        ..Plan::default()
    }
}

/// How outcomes depart from the scores.
#[derive(Clone, Copy)]
pub enum Truth {
    Calibrated,
    Temperature(f64),
    Shift(f64),
    Odds(f64),
}

impl Truth {
    pub fn of(self, z: f64) -> f64 {
        let h = (z / (1.0 - z)).ln();
        match self {
            Truth::Calibrated => z,
            Truth::Temperature(t) => expit(h / t),
            Truth::Shift(x) => (z + x).clamp(0.0, 1.0),
            Truth::Odds(x) => expit(h + x),
        }
    }
}

/// Feeds one event; `offset` must rise.
pub fn event(
    engine: &mut Engine,
    segment: &str,
    offset: i64,
    time_ms: i64,
    (z, y): (f64, Option<bool>),
) {
    let event = Event {
        model: "net",
        version: "1",
        segment,
        time_ms,
        prediction: Prediction::Score(z),
        outcome: y.map(Outcome::Binary),
        ..EVENT
    };
    let origin = origin(0, 0, offset);
    engine.observe(origin, &event);
}

/// Events of one stream, `pane` of them in each pane.
pub struct Stream {
    pub rng: Rng,
    pub law: Law,
    pub pane: i64,
    pub next: i64,
}

impl Stream {
    pub fn new(seed: u64, law: Law, pane: i64) -> Stream {
        Stream {
            rng: Rng::new(seed),
            law,
            pane,
            next: 0,
        }
    }

    /// Feeds one pane and the event that seals the one before it.
    pub fn feed(&mut self, engine: &mut Engine, truth: Truth) -> Vec<Change> {
        for _ in 0..self.pane {
            let time_ms = BEGIN_MS + self.next * PANE_MS / self.pane;
            let z = score(self.law, &mut self.rng);
            let y = self.rng.uniform() < truth.of(z);
            event(engine, "", self.next, time_ms, (z, Some(y)));
            self.next += 1;
        }
        engine.tick(BEGIN_MS)
    }
}

/// Moments at which a detector raised an alarm.
pub fn alarms(changes: &[Change]) -> impl Iterator<Item = &Change> {
    let raised = |c: &&Change| matches!(c.step, Step::Detector { alarm: true, .. });
    changes.iter().filter(raised)
}
