//! What the first stage hands to the second: sealed panes, and corrections of sealed panes; and
//! where sealed panes of scores wait for the second.
//!
//! A delta names its stream and carries packed integer sums, so deltas of any number of shards add
//! up to the deltas of one shard that had read all their partitions, to the bit. It is the only
//! form in which sums travel: within a process, and between processes as part of a partition's
//! checkpoint.
//!
//! Shards progress at different speeds. Their panes of the same time are added up in
//! [`PendingPanes`] until every shard has sealed that time; only then is the sum judged. Deltas
//! come unpacked, so a process with one shard packs a pane once, when it is judged. Of the panes of
//! a stream that wait, the newest is unpacked, and at most [`UNPACKED_MAX`] that were merged.

use crate::collect::{Key, LateVector, PaneDelta};
use crate::judge::StreamId;
use crate::stats::axis::Grid;
use crate::stats::stored::{checked, checked_or_min};
use crate::window::{
    Correction, LateOutcomes, PackError, Packed, PaneState, ScoreSums, Unlabelled,
};
use serde::{Deserialize, Serialize};

/// Panes that wait unpacked, at most. Shards that advance together merge into one or two.
const UNPACKED_MAX: usize = 3;

/// One change of sealed sums. See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Delta {
    /// A sealed pane.
    Pane {
        /// The stream.
        key: Key,
        /// Newest event time of the stream.
        #[serde(deserialize_with = "checked_or_min")]
        newest_ms: i64,
        /// The sums.
        pane: PaneDelta,
    },
    /// A correction of a pane that was sealed before.
    Correction {
        /// The stream.
        key: Key,
        /// Start of the pane.
        #[serde(deserialize_with = "checked")]
        start_ms: i64,
        /// What changes, by view.
        views: Vec<PackedCorrection>,
    },
    /// A sealed pane of a vector view.
    Vector {
        /// The stream, of a whole version.
        stream: StreamId,
        /// Newest event time of the version.
        #[serde(deserialize_with = "checked_or_min")]
        newest_ms: i64,
        /// The sums.
        pane: PaneState,
    },
    /// A late outcome, for the vector views of a version.
    Late {
        /// The stream of the prediction.
        key: Key,
        /// What changes.
        late: LateVector,
    },
}

/// What changes in the sums of one view, packed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PackedCorrection {
    /// Sums that are taken out.
    minus: Packed,
    /// Sums that are put in.
    plus: Packed,
    /// Scores whose outcome has come, and whether one had been implied.
    labelled: Vec<(f64, bool)>,
}

impl PackedCorrection {
    /// Packs a correction.
    pub fn new(c: &Correction) -> PackedCorrection {
        PackedCorrection {
            minus: Packed::new(&c.minus),
            plus: Packed::new(&c.plus),
            labelled: c.labelled.clone(),
        }
    }

    /// The correction of the pane that begins at `start_ms`.
    pub fn unpack(&self, start_ms: i64, grid: Grid) -> Result<Correction, PackError> {
        Ok(Correction {
            start_ms,
            minus: self.minus.unpack(grid)?,
            plus: self.plus.unpack(grid)?,
            labelled: self.labelled.clone(),
        })
    }

    fn bytes(&self) -> usize {
        self.minus.bytes() + self.plus.bytes() + 9 * self.labelled.len()
    }
}

impl Delta {
    /// Name of the model.
    pub fn model(&self) -> &str {
        match self {
            Delta::Pane { key, .. } | Delta::Correction { key, .. } | Delta::Late { key, .. } => {
                key.model()
            }
            Delta::Vector { stream, .. } => &stream.model,
        }
    }

    /// Source of the prediction, if this is a late outcome.
    pub fn source(&self) -> Option<u16> {
        match self {
            Delta::Late { late, .. } => Some(late.source),
            _ => None,
        }
    }

    /// Packs the sums that are kept.
    pub fn pack(&mut self) {
        if let Delta::Pane { pane, .. } = self {
            pane.pack();
        }
    }

    /// Bytes held, approximately.
    pub fn bytes(&self) -> usize {
        let sums = match self {
            Delta::Pane { pane, .. } => pane.views.iter().map(ScoreSums::bytes).sum(),
            Delta::Correction { views, .. } => views.iter().map(PackedCorrection::bytes).sum(),
            Delta::Vector { pane, .. } => pane.bytes(),
            Delta::Late { late, .. } => late.bytes(),
        };
        sums + 128
    }
}

