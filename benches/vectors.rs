//! Time of the vector views: an event's, against the same engine without them in the same run, and
//! a judgement's. Prints figures; asserts none.
//!
//! Run: `cargo bench --bench vectors`. One thread; engines take turns, the best of several rounds
//! counts. Events of ten classes fall into six panes of one window; nothing is sealed while they
//! are timed, so that a slide's cost stands apart below.

use std::hint::black_box;
use std::time::{Duration, Instant};
use trueline::collect::{Caps, Event, Origin};
use trueline::judge::{JudgeOptions, ModelPlan, Plan};
use trueline::monitor::{Engine, RecordSink};
use trueline::stats::algebra::Merge;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::kernel::conditional::draw;
use trueline::stats::kernel::window::{KernelOptions, KernelSums, evaluate};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction, View};
use trueline::window::{Ladder, WindowSpec};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CLASSES: usize = 10;
const EVENTS: usize = 200_000;
const ROUNDS: usize = 7;
const START_MS: i64 = 1_760_000_040_000;
const SPAN_MS: i64 = 360_000;

struct Row {
    id: [u8; 16],
    p: [f64; CLASSES],
    y: u32,
}

fn rows() -> Vec<Row> {
    let mut rng = Rng::new(1);
    let mut one = |i: usize| {
        // Peaked, as a network's are.
        let mut p = [0.0; CLASSES];
        p.iter_mut()
            .for_each(|p| *p = (1.0 - rng.uniform()).ln().powi(4));
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= sum);
        let y = draw(&p, rng.uniform());
        let mut id = [b'-'; 16];
        id[..8].copy_from_slice(&(i as u64).to_le_bytes());
        Row { id, p, y }
    };
    (0..EVENTS).map(&mut one).collect()
}

fn plan(views: &[View], kernel: KernelOptions) -> Plan {
    Plan {
        models: vec![ModelPlan {
            name: "*".into(),
            views: views.to_vec(),
            classes: (0..CLASSES).map(|k| k.to_string()).collect(),
            ladder: Ladder::new(vec![WindowSpec::time("6m", SPAN_MS)], 2 * SPAN_MS)
                .expect("a sound ladder"),
            grid: Grid::new(Axis::Linear, 12),
            judge: JudgeOptions {
                kernel,
                ..JudgeOptions::plain()
            },
            segmenting: Default::default(),
        }],
        caps: Caps::default(),
        joins: Vec::new(),
        ids: Vec::new(),
    }
}

/// Time of all events, and of the judgement of the window.
fn run(plan: Plan, rows: &[Row]) -> (Duration, Duration) {
    let mut engine = Engine::new(plan);
    let start = Instant::now();
    for (i, row) in rows.iter().enumerate() {
        let event = Event {
            model: "pets",
            version: "1",
            segment: "",
            id: &row.id,
            time_ms: START_MS + (i as i64 * SPAN_MS) / EVENTS as i64,
            arrival_ms: None,
            prediction: Prediction::Vector(&row.p),
            outcome: Some(Outcome::Class(row.y)),
            weight: None,
            cluster: None,
        };
        let origin = Origin {
            source: 0,
            partition: 0,
            offset: i as i64,
        };
        black_box(engine.observe(origin, &event));
    }
    let seen = start.elapsed();
    let start = Instant::now();
    black_box(engine.finish());
    (seen, start.elapsed())
}

fn events(rows: &[Row]) {
    let default = KernelOptions::default();
    let features = KernelOptions {
        nu: Some(0.5),
        features: 16,
        ..default
    };
    let cases = [
        ("top_label alone", vec![View::TopLabel], default),
        (
            "  and top_k:2",
            vec![View::TopLabel, View::TopK(2)],
            default,
        ),
        ("  and full", vec![View::TopLabel, View::Full], default),
        ("  and kernel", vec![View::TopLabel, View::Kernel], default),
        (
            "  and kernel with 16 features",
            vec![View::TopLabel, View::Kernel],
            features,
        ),
    ];
    let mut best = vec![(Duration::MAX, Duration::MAX); cases.len()];
    for _ in 0..ROUNDS {
        for ((_, views, keeping), best) in cases.iter().zip(&mut best) {
            let (seen, judged) = run(plan(views, *keeping), rows);
            *best = (best.0.min(seen), best.1.min(judged));
        }
    }
    println!("{EVENTS} events of {CLASSES} classes, one partition, best of {ROUNDS} rounds");
    println!(
        "{:<34}{:>12}{:>16}{:>24}",
        "views", "ns an event", "above baseline", "seal and judge all, ms"
    );
    let each = |d: Duration| d.as_secs_f64() * 1e9 / EVENTS as f64;
    for ((name, ..), (seen, judged)) in cases.iter().zip(&best) {
        println!(
            "{name:<34}{:>12.1}{:>16.1}{:>24.2}",
            each(*seen),
            each(*seen) - each(best[0].0),
            judged.as_secs_f64() * 1e3
        );
    }
}

fn judgements(rows: &[Row]) {
    println!("\nkernel test of a window, best of 10");
    println!(
        "{:<34}{:>12}{:>16}{:>16}",
        "sample", "merge 6, µs", "median ν, ms", "fixed ν, ms"
    );
    for sample in [256, 512, 1000, 2000] {
        let keeping = |nu| KernelOptions {
            sample,
            nu,
            ..KernelOptions::default()
        };
        let panes = |nu| -> Vec<KernelSums> {
            let mut ranks = Rng::new(2);
            let chunks = rows.chunks(EVENTS / 6);
            let pane = |rows: &[Row]| {
                let mut sums = KernelSums::new(CLASSES, keeping(nu)).expect("a sound shape");
                for row in rows {
                    sums.observe(ranks.bits(), &row.p, 1.0, row.y);
                }
                sums
            };
            chunks.map(pane).collect()
        };
        let merged = |panes: &[KernelSums]| {
            let mut total = panes[0].clone();
            for pane in &panes[1..] {
                total.merge(pane).expect("it counts what it refuses");
            }
            total
        };
        let best = |f: &dyn Fn()| {
            let time = |_| {
                let start = Instant::now();
                f();
                start.elapsed().as_secs_f64()
            };
            (0..10).map(time).fold(f64::MAX, f64::min)
        };
        let (median, fixed) = (panes(None), panes(Some(0.5)));
        let merge = best(&|| {
            black_box(merged(black_box(&median)));
        });
        let judge = |panes: &[KernelSums]| {
            let total = merged(panes);
            best(&|| {
                black_box(evaluate(black_box(&total), 0.05, 0.9));
            })
        };
        println!(
            "{sample:<34}{:>12.1}{:>16.2}{:>16.2}",
            merge * 1e6,
            judge(&median) * 1e3,
            judge(&fixed) * 1e3
        );
    }
}

fn main() {
    let rows = rows();
    events(&rows);
    judgements(&rows);
}
