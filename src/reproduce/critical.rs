//! T-Cal, Figure 9: the type I error of critical values drawn from one sample.
//!
//! Scores are uniform and calibrated, the statistic is T_d at m\* cells with s = 0.6 (the paper
//! does not name s). A repetition draws one sample, then 19 redraws of it: (a) scores with
//! replacement, then outcomes; (b) outcomes only. The critical value is the largest of the 19. Its
//! type I error is the share of fresh data sets at or above it. The paper says that both are near
//! 1/20 and only (b) is exact.
//!
//! Fresh data sets are drawn once for each n and shared by all repetitions; their error is part of
//! the standard error.

use super::{Cell, Effort, Row, Table, draw};
use crate::stats::estimator::debiased;
use crate::stats::offline::slices;
use crate::stats::rng::Rng;

const S: f64 = 0.6;
const REDRAWS: usize = 19;
const LEVEL: f64 = 0.05;

/// The figure.
pub fn run(effort: &Effort) -> Vec<Table> {
    let sizes: &[usize] = if effort.quick {
        &[100, 1000]
    } else {
        &[100, 200, 500, 1000, 2000, 5000]
    };
    let repetitions = effort.sets(1000, 40) as usize;
    let fresh = if effort.quick { 1000 } else { 10_000 };
    let mut rng = Rng::new(effort.seed ^ 0x0900);
    let mut rows = Vec::new();
    for (at, &n) in sizes.iter().enumerate() {
        effort.progress.of(at, sizes.len());
        let m = slices(n, S, 2);
        let calibrated = |rng: &mut Rng, z: f64| (z, rng.uniform() < z);
        let null = |rng: &mut Rng| {
            let events = (0..n).map(|_| {
                let z = rng.uniform();
                calibrated(rng, z)
            });
            debiased(&draw::level(events, m))
        };
        let mut sorted: Vec<f64> = (0..fresh).map(|_| null(&mut rng)).collect();
        sorted.sort_by(f64::total_cmp);
        let error = |critical: f64| {
            let below = sorted.partition_point(|t| *t < critical);
            (fresh - below) as f64 / fresh as f64
        };
        let (mut full, mut outcomes) = (Vec::new(), Vec::new());
        for _ in 0..repetitions {
            let scores: Vec<f64> = (0..n).map(|_| rng.uniform()).collect();
            let mut largest = |with_scores: bool| {
                let mut one = |_| {
                    let event = |i: usize| {
                        let at = match with_scores {
                            true => ((rng.uniform() * n as f64) as usize).min(n - 1),
                            false => i,
                        };
                        calibrated(&mut rng, scores[at])
                    };
                    debiased(&draw::level((0..n).map(event), m))
                };
                (0..REDRAWS).map(&mut one).fold(f64::MIN, f64::max)
            };
            full.push(error(largest(true)));
            outcomes.push(error(largest(false)));
        }
        let own = LEVEL * (1.0 - LEVEL) / fresh as f64;
        let cell = |errors: &[f64]| {
            let mean = Cell::mean(errors);
            let error = (mean.error * mean.error + own).sqrt();
            mean.with_error(error).against(LEVEL, 0.0)
        };
        rows.push(Row::of(n, vec![cell(&full), cell(&outcomes)]));
    }
    vec![Table {
        title: "T-Cal, Figure 9: type I error of critical values from 19 redraws".to_owned(),
        note: format!(
            "{repetitions} repetitions a point, each with 19 redraws, and {fresh} fresh data sets; T_d at m* cells, s = {S}; \
             beside: 1/20,\nwhich only redrawn outcomes promise; the paper does not name its x-axis"
        ),
        x: "n",
        columns: vec!["scores and outcomes redrawn", "outcomes redrawn"],
        rows,
        ..Table::default()
    }]
}
