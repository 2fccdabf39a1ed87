//! Streams of known truth, cut into panes.

use trueline::stats::axis::{Axis, Grid};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;

pub type Law = fn(&mut Rng) -> f64;

/// Four laws of scores.
pub const LAWS: [(&str, Law); 4] = [
    ("uniform", |r| r.uniform()),
    ("beta(.5,5)", |r| beta(r, 0.5, 5.0)),
    ("beta(5,.5)", |r| beta(r, 5.0, 0.5)),
    ("click", |r| expit(0.001f64.ln() + 0.7 * r.normal())),
];

pub fn grid() -> Grid {
    Grid::new(Axis::Linear, 12)
}

pub fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub fn score(law: Law, rng: &mut Rng) -> f64 {
    law(rng).clamp(1e-6, 1.0 - 1e-6)
}

/// A pane of `n` events whose outcomes have probability `truth(score)`.
pub fn pane(rng: &mut Rng, n: usize, law: Law, truth: impl Fn(f64) -> f64) -> Sums {
    let mut sums = Sums::new(grid());
    for _ in 0..n {
        let z = score(law, rng);
        let y = rng.uniform() < truth(z);
        sums.observe(Score::new(z).unwrap(), y).unwrap();
    }
    sums
}

/// Beta(a, b), by two gammas.
pub fn beta(rng: &mut Rng, a: f64, b: f64) -> f64 {
    let (x, y) = (gamma(rng, a), gamma(rng, b));
    x / (x + y)
}

/// Marsaglia and Tsang, with the boost for shapes below 1.
fn gamma(rng: &mut Rng, shape: f64) -> f64 {
    if shape < 1.0 {
        let boost = (1.0 - rng.uniform()).powf(1.0 / shape);
        return gamma(rng, shape + 1.0) * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = rng.normal();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && (1.0 - rng.uniform()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}
