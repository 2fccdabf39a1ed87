//! A map as a small table of scores and recalibrated scores, for a scorer that can interpolate.
//!
//! ```text
//! # stream=clicks/3//binary window=5m                          (where it is of a stream)
//! # method=logistic intercept=-0.30211 slope=0.48817
//! score,recalibrated
//! 0,0.0000012
//! …
//! ```
//!
//! Rows are the edges of 256 equal cells; where logarithms matter, near 0 and 1, steps of a quarter
//! in log-odds between 2⁻³² and its mirror; and the corners of an isotonic map. So a straight line
//! between rows is exact for an isotonic map and within 10⁻³ for the others (a test measures it).
//! For exact values of the others use the parameters in the first line; they are written so that
//! they read back to the bit.

use super::map::Map;
use crate::fixed::CLIP;
use std::fmt::Write;

/// Equal cells whose edges are rows.
const CELLS: u32 = 256;

/// Rows a unit of log-odds.
const STEPS: i32 = 4;

/// Log-odds up to which there are such rows: those of 2⁻³² are 22.2.
const REACH: i32 = 22;

/// The map as text.
pub fn csv(map: &Map) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# {}", parameters(map));
    out.push_str("score,recalibrated\n");
    for z in scores(map) {
        let _ = writeln!(out, "{z},{}", map.rate(z));
    }
    out
}

/// Family and parameters; an isotonic map has its rows instead.
fn parameters(map: &Map) -> String {
    match map {
        Map::Logistic(m) => format!(
            "method=logistic intercept={} slope={} law: logit(recalibrated) = intercept + slope*logit(score)",
            m.intercept, m.slope
        ),
        Map::Beta(m) => format!(
            "method=beta a={} b={} c={} law: logit(recalibrated) = a*ln(score) - b*ln(1-score) + c",
            m.a, m.b, m.c
        ),
        Map::Isotonic(m) => format!(
            "method=isotonic blocks={} law: straight between rows",
            m.blocks.len()
        ),
    }
}

/// The scores of the rows, ascending.
pub fn scores(map: &Map) -> Vec<f64> {
    let edges = (0..=CELLS).map(|i| f64::from(i) / f64::from(CELLS));
    let odds = (-REACH * STEPS..=REACH * STEPS).map(|i| {
        let x = f64::from(i) / f64::from(STEPS);
        1.0 / (1.0 + (-x).exp())
    });
    let mut all: Vec<f64> = edges.chain(odds).chain([CLIP, 1.0 - CLIP]).collect();
    if let Map::Isotonic(m) = map {
        all.extend(m.corners());
    }
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::super::{Method, Point, beta::Beta, logistic::Logistic};
    use super::*;

    /// What a scorer makes of the table.
    fn interpolated(rows: &[(f64, f64)], z: f64) -> f64 {
        let at = rows.partition_point(|r| r.0 < z).clamp(1, rows.len() - 1);
        let ((x0, y0), (x1, y1)) = (rows[at - 1], rows[at]);
        y0 + (y1 - y0) * (z - x0) / (x1 - x0)
    }

    fn rows(text: &str) -> Vec<(f64, f64)> {
        let lines = text.lines().skip(2);
        let row = |l: &str| {
            let (z, q) = l.split_once(',').unwrap();
            (z.parse().unwrap(), q.parse().unwrap())
        };
        lines.map(row).collect()
    }

    fn probes() -> impl Iterator<Item = f64> {
        let even = (0..=10_000).map(|i| f64::from(i) / 10_000.0);
        let odds = (-200..=200).map(|i| 1.0 / (1.0 + (-f64::from(i) / 10.0).exp()));
        even.chain(odds)
    }

    #[test]
    fn straight_lines_between_rows_are_near_the_map() {
        let maps = [
            Map::Logistic(Logistic {
                intercept: -0.7,
                slope: 0.3,
            }),
            Map::Logistic(Logistic {
                intercept: 2.0,
                slope: 2.5,
            }),
            Map::Beta(Beta {
                a: 0.3,
                b: 1.9,
                c: 0.4,
            }),
        ];
        for map in maps {
            let rows = rows(&csv(&map));
            let off = probes().map(|z| (interpolated(&rows, z) - map.rate(z)).abs());
            let off = off.fold(0.0, f64::max);
            println!("{map:?}: {off:.1e}");
            assert!(off < 1e-3, "{map:?} {off}");
        }
    }

    #[test]
    fn the_table_of_an_isotonic_map_is_the_map() {
        let point = |i: i32| Point {
            z: f64::from(i) / 40.0,
            n: 50.0,
            y: f64::from(i * i % 37),
        };
        let points: Vec<Point> = (0..40).map(point).collect();
        let map = Map::fit(Method::Isotonic, &points).unwrap();
        let rows = rows(&csv(&map));
        for z in probes() {
            assert!((interpolated(&rows, z) - map.rate(z)).abs() < 1e-12, "{z}");
        }
    }
}
