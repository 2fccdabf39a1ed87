//! Time of one evaluation, part by part, and against a plain bootstrap. Prints figures; asserts
//! none.
//!
//! Run: `cargo bench --bench evaluate`. Best of many runs on one thread; read ratios rather than
//! absolutes on a shared machine.

use std::hint::black_box;
use std::time::{Duration, Instant};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::evaluation::{Options, evaluate};
use trueline::stats::fixed::Score;
use trueline::stats::joint::min_p_value;
use trueline::stats::levels::Levels;
use trueline::stats::rng::Rng;
use trueline::stats::sums::Sums;
use trueline::stats::tcal::{Critical, TCalOptions, tcal};

/// The allocator of the binary; the C library's gives large blocks back to the system each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn sample(n: usize, power: i32) -> Vec<(f64, bool)> {
    let mut rng = Rng::new(7);
    (0..n)
        .map(|_| {
            let z = rng.uniform().powi(power);
            (z, rng.uniform() < z)
        })
        .collect()
}

fn sums(sample: &[(f64, bool)], axis: Axis) -> Sums {
    let mut sums = Sums::new(Grid::new(axis, 12));
    for &(z, y) in sample {
        if let Ok(z) = Score::new(z) {
            let _ = sums.observe(z, y);
        }
    }
    sums
}

fn best(name: &str, runs: usize, mut f: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        f();
        best = best.min(start.elapsed());
    }
    println!("{name:<60} {:>12.1} µs", best.as_secs_f64() * 1e6);
    best
}

/// What one would write first: redraw every outcome, sort every cell again, at every level.
fn plain_bootstrap(sample: &[(f64, bool)], replicates: usize) -> Vec<usize> {
    let mut rng = Rng::new(1);
    let statistic = |sample: &[(f64, bool)], m: usize| {
        let mut cells = vec![(0.0f64, 0.0f64, 0.0f64); m];
        for &(z, y) in sample {
            let c = &mut cells[((z * m as f64) as usize).min(m - 1)];
            let u = f64::from(u8::from(y)) - z;
            *c = (c.0 + 1.0, c.1 + u, c.2 + u * u);
        }
        let occupied = cells.iter().filter(|c| c.0 > 0.0);
        occupied.map(|c| (c.1 * c.1 - c.2) / c.0).sum::<f64>()
    };
    (1..=12)
        .map(|b| {
            let seen = statistic(sample, 1 << b);
            let draws = (0..replicates).filter(|_| {
                let redrawn: Vec<(f64, bool)> = sample
                    .iter()
                    .map(|&(z, _)| (z, rng.uniform() < z))
                    .collect();
                statistic(&redrawn, 1 << b) >= seen
            });
            draws.count()
        })
        .collect()
}

fn main() {
    let options = Options::default();
    for (name, n, power) in [
        ("uniform, n = 10^4", 10_000, 1),
        ("uniform, n = 10^6", 1_000_000, 1),
        ("u^6, n = 10^5", 100_000, 6),
    ] {
        let sums = sums(&sample(n, power), Axis::Linear);
        println!("{name}: {} occupied cells", sums.occupied().count());
        best("  levels from sums", 300, || {
            black_box(Levels::from_sums(black_box(&sums)));
        });
        let levels = Levels::from_sums(&sums);
        best("  T-Cal: estimators, null, joint p-value", 300, || {
            black_box(tcal(black_box(&levels), &options.tcal));
        });
        best("  full evaluation", 300, || {
            black_box(evaluate(black_box(&sums), &options));
        });
        let drawn = TCalOptions {
            critical: Critical::MonteCarlo { replicates: 3000 },
            ..options.tcal
        };
        best("  T-Cal: 3000 replicates", 7, || {
            black_box(tcal(black_box(&levels), &drawn));
        });
    }
    for rho in [0.5, 0.707, 0.9, 0.99, 0.9985] {
        best(
            &format!("joint p-value, 12 levels, correlation {rho}"),
            300,
            || {
                black_box(min_p_value(black_box(0.006), &[rho; 11]));
            },
        );
    }
    let data = sample(10_000, 1);
    let linear = sums(&data, Axis::Linear);
    let full = best("full evaluation, n = 10^4", 300, || {
        black_box(evaluate(black_box(&linear), &options));
    });
    // As many rare outcomes as are drawn at most: Σz(1 − z) just below 100.
    let logit = Axis::Logit {
        low: 1e-6,
        high: 1.0 - 1e-6,
    };
    let mut rng = Rng::new(7);
    let rare = (0..180_000).map(|_| {
        let z = 1e-4 + 9e-4 * rng.uniform();
        (z, rng.uniform() < z)
    });
    let rare = sums(&rare.collect::<Vec<_>>(), logit);
    for n in [20, 60, 150] {
        let few = sums(&sample(n, 1), Axis::Linear);
        best(&format!("full evaluation, n = {n}, drawn"), 100, || {
            black_box(evaluate(black_box(&few), &options));
        });
    }
    best("full evaluation, 99 rare outcomes, drawn", 100, || {
        black_box(evaluate(black_box(&rare), &options));
    });
    let few = 30;
    let plain = best(
        "plain bootstrap, n = 10^4, 12 levels, 30 replicates",
        2,
        || {
            black_box(plain_bootstrap(&data, few));
        },
    );
    let ratio = plain.as_secs_f64() * 3000.0 / few as f64 / full.as_secs_f64();
    println!("plain bootstrap with 3000 replicates / full evaluation: {ratio:.0}");
}
