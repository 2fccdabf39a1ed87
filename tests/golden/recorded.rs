//! Runs of the engine whose every number is recorded: sums, windows, verdicts, p-values, detector
//! evidence and the moments of change, of each stream. A change of the code that is meant to change
//! no number changes none here; one that is meant to shows which. What other placements of the two
//! stages compute equals these runs, to the bit, by the tests of shards and of the aggregator.
//!
//! `TRUELINE_RECORD=1 cargo test --release --test golden recorded` writes
//! `tests/golden/recorded.txt`.

use std::fmt::Write;
use std::path::Path;

use crate::support::partitions;
use crate::support::records::outcome_record;
use serde_json::Value;
use trueline::collect::join::{JoinPlan, Missing, Repeated};
use trueline::collect::{Event, Origin, Segmenting};
use trueline::judge::{Change, CompareOptions, DetectorOptions, JudgeOptions, Step, StreamReport};
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::report;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::stats::weight::Weight;
use trueline::window::{Ladder, Packed, WindowSpec};

const BEGIN_MS: i64 = 1_700_000_040_000;

/// FNV-1a.
fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Every number and truth of a JSON value, in the order of its keys, whatever they are called.
fn leaves(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|v| leaves(v, all)),
        Value::Object(fields) => fields.values().for_each(|v| leaves(v, all)),
        Value::Number(_) | Value::Bool(_) => all.push(value.to_string()),
        Value::Null | Value::String(_) => {}
    }
}

fn numbers(value: &Value) -> String {
    let mut all = Vec::new();
    leaves(value, &mut all);
    format!("{}:{:016x}", all.len(), hash(all.join(" ").bytes()))
}

fn stream(r: &StreamReport, out: &mut String) {
    for w in &r.windows {
        let said = w.numbers.as_ref().map(report::evaluation::numbers_json);
        let said = said.unwrap_or(Value::Null);
        let _ = writeln!(
            out,
            "{} {}: {}..{} since {} n {} {} {}",
            r.id,
            w.window,
            w.start_ms,
            w.end_ms,
            w.since_ms,
            w.n,
            w.verdict,
            numbers(&said)
        );
    }
    if let Some(detector) = &r.detector {
        let said = numbers(&report::detector::json(detector));
        let _ = writeln!(out, "{} detector {said}", r.id);
    }
}

/// What the engine says in the end, and when it said something else.
fn record(name: &str, engine: &Engine, changes: &[Change]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for r in engine.reports() {
        let mut out = String::new();
        stream(r, &mut out);
        lines.extend(out.lines().map(str::to_owned));
    }
    lines.extend(engine.monitor().totals().map(|(id, w, sums)| {
        let bytes = Packed::new(&sums).as_bytes().to_vec();
        format!("{id} {} sums {:016x}", w.window, hash(bytes))
    }));
    let change = |c: &Change| {
        let step = match &c.step {
            Step::Verdict { from, to } => format!("verdict {from} {to}"),
            Step::Detector { alarm, .. } => format!("detector {alarm}"),
            Step::Alert { .. } => "window alert".to_owned(),
            Step::Stream { .. } => "stream alert".to_owned(),
        };
        format!("{} {} {} {step}", c.stream, c.window, c.at_ms)
    };
    let mut said: Vec<String> = changes.iter().map(change).collect();
    said.sort();
    let n = said.len();
    lines.push(format!(
        "changes {n} {:016x}",
        hash(said.join("\n").bytes())
    ));
    for c in engine.comparisons() {
        let said = format!("{c:?}");
        let kept: String = said
            .chars()
            .filter(|c| "0123456789.-".contains(*c))
            .collect();
        lines.push(format!("comparison {:016x}", hash(kept.bytes())));
    }
    lines.sort();
    lines.iter().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "{name} | {line}");
        all
    })
}

fn model(views: Vec<View>, grid: Grid, windows: Vec<WindowSpec>) -> ModelPlan {
    ModelPlan {
        name: "*".to_owned(),
        segmenting: Segmenting {
            rollup: true,
            ..Segmenting::default()
        },
        views,
        classes: Vec::new(),
        ladder: Ladder::new(windows, 2_000).expect("a valid ladder"),
        grid,
        judge: JudgeOptions {
            min_events: 50,
            detector: Some(DetectorOptions::alone("1 per 30d".parse().unwrap(), 0.05)),
            stale_after_ms: i64::MAX,
            ..JudgeOptions::plain()
        },
    }
}

fn windows() -> Vec<WindowSpec> {
    vec![
        WindowSpec::time("1m", 60_000),
        WindowSpec::time("5m", 300_000),
        WindowSpec::last(2_000),
    ]
}

fn origin(source: u16, partition: i32, offset: i64) -> Origin {
    Origin {
        source,
        partition,
        offset,
    }
}

