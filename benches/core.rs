//! What an event costs between the decoder and its cell.
//!
//! One thread; 4096 cells; one stream, then a thousand. All events fall into one open pane, so no
//! window is fed and nothing is judged. Beside it, in the same run, a baseline that does the least
//! any such program must: read an event, add its score to one of as many cells. Ratios to it carry
//! over to other machines; nanoseconds do not.
//!
//! `cargo bench --bench core [-- STREAMS]`; prints one line a case.

use std::hint::black_box;
use std::time::Instant;
use trueline::collect::{Event, Origin, Segmenting};
use trueline::judge::JudgeOptions;
use trueline::monitor::{Caps, Engine, ModelPlan, Plan, RecordSink};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

/// The allocator of the binary; a thousand streams lie closer together with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CELLS: usize = 4096;
const BEGIN_MS: i64 = 1_700_000_000_000;
/// Events a round; rounds are repeated over the same events with later offsets.
const EVENTS: usize = 1 << 20;
const ROUNDS: i64 = 8;

fn plan() -> Plan {
    let minute = 60_000;
    let windows = vec![
        WindowSpec::time("5m", 5 * minute),
        WindowSpec::time("1h", 60 * minute),
        WindowSpec::time("24h", 24 * 60 * minute),
    ];
    Plan {
        joins: Vec::new(),
        ids: Vec::new(),
        models: vec![ModelPlan {
            name: "*".to_owned(),
            segmenting: Segmenting::default(),
            views: vec![View::Binary],
            classes: Vec::new(),
            ladder: Ladder::new(windows, 10_000).expect("a valid ladder"),
            grid: Grid::new(Axis::Linear, 12),
            judge: JudgeOptions::plain(),
        }],
        caps: Caps::default(),
    }
}

fn random(x: &mut u64) -> u64 {
    *x = x
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *x >> 11
}

struct Sample {
    stream: u32,
    score: f64,
    outcome: bool,
}

fn sample(streams: u32) -> Vec<Sample> {
    let mut x = 7;
    let mut next = || {
        let score = random(&mut x) as f64 / (1u64 << 53) as f64;
        let bits = random(&mut x);
        Sample {
            stream: (bits >> 20) as u32 % streams,
            score,
            outcome: bits & 1 == 1,
        }
    };
    (0..EVENTS).map(|_| next()).collect()
}

/// Nanoseconds an event, best of the rounds after the first, which warms up.
fn engine(sample: &[Sample], streams: u32) -> f64 {
    let names: Vec<String> = (0..streams).map(|i| format!("model-{i}")).collect();
    let mut engine = Engine::new(plan());
    let mut best = f64::INFINITY;
    for round in 0..ROUNDS {
        let start = Instant::now();
        for (i, s) in (0i64..).zip(sample) {
            let event = Event {
                weight: None,
                cluster: None,
                model: &names[s.stream as usize],
                version: "7",
                segment: "country=de",
                id: b"",
                // All rounds fall into one base pane: what is measured is the way to the cell.
                time_ms: BEGIN_MS + (i & 0xfff),
                arrival_ms: Some(BEGIN_MS),
                prediction: Prediction::Score(s.score),
                outcome: Some(Outcome::Binary(s.outcome)),
            };
            let origin = Origin {
                source: 0,
                partition: 0,
                offset: round * EVENTS as i64 + i,
            };
            black_box(engine.observe(origin, &event));
        }
        let each = start.elapsed().as_nanos() as f64 / EVENTS as f64;
        if round > 0 {
            best = best.min(each);
        }
    }
    let total = engine.counters().total();
    assert_eq!(total.observed, EVENTS as u64 * ROUNDS as u64);
    best
}

/// The same memory, one addition an event.
fn baseline(sample: &[Sample], streams: u32) -> f64 {
    let mut cells = vec![[0u64; 6]; CELLS * streams as usize];
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for s in sample {
            let at = s.stream as usize * CELLS + (s.score * CELLS as f64) as usize;
            cells[at][0] += 1;
            cells[at][2] += s.score.to_bits() >> 32;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / EVENTS as f64);
    }
    black_box(&cells);
    best
}

fn main() {
    let only: Option<u32> = std::env::args().skip(1).find_map(|a| a.parse().ok());
    for (streams, bar) in [(1, 12.0), (1000, 40.0)] {
        if only.is_some_and(|only| only != streams) {
            continue;
        }
        let sample = sample(streams);
        let (base, each) = (baseline(&sample, streams), engine(&sample, streams));
        println!(
            "{streams:>5} streams x {CELLS} cells: {each:6.1} ns an event (bar {bar}), baseline {base:5.1} ns, ratio {:.1}",
            each / base
        );
    }
}
