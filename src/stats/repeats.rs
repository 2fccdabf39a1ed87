//! Scores that repeat exactly, and whether their outcomes repeat with them.
//!
//! A continuous model gives almost no score twice. If a record is delivered twice and no id shows
//! it, its score and outcome come twice. T_d then counts U² of one event as if two independent
//! events agreed. At m cells this shifts it by about √2·(share of repeats)·√m standard deviations;
//! for a share of 5 % that is .4 at 32 cells and 4.5 at 4096. So fine levels reject a calibrated
//! model, and coarse ones do not. Requests that are scored again for one user have the same effect.
//!
//! **Sample.** Adaptive sampling of values (Flajolet, *On adaptive sampling*, 1990): of the
//! distinct scores those are kept, with their counts, whose hash lies below 2^(64−ℓ). ℓ begins at
//! [`LEVEL_MIN`] and rises while there are more than [`SAMPLED_MAX`]. A score is sampled with all
//! its events or with none, so every repeat of a sampled score is seen. ℓ and counts follow from
//! the set of events, whatever the order of events and merges. With s sampled events and a share r
//! of repeats about s·r are seen: of 5000 events 312 are sampled, and of 2 % repeats 6.
//!
//! **Criterion.** Models repeat scores of their own: rounded ones, trees, saturated ends. The
//! following separates these, and outcomes are suspected to repeat only where none of it speaks
//! against it.
//!
//! * *Weight.* Events count with V = z(1−z), as in T_d. Scores of 0 and 1 have none and are left
//!   out.
//! * *Values.* A score such as a fallback is sampled with all its events or with none, and the
//!   shares would be its own. So a score that has more than a 32nd of the events or of ΣV, or more
//!   than half of the sampled repeats by weight, is left out; its outcomes can be tested as those
//!   of a value. If they are all the same, as those of one record are, it takes more than half of
//!   the repeats and a 16th of ΣV. A sample of such scores alone is kept.
//! * *Chance.* Scores of d decimals or b significant bits (the most that the sample needs) are
//!   multiples of a step δ. Where the distinct scores lie g apart, a share q = δ/g of the multiples
//!   is taken; with λ = −ln(1 − q) events on each, a share 1 − q/λ of them repeats by chance.
//! * *Agreement.* With n events of a score and ΣU their residuals, D = Σ [(ΣU)² − ΣU²] over sampled
//!   scores has mean 0 and variance Σ 2n(n−1)V² if events of one score are independent, and mean Σ
//!   n(n−1)V if they are one event. It decides where independent outcomes would disagree in
//!   [`DISAGREEING_MIN`] pairs or more. With fewer, no outcomes of one score may disagree. And
//!   where more than [`FEW`] of the events repeat, as those of a tree do, independent outcomes must
//!   be unlikely to agree so (Π [zⁿ + (1−z)ⁿ] at most 5 %), or no score comes three times. If
//!   events fall on scores at random and p scores come twice and s once, 2p²/3s come three times; 3
//!   of them must be missing.
//!
//! Agreement alone shows nothing: a score that errs by e has outcomes that agree, and adds n(n−1)e²
//! to D. Where rounding explains the repeats, agreement is such an error, and a few repeats more
//! cannot be distinguished from it.
//!
//! Always: sums with the same events have the same sample. Cost: 2 to 6 ns an event (one pane of
//! millions to a thousand of 8000, on a busy machine), 17 kB an open pane at most. Weighted sums
//! and vectors have none.

use super::algebra::Overflow;
use super::distinct::ScoreCount;
use super::fixed::{ONE, Score, Scored};
use std::borrow::Cow;

/// Least ℓ: one score in sixteen is sampled.
pub const LEVEL_MIN: u32 = 4;

/// Most sampled scores.
pub const SAMPLED_MAX: usize = 512;

/// Share of repeats, by weight, from which they matter: a twentieth of a standard deviation at 1024
/// cells.
pub const SHARE_MIN: f64 = 0.001;

/// Sampled repeats from which they are no accident.
pub const REPEATS_MIN: u64 = 3;

