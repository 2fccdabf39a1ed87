//! What alerts there are, and what must have been told of them.
//!
//! The scores of two models are wrong for some time, each time. Alerts of model `a` end soon after;
//! while nothing is judged because the watermark stands still, they end by the clock, and begin
//! again. Those of model `b` stay longer than a simulation, so the clock ends none: the committed
//! log says which changes receivers must get.

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

/// Whether a change that is older than some seconds is not told while records are unread.
fn ages(seed: u64) -> bool {
    seed % 4 == 1
}

/// The sinks in the configuration. In most fleets a change is told however old it is.
pub fn sinks(seed: u64) -> String {
    let sinks = SINKS.map(|name| {
        format!(
            "[[sink]]\nname = \"{name}\"\nkind = \"webhook\"\nurl = \"http://localhost:9/\"\nretry_max = \"5s\"\n"
        )
    });
    let max_age = if ages(seed) { "5s" } else { "10000d" };
    format!("[notify]\nmax_age = \"{max_age}\"\n{}", sinks.concat())
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

/// Whether one process notifies. Where streams move, several processes may judge parts of one
/// stream, and the next owner may resume from a checkpoint before a notification: it sends that
/// again.
pub fn come_once(fleet: Fleet) -> bool {
    matches!(fleet, Fleet::Single | Fleet::Judged)
}

/// Each receiver knows what fires, and nothing else. After a crash an alert that the clock had
/// ended may fire again; it is sent once it is bad later than its end. In moving fleets several
/// processes judge a stream. If one of them dies and the others do not see its alert fire, the
/// alert ends after ten minutes, which is longer than a simulation.
pub fn at_the_end(engine: &EngineLoop, receivers: &Receivers, fleet: Fleet) -> Result<(), String> {
    let ends = fleet != Fleet::Moving;

    for (sink, told) in receivers.told() {
        let all = told.iter().map(|t| &t.notification);
        let all = all.map(|n| (n.fingerprint.as_str(), n));
        let mut last: BTreeMap<&str, &Notification> = all.collect();
        for alert in engine.published.facts().alerts.iter() {
            let last = last.remove(alert.fingerprint.as_str());
            // Of several processes one may end the alert of its part after another has begun that
            // of its own: what counts is what was told of this one.
            let told = told.iter().rev().map(|t| &t.notification);
            let mut own = told.filter(|n| {
                n.fingerprint == alert.fingerprint && Some(n.since_ms) == alert.since_ms
            });
            let last = own.next().filter(|_| fleet == Fleet::Moving).or(last);
            let knows = last.is_some_and(|n| n.status == Status::Firing);
            let fires = alert.state == AlertState::Firing && is_later(engine, &alert.model, last);
            if (ends && knows && !fires) || (fires && !knows) {
                let (name, state) = (&alert.name, alert.state.as_str());
                let last = last.map_or("nothing", |n| n.key.as_str());
                return Err(format!(
                    "at the end the alert of {name} is {state} since {:?}, and {sink} was last told {last}",
                    alert.since_ms
                ));
            }
        }
        let mut rest = last.values().filter(|_| ends);
        if let Some(n) = rest.find(|n| n.status == Status::Firing) {
            let key = &n.key;
            return Err(format!(
                "at the end {sink} knows {key} of an alert that is gone"
            ));
        }
    }
    Ok(())
}

/// Whether an alert of the model was bad later than what was told last.
fn is_later(engine: &EngineLoop, model: &str, last: Option<&Notification>) -> bool {
    let ended = last.filter(|n| n.status == Status::Resolved);
    let reports = engine.topology.monitors().flat_map(|m| m.reports());
    let bad = reports.filter(|r| r.id.model == model);
    let bad = bad.filter_map(|r| r.alert.bad_ms).max();
    ended.is_none_or(|n| bad > n.bad_ms)
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
    if scenario.fleet != Fleet::Single || ages(scenario.seed) {
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
                _ => in_turn(&told, &expected),
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

/// Each change is sent, in order. If a crash loses its notification, it is sent when the alert is
/// next bad.
fn in_turn(told: &[Told], expected: &[Told]) -> bool {
    let next = expected.iter().skip(1).map(|(at, _)| *at);
    let mut until = next.chain([i64::MAX]);
    told.len() == expected.len()
        && told.iter().zip(expected).all(|(told, expected)| {
            let span = expected.0..=until.next().unwrap_or(i64::MAX);
            told.1 == expected.1 && span.contains(&told.0)
        })
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
