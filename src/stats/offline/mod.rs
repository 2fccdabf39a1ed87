//! Tests of calibration that only `trueline evaluate --test` runs: the other tests of the T-Cal
//! paper, without its adaptive test.
//!
//! | test | module | null | decides by |
//! |---|---|---|---|
//! | known smoothness | [`crate::tcal::tcal_fixed`], [`crate::multiclass::tcal_fixed`] | calibrated | T_d at m\* = ⌊n^{2/(4s+K−1)}⌋ cells an axis (Algorithm 1) |
//! | composite | [`composite`](mod@composite) | ℓ2-ECE at most τ | T_d against a threshold that τ raises (Remark 3) |
//! | splitting, its adaptive form | [`splitting`](mod@splitting) | calibrated | a two-sample test of scores by outcome (Algorithm 3, section 6) |
//! | cross-fitting | [`mod@cross_fitting`] | calibrated | the two-sample statistic of both orders of the halves |
//! | consistency | [`crate::comparison::classical`] | calibrated | ℓ1-ECE of 15 cells, scores and outcomes redrawn |
//! | consistency, of vectors | [`crate::kernel::binned_tests`] | calibrated | binned errors, outcomes redrawn |
//!
//! They stay out of the live report because they are weaker than the adaptive test (`trueline
//! reproduce tcal` has the figures): the first two need a smoothness that is never known, splitting
//! throws information away, and one level sees one scale.
//!
//! Source: Lee, Huang, Hassani, Dobriban, *T-Cal: An optimal test for the calibration of predictive
//! models* (2022).

pub mod composite;
pub mod cross_fitting;
pub mod splitting;

pub use composite::{Composite, composite};
pub use cross_fitting::CrossFitting;
pub use splitting::{Splitting, TwoSample};

use super::comparison::classical;
use super::estimator;
use super::kernel::Vectors;
use super::kernel::binned_tests::{self, BinnedTests};
use super::levels::Level;
use super::multiclass::{self, Events, VectorLevel, VectorView};
use super::tcal::{TCalOptions, tcal_fixed};

/// Which test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Test {
    /// One level, chosen by the smoothness.
    KnownSmoothness,
    /// One level, chosen by the smoothness, against a tolerated error.
    Composite,
    /// Sample splitting with the χ² test at one level, chosen by the smoothness.
    Splitting,
    /// Sample splitting with the multi-scale permutation test.
    SplittingAdaptive,
    /// The two-sample statistic of both orders of the halves, at one level.
    CrossFitting,
    /// Consistency resampling of the ℓ1-ECE; of vectors, of the binned errors.
    Consistency,
}

impl Test {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Test::KnownSmoothness => "known-smoothness",
            Test::Composite => "composite",
            Test::Splitting => "splitting",
            Test::SplittingAdaptive => "splitting-adaptive",
            Test::CrossFitting => "cross-fitting",
            Test::Consistency => "consistency",
        }
    }
}

/// Options of the tests.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Options {
    /// Level and seed, and how critical values are made where there is a choice.
    pub tcal: TCalOptions,
    /// Hölder smoothness s > 0 of the calibration curve.
    pub smoothness: f64,
    /// Tolerated ℓ2-ECE τ.
    pub tolerance: f64,
}

/// One level's estimate and p-value.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OneLevel {
    /// m\*, cells of an axis.
    pub slices: u64,
    /// T_d.
    pub debiased: f64,
    /// Null standard deviation of T_d given the scores.
    pub null_sd: f64,
}

/// The details of a result, by test.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Detail {
    /// Test of a known smoothness.
    OneLevel(OneLevel),
    /// Test of the composite null.
    Composite(Composite),
    /// Both sample-splitting tests.
    Splitting(Splitting),
    /// Test by cross-fitting.
    CrossFitting(CrossFitting),
    /// ℓ1-ECE over 15 cells, and the debiased squared ℓ2 error of Kumar, Liang, Ma (2019).
    Consistency {
        /// ℓ1-ECE.
        ece_l1: f64,
        /// Debiased squared ℓ2 error over the cells; may be negative.
        debiased_l2: f64,
        /// The same over distinct scores; `None` where none repeats.
        debiased_l2_distinct: Option<f64>,
    },
    /// The binned errors of vectors.
    BinnedVectors(BinnedTests),
}

/// A test's outcome.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Outcome {
    /// Which test.
    pub test: Test,
    /// n, the number of events.
    pub n: usize,
    /// K, the number of classes.
    pub classes: usize,
    /// α.
    pub alpha: f64,
    /// p-value of the whole test.
    pub p_value: f64,
    /// Whether the p-value is at most α.
    pub reject: bool,
    /// The details of the result.
    pub detail: Detail,
}

/// m\* = ⌊n^{2/(4s+K−1)}⌋ cells of an axis, at least 2. \[T-Cal, Algorithm 1\]
pub fn slices(n: usize, smoothness: f64, classes: usize) -> u64 {
    let m = (n as f64).powf(2.0 / (4.0 * smoothness + classes as f64 - 1.0));
    m.floor().clamp(2.0, 1e9) as u64
}

