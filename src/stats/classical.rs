//! The classical measures: calibration in the large, Brier score, Spiegelhalter's and Cox's tests,
//! binned ECE.
//!
//! Each comes from additive sums, [`Totals`], and the cells of a [`Level`].

pub use super::totals::Totals;

/// The recalibration that fits best.
pub use super::recalibration::logistic::Logistic as Recalibration;

use super::fixed::CLIP;
use super::level::{Level, LevelCell, WeightMoments};
use super::recalibration::point::Point;
use statrs::distribution::{ContinuousCDF, Normal};

/// Calibration in the large: the mean residual.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InTheLarge {
    /// (1/n) ΣU, in [−1, 1]; positive: scores are too low.
    pub mean_residual: f64,
    /// ΣU/√ΣV; `None` when every score is 0 or 1.
    pub z: Option<f64>,
    /// Two-sided p-value of `z`.
    pub p_value: Option<f64>,
}

/// The mean residual and its standard score under the null.
pub fn in_the_large(t: &Totals) -> InTheLarge {
    let z = (t.v > 0.0).then(|| t.u / t.v.sqrt());
    InTheLarge {
        mean_residual: t.u / t.n,
        z,
        p_value: z.map(two_sided),
    }
}

/// Brier score and Murphy's decomposition (J. Appl. Meteor. 12, 1973) at the level of the diagram.
///
/// score = reliability − resolution + uncertainty, up to the spread of scores within cells.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Brier {
    /// (1/n) Σ(y−z)².
    pub score: f64,
    /// (1/n) Σ_cells N (mean score − event rate)²; small is good.
    pub reliability: f64,
    /// (1/n) Σ_cells N (event rate − overall rate)²; large is good.
    pub resolution: f64,
    /// Overall rate·(1 − overall rate).
    pub uncertainty: f64,
}

/// The Brier score, decomposed at `level`.
pub fn brier(t: &Totals, level: &Level) -> Brier {
    let rate = t.y / t.n;
    let (mut reliability, mut resolution) = (0.0, 0.0);
    for c in level.occupied.iter() {
        let off = c.y / c.n - rate;
        reliability += c.u * c.u / c.n;
        resolution += c.n * off * off;
    }
    Brier {
        score: t.u2 / t.n,
        reliability: reliability / t.n,
        resolution: resolution / t.n,
        uncertainty: rate * (1.0 - rate),
    }
}

/// Spiegelhalter's test, *Probabilistic prediction in patient management and clinical trials*
/// (1986).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Spiegelhalter {
    /// Standard normal under the null.
    pub z: f64,
    /// Two-sided p-value; `None` where it rests on too few outcomes.
    pub p_value: Option<f64>,
}

/// z = Σ(y−z)(1−2z)/√Σ(1−2z)²V (the first sum times w, the second times w²); `None` where every
/// score is 0, ½ or 1.
pub fn spiegelhalter(t: &Totals) -> Option<Spiegelhalter> {
    let variance = t.v - 4.0 * t.v2;
    // Scores of ½ leave a rounding remainder; it is no variance.
    if variance <= 1e-9 * t.v || t.v <= 0.0 {
        return None;
    }
    let z = (t.u2 - t.v_mean) / variance.sqrt();
    Some(Spiegelhalter {
        z,
        p_value: Some(two_sided(z)),
    })
}

/// Score test of intercept 0 and slope 1 in Cox's recalibration model, Biometrika 45 (1958).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cox {
    /// χ² with 2 degrees of freedom under the null, with fewer where a direction rests on too few
    /// outcomes.
    pub score: f64,
    /// Upper-tail p-value; `None` where no direction rests on enough outcomes.
    pub p_value: Option<f64>,
    /// The logistic recalibration that fits best, where there is one.
    pub fit: Option<Recalibration>,
}

/// Least share of ΣVℓ² that the spread of the log-odds must have. Below it the two parameters
/// cannot be separated: log-odds are kept to 2⁻³², so constant scores leave about 10⁻⁹ by rounding.
const SPREAD_MIN: f64 = 1e-7;

