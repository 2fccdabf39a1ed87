//! Laws of statistics where outcomes vary more than independent ones.

use super::Options;
use crate::null::{normal_survival, normal_upper_quantile};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// φ and its degrees of freedom, where outcomes surely vary more than independent ones and that is
/// to be corrected.
pub(super) fn dispersion(o: &Options) -> Option<(f64, f64)> {
    o.overdispersion
        .filter(|_| o.correct_overdispersion)?
        .gated()
}

/// P(|N| ≥ z).
pub(super) fn two_sided(z: f64) -> f64 {
    2.0 * normal_survival(z.abs())
}

/// The two-sided p-value of Student's t with ν degrees of freedom where the normal law has `p`: the
/// variance was estimated.
pub(super) fn student(p: f64, nu: f64) -> f64 {
    let z = normal_upper_quantile(0.5 * p);
    match StudentsT::new(0.0, 1.0, nu) {
        Ok(t) if z.is_finite() => (2.0 * t.sf(z.max(0.0))).clamp(0.0, 1.0),
        _ => p,
    }
}

/// Upper tail of Q/d on F(d, ν), Q a quadratic statistic of d degrees.
pub(super) fn fisher(statistic: f64, degrees: f64, nu: f64) -> f64 {
    match FisherSnedecor::new(degrees, nu) {
        Ok(f) => f.sf((statistic / degrees).max(0.0)).clamp(0.0, 1.0),
        Err(_) => 1.0,
    }
}
