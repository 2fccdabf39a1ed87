//! Samples for unit tests, drawn from seeds.

use crate::axis::Grid;
use crate::fixed::Score;
use crate::kernel::{Vectors, conditional::draw};
use crate::rng::Rng;
use crate::sums::Sums;

/// Events of scores `score(u)`, u uniform, that happen with probability `truth(z)`.
pub fn events(
    rng: &mut Rng,
    n: usize,
    score: impl Fn(f64) -> f64,
    truth: impl Fn(f64) -> f64,
) -> Vec<(f64, bool)> {
    let one = |_| {
        let z = score(rng.uniform());
        (z, rng.uniform() < truth(z))
    };
    (0..n).map(one).collect()
}

/// The sums of events on a grid.
pub fn sums(grid: Grid, events: &[(f64, bool)]) -> Sums {
    let mut sums = Sums::new(grid);
    for &(z, y) in events {
        let score = Score::new(z).expect("a score");
        sums.observe(score, y).expect("few events");
    }
    sums
}

/// A vector of `k` entries `entry(u)`, u uniform, divided by their sum.
pub fn row(rng: &mut Rng, k: usize, entry: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut row: Vec<f64> = (0..k).map(|_| entry(rng.uniform())).collect();
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|p| *p /= sum);
    row
}

/// A vector of `k` classes, uniform on the simplex.
pub fn uniform_row(rng: &mut Rng, k: usize) -> Vec<f64> {
    row(rng, k, |u| -(1.0 - u).ln())
}

/// Vectors that `row` draws; a share `pushed` has class 0 whatever they say, the others have
/// classes by their probabilities.
pub fn vectors(
    rng: &mut Rng,
    (n, k): (usize, usize),
    pushed: f64,
    row: impl Fn(&mut Rng, usize) -> Vec<f64>,
) -> Vectors {
    let mut all = Vectors::new(k);
    while all.len() < n {
        let p = row(rng, k);
        let y = match rng.uniform() < pushed {
            true => 0,
            false => draw(&p, rng.uniform()),
        };
        all.push(&p, y).expect("a vector");
    }
    all
}