/// Cells of consistency resampling, the number that papers report with.
const CONSISTENCY_CELLS: u64 = 15;
/// Replicates of consistency resampling.
const CONSISTENCY_REPLICATES: u32 = 999;

/// Runs a test on scores of one class; `None` with fewer than two events.
pub fn scores(test: Test, sample: &[(f64, bool)], o: &Options) -> Option<Outcome> {
    if sample.len() < 2 {
        return None;
    }
    let (n, m) = (sample.len(), slices(sample.len(), o.smoothness, 2));
    let (p_value, detail) = match test {
        Test::KnownSmoothness => {
            let t = tcal_fixed(sample, o.smoothness, &o.tcal);
            let level = t.levels.first()?;
            let found = OneLevel {
                slices: level.cells,
                debiased: level.debiased,
                null_sd: level.null_sd,
            };
            (t.p_value, Detail::OneLevel(found))
        }
        Test::Composite => {
            let debiased = estimator::debiased(&Level::from_scores(sample, m));
            let c = composite(debiased, n, m, 1, 2, o.tolerance, o.tcal.alpha);
            (c.p_value, Detail::Composite(c))
        }
        Test::Splitting | Test::SplittingAdaptive => {
            let s = splitting::of_scores(sample, two_sample(test, m), o.tcal.alpha, o.tcal.seed)?;
            (s.p_value, Detail::Splitting(s))
        }
        Test::CrossFitting => {
            let c = cross_fitting::of_scores(sample, m, o.tcal.seed)?;
            (c.p_value, Detail::CrossFitting(c))
        }
        Test::Consistency => {
            let (cells, draws) = (CONSISTENCY_CELLS, CONSISTENCY_REPLICATES);
            let p = classical::consistency_p_value(sample, cells, draws, o.tcal.seed)?;
            let level = Level::from_scores(sample, cells);
            let found = Detail::Consistency {
                ece_l1: estimator::ece_l1(&level),
                debiased_l2: classical::debiased_l2(&level),
                debiased_l2_distinct: classical::debiased_l2_distinct(sample),
            };
            (p, found)
        }
    };
    Some(outcome(test, n, 2, o, p_value, detail))
}

/// Runs a test on whole vectors; `None` with fewer than two events. The consistency test decides by
/// outcomes redrawn given the predictions, the smaller p-value of both partitions times two: the
/// published resampling rejects calibrated vectors nearly always ([`crate::kernel::binned`]).
pub fn vectors(test: Test, sample: &Vectors, o: &Options) -> Option<Outcome> {
    let (n, k) = (sample.len(), sample.classes());
    if n < 2 {
        return None;
    }
    let m = slices(n, o.smoothness, k).min(u64::from(multiclass::cell::SLICES_MAX));
    let (p_value, detail) = match test {
        Test::KnownSmoothness => {
            let t = multiclass::tcal_fixed(
                &Events::of(sample, VectorView::Full),
                m as u32,
                o.tcal.alpha,
            );
            let level = t.levels.first()?;
            let found = OneLevel {
                slices: m,
                debiased: level.debiased,
                null_sd: level.null_sd,
            };
            (t.p_value, Detail::OneLevel(found))
        }
        Test::Composite => {
            let level = VectorLevel::of(&Events::of(sample, VectorView::Full), m as u32);
            let debiased = multiclass::estimate::debiased(&level);
            let c = composite(debiased, n, m, k - 1, k, o.tolerance, o.tcal.alpha);
            (c.p_value, Detail::Composite(c))
        }
        Test::Splitting | Test::SplittingAdaptive => {
            let s = splitting::of_vectors(sample, two_sample(test, m), o.tcal.alpha, o.tcal.seed)?;
            (s.p_value, Detail::Splitting(s))
        }
        Test::CrossFitting => {
            let c = cross_fitting::of_vectors(sample, m as u32, o.tcal.seed)?;
            (c.p_value, Detail::CrossFitting(c))
        }
        Test::Consistency => {
            let b = binned_tests::binned_tests(sample, CONSISTENCY_REPLICATES, o.tcal.seed);
            (b.p_value(), Detail::BinnedVectors(b))
        }
    };
    Some(outcome(test, n, k, o, p_value, detail))
}

fn two_sample(test: Test, m: u64) -> TwoSample {
    if test == Test::Splitting {
        TwoSample::ChiSquared { slices: m as u32 }
    } else {
        TwoSample::MultiScale
    }
}

fn outcome(
    test: Test,
    n: usize,
    classes: usize,
    o: &Options,
    p_value: f64,
    detail: Detail,
) -> Outcome {
    Outcome {
        test,
        n,
        classes,
        alpha: o.tcal.alpha,
        p_value,
        reject: p_value <= o.tcal.alpha,
        detail,
    }
}

#[cfg(test)]
mod tests;
