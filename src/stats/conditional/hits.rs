//! Rare outcomes drawn cell by cell: which leaves are hit, for 64 replicates at a time.
//!
//! Leaves are grouped by the probability r of their rarer outcome: in (2^−(k+1), 2^−k] each. Both
//! ways to draw a group are exact, and each group is drawn in the one that takes less time:
//!
//! * *by words*, where outcomes are not very rare: a uniform number of 64 bits is below r·2⁶⁴ if
//!   its first bit that differs is 0. The bits of 64 numbers are drawn place by place, a word for
//!   each place, until all have differed: after some eight words;
//! * *by jumps*, where they are: the events of the group are repeated 64 times, once for each
//!   replicate. Geometric jumps visit each with the probability 2^−k, and a visit is a hit with the
//!   probability r·2^k. A hit takes at most two visits on average.

use crate::ln::ln;
use crate::rng::Rng;

/// Replicates that are drawn together, a bit of a word each.
pub(crate) const LANES: usize = 64;

/// The least 2^−k of a group that is drawn by words: there an event of 64 replicates takes about as
/// long by words as by jumps.
const BY_WORDS: f64 = 1.0 / 64.0;

/// Draws the hits of replicates.
#[derive(Debug)]
pub(crate) struct Hits {
    by_words: Vec<Group>,
    by_jumps: Vec<Group>,
    /// Expected number of hits in a replicate.
    expected: f64,
    words: Vec<(u32, u64)>,
    lanes: Vec<Vec<u32>>,
    /// Number of lanes that [`Hits::next`] has returned.
    used: usize,
}

impl Hits {
    /// The hits of leaves. Each leaf is given by the probability of its rarer outcome, at most
    /// `most`, and its number of events. A leaf of probability 0 is never hit.
    pub fn of(leaves: impl Iterator<Item = (f64, f64)>, most: f64) -> Hits {
        let groups = Group::all(leaves, most);
        let expected = groups.iter().map(Group::expected).sum();
        let (by_words, by_jumps) = groups.into_iter().partition(|g| g.bound >= BY_WORDS);
        Hits {
            by_words,
            by_jumps,
            expected,
            words: Vec::new(),
            lanes: vec![Vec::new(); LANES],
            used: LANES,
        }
    }

    /// Expected number of hits in a replicate.
    pub fn expected(&self) -> f64 {
        self.expected
    }

    /// The hits of the next 64 replicates: positions of leaves, each with a bit for each replicate
    /// that has a hit there. A leaf with hits of several events occurs several times.
    pub fn next_words(&mut self, rng: &mut Rng) -> &[(u32, u64)] {
        self.words.clear();
        for group in &self.by_words {
            group.draw_words(rng, &mut self.words);
        }
        for group in &self.by_jumps {
            group.draw_jumps(rng, &mut self.words);
        }
        &self.words
    }

    /// The hits of the next replicate: the position of the leaf for each.
    pub fn next(&mut self, rng: &mut Rng) -> &[u32] {
        if self.used == LANES {
            self.used = 0;
            self.next_words(rng);
            self.lanes.iter_mut().for_each(Vec::clear);
            for (leaf, mut word) in self.words.iter().copied() {
                while word != 0 {
                    self.lanes[word.trailing_zeros() as usize % LANES].push(leaf);
                    word &= word - 1;
                }
            }
        }
        self.used += 1;
        &self.lanes[self.used - 1]
    }
}

/// Leaves whose rarer outcome has a probability in (bound/2, bound].
#[derive(Debug)]
struct Group {
    bound: f64,
    /// 1/ln(1 − bound).
    jump: f64,
    leaves: Vec<u32>,
    /// Of each leaf, the probability of its rarer outcome divided by `bound`.
    keep: Vec<f64>,
    /// Number of events up to and including each leaf.
    ends: Vec<u64>,
}

impl Group {
    fn all(leaves: impl Iterator<Item = (f64, f64)>, most: f64) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (i, (rare, n)) in leaves.enumerate() {
            if rare <= 0.0 {
                continue;
            }
            let bound = rare.log2().ceil().exp2().min(most);
            let at = groups.iter().position(|g| g.bound == bound);
            let at = at.unwrap_or_else(|| {
                groups.push(Group {
                    bound,
                    jump: 1.0 / (-bound).ln_1p(),
                    leaves: Vec::new(),
                    keep: Vec::new(),
                    ends: Vec::new(),
                });
                groups.len() - 1
            });
            let group = &mut groups[at];
            let before = group.events();
            group.leaves.push(i as u32);
            group.keep.push(rare / bound);
            group.ends.push(before + n as u64);
        }
        groups
    }

    fn events(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn expected(&self) -> f64 {
        let (mut sum, mut begin) = (0.0, 0);
        for (keep, &end) in self.keep.iter().zip(&self.ends) {
            sum += keep * self.bound * (end - begin) as f64;
            begin = end;
        }
        sum
    }

    /// Adds the hits of 64 replicates, event by event.
    fn draw_words(&self, rng: &mut Rng, words: &mut Vec<(u32, u64)>) {
        let mut begin = 0;
        for ((&leaf, keep), &end) in self.leaves.iter().zip(&self.keep).zip(&self.ends) {
            let last = last_below(keep * self.bound);
            for _ in begin..end {
                words.push((leaf, at_most(last, rng)));
            }
            begin = end;
        }
    }

    /// Adds the hits of 64 replicates by jumps: trial t is event ⌊t/64⌋ of replicate t mod 64.
    fn draw_jumps(&self, rng: &mut Rng, words: &mut Vec<(u32, u64)>) {
        let total = self.events() * LANES as u64;
        let (mut trial, mut leaf) = (0, 0);
        loop {
            // 1 − uniform is above 0. A jump beyond any count ends the walk.
            let jump = ln(1.0 - rng.uniform()) * self.jump;
            if jump >= (total - trial) as f64 {
                return;
            }
            trial += jump as u64;
            leaf += gallop(&self.ends[leaf..], trial / LANES as u64);
            if rng.uniform() < self.keep[leaf] {
                words.push((self.leaves[leaf], 1 << (trial % LANES as u64)));
            }
            trial += 1;
            if trial >= total {
                return;
            }
        }
    }
}

