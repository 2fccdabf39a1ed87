//! What clusters change in an evaluation; see [`crate::clusters`].

use super::laws::student;
use super::{Cox, InTheLarge, Interval, NullReach, Options, Path, ScoreTest, Spiegelhalter};
use crate::clusters::{self, ClusterSums, ClusterTests, Clusters};
use crate::estimate::{self, Estimate};
use crate::interval;
use crate::levels::{Level, Levels};
use crate::null::normal_upper_quantile;

/// The clusters of a sample, tested.
pub(super) struct Clustered<'a> {
    sums: &'a ClusterSums,
    /// The level at which the sums are kept.
    kept: u32,
    /// Their number and dispersion.
    pub said: Clusters,
    /// The dispersion of Spiegelhalter's sum by bucket.
    spiegelhalter: Clusters,
    /// The tests by sign flips; `None` where there are too few buckets.
    pub tests: Option<ClusterTests>,
}

/// The tests whose p-values clusters change.
pub(super) struct Tested<'a> {
    pub smooth: &'a mut Option<ScoreTest>,
    pub cox: &'a mut Option<Cox>,
    pub ks: &'a mut Path,
    pub kuiper: &'a mut Path,
    pub in_the_large: &'a mut InTheLarge,
    pub spiegelhalter: &'a mut Option<Spiegelhalter>,
}

impl<'a> Clustered<'a> {
    pub fn of(sums: &'a ClusterSums, kept: u32, levels: &Levels, o: &Options) -> Clustered<'a> {
        let level = &levels.as_slice()[kept.max(1) as usize - 1];
        let u2 = levels.as_slice()[0].occupied.iter().map(|c| c.u2).sum();
        let tests = clusters::sign_flips(sums, kept, levels.finest(), o.tcal.alpha, o.tcal.seed);
        let said = Clusters {
            patterns: tests.as_ref().map_or(0, |t| t.patterns as u32),
            ..Clusters::of(sums, u2)
        };
        Clustered {
            sums,
            kept,
            said,
            spiegelhalter: Clusters::of_spiegelhalter(sums, level),
            tests,
        }
    }

    /// Raises each p-value to the larger of two, that for independent outcomes and that of the sign
    /// flips; without flips there is none.
    pub fn raise(&self, to: Tested<'_>) {
        let Some(tests) = &self.tests else {
            *to.smooth = None;
            to.cox.iter_mut().for_each(|t| t.p_value = None);
            to.spiegelhalter.iter_mut().for_each(|t| t.p_value = None);
            to.ks.p_value = None;
            to.kuiper.p_value = None;
            to.in_the_large.p_value = None;
            return;
        };
        let larger = |p: &mut Option<f64>, flips: f64| *p = p.map(|p| p.max(flips));
        if let Some(t) = to.smooth {
            t.p_value = t.p_value.max(tests.smooth);
        }
        if let Some(t) = to.cox {
            larger(&mut t.p_value, tests.cox);
        }
        larger(&mut to.ks.p_value, tests.ks);
        larger(&mut to.kuiper.p_value, tests.kuiper);
        larger(&mut to.in_the_large.p_value, tests.in_the_large);
        // Spiegelhalter's sum is not flipped; its own dispersion corrects it.
        if let Some(t) = to.spiegelhalter {
            let (factor, degrees) = self.spiegelhalter.dispersion();
            larger(&mut t.p_value, student(t.z / factor.sqrt(), degrees));
        }
    }

    /// The p-value of T at the interval's level, from that for independent outcomes.
    pub fn zero_p_value(&self, level: &Level, independent: Option<f64>) -> Option<f64> {
        let at = level.cells.ilog2().checked_sub(1)? as usize;
        let flips = self.tests.as_ref()?.levels.get(at)?;
        independent.map(|p| p.max(*flips))
    }

    /// φ for the ends of intervals, widened by its own uncertainty.
    pub fn dispersion(&self, confidence: f64) -> f64 {
        let (factor, degrees) = self.said.dispersion();
        factor * clusters::ends_factor(degrees, confidence)
    }

    /// The interval with normal ends.
    pub fn interval(&self, level: &Level, n: f64, o: &Options, zero: Option<f64>) -> Interval {
        let e = clusters::estimate(self.sums, self.kept, level);
        let (_, degrees) = self.said.dispersion();
        let short = match o.null_reach {
            NullReach::Conditional => estimate::shortfall_of(level),
            NullReach::Paper { .. } => 0.0,
        };
        let factor = clusters::ends_factor(degrees, o.confidence);
        let widened = (e.sigma1_squared + short) * factor;
        let e = Estimate {
            sigma1_squared: widened,
            ..e
        };
        let mut of = interval::normal(level, n, o.confidence, o.null_reach, zero, e);
        if o.null_reach == NullReach::Conditional {
            of.upper = of.upper.max(self.mean_upper(level, n, o.confidence));
        }
        of
    }

    /// Upper end of |mean residual|, which the ℓ2-ECE is at least. The variance of T grows with the
    /// errors that are found: if noise that all cells share makes these small, the upper end of T
    /// alone is too low.
    fn mean_upper(&self, level: &Level, n: f64, confidence: f64) -> f64 {
        let cells = level.occupied.iter();
        let (u, u2) = cells.fold((0.0, 0.0), |(u, u2), c| (u + c.u, u2 + c.u2));
        let z = normal_upper_quantile(0.5 * (1.0 - confidence));
        (u.abs() + z * (self.dispersion(confidence) * u2).sqrt()) / n
    }
}