/// The score test, with the fit at `level`; `None` where the scores do not vary enough to separate
/// slope and intercept.
pub fn cox(t: &Totals, level: &Level) -> Option<Cox> {
    let (a, b, d) = (t.v_clipped, t.v_logit, t.v_logit2);
    let det = a * d - b * b;
    if det <= SPREAD_MIN * a * d || d <= 100.0 * CLIP * t.w2 {
        return None;
    }
    let (g0, g1) = (t.u_clipped, t.u_logit);
    let score = (g0 * (d * g0 - b * g1) + g1 * (a * g1 - b * g0)) / det;
    Some(Cox {
        score,
        // Upper tail of χ² with 2 degrees.
        p_value: Some((-score / 2.0).exp()),
        fit: Recalibration::fit(&Point::of_cells(level)).ok(),
    })
}

/// ℓ1-ECE at a level: (1/n) Σ|ΣU|. Biased upwards by noise, more so with more cells.
pub fn ece_l1(level: &Level, n: f64) -> f64 {
    level.occupied.iter().map(|c| c.u.abs()).sum::<f64>() / n
}

/// Maximum calibration error, with the cell it comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mce {
    /// |mean residual| of the cell.
    pub value: f64,
    /// Number of events of that cell.
    pub n: u64,
}

/// Fewest events of a cell that counts for the maximum: a rate from fewer than ten outcomes is
/// mostly noise.
pub const MCE_COUNT_MIN: f64 = 10.0;

/// Largest |mean residual| over the cells with at least [`MCE_COUNT_MIN`] events (effective events
/// if they are weighted); `None` if no cell has so many.
pub fn mce(level: &Level) -> Option<Mce> {
    let effective = |c: &LevelCell, w: WeightMoments| c.n * (c.n / w.w2);
    let fit = (level.squares()).filter(|(c, w)| effective(c, *w) >= MCE_COUNT_MIN);
    fit.map(|(c, _)| Mce {
        value: (c.u / c.n).abs(),
        n: c.count as u64,
    })
    .max_by(|a, b| a.value.total_cmp(&b.value))
}

fn two_sided(z: f64) -> f64 {
    2.0 * Normal::standard().sf(z.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(sample: &[(f64, bool)]) -> Totals {
        Totals::from_scores(sample, &Level::from_scores(sample, 16))
    }

    #[test]
    fn two_points_give_what_is_had_by_hand() {
        let t = totals(&[(0.25, false), (0.75, false)]);
        let large = in_the_large(&t);
        assert!((large.mean_residual + 0.5).abs() < 1e-12);
        assert!(
            large
                .z
                .is_some_and(|z| (z + 1.0 / 0.375f64.sqrt()).abs() < 1e-12)
        );
        // (−¼·½ + −¾·−½)/√(2·¼·3/16)
        let s = spiegelhalter(&t).map(|s| s.z);
        assert!(s.is_some_and(|z| (z - 0.25 / 0.09375f64.sqrt()).abs() < 1e-12));
    }

    #[test]
    fn what_cannot_be_said_is_none_and_not_nan() {
        let certain = totals(&[(0.0, false), (1.0, true)]);
        assert_eq!(in_the_large(&certain).z, None);
        assert_eq!(spiegelhalter(&certain), None);
        assert_eq!(spiegelhalter(&totals(&[(0.5, true), (0.5, false)])), None);
        let constant = [(0.3, true), (0.3, false)];
        let level = Level::from_scores(&constant, 16);
        assert_eq!(cox(&totals(&constant), &level), None);
    }

    #[test]
    fn murphys_decomposition_adds_up_when_cells_hold_one_score_each() {
        let sample: Vec<(f64, bool)> = (0..60)
            .map(|i| (f64::from(i % 4) * 0.25 + 0.1, i % 7 < 3))
            .collect();
        let level = Level::from_scores(&sample, 4);
        let b = brier(&Totals::from_scores(&sample, &level), &level);
        assert!((b.score - (b.reliability - b.resolution + b.uncertainty)).abs() < 1e-12);
    }
}
