//! The distances from calibration as text, below the table of an evaluation.

use std::fmt::Write;

use super::table;
use crate::stats::distance::Distances;

/// One line a measure, ending in a newline.
pub fn render(d: &Distances) -> String {
    let mut out = String::from("\ndistance from calibration\n");
    let plus = |error: f64| {
        if error > 0.0 {
            format!(" ± {error:.5} by cells")
        } else {
            String::new()
        }
    };
    let k = &d.laplace;
    let p = k
        .p_value
        .map_or(String::new(), |p| format!(", p = {}", table::p(p)));
    let upper = d
        .upper
        .map_or(String::new(), |u| format!(", upper distance {u:.5}"));
    let at_most = if d.interval_exact { "" } else { "at most " };
    let rows = [
        (
            "true distance",
            format!(
                "{:.5} to {:.5}, whatever the features",
                d.distance.low, d.distance.high
            ),
        ),
        (
            "lower distance",
            format!("{:.5}{}{upper}", d.lower.value, plus(d.lower.error)),
        ),
        (
            "smooth error",
            format!("{:.5}{}", d.smooth, plus(d.smooth_error)),
        ),
        (
            "interval error",
            format!("{at_most}{:.5}; surrogate {:.5}", d.interval, d.surrogate),
        ),
        ("Laplace kernel error", format!("{:.5}{p}", k.error())),
        ("smECE", format!("{:.5}", d.smooth_ece.value)),
    ];
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<22}{value}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measure_has_a_line_of_its_own() {
        let d = crate::stats::distance::of_scores(&[(0.3, true), (0.5, false)]);
        let text = d.map_or(String::new(), |d| render(&d));
        for name in [
            "true distance",
            "smooth error",
            "smECE",
            "upper distance 0.10000",
        ] {
            assert!(text.contains(name), "{text}");
        }
    }
}
