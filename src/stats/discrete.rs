//! Discrete scores: tests per distinct score, one by one and summed up.
//!
//! A model with few distinct scores (histogram binning, rules, trees) is judged value by value:
//! under the null the positives among N events of score z are Binomial(N, z) exactly, whatever the
//! other scores are. T-Cal loses there, because its cells hold one value or none and its bound is
//! for densities. Source: Lee et al. (2022), Appendix 8.2.4. The two-sided p-value sums the
//! probabilities of all counts that are no likelier than the one seen (with 10⁻⁷ relative slack for
//! ties), as R's `binom.test` and SciPy's `binomtest` do; the values share the error by Bonferroni.
//!
//! That test names the values that err. Its α is shared over the values, so with many values its
//! power is small. The sum over values
//!
//! ```text
//! X² = Σ U_v²/V_v,   U_v = Σ(y − z), V_v = N·z(1−z) of the events of one value
//! ```
//!
//! grows with every value that errs and is a part of the decision ([`super::combined`]). If every
//! V_v is at least [`VARIANCE_MIN`], it is χ² with as many degrees of freedom as there are values
//! with variance; below that the counts are drawn from their binomial laws.
//!
//! Always: p-values lie in [0, 1]; the binomial tests are exact, so their level is at most α.
//! Cost: two binomial tails a value, O(√N) terms each: some microseconds; a fifth of a millisecond
//! more where counts are drawn.

use super::binomial;
use super::fixed::ONE;
use super::monte_carlo::Alias;
use super::rng::Rng;
use super::smooth::chi_squared_tail;
use super::sums::Sums;
use std::collections::BTreeMap;

/// When the tests over distinct scores run.
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
    /// X², the sum over values; `None` where no value has variance.
    pub statistic: Option<f64>,
    /// p-value of the sum, 0 where an outcome is impossible under its score.
    pub sum_p_value: f64,
}

/// Least variance of the positives of each value at which χ² approximates the law of the sum.
pub const VARIANCE_MIN: f64 = 30.0;

/// Number of draws of the counts, where they are drawn.
const REPLICATES: usize = 999;

/// The test on a window. A window keeps distinct scores only while they are few: beyond that there
/// is nothing to test and the result is `None`, also with [`DiscreteMode::On`].
pub fn discrete_of_sums(
    sums: &Sums,
    mode: DiscreteMode,
    alpha: f64,
    seed: u64,
) -> Option<DiscreteTest> {
    // Weighted positives are no binomial count.
    if mode == DiscreteMode::Off || sums.weighted().is_some() {
        return None;
    }
    let counts = sums.distinct().counts()?;
    let values = counts.iter().map(|c| Value {
        z: c.score as f64 / ONE as f64,
        n: c.n,
        y: c.y,
    });
    test(&values.collect::<Vec<_>>(), alpha, seed)
}

/// The test on raw scores in [0, 1].
pub fn discrete_of_scores(
    sample: &[(f64, bool)],
    mode: DiscreteMode,
    alpha: f64,
    seed: u64,
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
    let values = counts.iter().map(|(&z, &(n, y))| Value {
        z: f64::from_bits(z),
        n,
        y,
    });
    test(&values.collect::<Vec<_>>(), alpha, seed)
}

/// The events of one score.
#[derive(Debug, Clone, Copy)]
struct Value {
    z: f64,
    n: u64,
    y: u64,
}

impl Value {
    fn variance(&self) -> f64 {
        self.n as f64 * self.z * (1.0 - self.z)
    }

    /// The part of X² of a residual `u`: u²/V.
    fn part(&self, u: f64) -> f64 {
        u * u / self.variance()
    }

    fn residual(&self) -> f64 {
        self.y as f64 - self.n as f64 * self.z
    }
}

fn test(values: &[Value], alpha: f64, seed: u64) -> Option<DiscreteTest> {
    let mut smallest = (f64::INFINITY, 0.0);
    for v in values {
        let p = binomial::two_sided(v.y, v.n, v.z);
        if p < smallest.0 {
            smallest = (p, v.z);
        }
    }
    let p_value = (smallest.0 * values.len() as f64).min(1.0);
    let (statistic, sum_p_value) = sum_test(values, seed);
    (!values.is_empty()).then_some(DiscreteTest {
        distinct: values.len(),
        reject: p_value <= alpha,
        p_value,
        worst_score: smallest.1,
        statistic,
        sum_p_value,
    })
}

/// X² and its p-value.
fn sum_test(values: &[Value], seed: u64) -> (Option<f64>, f64) {
    let (certain, varying): (Vec<&Value>, Vec<&Value>) =
        values.iter().partition(|v| v.variance() <= 0.0);
    let impossible = certain
        .iter()
        .any(|v| v.y != if v.z > 0.5 { v.n } else { 0 });
    if varying.is_empty() {
        return (None, if impossible { 0.0 } else { 1.0 });
    }
    let statistic: f64 = varying.iter().map(|v| v.part(v.residual())).sum();
    let least = varying
        .iter()
        .map(|v| v.variance())
        .fold(f64::INFINITY, f64::min);
    let p_value = if impossible {
        0.0
    } else if least >= VARIANCE_MIN {
        chi_squared_tail(statistic, varying.len() as u32)
    } else {
        let drawn = draw(&varying, seed);
        let bar = statistic * (1.0 - 1e-5);
        let reached = drawn.iter().filter(|&&x| x >= bar).count();
        (1 + reached) as f64 / (1 + REPLICATES) as f64
    };
    (Some(statistic), p_value)
}

/// X² of counts drawn from their binomial laws.
fn draw(values: &[&Value], seed: u64) -> Vec<f64> {
    let (mut rng, mut table) = (Rng::new(seed), Alias::default());
    let (mut sums, mut drawn) = (vec![0.0; REPLICATES], vec![0.0f32; REPLICATES]);
    for v in values {
        table.draw(v.n, v.z, &mut rng, &mut drawn);
        for (sum, &d) in sums.iter_mut().zip(&drawn) {
            *sum += v.part(f64::from(d));
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_of_one_that_fails_once_is_rejected_whatever_else_there_is() {
        let sample = [(1.0, true), (1.0, false), (0.5, true), (0.5, false)];
        let t = discrete_of_scores(&sample, DiscreteMode::Auto, 0.05, 1).unwrap();
        assert!(t.reject && t.p_value == 0.0 && t.worst_score == 1.0 && t.distinct == 2);
    }

    #[test]
    fn too_many_distinct_scores_switch_auto_off_and_not_on() {
        let sample: Vec<_> = (0..100)
            .map(|i| (f64::from(i) / 100.0, i % 2 == 0))
            .collect();
        assert!(discrete_of_scores(&sample, DiscreteMode::Auto, 0.05, 1).is_none());
        assert!(discrete_of_scores(&sample, DiscreteMode::On, 0.05, 1).is_some());
        assert!(discrete_of_scores(&sample, DiscreteMode::Off, 0.05, 1).is_none());
    }
}
