//! The bound that `check` prints against what streams really take.

use crate::support::records::{EVENT, origin};
use std::path::PathBuf;

use trueline::collect::{Disposition, Event, Refusal};
use trueline::config::Config;
use trueline::config::bounds::MemoryBound;
use trueline::config::value::Outside;
use trueline::monitor::{Engine, RecordSink};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction};

/// 2023-11-14, a multiple of every slide here.
const BEGIN_MS: i64 = 1_699_920_000_000;

fn config(model: &str) -> Config {
    let text = format!(
        "version = 1\n[kafka]\nbrokers = \"b:1\"\n[[source]]\ntopics = \"t\"\n[source.fields]\nscore = \"s\"\n\
         [[model]]\nname = \"*\"\n{model}"
    );
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::new(),
    };
    Config::parse(&text, "memory.toml", &outside).expect("a sound configuration")
}

/// Most bytes that the engine held over `panes` base panes with `events` events each, dealt out to
/// `segments` streams; times waver by `wobble_ms`, which the lateness allows.
fn most(config: &Config, segments: u64, panes: i64, events: i64, wobble_ms: f64) -> usize {
    let pane_ms = config.plan.models[0].ladder.pane_ms;
    let mut engine = Engine::new(config.plan.clone());
    let mut rng = Rng::new(3);
    let mut most = 0;
    for i in 0..panes * events {
        let back = (rng.uniform() * wobble_ms) as i64;
        let score = rng.uniform();
        let segment = format!("k={}", i as u64 % segments);
        let event = Event {
            model: "m",
            version: "1",
            segment: &segment,
            time_ms: BEGIN_MS + i * pane_ms / events - back,
            prediction: Prediction::Score(score),
            outcome: Some(Outcome::Binary(rng.uniform() < score)),
            ..EVENT
        };
        let origin = origin(0, 0, i);
        assert_eq!(engine.observe(origin, &event), Disposition::Observed);
        if i % 997 == 0 {
            most = most.max(engine.bytes());
        }
    }
    most
}

#[test]
fn streams_never_take_more_than_the_bound_that_check_prints() {
    for (model, segments, panes, events, wobble_ms) in [
        // A day and its quarter, all cells full.
        (
            "level = 8\nwindows = [\"5m\", \"1h\", \"24h\"]\n[model.test]\nmin_events = 1000000000\n",
            1,
            1_800,
            600,
            9e3,
        ),
        // Windows by count, of few events a pane and of many.
        (
            "level = 6\nwindows = [\"10s\", { last = 50 }, { last = 5000 }]\n[model.test]\nmin_events = 50\n",
            1,
            300,
            400,
            9e3,
        ),
        (
            "level = 4\nwindows = [{ last = 3000 }]\n[model.test]\nmin_events = 100\n",
            1,
            2_000,
            3,
            9e3,
        ),
        // Judged with everything on, many streams, long lateness: many open panes.
        (
            "level = 10\nwindows = [\"10s\", \"1m\"]\nlateness = \"30s\"\n[model.test]\nmin_events = 100\n",
            8,
            120,
            3_000,
            29e3,
        ),
    ] {
        let config = config(model);
        let bound = MemoryBound::of(&config);
        let allowed = bound.stream_bytes * segments + bound.bets_bytes;
        let took = most(&config, segments, panes, events, wobble_ms) as u64;
        println!("{took} of {allowed} bytes: {}", model.replace('\n', " "));
        assert!(took <= allowed, "{took} > {allowed}: {model}");
    }
}

/// One partition is ahead by `panes` panes, while another that is read stands at its first event;
/// then the other catches up. Counts of events and refusals, and the most bytes that the engine
/// held.
fn ahead(config: &Config, streams: u64, panes: i64) -> (u64, u64, usize) {
    let pane_ms = config.plan.models[0].ladder.pane_ms;
    let mut engine = Engine::new(config.plan.clone());
    let mut rng = Rng::new(5);
    let mut most = 0;
    let mut refused = 0;
    let mut counted = 0;
    for partition in [1, 0, 1] {
        let range = match (partition, counted) {
            (1, 0) => 0..1,
            _ => 1..panes,
        };
        for pane in range {
            for i in 0..streams * 40 {
                let score = rng.uniform();
                let segment = format!("k={}", i % streams);
                let event = Event {
                    model: "m",
                    version: "1",
                    segment: &segment,
                    time_ms: BEGIN_MS + pane * pane_ms,
                    prediction: Prediction::Score(score),
                    outcome: Some(Outcome::Binary(rng.uniform() < score)),
                    ..EVENT
                };
                let origin = origin(0, partition, counted as i64 + refused as i64);
                match engine.observe(origin, &event) {
                    Disposition::Observed => counted += 1,
                    Disposition::Refused(Refusal::Panes) => refused += 1,
                    other => panic!("{other:?}"),
                }
            }
            most = most.max(engine.bytes());
        }
    }
    (counted, refused, most)
}

#[test]
fn a_partition_that_is_ahead_takes_what_open_memory_says_and_what_is_behind_is_never_refused() {
    let model = "level = 6\nwindows = [\"5m\"]\nlateness = \"100s\"\n";
    let limits = |room: &str| format!("{model}[limits]\nopen_memory = \"{room}\"\n");
    let (streams, panes) = (20, 400);
    let all = streams * 40 * (2 * panes as u64 - 1);
    let roomy = config(&limits("64MiB"));
    let (counted, refused, most) = ahead(&roomy, streams, panes);
    assert_eq!((counted, refused), (all, 0));
    let tight = config(&limits("1MiB"));
    let (counted, refused, less) = ahead(&tight, streams, panes);
    println!("{most} bytes with room, {less} without; {refused} of {all} refused");
    assert_eq!(counted + refused, all);
    // The other partition lost nothing, and the one that is ahead what does not fit.
    let one = streams * 40 * (panes as u64 - 1);
    assert!(counted > one && refused > one / 2, "{counted} {refused}");
    let bound = MemoryBound::of(&tight);
    assert_eq!(bound.ahead_bytes, 1 << 20);
    let allowed = bound.stream_bytes * streams + bound.ahead_bytes + bound.bets_bytes;
    assert!(less as u64 <= allowed, "{less} > {allowed}");
    assert!(less + (1 << 20) < most);
}
