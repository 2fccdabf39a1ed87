//! T-Cal, Figure 8: how fast the debiased estimator finds a known error.
//!
//! Scores are uniform, all outcomes positive, so the squared ℓ2-ECE is E(1 − Z)² = 1/3. The figure
//! draws |T_d − 1/3| at m\* = ⌊n^{2/(4s+1)}⌋ cells against n on logarithmic axes, with a line for
//! each smoothness s and a dashed slope of −½. Lines with s = 0.4 and 0.6 miss that slope: a cell
//! of N events makes T_d low by the factor 1 − 1/N, so the bias is about m\*/(3n), of order
//! n^{(1−4s)/(4s+1)}. That is above n^{−½} if s < ¾.

use super::alternatives::line;
use super::{Cell, Effort, Row, Table, draw};
use crate::stats::estimator::debiased;
use crate::stats::offline::slices;
use crate::stats::rng::Rng;

const SMOOTHNESS: [f64; 6] = [0.4, 0.6, 0.8, 1.0, 1.5, 2.0];
const COLUMNS: [&str; 7] = [
    "s = 0.4",
    "s = 0.6",
    "s = 0.8",
    "s = 1",
    "s = 1.5",
    "s = 2",
    "slope −½",
];

/// The figure, and a table of its slopes.
pub fn run(effort: &Effort) -> Vec<Table> {
    let sizes: &[usize] = if effort.quick {
        &[100, 1000, 10_000]
    } else {
        &[100, 316, 1000, 3162, 10_000, 31_623, 100_000]
    };
    let sets = effort.sets(200, 20);
    let mut rng = Rng::new(effort.seed ^ 0x0800);
    let mut rows = Vec::new();
    for &n in sizes {
        let mut off = |s: &f64| {
            let m = slices(n, *s, 2);
            let one = |_| {
                let events = (0..n).map(|_| (rng.uniform(), true));
                (debiased(&draw::level(events, m)) - 1.0 / 3.0).abs()
            };
            Cell::mean(&(0..sets).map(one).collect::<Vec<f64>>())
        };
        let slope = Cell::plain(0.2 / (n as f64).sqrt());
        let cells = SMOOTHNESS.iter().map(&mut off).chain([slope]);
        rows.push(Row::of(n, cells.collect()));
    }
    let mut slopes = Vec::new();
    for (at, s) in SMOOTHNESS.into_iter().enumerate() {
        let point = |(n, row): (&usize, &Row)| ((*n as f64).ln(), row.cells[at].ours.ln());
        let points: Vec<(f64, f64)> = sizes.iter().zip(&rows).map(point).collect();
        let (slope, scatter) = line(&points);
        let error = scatter.max(drawn_error(&points, rows.iter().map(|r| r.cells[at])));
        let theory = ((1.0 - 4.0 * s) / (4.0 * s + 1.0)).max(-0.5);
        let cell = Cell::plain(slope).with_error(error).against(theory, 0.05);
        slopes.push(Row::of(format!("s = {s}"), vec![cell]));
    }
    vec![
        Table {
            title: "T-Cal, Figure 8: distance of the debiased estimator from the true error"
                .to_owned(),
            note: format!(
                "mean of |T_d − 1/3| over {sets} data sets a point, uniform scores, all outcomes positive, m* cells; the \
                 paper's\nfigure has no numbers to read"
            ),
            x: "n",
            columns: COLUMNS.to_vec(),
            rows,
            logarithmic: true,
            ..Table::default()
        },
        Table {
            title: "T-Cal, Figure 8: slopes of its lines".to_owned(),
            note: format!(
                "least squares on logarithms of the means over {sets} data sets a point; beside: −½, or (1−4s)/(4s+1) where the \
                 bias of cells\nwith few events decides, within 0.05; the paper says that s = 0.4 and 0.6 miss −½"
            ),
            x: "smoothness",
            columns: vec!["slope"],
            rows: slopes,
            ..Table::default()
        },
    ]
}

/// Standard error of a slope from the errors of its points, whose logarithms have relative errors.
fn drawn_error(points: &[(f64, f64)], cells: impl Iterator<Item = Cell>) -> f64 {
    let mean = points.iter().map(|p| p.0).sum::<f64>() / points.len() as f64;
    let spread: f64 = points.iter().map(|p| (p.0 - mean).powi(2)).sum();
    let one = |(p, c): (&(f64, f64), Cell)| ((p.0 - mean) * c.error / c.ours).powi(2);
    points.iter().zip(cells).map(one).sum::<f64>().sqrt() / spread
}
