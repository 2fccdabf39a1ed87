//! What catching up costs where much is to be judged, and what one judged window costs in place.
//!
//! The engine of the default configuration (windows 5m, 1h and 24h, the detector, the ledger) takes
//! four million decoded events at 5000 a second of event time: of a thousand streams, which have
//! few events in each pane, then of five, whose 4096 cells are all occupied. The calls in which a
//! base pane becomes due seal, merge, test and judge; their time over the evaluations made in them
//! is that of one judged window, everything included. Decoding and the broker are left out. Prints
//! figures; asserts none.
//!
//! `cargo bench --bench catch_up [-- STREAMS [TURNS]] [threads=N]`; one line a turn, of time on the
//! clock. Streams are judged on `threads`, 1 unless said. On a loaded machine read the processor
//! time that `time` tells.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trueline::collect::{Event, Origin};
use trueline::config::Config;
use trueline::config::value::Outside;
use trueline::judge::Runtime;
use trueline::monitor::{Engine, Plan, RecordSink};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EVENTS: usize = 4_000_000;
const EVENTS_A_SECOND: usize = 5_000;
const BEGIN_MS: i64 = 1_700_000_000_000;
const TURNS: usize = 5;

/// What a file makes that says nothing but where the records are.
fn default_plan() -> Plan {
    let text = "version = 1\n[kafka]\nbrokers = \"b:1\"\n[[source]]\ntopics = \"t\"\n[source.fields]\nscore = \"s\"\n";
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::new(),
    };
    let config = Config::parse(text, "trueline.toml", &outside);
    config.expect("a valid file").plan
}

struct Sample {
    stream: u32,
    score: f64,
    outcome: bool,
}

/// Calibrated events of streams in random order.
fn sample(streams: usize) -> Vec<Sample> {
    let mut rng = Rng::new(7);
    let mut next = || {
        let score = rng.uniform();
        Sample {
            stream: (rng.uniform() * streams as f64) as u32,
            score,
            outcome: rng.uniform() < score,
        }
    };
    (0..EVENTS).map(|_| next()).collect()
}

/// One turn over all events.
struct Turn {
    whole: Duration,
    /// Of the calls in which panes were sealed.
    judging: Duration,
    evaluations: u64,
}

impl Turn {
    fn take(sample: &[Sample], names: &[String], runtime: &Runtime) -> Turn {
        let plan = default_plan();
        let ladder = plan.models[0].ladder.clone();
        let mut engine = Engine::new(plan);
        engine.run_on(runtime.clone());
        let mut judging = Duration::ZERO;
        let mut due_ms = BEGIN_MS;
        let begun = Instant::now();
        for (i, s) in (0i64..).zip(sample) {
            let time_ms = BEGIN_MS + i * 1000 / EVENTS_A_SECOND as i64;
            let event = Event {
                weight: None,
                cluster: None,
                model: &names[s.stream as usize],
                version: "7",
                segment: "",
                id: b"",
                time_ms,
                arrival_ms: Some(time_ms),
                prediction: Prediction::Score(s.score),
                outcome: Some(Outcome::Binary(s.outcome)),
            };
            let origin = Origin {
                source: 0,
                partition: 0,
                offset: i,
            };
            if time_ms < due_ms {
                black_box(engine.observe(origin, &event));
            } else {
                // The first event at or after the end of a pane and its lateness seals it.
                let begun = Instant::now();
                black_box(engine.observe(origin, &event));
                judging += begun.elapsed();
                let sealed_ms = time_ms - ladder.lateness_ms;
                let panes = sealed_ms.div_euclid(ladder.pane_ms) + 1;
                due_ms = panes * ladder.pane_ms + ladder.lateness_ms;
            }
        }
        let whole = begun.elapsed();
        let counters = engine.counters();
        assert_eq!(counters.total().observed, sample.len() as u64);
        Turn {
            whole,
            judging,
            evaluations: counters.evaluations,
        }
    }
}

fn main() {
    let threads = std::env::args().find_map(|a| a.strip_prefix("threads=")?.parse().ok());
    let threads = threads.unwrap_or(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let runtime = Runtime {
        stopwatch: None,
        threads: (threads > 1).then(|| Arc::new(pool.expect("threads"))),
        ..Runtime::default()
    };
    let mut numbers = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    let only: Option<usize> = numbers.next();
    let turns = numbers.next().unwrap_or(TURNS);
    for (streams, bars) in [(1000, "bar 700 ns"), (5, "bar 400 µs")] {
        if only.is_some_and(|only| only != streams) {
            continue;
        }
        let sample = sample(streams);
        let names: Vec<String> = (0..streams).map(|i| format!("model-{i}")).collect();
        println!(
            "{streams} streams, {EVENTS} events, windows 5m, 1h and 24h ({bars}), {threads} threads"
        );
        for _ in 0..turns {
            let turn = Turn::take(&sample, &names, &runtime);
            let each = |time: Duration| time.as_secs_f64() * 1e9 / sample.len() as f64;
            println!(
                "  {:6.0} ns an event, {:4.0} for counting; {} windows judged, {:6.1} µs each",
                each(turn.whole),
                each(turn.whole - turn.judging),
                turn.evaluations,
                turn.judging.as_secs_f64() * 1e6 / turn.evaluations.max(1) as f64
            );
        }
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load {}", load.trim());
}
