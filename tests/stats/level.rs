//! The level of the default test: how often calibrated data are rejected at α = 0.05.
//!
//! Scores uniform, beta(0.4, 30) (rare events) and beta(5, 0.5) (confidences near 1), outcomes
//! drawn from the scores, each data set through the product's sums and `evaluate`, at four sizes. A
//! right test rejects [`RIGHT`] of them; wrong are one that rejects twice as often as it says and
//! one that hardly ever does ([`WRONG`]).

use crate::support::bars::{Bar, count, data_sets};
use crate::support::streams::{Law, beta, grid};
use std::ops::RangeInclusive;
use trueline::stats::evaluation::{DiscreteMode, Options, evaluate};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;

const LAWS: [(&str, Law); 3] = [
    ("uniform", |r| r.uniform()),
    ("beta(0.4, 30)", |r| beta(r, 0.4, 30.0)),
    ("beta(5, 0.5)", |r| beta(r, 5.0, 0.5)),
];

/// Rates of a right test at α = 0.05, whose p-values err to the safe side where events are few.
pub const RIGHT: RangeInclusive<f64> = 0.03..=0.055;

/// Rates of a wrong one: twice α, and a tenth of it.
pub const WRONG: [f64; 2] = [0.1, 0.005];

/// Data sets of a point in CI.
pub const DATA_SETS: u64 = 1200;

fn rejects(law: Law, n: usize, seed: u64) -> bool {
    let options = Options {
        discrete: DiscreteMode::Off,
        ..Options::default()
    };
    let mut rng = Rng::new(seed);
    let mut sums = Sums::new(grid());
    for _ in 0..n {
        let z = law(&mut rng);
        let y = rng.uniform() < z;
        sums.observe(Score::new(z).unwrap(), y).unwrap();
    }
    evaluate(&sums, &options).unwrap().tcal.reject
}

#[test]
fn calibrated_data_are_rejected_about_as_often_as_alpha_says() {
    let sets = data_sets(DATA_SETS);
    let bar = Bar::new(sets, RIGHT, &WRONG);
    let mut failures = Vec::new();
    for (name, law) in LAWS {
        for n in [200, 500, 5000, 50_000] {
            let rejected = count(sets, |seed| rejects(law, n, seed));
            bar.check(&format!("{name}, n = {n}"), rejected, &mut failures);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The bar in numbers.
#[test]
fn the_bar_of_the_level_tells_twice_and_a_tenth_of_alpha() {
    let bar = Bar::new(DATA_SETS, RIGHT, &WRONG);
    assert_eq!(bar.passes(), 18..=93);
    assert!(bar.probability(0.05) >= 0.9999);
    assert!(bar.probability(0.1) <= 0.01);
    assert!(bar.probability(0.005) <= 0.0001);
}
