//! How soon a change at event 20 000 is found through the engine: means against `sequential.md` §9
//! (200 runs, A = 2 000 000, no tolerance), within 10 % plus two panes, widened by two standard
//! errors of ours.

use super::feed::{BEGIN_MS, PANE_MS, Stream, Truth, alarms, plan};
use crate::support::bars::{Bar, data_sets, each};
use crate::support::streams::LAWS;
use trueline::monitor::Engine;
use trueline::stats::direction::Direction;

const PANE: i64 = 50;
const CHANGE: i64 = 20_000;
const MOST: i64 = 80_000;

/// What an alarm said: events since the change; the same of its onset; its kind.
struct Found {
    delay: f64,
    onset: f64,
    kind: Direction,
}

/// The first alarm after the change; `None` where one came before it.
fn found(law: usize, truth: Truth, seed: u64) -> Option<Found> {
    let mut engine = Engine::new(plan("2000000 events", 0.0, u64::MAX));
    let mut stream = Stream::new(6000 + seed, LAWS[law].1, PANE);
    let at = |ms: f64| (ms - BEGIN_MS as f64) * PANE as f64 / PANE_MS as f64 - CHANGE as f64;
    while stream.next < CHANGE + MOST {
        let now = match stream.next < CHANGE {
            true => Truth::Calibrated,
            false => truth,
        };
        let changes = stream.feed(&mut engine, now);
        if let Some(change) = alarms(&changes).next() {
            let report = engine.reports().next().unwrap().detector.clone().unwrap();
            let alarm = report.alarm.as_ref().unwrap();
            let delay = at(change.at_ms as f64);
            return (delay > 0.0).then_some(Found {
                delay,
                onset: at(alarm.onset_ms),
                kind: alarm.evidence.direction,
            });
        }
    }
    panic!("not found within {MOST} events: seed {seed}");
}

#[test]
fn changes_are_found_dated_and_described_as_soon_as_by_the_reference() {
    use Direction::{OverConfident, TooLow};
    let runs = data_sets(12);
    // An alarm before the change has at most the chance of its events among two million.
    let early = Bar::new(runs, 0.0..=0.01, &[0.6]);
    let mut failures = Vec::new();
    for (law, name, truth, want, kind) in [
        (0, "T 1.25", Truth::Temperature(1.25), 2000.0, OverConfident),
        (0, "T 1.5", Truth::Temperature(1.5), 726.0, OverConfident),
        (0, "T 2", Truth::Temperature(2.0), 295.0, OverConfident),
        (0, "shift .02", Truth::Shift(0.02), 8139.0, TooLow),
        (0, "shift .05", Truth::Shift(0.05), 1637.0, TooLow),
        (3, "click odds +1", Truth::Odds(1.0), 7493.0, TooLow),
    ] {
        let all: Vec<Found> = each(runs, |seed| found(law, truth, seed))
            .into_iter()
            .flatten()
            .collect();
        early.check(name, runs - all.len() as u64, &mut failures);
        let n = all.len() as f64;
        let mean = all.iter().map(|f| f.delay).sum::<f64>() / n;
        let spread: f64 = all.iter().map(|f| (f.delay - mean).powi(2)).sum();
        let error = (spread / (n - 1.0) / n).sqrt();
        let mut onsets: Vec<f64> = all.iter().map(|f| f.onset.abs()).collect();
        onsets.sort_by(f64::total_cmp);
        let onset = onsets[onsets.len() / 2];
        let right = all.iter().filter(|f| f.kind == kind).count();
        println!(
            "{name}: {mean:.0} ± {error:.0} events (reference {want}), onset off by {onset:.0} in the median, \
             told as {kind:?} in {right} of {n}"
        );
        assert!(
            mean <= 1.1 * want + 2.0 * PANE as f64 + 2.0 * error,
            "{name}: seeds 6000 on"
        );
        assert!(onset < want, "{name}: onset");
        // Shifts that are clipped at one end look like cells too.
        let plain = !matches!(truth, Truth::Shift(_));
        assert!(!plain || 2 * right > all.len(), "{name}: kind");
    }
    assert!(
        failures.is_empty(),
        "alarms before the change: {failures:#?}"
    );
}
