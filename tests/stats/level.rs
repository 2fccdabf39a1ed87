//! The level of the default test: how often calibrated data are rejected at α = 0.05.
//!
//! Scores uniform, beta(0.4, 30) (rare events) and beta(5, 0.5) (confidences near 1), outcomes drawn
//! from the scores, each data set through the product's sums and `evaluate`. Bars: 0.035 to 0.065 at
//! n = 5000 and 50000, 0.02 to 0.07 at n = 500, each widened by what chance may add to that many data
//! sets (three standard errors): `TRUELINE_DATA_SETS=4000` runs it at the size of the bars themselves,
//! without widening.

use std::thread;
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::evaluation::{DiscreteMode, Options, evaluate};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;

/// Beta by Jöhnk's and Marsaglia–Tsang's gammas.
fn beta(rng: &mut Rng, a: f64, b: f64) -> f64 {
    let (x, y) = (gamma(rng, a), gamma(rng, b));
    x / (x + y)
}

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

type Law = fn(&mut Rng) -> f64;

const LAWS: [(&str, Law); 3] = [
    ("uniform", |r| r.uniform()),
    ("beta(0.4, 30)", |r| beta(r, 0.4, 30.0)),
    ("beta(5, 0.5)", |r| beta(r, 5.0, 0.5)),
];

fn rejections(law: Law, n: usize, seeds: std::ops::Range<u64>) -> u32 {
    let options = Options {
        discrete: DiscreteMode::Off,
        ..Options::default()
    };
    seeds
        .map(|seed| {
            let mut rng = Rng::new(seed);
            let mut sums = Sums::new(Grid::new(Axis::Linear, 12));
            for _ in 0..n {
                let z = law(&mut rng);
                let y = rng.uniform() < z;
                sums.observe(Score::new(z).unwrap(), y).unwrap();
            }
            u32::from(evaluate(&sums, &options).unwrap().tcal.reject)
        })
        .sum()
}

#[test]
fn calibrated_data_are_rejected_about_as_often_as_alpha_says() {
    let full: Option<u64> = std::env::var("TRUELINE_DATA_SETS")
        .ok()
        .and_then(|s| s.parse().ok());
    let mut bad = 0;
    for (name, law) in LAWS {
        for (n, sets, low, high) in [
            (500, 2000, 0.02, 0.07),
            (5000, 1000, 0.035, 0.065),
            (50_000, 150, 0.035, 0.065),
        ] {
            let sets = full.unwrap_or(sets);
            let half = sets / 2;
            let count = thread::scope(|s| {
                let first = s.spawn(move || rejections(law, n, 0..half));
                rejections(law, n, half..sets) + first.join().unwrap()
            });
            let level = f64::from(count) / sets as f64;
            let slack = if full.is_some() {
                0.0
            } else {
                3.0 * (0.05 * 0.95 / sets as f64).sqrt()
            };
            println!("{name}, n = {n}: level {level:.4} over {sets} data sets");
            bad += u32::from(level < low - slack || level > high + slack);
        }
    }
    assert_eq!(
        bad, 0,
        "levels out of bounds; seeds are 0 to the number of data sets"
    );
}
