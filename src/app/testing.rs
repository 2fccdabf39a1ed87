//! Plans and events for the tests of several modules.

use crate::collect::{Event, Segmenting};
use crate::judge::JudgeOptions;
use crate::monitor::{ModelPlan, Plan};
use crate::stats::axis::{Axis, Grid};
use crate::stats::view::{Outcome, Prediction, View};
use crate::window::{Ladder, WindowSpec};

/// All models, over windows of six seconds.
pub(super) fn plan(judge: JudgeOptions) -> Plan {
    let windows = vec![WindowSpec::time("6s", 6_000)];
    let model = ModelPlan {
        name: "*".to_owned(),
        segmenting: Segmenting::default(),
        views: vec![View::Binary],
        classes: Vec::new(),
        ladder: Ladder::new(windows, 1_000).expect("a ladder"),
        grid: Grid::new(Axis::Linear, 6),
        judge,
    };
    Plan {
        models: vec![model],
        ..Plan::default()
    }
}

/// An event of a version of a model: its time, its score, and whether it happens.
pub(super) fn event<'a>(
    model: &'a str,
    version: &'a str,
    time_ms: i64,
    score: f64,
    happens: bool,
) -> Event<'a> {
    Event {
        model,
        version,
        segment: "",
        id: b"",
        time_ms,
        arrival_ms: None,
        prediction: Prediction::Score(score),
        outcome: Some(Outcome::Binary(happens)),
        weight: None,
        cluster: None,
    }
}
