//! Who is told in a day of the default configuration: nobody of calibrated models, and somebody of
//! the bad ones.
//!
//! In CI the day has fewer events and models; `TRUELINE_DATA_SETS` takes the numbers of the
//! promise: five streams of an event a second, and 500 models of five events a minute.

use super::feed::{BEGIN_MS, Truth};
use crate::support::bars::first_seed;
use crate::support::records::{EVENT, origin};
use crate::support::streams::{LAWS, Law, score};
use std::collections::BTreeSet;
use trueline::collect::Event;
use trueline::config::Config;
use trueline::config::value::Outside;
use trueline::judge::{Change, Step, alarm};
use trueline::monitor::{Engine, Plan, RecordSink};
use trueline::stats::rng::Rng;
use trueline::stats::view::{Outcome, Prediction};

const MINUTES: i64 = 24 * 60;

/// What a file makes that says nothing but where the records are.
fn default_plan() -> Plan {
    let text = "version = 1\n[kafka]\nbrokers = \"b:1\"\n[[source]]\ntopics = \"t\"\n[source.fields]\nscore = \"s\"\n";
    let outside = Outside {
        variable: &|_| None,
        directory: std::path::PathBuf::new(),
    };
    Config::parse(text, "trueline.toml", &outside).unwrap().plan
}

fn is_long() -> bool {
    std::env::var_os("TRUELINE_DATA_SETS").is_some()
}

/// Models of which somebody is told in a day of `a_minute` events of each.
fn told(plan: Plan, models: &[(Law, Truth)], a_minute: i64, seed: u64) -> (BTreeSet<usize>, usize) {
    let mut engine = Engine::new(plan);
    let names: Vec<String> = (0..models.len()).map(|i| format!("model-{i:03}")).collect();
    let (mut rng, mut offset) = (Rng::new(seed), 0);
    let (mut who, mut times) = (BTreeSet::new(), 0);
    let mut tell = |changes: Vec<Change>| {
        for c in changes {
            if let Step::Stream { from, to } = c.step
                && alarm::notifies(&from, &to)
            {
                times += 1;
                who.insert(names.iter().position(|n| *n == c.stream.model).unwrap());
            }
        }
    };
    for t in 0..MINUTES * a_minute {
        let time_ms = BEGIN_MS + t * 60_000 / a_minute;
        for (name, (law, truth)) in names.iter().zip(models) {
            let z = score(*law, &mut rng);
            let event = Event {
                model: name,
                time_ms,
                prediction: Prediction::Score(z),
                outcome: Some(Outcome::Binary(rng.uniform() < truth.of(z))),
                ..EVENT
            };
            let origin = origin(0, 0, offset);
            engine.observe(origin, &event);
            offset += 1;
        }
        if t % (10 * a_minute) == 0 {
            tell(engine.tick(time_ms));
        }
    }
    tell(engine.tick(BEGIN_MS + MINUTES * 60_000));
    (who, times)
}

#[test]
fn nobody_is_told_of_five_calibrated_streams() {
    let a_minute = if is_long() { 60 } else { 10 };
    let laws: Vec<(Law, Truth)> = (0..5).map(|i| (LAWS[i % 4].1, Truth::Calibrated)).collect();
    let (who, times) = told(default_plan(), &laws, a_minute, 71 + first_seed());
    assert!(who.is_empty(), "{who:?}, {times} times");
}

#[test]
fn of_many_models_the_bad_ones_are_told_and_hardly_any_other() {
    let models = if is_long() { 500 } else { 30 };
    let bad = |i: usize| match i % 20 {
        0 => Truth::Temperature(1.5),
        10 => Truth::Odds(0.4),
        _ => Truth::Calibrated,
    };
    let all: Vec<(Law, Truth)> = (0..models).map(|i| (LAWS[0].1, bad(i))).collect();
    let (who, times) = told(default_plan(), &all, 5, 72 + first_seed());
    let found = who.iter().filter(|i| *i % 10 == 0).count();
    let wrong = who.len() - found;
    println!(
        "{found} of {} bad models told, {wrong} healthy ones, {times} times",
        models / 10
    );
    assert!(100 * found >= 90 * (models / 10), "{found}");
    assert!(wrong <= 1, "{wrong}");
}
