use super::super::{Blocks, Kernel, Quadratic, conditional, evaluate as offline};
use super::*;
use crate::algebra::Merge;
use crate::rng::Rng;
use crate::samples;

const OPTIONS: KernelOptions = KernelOptions {
    sample: 60,
    nu: Some(0.4),
    features: 16,
    seed: 7,
};

fn events(n: usize, classes: usize, pushed: f64, seed: u64) -> Vectors {
    samples::vectors(
        &mut Rng::new(seed),
        (n, classes),
        pushed,
        samples::uniform_row,
    )
}

fn ranks(n: usize, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| rng.bits()).collect()
}

fn sums(all: &Vectors, ranks: &[u64], kernel: KernelOptions, order: &[usize]) -> KernelSums {
    let mut sums = KernelSums::new(all.classes(), kernel).unwrap();
    for &i in order {
        assert!(sums.observe(ranks[i], all.row(i), 1.0, all.outcome(i)));
    }
    sums
}

/// All events, with ranks of a seed.
fn whole(all: &Vectors, seed: u64, kernel: KernelOptions) -> KernelSums {
    let order: Vec<usize> = (0..all.len()).collect();
    sums(all, &ranks(all.len(), seed), kernel, &order)
}

#[test]
fn the_events_of_lowest_rank_are_kept_and_parts_give_them_back() {
    let (all, ranks) = (events(500, 4, 0.2, 3), ranks(500, 4));
    let whole = whole(&all, 4, OPTIONS);
    let mut want: Vec<usize> = (0..500).collect();
    want.sort_by_key(|&i| ranks[i]);
    assert_eq!(whole.vectors(), all.pick(want[..60].iter().copied()));
    assert_eq!(whole.with_parts(whole.parts()).as_ref(), Some(&whole));
    let mut broken = whole.parts();
    broken.sample.pop();
    assert!(whole.with_parts(broken).is_none());
    let mut broken = whole.parts();
    broken.sample[0].row[0] = 2.0;
    assert!(whole.with_parts(broken).is_none());
}

#[test]
fn blocks_by_rank_add_up_over_panes_to_the_offline_ones_of_each_pane() {
    let (all, ranks) = (events(600, 4, 0.4, 12), ranks(600, 13));
    let kernel = Kernel::TotalVariation { nu: 0.4 };
    let mut total = KernelSums::new(4, OPTIONS).unwrap();
    let mut want = [Blocks::default(); 2];
    for pane in 0..6 {
        let mut order: Vec<usize> = (pane * 100..pane * 100 + 100).rev().collect();
        let mut sums = sums(&all, &ranks, OPTIONS, &order);
        sums.close();
        // Once is enough.
        sums.close();
        total.merge(&sums).unwrap();
        order.sort_by_key(|&i| ranks[i]);
        let sample = all.pick(order.into_iter().take(60));
        for (want, size) in want.iter_mut().zip(BLOCKS) {
            want.merge(&Blocks::of(&sample, kernel, size));
        }
    }
    let e = evaluate(&total, 0.05, 0.9).unwrap();
    assert_eq!((e.blocks[0].count, e.blocks[1].count), (180, 18));
    for (got, want) in e.blocks.iter().zip(&want) {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-8, "{a} {b}");
        near(got.estimate, want.estimate().unwrap());
        let like = Blocks::of(&total.vectors(), kernel, got.size);
        let p = conditional::block_p_value(want, &like, got.size).unwrap();
        near(got.p.conditional.unwrap(), p);
    }
    // Without a fixed width there are none.
    let mut free = sums(&all, &ranks, KernelOptions::default(), &[0, 1, 2, 3]);
    free.close();
    assert!(evaluate(&free, 0.05, 0.9).unwrap().blocks.is_empty());
    assert_eq!(total.with_parts(total.parts()).as_ref(), Some(&total));
}

#[test]
fn equal_ranks_have_one_order() {
    let all = events(40, 3, 0.0, 5);
    let kernel = KernelOptions {
        sample: 10,
        ..OPTIONS
    };
    let forth: Vec<usize> = (0..40).collect();
    let back: Vec<usize> = (0..40).rev().collect();
    let same = [1; 40];
    let (a, b) = (
        sums(&all, &same, kernel, &forth),
        sums(&all, &same, kernel, &back),
    );
    assert_eq!(a, b);
}

#[test]
fn a_window_says_what_its_sample_says_offline() {
    let (all, ranks) = (events(300, 5, 0.3, 6), ranks(300, 8));
    for kernel in [
        KernelOptions::default(),
        KernelOptions {
            sample: 100,
            ..KernelOptions::default()
        },
    ] {
        let window = evaluate(&whole(&all, 8, kernel), 0.05, 0.9).unwrap();
        let mut by_rank: Vec<usize> = (0..300).collect();
        by_rank.sort_by_key(|&i| ranks[i]);
        let part = all.pick(by_rank.into_iter().take(kernel.sample));
        let options = Options {
            quadratic_max: usize::MAX,
            ..Options::default()
        };
        assert_eq!(Some(&window.sample), offline(&part, &options).as_ref());
        assert_eq!(window.p_value, window.sample.biased_p.conditional);
        assert_eq!((window.n, window.reject), (300, true));
    }
}

