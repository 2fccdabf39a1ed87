//! The bound that `check` prints against what streams really take.

use std::path::PathBuf;

use trueline::collect::{Disposition, Event, Origin};
use trueline::config::Config;
use trueline::config::bounds::MemoryBound;
use trueline::config::value::Outside;
use trueline::monitor::Engine;
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
            weight: None,
            cluster: None,
            model: "m",
            version: "1",
            segment: &segment,
            id: b"",
            time_ms: BEGIN_MS + i * pane_ms / events - back,
            arrival_ms: None,
            prediction: Prediction::Score(score),
            outcome: Some(Outcome::Binary(rng.uniform() < score)),
        };
        let origin = Origin {
            source: 0,
            partition: 0,
            offset: i,
        };
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
