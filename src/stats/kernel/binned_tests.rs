//! Tests of calibration by the binned errors of vectors.
//!
//! Two p-values for each of the partitions of [`super::binned`]:
//!
//! * given the predictions: outcomes are redrawn from the predictions, the partition stays, since
//!   it depends on the predictions alone. (1 + #{ECE\* ≥ ECE})/(R + 1) is exact at any n.
//! * consistency resampling (Vaicenavicius et al. 2019; Widmann, Lindsten, Zachariah 2019, test C):
//!   predictions are redrawn with replacement, outcomes from them, and the partition is made again;
//!   #{ECE\* ≥ ECE}/R. Repeated predictions share a bin, so redrawn samples have fewer bins and
//!   less upward bias than the observed one: at n = 250 and ten classes it rejects 99 % of
//!   calibrated samples. It is here because the papers report it.
//!
//! Cost: R·n·K for each p-value, and a partition for each resample of the second.

use super::binned::{ece, median_variance, uniform};
use super::conditional::draw;
use super::vectors::Vectors;
use crate::conditional::rank::reaches;
use crate::rng::Rng;

/// A partition of the simplex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Partition {
    /// Equal bins a class, this many.
    Uniform(u32),
    /// Halved at medians while both parts keep this many events.
    MedianVariance(usize),
}

impl Partition {
    /// Its occupied bins over a sample.
    pub fn groups(self, sample: &Vectors) -> Vec<Vec<usize>> {
        match self {
            Partition::Uniform(bins) => uniform(sample, bins),
            Partition::MedianVariance(least) => median_variance(sample, least),
        }
    }
}

/// The binned error over one partition.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BinnedTest {
    /// The partition.
    pub partition: Partition,
    /// Occupied bins.
    pub bins: usize,
    /// Σ(N/n)·TV, biased upwards.
    pub ece: f64,
    /// p-value given the predictions; `None` without redrawn samples.
    pub conditional_p: Option<f64>,
    /// p-value of consistency resampling, as published; `None` without redrawn samples.
    pub consistency_p: Option<f64>,
}

/// The binned errors over both partitions.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BinnedTests {
    /// Redrawn samples of each p-value.
    pub replicates: u32,
    /// Ten equal bins a class.
    pub uniform: BinnedTest,
    /// Bins that depend on the predictions.
    pub dynamic: BinnedTest,
}

impl BinnedTests {
    /// The p-value of both tests given the predictions, by Bonferroni; 1 without redrawn samples.
    pub fn p_value(&self) -> f64 {
        let p = |t: &BinnedTest| t.conditional_p.unwrap_or(1.0);
        (2.0 * p(&self.uniform).min(p(&self.dynamic))).min(1.0)
    }
}

/// Equal bins a class, as in the kernel paper.
pub const UNIFORM_BINS: u32 = 10;

/// Fewest events of a data-dependent bin: a hundredth of the sample, at least five; the kernel
/// paper has 5 of 250 and 100 of 10⁴.
pub fn least_events(n: usize) -> usize {
    (n / 100).max(5)
}

/// The binned errors of a sample; without p-values where `replicates` is 0.
pub fn binned_tests(sample: &Vectors, replicates: u32, seed: u64) -> BinnedTests {
    let one = |partition, seed| binned_test(sample, partition, replicates, seed);
    BinnedTests {
        replicates,
        uniform: one(Partition::Uniform(UNIFORM_BINS), seed),
        dynamic: one(
            Partition::MedianVariance(least_events(sample.len())),
            seed ^ 1,
        ),
    }
}

/// The binned error over one partition.
pub fn binned_test(
    sample: &Vectors,
    partition: Partition,
    replicates: u32,
    seed: u64,
) -> BinnedTest {
    let groups = partition.groups(sample);
    let observed = ece(sample, &groups);
    let wanted = replicates > 0;
    BinnedTest {
        partition,
        bins: groups.len(),
        ece: observed,
        conditional_p: wanted.then(|| conditional_p(sample, &groups, observed, replicates, seed)),
        consistency_p: wanted.then(|| consistency_p(sample, partition, replicates, seed)),
    }
}

/// The bin of each event, and Σg of each bin.
struct Bins {
    of: Vec<u32>,
    sums: Vec<f64>,
    classes: usize,
}

impl Bins {
    fn new(sample: &Vectors, groups: &[Vec<usize>]) -> Bins {
        let k = sample.classes();
        let (mut of, mut sums) = (vec![0; sample.len()], vec![0.0; groups.len() * k]);
        for (bin, group) in groups.iter().enumerate() {
            for &i in group {
                of[i] = bin as u32;
                let sum = &mut sums[bin * k..(bin + 1) * k];
                sum.iter_mut().zip(sample.row(i)).for_each(|(s, p)| *s += p);
            }
        }
        Bins {
            of,
            sums,
            classes: k,
        }
    }

