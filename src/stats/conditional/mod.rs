//! The null of one sample given its scores: formulas where they hold, draws where they do not.
//!
//! Formulas for a level need enough events. The Pearson type III law of T_d is fitted to three
//! moments. If positives are few, the true law is one huge atom (no two positives in a cell) with a
//! thin tail, and no smooth law fits it. The criterion between the two is the shape parameter of
//! the fitted law,
//!
//! ```text
//! shape = 4κ₂³/κ₃²          (4/γ², γ the skewness of T_d)
//! ```
//!
//! and not the number of events or of expected pairs. κ₂ weighs a cell by the square of its mean
//! variance whatever its count, so one lone cell of twenty events at the edge of the axis may carry
//! as much variance as a cell of twenty thousand; that variance then comes from an event of
//! probability 10⁻⁴. In a cell with many expected positives T_d is a χ² with one degree, of shape
//! ½; m of them have shape m/2; cells where pairs are rare have 4 times the expected number of
//! pairs. So a shape below [`SHAPE_MIN`] is one that no well-filled cell can have.
//!
//! The other tests are normal or χ² as sums over all events. They need the variance ΣV of Σy to be
//! at least [`INFORMATION_MIN`]. ΣV is the expected number of the rarer outcome, up to a factor
//! between 1 and 2. A direction f of a score test may rest on far fewer outcomes: on
//!
//! ```text
//! (ΣVf²)²/ΣVf⁴          outcomes of equal weight; ΣV for f = 1
//! ```
//!
//! With 1300 scores below .02 that is .2 to .3 for the last of three directions, and χ² then has
//! two to three times its level at .01 and up to eighteen times at .0005. So formulas need
//! [`needed`] outcomes behind every direction, the more the smaller α is. Over 540 layouts of
//! scores a score test then rejects at most 1.3 times as often as nominal at .05, 1.5 times at .01
//! and 1.9 times at .001, where no more than [`EFFECTIVE_KEPT`] are required. The combination uses
//! the score test at a third of α; with the rates there, the combination rejects some 1.2, 1.3 and
//! 1.4 times as often as nominal.
//!
//! | ΣV | levels have the shape, directions the outcomes | null |
//! |---|---|---|
//! | ≥ 10 | yes | formulas |
//! | ≤ 100 | no | drawn |
//! | < 10 | either | drawn |
//! | > 100 | no | formulas, without the levels and directions that do not have them |
//!
//! Where only directions lack outcomes and α asks for more than [`HITS_MAX`] outcomes in all
//! replicates, formulas serve without these directions: at α = .001 this concerns most windows of a
//! few hundred events, and 10⁴ replicates of 50 outcomes take some 12 ms, over a hundred times an
//! evaluation by formulas.
//!
//! The criterion depends on the scores alone, so choosing by it costs no validity. All statistics
//! are drawn together ([`draw`]), so joint p-values are exact too. Events of one common weight are
//! drawn as if they had none. Events of several weights cannot be drawn from cells: levels without
//! the shape and directions without the outcomes are left out. Below the least information, then
//! (Σw²V)²/Σw⁴V, no law holds and only Bennett's bound is left.

mod draw;
pub(crate) mod hits;
mod lanes;
pub(crate) mod rank;
mod sample;

pub use draw::Statistic;

use super::columns::total;
use super::estimate::Estimate;
use super::joint;
use super::levels::Level;
use super::null::Moments;
use super::smooth::needed;
use draw::Drawn;

/// Least shape 4κ₂³/κ₃² of the law of a level for which formulas are trusted.
pub const SHAPE_MIN: f64 = 0.25;

/// Least ΣV for formulas.
pub const INFORMATION_MIN: f64 = 10.0;

/// Greatest ΣV at which outcomes are drawn: a replicate has up to 2ΣV hits.
pub const INFORMATION_DRAWN: f64 = 100.0;

/// Most outcomes in all replicates, as ΣV times their number, that are drawn for the sake of a
/// direction alone: some 5 ms.
const HITS_MAX: f64 = 2e5;

/// Most outcomes that are required of a direction where outcomes cannot be drawn: a test whose
/// level is less exact is better than none.
const EFFECTIVE_KEPT: f64 = 20.0;

/// The estimates of one level and their null moments.
#[derive(Debug, Clone, Copy)]
pub struct LevelTerms {
    /// T_d.
    pub debiased: f64,
    /// T_b.
    pub plug_in: f64,
    /// Exact null moments of T_d given the scores.
    pub moments: Moments,
    /// Null correlation with the level before it.
    pub correlation: f64,
}

impl LevelTerms {
    /// T_d of outcomes with φ times the variance of independent ones: (1/n) Σ [(ΣU)²/φ − ΣU²]/N.
    fn debiased_under(&self, dispersion: f64) -> f64 {
        self.debiased - self.less(dispersion)
    }

    fn less(&self, dispersion: f64) -> f64 {
        (1.0 - 1.0 / dispersion) * self.plug_in
    }
}

