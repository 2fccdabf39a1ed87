//! How soon a change at event 20 000 is found: means against `sequential.md` §9 (200 runs, A = 2
//! 000 000, no tolerance), within 10 % plus two panes, widened by two standard errors of ours.
//! `TRUELINE_DATA_SETS=200` runs the size of the reference.

use crate::support::bars::{Bar, data_sets, each};
use crate::support::streams::{LAWS, expit, grid, pane};
use trueline::stats::direction::Direction;
use trueline::stats::rng::Rng;
use trueline::stats::sequential::{Budget, Odds, Outcome, Rules, StreamDetector, multiple_testing};

const PANE: usize = 50;
const CHANGE: usize = 20_000;
const MOST: usize = 80_000;
const PANE_MS: i64 = 10_000;

#[derive(Clone, Copy)]
enum Change {
    Temperature(f64),
    Shift(f64),
    Odds(f64),
}

impl Change {
    fn truth(self, z: f64) -> f64 {
        let h = (z / (1.0 - z)).ln();
        match self {
            Change::Temperature(t) => expit(h / t),
            Change::Shift(x) => (z + x).clamp(0.0, 1.0),
            Change::Odds(x) => expit(h + x),
        }
    }
}

fn rules(events: f64) -> Rules {
    Rules {
        budget: Budget::RunLength { events },
        ..Rules::default()
    }
}

/// A watch that alarmed after the change, with the events it took.
fn found(odds: &Odds, law: usize, change: Change, seed: u64) -> Option<(usize, StreamDetector)> {
    let (mut rng, mut watch) = (Rng::new(5000 + seed), StreamDetector::default());
    let mut seen = 0;
    while seen < CHANGE + MOST {
        let truth = |z| if seen < CHANGE { z } else { change.truth(z) };
        let sums = pane(&mut rng, PANE, LAWS[law].1, truth);
        let start = (seen / PANE) as i64 * PANE_MS;
        seen += PANE;
        let outcome = watch.observe(odds, &rules(2e6), &sums, (start, start + PANE_MS));
        if outcome == Outcome::Alarm {
            return seen
                .checked_sub(CHANGE)
                .filter(|&d| d > 0)
                .map(|d| (d, watch));
        }
    }
    Some((MOST, watch))
}

#[test]
fn changes_are_found_as_soon_as_by_the_reference_and_told_for_what_they_are() {
    let runs = data_sets(24);
    let odds = Odds::new(grid(), 0.0);
    // An alarm before the change has at most the chance of its events among two million.
    let early = Bar::new(runs, 0.0..=0.01, &[0.6]);
    let mut failures = Vec::new();
    for (law, name, change, want, kind) in [
        (
            0,
            "T 1.25",
            Change::Temperature(1.25),
            2000.0,
            Direction::OverConfident,
        ),
        (
            0,
            "T 1.5",
            Change::Temperature(1.5),
            726.0,
            Direction::OverConfident,
        ),
        (
            0,
            "T 2",
            Change::Temperature(2.0),
            295.0,
            Direction::OverConfident,
        ),
        (
            0,
            "shift .02",
            Change::Shift(0.02),
            8139.0,
            Direction::TooLow,
        ),
        (
            0,
            "shift .05",
            Change::Shift(0.05),
            1637.0,
            Direction::TooLow,
        ),
        (
            3,
            "click odds +1",
            Change::Odds(1.0),
            7493.0,
            Direction::TooLow,
        ),
    ] {
        let all = each(runs, |seed| found(&odds, law, change, seed));
        let all: Vec<(usize, StreamDetector)> = all.into_iter().flatten().collect();
        early.check(name, runs - all.len() as u64, &mut failures);
        let n = all.len() as f64;
        let mean = all.iter().map(|a| a.0 as f64).sum::<f64>() / n;
        let spread = all.iter().map(|a| (a.0 as f64 - mean).powi(2)).sum::<f64>();
        let error = (spread / (n - 1.0) / n).sqrt();
        println!("{name}: {mean:.0} ± {error:.0} events (reference {want})");
        assert!(
            mean <= 1.1 * want + 2.0 * PANE as f64 + 2.0 * error,
            "{name}: seeds 5000 on"
        );
        told(&all, name, kind, want);
    }
    assert!(
        failures.is_empty(),
        "alarms before the change: {failures:#?}"
    );
}

/// Kind and onset, for most runs.
fn told(all: &[(usize, StreamDetector)], name: &str, kind: Direction, delay: f64) {
    let (mut right, mut near) = (0, 0);
    for (_, watch) in all {
        let Some(alarm) = &watch.alarm else { continue };
        right += usize::from(alarm.evidence.direction == kind);
        let onset = alarm.evidence.onset;
        near += usize::from((onset.event - CHANGE as f64).abs() < delay);
        let pane = onset.ms / PANE_MS as f64 * PANE as f64;
        assert!(
            (pane - onset.event).abs() < 2.0 * PANE as f64,
            "both clocks agree"
        );
    }
    println!(
        "  told as {kind:?} in {right}, onset within the delay in {near}, of {}",
        all.len()
    );
    assert!(4 * near > 3 * all.len(), "{name}: onset");
    assert!(
        2 * right > all.len() || name == "shift .05" || name == "shift .02",
        "{name}: kind"
    );
}

