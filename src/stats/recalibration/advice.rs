//! Which map to apply, or why none.
//!
//! A map is *eligible* when both windows have at least [`EACH_MIN`] events of each outcome
//! (Vergouwe et al., J. Clin. Epidemiol. 58 (2005): below 100 of each, a validation cannot tell),
//! the isotonic one when the window it was fitted to has also [`ISOTONIC_MIN`] events
//! (Niculescu-Mizil & Caruana, ICML 2005: with fewer it overfits). It is *worth it* when log loss
//! on the following window falls by more than [`ERRORS_MIN`] standard errors. Among these maps the
//! advice is the stiffest one whose gain is within one standard error of the paired difference of
//! the best gain (the one-standard-error rule of Breiman et al., 1984): if two parameters correct
//! the scores, 256 are not needed.
//!
//! Log loss decides because it is proper and depends on every score; an ECE can fall because a map
//! gives everyone the same score. Choosing among three raises the chance of advising a useless map
//! from at most 2.3 % to at most three times that. The reported gain is selected too: it is that of
//! the best map, and of an advised one, which gained more than its error. So it is too large on
//! average, the more so the nearer it is to that error, and a map may do harm. With 2000 uniform
//! scores, true odds 1.3 times theirs and a tolerance of .05, the reported gain was .0079 in the
//! mean of 33 advices, and .0045 on 40,000 further events; with 1.4 times and .04, .0107 and .0088
//! of 138.

use super::map::{Fits, Method};
use super::measures::{Gain, Trial};

/// Fewest events of each outcome, in each of both windows.
pub const EACH_MIN: u64 = 100;

/// Fewest events for an isotonic map.
pub const ISOTONIC_MIN: u64 = 1000;

/// Standard errors that a gain must exceed.
pub const ERRORS_MIN: f64 = 2.0;

/// Which map to apply, or why none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Advice {
    /// Apply this map.
    Apply(Method),
    /// None: too few events of one outcome to fit.
    TooFewToFit,
    /// None: too few events of one outcome to judge.
    TooFewToJudge,
    /// None: no map could be fitted.
    Unfitted,
    /// None: on the following window no map's gain is above its error.
    NoGain,
}

impl Advice {
    /// `n` and `positives` count the events on trial; `against(stiff, free)` is the gain of the
    /// freer of two maps over the stiffer.
    pub(super) fn of(
        fits: &Fits,
        (n, positives): (u64, u64),
        trials: &[Option<Trial>; 3],
        against: &dyn Fn(Method, Method) -> Option<Gain>,
    ) -> Advice {
        let each = |n: u64, positives: u64| positives.min(n - positives) >= EACH_MIN;
        if !each(fits.n, fits.positives) {
            return Advice::TooFewToFit;
        }
        if !each(n, positives) {
            return Advice::TooFewToJudge;
        }
        let gain = |m: Method| trials[m as usize].map(|t| t.log_loss);
        let eligible =
            |m: &Method| gain(*m).is_some() && (*m != Method::Isotonic || fits.n >= ISOTONIC_MIN);
        let eligible: Vec<Method> = Method::ALL.into_iter().filter(eligible).collect();
        if eligible.is_empty() {
            return Advice::Unfitted;
        }
        let worth = |m: &Method| gain(*m).is_some_and(|g| g.mean > ERRORS_MIN * g.standard_error);
        let worth: Vec<Method> = eligible.into_iter().filter(worth).collect();
        let mean = |m: &Method| gain(*m).map_or(f64::NEG_INFINITY, |g| g.mean);
        let Some(&best) = worth.iter().max_by(|a, b| mean(a).total_cmp(&mean(b))) else {
            return Advice::NoGain;
        };
        let near = |m: &Method| against(*m, best).is_none_or(|g| g.mean <= g.standard_error);
        Advice::Apply(worth.into_iter().find(near).unwrap_or(best))
    }

    /// The family of the map to apply, if any.
    pub fn method(self) -> Option<Method> {
        match self {
            Advice::Apply(method) => Some(method),
            _ => None,
        }
    }

    /// Its name, as in JSON: a method, or why none.
    pub fn as_str(self) -> &'static str {
        match self {
            Advice::Apply(method) => method.as_str(),
            Advice::TooFewToFit => "too_few_to_fit",
            Advice::TooFewToJudge => "too_few_to_judge",
            Advice::Unfitted => "unfitted",
            Advice::NoGain => "no_gain",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::Options;
    use crate::recalibration::map::Map;
    use crate::recalibration::{Cut, Measures, Point, Unfit, logistic::Logistic};

    fn fits(n: u64, positives: u64) -> Fits {
        let map = Map::Logistic(Logistic {
            intercept: 0.0,
            slope: 1.0,
        });
        Fits {
            n,
            positives,
            maps: [Ok(map.clone()), Ok(map), Err(Unfit::Alike)],
        }
    }

    fn gain(mean: f64, standard_error: f64) -> Gain {
        Gain {
            mean,
            standard_error,
        }
    }

    fn trial(mean: f64) -> Option<Trial> {
        let one = Point {
            z: 0.5,
            n: 1.0,
            y: 1.0,
        };
        Some(Trial {
            recalibrated: Measures::of(&[one], &Cut::Scores, &Options::default()),
            log_loss: gain(mean, 0.01),
            brier: gain(mean, 0.01),
        })
    }

    #[test]
    fn the_stiffest_map_within_an_error_of_the_best_is_advised() {
        let trials = [trial(0.05), trial(0.06), None];
        let with = |difference: Gain| {
            let against =
                move |a: Method, b: Method| Some(if a == b { gain(0.0, 0.0) } else { difference });
            Advice::of(&fits(2000, 500), (2000, 500), &trials, &against)
        };
        assert_eq!(with(gain(0.01, 0.02)), Advice::Apply(Method::Logistic));
        assert_eq!(with(gain(0.01, 0.005)), Advice::Apply(Method::Beta));
    }

    #[test]
    fn too_few_events_or_too_small_a_gain_advise_nothing() {
        let none = |_: Method, _: Method| None;
        let of = |fits: &Fits, judged, trials: [Option<Trial>; 3]| {
            Advice::of(fits, judged, &trials, &none)
        };
        let good = [trial(0.05), None, None];
        assert_eq!(of(&fits(2000, 99), (2000, 500), good), Advice::TooFewToFit);
        assert_eq!(
            of(&fits(2000, 1901), (2000, 500), good),
            Advice::TooFewToFit
        );
        assert_eq!(
            of(&fits(2000, 500), (150, 100), good),
            Advice::TooFewToJudge
        );
        assert_eq!(
            of(&fits(2000, 500), (2000, 500), [None; 3]),
            Advice::Unfitted
        );
        let small = [trial(0.02), trial(-1.0), None];
        assert_eq!(of(&fits(2000, 500), (2000, 500), small), Advice::NoGain);
        // Isotonic alone, of too few events.
        let free = [None, None, trial(1.0)];
        assert_eq!(of(&fits(999, 500), (2000, 500), free), Advice::Unfitted);
    }
}