/// Scores of two versions on two partitions with disorder, late events and segments; one drifts
/// halfway.
fn scores(plan: Plan, weighted: bool, ids: bool) -> (Engine, Vec<Change>) {
    // What has no segment is in no roll-up.
    let rolled_up = plan.models[0].segmenting.rollup;
    let last = if rolled_up { "k=" } else { "" };
    let mut engine = Engine::new(plan);
    (0..2).for_each(|p| {
        engine.assign((0, p).into());
    });
    let mut rng = Rng::new(20_261_122);
    let mut changes = Vec::new();
    for i in 0..24_000i64 {
        let z = rng.uniform().powi(2).clamp(1e-6, 1.0 - 1e-6);
        let bad = i > 12_000 && i % 2 == 1;
        let p = if bad { (1.6 * z).min(1.0) } else { z };
        let jitter = if rng.uniform() < 0.01 { 30_000 } else { 1_500 };
        let id = (i / 2).to_le_bytes();
        let event = Event {
            model: "m",
            version: ["1", "2"][(i % 2) as usize],
            segment: ["k=a", "k=b", last][(rng.uniform() * 2.999) as usize],
            id: if ids { &id } else { b"" },
            time_ms: BEGIN_MS + i * 50 - (rng.uniform() * f64::from(jitter)) as i64,
            arrival_ms: None,
            prediction: Prediction::Score(z),
            outcome: Some(Outcome::Binary(rng.uniform() < p)),
            weight: weighted.then(|| Weight::new(1.0 + (rng.uniform() * 4.0).floor()).unwrap()),
            cluster: None,
        };
        engine.observe(origin(0, (i % 2) as i32, i / 2), &event);
        if i % 1_000 == 0 {
            changes.extend(engine.tick(BEGIN_MS));
        }
    }
    changes.extend(engine.finish());
    (engine, changes)
}

/// Predictions whose outcomes come later, never, or after their maturity, and then correct what was
/// sealed.
fn joined() -> (Engine, Vec<Change>) {
    let mut plan = Plan {
        models: vec![model(
            vec![View::Binary],
            Grid::new(Axis::Linear, 8),
            windows(),
        )],
        ..Plan::default()
    };
    plan.joins = vec![JoinPlan {
        predictions: 0,
        outcomes: 1,
        maturity_ms: 60_000,
        missing: Missing::Class(0),
        repeated: Repeated::First,
        revise: true,
        by_model: false,
        model: None,
        pending_max: 1_000_000,
        pending_memory: usize::MAX,
    }];
    let mut engine = Engine::new(plan);
    (0..2).for_each(|s| {
        engine.assign((s, 0).into());
    });
    let mut rng = Rng::new(7);
    let mut records: Vec<(i64, u32, Option<bool>, f64)> = Vec::new();
    for id in 0..16_000u32 {
        let (at, z) = (BEGIN_MS + i64::from(id) * 50, rng.uniform());
        records.push((at, id, None, z));
        let delay = -(1.0 - rng.uniform()).ln() * 30_000.0;
        if rng.uniform() < 0.9 {
            records.push((at + delay as i64, id, Some(rng.uniform() < z), z));
        }
    }
    records.sort_by_key(|r| (r.0, r.1));
    let (mut offsets, mut changes) = ([0i64; 2], Vec::new());
    for (time_ms, id, outcome, z) in records {
        let (id, source) = (id.to_le_bytes(), usize::from(outcome.is_some()));
        let at = origin(source as u16, 0, offsets[source]);
        offsets[source] += 1;
        match outcome {
            None => {
                let event = Event {
                    model: "m",
                    version: "",
                    segment: "",
                    id: &id,
                    time_ms,
                    arrival_ms: None,
                    prediction: Prediction::Score(z),
                    outcome: None,
                    weight: None,
                    cluster: None,
                };
                engine.observe(at, &event);
            }
            Some(happened) => {
                engine
                    .observe_outcome(at, &outcome_record(&id, time_ms, Outcome::Binary(happened)));
            }
        }
    }
    changes.extend(engine.finish());
    (engine, changes)
}

fn vectors() -> (Engine, Vec<Change>) {
    let logs = partitions::logs(5, 3_000);
    let mut engine = Engine::new(partitions::plan());
    (0..partitions::PARTITIONS).for_each(|p| {
        engine.assign((0, p).into());
    });
    for offset in 0..logs[0].len() {
        for (p, log) in (0..).zip(&logs) {
            partitions::feed(&mut engine, p, offset, &log[offset]);
        }
    }
    let changes = engine.finish();
    (engine, changes)
}

fn runs() -> String {
    let plan = |grid: Grid| Plan {
        models: vec![model(vec![View::Binary], grid, windows())],
        ..Plan::default()
    };
    let mut compared = plan(Grid::new(
        Axis::Logit {
            low: 1e-4,
            high: 1.0 - 1e-4,
        },
        10,
    ));
    compared.models[0].judge.compare = Some(CompareOptions {
        champion: Some("1".to_owned()),
        wait_ms: 60_000,
        rows_max: 100_000,
        alpha: 0.1,
    });
    compared.models[0].segmenting = Segmenting::default();
    let all = [
        (
            "scores",
            scores(plan(Grid::new(Axis::Linear, 12)), false, false),
        ),
        ("compared", scores(compared, false, true)),
        (
            "weighted",
            scores(plan(Grid::new(Axis::Linear, 8).weighted()), true, false),
        ),
        ("joined", joined()),
        ("vectors", vectors()),
    ];
    let text = all
        .iter()
        .map(|(name, (engine, changes))| record(name, engine, changes));
    text.collect()
}

#[test]
fn recorded_runs_give_the_numbers_that_were_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recorded.txt");
    let now = runs();
    if std::env::var_os("TRUELINE_RECORD").is_some() {
        std::fs::write(&path, &now).expect("written");
    }
    let before = std::fs::read_to_string(&path).expect("tests/golden/recorded.txt");
    for (ours, theirs) in now.lines().zip(before.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(now.lines().count(), before.lines().count());
}
