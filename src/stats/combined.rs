//! The decision: several tests combined into one, each good at another kind of error.
//!
//! | part | what it sees |
//! |---|---|
//! | coarse T-Cal, 4 to 32 cells | parts of the scale that are off |
//! | fine T-Cal, 64 cells and more | local and oscillating errors |
//! | smooth, score test of 1, ln z, −ln(1−z) | shift, temperature, label noise |
//! | cumulative, Kolmogorov–Smirnov | scores that are off the same way over long stretches |
//! | values, Σ U²/V over distinct scores | rules and tables whose rates err one by one |
//!
//! T-Cal alone is built for errors at an unknown scale and wins there; production models mostly
//! drift smoothly, where a score test needs a fraction of its events. The parts join by Cauchy's
//! combination (Liu, Xie, JASA 115, 2020): with p-values p_i, k of them,
//!
//! ```text
//! t = Σ w_i tan(π(½ − p_i)),   Σ w_i = 1,     p = ½ − arctan(t)/π
//! ```
//!
//! To first order this tail holds under any dependence of the parts: the sum of dependent Cauchy
//! variables has the tail of a Cauchy variable. p-values are first cut at 0.99. A law with atoms
//! gives a p-value of 1 with positive probability; tan(−π/2) is −∞, so one part without evidence
//! would cancel the evidence of the others.
//!
//! The smooth part weighs 1.75 times the others: label noise, the commonest fault that no other
//! part sees, gains three points of power by it. The fine part weighs 1.5 times: with equal weights
//! the decision loses up to a point of power to the paper's procedure on that paper's alternatives
//! (T-Cal (10), n = 5000, 40 to 60 periods); with this weight it gains two to four. One bump and
//! four bumps lose one point.
//!
//! The 2-cell level of T-Cal is left out, because the smooth and the cumulative part find the same
//! errors. The values part is included if a window holds at most [`super::sums::DISTINCT_MAX`]
//! distinct scores; it joins the others and replaces none.
//!
//! **Clustered events** ([`super::clusters`]). Each part has the larger of two p-values: that for
//! independent outcomes, and that of the sign flips of clusters. The first holds where positives
//! are few, the second whatever the dependence within clusters. The fine part then has 64 cells,
//! the finest level that is kept by cluster: sums by cluster and finest cell would be the events
//! themselves. The values part is left out.
//!
//! Always: the p-value is in (0, 1). It is 0 only below 10⁻³⁰⁸, or where the values part or a whole
//! cell shows that the outcomes are impossible under the scores. (If an event of score 0 happens
//! beside other scores of its cell, it counts as they do.) Same input, same bits. Levels and power
//! are measured in `tests/stats`.

use super::clusters::ClusterTests;
use super::conditional::Null;
use std::f64::consts::PI;

/// A part of the combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Part {
    /// T-Cal over levels 2 to 5.
    Coarse,
    /// T-Cal over levels 6 and up.
    Fine,
    /// The score test of the smooth directions.
    Smooth,
    /// Kolmogorov–Smirnov of the cumulative residuals.
    Cumulative,
    /// The test over distinct scores.
    Values,
}

impl Part {
    /// Its name, as in labels and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Coarse => "coarse",
            Part::Fine => "fine",
            Part::Smooth => "smooth",
            Part::Cumulative => "cumulative",
            Part::Values => "values",
        }
    }

    /// Its weight in the combination, relative to the others'.
    pub(crate) fn weight(self) -> f64 {
        match self {
            Part::Smooth => 1.75,
            Part::Fine => 1.5,
            Part::Coarse | Part::Cumulative | Part::Values => 1.0,
        }
    }

    /// What it sees, in words.
    pub fn words(self) -> &'static str {
        match self {
            Part::Coarse => "whole parts of the scale are off (T-Cal, 4 to 32 cells)",
            Part::Fine => "scores are off in narrow places (T-Cal, 64 cells and more)",
            Part::Smooth => "a smooth error: shift, slope, or noise at the ends (score test)",
            Part::Cumulative => {
                "scores are off the same way over a long stretch (Kolmogorov–Smirnov)"
            }
            Part::Values => "single score values have other rates (χ² over distinct scores)",
        }
    }
}

/// The p-value of one part.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PartResult {
    /// The part.
    pub part: Part,
    /// Its own p-value.
    pub p_value: f64,
}

/// The combined test.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Combined {
    /// Calibration is rejected at α.
    pub reject: bool,
    /// p-value of the combination; 1 where no part could be computed.
    pub p_value: f64,
    /// The parts that took part.
    pub parts: Vec<PartResult>,
    /// The part with the smallest p-value, where the combination rejects.
    pub decisive: Option<Part>,
    /// How often outcomes were drawn from the scores, because formulas do not hold for so few
    /// positives or negatives; `None` where formulas hold.
    pub replicates: Option<u32>,
}

