//! What holds for every stream.

use crate::support::oracle::{Null, bounds, likelihoods, log_tilt};
use crate::support::streams::{LAWS, grid, pane, score};
use proptest::prelude::*;
use trueline::stats::algebra::Merge;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sequential::detector::Detector;
use trueline::stats::sequential::mixture::{COMPONENTS, DIRECTED, TOWARDS};
use trueline::stats::sequential::{Budget, Odds, Rules, StreamDetector};
use trueline::stats::sums::Sums;

const TOLERANCES: [f64; 3] = [0.0, 0.05, 0.3];

/// Rounding of the oracle's own sums, in nats an event.
const ROUNDING: f64 = 1e-13;

/// A lower bound that is never above and at most 10⁻⁶ an event below, for every bet of the mixture:
/// checks the log-likelihood ratio from cell sums against the exact sum over events of the same
/// cell-constant bet. Returns the largest loss an event.
fn check(odds: &Odds, events: &[(f64, bool)]) -> f64 {
    let null = Null {
        tolerance: odds.tolerance(),
        delta: 0.0,
    };
    let mut sums = Sums::new(odds.grid());
    let mut exact = [0.0; 2 * DIRECTED];
    for &(z, y) in events {
        sums.observe(Score::new(z).unwrap(), y).unwrap();
        let (edges, cell) = (bounds(z, null), odds.grid().cell_of(z));
        let y = f64::from(u8::from(y));
        for i in 0..DIRECTED {
            for (bet, family) in odds.bets(cell, i).into_iter().zip([0, DIRECTED]) {
                exact[family + i] += log_tilt(y, edges, bet.beta);
            }
        }
    }
    let found = odds.likelihoods(&sums);
    let mut worst = 0.0f64;
    for (found, exact) in found.directed.iter().zip(exact) {
        let loss = (exact - found) / events.len() as f64;
        assert!(
            loss >= -ROUNDING * (1.0 + exact.abs()),
            "above by {}",
            -loss
        );
        assert!(loss <= 1e-6, "loses {loss} an event");
        worst = worst.max(loss);
    }
    check_towards(odds, events, &found.towards);
    let tree = found.cells.iter().map(|c| c.n).sum::<u64>();
    assert_eq!(tree, 13 * events.len() as u64, "every event in every scale");
    worst
}

/// The same of the bets towards a probability, which are steep at the ends of the scale: never
/// above, and below by a millionth an event where scores keep 1/8 off the ends.
fn check_towards(odds: &Odds, events: &[(f64, bool)], found: &[f64]) {
    let null = Null {
        tolerance: odds.tolerance(),
        delta: 0.0,
    };
    let middle = events.iter().all(|(z, _)| (0.125..0.875).contains(z));
    for (i, found) in found.iter().enumerate() {
        let exact: f64 = (events.iter())
            .map(|&(z, y)| {
                let bet = odds.bet_towards(odds.grid().cell_of(z), i);
                log_tilt(f64::from(u8::from(y)), bounds(z, null), bet.beta)
            })
            .sum();
        let loss = (exact - found) / events.len() as f64;
        assert!(
            loss >= -ROUNDING * (1.0 + exact.abs()),
            "above by {}",
            -loss
        );
        assert!(!middle || loss <= 1e-6, "loses {loss} an event");
    }
}

/// Each bet has a mean of at most 1 at every probability that is tolerated, whatever the score: 1
/// at the nearest one.
#[test]
fn bets_towards_a_probability_are_fair_at_every_tolerated_probability() {
    for tolerance in TOLERANCES {
        let odds = Odds::new(grid(), tolerance);
        for z in (1..4000).map(|i| f64::from(i) / 4000.0) {
            let null = Null {
                tolerance,
                delta: 0.0,
            };
            let (lo, hi) = bounds(z, null);
            for i in 0..TOWARDS {
                let beta = odds.bet_towards(grid().cell_of(z), i).beta;
                for p in [lo, z, hi] {
                    let e = |y: f64| log_tilt(y, (lo, hi), beta).exp();
                    let mean = p * e(1.0) + (1.0 - p) * e(0.0);
                    assert!(mean <= 1.0 + 1e-12, "{z} {i}: {mean}");
                }
            }
        }
    }
}

