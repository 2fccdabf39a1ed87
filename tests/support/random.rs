//! What generated events are drawn by.

use trueline::stats::rng::Rng;

/// A vector of so many probabilities, each as likely as another.
pub fn vector(rng: &mut Rng, classes: usize) -> Vec<f64> {
    let mut p: Vec<f64> = (0..classes).map(|_| -(1.0 - rng.uniform()).ln()).collect();
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= sum);
    p
}

/// Brings all into a random order.
pub fn shuffle<T>(all: &mut [T], rng: &mut Rng) {
    for i in 0..all.len() {
        let j = i + (rng.uniform() * (all.len() - i) as f64) as usize;
        all.swap(i, j);
    }
}
