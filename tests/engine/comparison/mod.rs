//! Version against version: the statistic's promise over whole paths, its power, and the engine
//! that finds the pairs, against recomputation from scratch under disorder, duplicates and
//! restarts.

mod http;
mod intervals;
mod late_outcomes;
mod pairs;
mod partitions;

use crate::support::records::{EVENT, origin};
use std::collections::BTreeMap;
use trueline::collect::join::JoinPlan;
use trueline::collect::{Event, Segmenting};
use trueline::judge::{CompareOptions, ComparisonReport, JudgeOptions};
use trueline::monitor::{Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sequential::Compared;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

const ALPHA: f64 = 0.1;

fn fixed(z: f64) -> u64 {
    Score::new(z).expect("a score").fixed()
}

fn grid() -> Grid {
    Grid::new(Axis::Linear, 10)
}

fn moved(p: f64, slope: f64, shift: f64) -> f64 {
    let h = (p / (1.0 - p)).ln();
    1.0 / (1.0 + (-(slope * h + shift)).exp())
}

/// The probability of an event, and what champion and challenger say.
type Law = fn(&mut Rng) -> (f64, f64, f64);

/// Both err at random, and as much.
fn equal(rng: &mut Rng) -> (f64, f64, f64) {
    let p = rng.uniform().clamp(1e-3, 0.999);
    let mut noisy = || moved(p, 1.0, 0.4 * rng.normal());
    (p, noisy(), noisy())
}

/// The champion is right, the challenger over-confident.
fn worse(rng: &mut Rng) -> (f64, f64, f64) {
    let p = rng.uniform().clamp(1e-3, 0.999);
    (p, p, moved(p, 1.5, 0.0))
}

/// Events of rate one in a hundred; the challenger doubles the odds.
fn rare(rng: &mut Rng) -> (f64, f64, f64) {
    let p = 0.02 * rng.uniform() + 1e-4;
    (p, p, moved(p, 1.0, 0.7))
}

const BEGIN_MS: i64 = 1_700_000_000_000 / 60_000 * 60_000;
const PANE_MS: i64 = 10_000;
const LATENESS_MS: i64 = 10_000;
const WAIT_MS: i64 = 20_000;

fn plan(champion: Option<&str>, rows_max: usize, joins: Vec<JoinPlan>) -> Plan {
    let windows = vec![
        WindowSpec::time("1m", 60_000),
        WindowSpec::time("10m", 600_000),
    ];
    Plan {
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Segmenting::default(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, LATENESS_MS).expect("a valid ladder"),
            grid: grid(),
            judge: JudgeOptions {
                compare: Some(CompareOptions {
                    champion: champion.map(str::to_owned),
                    wait_ms: WAIT_MS,
                    rows_max,
                    alpha: ALPHA,
                }),
                stale_after_ms: i64::MAX,
                ..JudgeOptions::plain()
            },
        }],
        joins,
        ..Plan::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Record {
    id: u32,
    version: &'static str,
    time_ms: i64,
    score: f64,
    happened: bool,
}

fn observe(engine: &mut Engine, offset: i64, r: &Record) {
    observe_in(engine, (0, offset), r);
}

fn observe_in(engine: &mut impl RecordSink, (partition, offset): (i32, i64), r: &Record) {
    let event = Event {
        model: "m",
        version: r.version,
        segment: if r.id.is_multiple_of(3) { "k=a" } else { "k=b" },
        id: &r.id.to_le_bytes(),
        time_ms: r.time_ms,
        prediction: Prediction::Score(r.score),
        outcome: Some(Outcome::Binary(r.happened)),
        ..EVENT
    };
    let origin = origin(0, partition, offset);
    engine.observe(origin, &event);
}

/// Three versions, the third from half of the time on; retries, disagreements, records too far
/// apart.
fn records(n: u32, seed: u64) -> Vec<Record> {
    let mut rng = Rng::new(seed);
    let mut all = Vec::new();
    for id in 0..n {
        let at = BEGIN_MS + i64::from(id) * 100;
        let (p, champion, challenger) = worse(&mut rng);
        let happened = rng.uniform() < p;
        let versions = [
            ("1", champion),
            ("2", challenger),
            ("3", 0.5 * (champion + p)),
        ];
        let living = if id < n / 2 { 2 } else { 3 };
        for (version, score) in versions.into_iter().take(living) {
            if rng.uniform() < 0.05 {
                continue;
            }
            let mut one = Record {
                id,
                version,
                time_ms: at + (rng.uniform() * 3_000.0) as i64,
                score,
                happened: happened ^ (rng.uniform() < 0.005),
            };
            if rng.uniform() < 0.02 {
                one.time_ms += 30_000;
            }
            all.push(one);
            if rng.uniform() < 0.05 {
                one.time_ms += (rng.uniform() * 5_000.0) as i64;
                one.score *= 0.9;
                all.push(one);
            }
        }
    }
    all
}

/// In the order of arrival: within less than the lateness of that of event time.
fn arrival(records: &[Record], seed: u64) -> Vec<Record> {
    let mut rng = Rng::new(seed);
    let mut keyed: Vec<(i64, Record)> = records
        .iter()
        .map(|r| (r.time_ms + (rng.uniform() * 9_000.0) as i64, *r))
        .collect();
    keyed.sort_by_key(|(at, _)| *at);
    keyed.into_iter().map(|(_, r)| r).collect()
}

fn said(engine: &Engine) -> BTreeMap<(String, String), Compared> {
    let one = |r: ComparisonReport| ((r.id.champion, r.id.challenger), r.compared);
    engine.comparisons().into_iter().map(one).collect()
}
