//! Scores carried from one population to another: negatives that were down-sampled at a known rate.
//!
//! Rare positives are valuable and negatives are not, so often only a share of the negatives is
//! kept: in the stream of events, to save volume, or in the training data, to balance them. Either
//! way the score and the events belong to two populations, and a model that is calibrated in its
//! own population looks miscalibrated in the other. Neither case needs weights: sampling changes
//! the odds of a positive by a known factor, so the score itself can be corrected.
//!
//! Let negatives be kept with probability r and positives always, whatever else is known of an
//! event. Where P(y = 1 | s) = s, Bayes' theorem gives among the events that were kept
//!
//! ```text
//! P(y = 1 | s, kept) = s / (s + r(1 − s)),      odds(kept) = odds(s) / r
//! ```
//!
//! (Elkan, *The foundations of cost-sensitive learning*, IJCAI 2001, Theorem 2, with the positives'
//! base rate written as the rate of sampling). The other way round, a score p of a model that was
//! trained with negatives kept at the rate w is s = p / (p + (1 − p)/w) in the whole population,
//! odds(s) = w·odds(p): He et al., *Practical lessons from predicting clicks on ads at Facebook*,
//! ADKDD 2014, §6.3. Both together multiply the odds by w / r, and by 1 where they are equal:
//! scores of a model that was trained on data sampled like the stream need nothing.
//!
//! **Scale.** The tests and all that is reported of them (errors, intervals, tolerance, mean score,
//! event rate, Brier score, the diagram) are on the scale of the sampled events. The outcomes are
//! then independent Bernoulli variables with the carried scores as probabilities, exactly, so every
//! test keeps its exact null and no variance is spent on weights. An error on this scale is not the
//! error in the whole population: at small scores it is 1/r times as large, and cells count by the
//! events that were kept. Only the event rate is converted back ([`Sampling::whole`]), because it
//! can be converted exactly.
//!
//! Always: 0 stays 0 and 1 stays 1; the order of scores stays; the rates are in (0, 1].
//! Cost: a division an event of a model that uses it, nothing for others.

use super::fixed::Score;

/// The rates at which negatives were kept, in the stream and in the training data.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "(f64, f64)", into = "(f64, f64)"))]
pub struct Sampling {
    kept: f64,
    trained: f64,
}

/// A rate that is not in (0, 1].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateError(pub f64);

impl std::fmt::Display for RateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RateError(rate) = self;
        write!(
            f,
            "the share of negatives that was kept is {rate}; give a number above 0 and at most 1"
        )
    }
}

impl std::error::Error for RateError {}

impl TryFrom<(f64, f64)> for Sampling {
    type Error = RateError;

    fn try_from((kept, trained): (f64, f64)) -> Result<Sampling, RateError> {
        Sampling::new(kept, trained)
    }
}

impl From<Sampling> for (f64, f64) {
    fn from(sampling: Sampling) -> (f64, f64) {
        (sampling.kept, sampling.trained)
    }
}

impl Default for Sampling {
    /// Every event was kept.
    fn default() -> Sampling {
        Sampling {
            kept: 1.0,
            trained: 1.0,
        }
    }
}

impl Sampling {
    /// `kept` is the share of negatives in the stream, `trained` that in the data that the model
    /// was trained on where its scores were not corrected for it; both in (0, 1].
    pub fn new(kept: f64, trained: f64) -> Result<Sampling, RateError> {
        for rate in [kept, trained] {
            if !(rate > 0.0 && rate <= 1.0) {
                return Err(RateError(rate));
            }
        }
        Ok(Sampling { kept, trained })
    }

    /// Share of the negatives that is in the stream.
    pub fn kept(&self) -> f64 {
        self.kept
    }

    /// Share of the negatives that the model was trained on.
    pub fn trained(&self) -> f64 {
        self.trained
    }

    /// The factor w/r by which the odds of a score are multiplied.
    pub fn factor(&self) -> f64 {
        self.trained / self.kept
    }

    /// Whether scores stay as they are.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.kept == self.trained
    }

    /// The score on the scale of the events in the stream: w·p / (w·p + r(1 − p)).
    ///
    /// With w = 1, r = 0.1: 0.5 becomes 0.5/(0.5 + 0.05) = 10/11.
    #[inline]
    pub fn carry(&self, score: Score) -> Score {
        if self.is_none() {
            return score;
        }
        let p = score.value();
        let (yes, no) = (self.trained * p, self.kept * (1.0 - p));
        // A share is a score; a score whose parts are both too small for a double stays as it is.
        Score::new(yes / (yes + no)).unwrap_or(score)
    }

    /// The event rate of the whole population, if all its positives and a share of its negatives
    /// are in the stream: q / (q + (1 − q)/r). With r = 0.1, 10/11 becomes 0.5.
    pub fn whole(&self, rate: f64) -> f64 {
        let negatives = (1.0 - rate) / self.kept;
        rate / (rate + negatives)
    }

    /// The rates, to the bit, for a snapshot.
    pub fn bits(&self) -> (u64, u64) {
        (self.kept.to_bits(), self.trained.to_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(s: Sampling, p: f64) -> f64 {
        s.carry(Score::new(p).unwrap()).value()
    }

    #[test]
    fn scores_are_carried_as_the_papers_say_and_back() {
        let stream = Sampling::new(0.1, 1.0).unwrap();
        assert!((carried(stream, 0.5) - 10.0 / 11.0).abs() < 1e-15);
        assert!((stream.whole(10.0 / 11.0) - 0.5).abs() < 1e-15);
        // He et al.: p/(p + (1 − p)/w).
        let trained = Sampling::new(1.0, 0.025).unwrap();
        for p in [1e-9, 0.01, 0.3, 0.999] {
            let q = p / (p + (1.0 - p) / 0.025);
            assert!((carried(trained, p) / q - 1.0).abs() < 1e-12, "{p}");
            let both = Sampling::new(0.025, 1.0).unwrap();
            let back = carried(both, carried(trained, p));
            assert!((back / p - 1.0).abs() < 1e-12, "{p} {back}");
        }
    }

    #[test]
    fn ends_stay_ends_and_equal_rates_change_no_bit() {
        for s in [Sampling::new(1e-6, 1.0), Sampling::new(1.0, 1e-6)] {
            let s = s.unwrap();
            assert_eq!([0.0, 1.0].map(|p| carried(s, p)), [0.0, 1.0]);
            assert!((0.0..=1.0).contains(&carried(s, f64::MIN_POSITIVE / 4.0)));
        }
        let same = Sampling::new(0.3, 0.3).unwrap();
        assert!(same.is_none() && Sampling::default().is_none());
        assert_eq!(carried(same, 0.1).to_bits(), 0.1f64.to_bits());
    }

    #[test]
    fn a_rate_outside_0_to_1_is_refused() {
        for rate in [0.0, -0.1, 1.0001, f64::NAN, f64::INFINITY] {
            assert!(Sampling::new(rate, 1.0).is_err() && Sampling::new(1.0, rate).is_err());
        }
        let text = Sampling::new(0.0, 1.0).unwrap_err().to_string();
        assert!(text.contains("above 0 and at most 1"), "{text}");
    }
}