impl Combined {
    /// The p-value; `None` where no part could be computed.
    pub fn tested(&self) -> Option<f64> {
        (!self.parts.is_empty()).then_some(self.p_value)
    }
}

/// p-values above this are cut to it before they are combined.
pub const CUT: f64 = 0.99;

/// Position of the first coarse level among levels of 2, 4, 8, … cells.
const COARSE: usize = 1;

/// Position of the first fine level.
const FINE: usize = 5;

/// The combination at level α. `levels` is the number of levels of the null; `fine` says whether
/// the fine levels take part (of clustered events they always do); `others` are the parts that are
/// not T-Cal. For clustered events each T-Cal part has the larger of two p-values, that for
/// independent outcomes and that of the sign flips. With `Some(None)`, too few clusters for flips,
/// no T-Cal part takes part.
pub(crate) fn combined(
    null: &Null,
    levels: usize,
    fine: bool,
    others: &[PartResult],
    alpha: f64,
    clusters: Option<Option<&ClusterTests>>,
) -> Combined {
    let mut parts = Vec::new();
    let mut add = |part, p_value: Option<f64>| {
        parts.extend(p_value.map(|p_value| PartResult { part, p_value }));
    };
    let coarse = null.joint_p_value(COARSE.min(levels)..FINE.min(levels));
    match clusters {
        None => {
            add(Part::Coarse, coarse);
            if fine {
                add(Part::Fine, null.joint_p_value(FINE.min(levels)..levels));
            }
        }
        Some(None) => {}
        // Both tests at the levels that are kept by cluster, whose finest has 64 cells.
        Some(Some(tests)) => {
            let kept = null.joint_p_value(FINE.min(levels)..(FINE + 1).min(levels));
            add(Part::Coarse, coarse.map(|p| p.max(tests.coarse)));
            add(Part::Fine, kept.map(|p| p.max(tests.fine)));
        }
    }
    parts.extend_from_slice(others);
    let weighted: Vec<(f64, f64)> = parts.iter().map(|p| (p.p_value, p.part.weight())).collect();
    let p_value = match weighted[..] {
        // Bennett's bound is not combined: it remains a bound.
        [(bound, _)] if null.is_silent() => bound,
        _ => cauchy(&weighted),
    };
    let reject = p_value <= alpha;
    let least = parts.iter().min_by(|a, b| a.p_value.total_cmp(&b.p_value));
    Combined {
        reject,
        p_value,
        decisive: least.filter(|_| reject).map(|p| p.part),
        replicates: null.replicates(),
        parts,
    }
}

/// Cauchy's combination of p-values with their weights; 1 of none. \[Liu, Xie 2020, (2)\]
pub fn cauchy(p_values: &[(f64, f64)]) -> f64 {
    let weights: f64 = p_values.iter().map(|&(_, w)| w).sum();
    if weights <= 0.0 {
        return 1.0;
    }
    let term = |p: f64| {
        let p = p.min(CUT);
        // tan(π(½ − p)) = 1/tan(πp).
        if p < 1e-12 {
            1.0 / (PI * p)
        } else {
            1.0 / (PI * p).tan()
        }
    };
    let t = p_values.iter().map(|&(p, w)| w * term(p)).sum::<f64>() / weights;
    if t > 1e10 {
        1.0 / (PI * t)
    } else {
        0.5 - t.atan() / PI
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_p_value_is_itself_and_a_tiny_one_counts_for_all() {
        for p in [1e-300, 1e-15, 1e-12, 1e-5, 0.05, 0.5, 0.9] {
            assert!((cauchy(&[(p, 2.0)]) / p - 1.0).abs() < 1e-6, "{p}");
        }
        assert_eq!(cauchy(&[]), 1.0);
        // The smallest of four, times four.
        let p = cauchy(&[1e-6, 0.5, 0.5, 0.5].map(|p| (p, 1.0)));
        assert!((p / 4e-6 - 1.0).abs() < 1e-3, "{p}");
        // An impossible outcome is beyond doubt, whatever the others say.
        assert_eq!(cauchy(&[0.0, 1.0, 1.0].map(|p| (p, 1.0))), 0.0);
    }

    #[test]
    fn a_p_value_of_one_does_not_silence_the_others() {
        assert!(cauchy(&[0.001, 1.0, 1.0, 1.0].map(|p| (p, 1.0))) < 0.006);
    }
}