#[test]
fn features_are_the_quadratic_form_of_their_own_kernel_and_its_null_moments() {
    let all = events(60, 3, 0.3, 9);
    // The sample holds every event, so that the null variance is exact.
    let kept = whole(&all, 1, OPTIONS);
    let f = evaluate(&kept, 0.05, 0.9).unwrap().features.unwrap();
    let waves: Vec<Vec<f64>> = all
        .events()
        .map(|(g, _)| kept.features().unwrap().wave(g))
        .collect();
    let phi =
        |i: usize, j: usize| -> f64 { waves[i].iter().zip(&waves[j]).map(|(a, b)| a * b).sum() };
    let (mut total, mut mean, mut variance) = (0.0, 0.0, 0.0);
    let flat = Kernel::TotalVariation { nu: f64::INFINITY };
    for i in 0..60 {
        for j in 0..60 {
            let (a, b) = ((all.row(i), all.outcome(i)), (all.row(j), all.outcome(j)));
            let pair = super::super::skce::pair(flat, a, b);
            total += phi(i, j) * pair.h;
            if i != j {
                variance += 2.0 * phi(i, j) * phi(i, j) * pair.null_variance;
            }
        }
        let norm: f64 = all.row(i).iter().map(|p| p * p).sum();
        mean += 1.0 - norm;
    }
    variance += Quadratic::of(&all, flat).null_diagonal_variance;
    assert!((f.biased - total / 3600.0).abs() < 1e-8);
    assert!((f.null_mean - mean / 3600.0).abs() < 1e-8);
    assert!((f.null_sd - variance.sqrt() / 3600.0).abs() < 1e-8);
}

#[test]
fn the_lower_end_is_seldom_above_the_error_and_at_last_above_nothing() {
    // Outcomes of class 0 with probability ½ whatever is said of three classes: ‖E(δ | g)‖ is ½‖e_0
    // − g‖.
    let mut above = 0;
    for seed in 0..50 {
        let all = events(4000, 3, 0.5, 100 + seed);
        let kernel = KernelOptions {
            sample: 400,
            ..OPTIONS
        };
        let e = evaluate(&whole(&all, seed, kernel), 0.05, 0.9).unwrap();
        let size = |g: &[f64]| {
            let rest: f64 = g[1..].iter().map(|p| p * p).sum();
            0.25 * ((1.0 - g[0]).powi(2) + rest)
        };
        let squared: f64 = all.events().map(|(g, _)| size(g)).sum::<f64>() / 4000.0;
        above += u32::from(e.lower > squared.sqrt());
        assert!(e.by_features && e.reject && e.lower > 0.05, "{}", e.lower);
    }
    assert_eq!(above, 0);
}

#[test]
fn both_tests_keep_their_levels_and_features_find_what_the_sample_does_not() {
    let run = |sets: u64, pushed: f64| {
        let mut hits = [0u32; 2];
        for set in 0..sets {
            let all = events(2000, 3, pushed, 500 + set);
            let e = evaluate(&whole(&all, set, OPTIONS), 0.05, 0.9).unwrap();
            hits[0] += u32::from(e.sample.reject);
            hits[1] += u32::from(e.reject);
        }
        hits.map(|h| f64::from(h) / sets as f64)
    };
    let bar = 4.0 * (0.05f64 * 0.95 / 400.0).sqrt();
    let levels = run(400, 0.0);
    println!("levels {levels:?}");
    assert!(levels.iter().all(|l| (l - 0.05).abs() < bar), "{levels:?}");
    let powers = run(60, 0.12);
    println!("powers {powers:?}");
    assert!(powers[1] > 0.9 && powers[0] < 0.8, "{powers:?}");
}

#[test]
fn of_predictions_that_are_nearly_all_certain_the_level_is_kept_too() {
    // One of `every` events is in doubt, and outcomes are as foretold.
    let run = |every: usize, set: u64| {
        let doubtful = events(2000 / every, 3, 0.0, 900 + set);
        let mut all = Vectors::new(3);
        for i in 0..2000 {
            let (g, y) = match i % every {
                0 => (
                    doubtful.row(i / every).to_vec(),
                    doubtful.outcome(i / every),
                ),
                _ => (vec![0.0, 1.0, 0.0], 1),
            };
            assert!(all.push(&g, y).is_ok());
        }
        let e = evaluate(&whole(&all, set, OPTIONS), 0.05, 0.9).unwrap();
        assert!(e.by_features);
        (e.reject, e.sample.biased_p.conditional.is_some())
    };
    // Of 60 in the sample 30, 6, and one half are in doubt.
    for every in [2, 10, 100] {
        let hits = (0..200).filter(|&set| run(every, set).0).count();
        println!("one of {every}: {hits} of 200");
        let bar = 10.0 + 4.0 * (200.0f64 * 0.05 * 0.95).sqrt();
        assert!((hits as f64) < bar, "one of {every}: {hits} of 200");
    }
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let none = |kernel| KernelSums::new(3, kernel).is_none();
    assert!(none(KernelOptions {
        nu: None,
        ..OPTIONS
    }));
    assert!(none(KernelOptions {
        sample: 1,
        ..OPTIONS
    }));
    assert!(KernelSums::new(1, OPTIONS).is_none());
    let mut sums = KernelSums::new(3, OPTIONS).unwrap();
    assert!(!sums.observe(1, &[0.5, 0.5], 1.0, 0));
    assert!(!sums.observe(1, &[0.5, 0.2, 0.3], 1.0, 3));
    sums.admit(false);
    assert!(!sums.observe(1, &[0.5, 0.2, 0.3], 1.0, 2));
    assert_eq!((sums.n(), sums.refused()), (0, 3));
    assert!(evaluate(&sums, 0.05, 0.9).is_none());
}
