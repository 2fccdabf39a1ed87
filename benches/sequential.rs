//! Time of one pane of the sequential detector for one stream. Prints figures; asserts none.
//!
//! `cargo bench --bench sequential`. Best of many panes on one thread. Bars: 200 µs with 4096
//! occupied cells; a thousand streams of 400 occupied cells every 10 s below 5 % of a core, that is
//! 500 µs a stream.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trueline::judge::{self, DetectorOptions};
use trueline::stats::axis::{Axis, Grid};
use trueline::stats::fixed::Score;
use trueline::stats::rng::Rng;
use trueline::stats::sequential::{Detector, Odds, Rules, StreamDetector};
use trueline::stats::sums::Sums;
use trueline::window::Packed;

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn best(name: &str, runs: usize, mut f: impl FnMut()) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        f();
        best = best.min(start.elapsed());
    }
    let micros = best.as_secs_f64() * 1e6;
    println!("{name:<64} {micros:>8.1} µs");
    micros
}

/// Calibrated events, `each` in every one of `cells` evenly spread cells.
fn pane(rng: &mut Rng, grid: Grid, cells: u32, each: u32) -> Sums {
    let mut sums = Sums::new(grid);
    for i in 0..cells * each {
        let cell = i % cells * (grid.cells() / cells);
        let z = (f64::from(cell) + rng.uniform()) / f64::from(grid.cells());
        let y = rng.uniform() < z;
        // A score in [0, 1) and few events: neither can fail.
        let _ = sums.observe(Score::new(z).expect("in range"), y);
    }
    sums
}

fn main() {
    let grid = Grid::new(Axis::Linear, 12);
    let rules = Rules::default();
    let mut odds = Odds::new(grid, 0.05);
    best(
        "bets of 4096 cells, once for a grid and tolerance",
        5,
        || {
            odds = Odds::new(grid, 0.05);
        },
    );
    let mut rng = Rng::new(1);
    for cells in [4096, 400] {
        let pane = pane(&mut rng, grid, cells, 5);
        let (mut detector, mut watch) = (Detector::default(), StreamDetector::default());
        best(
            &format!("likelihoods, {cells} occupied cells"),
            2000,
            || {
                black_box(odds.likelihoods(black_box(&pane)));
            },
        );
        let likelihoods = odds.likelihoods(&pane);
        best(&format!("recursion, {cells} occupied cells"), 2000, || {
            black_box(detector.observe(black_box(&likelihoods), 1e-9, 0.0));
        });
        let all = best(
            &format!("whole step with confidence sequences, {cells} occupied cells"),
            2000,
            || {
                black_box(watch.observe(&odds, &rules, black_box(&pane), (0, 1)));
            },
        );
        println!(
            "  a thousand streams every 10 s: {:.2} % of a core",
            all * 1e3 / 1e7 * 100.0
        );
        let options = DetectorOptions::alone(rules.budget, 0.05);
        let mut watched = judge::Detector::new(Arc::new(odds.clone()), options, 1.0);
        let packed = Packed::new(&pane);
        best(
            &format!("  the same in the judge, pane unpacked, {cells} occupied cells"),
            2000,
            || {
                if let Ok(sums) = black_box(&packed).unpack(grid) {
                    black_box(watched.observe(&sums, (0, 1)));
                }
            },
        );
        best("  its report, when told", 2000, || {
            black_box(watched.report());
        });
    }
    println!(
        "  {} bytes a stream, {} for all",
        StreamDetector::default().bytes(),
        odds.bytes()
    );
}