/// The number `last` such that a uniform number of 64 bits is at most `last` with this probability,
/// which is above 0 and at most 1.
fn last_below(probability: f64) -> u64 {
    const WORDS: f64 = (1u128 << 64) as f64;
    ((probability * WORDS).ceil() as u128).saturating_sub(1) as u64
}

/// Draws 64 uniform numbers; a bit for each says whether it is at most `last`.
fn at_most(last: u64, rng: &mut Rng) -> u64 {
    let (mut less, mut equal) = (0, u64::MAX);
    for place in (0..u64::BITS).rev() {
        let (bits, ones) = (rng.bits(), (last >> place & 1).wrapping_neg());
        less |= equal & !bits & ones;
        equal &= !(bits ^ ones);
        if equal == 0 {
            break;
        }
    }
    less | equal
}

/// The number of ends that are at most `event`, by a galloping search: short where it is small.
fn gallop(ends: &[u64], event: u64) -> usize {
    let mut reach = 1;
    while reach < ends.len() && ends[reach] <= event {
        reach *= 2;
    }
    let from = reach / 2;
    let to = ends.len().min(reach + 1);
    from + ends[from..to].partition_point(|&end| end <= event)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of the hits of each leaf, and of all together, over many replicates.
    fn check(leaves: &[(f64, f64)], most: f64) {
        let (mut rng, mut hits) = (Rng::new(11), Hits::of(leaves.iter().copied(), most));
        const REPLICATES: usize = 64 * 500 - 7;
        let mut sums = vec![(0.0, 0.0); leaves.len() + 1];
        for _ in 0..REPLICATES {
            let mut counts = vec![0.0; leaves.len() + 1];
            for &leaf in hits.next(&mut rng) {
                counts[leaf as usize] += 1.0;
                counts[leaves.len()] += 1.0;
            }
            for ((sum, squares), count) in sums.iter_mut().zip(counts) {
                *sum += count;
                *squares += count * count;
            }
        }
        let of = |&(r, n): &(f64, f64)| (n * r, n * r * (1.0 - r));
        let mut laws: Vec<(f64, f64)> = leaves.iter().map(of).collect();
        let add = |a: (f64, f64), b: &(f64, f64)| (a.0 + b.0, a.1 + b.1);
        laws.push(laws.iter().fold((0.0, 0.0), add));
        let n = REPLICATES as f64;
        for (i, ((sum, squares), (mean, variance))) in sums.into_iter().zip(laws).enumerate() {
            let error = (variance / n).sqrt();
            assert!(
                (sum / n - mean).abs() <= 4.5 * error,
                "{i}: {sum} of {mean}"
            );
            let found = squares / n - (sum / n) * (sum / n);
            // The fourth central moment of a sum of Bernoulli variables is at most 3σ⁴ + σ².
            let spread = ((2.0 * variance * variance + variance) / n).sqrt();
            assert!(
                (found - variance).abs() <= 4.5 * spread,
                "{i}: {found} of {variance}"
            );
        }
    }

    #[test]
    fn hits_have_the_mean_and_the_variance_of_coins() {
        // By words, by jumps, and both; impossible, sure and nearly sure ones among them.
        check(&[(0.5, 3.0), (0.3, 1.0), (0.0, 9.0), (0.26, 40.0)], 0.5);
        check(&[(1e-3, 900.0), (9e-4, 5000.0), (0.0008, 1.0)], 0.5);
        check(
            &[(0.4, 20.0), (2e-4, 4000.0), (0.07, 50.0), (1e-9, 2.0)],
            0.5,
        );
        check(&[(1.0, 2.0), (0.9, 7.0), (0.6, 1.0), (1e-4, 3000.0)], 1.0);
    }

    #[test]
    fn a_probability_has_as_many_numbers() {
        assert_eq!(last_below(1.0), u64::MAX);
        assert_eq!(last_below(0.5), (1 << 63) - 1);
        assert_eq!(last_below(f64::MIN_POSITIVE), 0);
    }

    #[test]
    fn words_say_what_each_number_is() {
        // The same numbers, put together from the words of a generator in the same state.
        let mut rng = Rng::new(3);
        for last in [
            0,
            1,
            (1 << 63) - 1,
            1 << 62,
            0x1234_5678_9abc_def0,
            u64::MAX,
        ] {
            let mut words = rng.clone();
            let places: Vec<u64> = (0..64).map(|_| words.bits()).collect();
            let number = |lane: u64| {
                let bit = |number: u64, word: &u64| number << 1 | word >> lane & 1;
                places.iter().fold(0, bit)
            };
            let expected = (0..64).map(|lane| u64::from(number(lane) <= last) << lane);
            assert_eq!(at_most(last, &mut rng), expected.sum::<u64>());
        }
    }
}