/// Expected number of pairs of one score that disagree if outcomes are independent, from which
/// agreement decides.
pub const DISAGREEING_MIN: f64 = 5.0;

/// Share of repeats, by weight, up to which a tree or a table is unlikely.
const FEW: f64 = 0.1;

/// Share of ΣV beyond which one score is no single record, however alike its outcomes are.
const RECORD_MAX: f64 = 1.0 / 16.0;

/// Share of the events, or of ΣV, beyond which a score whose outcomes differ is a value.
const VALUE_MIN: f64 = 1.0 / 32.0;

/// Normal quantile beyond which outcomes of one score agree too often, 95 %.
const AGREEING: f64 = 1.645;

/// Probability below which outcomes of one score do not agree by luck.
const UNLIKELY: f64 = 0.05;

/// Normal quantile beyond which scores repeat more often than by chance, 99 %.
const BEYOND: f64 = 2.326;

/// Share of repeats, by weight, from which events of one score may count as a cluster: coarse
/// levels then feel them, half a standard deviation at 32 cells.
pub const CLUSTERED_MIN: f64 = 0.05;

/// Neighbours on either side over which the distance of distinct scores is averaged.
const NEIGHBOURS: usize = 8;

/// Share of a step's multiples that scores take, from which any number of repeats is chance.
const TAKEN_MAX: f64 = 0.5;

/// Most sampled events that are buffered before they are counted.
const LOG_MAX: usize = 512;

/// Number of events that are checked together.
const CHOSEN_MAX: usize = 128;

/// A sample of the distinct scores, with their counts.
#[derive(Debug, Clone)]
pub struct Repeats {
    level: u32,
    /// Ascending by score.
    counts: Vec<ScoreCount>,
    /// Sampled events that are not counted yet: twice the score and the outcome.
    log: Vec<u64>,
}

impl Default for Repeats {
    /// A sample of no events.
    fn default() -> Repeats {
        Repeats {
            level: LEVEL_MIN,
            counts: Vec::new(),
            log: Vec::new(),
        }
    }
}

impl Repeats {
    /// The sample of raw scores; scores outside [0, 1] are left out.
    pub fn from_scores(sample: &[(f64, bool)]) -> Repeats {
        let mut all = Repeats::default();
        for &(z, y) in sample {
            if let Ok(score) = Score::new(z) {
                all.observe(&[Scored::new(score, y)]);
            }
        }
        all
    }

    /// From stored counts, ascending by score, as [`Repeats::parts`] gives them; `None` where no
    /// events have them.
    pub fn from_parts(level: u32, counts: Vec<ScoreCount>) -> Option<Repeats> {
        let in_order = counts.windows(2).all(|c| c[0].score < c[1].score);
        let sampled =
            |c: &ScoreCount| c.score <= ONE && is_sampled(c.score, level) && c.n > 0 && c.y <= c.n;
        let sound = (LEVEL_MIN..64).contains(&level)
            && counts.len() <= SAMPLED_MAX
            && in_order
            && counts.iter().all(sampled);
        sound.then_some(Repeats {
            level,
            counts,
            log: Vec::new(),
        })
    }

    /// ℓ, and the counts of the sampled scores, ascending.
    pub fn parts(&self) -> (u32, Cow<'_, [ScoreCount]>) {
        if self.log.is_empty() {
            return (self.level, Cow::Borrowed(&self.counts));
        }
        let mut settled = self.clone();
        settled.settle();
        (settled.level, Cow::Owned(settled.counts))
    }

    /// Adds events.
    #[inline]
    pub(super) fn observe(&mut self, events: &[Scored]) {
        let level = self.level;
        for some in events.chunks(CHOSEN_MAX) {
            let (mut chosen, mut n) = ([some[0]; CHOSEN_MAX], 0);
            for one in some {
                if is_sampled(one.score().fixed(), level) {
                    chosen[n % CHOSEN_MAX] = *one;
                    n += 1;
                }
            }
            let entry = |one: &Scored| one.score().fixed() << 1 | u64::from(one.outcome());
            self.log.extend(chosen[..n].iter().map(entry));
        }
        if self.log.len() >= LOG_MAX {
            self.settle();
        }
    }

