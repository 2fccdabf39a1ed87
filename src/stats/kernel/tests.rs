//! Laws of the estimators and the level and power of the tests.

use super::*;
use crate::algebra::{Merge, Retract};
use crate::conditional::rank::reaches;
use crate::rng::Rng;
use crate::samples;

/// Symmetric Dirichlet predictions with the outcomes of the paper's models: calibrated, half of
/// class 0 (M2).
fn sample(n: usize, classes: usize, pushed: f64, rng: &mut Rng) -> Vectors {
    // Exponentials of a power are sparse enough for a test.
    let sparse = |rng: &mut Rng, k| samples::row(rng, k, |u| (1.0 - u).ln().powi(4));
    samples::vectors(rng, (n, classes), pushed, sparse)
}

/// Exact p-value of any statistic that is large off the null: outcomes are redrawn from the
/// predictions, (1 + #{T* ≥ T})/(1 + replicates).
pub(super) fn redrawn_p_value(
    sample: &Vectors,
    replicates: u32,
    seed: u64,
    statistic: impl Fn(&Vectors) -> f64,
) -> f64 {
    let observed = statistic(sample);
    let mut rng = Rng::new(seed);
    let mut above = 0;
    for _ in 0..replicates {
        let drawn = sample
            .events()
            .map(|(p, _)| conditional::draw(p, rng.uniform()))
            .collect();
        above += u32::from(reaches(statistic(&sample.with_outcomes(drawn)), observed));
    }
    (1.0 + f64::from(above)) / (1.0 + f64::from(replicates))
}

#[test]
fn streamed_pairs_and_merged_panes_give_the_offline_estimates() {
    let mut rng = Rng::new(3);
    let all = sample(101, 4, 0.3, &mut rng);
    let kernel = Kernel::TotalVariation { nu: 0.5 };
    let stream = |range: std::ops::Range<usize>| {
        let mut pairs = features::BlockSums::default();
        let mut waves = features::Features::new(4, 0.5, 300, 1);
        pairs.observe(&all.pick(range.clone()), kernel, 2);
        for i in range {
            waves.observe(all.row(i), all.outcome(i));
        }
        (pairs, waves)
    };
    let (mut pairs, mut waves) = stream(0..40);
    let (more_pairs, more_waves) = stream(40..101);
    pairs.merge(&more_pairs).unwrap();
    waves.merge(&more_waves).unwrap();
    let (offline, got) = (Blocks::of(&all, kernel, 2), pairs.blocks());
    assert_eq!(got.count, 50.0);
    assert!((got.estimate().unwrap() - offline.estimate().unwrap()).abs() < 1e-9);
    assert!((got.null_variance - offline.null_variance).abs() < 1e-7);
    let (_, whole) = stream(0..101);
    assert_eq!(waves, whole);
    waves.retract(&more_waves).unwrap();
    assert_eq!(waves, stream(0..40).1);
    let (biased, unbiased) = whole.estimates().unwrap();
    let q = Quadratic::of(&all, kernel);
    // 300 frequencies: a relative error of 1/√300 at one standard deviation.
    assert!(
        (biased / q.biased() - 1.0).abs() < 0.25,
        "{biased} {}",
        q.biased()
    );
    assert!((unbiased - q.unbiased().unwrap()).abs() < 0.25 * q.biased());
}

#[test]
fn the_conditional_tests_keep_their_level_and_find_what_the_published_ones_do_not() {
    let mut rng = Rng::new(5);
    let (mut level, mut linear, mut power, mut free) = (0, 0, 0, 0);
    let sets = 200;
    for _ in 0..sets {
        let o = Options::default();
        let e = evaluate(&sample(100, 5, 0.0, &mut rng), &o).unwrap();
        level += u32::from(e.reject);
        let many = Options {
            quadratic_max: 30,
            ..o
        };
        let e = evaluate(&sample(800, 5, 0.0, &mut rng), &many).unwrap();
        linear += u32::from(e.linear_p.conditional.unwrap() < 0.05);
        let e = evaluate(&sample(100, 5, 0.3, &mut rng), &o).unwrap();
        power += u32::from(e.reject);
        free += u32::from(e.biased_p.distribution_free.unwrap() < 0.05);
        assert!(e.biased_bound <= e.biased_p.distribution_free.unwrap() + 1e-12);
    }
    // 10 expected of 200, standard deviation 3.
    assert!(level <= 22 && linear <= 24, "{level} {linear}");
    assert!(power > 190 && free < 20, "{power} {free}");
}

/// One class of some ½ and 49 rare ones: one χ² is much of the law.
#[test]
fn one_frequent_class_keeps_a_small_level() {
    let mut rng = Rng::new(8);
    let row = |rng: &mut Rng, k: usize| {
        let first = 0.3 + 0.4 * rng.uniform();
        let rest: Vec<f64> = (1..k).map(|_| 1.0 + rng.uniform()).collect();
        let sum: f64 = rest.iter().sum();
        let rest = rest.iter().map(|x| (1.0 - first) * x / sum);
        std::iter::once(first).chain(rest).collect::<Vec<f64>>()
    };
    let p_value = |rng: &mut Rng| {
        let all = samples::vectors(rng, (100, 50), 0.0, row);
        let e = evaluate(&all, &Options::default()).unwrap();
        e.biased_p.conditional.unwrap()
    };
    let found = (0..1000).filter(|_| p_value(&mut rng) <= 0.01).count();
    // Ten are expected; the gamma law alone gives some 28.
    assert!(found <= 21, "{found}");
}

