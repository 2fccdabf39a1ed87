//! T-Cal, Figure 5: the smallest error that a test with known smoothness finds, against n.
//!
//! For each n the figure draws log₁₀ of the ℓ2-ECE ε_n at which the type II error falls below 0.05,
//! over ten repetitions. The statistic is T_d at m\* cells, its critical value the upper 5 % of
//! null draws, which all repetitions share. ε_n is found by bisection on the logarithm of the
//! number of bumps. In theory its logarithm falls by 2s/(4s+1) per unit of ln n. The paper's
//! picture has no numbers to read.

use super::alternatives::{ALPHA, Curve, line};
use super::{Cell, Effort, Row, Table, draw};
use crate::stats::estimator::debiased;
use crate::stats::offline::slices;
use crate::stats::rng::Rng;

/// Smoothness and scale of each column.
const CURVES: [(f64, f64); 2] = [(0.3, 25.0), (0.5, 50.0)];

/// Type II error at which an error counts as found.
const MISSED: f64 = 0.05;

/// Steps of bisection, from m = 1 to m\*.
const STEPS: u32 = 8;

/// The figure.
pub fn run(effort: &Effort) -> Vec<Table> {
    let (sizes, repetitions, sets, nulls): (&[usize], u32, u32, usize) = match effort.quick {
        true => (&[1000, 2000, 5000], 3, effort.sets(100, 20), 200),
        false => (
            &[1000, 2000, 5000, 10_000, 20_000, 50_000],
            10,
            effort.sets(100, 20),
            3000,
        ),
    };
    let mut rng = Rng::new(effort.seed ^ 0x0500);
    let mut columns = Vec::new();
    for (s, rho) in CURVES {
        // For each repetition, the points (ln n, ln ε_n).
        let mut all = vec![Vec::new(); repetitions as usize];
        for (at, &n) in sizes.iter().enumerate() {
            effort
                .progress
                .of(columns.len() * sizes.len() + at, CURVES.len() * sizes.len());
            let m_star = slices(n, s, 2);
            let mut statistic = |m: f64| {
                let curve = Curve::new(m, s, rho);
                let events = (0..n).map(|_| {
                    let z = rng.uniform();
                    (z, rng.uniform() < curve.truth(z))
                });
                debiased(&draw::level(events, m_star))
            };
            let mut null: Vec<f64> = (0..nulls).map(|_| statistic(0.0)).collect();
            null.sort_by(|a, b| b.total_cmp(a));
            let critical = null[(ALPHA * nulls as f64) as usize - 1];
            for points in &mut all {
                let (mut low, mut high) = (0.0, (m_star as f64).ln());
                for _ in 0..STEPS {
                    let middle: f64 = 0.5 * (low + high);
                    let missed = (0..sets)
                        .filter(|_| statistic(middle.exp()) < critical)
                        .count();
                    if (missed as f64) < MISSED * f64::from(sets) {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                let error = 0.0098 * rho * (-s * 0.5 * (low + high)).exp();
                points.push(((n as f64).ln(), error.ln()));
            }
        }
        let log = |at: usize| -> Vec<f64> {
            let ten = std::f64::consts::LN_10;
            all.iter().map(|points| points[at].1 / ten).collect()
        };
        let slopes: Vec<f64> = all.iter().map(|points| line(points).0).collect();
        let mut cells: Vec<Cell> = (0..sizes.len()).map(|at| Cell::mean(&log(at))).collect();
        cells.push(Cell::mean(&slopes).against(-2.0 * s / (4.0 * s + 1.0), 0.05));
        columns.push(cells);
    }
    let labels = sizes.iter().map(|n| format!("log₁₀ of the error, n = {n}"));
    let labels = labels.chain(["slope of ln error in ln n".to_owned()]);
    let row = |(i, label): (usize, String)| Row::of(label, columns.iter().map(|c| c[i]).collect());
    vec![Table {
        title: "T-Cal, Figure 5: errors found with type II error below 0.05, smoothness known"
            .to_owned(),
        note: format!(
            "means over {repetitions} repetitions of a bisection with {sets} data sets a step, critical values of {nulls} draws; \
             beside the slope:\n−2s/(4s+1), within 0.05; the paper's picture has no numbers to read"
        ),
        x: "",
        columns: vec!["s = 0.3, ρ = 25", "s = 0.5, ρ = 50"],
        rows: labels.enumerate().map(row).collect(),
        ..Table::default()
    }]
}
