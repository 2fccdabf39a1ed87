//! The distances from calibration as JSON: the key `distances` of an evaluation. Measures that were
//! not wanted are null.
//!
//! Every measure is on the scale of scores. `error` is how far a value may be off that of the raw
//! scores because cells stood for them (0 where they did not); `low` and `high` are proved ends;
//! `sampling_95` is how far n events may be from their law with 95 % certainty on each side,
//! whatever the law.

use crate::stats::distance::{Distances, sandwich};
use serde_json::{Value, json};

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
        "true_distance": {"low": d.distance.low, "high": d.distance.high},
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
        "smooth_ece": d.smooth_ece.map(|s| json!({"value": s.value, "error": s.error})),
    })
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
}