#[test]
fn likelihoods_from_cell_sums_are_a_lower_bound_within_a_millionth_an_event() {
    for tolerance in TOLERANCES {
        let odds = Odds::new(grid(), tolerance);
        for (name, law) in LAWS {
            let mut rng = Rng::new(5);
            let events: Vec<(f64, bool)> = (0..20_000)
                .map(|_| {
                    let z = score(law, &mut rng);
                    (z, rng.uniform() < z)
                })
                .collect();
            let loss = check(&odds, &events);
            println!("{name}, tolerance {tolerance}: loses at most {loss:.1e} an event");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Scores crowd at the ends and at edges of cells; outcomes are anything. Single events too,
    /// which no average can hide.
    #[test]
    fn no_stream_makes_cell_sums_exceed_the_exact_likelihood(
        events in prop::collection::vec(
            (
                prop_oneof![
                    0.0..=1.0f64,
                    Just(0.0),
                    Just(1.0),
                    (0u32..=4096).prop_map(|i| f64::from(i) / 4096.0),
                    (1.0..40.0f64).prop_map(|x| (-x).exp()),
                    (1.0..40.0f64).prop_map(|x| 1.0 - (-x).exp()),
                ],
                any::<bool>(),
            ),
            1..40,
        ),
        tolerance in prop::sample::select(&TOLERANCES),
    ) {
        check(&Odds::new(grid(), tolerance), &events);
    }
}

#[test]
fn cell_bets_are_the_exact_ones_up_to_a_millionth_an_event() {
    let odds = Odds::new(grid(), 0.05);
    let null = Null {
        tolerance: 0.05,
        delta: 0.0,
    };
    let mut rng = Rng::new(9);
    for (_, law) in LAWS {
        let mut sums = Sums::new(grid());
        let mut events = Vec::new();
        for _ in 0..3000 {
            let z = score(law, &mut rng);
            let y = rng.uniform() < z;
            sums.observe(Score::new(z).unwrap(), y).unwrap();
            events.push((z, f64::from(u8::from(y))));
        }
        let (found, exact) = (odds.likelihoods(&sums), likelihoods(&events, null));
        // Cells of z are unions of finest cells; of the warped axis only nearly so, hence not
        // compared.
        for (f, e) in found.cells.iter().zip(&exact.cells).take(510) {
            assert_eq!(f.n, e.n);
            // Each z² is rounded to 2⁻³².
            assert!((f.variance - e.variance).abs() <= 2e-10 * e.n as f64 + 1e-12);
            for j in 0..4 {
                for (f, e) in [(f.plus[j], e.plus[j]), (f.minus[j], e.minus[j])] {
                    assert!(f <= e + 1e-9 && e - f <= 1e-6 * exact.n as f64, "{f} {e}");
                }
            }
        }
    }
}

/// A detector in the midst of a stream.
fn reached(tolerance: f64) -> Detector {
    let mut rng = Rng::new(3);
    let mut detector = Detector::default();
    let odds = Odds::new(grid(), tolerance);
    for _ in 0..50 {
        let sums = pane(&mut rng, 40, LAWS[0].1, |z| z.powf(1.3));
        detector.observe(&odds.likelihoods(&sums), 40.0, 0.0);
    }
    detector
}

/// Mean of every component's multiplier for one event of score z whose outcome has probability p.
fn means(detector: &Detector, z: f64, p: f64, null: Null) -> Vec<f64> {
    let mut mean = vec![0.0; COMPONENTS];
    for (y, q) in [(0.0, 1.0 - p), (1.0, p)] {
        let mut after = detector.clone();
        after.observe(&likelihoods(&[(z, y)], null), 1.0, 0.0);
        let pairs = detector.components.iter().zip(&after.components);
        for (mean, (a, b)) in mean.iter_mut().zip(pairs) {
            *mean += q * (b.log_worth - a.log_worth.exp().ln_1p()).exp();
        }
    }
    mean
}

#[test]
fn every_bet_is_fair_at_the_null_and_unfavourable_within_the_tolerance() {
    let exact = Null {
        tolerance: 0.0,
        delta: 0.0,
    };
    let detector = reached(0.0);
    for z in [0.0, 1e-300, 1e-6, 0.001, 0.1, 0.5, 0.93, 1.0 - 1e-6, 1.0] {
        for mean in means(&detector, z, z, exact) {
            assert!((mean - 1.0).abs() < 1e-11, "{z}: {mean}");
        }
    }
    let wide = Null {
        tolerance: 0.1,
        delta: 0.01,
    };
    let detector = reached(0.1);
    for z in [0.001, 0.1, 0.5, 0.93] {
        let (lo, hi) = bounds(z, wide);
        for i in 0..=6 {
            let p = lo + (hi - lo) * f64::from(i) / 6.0;
            let most = means(&detector, z, p, wide).into_iter().fold(0.0, f64::max);
            assert!(most <= 1.0 + 1e-11, "{z} {p}: {most}");
        }
    }
}

#[test]
fn the_worth_is_that_of_all_stakes_each_left_to_grow_from_its_own_moment() {
    let mut rng = Rng::new(8);
    let odds = Odds::new(grid(), 0.0);
    let mut detector = Detector::default();
    let mut stakes = vec![Vec::new(); COMPONENTS];
    for t in 0..50 {
        let pane = odds.likelihoods(&pane(&mut rng, 5, LAWS[0].1, |z| 0.8 * z));
        let mut probe = Detector {
            signs: detector.signs.clone(),
            ..Detector::default()
        };
        // From nothing, one stake of 1 is worth e after the pane.
        probe.observe(&pane, 1.0, 0.0);
        detector.observe(&pane, 5.0, 0.0);
        for (c, stakes) in stakes.iter_mut().enumerate() {
            stakes.push(5.0);
            let e = probe.components[c].log_worth.exp();
            stakes.iter_mut().for_each(|s: &mut f64| *s *= e);
            let want: f64 = stakes.iter().sum();
            let got = detector.components[c].log_worth.exp();
            assert!((got / want - 1.0).abs() < 1e-11, "{t} {c}");
            // Never below the best single start, which is what CUSUM keeps.
            assert!(got >= stakes.iter().copied().fold(0.0, f64::max) * (1.0 - 1e-12));
        }
    }
}

#[test]
fn panes_split_over_partitions_give_the_same_bits_as_whole_ones() {
    let odds = Odds::new(grid(), 0.05);
    let mut rng = Rng::new(4);
    let mut parts: Vec<Sums> = (0..3)
        .map(|_| pane(&mut rng, 700, LAWS[1].1, |z| z))
        .collect();
    let merged = |parts: &[Sums]| {
        let mut all = Sums::new(grid());
        parts.iter().for_each(|p| all.merge(p).unwrap());
        odds.likelihoods(&all)
    };
    let forward = merged(&parts);
    parts.reverse();
    assert_eq!(forward, merged(&parts));
}

#[test]
fn a_watch_that_is_put_back_goes_on_with_the_same_bits() {
    let odds = Odds::new(grid(), 0.05);
    let rules = Rules {
        budget: Budget::RunLength { events: 1e4 },
        ..Rules::default()
    };
    let (mut rng, mut whole) = (Rng::new(6), StreamDetector::default());
    let mut broken = whole.clone();
    let mut alarms = 0;
    for t in 0..400i64 {
        let sums = pane(
            &mut rng,
            100,
            LAWS[0].1,
            |z| if t < 60 { z } else { 0.5 * z },
        );
        let ms = (
            1_700_000_000_000 + 10_000 * t,
            1_700_000_010_000 + 10_000 * t,
        );
        let seen = whole.observe(&odds, &rules, &sums, ms);
        let kept = postcard::to_stdvec(&broken).unwrap();
        broken = postcard::from_bytes(&kept).unwrap();
        assert!(broken.is_sound());
        assert_eq!(broken.observe(&odds, &rules, &sums, ms), seen);
        assert_eq!(broken, whole);
        alarms = whole.alarms;
    }
    assert!(alarms > 1, "the stream is bad enough to alarm again");
    let mut foreign = whole;
    foreign.detector.signs[3][1] = f64::NAN;
    assert!(!foreign.is_sound());
}

#[test]
fn panes_of_any_size_and_grids_of_any_kind_leave_the_worth_a_number() {
    for grid in [
        Grid::new(Axis::Linear, 1),
        Grid::new(Axis::Linear, 16),
        Grid::new(
            Axis::Logit {
                low: 1e-6,
                high: 0.5,
            },
            12,
        ),
    ] {
        let odds = Odds::new(grid, 0.05);
        let mut watch = StreamDetector::default();
        let mut rng = Rng::new(2);
        for t in 0..20 {
            let mut sums = Sums::new(grid);
            for _ in 0..20_000 {
                let z = Score::new(score(LAWS[t % 4].1, &mut rng)).unwrap();
                sums.observe(z, rng.uniform() < 0.5).unwrap();
            }
            let ms = 10_000 * t as i64;
            watch.observe(&odds, &Rules::default(), &sums, (ms, ms + 10_000));
            assert!(!watch.log_worth().is_nan());
        }
        assert!(watch.alarms > 0, "{grid:?}");
    }
}
