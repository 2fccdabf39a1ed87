//! Time of the distances of one window with every cell occupied, and of the kernel test. Prints
//! figures; asserts none.
//!
//! Run: `cargo bench --bench distance`. Best of many runs on one thread. Bars: smooth, interval and
//! Laplace error together under 5 ms, lower distance under 50 ms, for 4096 cells.

use std::hint::black_box;
use std::time::{Duration, Instant};
use trueline::stats::distance::{
    Effort, Extent, Points, interval, laplace, lower, of_cells, random_interval, smooth, smooth_ece,
};
use trueline::stats::kernel::{self, Vectors};
use trueline::stats::levels::Level;
use trueline::stats::rng::Rng;

/// The allocator of the binary; the C library's gives large blocks back to the system each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CELLS: u64 = 4096;

fn best(name: &str, runs: usize, mut f: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        f();
        best = best.min(start.elapsed());
    }
    println!("{name:<52} {:>10.1} µs", best.as_secs_f64() * 1e6);
    best
}

fn main() {
    kernel_test();
    let edges = |i: u64| (i as f64 / CELLS as f64, (i + 1) as f64 / CELLS as f64);
    let calibrated: fn(f64) -> f64 = |f| f;
    let steep: fn(f64) -> f64 = |f| f.powi(4) / (f.powi(4) + (1.0 - f).powi(4));
    let opposite: fn(f64) -> f64 = |f| 1.0 - f;
    for (name, n, truth) in [
        ("calibrated", 100_000, calibrated),
        ("calibrated", 1_000_000, calibrated),
        ("underconfident", 100_000, steep),
        ("opposite", 100_000, opposite),
    ] {
        let mut rng = Rng::new(1);
        let mut draw = || {
            let z = rng.uniform();
            (z, rng.uniform() < truth(z))
        };
        let sample: Vec<(f64, bool)> = (0..n).map(|_| draw()).collect();
        let level = Level::from_scores(&sample, CELLS);
        let Some(p) = Points::from_level(&level, edges) else {
            continue;
        };
        println!("{name}, n = {n}, {} points", p.atoms().len());
        let mut sum = best("  points from cells", 50, || {
            black_box(Points::from_level(black_box(&level), edges));
        });
        sum += best("  smooth", 50, || {
            black_box(smooth::smooth(black_box(&p)));
        });
        sum += best("  interval", 20, || {
            black_box(interval::interval(black_box(&p)));
        });
        sum += best("  laplace with null law", 50, || {
            black_box(laplace::laplace(black_box(&p), 1.0));
        });
        println!("{:<52} {:>10.1} µs", "  together", sum.as_secs_f64() * 1e6);
        best("  lower distance", 20, || {
            black_box(lower::lower(black_box(&p), Effort::WINDOW));
        });
        let l = lower::lower(&p, Effort::WINDOW);
        println!("    {l:?}");
        best("  surrogate interval", 50, || {
            black_box(random_interval::aligned(black_box(&level)));
        });
        best("  smECE", 20, || {
            black_box(smooth_ece::smooth_ece(black_box(&p)));
        });
        best("  cheap ones", 50, || {
            black_box(of_cells(black_box(&level), edges, true, Extent::Cheap));
        });
        best("  all", 5, || {
            black_box(of_cells(black_box(&level), edges, true, Extent::All));
        });
    }
}

/// The quadratic kernel test: n = 2000 events of ten classes; its bar is 200 ms.
fn kernel_test() {
    let mut rng = Rng::new(3);
    let mut sample = Vectors::new(10);
    while sample.len() < 2000 {
        let mut row: Vec<f64> = (0..10)
            .map(|_| (1.0 - rng.uniform()).ln().powi(4))
            .collect();
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= sum);
        let y = kernel::conditional::draw(&row, rng.uniform());
        let _ = sample.push(&row, y);
    }
    best(
        "quadratic kernel test, n = 2000, K = 10, ν by median",
        5,
        || {
            black_box(kernel::evaluate(
                black_box(&sample),
                &kernel::Options::default(),
            ));
        },
    );
}
