//! Importance weights: the tests' level, power and coverage under uneven weights, and that windows,
//! joins, restarts and files give one and the same answer.

mod evaluations;
mod levels;
mod windows;

use trueline::stats::attribute::Attribute;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::stats::weight::Weight;

type Weighted = (f64, bool, f64);

/// How scores and weights are drawn. The weight never depends on the outcome but through the score.
type Law = fn(&mut Rng) -> (f64, f64);

/// Log-normal, coefficient of variation 1.3, whatever the score: half the weight is on an eighth of
/// the events.
fn heavy(rng: &mut Rng) -> (f64, f64) {
    (rng.uniform(), rng.normal().exp())
}

/// Records of high scores kept one in twenty, so twenty times the weight.
fn tiers(rng: &mut Rng) -> (f64, f64) {
    loop {
        let z = rng.uniform();
        let chance = if z < 0.3 { 1.0 } else { 0.05 };
        if rng.uniform() < chance {
            return (z, 0.2 / chance);
        }
    }
}

/// Rare events, kept by a chance that rises with the score and by one that has nothing to do with
/// it.
fn rare(rng: &mut Rng) -> (f64, f64) {
    loop {
        let z = 1.0 / (1.0 + (4.0 + 1.2 * rng.normal()).exp());
        let chance = (0.05 + 5.0 * z).min(1.0) * if rng.uniform() < 0.5 { 1.0 } else { 0.3 };
        if rng.uniform() < chance {
            return (z, 0.3 / chance);
        }
    }
}

const LAWS: [(&str, Law); 3] = [("log-normal", heavy), ("tiers", tiers), ("rare", rare)];

fn sample(rng: &mut Rng, law: Law, truth: fn(f64) -> f64, n: usize) -> Vec<Weighted> {
    let one = |rng: &mut Rng| {
        let (z, w) = law(rng);
        (z, rng.uniform() < truth(z), w)
    };
    (0..n).map(|_| one(rng)).collect()
}

fn sums_of(sample: &[Weighted]) -> Sums {
    let mut sums = Sums::new(Grid::new(Axis::Linear, 12).weighted());
    for &(z, y, w) in sample {
        let (z, w) = (Score::new(z).unwrap(), Weight::new(w).unwrap());
        sums.observe_with(z, y, Attribute::Weight(w)).unwrap();
    }
    sums
}
