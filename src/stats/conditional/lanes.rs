//! The statistics of 64 replicates at once.
//!
//! [`Sample::statistics`] walks from hit to hit, and most of its time goes into finding the next
//! one. Where leaves are few compared with hits, it is faster to walk over all leaves and cells,
//! hit or not, with the numbers of 64 replicates side by side: the processor then takes several in
//! one instruction.

use super::super::smooth::DIRECTIONS;
use super::hits::LANES;
use super::sample::{Further, Sample};

/// One number for each of 64 replicates.
type Each = [f64; LANES];

const ZERO: Each = [0.0; LANES];

/// Number of set bits of a word from which all its bits are added, four at a time, and not only the
/// set ones. Half and twice as many took no less time.
const MANY: u32 = 16;

/// Buffers for the statistics of 64 replicates.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Hits of each leaf.
    hits: Vec<Each>,
    /// For each cell, the sum of the steps of ΣU of its hits, and the sum of their 1 − 2r.
    cells: Vec<(Each, Each)>,
    statistics: Vec<Each>,
}

impl Lanes {
    /// [`Sample::statistics`] of 64 sets of hits, as [`super::hits::Hits::next_words`] gives them.
    pub fn statistics(&mut self, sample: &Sample, hits: &[(u32, u64)]) -> &[Each] {
        self.hits.clear();
        self.hits.resize(sample.leaves.len(), ZERO);
        for &(leaf, word) in hits {
            count(&mut self.hits[leaf as usize], word);
        }
        self.cells.clear();
        self.cells.resize(sample.cells.len(), (ZERO, ZERO));
        self.statistics.clear();
        let bases = sample.bases.iter().map(|base| [*base; LANES]);
        self.statistics.extend(bases);
        let (score, square, low, high) = self.walk_leaves(sample);
        self.walk_cells(sample);
        let levels = self.statistics.len();
        for i in 0..LANES {
            let further = Further {
                score: score.map(|s| s[i]),
                square: square[i],
                extremes: (low[i], high[i]),
            };
            for (at, value) in (levels..).zip(sample.further(&further)) {
                if at == self.statistics.len() {
                    self.statistics.push(ZERO);
                }
                self.statistics[at][i] = value;
            }
        }
        &self.statistics
    }

    /// Adds the hits of leaves to their finest cells. Returns the score vectors, Σ(U² − V), and the
    /// least and greatest partial sum of U.
    fn walk_leaves(&mut self, sample: &Sample) -> ([Each; DIRECTIONS], Each, Each, Each) {
        let (mut score, mut square) = (sample.score.map(|s| [s; LANES]), [sample.square; LANES]);
        let (mut low, mut high, mut steps) = (ZERO, ZERO, ZERO);
        for ((leaf, hits), path) in sample.leaves.iter().zip(&self.hits).zip(&sample.path) {
            add(&mut steps, hits, leaf.step);
            for ((low, high), steps) in low.iter_mut().zip(&mut high).zip(&steps) {
                let sum = path + steps;
                *low = if sum < *low { sum } else { *low };
                *high = if sum > *high { sum } else { *high };
            }
            for (score, b) in score.iter_mut().zip(leaf.b) {
                add(score, hits, leaf.step * b);
            }
            add(&mut square, hits, leaf.square);
            for cell in leaf.cells.into_iter().flatten() {
                let (steps, squares) = &mut self.cells[cell as usize];
                add(steps, hits, leaf.step);
                add(squares, hits, leaf.square);
            }
        }
        (score, square, low, high)
    }

    /// Adds to the statistics of levels what the hits change; each cell passes its hits on to the
    /// next coarser one.
    fn walk_cells(&mut self, sample: &Sample) {
        for (at, cell) in sample.cells.iter().enumerate() {
            let (steps, squares) = self.cells[at];
            let mut change = ZERO;
            for ((change, s), q) in change.iter_mut().zip(&steps).zip(&squares) {
                *change = s * (cell.base + cell.base + s) - q;
            }
            for statistic in &mut self.statistics[cell.levels.0..=cell.levels.1] {
                add(statistic, &change, cell.weight);
            }
            if let Some(parent) = cell.parent {
                let (above, squares_above) = &mut self.cells[parent as usize];
                add(above, &steps, 1.0);
                add(squares_above, &squares, 1.0);
            }
        }
    }
}

#[inline]
fn add(to: &mut Each, by: &Each, factor: f64) {
    for (to, by) in to.iter_mut().zip(by) {
        *to += factor * by;
    }
}

/// Adds 1 to the number of each replicate whose bit is set in `word`.
#[inline]
fn count(to: &mut Each, mut word: u64) {
    if word.count_ones() < MANY {
        while word != 0 {
            to[word.trailing_zeros() as usize % LANES] += 1.0;
            word &= word - 1;
        }
        return;
    }
    for (i, four) in to.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let bits = &FOUR_BITS[(word >> (4 * i) & 15) as usize];
        four.iter_mut().zip(bits).for_each(|(to, bit)| *to += bit);
    }
}

/// Each number of four bits as its bits.
const FOUR_BITS: [[f64; 4]; 16] = {
    let mut all = [[0.0; 4]; 16];
    let mut i = 0;
    while i < 64 {
        if (i / 4) >> (i % 4) & 1 == 1 {
            all[i / 4][i % 4] = 1.0;
        }
        i += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::super::hits::Hits;
    use super::super::sample::rare_outcomes;
    use super::*;
    use crate::levels::{Level, Levels, ascending};
    use crate::rng::Rng;

    #[test]
    fn replicates_side_by_side_have_the_statistics_of_each_alone() {
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let n = 1 + rng.below(200);
            let power = 1 + rng.below(8) as i32;
            let scores = (0..n).map(|_| (rng.uniform().powi(power), rng.uniform() < 0.3));
            let scores = ascending(&scores.collect::<Vec<_>>());
            let finest = 1 + rng.below(12) as u32;
            let levels = Levels::above(Level::of_ascending(&scores, 1 << finest), finest);
            let leaves = levels.finest();
            let interval = (seed % 2 == 0).then(|| levels.as_slice().last()).flatten();
            let mut sample = Sample::of(leaves, levels.as_slice(), interval);
            let mut hits = Hits::of(rare_outcomes(leaves), 0.5);
            let (mut lanes, mut again) = (Lanes::default(), rng.clone());
            for _ in 0..3 {
                let all = lanes
                    .statistics(&sample, hits.next_words(&mut rng))
                    .to_vec();
                let mut alone = Hits::of(rare_outcomes(leaves), 0.5);
                for i in 0..LANES {
                    let mut expected = Vec::new();
                    sample.statistics(alone.next(&mut again), &mut expected);
                    assert_eq!(expected.len(), all.len());
                    for (each, expected) in all.iter().zip(expected) {
                        let error = (each[i] - expected).abs();
                        assert!(
                            error <= 1e-11 * (1.0 + expected.abs()),
                            "seed {seed}: {error}"
                        );
                    }
                }
            }
        }
    }
}
