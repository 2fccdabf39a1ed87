//! Compares the error that a sample proves with the tolerated error.
//!
//! A test that does not reject shows nothing: with few events it hardly ever rejects. So a sample
//! is compared with a tolerance, and there are three conclusions:
//!
//! * **miscalibrated**: the test rejects, and the error is shown to exceed the tolerance;
//! * **calibrated**: the error is shown to be within the tolerance (an equivalence test);
//! * **undecided**: neither is shown. Then the number of events that would decide is estimated.
//!
//! The tolerance τ is on the scale of the ℓ2-ECE, absolute or relative to the mean score of the
//! rarer outcome, or the smaller of both. An absolute 0.02 says nothing about a model of fraud of
//! 0.4 %; the default, the smaller of 0.05 and 20 %, is 0.05 for a coin, 0.02 for confidences of
//! mean 0.9, and 20 % where events are rare.
//!
//! **The error.** The interval of confidence 1 − α has its ends at α/2 on each side. So "the upper
//! end is at most τ" is an equivalence test of level α/2: a model whose error is τ is called
//! calibrated with about that probability, and with up to 13 % where α/2 is 5 % if the scores are
//! five to twelve grades (600 sets a setting). If the test rejects, a calibrated verdict also
//! requires that no level of T-Cal that rejects by itself estimates more than τ, because the
//! interval has only its own resolution. Where [events of one score count as a
//! cluster](super::clusters), errors of single scores look like dependence within them, and the
//! decision does not find them. Then no level of T-Cal for independent outcomes may reject and
//! estimate more than τ either.
//!
//! **Rare outcomes.** Where the rarer outcome's mean score r is under [`RARE`] and τ is relative,
//! with share ρ, the ℓ2-ECE needs 5 to 16 times the events, because the few cells with the largest
//! scores dominate it. In this case the ratio of observed to expected rare outcomes decides, with
//! its exact interval (Clopper–Pearson; a sum of unequal Bernoulli variables varies less than a
//! binomial count, Hoeffding 1956): calibrated within \[1/(1+ρ), 1+ρ\], miscalibrated beyond, with
//! the test as above. The ratio shows the mean and not the shape, and a report has to say so. A
//! shape that is shown to be off by the ℓ2-ECE counts as above.
//!
//! **How many more events.** For the error at τ = 0 the interval's half width is τ² at
//!
//! ```text
//! n ≈ 3.2·√(2 Σ_cells v̄²)/τ²        v̄ the mean V of a cell
//! ```
//!
//! with 80 % probability if the model is calibrated (within 10 % of simulations at m from 16 to
//! 256; whole decisions of default windows follow in 65 to 80 %, a small error takes more events),
//! and for the ratio at (z₀.₉₅ + z₀.₉)²/ln²(1+ρ) rare outcomes. If the sample already has more
//! events and is undecided, the error is near τ, and the number follows from the distance of the
//! estimate from τ. If outcomes vary φ times as much as independent ones, it takes φ times as many.
//! Where the test rejects and the ratio is within, only the ℓ2-ECE can still decide. No number is
//! said where the estimate asks for no more events than there are, nor where a finer level alone is
//! in the way.

use super::digits::short;
use super::interval::{Ends, FEW_CELLS, Interval, default_cells};
use super::levels::Level;
use super::reliability::clopper_pearson;
use super::tcal::TCal;
use std::fmt;
use std::str::FromStr;

/// Below this mean score of the rarer outcome the ratio of observed to expected decides.
pub const RARE: f64 = 0.05;

/// The tolerated error: the smaller of the two, or the one that is set.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tolerance {
    /// τ on the scale of the ℓ2-ECE, in [0, 1].
    pub absolute: Option<f64>,
    /// τ as a share of the mean score of the rarer outcome, above 0.
    pub relative: Option<f64>,
}

impl Default for Tolerance {
    /// The smaller of 0.05 and 20 % of the rarer outcome's mean score.
    fn default() -> Tolerance {
        Tolerance {
            absolute: Some(0.05),
            relative: Some(0.2),
        }
    }
}

impl Tolerance {
    /// A tolerance of `tau` on the scale of the ℓ2-ECE.
    pub fn absolute(tau: f64) -> Tolerance {
        Tolerance {
            absolute: Some(tau),
            relative: None,
        }
    }