/// Events from the mending of an error to the end of its alarm, and that alarm's delay.
fn cleared(odds: &Odds, change: Change, seed: u64) -> (usize, f64) {
    let (mut rng, mut watch) = (Rng::new(7000 + seed), StreamDetector::default());
    let (mut mended, mut delay) = (None, 0.0);
    for t in 0..4000i64 {
        let truth = |z| if mended.is_none() { change.truth(z) } else { z };
        let sums = pane(&mut rng, PANE, LAWS[0].1, truth);
        match watch.observe(odds, &rules(2e6), &sums, (t * PANE_MS, (t + 1) * PANE_MS)) {
            Outcome::Alarm => {
                mended.get_or_insert(t);
                delay = watch.alarm.as_ref().expect("an alarm").delay_events;
            }
            Outcome::Clear => {
                let begun = mended.expect("an alarm before its end");
                return ((t - begun) as usize * PANE, delay);
            }
            Outcome::Quiet => {}
        }
    }
    (usize::MAX, delay)
}

/// Of calibrated panes after the first alarm, at most twice the wait of the rule, nearly always.
#[test]
fn an_alarm_whose_error_is_mended_ends_soon() {
    let runs = data_sets(24);
    let odds = Odds::new(grid(), 0.05);
    for (name, temperature) in [("T 2", 2.0), ("T 1.5", 1.5), ("T 1.25", 1.25)] {
        let all = each(runs, |seed| {
            cleared(&odds, Change::Temperature(temperature), seed)
        });
        let soon = |&&(events, delay): &&(usize, f64)| {
            events as f64 <= 2.0 * f64::max(2000.0, 4.0 * delay)
        };
        let n = all.iter().filter(soon).count();
        let mut events: Vec<usize> = all.iter().map(|a| a.0).collect();
        events.sort_unstable();
        println!(
            "{name}: clear after {} events in the median, soon in {n} of {runs}",
            events[events.len() / 2]
        );
        // With 95 of 100 it falls below once in a thousand runs of the test.
        assert!(
            n as f64 >= 0.8 * runs as f64,
            "{name}: {n} of {runs}, seeds 7000 on"
        );
    }
}

#[test]
fn an_error_that_stays_keeps_its_alarm_and_the_interval_is_of_the_whole_of_it() {
    let odds = Odds::new(grid(), 0.05);
    let runs = data_sets(12);
    for temperature in [2.0, 1.25] {
        let all = each(runs, |seed| {
            let (mut rng, mut watch) = (Rng::new(7100 + seed), StreamDetector::default());
            let (mut alarms, mut clears, mut begun) = (0, 0, 0);
            for t in 0..1000i64 {
                let change = Change::Temperature(temperature);
                let sums = pane(&mut rng, 100, LAWS[0].1, |z| change.truth(z));
                match watch.observe(&odds, &rules(2e6), &sums, (t * PANE_MS, (t + 1) * PANE_MS)) {
                    Outcome::Alarm => alarms += 1,
                    Outcome::Clear => clears += 1,
                    Outcome::Quiet => {}
                }
                match &watch.alarm {
                    Some(alarm) if alarm.times == 1 && alarm.at_ms == (t + 1) * PANE_MS => {
                        begun = t + 1
                    }
                    _ => {}
                }
            }
            let alarm = watch.alarm.as_ref().expect("an alarm");
            let bounds = watch.bounds(&odds, &rules(2e6));
            assert_eq!(bounds.n, 100 * (1000 - begun) as u64, "seed {seed}");
            assert!(clears > 0 || alarm.times == alarms, "seed {seed}");
            (alarms, clears)
        });
        let sum = |f: fn(&(u64, u64)) -> u64| all.iter().map(f).sum::<u64>();
        let (alarms, clears) = (sum(|a| a.0), sum(|a| a.1));
        println!("T {temperature}: {alarms} alarms, {clears} called clear, of {runs} streams");
        // One of 400 was seen; one of 50 would be wrong.
        assert!(
            alarms > 20 * runs && 50 * clears <= alarms,
            "{clears} of {alarms}"
        );
    }
}

/// `sequential.md` §7: 100 streams, 10 turn to T 1.25 (here at event 5000), A = 10⁶ each; looked at
/// after every pane.
#[test]
fn of_many_streams_the_bad_ones_are_called_and_hardly_any_other() {
    let odds = Odds::new(grid(), 0.0);
    let runs = data_sets(1).div_ceil(40);
    let (mut wrong, mut delays) = (0, Vec::new());
    for run in 0..runs {
        let mut detectors = vec![trueline::stats::sequential::Detector::default(); 100];
        let mut rng = Rng::new(900 + run);
        let mut called_at = vec![None; 100];
        for t in 0..150usize {
            for (i, detector) in detectors.iter_mut().enumerate() {
                let bad = i < 10 && t >= 50;
                let change = Change::Temperature(if bad { 1.25 } else { 1.0 });
                let sums = pane(&mut rng, 100, LAWS[0].1, |z| change.truth(z));
                detector.observe(&odds.likelihoods(&sums), 100.0, 0.0);
            }
            let worths: Vec<f64> = detectors.iter().map(|d| d.log_worth()).collect();
            for i in multiple_testing::called(&worths, 1e6f64.ln()) {
                called_at[i].get_or_insert((t + 1) * 100);
            }
        }
        wrong += called_at[10..].iter().flatten().count();
        delays.extend(
            called_at[..10]
                .iter()
                .flatten()
                .map(|&at| at as f64 - 5000.0),
        );
    }
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    println!(
        "fleet: {} of {} bad streams called, mean delay {mean:.0} (reference 2695 ± 104), {wrong} others in {runs} runs",
        delays.len(),
        10 * runs
    );
    assert_eq!(delays.len() as u64, 10 * runs);
    // Share of false ones at most 0.9 · 15 000 / 10⁶ = 0.014.
    assert!(wrong as u64 <= runs.div_ceil(4), "false streams");
    assert!(mean < 1.1 * 2695.0 + 200.0 + 2.0 * 104.0);
}