#[derive(Debug, Clone)]
struct PendingPane {
    /// Turn of the queue at which it was last merged into.
    turn: u64,
    /// Whether several deltas were merged.
    merged: bool,
    pane: PaneDelta,
}

/// The sealed panes of one stream that wait until all shards have sealed them, ascending. See the
/// module.
#[derive(Debug, Clone, Default)]
pub struct PendingPanes {
    panes: Vec<PendingPane>,
    turn: u64,
}

impl PendingPanes {
    /// Start of the oldest pane.
    pub fn oldest_ms(&self) -> Option<i64> {
        self.panes.first().map(|p| p.pane.start_ms)
    }

    pub(crate) fn len(&self) -> usize {
        self.panes.len()
    }

    /// Adds a sealed pane. If the sum overflows its integers, the pane is marked so that no window
    /// with it is judged. No realistic number of events in a day causes an overflow.
    pub fn merge(&mut self, pane: &PaneDelta, grid: Grid) {
        self.turn += 1;
        let start_ms = pane.start_ms;
        let at = self
            .panes
            .binary_search_by_key(&start_ms, |p| p.pane.start_ms);
        match at {
            Err(at) => {
                // A pane of one delta may wait long for a shard that is behind.
                for waiting in self.panes.iter_mut().filter(|p| !p.merged) {
                    waiting.pane.pack();
                }
                let pane = PendingPane {
                    turn: self.turn,
                    merged: false,
                    pane: pane.clone(),
                };
                self.panes.insert(at, pane);
            }
            Ok(at) => {
                let ours = &mut self.panes[at];
                (ours.turn, ours.merged) = (self.turn, true);
                ours.pane.late += pane.late;
                if ours.merge(pane, grid).is_err() {
                    let n = pane.views.first().map_or(0, ScoreSums::n);
                    ours.pane.late = ours.pane.late.saturating_add(n.saturating_mul(2));
                }
            }
        }
        self.pack();
    }

    /// Corrects a pane, one correction for each view.
    pub fn correct(&mut self, corrections: &[Correction], grid: Grid) {
        let Some(start_ms) = corrections.first().map(|c| c.start_ms) else {
            return;
        };
        let at = self
            .panes
            .binary_search_by_key(&start_ms, |p| p.pane.start_ms);
        if let Ok(at) = at {
            // Sums that a correction does not fit are another stream's; they stay as they are.
            let _ = self.panes[at].correct(corrections, grid);
            self.pack();
        }
    }

    /// Takes out the oldest pane if it begins before `watermark_ms`.
    pub fn take(&mut self, watermark_ms: i64) -> Option<PaneDelta> {
        if self.oldest_ms()? >= watermark_ms {
            return None;
        }
        Some(self.panes.remove(0).pane)
    }

    /// All panes, for a snapshot.
    pub fn state(&self) -> Vec<PaneDelta> {
        self.panes.iter().map(|p| p.pane.clone()).collect()
    }

    /// Restores the panes of a snapshot.
    pub fn restore(
        &mut self,
        panes: Vec<PaneDelta>,
        views: usize,
        grid: Grid,
    ) -> Result<(), PackError> {
        for pane in &panes {
            if pane.views.len() != views {
                return Err(PackError::Corrupt);
            }
            for sums in &pane.views {
                sums.packed().unpack(grid)?;
            }
            self.merge(pane, grid);
        }
        Ok(())
    }

