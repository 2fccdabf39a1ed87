//! An adversary who invents names does not get past any bound that `check` prints.

use super::BEGIN_MS;
use crate::support::records::{EVENT, origin, outcome_record};
use std::path::PathBuf;
use trueline::collect::{Event, Refusal};
use trueline::config::Config;
use trueline::config::bounds::MemoryBound;
use trueline::config::value::Outside;
use trueline::monitor::{Engine, RecordSink};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction};
use trueline::telemetry::{Limits, Published, scrape};

/// What an adversary is held against: all that `check` adds up, with few streams and pending
/// predictions.
const ADVERSARY: &str = r#"version = 1
[kafka]
brokers = "b:1"
[[source]]
topics = "p"
[source.fields]
id = "id"
score = "s"
version = "v"
segments = ["k"]
[source.outcomes]
topics = "o"
maturity = "10m"
pending_max = 3000
[[model]]
name = "*"
level = 6
windows = ["5m", "1h", "24h"]
segments_max = 40
[limits]
streams_max = 200
stream_expiry = "6h"
series_max = 20000
"#;

/// The same with outcomes at hand and all that is kept of vectors.
const ADVERSARY_OF_CLASSES: &str = r#"version = 1
[kafka]
brokers = "b:1"
[[source]]
topics = "p"
[source.fields]
id = "id"
probabilities = "s"
outcome = "y"
version = "v"
segments = ["k"]
[[model]]
name = "*"
classes = ["a", "b", "c"]
views = ["top_label", "full", "top_k:2", "kernel"]
level = 6
windows = ["5m", "1h", "24h"]
segments_max = 40
[model.kernel]
sample = 200
bandwidth = 0.5
features = 8
[limits]
streams_max = 200
stream_expiry = "6h"
series_max = 20000
"#;

/// Ids, segments and versions that an adversary invents in a day.
const NAMES: i64 = 100_000;

/// Puts a day of invented names through an engine, `send` writing the records of each, and holds it
/// against every bound that `check` prints.
fn a_day_of_an_adversary(config: &str, send: impl Fn(&mut Engine, i64, Event<'_>, &mut Rng)) {
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::new(),
    };
    let config = Config::parse(config, "adversary.toml", &outside).expect("sound");
    let bound = MemoryBound::of(&config);
    let vectors = config.plan.models[0].views.iter().filter(|v| v.is_vector());
    // A version has each vector view once, whatever its segments.
    let streams_max = bound.streams_max as usize * (1 + vectors.count());
    let mut engine = Engine::new(config.plan.clone());
    engine.assign((0, 0).into());
    engine.assign((1, 0).into());
    let mut rng = Rng::new(11);
    let day_ms = 86_400_000i64;
    let (mut most, mut streams_most, mut series_most) = (0, 0, 0.0f64);
    for i in 0..NAMES {
        let time_ms = BEGIN_MS + i * day_ms / NAMES;
        // Every id is new, and of every five records one names a new segment, one a new version,
        // one both.
        let (version, segment) = match i % 5 {
            0 => ("1".to_owned(), format!("k={i}")),
            1 => (format!("{i}"), "k=de".to_owned()),
            2 => (format!("{i}"), format!("k={i}")),
            _ => ("1".to_owned(), format!("k={}", i % 7)),
        };
        let event = Event {
            model: "m",
            version: &version,
            segment: &segment,
            id: &i.to_le_bytes(),
            time_ms,
            prediction: Prediction::Score(0.5),
            ..EVENT
        };
        send(&mut engine, i, event, &mut rng);
        if i % 100 == 0 {
            engine.tick(time_ms);
            engine.take_journals();
        }
        if i % 1000 == 999 {
            most = most.max(engine.bytes() as u64);
            streams_most = streams_most.max(engine.reports().count());
        }
        if i % 10_000 == 9_999 {
            series_most = series_most.max(series(&engine, config.http.series_max));
        }
    }
    engine.finish();
    let total = engine.counters().total();
    assert_eq!(total.records, total.disposed());
    println!(
        "{most} of {} bytes, {streams_most} of {streams_max} streams, {series_most} of {} series; {} in other, {} refused",
        bound.state(),
        config.http.series_max,
        total.other,
        total.refused(Refusal::Streams)
    );
    assert!(most <= bound.state(), "{most} > {}", bound.state());
    assert!(streams_most <= streams_max, "{streams_most}");
    assert!(series_most <= config.http.series_max as f64);
    // The cap did bite, and what it kept out of streams of their own is in other.
    assert!(total.other > 5_000 && total.refused(Refusal::Streams) > 10_000);
}

#[test]
fn invented_ids_segments_and_versions_stay_under_the_printed_bounds() {
    a_day_of_an_adversary(ADVERSARY, |engine, i, event, rng| {
        let at = |source| origin(source, 0, i);
        let prediction = Prediction::Score(rng.uniform());
        engine.observe(
            at(0),
            &Event {
                prediction,
                ..event
            },
        );
        // Every other outcome is of no prediction at all.
        let of = if i % 2 == 0 { i } else { -i };
        let id = of.to_le_bytes();
        let outcome = Outcome::Binary(rng.uniform() < 0.5);
        engine.observe_outcome(at(1), &outcome_record(&id, event.time_ms + 1, outcome));
        assert_eq!(engine.counters().total().records, 2 * (i as u64 + 1));
    });
}

#[test]
fn invented_ids_with_vectors_of_three_classes_stay_under_the_printed_bounds() {
    a_day_of_an_adversary(ADVERSARY_OF_CLASSES, |engine, i, event, rng| {
        let (a, b) = (rng.uniform(), rng.uniform());
        let (low, high) = (a.min(b), a.max(b));
        let event = Event {
            prediction: Prediction::Vector(&[low, high - low, 1.0 - high]),
            outcome: Some(Outcome::Class((rng.uniform() * 3.0) as u32)),
            ..event
        };
        let origin = origin(0, 0, i);
        engine.observe(origin, &event);
    });
}

/// Series of streams and windows on /metrics.
fn series(engine: &Engine, series_max: usize) -> f64 {
    let published = Published::new(Limits {
        series_max,
        ..Limits::default()
    });
    for report in engine.reports() {
        published.publish(report);
    }
    let text = scrape::text(&published).expect("a text");
    let text = String::from_utf8(text).expect("UTF-8");
    text.lines().filter(|l| l.contains("window=\"")).count() as f64
}
