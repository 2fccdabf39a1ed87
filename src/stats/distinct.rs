//! The distinct scores of a sample while they are few, for the exact binomial test.
//!
//! A sorted list, not a map: there are at most [`DISTINCT_MAX`], so it fits in a few cache lines.
//! When there are more, the list is discarded permanently. Whether the union of two sets exceeds
//! the cap does not depend on the order of merging, so neither does the list.

use super::algebra::Overflow;
use super::fixed::Score;

/// Most distinct scores that are kept; with more the exact test is off.
pub const DISTINCT_MAX: usize = 64;

/// Events of one distinct score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ScoreCount {
    /// The score in units of 2⁻³².
    pub score: u64,
    /// Events, at least 1.
    pub n: u64,
    /// Positive outcomes among them.
    pub y: u64,
}

/// Counts by score, ascending; `None` permanently once there were more than [`DISTINCT_MAX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distinct(Option<Vec<ScoreCount>>);

impl Default for Distinct {
    /// No scores.
    fn default() -> Distinct {
        Distinct(Some(Vec::new()))
    }
}

impl Distinct {
    /// The counts, ascending by score, or `None` when there were too many scores.
    pub fn counts(&self) -> Option<&[ScoreCount]> {
        self.0.as_deref()
    }

    /// From stored counts, strictly ascending by score; `None` for a list that had been discarded.
    pub fn from_counts(counts: Option<Vec<ScoreCount>>) -> Distinct {
        Distinct(counts.filter(|c| c.len() <= DISTINCT_MAX))
    }

    /// Adds one event.
    pub(super) fn observe(&mut self, score: Score, outcome: bool) -> Result<(), Overflow> {
        self.add(ScoreCount {
            score: score.fixed(),
            n: 1,
            y: u64::from(outcome),
        })
    }

    /// Adds all of `other`.
    pub(super) fn merge(&mut self, other: &Distinct) -> Result<(), Overflow> {
        match &other.0 {
            None => self.0 = None,
            Some(counts) => counts.iter().try_for_each(|c| self.add(*c))?,
        }
        Ok(())
    }

    /// Takes out `other`, merged before; a discarded list stays discarded.
    pub(super) fn retract(&mut self, other: &Distinct) -> Result<(), Overflow> {
        let (Some(counts), Some(gone)) = (&mut self.0, &other.0) else {
            return Ok(());
        };
        for c in gone {
            let at = counts.binary_search_by_key(&c.score, |c| c.score);
            let ours = &mut counts[at.map_err(|_| Overflow)?];
            ours.n = ours.n.checked_sub(c.n).ok_or(Overflow)?;
            ours.y = ours.y.checked_sub(c.y).ok_or(Overflow)?;
        }
        counts.retain(|c| c.n > 0);
        Ok(())
    }

    fn add(&mut self, c: ScoreCount) -> Result<(), Overflow> {
        let Some(counts) = &mut self.0 else {
            return Ok(());
        };
        match counts.binary_search_by_key(&c.score, |c| c.score) {
            Ok(at) => {
                let ours = &mut counts[at];
                ours.n = ours.n.checked_add(c.n).ok_or(Overflow)?;
                ours.y = ours.y.checked_add(c.y).ok_or(Overflow)?;
            }
            Err(_) if counts.len() == DISTINCT_MAX => self.0 = None,
            Err(at) => counts.insert(at, c),
        }
        Ok(())
    }
}
