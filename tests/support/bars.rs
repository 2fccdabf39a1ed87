//! Bars of simulations: which counts pass, and how surely, by exact binomial sums.
//!
//! A simulation repeats a procedure on independent data sets and counts how often something
//! happens: a test rejects, an interval covers, a detector alarms. A [`Bar`] turns the rates that a
//! right procedure may have, and those that a wrong one has, into the counts that pass. It fails
//! where the data sets are too few to tell them apart, so that no simulation can shrink until it
//! accepts everything:
//!
//! * a right procedure passes with probability at least [`RIGHT_PASSES`];
//! * a wrong one passes with probability at most [`WRONG_PASSES`].
//!
//! Seeds are fixed, so a run gives the same counts every time; the probabilities are those of a
//! change that gives the procedure other numbers.

use std::ops::RangeInclusive;
use std::thread;

/// A right procedure passes with at least this probability.
pub const RIGHT_PASSES: f64 = 0.999;

/// A wrong procedure passes with at most this probability.
pub const WRONG_PASSES: f64 = 0.01;

/// Number of data sets: `ci`, or what `TRUELINE_DATA_SETS` says (the long mode).
pub fn data_sets(ci: u64) -> u64 {
    let long = std::env::var("TRUELINE_DATA_SETS").ok();
    long.and_then(|text| text.parse().ok()).unwrap_or(ci)
}

/// Whether `TRUELINE_DATA_SETS` asks for the long mode.
pub fn is_long() -> bool {
    std::env::var_os("TRUELINE_DATA_SETS").is_some()
}

/// Seed of the first data set: 0, or a million times the number that `TRUELINE_SEED` says.
pub fn first_seed() -> u64 {
    let fresh = std::env::var("TRUELINE_SEED").ok();
    let number = fresh.and_then(|text| text.parse::<u64>().ok());
    number.unwrap_or(0) * 1_000_000
}

/// Runs `one` for the seed of each data set on two threads; results in order of seeds.
pub fn each<T: Send>(data_sets: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let of = |sets: std::ops::Range<u64>| sets.map(|set| one(first_seed() + set)).collect();
    thread::scope(|s| {
        let first = s.spawn(|| of(0..data_sets / 2));
        let second: Vec<T> = of(data_sets / 2..data_sets);
        let mut all: Vec<T> = first.join().expect("no panic in a data set");
        all.extend(second);
        all
    })
}

/// In how many of the data sets something holds.
pub fn count(data_sets: u64, holds: impl Fn(u64) -> bool + Sync) -> u64 {
    each(data_sets, holds).into_iter().filter(|h| *h).count() as u64
}

/// The counts of so many data sets that pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    data_sets: u64,
    passes: RangeInclusive<u64>,
}

impl Bar {
    /// The narrowest bar that a procedure passes whose rate lies in `right`; each rate of `wrong`
    /// must fail it. A range from 0 or to 1 leaves that side open; two sides share what a right one
    /// may miss.
    pub fn new(data_sets: u64, right: RangeInclusive<f64>, wrong: &[f64]) -> Bar {
        let (low, high) = (*right.start(), *right.end());
        let sides = u32::from(low > 0.0) + u32::from(high < 1.0);
        let miss = (1.0 - RIGHT_PASSES) / f64::from(sides);
        let least = (0..data_sets).find(|&k| below(data_sets, low, k + 1) > miss);
        let most = (0..=data_sets).find(|&k| 1.0 - below(data_sets, high, k + 1) <= miss);
        let passes = least.unwrap_or(data_sets)..=most.unwrap_or(data_sets);
        let bar = Bar { data_sets, passes };
        for rate in [low, high] {
            let passes = bar.probability(rate);
            assert!(passes >= RIGHT_PASSES, "{rate} passes with {passes}");
        }
        for &rate in wrong {
            let passes = bar.probability(rate);
            assert!(
                passes <= WRONG_PASSES,
                "{data_sets} data sets are too few: a rate of {rate} passes with {passes}"
            );
        }
        bar
    }

    /// The counts that pass.
    pub fn passes(&self) -> RangeInclusive<u64> {
        self.passes.clone()
    }

    /// The probability that a procedure of this rate passes.
    pub fn probability(&self, rate: f64) -> f64 {
        below(self.data_sets, rate, self.passes.end() + 1)
            - below(self.data_sets, rate, *self.passes.start())
    }

    /// Prints a count, and adds a line to `failures` where it does not pass.
    pub fn check(&self, place: &str, count: u64, failures: &mut Vec<String>) {
        let line = self.line(place, count);
        println!("{line}");
        if !self.passes.contains(&count) {
            failures.push(line);
        }
    }

    /// Prints a count, and fails where it does not pass.
    pub fn assert(&self, place: &str, count: u64) {
        let line = self.line(place, count);
        println!("{line}");
        assert!(self.passes.contains(&count), "{line}");
    }

    /// Fails where a count passes that must not.
    pub fn refuse(&self, place: &str, count: u64) {
        let line = self.line(place, count);
        assert!(!self.passes.contains(&count), "{line}");
    }

    fn line(&self, place: &str, count: u64) -> String {
        let share = count as f64 / self.data_sets as f64;
        format!(
            "{place}: {share:.4}, {count} of {}, {} to {} pass",
            self.data_sets,
            self.passes.start(),
            self.passes.end()
        )
    }
}

/// P(X < k) of X binomial over `n` trials: the sum of its terms.
fn below(n: u64, rate: f64, k: u64) -> f64 {
    if k > n {
        return 1.0;
    }
    if rate <= 0.0 || rate >= 1.0 {
        // All of the mass is at 0 or at n.
        return if rate <= 0.0 && k > 0 { 1.0 } else { 0.0 };
    }
    // Terms in logarithms: the first underflows for n beyond some thousands.
    let mut term = n as f64 * (1.0 - rate).ln();
    let mut sum = 0.0;
    for i in 0..k {
        sum += term.exp();
        term += ((n - i) as f64 / (i + 1) as f64).ln() + rate.ln() - (1.0 - rate).ln();
    }
    sum.min(1.0)
}