#[test]
fn pairs_and_blocks_of_rare_outcomes_have_no_law() {
    let mut rng = Rng::new(9);
    let mut two = |n: usize, most: f64| {
        let rare = |rng: &mut Rng, _| {
            let z = most * rng.uniform();
            vec![1.0 - z, z]
        };
        let all = samples::vectors(&mut rng, (n, 2), 0.0, rare);
        let o = Options {
            quadratic_max: 30,
            ..Options::default()
        };
        let e = evaluate(&all, &o).unwrap();
        (e.linear_p, e.block_p)
    };
    let (linear, block) = two(3000, 0.02);
    assert_eq!((linear.conditional, block.conditional), (None, None));
    assert!(linear.distribution_free.is_some() && block.distribution_free.is_some());
    let (linear, block) = two(600, 1.0);
    assert!(linear.conditional.is_some() && block.conditional.is_some());
    // Near the least that is asked for.
    let p: Vec<[Option<f64>; 2]> = (0..2000)
        .map(|_| two(2000, 0.2))
        .map(|(linear, block)| [linear.conditional, block.conditional])
        .collect();
    for which in 0..2 {
        let found = p.iter().filter(|p| p[which].unwrap() <= 0.01).count();
        // 20 are expected, 30 at most by the numbers of the module.
        assert!(found <= 48, "{which}: {found}");
    }
}

#[test]
fn a_bounded_part_is_seeded_ascending_and_whole_where_it_fits() {
    assert_eq!(features::bounded(5, 9, 1), [0, 1, 2, 3, 4]);
    let part = features::bounded(1000, 50, 7);
    assert_eq!(part, features::bounded(1000, 50, 7));
    assert!(part.len() == 50 && part.windows(2).all(|w| w[0] < w[1]) && part[49] < 1000);
}

#[test]
fn redrawn_p_values_agree_with_the_gamma_law() {
    let mut rng = Rng::new(12);
    let all = sample(60, 3, 0.1, &mut rng);
    let kernel = Kernel::TotalVariation { nu: 0.4 };
    let p = redrawn_p_value(&all, 2000, 4, |v| Quadratic::of(v, kernel).biased());
    let gamma = conditional::biased_p_value(&Quadratic::of(&all, kernel)).unwrap();
    assert!((p - gamma).abs() < 0.05, "{p} {gamma}");
}

#[test]
fn vectors_are_checked_and_small_offs_divided_out() {
    let mut v = Vectors::new(3);
    assert!(v.push(&[0.5, 0.6, 0.1], 0).is_err());
    assert!(v.push(&[0.5, 0.4, 0.1], 3).is_err());
    assert!(v.push(&[0.5, 0.5], 0).is_err());
    v.push(&[0.5, 0.4, 0.1004], 2).unwrap();
    v.push(&[0.5, 0.4, 0.1], 1).unwrap();
    assert_eq!(v.normalise(), 1);
    assert!((v.row(0).iter().sum::<f64>() - 1.0).abs() < 1e-15);
    assert!(evaluate(&v.pick([0]), &Options::default()).is_none());
}

#[test]
fn a_redrawn_sum_in_another_order_is_a_tie() {
    let mut all = Vectors::new(2);
    for y in [1, 1, 0] {
        all.push(&[0.5, 0.5], y).unwrap();
    }
    // .1 + .2 is a little more than .3, which is another set of as large a sum: five of eight sets
    // reach it.
    let sum = |v: &Vectors| {
        let weights = [0.1, 0.2, 0.3];
        let taken = (0..3).filter(|i| v.outcome(*i) == 1).map(|i| weights[i]);
        taken.fold(0.0, |sum, w| sum + w)
    };
    let p = redrawn_p_value(&all, 4000, 4, sum);
    assert!((p - 0.625).abs() < 0.03, "{p}");
}

/// Whatever the outcome of one even vector, the statistic is its mean under the null.
#[test]
fn one_even_vector_among_certain_ones_is_no_sign_of_miscalibration() {
    let third = 1.0 / 3.0;
    for even in [[0.5, 0.5, 0.0], [third; 3], [0.5 + 1e-7, 0.5 - 1e-7, 0.0]] {
        for (n, wrong) in [(30, false), (1000, false), (30, true)] {
            let mut all = Vectors::new(3);
            for i in 0..n {
                let class = u32::from(wrong && i == 0);
                all.push(&[1.0, 0.0, 0.0], class).unwrap();
            }
            all.push(&even, 1).unwrap();
            let e = evaluate(&all, &Options::default()).unwrap();
            assert_eq!(e.reject, wrong, "{even:?}, {n}: {:?}", e.biased_p);
        }
    }
}
