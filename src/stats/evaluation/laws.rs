//! Laws of statistics where outcomes vary more than independent ones.

use super::Options;
use crate::null::{normal_survival, normal_upper_quantile};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// φ and its degrees of freedom, if outcomes surely vary more than independent ones and the options
/// correct for this; else `None`.
pub(crate) fn dispersion(o: &Options) -> Option<(f64, f64)> {
    o.overdispersion
        .filter(|_| o.correct_overdispersion)?
        .gated()
}

/// P(|N| ≥ z).
pub(super) fn two_sided(z: f64) -> f64 {
    2.0 * normal_survival(z.abs())
}

/// P(|T| ≥ z), T of Student's law with ν degrees of freedom: the variance was estimated.
pub(super) fn student(z: f64, nu: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, nu) {
        Ok(t) => (2.0 * t.sf(z.abs())).clamp(0.0, 1.0),
        _ => two_sided(z),
    }
}

/// [`student`] at the z where the normal law has the two-sided p-value `p`.
pub(super) fn student_of(p: f64, nu: f64) -> f64 {
    /// A smaller p-value has no normal quantile; the t law is far from such p-values.
    const LEAST: f64 = 1e-300;
    student(normal_upper_quantile(0.5 * p.max(LEAST)).max(0.0), nu)
}

/// Upper tail of Q/d on F(d, ν), Q a quadratic statistic of d degrees.
pub(super) fn fisher(statistic: f64, degrees: f64, nu: f64) -> f64 {
    match FisherSnedecor::new(degrees, nu) {
        Ok(f) => f.sf((statistic / degrees).max(0.0)).clamp(0.0, 1.0),
        Err(_) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_law_has_its_tail_where_the_normal_one_has_none() {
        // One degree is Cauchy's law: P(|T| ≥ z) = 1 − 2·atan(z)/π.
        for z in [0.0f64, 1.0, 39.0, 1e4] {
            let cauchy = 2.0 * (1.0 / z).atan() / std::f64::consts::PI;
            assert!((student(z, 1.0) - cauchy).abs() <= 1e-9 * cauchy, "{z}");
        }
        assert_eq!(two_sided(39.0), 0.0);
        assert!((student(39.0, 1.0) - 0.016).abs() < 0.001);
        assert!((student_of(0.05, 3.0) - student(1.959_964, 3.0)).abs() < 1e-6);
        let least = student_of(0.0, 1.0);
        assert!((0.01..0.02).contains(&least), "{least}");
    }
}