    /// Counts the buffered events.
    #[cold]
    fn settle(&mut self) {
        if self.log.is_empty() {
            return;
        }
        let mut log = std::mem::take(&mut self.log);
        log.sort_unstable();
        let mut new: Vec<ScoreCount> = Vec::with_capacity(log.len());
        for &entry in &log {
            let (score, y) = (entry >> 1, entry & 1);
            match new.last_mut() {
                Some(last) if last.score == score => {
                    last.n += 1;
                    last.y += y;
                }
                _ => new.push(ScoreCount { score, n: 1, y }),
            }
        }
        log.clear();
        self.log = log;
        self.add(&new);
    }

    /// Adds counts, ascending by score. They stay within the number of events, which is checked.
    fn add(&mut self, new: &[ScoreCount]) {
        let old = std::mem::take(&mut self.counts);
        self.counts.reserve(old.len() + new.len());
        let (mut old, mut new) = (old.into_iter().peekable(), new.iter().peekable());
        loop {
            let next = match (old.peek(), new.peek()) {
                (None, None) => break,
                (Some(a), Some(b)) if a.score == b.score => {
                    let (a, b) = (*a, **b);
                    old.next();
                    new.next();
                    ScoreCount {
                        score: a.score,
                        n: a.n.saturating_add(b.n),
                        y: a.y.saturating_add(b.y),
                    }
                }
                (Some(a), b) if b.is_none_or(|b| a.score < b.score) => {
                    let a = *a;
                    old.next();
                    a
                }
                (_, Some(b)) => {
                    let b = **b;
                    new.next();
                    b
                }
                (Some(_), None) => break,
            };
            self.counts.push(next);
        }
        while self.counts.len() > SAMPLED_MAX {
            self.raise(self.level + 1);
        }
    }

    fn raise(&mut self, level: u32) {
        if level > self.level {
            self.level = level;
            self.counts.retain(|c| is_sampled(c.score, level));
        }
    }

    /// Adds the sample of other events.
    pub(super) fn merge(&mut self, other: &Repeats) {
        self.settle();
        let (level, counts) = other.parts();
        self.raise(level);
        if self.level == level {
            return self.add(&counts);
        }
        let level = self.level;
        let sampled = counts.iter().filter(|c| is_sampled(c.score, level));
        let sampled: Vec<ScoreCount> = sampled.copied().collect();
        self.add(&sampled);
    }

    /// Takes out the sample of events that were added before; ℓ stays.
    pub(super) fn retract(&mut self, other: &Repeats) -> Result<(), Overflow> {
        self.settle();
        let (_, counts) = other.parts();
        for c in counts.iter().filter(|c| is_sampled(c.score, self.level)) {
            let at = self.counts.binary_search_by_key(&c.score, |c| c.score);
            let ours = &mut self.counts[at.map_err(|_| Overflow)?];
            ours.n = ours.n.checked_sub(c.n).ok_or(Overflow)?;
            ours.y = ours.y.checked_sub(c.y).ok_or(Overflow)?;
        }
        self.counts.retain(|c| c.n > 0);
        Ok(())
    }

    /// Estimated number of distinct scores between 0 and 1: `information`, the ΣV of all events,
    /// divided by that of a sampled score. If a value has most of ΣV and is not sampled this is too
    /// large, so it is cut at twice the estimate by the number of sampled scores.
    pub fn distinct(&self, information: f64) -> f64 {
        let (level, counts) = self.parts();
        let inner = counts.iter().filter(|c| has_variance(c));
        let weights = inner.map(|c| c.n as f64 * variance_of(c));
        let (sampled, weight) = weights.fold((0.0, 0.0), |(n, sum), v| (n + 1.0, sum + v));
        if sampled == 0.0 {
            return 0.0;
        }
        (information * (sampled / weight)).min(2.0 * sampled * 2f64.powi(level as i32))
    }

