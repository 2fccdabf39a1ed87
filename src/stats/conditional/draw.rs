//! Statistics of outcomes that are drawn from the scores, and the ranks of the observed ones among
//! them.
//!
//! The cost of a replicate grows with the expected number of rare outcomes, at most 2ΣV: hits are
//! drawn ([`super::hits`]), and each changes every statistic by a known step ([`super::sample`]).
//! Where leaves are few compared with hits, 64 replicates at once take a third of the time
//! ([`super::lanes`]).
//!
//! All statistics of one replicate come from the same hits, so their joint law is drawn too. The
//! observed statistics are computed by the same steps, so ties with drawn ones are equal up to
//! rounding.

use super::super::levels::Level;
use super::super::rng::Rng;
use super::hits::{Hits, LANES};
use super::lanes::Lanes;
use super::rank::Ranks;
use super::sample::{Sample, observed_hits, rare_outcomes};

/// Leaves for each hit of a replicate, up to which 64 replicates at once take less time: a
/// sixteenth less with about 8 leaves, but half as much again with about 31.
const LEAVES_A_HIT: f64 = 10.0;

/// A statistic that has one value a replicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// T of the interval's level.
    Interval,
    /// Score test in the smooth directions.
    Smooth,
    /// Cox's score test: its directions are 1 and ln z − ln(1−z).
    Cox,
    /// Kolmogorov–Smirnov: the largest absolute partial sum of U in order of score.
    Cumulative,
    /// Kuiper: the range of the partial sums of U in order of score.
    Kuiper,
    /// |ΣU|.
    InTheLarge,
    /// |Σ(U² − V)|.
    Spiegelhalter,
}

/// Observed and drawn statistics: one for each level, then those of [`Statistic`].
#[derive(Debug, Clone)]
pub struct Drawn {
    levels: usize,
    /// Observed values and replicates of all statistics.
    pub ranks: Ranks,
}

impl Drawn {
    /// Draws `replicates` sets of outcomes for the scores of `leaves`. The cells of `levels` and
    /// `interval` are unions of leaves; nothing is weighted.
    pub fn of(
        leaves: &Level,
        levels: &[Level],
        interval: Option<&Level>,
        replicates: usize,
        seed: u64,
    ) -> Drawn {
        let mut sample = Sample::of(leaves, levels, interval);
        let mut observed = Vec::new();
        sample.statistics(&observed_hits(leaves), &mut observed);
        let (mut rng, mut hits) = (Rng::new(seed), Hits::of(rare_outcomes(leaves), 0.5));
        let few = sample.leaves.len() as f64 <= LEAVES_A_HIT * hits.expected();
        let ranks = if few {
            let mut columns = vec![Vec::with_capacity(replicates); observed.len()];
            let mut lanes = Lanes::default();
            for drawn in (0..replicates).step_by(LANES) {
                let all = lanes.statistics(&sample, hits.next_words(&mut rng));
                for (column, each) in columns.iter_mut().zip(all) {
                    column.extend_from_slice(&each[..LANES.min(replicates - drawn)]);
                }
            }
            Ranks::new(observed, columns)
        } else {
            let draw = |out: &mut Vec<f64>| sample.statistics(hits.next(&mut rng), out);
            Ranks::of(observed, replicates, draw)
        };
        Drawn {
            levels: levels.len(),
            ranks,
        }
    }

    /// p-value of a statistic: (1 + #{drawn ≥ `scale`·observed})/(R + 1), with R replicates.
    pub fn p_value(&self, statistic: Statistic, scale: f64) -> f64 {
        let at = self.position(statistic);
        self.ranks.p_value(at, |observed| scale * observed)
    }

    fn position(&self, statistic: Statistic) -> usize {
        let further = match statistic {
            Statistic::Interval => 0,
            Statistic::Smooth => 1,
            Statistic::Cox => 2,
            Statistic::Cumulative => 3,
            Statistic::Kuiper => 4,
            Statistic::InTheLarge => 5,
            Statistic::Spiegelhalter => 6,
        };
        self.levels + further
    }
}