/// The null of the levels of one sample.
#[derive(Debug, Clone)]
pub struct Null {
    terms: Vec<LevelTerms>,
    trusted: Vec<bool>,
    /// The p-value of each level.
    p_values: Vec<f64>,
    n: f64,
    information: f64,
    kept: f64,
    dispersion: f64,
    drawn: Option<Drawn>,
}

/// What the null of a sample depends on.
pub struct Asked<'a> {
    /// Levels, coarse to fine.
    pub levels: &'a [Level],
    /// The finest cells; those of all levels are unions of them.
    pub leaves: &'a Level,
    /// The level of the interval, if its cells are unions of leaves too.
    pub interval: Option<&'a Level>,
    /// Level of the test, in (0, 1).
    pub alpha: f64,
    /// Seed of the draws.
    pub seed: u64,
    /// φ ≥ 1: the variance of outcomes as a multiple of that of independent ones.
    pub dispersion: f64,
    /// Number of tests for which the p-values are adjusted afterwards.
    pub family: u32,
    /// The fewest outcomes that a direction of the score tests rests on; infinite without score
    /// tests.
    pub effective: f64,
}

impl Null {
    /// The null for the levels with these terms.
    pub fn of(terms: Vec<LevelTerms>, asked: &Asked<'_>) -> Null {
        let leaves = asked.leaves;
        let information = leaves.information();
        let trusted: Vec<bool> = terms.iter().map(|p| trusts(&p.moments)).collect();
        let silent = |p: &LevelTerms| p.moments.variance <= 0.0;
        let sound = terms.iter().zip(&trusted).all(|(p, &t)| t || silent(p));
        let weak = asked.effective < needed(asked.alpha, asked.family)
            && information * replicates(asked.alpha) as f64 <= HITS_MAX;
        let weight = leaves.common_weight();
        let draws = weight.is_some()
            && information > 0.0
            && (information < INFORMATION_MIN
                || ((!sound || weak) && information <= INFORMATION_DRAWN));
        let plain = |level: &'_ Level| match weight {
            Some(weight) if draws && level.is_weighted() => Some(level.without_weight(weight)),
            _ => None,
        };
        let own = plain(leaves);
        let leaves = own.as_ref().unwrap_or(leaves);
        let n = total(&leaves.occupied.n);
        let levels: Option<Vec<Level>> = asked.levels.iter().map(plain).collect();
        let levels = levels.as_deref().unwrap_or(asked.levels);
        let interval = asked.interval.and_then(plain);
        let interval = interval.as_ref().or(asked.interval);
        let draw = |count: usize| Drawn::of(leaves, levels, interval, count, asked.seed);
        let drawn = draws.then(|| {
            let first = replicates(asked.alpha.max(FIRST));
            let mut drawn = draw(first);
            let all = replicates(asked.alpha);
            if all > first && drawn.ranks.least_p_value() <= 2.0 * asked.alpha + 0.01 {
                drawn = draw(all);
            }
            let all = in_family(asked.alpha, asked.family);
            if drawn.ranks.are_too_few(all) {
                drawn = draw(all);
            }
            drawn
        });
        let null = Null {
            terms,
            trusted,
            p_values: Vec::new(),
            n,
            information,
            kept: needed(asked.alpha, asked.family).min(EFFECTIVE_KEPT),
            dispersion: asked.dispersion,
            drawn,
        };
        null.dispersed(asked.dispersion)
    }

    /// The same null with another dispersion.
    pub fn dispersed(self, dispersion: f64) -> Null {
        let null = Null { dispersion, ..self };
        let p_values = (0..null.terms.len()).map(|level| null.law_of(level));
        Null {
            p_values: p_values.collect(),
            ..null
        }
    }

    /// Number of replicates; `None` where formulas serve.
    pub fn replicates(&self) -> Option<u32> {
        self.drawn.as_ref().map(|d| d.ranks.replicates() as u32)
    }

    /// Whether no p-value can be had: nothing is drawn and formulas do not hold.
    pub fn is_silent(&self) -> bool {
        self.drawn.is_none() && self.information < INFORMATION_MIN
    }

    /// The fewest outcomes that a direction of a score test may rest on: 0 if outcomes are drawn.
    pub fn least_effective(&self) -> f64 {
        match self.drawn {
            Some(_) => 0.0,
            None => self.kept,
        }
    }

    /// Whether a level takes part: it has variance, and its law is drawn or trusted.
    pub fn speaks(&self, level: usize) -> bool {
        let has_variance = self.terms[level].moments.variance > 0.0;
        has_variance && (self.drawn.is_some() || (self.trusted[level] && !self.is_silent()))
    }

    /// Whether the law of a level by its exact moments is used: neither positives nor negatives are
    /// few.
    pub fn fits(&self, level: usize) -> bool {
        self.drawn.is_none() && self.trusted[level] && !self.is_silent()
    }

    /// p-value of a level; 1 for a level that does not take part, but 0 if its outcomes are
    /// impossible under the null.
    pub fn level_p_value(&self, level: usize) -> f64 {
        self.p_values[level]
    }

    /// The p-value of a level by its law.
    fn law_of(&self, level: usize) -> f64 {
        let terms = &self.terms[level];
        if terms.moments.variance <= 0.0 {
            return terms.moments.survival(terms.debiased);
        }
        match &self.drawn {
            Some(drawn) => {
                let less = self.n * terms.less(self.dispersion);
                drawn.ranks.p_value(level, |observed| observed - less)
            }
            None if self.speaks(level) => terms
                .moments
                .survival(terms.debiased_under(self.dispersion)),
            None => 1.0,
        }
    }

    /// p-value of the smallest p-value of the levels in a range that take part; `None` where none
    /// does.
    pub fn joint_p_value(&self, range: std::ops::Range<usize>) -> Option<f64> {
        let certain = range
            .clone()
            .map(|b| self.level_p_value(b))
            .fold(1.0, f64::min);
        let kept: Vec<usize> = range.filter(|&b| self.speaks(b)).collect();
        if certain <= 0.0 {
            return Some(0.0);
        }
        let first = *kept.first()?;
        if let Some(drawn) = &self.drawn {
            let less = |&b: &usize| (b, self.n * self.terms[b].less(self.dispersion));
            return Some(drawn.ranks.joint_p_value(kept.iter().map(less)));
        }
        // Along the chain, a gap has the product of its correlations.
        let (mut chain, mut before) = (Vec::with_capacity(kept.len()), first);
        for &b in &kept[1..] {
            let steps = self.terms[before + 1..=b].iter().map(|p| p.correlation);
            chain.push(steps.product());
            before = b;
        }
        let smallest = kept
            .iter()
            .map(|&b| self.level_p_value(b))
            .fold(1.0, f64::min);
        Some(joint::min_p_value(smallest, &chain))
    }

    /// The p-value of another statistic: the drawn one, else that of its `formula`; `None` without
    /// a formula, or where no p-value can be had. A drawn p-value is that of `share` times the
    /// observed statistic: 1/φ for a quadratic one and 1/√φ for a linear one.
    pub fn p_value(&self, statistic: Statistic, share: f64, formula: Option<f64>) -> Option<f64> {
        match &self.drawn {
            Some(drawn) => formula.map(|_| drawn.p_value(statistic, share)),
            None if self.is_silent() => None,
            None => formula,
        }
    }

    /// The p-value of the unbiased estimate T at the interval's level; `None` where no law is known
    /// for it.
    pub fn zero_p_value(&self, e: &Estimate) -> Option<f64> {
        if e.null.variance <= 0.0 {
            return Some(e.null_p_value());
        }
        // Subtracts the mean that dispersion gives T, and divides by its spread.
        let t = (e.t - (self.dispersion - 1.0) * e.excess) / self.dispersion;
        match &self.drawn {
            Some(drawn) => {
                let share = if e.t > 0.0 { (t / e.t).min(1.0) } else { 1.0 };
                Some(drawn.p_value(Statistic::Interval, share))
            }
            None => (trusts(&e.null) && !self.is_silent()).then(|| e.null.survival(t)),
        }
    }
}