    /// The error with an outcome for each event.
    fn ece(&self, outcomes: impl Iterator<Item = u32>, scratch: &mut Vec<f64>) -> f64 {
        scratch.clone_from(&self.sums);
        for (bin, y) in self.of.iter().zip(outcomes) {
            scratch[*bin as usize * self.classes + y as usize] -= 1.0;
        }
        scratch.iter().map(|r| r.abs()).sum::<f64>() / 2.0 / self.of.len() as f64
    }
}

fn conditional_p(
    sample: &Vectors,
    groups: &[Vec<usize>],
    observed: f64,
    replicates: u32,
    seed: u64,
) -> f64 {
    let (bins, mut scratch) = (Bins::new(sample, groups), Vec::new());
    let mut rng = Rng::new(seed ^ 0xB1A5);
    let mut above = 0;
    for _ in 0..replicates {
        let outcomes = sample.events().map(|(g, _)| draw(g, rng.uniform()));
        above += u32::from(reaches(bins.ece(outcomes, &mut scratch), observed));
    }
    (1.0 + f64::from(above)) / (1.0 + f64::from(replicates))
}

/// The published p-value of consistency resampling; 0 where no resample reaches the observed error.
pub fn consistency_p(sample: &Vectors, partition: Partition, replicates: u32, seed: u64) -> f64 {
    let observed = ece(sample, &partition.groups(sample));
    let mut rng = Rng::new(seed ^ 0xC0);
    let n = sample.len();
    let mut above = 0;
    for _ in 0..replicates {
        let drawn: Vec<usize> = (0..n).map(|_| rng.below(n)).collect();
        let uniforms: Vec<f64> = drawn.iter().map(|_| rng.uniform()).collect();
        let drawn = resampled(sample, partition, &drawn, &uniforms);
        above += u32::from(reaches(drawn, observed));
    }
    f64::from(above) / f64::from(replicates.max(1))
}

/// The error of a resample: the events at `drawn`, their outcomes drawn by `uniforms`.
pub fn resampled(sample: &Vectors, partition: Partition, drawn: &[usize], uniforms: &[f64]) -> f64 {
    let outcomes = drawn.iter().zip(uniforms);
    let outcomes = outcomes.map(|(&i, &u)| draw(sample.row(i), u)).collect();
    let part = sample.pick(drawn.iter().copied()).with_outcomes(outcomes);
    ece(&part, &partition.groups(&part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn sample(rng: &mut Rng, n: usize, pushed: f64) -> Vectors {
        samples::vectors(rng, (n, 3), pushed, |rng, k| samples::row(rng, k, |u| u))
    }

    #[test]
    fn given_the_predictions_the_level_holds_and_a_push_is_found() {
        let mut rng = Rng::new(12);
        let (mut level, mut power, sets) = ([0; 2], [0; 2], 200);
        for set in 0..sets {
            for (pushed, hits) in [(0.0, &mut level), (0.5, &mut power)] {
                let t = binned_tests(&sample(&mut rng, 200, pushed), 39, set);
                for (hit, t) in hits.iter_mut().zip([t.uniform, t.dynamic]) {
                    *hit += u32::from(t.conditional_p.unwrap() <= 0.05);
                }
            }
        }
        // P(Bin(200, 0.05) > 22) < 0.001.
        assert!(level.iter().all(|h| *h <= 22), "{level:?}");
        assert!(power.iter().all(|h| *h > 190), "{power:?}");
    }

    #[test]
    fn the_published_p_values_are_not_valid_for_ten_classes() {
        let (mut rng, mut published, mut conditional) = (Rng::new(14), 0, 0);
        for set in 0..20 {
            let sharp = |rng: &mut Rng, k| samples::row(rng, k, |u| u.powi(10));
            let all = samples::vectors(&mut rng, (250, 10), 0.0, sharp);
            let t = binned_test(&all, Partition::Uniform(UNIFORM_BINS), 39, set);
            published += u32::from(t.consistency_p.unwrap() <= 0.05);
            conditional += u32::from(t.conditional_p.unwrap() <= 0.05);
        }
        assert!(
            published > 15 && conditional < 6,
            "{published} {conditional}"
        );
    }

    #[test]
    fn without_redrawn_samples_there_are_no_p_values() {
        let t = binned_tests(&sample(&mut Rng::new(1), 50, 0.0), 0, 1);
        assert!(t.uniform.conditional_p.is_none() && t.dynamic.consistency_p.is_none());
        assert_eq!(t.p_value(), 1.0);
    }
}
