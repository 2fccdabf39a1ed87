//! What alerts there are, and what must have been told of them.
//!
//! The scores of two models are wrong for some time, each time. Alerts of model `a` end soon after; while nothing is
//! judged because the watermark stands still, they end by the clock, and begin again. Those of model `b` stay longer
//! than a simulation, so that the clock ends none: what is told of them follows from the committed log to the letter.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use trueline::alert::{AlertState, Severity};
use trueline::app::engine_loop::EngineLoop;
use trueline::judge::{Change, Step};
use trueline::notify::{Notification, Status};
use trueline::stats::rng::Rng;

use super::clock::wall_ms;
use super::scenario::{BEGIN, CALM, Draw, Fault, Fleet, Kind, Scenario, UNTIL};
use super::sinks::{Receivers, SINKS, Trouble};

/// Draws when scores are wrong, and when receivers fail.
pub fn draw(scenario: &mut Scenario) {
    let mut d = Draw(Rng::new(scenario.seed ^ 0xA1E7));
    for wrong in 0..2 {
        for _ in 0..1 + d.below(2) {
            let from = d.between(BEGIN, UNTIL - Duration::from_secs(30));
            let to = from + d.seconds(20, 50);
            let span = wall_ms(from)..wall_ms(to);
            for r in &mut scenario.records {
                let wrong = matches!(r.kind, Kind::Good { model, .. } if model == wrong);
                if wrong && span.contains(&r.time_ms) {
                    turn(&mut r.text);
                }
            }
        }
    }
    for _ in 0..2 + d.below(4) {
        let sink = d.below(SINKS.len());
        let all = [
            Trouble::Down,
            Trouble::Unheard,
            Trouble::Slow,
            Trouble::Refuses,
        ];
        let trouble = all[d.below(all.len())];
        let (at, time) = (
            d.between(BEGIN, CALM - Duration::from_secs(30)),
            d.seconds(2, 25),
        );
        let fault = Fault::Sink {
            sink,
            trouble,
            time,
        };
        scenario.faults.push((at, fault));
    }
    scenario.faults.sort_by_key(|(at, _)| *at);
}

/// Makes a score 1 less itself.
fn turn(text: &mut String) {
    let from = text.find(r#""score":"#).expect("a score") + 8;
    let length = text[from..].find(',').expect("the outcome comes after it");
    let score: f64 = text[from..from + length].parse().expect("a number");
    let turned = (100.0 - 100.0 * score).round() / 100.0;
    text.replace_range(from..from + length, &turned.to_string());
}

/// The alerts of a model in the configuration.
pub fn of_model(name: &str) -> String {
    let keep = if name == "b" { "10m" } else { "4s" };
    format!(
        "[model.alert]\nwindow_alerts = true\nkeep_firing_for = \"{keep}\"\nflap_within = \"0s\"\n"
    )
}

/// The sinks in the configuration. A change is told however old it is.
pub fn sinks() -> String {
    let sinks = SINKS.map(|name| {
        format!(
            "[[sink]]\nname = \"{name}\"\nkind = \"webhook\"\nurl = \"http://localhost:9/\"\nretry_max = \"5s\"\n"
        )
    });
    format!("[notify]\nmax_age = \"10000d\"\n{}", sinks.concat())
}

/// How much was told, and a hash of what and when.
pub fn trace(receivers: &Receivers) -> (usize, u64) {
    let mut hasher = DefaultHasher::new();
    let mut count = 0;
    for (sink, told) in receivers.told() {
        for told in told {
            (sink, told.at, &told.notification.key).hash(&mut hasher);
            count += 1;
        }
    }
    (count, hasher.finish())
}

/// What fires is known to each receiver to fire, and nothing else is.
pub fn at_the_end(
    engine: &EngineLoop,
    receivers: &Receivers,
    scenario: &Scenario,
) -> Result<(), String> {
    if scenario.fleet != Fleet::Single {
        return Ok(());
    }
    for (sink, told) in receivers.told() {
        let all = told
            .iter()
            .map(|t| (&t.notification.fingerprint, &t.notification));
        let last: BTreeMap<&String, &Notification> = all.collect();
        let fires = |n: &&Notification| n.status == Status::Firing;
        let mut known: BTreeMap<&String, &Notification> = last.into_iter().collect();
        known.retain(|_, n| fires(n));
        for alert in engine.published.facts().alerts.iter() {
            let told = known.remove(&alert.fingerprint).is_some();
            if told != (alert.state == AlertState::Firing) {
                let (name, state) = (&alert.name, alert.state.as_str());
                return Err(format!(
                    "at the end the alert of {name} is {state}, and {sink} was told that it fires: {told}"
                ));
            }
        }
        if let Some(n) = known.values().next() {
            return Err(format!(
                "at the end {sink} knows {} of an alert that is gone",
                n.key
            ));
        }
    }
    Ok(())
}

/// A change that is told: when, and the severity of what fires.
type Told = (i64, Option<Severity>);

/// What is told follows from the committed log.
pub fn compare(
    changes: &[Change],
    receivers: &Receivers,
    scenario: &Scenario,
    expired: &[&str],
) -> Result<(), String> {
    if scenario.fleet != Fleet::Single {
        return Ok(());
    }
    for (sink, all) in receivers.told() {
        for model in ["a", "b"].into_iter().filter(|m| !expired.contains(m)) {
            let mut keys = Vec::new();
            let mut told: Vec<Told> = Vec::new();
            for n in all
                .iter()
                .map(|t| &t.notification)
                .filter(|n| n.model == model)
            {
                if !keys.contains(&&n.key) {
                    keys.push(&n.key);
                    let fires = (n.status == Status::Firing).then_some(n.severity);
                    told.push((n.at_ms, fires));
                }
            }
            let expected = expected(changes, model);
            let agrees = match model {
                "a" => within(&told, &expected),
                _ => told == expected,
            };
            if !agrees {
                return Err(format!(
                    "{sink} was told of {model} {told:?}, and the log says {expected:?}"
                ));
            }
        }
    }
    Ok(())
}

/// Changes of the alert of a model of one stream that must be told.
fn expected(changes: &[Change], model: &str) -> Vec<Told> {
    let of_model = changes.iter().filter(|c| c.stream.model == model);
    let told = of_model.filter_map(|c| {
        let Step::Stream { from, to } = c.step else {
            return None;
        };
        let fires = |state| state == AlertState::Firing;
        let severity = fires(to.state).then_some(to.severity);
        let changes = fires(from.state) != fires(to.state)
            || (fires(to.state) && from.severity != to.severity);
        changes.then_some((c.at_ms, severity))
    });
    told.collect()
}

/// Each time that an alert fires is told, and what is told to fire does so by the log.
fn within(told: &[Told], expected: &[Told]) -> bool {
    let begins = expected
        .iter()
        .enumerate()
        .filter(|(n, (_, fires))| fires.is_some() && (*n == 0 || expected[n - 1].1.is_none()));
    let spans = begins.map(|(n, (from, _))| {
        let end = expected[n..].iter().find(|(_, fires)| fires.is_none());
        *from..=end.map_or(i64::MAX, |(at, _)| *at)
    });
    let spans: Vec<_> = spans.collect();
    let fires = || told.iter().filter(|(_, fires)| fires.is_some());
    let known = spans
        .iter()
        .all(|span| fires().any(|(at, _)| span.contains(at)));
    known && fires().all(|(at, _)| spans.iter().any(|span| span.contains(at)))
}
