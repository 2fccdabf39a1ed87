//! The distances from calibration as text, below the table of an evaluation.

use std::fmt::Write;

use crate::report::text;
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
        .map_or(String::new(), |p| format!(", p = {}", text::p(p)));
    let upper = d
        .upper
        .map_or(String::new(), |u| format!(", upper distance {u:.5}"));
    let at_most = if d.interval_exact { "" } else { "at most " };
    let lower = d
        .lower
        .map(|l| format!("{:.5}{}{upper}", l.value, plus(l.error)));
    let interval = match d.interval {
        Some(i) => format!("{at_most}{i:.5}; surrogate {:.5}", d.surrogate),
        None => format!("at most {:.5}", d.surrogate),
    };
    let (low, high) = (d.distance.low, d.distance.high);
    let rows = [
        (
            "true distance",
            Some(format!("{low:.5} to {high:.5}, whatever the features")),
        ),
        ("lower distance", lower),
        (
            "smooth error",
            Some(format!("{:.5}{}", d.smooth, plus(d.smooth_error))),
        ),
        ("interval error", Some(interval)),
        ("Laplace kernel error", Some(format!("{:.5}{p}", k.error()))),
        ("smECE", d.smooth_ece.map(|s| format!("{:.5}", s.value))),
    ];
    let rows = rows
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
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
        let d = crate::stats::distance::of_scores(
            &[(0.3, true), (0.5, false)],
            crate::stats::distance::Extent::All,
        );
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
