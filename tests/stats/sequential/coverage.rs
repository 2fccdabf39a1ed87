//! Confidence sequences at all times of streams of 10⁵ events: calibrated, of temperature 1.5, and
//! clicks of doubled odds half the time. At 95 % each may ever miss in one stream of twenty; they
//! are known to miss in far fewer.

use crate::support::bars::{Bar, data_sets, each};
use crate::support::streams::{LAWS, expit, grid, score};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sequential::sequences::Sequences;
use trueline::stats::sums::Sums;

const EVENTS: usize = 100_000;
const PANE: usize = 500;

/// Probability of an outcome, given its score and the number of its pane.
type Truth = fn(f64, usize) -> f64;

/// Whether mean, any bin and lower bound ever missed, and the last lower bound with the truth that
/// it bounds.
fn misses(seed: u64, law: usize, truth: Truth) -> ([bool; 3], [f64; 2]) {
    let mut rng = Rng::new(7000 + seed);
    let mut sequences = Sequences::default();
    let (mut mean, mut square, mut bins) = (0.0, 0.0, [0.0; 16]);
    let mut missed = [false; 3];
    let mut last = [0.0; 2];
    for t in 0..EVENTS / PANE {
        let mut sums = Sums::new(grid());
        for _ in 0..PANE {
            let z = score(LAWS[law].1, &mut rng);
            let p = truth(z, t);
            sums.observe(Score::new(z).unwrap(), rng.uniform() < p)
                .unwrap();
            mean += p - z;
            square += (p - z) * (p - z);
            bins[(z * 16.0) as usize] += p - z;
        }
        sequences.observe(&sums);
        // α = 0.05·π²/6 in all gives 0.05 to the first epoch.
        let bounds = sequences.bounds(grid(), 0.05 * std::f64::consts::PI.powi(2) / 6.0);
        assert!(!bounds.bins.is_empty());
        let n = bounds.n as f64;
        missed[0] |= mean / n < bounds.mean.0 || mean / n > bounds.mean.1;
        missed[1] |= bounds.bins.iter().any(|b| {
            let truth = bins[(b.low * 16.0).round() as usize] / b.n as f64;
            truth < b.lower || truth > b.upper
        });
        missed[2] |= square / n < bounds.ece2_lower;
        last = [bounds.ece2_lower, square / n];
    }
    (missed, last)
}

#[test]
fn confidence_sequences_hold_at_all_times_together() {
    let runs = data_sets(40);
    let streams: [(&str, usize, Truth); 3] = [
        ("calibrated", 0, |z, _| z),
        ("T 1.5", 0, |z, _| expit((z / (1.0 - z)).ln() / 1.5)),
        ("clicks, odds doubled in turns", 3, |z, t| {
            if t / 20 % 2 == 0 {
                z
            } else {
                2.0 * z / (1.0 + z)
            }
        }),
    ];
    let mut missed = [0; 3];
    for (name, law, truth) in streams {
        let all = each(runs, |seed| misses(seed, law, truth));
        let count = |i: usize| all.iter().filter(|a| a.0[i]).count() as u64;
        let [mean, bins, ece] = [0, 1, 2].map(count);
        let last = all[0].1;
        println!("{name}: of {runs} missed mean {mean}, bins {bins}, ECE² {ece}; ECE² {last:?}");
        for (all, count) in missed.iter_mut().zip([mean, bins, ece]) {
            *all += count;
        }
    }
    // Each kind of stream alone is too few for a bar.
    let bar = Bar::new(3 * runs, 0.0..=0.05, &[0.25]);
    let mut failures = Vec::new();
    for (what, missed) in ["mean", "bins", "ECE²"].into_iter().zip(missed) {
        bar.check(what, missed, &mut failures);
    }
    assert!(failures.is_empty(), "{failures:#?}, seeds 7000 on");
    let ([_, _, missed], [lower, truth]) = misses(1, 0, |z, _| expit((z / (1.0 - z)).ln() / 1.5));
    assert!(
        !missed && lower > 0.5 * truth,
        "the bound says something: {lower} of {truth}"
    );
}
