//! The record of an alert holds what decided it: each is recomputed to the bit, and a record with
//! one bit changed is not.

use super::BEGIN_MS;
use crate::support::records::{EVENT, origin};
use serde_json::Value;
use std::path::PathBuf;
use trueline::collect::Event;
use trueline::config::Config;
use trueline::config::value::Outside;
use trueline::monitor::{Engine, Plan, RecordSink};
use trueline::report::record::Record;
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction};

/// Of a fleet that goes bad and well again in an engine alone.
#[test]
fn a_hundred_changes_of_alerts_are_recomputed_from_their_records_to_the_bit() {
    let mut engine = Engine::new(fleet());
    let mut changes = Vec::new();
    let mut rng = Rng::new(20_261_121);
    for i in 0..180_000_i64 {
        let model = format!("m{}", i % 5);
        let bad = (i / 6_000) % 2 == 1;
        let z = rng.uniform();
        let score = if i % 5 == 4 {
            (8.0 * z).round() / 8.0
        } else {
            z
        };
        let truth = if bad { score * 0.6 } else { score };
        let event = Event {
            model: &model,
            version: "1",
            time_ms: BEGIN_MS + i * 10,
            prediction: Prediction::Score(score),
            outcome: Some(Outcome::Binary(rng.uniform() < truth)),
            ..EVENT
        };
        let origin = origin(0, 0, i);
        engine.observe(origin, &event);
        if i % 500 == 0 {
            changes.extend(engine.tick(BEGIN_MS));
        }
    }
    // Data stop, and nothing can be said any more.
    changes.extend(engine.tick(BEGIN_MS + 10_000_000));
    changes.extend(engine.tick(BEGIN_MS + 20_000_000));
    let offsets = || vec![("t".to_owned(), 0, 180_000)];
    let of_alerts = changes.iter();
    let of_alerts = of_alerts.filter_map(|c| Record::of(c, "0123456789abcdef", offsets()));
    let records: Vec<Record> = of_alerts.collect();
    let (mut judged, mut detected, mut pages) = (0, 0, 0);
    for record in &records {
        let text = serde_json::to_string(record).expect("a record");
        let read = Record::read(&text).expect("it reads back");
        let checked = read.recompute();
        assert!(
            checked.different.is_empty(),
            "{}: {checked:?}",
            read.words()
        );
        judged += usize::from(checked.equal.iter().any(|p| p.ends_with("evaluation")));
        detected += usize::from(checked.equal.iter().any(|p| p == "detector"));
        pages += usize::from(read.key.ends_with("-page"));
        assert!(read.words().contains("window 6s"));
    }
    let all = records.len();
    println!(
        "{all} records recomputed: {judged} with windows, {detected} with the detector, {pages} pages"
    );
    assert!(all >= 100 && judged >= 50 && detected >= 100 && pages > 0);
    // One bit elsewhere is found.
    let (mut found, mut tried) = (0, 0);
    for record in &records {
        let mut value = serde_json::to_value(record).expect("a record");
        let Some(sums) = value["windows"][0]["sums"].as_str().map(str::to_owned) else {
            continue;
        };
        let last = if sums.ends_with('0') { "1" } else { "0" };
        value["windows"][0]["sums"] = Value::from(sums[..sums.len() - 1].to_owned() + last);
        let other = Record::read(&value.to_string()).expect("it reads back");
        (found, tried) = (
            found + usize::from(!other.recompute().different.is_empty()),
            tried + 1,
        );
    }
    assert_eq!(
        found, tried,
        "a changed record is distinguished from an unchanged one"
    );
}

fn fleet() -> Plan {
    let text = r#"version = 1
[kafka]
brokers = "b:1"
[[source]]
topics = "t"
[source.fields]
score = "s"
[[model]]
name = "*"
windows = ["6s", "30s"]
lateness = "1s"
[model.test]
tolerance = 0.02
overdispersion = "show"
min_events = 200
[model.alert]
window_alerts = true
budget = "2000 events"
for = "2s"
keep_firing_for = "3s"
stale_after = "1h"
[[model]]
name = "m1"
axis = "logit"
axis_low = 0.001
axis_high = 0.999
[[model]]
name = "m2"
test = { critical = "monte_carlo", replicates = 99, distances = "cheap", discrete = "off" }
[[model]]
name = "m3"
alert = { window_alerts = true, budget = "5% ever", for = "0s", keep_firing_for = "1s" }
"#;
    let outside = Outside {
        variable: &|_| None,
        directory: PathBuf::new(),
    };
    let config = Config::parse(text, "fleet.toml", &outside);
    config.expect("a sound configuration").plan
}