    /// τ for a sample whose rarer outcome has this mean score.
    pub fn resolve(&self, rare_mean: f64) -> f64 {
        let relative = self.relative.map(|share| share * rare_mean);
        let both = [self.absolute, relative].into_iter().flatten();
        both.fold(1.0, f64::min)
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.absolute, self.relative) {
            (Some(tau), None) => write!(f, "{tau}"),
            (None, Some(share)) => write!(f, "{}%", short(100.0 * share)),
            (Some(tau), Some(share)) => write!(f, "{tau} or {}%", short(100.0 * share)),
            (None, None) => f.write_str("1"),
        }
    }
}

/// A text that is no tolerance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoTolerance(String);

impl fmt::Display for NoTolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoTolerance(text) = self;
        write!(
            f,
            "{text:?} is no tolerance; give an l2-ECE between 0 and 1 (0.02), a share of the rarer \
             outcome's mean score (10%), or both (0.05 or 20%)"
        )
    }
}

impl std::error::Error for NoTolerance {}

impl FromStr for Tolerance {
    type Err = NoTolerance;

    fn from_str(text: &str) -> Result<Tolerance, NoTolerance> {
        let no = || NoTolerance(text.to_owned());
        let mut tolerance = Tolerance {
            absolute: None,
            relative: None,
        };
        for part in text.split(" or ").map(str::trim) {
            let (slot, number) = match part.strip_suffix('%') {
                Some(share) => {
                    let share: f64 = share.trim().parse().map_err(|_| no())?;
                    (&mut tolerance.relative, share / 100.0)
                }
                None => (&mut tolerance.absolute, part.parse().map_err(|_| no())?),
            };
            let fits = (0.0..=1.0).contains(&number);
            if !fits || slot.replace(number).is_some() {
                return Err(no());
            }
        }
        match tolerance.relative {
            Some(share) if share <= 0.0 => Err(no()),
            _ => Ok(tolerance),
        }
    }
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Conclusion {
    /// The error is shown to exceed the tolerance.
    Miscalibrated,
    /// The error is shown to be within the tolerance.
    Calibrated,
    /// Neither is shown, because the rarer outcome is too rare: fewer than [`FEW`] of it are
    /// expected, or few large weights make the events worth fewer.
    FewOutcomes,
    /// Neither is shown, because there are fewer clusters than
    /// [`CLUSTERS_MIN`](super::clusters::CLUSTERS_MIN).
    FewClusters,
    /// Neither is shown.
    Inconclusive,
}

/// Fewer expected rare outcomes than this are few.
pub const FEW: f64 = 10.0;

/// Observed and expected numbers of the rarer outcome; of weighted events, those of as many events
/// of one weight as have a rate of the same variance.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ratio {
    /// Rare outcomes observed.
    pub observed: f64,
    /// Rare outcomes expected by the scores.
    pub expected: f64,
    /// Lower end of the interval of their ratio.
    pub lower: f64,
    /// Upper end of this interval.
    pub upper: f64,
    /// The ratio and its inverse may be at most this.
    pub most: f64,
    /// The interval lies in [1/`most`, `most`]: calibrated by the ratio; the shape is not shown.
    pub within: bool,
}

impl Ratio {
    /// The ratio itself: observed divided by expected.
    pub fn estimate(&self) -> f64 {
        self.observed / self.expected
    }

    /// The interval lies beyond [1/`most`, `most`]: miscalibrated, if the test rejects.
    pub fn is_off(&self) -> bool {
        self.lower > self.most || self.upper < 1.0 / self.most
    }
}

/// A sample compared with the tolerance.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Comparison {
    /// τ, on the ℓ2-ECE scale.
    pub tolerance: f64,
    /// Rare outcomes expected by the scores; of weighted events as in [`Ratio`].
    pub expected: f64,
    /// What is shown.
    pub conclusion: Conclusion,
    /// The error is shown to exceed the tolerance, by the interval or the ratio.
    pub exceeded: bool,
    /// The ratio that decides where the rarer outcome is rare and the tolerance relative.
    pub ratio: Option<Ratio>,
    /// About how many more events would decide; `None` where decided, or where no number would.
    pub more_events: Option<f64>,
    /// Some level's debiased estimate is above the Chebyshev bound of T-Cal, Remark 3; always
    /// valid, seldom sharp. `None` for weighted events and dispersed outcomes, where it does not
    /// hold.
    pub theorem_exceeded: Option<bool>,
}