    /// How often scores repeat among `n` events with this ΣV; `None` where no score with variance
    /// is sampled.
    pub fn measure(&self, n: u64, information: f64) -> Option<RepeatedScores> {
        let (level, counts) = self.parts();
        let inner = counts.iter().copied().filter(has_variance);
        let counts = without_values(inner.collect(), n, information);
        let (mut events, mut repeats, mut weight, mut repeated) = (0, 0, 0.0, 0.0);
        let (mut d, mut variance, mut disagreeing, mut by_chance) = (0.0, 0.0, 0.0, 0.0);
        let (mut unanimous, mut by_luck) = (true, 0.0);
        let (mut once, mut twice, mut more) = (0.0, 0.0, 0.0);
        let steps = Steps::of(&counts);
        for (i, c) in counts.iter().enumerate() {
            let z = c.score as f64 / ONE as f64;
            let (n, y, v) = (c.n as f64, c.y as f64, z * (1.0 - z));
            events += c.n;
            repeats += c.n - 1;
            by_chance += n * steps.repeated(&counts, i, level);
            weight += n * v;
            repeated += (n - 1.0) * v;
            let squares = y * (1.0 - z).powi(2) + (n - y) * z * z;
            d += (y - n * z).powi(2) - squares;
            variance += 2.0 * n * (n - 1.0) * v * v;
            disagreeing += n * (n - 1.0) * v;
            unanimous &= c.y == 0 || c.y == c.n;
            if c.n > 1 {
                by_luck += (z.powf(n) + (1.0 - z).powf(n)).ln();
            }
            match c.n {
                1 => once += 1.0,
                2 => twice += 1.0,
                _ => more += 1.0,
            }
        }
        let never_thrice = more == 0.0 && 2.0 * twice * twice >= 9.0 * once;
        let unlike_a_tree = repeated < FEW * weight || by_luck <= UNLIKELY.ln() || never_thrice;
        let decides = disagreeing >= DISAGREEING_MIN;
        (weight > 0.0).then(|| RepeatedScores {
            share: repeats as f64 / events as f64,
            weighted_share: repeated / weight,
            repeats,
            agreement: decides.then(|| d / variance.sqrt()),
            by_chance,
            alike: unanimous && unlike_a_tree,
        })
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<ScoreCount>() + self.log.capacity() * size_of::<u64>()
    }
}

impl PartialEq for Repeats {
    fn eq(&self, other: &Repeats) -> bool {
        self.parts() == other.parts()
    }
}

/// How often scores of a sample repeat exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RepeatedScores {
    /// Share of events whose score another event had before, in [0, 1); here and below without
    /// scores of 0 and 1 and without the values that the module leaves out.
    pub share: f64,
    /// This share with events weighted by V.
    pub weighted_share: f64,
    /// Repeats that were seen in the sample.
    pub repeats: u64,
    /// D over its standard deviation for independent outcomes; `None` where too few pairs could
    /// disagree.
    pub agreement: Option<f64>,
    /// Repeats of the sample that are to be expected because scores are rounded.
    pub by_chance: f64,
    /// No outcomes of one score disagree, and repeats are unlike those of a tree; counts where
    /// `agreement` is not known.
    pub alike: bool,
}

impl RepeatedScores {
    /// Whether outcomes seem to repeat with their scores, as those of records that are delivered
    /// twice do. Levels of 64 cells and more then say nothing of calibration.
    pub fn is_suspicious(&self) -> bool {
        let matters = self.repeats >= REPEATS_MIN && self.weighted_share > SHARE_MIN;
        let alike = self.agreement.map_or(self.alike, |z| z > AGREEING);
        matters && self.are_beyond_chance() && alike
    }

    /// Whether events of one score are taken as a cluster: many are, and outcomes of one score, or
    /// of one finest cell, agree by `agreement` standard deviations of independent ones.
    pub fn are_clusters(&self, agreement: f64) -> bool {
        let agree = self.are_beyond_chance() && agreement > AGREEING;
        self.repeats >= REPEATS_MIN
            && self.weighted_share >= CLUSTERED_MIN
            && (agree || self.is_suspicious())
    }

