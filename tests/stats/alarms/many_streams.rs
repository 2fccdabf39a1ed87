//! `sequential.md` §7 through the engine: 100 streams, 10 turn to T 1.25 at their event 5000. There
//! each stream staked a whole unit an event against A = 10⁶; here each event is staked once for the
//! fleet, against 10⁸, which is the same: alone a stream alarms at N·A, and e-BH calls the k-th at
//! N·A/k.

use super::feed::{BEGIN_MS, PANE_MS, Truth, alarms, event, plan};
use crate::support::bars::{data_sets, first_seed};
use crate::support::streams::{LAWS, score};
use std::collections::BTreeMap;
use trueline::monitor::Engine;
use trueline::stats::rng::Rng;

const STREAMS: usize = 100;
const BAD: usize = 10;
const PANE: i64 = 100;
const CHANGE: i64 = 5000;
const EVENTS: i64 = 15_000;

/// By stream the events, since the change, after which it was first called, and first alarmed.
fn run(seed: u64) -> (BTreeMap<usize, f64>, BTreeMap<usize, f64>, f64) {
    let mut engine = Engine::new(plan("100000000 events", 0.0, u64::MAX));
    let mut rng = Rng::new(9000 + seed);
    let names: Vec<String> = (0..STREAMS).map(|i| format!("s={i:02}")).collect();
    let place = |id: &trueline::judge::StreamId| names.iter().position(|n| *n == id.segment);
    let (mut called, mut alarmed) = (BTreeMap::new(), BTreeMap::new());
    let mut offset = 0;
    for i in 0..EVENTS {
        let time_ms = BEGIN_MS + i * PANE_MS / PANE;
        for (s, name) in names.iter().enumerate() {
            let truth = match s < BAD && i >= CHANGE {
                true => Truth::Temperature(1.25),
                false => Truth::Calibrated,
            };
            let z = score(LAWS[0].1, &mut rng);
            let y = rng.uniform() < truth.of(z);
            event(&mut engine, name, offset, time_ms, (z, Some(y)));
            offset += 1;
        }
        if i % PANE == 0 {
            let changes = engine.tick(BEGIN_MS);
            for change in alarms(&changes) {
                let s = place(&change.stream).unwrap();
                alarmed.entry(s).or_insert((i - CHANGE) as f64);
            }
            for id in &engine.ledger()[0].called {
                let s = place(id).unwrap();
                called.entry(s).or_insert((i - CHANGE) as f64);
            }
        }
    }
    (called, alarmed, engine.ledger()[0].expected_false_alarms())
}

#[test]
fn of_a_hundred_streams_the_bad_ones_alarm_and_hardly_any_other() {
    let runs = data_sets(1).div_ceil(33);
    let (mut called, mut alarmed) = (Vec::new(), Vec::new());
    let (mut wrongly_called, mut wrongly_alarmed, mut bound) = (0, 0, 0.0);
    for seed in 0..runs {
        let (c, a, expected) = run(first_seed() + seed);
        wrongly_called += c.keys().filter(|s| **s >= BAD).count();
        wrongly_alarmed += a.keys().filter(|s| **s >= BAD).count();
        called.extend(c.iter().filter(|(s, _)| **s < BAD).map(|(_, d)| *d));
        alarmed.extend(a.iter().filter(|(s, _)| **s < BAD).map(|(_, d)| *d));
        bound += expected;
    }
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    println!(
        "fleet of {STREAMS}, {runs} runs: called {} of {} after {:.0} (reference 2695 ± 104), alarmed {} after {:.0} \
         (2970 ± 117); wrongly called {wrongly_called}, wrongly alarmed {wrongly_alarmed} (at most {bound:.3} to expect)",
        called.len(),
        BAD as u64 * runs,
        mean(&called),
        alarmed.len(),
        mean(&alarmed)
    );
    assert_eq!(called.len() as u64, BAD as u64 * runs);
    assert_eq!(alarmed.len() as u64, BAD as u64 * runs);
    assert!(
        called.iter().chain(&alarmed).all(|d| *d > 0.0),
        "before the change"
    );
    let bar = |x: &[f64], want: f64, error: f64| {
        let few = (10.0 / x.len() as f64).sqrt().min(1.0);
        mean(x) <= 1.1 * want + 2.0 * PANE as f64 + 2.0 * error * (1.0 + 3.0 * few)
    };
    assert!(bar(&called, 2695.0, 104.0) && bar(&alarmed, 2970.0, 117.0));
    assert!(mean(&called) < mean(&alarmed));
    assert!(
        wrongly_alarmed as f64 <= bound + 2.0 * bound.sqrt(),
        "alarms"
    );
    assert!(wrongly_called as u64 <= 1 + runs / 4, "calls");
}