/// The results of a sample that are compared with a tolerance.
pub(crate) struct Compared<'a> {
    /// Events; of weighted ones the effective number.
    pub n: f64,
    /// Mean score.
    pub mean_score: f64,
    /// Share of positive outcomes.
    pub event_rate: f64,
    /// Level of the test.
    pub alpha: f64,
    /// Whether the test rejects.
    pub reject: bool,
    /// T-Cal.
    pub tcal: &'a TCal,
    /// T-Cal for independent outcomes, where events of one score count as a cluster or seem to have
    /// come twice.
    pub single: Option<&'a TCal>,
    /// The interval for the ℓ2-ECE.
    pub interval: &'a Interval,
    /// The cells of the interval.
    pub level: &'a Level,
    /// Whether events are weighted.
    pub weighted: bool,
    /// φ: the variance of outcomes as a multiple of that of independent ones; 1 where no dependence
    /// is known.
    pub dispersion: f64,
    /// ω ≥ 1: the variance of the weighted rate as a multiple of that of `n` events of one weight;
    /// 1 without weights.
    pub weighting: f64,
    /// Whether events are clustered and there are too few clusters to show anything.
    pub few_clusters: bool,
    /// Whether few large weights have most of the information.
    pub heavy: bool,
}

impl Compared<'_> {
    /// The comparison with a tolerance.
    pub fn with(&self, tolerance: &Tolerance) -> Comparison {
        let rare_mean = self.mean_score.min(1.0 - self.mean_score).max(0.0);
        let tau = tolerance.resolve(rare_mean);
        let ratio = self.ratio(tolerance, rare_mean, tau);
        let i = self.interval;
        let above = if tau > 0.0 {
            !i.contains_zero && i.lower > tau
        } else {
            self.reject
        };
        let exceeded = above || ratio.is_some_and(|r| r.is_off());
        // A finer error than the interval resolves counts where there is evidence of any.
        let more = |t: &TCal| {
            let mut levels = t.levels.iter();
            levels.any(|l| l.reject && l.debiased > tau * tau)
        };
        let hidden = self.single.is_some_and(more);
        let finer = hidden || (self.reject && more(self.tcal));
        let within = i.upper <= tau && !finer;
        let by_ratio = !self.reject && !hidden && ratio.is_some_and(|r| r.within);
        let conclusion = if self.few_clusters {
            Conclusion::FewClusters
        } else if self.reject && exceeded {
            Conclusion::Miscalibrated
        } else if within || by_ratio {
            Conclusion::Calibrated
        } else if self.coins() * rare_mean < FEW || (self.heavy && !self.reject) {
            Conclusion::FewOutcomes
        } else {
            Conclusion::Inconclusive
        };
        let decided = matches!(
            conclusion,
            Conclusion::Miscalibrated | Conclusion::Calibrated
        );
        Comparison {
            tolerance: tau,
            expected: self.coins() * rare_mean,
            conclusion,
            exceeded,
            more_events: if decided
                || self.few_clusters
                || self.heavy
                || hidden
                || (finer && i.upper <= tau)
            {
                None
            } else {
                // Where the test rejects, a ratio that is within decides nothing.
                let open = ratio.filter(|r| !(self.reject && r.within));
                self.more_events(tau, open, rare_mean)
            },
            ratio,
            theorem_exceeded: (!self.weighted && self.dispersion == 1.0)
                .then(|| self.theorem_exceeded(tau)),
        }
    }

    /// The number of events of one weight whose rate has the variance of the weighted rate, if all
    /// are independent.
    fn coins(&self) -> f64 {
        self.n / self.weighting
    }

    fn ratio(&self, tolerance: &Tolerance, rare_mean: f64, tau: f64) -> Option<Ratio> {
        tolerance.relative?;
        if rare_mean >= RARE || rare_mean <= 0.0 {
            return None;
        }
        let low = self.mean_score < 0.5;
        let rate = if low {
            self.event_rate
        } else {
            1.0 - self.event_rate
        };
        let tail = 0.5 * (1.0 - self.interval.confidence);
        let (lower, upper) = {
            let n = self.coins() / self.dispersion;
            clopper_pearson(rate * n, n, tail)
        };
        let (lower, upper, most) = (lower / rare_mean, upper / rare_mean, 1.0 + tau / rare_mean);
        Some(Ratio {
            observed: rate * self.coins(),
            expected: rare_mean * self.coins(),
            lower,
            upper,
            most,
            within: lower >= 1.0 / most && upper <= most,
        })
    }

    fn more_events(&self, tau: f64, ratio: Option<Ratio>, rare_mean: f64) -> Option<f64> {
        if tau <= 0.0 {
            return None;
        }
        let needed = match ratio {
            Some(r) => {
                // (z₀.₉₅ + z₀.₉)² and z₀.₉₅².
                let bar = r.most.ln();
                let centred = 8.564 / (bar * bar);
                let off = r.estimate().ln().abs() - bar;
                let near = if r.observed > 0.0 {
                    2.706 / (off * off)
                } else {
                    0.0
                };
                let expected = r.expected / self.dispersion;
                let rare = centred.max(if expected >= centred { near } else { 0.0 });
                self.dispersion * self.weighting * rare / rare_mean
            }
            None => {
                let i = self.interval;
                let off = i.estimate_squared.max(0.0) - tau * tau;
                let near = 2.706 * i.sigma1_squared.max(0.0) / (off * off);
                match (i.contains_zero, i.ends) {
                    (false, Ends::Normal) => near,
                    (false, Ends::Exact) => return None,
                    // The squared ends of cells fall as 1/n, and beside normal ones more slowly.
                    (true, Ends::Exact) if self.level.occupied.len() > FEW_CELLS => {
                        self.n * (i.upper / tau).powi(3)
                    }
                    (true, Ends::Exact) => self.n * (i.upper / tau).powi(2),
                    (true, Ends::Normal) => {
                        let centred = self.centred(tau);
                        centred.max(if self.n >= centred { near } else { 0.0 })
                    }
                }
            }
        };
        let more = needed - self.n;
        (more > 0.0 && more < 1e12).then_some(more)
    }

    /// Events from which on the upper end of a calibrated model is nearly always within τ: 3.2
    /// standard deviations of T. There are more cells then, where [`default_cells`] chose them.
    fn centred(&self, tau: f64) -> f64 {
        let cells = self.level.occupied.iter();
        let (total, v2) = cells.fold((0.0, 0.0), |(total, v2), c| {
            (total + c.n, v2 + (c.v / c.n) * (c.v / c.n))
        });
        // Of weighted events V is w²V and `total` Σw.
        let scale = self.dispersion * self.n / total;
        let centred = scale * 3.2 * (2.0 * v2).sqrt() / (tau * tau);
        let usual = default_cells(self.n as u64) == self.level.cells;
        let grown = |n: f64| match usual {
            true => centred * (default_cells(n as u64) as f64 / self.level.cells as f64).sqrt(),
            false => centred,
        };
        (0..4).fold(centred, |n, _| grown(n.max(self.n)))
    }

    /// T-Cal, Remark 3: some level has T_d − τ² ≥ √(K²/α′ · (2·min(m/n², 1/m) + 5τ²·min(1/n,
    /// 1/m))), K = 2, α′ = α/B. The remark writes the tolerance as c₀n^(−2s/(4s+1)); here that is
    /// τ, and its square, the most that E T_d can be under the composite null, is taken off first,
    /// so that Chebyshev's bound holds at any τ.
    fn theorem_exceeded(&self, tau: f64) -> bool {
        let shared = 4.0 * f64::from(self.tcal.scales.max(1)) / self.alpha;
        let n = self.n;
        self.tcal.levels.iter().any(|l| {
            let m = l.cells as f64;
            let noise = 2.0 * (m / (n * n)).min(1.0 / m) + 5.0 * tau * tau * (1.0 / n).min(1.0 / m);
            l.debiased - tau * tau >= (shared * noise).sqrt()
        })
    }
}

#[cfg(test)]
mod tests;