/// Whether the Pearson law of these moments has a shape of at least [`SHAPE_MIN`].
pub(crate) fn trusts(m: &Moments) -> bool {
    let variance = m.variance;
    variance > 0.0 && 4.0 * variance * variance * variance >= SHAPE_MIN * m.third * m.third
}

/// Most replicates of a first round.
const REPLICATES_MAX: f64 = 9_999.0;
/// Most replicates of all: no drawn p-value is below 1e-5, so none rejects in a family of more than
/// α·10⁵ tests, or at an α below 1e-5.
const EXTENDED_MAX: f64 = 99_999.0;

/// Least α for the number of replicates that are drawn first. For a smaller α more are drawn if
/// some p-value is at most 2α + .01: otherwise no combination of p-values is below α.
const FIRST: f64 = 0.05;

/// Number of replicates: 1000 at α = 0.05, more for smaller α, at most [`REPLICATES_MAX`].
pub(crate) fn replicates(alpha: f64) -> usize {
    (50.0 / alpha).ceil().clamp(999.0, REPLICATES_MAX) as usize
}

/// Number of replicates if a statistic exceeds all of the first [`replicates`], and the smallest
/// p-value of `family` tests is multiplied by their number. Drawing on only then is valid: a
/// p-value at the floor of the replicates so far is a rank among all replicates afterwards (Besag,
/// Clifford, *Sequential Monte Carlo p-values*, 1991).
pub(crate) fn in_family(alpha: f64, family: u32) -> usize {
    let wanted = 4.0 * f64::from(family) / alpha;
    (wanted.ceil().min(EXTENDED_MAX) as usize).max(replicates(alpha))
}

#[cfg(test)]
mod tests;
