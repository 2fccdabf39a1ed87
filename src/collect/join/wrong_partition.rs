//! Outcomes that wait on another partition than their predictions.
//!
//! A prediction and its outcome meet only if their producers choose the same partition for a key.
//! By default, producers of different client libraries choose different partitions. Without this
//! check the fault would not show: the outcomes wait until they are orphaned, and the predictions
//! mature without them.

use super::joins::Joins;
use super::key::Key;

/// Waiting outcomes of one joiner that are looked up. More are not needed for the answer, and a
/// look-up costs a cache miss for each of the other partitions.
const SAMPLE: usize = 16;

/// Least number found at which producers count as choosing partitions differently.
const FOUND_MIN: u64 = 3;

/// The share of the sample that the number found must exceed as well.
const SHARE_MIN: f64 = 0.02;

/// A sample of the waiting outcomes of one join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongPartition {
    /// Number of the source of the outcomes.
    pub source: u16,
    /// The only model that the source carries, if that is fixed.
    pub model: Option<String>,
    /// Waiting outcomes that were looked up.
    pub waiting: u64,
    /// Those whose prediction is on another partition.
    pub found: u64,
}

impl WrongPartition {
    /// The share of those found, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.found as f64 / self.waiting.max(1) as f64
    }

    /// Whether producers choose partitions differently: more are found than ids that were used
    /// twice.
    pub fn is_wrong(&self) -> bool {
        self.found >= FOUND_MIN && self.share() > SHARE_MIN
    }
}

/// Looks a sample of waiting outcomes up among the predictions of the other partitions. `all` are
/// the joins of one process, of one plan.
pub fn wrong_partitions(all: &[&Joins]) -> Vec<WrongPartition> {
    let plans = all.first().map(|joins| joins.plans()).unwrap_or_default();
    let mut samples: Vec<WrongPartition> = plans
        .iter()
        .map(|plan| WrongPartition {
            source: plan.outcomes,
            model: plan.model.clone(),
            waiting: 0,
            found: 0,
        })
        .collect();
    for (&at, joiner) in all.iter().flat_map(|joins| joins.joiners()) {
        let Some(sample) = samples.get_mut(usize::from(at.0)) else {
            continue;
        };
        for (key, _) in joiner.waiting.times().take(SAMPLE) {
            sample.waiting += 1;
            sample.found += u64::from(is_elsewhere(all, at, key));
        }
    }
    samples
}

/// Whether another partition of the same join has a prediction of this id in memory.
fn is_elsewhere(all: &[&Joins], (join, partition): (u16, i32), key: Key) -> bool {
    let joiners = all.iter().flat_map(|joins| joins.joiners());
    let mut others = joiners.filter(|((j, p), _)| *j == join && *p != partition);
    others.any(|(_, joiner)| joiner.predictions.has(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(waiting: u64, found: u64) -> WrongPartition {
        WrongPartition {
            source: 1,
            model: None,
            waiting,
            found,
        }
    }

    #[test]
    fn a_few_ids_that_were_used_twice_are_no_sign_of_another_partitioner() {
        assert!(!sample(0, 0).is_wrong());
        assert!(!sample(2, 2).is_wrong());
        assert!(!sample(1000, 20).is_wrong());
        assert!(sample(3, 3).is_wrong() && sample(1000, 21).is_wrong());
        assert_eq!((sample(0, 0).share(), sample(16, 4).share()), (0.0, 0.25));
    }
}
