//! Lee, Huang, Hassani, Dobriban (2022): the list of its figures and tables, and power and rate of
//! adaptive tests. [`super::alternatives`] has the bumps.
//!
//! Our default procedure is compared with the paper's adaptive one, run through our estimators: all
//! B scales, critical values from redrawn samples, Bonferroni. At n = 5000 a second table compares
//! both with an independent program on 250 data sets.
//!
//! The rate: for each n, the m at which a test has power one half, found by bisection on log m. Its
//! error m^{−s} against n on logarithmic axes has slope −2s/(4s+1) in theory. This is for the
//! default test; [`super::detection`] has the paper's Figure 5, for a test with known smoothness.

use super::alternatives::{self, Curve, critical_values, line, rejects, statistics};
use super::{
    Cell, Effort, Job, Row, Table, convergence, critical, cross_fit, detection, diagram, networks,
};
use crate::stats::rng::Rng;

const S: f64 = 0.6;
const RHO: f64 = 100.0;

/// Power of the reference and of the joint form at n = 5000, 250 data sets per point.
const REFERENCE: [(f64, f64, f64); 7] = [
    (40.0, 0.988, 0.992),
    (60.0, 0.580, 0.704),
    (80.0, 0.316, 0.412),
    (100.0, 0.144, 0.208),
    (130.0, 0.064, 0.108),
    (160.0, 0.052, 0.088),
    (200.0, 0.056, 0.076),
];

/// The figures and tables, those of networks only if the data folder is given.
pub fn jobs() -> Vec<Job> {
    let mut jobs = vec![Job::of("T-Cal, Figure 2", |e| {
        vec![alternatives::debiasing(e)]
    })];
    for at in 0..3 {
        jobs.push(Job::of("T-Cal, Figures 3 and 4", move |e| {
            vec![alternatives::compared(e, at)]
        }));
    }
    jobs.push(Job::of("T-Cal, power", |e| vec![power(e)]));
    jobs.push(Job::of("T-Cal, rate", |e| vec![rate(e)]));
    jobs.push(Job::of("T-Cal, Figure 5", detection::run));
    jobs.push(Job::reading("T-Cal, Figure 6", diagram::run));
    for at in 0..2 {
        jobs.push(Job::of("T-Cal, Figure 7", move |e| {
            vec![alternatives::splitting(e, at)]
        }));
    }
    jobs.push(Job::of("T-Cal, Figure 8", convergence::run));
    jobs.push(Job::of("T-Cal, Figure 9", critical::run));
    for at in 0..2 {
        jobs.push(Job::of("T-Cal, Figure 10", move |e| cross_fit::run(e, at)));
    }
    jobs.push(Job::reading("T-Cal, Tables 1 to 6", networks::run));
    jobs
}

fn power(effort: &Effort) -> Table {
    let n = 5000;
    let sets = effort.sets(333, 40) as usize;
    let replicates = if effort.quick { 1000 } else { 3000 };
    let mut rng = Rng::new(effort.seed);
    let critical = critical_values(&mut rng, n, replicates);
    let mut rows = Vec::new();
    for (at, (m, reference, joint)) in REFERENCE.into_iter().enumerate() {
        effort.progress.of(at, REFERENCE.len());
        let mut hits = [0; 2];
        for _ in 0..sets {
            let data = Curve::new(m, S, RHO).sample(&mut rng, n);
            let paper = statistics(&data).iter().zip(&critical).any(|(t, c)| t > c);
            for (hit, rejected) in hits.iter_mut().zip([rejects(&data), paper]) {
                *hit += usize::from(rejected);
            }
        }
        // The error of the reference's 250 data sets.
        let noise = |p: f64| (p * (1.0 - p) / 250.0).sqrt();
        let beside = hits.into_iter().zip([joint, reference]);
        let cell = |(k, p)| Cell::share(k, sets).against(p, 0.0).drawn(noise(p));
        rows.push(Row::of(m, beside.map(cell).collect()));
    }
    Table {
        title: "T-Cal, adaptive tests: power against m bumps, n = 5000".to_owned(),
        note: format!(
            "{sets} data sets a point; beside: an independent program, 250 data sets; type II error is 1 less this"
        ),
        x: "m",
        columns: vec!["default", "paper's procedure"],
        rows,
        ..Table::default()
    }
}

fn rate(effort: &Effort) -> Table {
    let sizes: &[usize] = if effort.quick {
        &[1000, 2000, 4000, 8000]
    } else {
        &[1000, 2000, 4000, 8000, 16_000, 32_000]
    };
    let sets = effort.sets(400, 60) as usize;
    let mut rng = Rng::new(effort.seed ^ 5);
    let mut points = Vec::new();
    for (at, &n) in sizes.iter().enumerate() {
        effort.progress.of(at, sizes.len());
        let (mut low, mut high) = (4f64.ln(), 400f64.ln());
        for _ in 0..8 {
            let middle = 0.5 * (low + high);
            let hits = (0..sets)
                .filter(|_| rejects(&Curve::new(middle.exp(), S, RHO).sample(&mut rng, n)))
                .count();
            if 2 * hits > sets {
                low = middle
            } else {
                high = middle
            }
        }
        points.push(((n as f64).ln(), -S * 0.5 * (low + high)));
    }
    let (slope, error) = line(&points);
    let mut rows: Vec<Row> = (sizes.iter().zip(&points))
        .map(|(n, p)| Row::of(format!("error at n = {n}"), vec![Cell::plain(p.1.exp())]))
        .collect();
    let theory = -2.0 * S / (4.0 * S + 1.0);
    let slope = Cell::plain(slope).with_error(error).against(theory, 0.05);
    rows.push(Row::of("slope", vec![slope]));
    Table {
        title: "T-Cal, rate: error at power one half, default test".to_owned(),
        note: format!(
            "{sets} data sets a step of bisection; beside the slope: −2s/(4s+1), within 0.05; no figure of the paper"
        ),
        x: "",
        columns: vec!["m^(−s)"],
        rows,
        ..Table::default()
    }
}
