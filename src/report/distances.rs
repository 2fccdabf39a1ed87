//! The distances from calibration: the key `distances` of an evaluation's JSON, in which measures
//! not requested are null, and the lines below its text.
//!
//! Every measure is on the scale of scores. `error` bounds the difference from the value of the raw
//! scores if cells stand for them (0 otherwise). `low` and `high` are proven bounds. `sampling_95`
//! is how far n events may be from their law with 95 % certainty on each side, whatever the law.

use super::text::p;
use crate::stats::distance::{Distances, sandwich};
use serde_json::{Value, json};
use std::fmt::Write;

/// Certainty of the sampling bars.
const ALPHA: f64 = 0.05;

/// All distances of a sample of `n` events.
pub fn json(d: &Distances, n: u64) -> Value {
    let sampling = sandwich::sampling(n as f64, ALPHA);
    let k = &d.laplace;
    json!({
        "smooth": {"value": d.smooth, "error": d.smooth_error, "sampling_95": sampling.smooth},
        "lower": d.lower.map(|l| json!({
            "value": l.value,
            "low": l.low,
            "high": l.high,
            "error": l.error,
            "sampling_95": sampling.lower,
        })),
        "interval": d.interval.map(|i| json!({"value": i, "exact": d.interval_exact})),
        "surrogate_interval": {"value": d.surrogate},
        "upper": d.upper,
        "true_distance": d.distance,
        "laplace": {
            "value": k.error(),
            "squared": k.squared,
            "squared_error": k.squared_error,
            "unbiased_squared": k.unbiased,
            "null_mean_squared": k.null_mean,
            "null_sd_squared": k.null_variance.sqrt(),
            "p_value": k.p_value,
            "p_value_bound": k.p_value_bound,
            "sampling_95": sampling.laplace,
        },
        "smooth_ece": d.smooth_ece,
    })
}

/// The lines below the text of an evaluation: one per measure, each ending in a newline.
pub fn text(d: &Distances) -> String {
    let mut out = String::from("\ndistance from calibration\n");
    let plus = |error: f64| {
        if error > 0.0 {
            format!(" ± {error:.5} by cells")
        } else {
            String::new()
        }
    };
    let k = &d.laplace;
    let significance = k
        .p_value
        .map_or(String::new(), |x| format!(", p = {}", p(x)));
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
        (
            "Laplace kernel error",
            Some(format!("{:.5}{significance}", k.error())),
        ),
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
    use crate::stats::distance::{Extent, of_scores};

    #[test]
    fn every_measure_has_its_value_and_what_is_undefined_is_null() {
        let d = of_scores(&[(0.3, true), (0.5, false)], Extent::All);
        let v = d.map_or(Value::Null, |d| json(&d, 2));
        for key in [
            "smooth",
            "lower",
            "interval",
            "surrogate_interval",
            "laplace",
            "smooth_ece",
        ] {
            assert!(v[key]["value"].is_number(), "{key}: {v}");
        }
        assert!(v["upper"].is_number() && v["interval"]["exact"] == true);
        let d = of_scores(&[(1.0, true)], Extent::Cheap);
        let v = d.map_or(Value::Null, |d| json(&d, 1));
        assert!(v["laplace"]["p_value"].is_null() && v["laplace"]["unbiased_squared"].is_null());
        assert!(v["lower"].is_null() && v["smooth"]["value"] == 0.0);
    }

    #[test]
    fn each_measure_has_a_line_of_its_own() {
        let d = of_scores(&[(0.3, true), (0.5, false)], Extent::All);
        let text = d.map_or(String::new(), |d| super::text(&d));
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
