//! Discrete scores: the exact binomial test per distinct score.
//!
//! A model that gives few scores (histogram binning, rules, trees) is judged value by value: under
//! the null the positives among N events of score z are Binomial(N, z) exactly, whatever the other
//! scores are. T-Cal loses there, because its cells hold one value or none and its bound is for
//! densities. Source: Lee et al. (2022), Appendix 8.2.4. The two-sided p-value sums the
//! probabilities of all counts that are no likelier than the one seen (with 10⁻⁷ relative slack for
//! ties), as R's `binom.test` and SciPy's `binomtest` do; the values share the error by Bonferroni.
//!
//! Always: p-values lie in [0, 1]; the test is exact, so its level is at most α.
//! Cost: two binomial tails a value, O(√N) terms each: some microseconds.

use super::binomial;
use super::fixed::ONE;
use super::sums::Sums;
use std::collections::BTreeMap;

/// When the test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum DiscreteMode {
    /// When the window holds at most [`super::sums::DISTINCT_MAX`] distinct scores.
    Auto,
    /// Always (offline: with any number of distinct scores).
    On,
    /// Never.
    Off,
}

/// Outcome of the exact binomial tests over distinct scores.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DiscreteTest {
    /// Number of distinct scores.
    pub distinct: usize,
    /// Calibration is rejected at α.
    pub reject: bool,
    /// Smallest p-value over the scores, Bonferroni-adjusted.
    pub p_value: f64,
    /// The score with the smallest p-value.
    pub worst_score: f64,
}

/// The test on a window. A window keeps distinct scores only while they are few: beyond that there
/// is nothing to test and the answer is `None`, also with [`DiscreteMode::On`].
pub fn discrete_of_sums(sums: &Sums, mode: DiscreteMode, alpha: f64) -> Option<DiscreteTest> {
    // Weighted positives are no binomial count.
    if mode == DiscreteMode::Off || sums.weighted().is_some() {
        return None;
    }
    let counts = sums.distinct().counts()?;
    test(
        counts
            .iter()
            .map(|c| (c.score as f64 / ONE as f64, c.n, c.y)),
        alpha,
    )
}

/// The test on raw scores in [0, 1].
pub fn discrete_of_scores(
    sample: &[(f64, bool)],
    mode: DiscreteMode,
    alpha: f64,
) -> Option<DiscreteTest> {
    if mode == DiscreteMode::Off {
        return None;
    }
    let mut counts: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for &(z, y) in sample {
        // Bits of non-negative floats are ordered as the floats are; −0.0 is made 0 first.
        let entry = counts.entry((z + 0.0).to_bits()).or_default();
        entry.0 += 1;
        entry.1 += u64::from(y);
        if mode == DiscreteMode::Auto && counts.len() > super::sums::DISTINCT_MAX {
            return None;
        }
    }
    test(
        counts.iter().map(|(&z, &(n, y))| (f64::from_bits(z), n, y)),
        alpha,
    )
}

fn test(values: impl Iterator<Item = (f64, u64, u64)>, alpha: f64) -> Option<DiscreteTest> {
    let (mut distinct, mut smallest) = (0, (f64::INFINITY, 0.0));
    for (z, n, y) in values {
        distinct += 1;
        let p = binomial::two_sided(y, n, z);
        if p < smallest.0 {
            smallest = (p, z);
        }
    }
    let p_value = (smallest.0 * distinct as f64).min(1.0);
    (distinct > 0).then_some(DiscreteTest {
        distinct,
        reject: p_value <= alpha,
        p_value,
        worst_score: smallest.1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_of_one_that_fails_once_is_rejected_whatever_else_there_is() {
        let sample = [(1.0, true), (1.0, false), (0.5, true), (0.5, false)];
        let t = discrete_of_scores(&sample, DiscreteMode::Auto, 0.05).unwrap();
        assert!(t.reject && t.p_value == 0.0 && t.worst_score == 1.0 && t.distinct == 2);
    }

    #[test]
    fn too_many_distinct_scores_switch_auto_off_and_not_on() {
        let sample: Vec<_> = (0..100)
            .map(|i| (f64::from(i) / 100.0, i % 2 == 0))
            .collect();
        assert!(discrete_of_scores(&sample, DiscreteMode::Auto, 0.05).is_none());
        assert!(discrete_of_scores(&sample, DiscreteMode::On, 0.05).is_some());
        assert!(discrete_of_scores(&sample, DiscreteMode::Off, 0.05).is_none());
    }
}