    fn are_beyond_chance(&self) -> bool {
        let (seen, chance) = (self.repeats as f64, self.by_chance);
        // A quarter for what is not known of the density of scores.
        seen - 1.25 * chance > BEYOND * chance.sqrt()
    }
}

/// The steps that the sampled scores are multiples of.
struct Steps {
    /// 10^−d in units of 2⁻³², with the fewest decimals d ≤ 9 that all have; 1 where they have
    /// more, which 2⁻³² does not distinguish.
    decimal: f64,
    /// The most significant bits that a score has.
    bits: u32,
}

impl Steps {
    fn of(counts: &[ScoreCount]) -> Steps {
        let tens = (1..=9).map(|d| 10u64.pow(d));
        let all = |ten: &u64| counts.iter().all(|c| is_multiple(c.score, *ten));
        let significant = |c: &ScoreCount| match c.score {
            0 => 0,
            z => u64::BITS - z.leading_zeros() - z.trailing_zeros(),
        };
        Steps {
            decimal: tens
                .into_iter()
                .find(all)
                .map_or(1.0, |ten| ONE as f64 / ten as f64),
            bits: counts.iter().map(significant).max().unwrap_or(0),
        }
    }

    /// The share of the events near the score of index `i` that repeat a score by chance.
    fn repeated(&self, counts: &[ScoreCount], i: usize, level: u32) -> f64 {
        let (low, high) = (
            i.saturating_sub(NEIGHBOURS),
            (i + NEIGHBOURS).min(counts.len() - 1),
        );
        if low == high {
            return 1.0;
        }
        let width = counts[high].score - counts[low].score;
        let apart = width as f64 / (high - low) as f64 / 2f64.powi(level as i32);
        let length = u64::BITS - counts[i].score.leading_zeros();
        let binary = 2f64.powi(length as i32 - self.bits as i32).max(1.0);
        let taken = self.decimal.max(binary) / apart;
        match taken {
            q if q > TAKEN_MAX => 1.0,
            q => 1.0 + q / (1.0 - q).ln(),
        }
    }
}

fn has_variance(c: &ScoreCount) -> bool {
    c.score > 0 && c.score < ONE
}

/// V of a score.
fn variance_of(c: &ScoreCount) -> f64 {
    let z = c.score as f64 / ONE as f64;
    z * (1.0 - z)
}

/// The counts without values, unless all are values.
fn without_values(counts: Vec<ScoreCount>, n: u64, information: f64) -> Vec<ScoreCount> {
    let repeated = |c: &ScoreCount| (c.n - 1) as f64 * variance_of(c);
    let all: f64 = counts.iter().map(repeated).sum();
    let is_value = |c: &ScoreCount| {
        let disagrees = c.y > 0 && c.y < c.n;
        let share = c.n as f64 * variance_of(c) / information;
        let most = 2.0 * repeated(c) > all;
        let frequent = share > VALUE_MIN || c.n as f64 > VALUE_MIN * n as f64;
        disagrees && (most || frequent) || most && share > RECORD_MAX
    };
    let others: Vec<ScoreCount> = counts.iter().filter(|c| !is_value(c)).copied().collect();
    match others.is_empty() {
        true => counts,
        false => others,
    }
}

/// Whether a score is in the sample of level ℓ.
#[inline]
fn is_sampled(score: u64, level: u32) -> bool {
    // Fibonacci hashing (Knuth, volume 3, 6.4): every bit of the score moves the upper bits.
    let h = score.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h < 1 << (64 - level)
}

/// Whether a score is a multiple of 1/`ten`, as near as it is kept.
fn is_multiple(score: u64, ten: u64) -> bool {
    let rest = (score * ten) & (ONE - 1);
    // Half a unit of rounding.
    rest <= ten / 2 || rest >= ONE - ten / 2
}

#[cfg(test)]
mod tests;