    /// Packs the panes that were merged into longest ago, down to [`UNPACKED_MAX`].
    fn pack(&mut self) {
        let unpacked = |p: &&mut PendingPane| p.pane.views.iter().any(|s| s.unpacked().is_some());
        while self.panes.iter_mut().filter(unpacked).count() > UNPACKED_MAX
            && let Some(oldest) = self
                .panes
                .iter_mut()
                .filter(unpacked)
                .min_by_key(|p| p.turn)
        {
            oldest.pane.pack();
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let views = self.panes.iter().flat_map(|p| &p.pane.views);
        views.map(ScoreSums::bytes).sum::<usize>()
            + self.panes.capacity() * size_of::<PendingPane>()
    }
}

impl PendingPane {
    fn merge(&mut self, theirs: &PaneDelta, grid: Grid) -> Result<(), PackError> {
        let (ours, views) = (&mut self.pane.unlabelled, theirs.unlabelled.len());
        if ours.len() < views {
            ours.resize(views, Unlabelled::default());
        }
        for (ours, theirs) in ours.iter_mut().zip(&theirs.unlabelled) {
            ours.merge(theirs);
        }
        LateOutcomes::merge_all(&mut self.pane.late_outcomes, &theirs.late_outcomes);
        let mut views = self.pane.views.iter_mut().zip(&theirs.views);
        views.try_for_each(|(ours, theirs)| ours.merge(theirs, grid))
    }

    fn correct(&mut self, corrections: &[Correction], grid: Grid) -> Result<(), PackError> {
        for (sums, c) in self.pane.views.iter_mut().zip(corrections) {
            c.apply(sums.unpacked_mut(grid)?)?;
        }
        for (unlabelled, c) in self.pane.unlabelled.iter_mut().zip(corrections) {
            c.uncount(unlabelled);
        }
        Ok(())
    }
}

/// The ends between two times at which something is sealed, in order: ends of waiting panes, and
/// ends at which time alone changes something.
#[derive(Debug)]
pub struct PaneWalk {
    at_ms: i64,
    until_ms: i64,
    pane_ms: i64,
}

impl PaneWalk {
    /// A walk between two ends of panes of this width.
    pub fn new(from_ms: i64, until_ms: i64, pane_ms: i64) -> PaneWalk {
        PaneWalk {
            at_ms: from_ms,
            until_ms,
            pane_ms,
        }
    }

    /// The next end. `oldest_ms` is the start of the oldest waiting pane; `sliding` finds the first
    /// end after one time and up to another at which time alone changes something.
    pub fn next_end_ms(
        &mut self,
        oldest_ms: Option<i64>,
        sliding: impl FnOnce(i64, i64) -> Option<i64>,
    ) -> Option<i64> {
        if self.at_ms >= self.until_ms {
            return None;
        }
        let oldest_ms = oldest_ms.filter(|&ms| ms < self.until_ms);
        let pane_ms = oldest_ms.map(|ms| ms.max(self.at_ms) + self.pane_ms);
        let limit_ms = pane_ms.unwrap_or(self.until_ms);
        let slide_ms = sliding(self.at_ms, limit_ms).filter(|&ms| ms <= limit_ms);
        self.at_ms = slide_ms.or(pane_ms).unwrap_or(self.until_ms);
        slide_ms.or(pane_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::Axis;
    use crate::window::sums_of;

    #[test]
    fn panes_that_wait_add_up_and_few_of_them_are_unpacked() {
        let grid = Grid::new(Axis::Linear, 6);
        let delta = |i: i64| PaneDelta {
            start_ms: 10 * i,
            end_ms: 10 * i + 10,
            late: 0,
            views: vec![sums_of(grid, (0..=i).map(|j| (j as f64 / 20.0, j % 2 == 0))).into()],
            unlabelled: vec![Unlabelled::default()],
            late_outcomes: Vec::new(),
        };
        let mut pending = PendingPanes::default();
        let unpacked = |pending: &PendingPanes| -> Vec<i64> {
            let is_unpacked = |p: &&PendingPane| p.pane.views[0].unpacked().is_some();
            let panes = pending.panes.iter().filter(is_unpacked);
            panes.map(|p| p.pane.start_ms).collect()
        };
        (0..8).for_each(|i| pending.merge(&delta(i), grid));
        assert_eq!(unpacked(&pending), [70]);
        (0..8).for_each(|i| pending.merge(&delta(i), grid));
        assert_eq!(unpacked(&pending), [50, 60, 70]);
        let state = pending.state();
        for i in 0..8 {
            let pane = pending.take(1000).expect("it waits");
            assert_eq!(pane, state[i as usize]);
            let twice = (0..=i).chain(0..=i).map(|j| (j as f64 / 20.0, j % 2 == 0));
            let sums = pane.views[0].packed().unpack(grid).expect("its grid");
            assert_eq!(sums, sums_of(grid, twice));
        }
        assert!(pending.take(1000).is_none());
    }
}
