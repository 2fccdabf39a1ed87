//! Predictions of a pane whose outcome never came, by score.
//!
//! Labels are seldom missing at random: rejected applications have none, and they are the ones with
//! low scores. So unlabelled predictions are counted by score, in sixteen equal cells, apart from
//! the sums. There are two counts: predictions that were left out, and predictions with an implied
//! outcome, which are also in the sums. Counts add up over panes like the sums do.

use crate::stats::stored::checked;
use serde::{Deserialize, Serialize};

/// Cells of [0, 1] in which unlabelled predictions are counted.
pub const COVERAGE_CELLS: usize = 16;

type Cells = [u64; COVERAGE_CELLS];

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlabelled(Option<Box<Counts>>);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counts {
    #[serde(deserialize_with = "checked")]
    dropped: Cells,
    #[serde(deserialize_with = "checked")]
    implied: Cells,
}

impl Unlabelled {
    /// Counts a prediction with score z in [0, 1]; `implied` if it is in the sums with an implied
    /// outcome.
    pub fn count(&mut self, z: f64, implied: bool) {
        *self.0.get_or_insert_default().at(z, implied) += 1;
    }

    /// Removes a prediction whose outcome has come after all.
    pub fn uncount(&mut self, z: f64, implied: bool) {
        if let Some(counts) = &mut self.0 {
            let count = counts.at(z, implied);
            *count = count.saturating_sub(1);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Unlabelled) {
        let Some(theirs) = &other.0 else { return };
        let ours = self.0.get_or_insert_default();
        let all = ours.dropped.iter_mut().zip(theirs.dropped);
        all.chain(ours.implied.iter_mut().zip(theirs.implied))
            .for_each(|(a, b)| *a += b);
    }

    /// Predictions left out, by cell.
    pub fn dropped(&self) -> Cells {
        self.0.as_ref().map(|c| c.dropped).unwrap_or_default()
    }

    /// Predictions with an implied outcome, by cell.
    pub fn implied(&self) -> Cells {
        self.0.as_ref().map(|c| c.implied).unwrap_or_default()
    }

    /// Whether none was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |_| size_of::<Counts>())
    }
}

impl Counts {
    fn at(&mut self, z: f64, implied: bool) -> &mut u64 {
        let cells = match implied {
            true => &mut self.implied,
            false => &mut self.dropped,
        };
        &mut cells[((z * COVERAGE_CELLS as f64) as usize).min(COVERAGE_CELLS - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_can_be_taken_back() {
        let mut a = Unlabelled::default();
        assert!(a.is_empty());
        a.count(1.0, false);
        a.count(0.0, true);
        let mut b = a.clone();
        b.merge(&a);
        assert_eq!((b.dropped()[15], b.implied()[0]), (2, 2));
        b.uncount(1.0, false);
        b.uncount(0.0, true);
        assert_eq!(a, b);
    }
}
