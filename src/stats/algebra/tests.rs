//! The laws of [`Merge`] and [`Retract`], checked once for every kind of sums on generated events.

use super::{Merge, Overflow, Retract};
use crate::attribute::Attribute;
use crate::axis::{Axis, Grid};
use crate::clusters::Bucket;
use crate::fixed::Score;
use crate::kernel::Kernel;
use crate::kernel::Vectors;
use crate::kernel::features::{BlockSums, Features};
use crate::kernel::sums::{KernelOptions, KernelSums};
use crate::multiclass::{VectorView, sums::Shape, sums::VectorSums};
use crate::rng::Rng;
use crate::samples;
use crate::sums::{Cell, Sums};
use crate::weight::Weight;
use crate::weighted::{WeightedCell, WeightedSums};
use std::fmt::Debug;

const SEEDS: u64 = 40;

fn sum<S: Merge + Clone>(a: &S, b: &S) -> S {
    let mut both = a.clone();
    both.merge(b).expect("far from every bound");
    both
}

/// All laws of [`Merge`], on sums of disjoint events.
fn is_monoid<S: Merge + Clone + PartialEq + Debug>(made: impl Fn(&mut Rng, usize) -> S) {
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        let [a, b, c] = [0, 1, 2].map(|_| {
            let n = (rng.uniform() * 60.0) as usize;
            made(&mut rng, n)
        });
        assert_eq!(sum(&a, &a.empty()), a, "identity on the right, seed {seed}");
        assert_eq!(sum(&a.empty(), &a), a, "identity on the left, seed {seed}");
        assert_eq!(sum(&a, &b), sum(&b, &a), "commutativity, seed {seed}");
        let (left, right) = (sum(&sum(&a, &b), &c), sum(&a, &sum(&b, &c)));
        assert_eq!(left, right, "associativity, seed {seed}");
    }
}

/// The laws of [`Merge`] and [`Retract`]; empty sums refuse to take out events that they never
/// held.
fn is_group<S: Retract + Clone + PartialEq + Debug>(made: impl Fn(&mut Rng, usize) -> S) {
    is_monoid(&made);
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        let (a, b) = (made(&mut rng, 40), made(&mut rng, 30));
        let mut rest = sum(&a, &b);
        assert_eq!(rest.retract(&b), Ok(()), "seed {seed}");
        assert_eq!(rest, a, "retract undoes merge, seed {seed}");
        assert_eq!(rest.retract(&a), Ok(()), "seed {seed}");
        assert_eq!(rest, a.empty(), "nothing is left, seed {seed}");
        assert_eq!(a.empty().retract(&b), Err(Overflow), "seed {seed}");
    }
}

/// A uniform score, or one of few values, so that the list of distinct scores is never given up.
fn score(rng: &mut Rng, few: bool) -> Score {
    let z = rng.uniform();
    let z = if few { (z * 9.0).floor() / 8.0 } else { z };
    Score::new(z).expect("a score")
}

fn weight(rng: &mut Rng) -> Weight {
    Weight::new(0.25 + 8.0 * rng.uniform()).expect("a weight")
}

fn vectors(rng: &mut Rng, n: usize) -> Vectors {
    samples::vectors(rng, (n, 3), 0.0, samples::uniform_row)
}

#[test]
fn cells_are_groups() {
    is_group(|rng, n| {
        let mut all = Cell::default();
        for _ in 0..n {
            let one = Cell::of(score(rng, false).fixed(), rng.uniform() < 0.4);
            all.merge(&one).expect("few events");
        }
        all
    });
    is_group(|rng, n| {
        let mut all = WeightedCell::default();
        for _ in 0..n {
            let z = score(rng, false).fixed();
            let one = WeightedCell::of(z, rng.uniform() < 0.4, weight(rng));
            all.merge(&one).expect("few events");
        }
        all
    });
}

#[test]
fn scalar_sums_are_a_group_on_every_grid() {
    for level in [3, 8] {
        is_group(|rng, n| {
            let mut sums = Sums::new(Grid::new(Axis::Linear, level));
            for _ in 0..n {
                let y = rng.uniform() < 0.4;
                sums.observe(score(rng, true), y).expect("few events");
            }
            sums
        });
    }
}

#[test]
fn scalar_sums_of_many_scores_are_a_monoid() {
    is_monoid(|rng, n| {
        let mut sums = Sums::new(Grid::new(Axis::Linear, 6));
        for _ in 0..2 * n {
            let y = rng.uniform() < 0.4;
            sums.observe(score(rng, false), y).expect("few events");
        }
        sums
    });
}

#[test]
fn weighted_sums_are_a_group() {
    let grid = Grid::new(Axis::Linear, 6);
    is_group(|rng, n| {
        let mut sums = WeightedSums::default();
        for _ in 0..n {
            let (z, y, w) = (score(rng, false), rng.uniform() < 0.4, weight(rng));
            sums.observe(&grid, z, y, w).expect("few events");
        }
        sums
    });
    is_group(|rng, n| {
        let mut sums = Sums::new(grid.weighted());
        for _ in 0..n {
            let (z, y, w) = (score(rng, false), rng.uniform() < 0.4, weight(rng));
            sums.observe_with(z, y, Attribute::Weight(w))
                .expect("few events");
        }
        sums
    });
}

#[test]
fn clustered_sums_are_a_group() {
    is_group(|rng, n| {
        let mut sums = Sums::new(Grid::new(Axis::Linear, 8).clustered());
        for _ in 0..n {
            let bucket = Bucket::of(&[rng.bits() as u8 % 9]);
            let (z, y) = (score(rng, true), rng.uniform() < 0.4);
            sums.observe_with(z, y, Attribute::Cluster(bucket))
                .expect("few events");
        }
        sums
    });
}

#[test]
fn vector_sums_are_a_group_with_weights_and_without() {
    for view in [VectorView::Full, VectorView::TopK(2)] {
        for weighted in [false, true] {
            let shape = Shape {
                view,
                classes: 3,
                cells_max: 4096,
                weighted,
            };
            is_group(|rng, n| {
                let mut sums = VectorSums::new(shape).expect("a sound shape");
                for (row, y) in vectors(rng, n).events() {
                    assert!(sums.observe(row, 1.0, y, weighted.then(|| weight(rng))));
                }
                sums
            });
        }
    }
}

#[test]
fn kernel_features_are_a_group_and_blocks_a_monoid() {
    let none = Features::new(3, 0.5, 8, 1);
    is_group(|rng, n| {
        let mut sums = none.clone();
        for (row, y) in vectors(rng, n).events() {
            sums.observe(row, y);
        }
        sums
    });
    is_monoid(|rng, n| {
        let mut sums = BlockSums::default();
        sums.observe(&vectors(rng, n), Kernel::TotalVariation { nu: 0.5 }, 2);
        sums
    });
}

#[test]
fn kernel_sums_are_a_monoid_also_where_their_sample_is_full() {
    let options = KernelOptions {
        sample: 25,
        nu: Some(0.5),
        features: 4,
        seed: 1,
    };
    is_monoid(|rng, n| {
        let mut sums = KernelSums::new(3, options).expect("sound options");
        for (row, y) in vectors(rng, n).events() {
            let rank = (rng.uniform() * 1e9) as u64;
            assert!(sums.observe(rank, row, 1.0, y));
        }
        sums.close();
        sums
    });
}
