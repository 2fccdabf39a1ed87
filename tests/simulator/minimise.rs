//! Makes a failing scenario smaller: faults and records are left out for as long as it still fails.
//!
//! Halves first, then quarters and so on (Zeller and Hildebrandt 2002, "Simplifying and isolating
//! failure-inducing input"). What is left fails with the same words, but for its numbers.

use super::scenario::Scenario;

/// The smallest scenario found within this many runs, and its failure.
pub fn minimise(
    scenario: &Scenario,
    mut runs: usize,
    mut fails: impl FnMut(&Scenario) -> Option<String>,
) -> Option<(Scenario, String)> {
    let mut best = (scenario.clone(), fails(scenario)?);
    let same = words(&best.1);
    loop {
        let before = (best.0.faults.len(), best.0.records.len());
        let mut try_one = |smaller: Scenario| {
            runs = runs.saturating_sub(1);
            let why = (runs > 0).then(|| fails(&smaller)).flatten();
            why.filter(|why| words(why) == same)
                .map(|why| (smaller, why))
        };
        shrink(
            &mut best,
            |s| s.faults.len(),
            |s, from, to| {
                s.faults.drain(from..to);
            },
            &mut try_one,
        );
        shrink(
            &mut best,
            |s| s.records.len(),
            |s, from, to| {
                s.records.drain(from..to);
            },
            &mut try_one,
        );
        if (best.0.faults.len(), best.0.records.len()) == before || runs == 0 {
            return Some(best);
        }
    }
}

/// A failure without times and numbers.
fn words(why: &str) -> String {
    let why = why.split_once("host ").map_or(why, |(_, rest)| rest);
    why.chars().filter(|c| c.is_alphabetic()).take(24).collect()
}

fn shrink(
    best: &mut (Scenario, String),
    len: impl Fn(&Scenario) -> usize,
    cut: impl Fn(&mut Scenario, usize, usize),
    try_one: &mut impl FnMut(Scenario) -> Option<(Scenario, String)>,
) {
    let mut size = len(&best.0).div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < len(&best.0) {
            let mut smaller = best.0.clone();
            cut(&mut smaller, from, (from + size).min(len(&best.0)));
            match try_one(smaller) {
                Some(found) => *best = found,
                None => from += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
}
