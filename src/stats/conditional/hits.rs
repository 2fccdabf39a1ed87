//! Rare outcomes drawn cell by cell: which leaves are hit.
//!
//! Hits are drawn by geometric jumps over the events of all leaves whose rarer outcome has a
//! probability r in (2^−(k+1), 2^−k], with the probability 2^−k, and each is kept with probability
//! r·2^k: exact, at most two trials a hit.

use crate::ln::ln;
use crate::rng::Rng;

/// Leaves whose rarer outcome has a probability in (bound/2, bound].
#[derive(Debug)]
pub(crate) struct Group {
    bound: f64,
    /// 1/ln(1 − bound).
    jump: f64,
    leaves: Vec<u32>,
    /// rare/bound of each.
    keep: Vec<f64>,
    /// Events up to and with each.
    ends: Vec<u64>,
}

impl Group {
    /// All groups of leaves, each given by the probability of its rarer outcomes, at most `most`,
    /// and its number of events; certain ones are in none.
    pub fn all(leaves: impl Iterator<Item = (f64, f64)>, most: f64) -> Vec<Group> {
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
            let before = group.ends.last().copied().unwrap_or(0);
            group.leaves.push(i as u32);
            group.keep.push(rare / bound);
            group.ends.push(before + n as u64);
        }
        groups
    }

    /// Adds the hits of one replicate.
    pub fn draw(&self, rng: &mut Rng, hits: &mut Vec<u32>) {
        let total = self.ends.last().copied().unwrap_or(0);
        let (mut event, mut leaf) = (0u64, 0);
        loop {
            // 1 − uniform is above 0. A jump beyond any count ends the walk.
            let jump = ln(1.0 - rng.uniform()) * self.jump;
            if jump >= (total - event) as f64 {
                return;
            }
            event += jump as u64;
            leaf += gallop(&self.ends[leaf..], event);
            if rng.uniform() < self.keep[leaf] {
                hits.push(self.leaves[leaf]);
            }
            event += 1;
            if event >= total {
                return;
            }
        }
    }
}

/// The number of ends that are at most `event`: a search that is short where the answer is near.
fn gallop(ends: &[u64], event: u64) -> usize {
    let mut reach = 1;
    while reach < ends.len() && ends[reach] <= event {
        reach *= 2;
    }
    let from = reach / 2;
    let to = ends.len().min(reach + 1);
    from + ends[from..to].partition_point(|&end| end <= event)
}
