//! Sealed panes of one stream that wait for the common watermark of all shards.
//!
//! Shards progress at different speeds. Their panes of the same time are added up here until every
//! shard has sealed that time; only then is the sum judged. A pane that has received one delta
//! stays packed, so a process with one shard does not pay for the merge. At most [`UNPACKED_MAX`]
//! merged panes are kept unpacked.

use crate::collect::PaneDelta;
use crate::stats::axis::Grid;
use crate::stats::sums::Sums;
use crate::window::{Correction, LateOutcomes, PackError, Packed, Unlabelled};

/// Merged panes that are kept unpacked. Shards that advance together merge into one or two.
const UNPACKED_MAX: usize = 3;

/// One pane.
#[derive(Debug, Clone)]
struct PendingPane {
    /// When it was last merged into, in turns of the queue.
    turn: u64,
    /// What is known of it; its views are empty while it is unpacked.
    pane: PaneDelta,
    unpacked: Option<Vec<Sums>>,
}

/// Panes of one stream, ascending. See the module.
#[derive(Debug, Clone, Default)]
pub struct PendingPanes {
    panes: Vec<PendingPane>,
    turn: u64,
}

impl PendingPanes {
    /// Begin of the oldest pane.
    pub fn oldest_ms(&self) -> Option<i64> {
        self.panes.first().map(|p| p.pane.start_ms)
    }

    /// Number of panes.
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
                let pane = PendingPane {
                    turn: self.turn,
                    pane: pane.clone(),
                    unpacked: None,
                };
                self.panes.insert(at, pane);
            }
            Ok(at) => {
                let ours = &mut self.panes[at];
                ours.turn = self.turn;
                ours.pane.late += pane.late;
                if ours.merge(pane, grid).is_err() {
                    let n = pane.views.first().map_or(0, Packed::n);
                    ours.pane.late = ours.pane.late.saturating_add(n.saturating_mul(2));
                }
                self.pack();
            }
        }
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

    /// Takes out the oldest pane if it begins before `line_ms`.
    pub fn take(&mut self, line_ms: i64) -> Option<PaneDelta> {
        if self.oldest_ms()? >= line_ms {
            return None;
        }
        Some(self.panes.remove(0).packed())
    }

    /// All panes, packed, for a snapshot.
    pub fn state(&self) -> Vec<PaneDelta> {
        self.panes
            .iter()
            .cloned()
            .map(PendingPane::packed)
            .collect()
    }

    /// Puts back the panes of a snapshot.
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
            for packed in &pane.views {
                packed.unpack(grid)?;
            }
            self.merge(pane, grid);
        }
        Ok(())
    }

    /// Packs the panes that were longest not merged into, down to [`UNPACKED_MAX`].
    fn pack(&mut self) {
        let unpacked = |p: &&mut PendingPane| p.unpacked.is_some();
        while self.panes.iter_mut().filter(unpacked).count() > UNPACKED_MAX
            && let Some(oldest) = self
                .panes
                .iter_mut()
                .filter(unpacked)
                .min_by_key(|p| p.turn)
        {
            oldest.pack();
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let pane = |p: &PendingPane| {
            let packed = p.pane.views.iter().map(Packed::bytes);
            let sums = p.unpacked.iter().flatten();
            packed.sum::<usize>() + sums.map(|s| size_of::<Sums>() + s.bytes()).sum::<usize>()
        };
        self.panes.iter().map(pane).sum::<usize>()
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
        for (sums, packed) in self.unpack(grid)?.iter_mut().zip(&theirs.views) {
            packed.merge_into(sums)?;
        }
        Ok(())
    }

    fn correct(&mut self, corrections: &[Correction], grid: Grid) -> Result<(), PackError> {
        for (sums, c) in self.unpack(grid)?.iter_mut().zip(corrections) {
            c.apply(sums)?;
        }
        for (unlabelled, c) in self.pane.unlabelled.iter_mut().zip(corrections) {
            c.uncount(unlabelled);
        }
        Ok(())
    }

    fn unpack(&mut self, grid: Grid) -> Result<&mut Vec<Sums>, PackError> {
        if self.unpacked.is_none() {
            let sums: Result<_, _> = self.pane.views.iter().map(|p| p.unpack(grid)).collect();
            self.unpacked = Some(sums?);
            self.pane.views.clear();
        }
        self.unpacked.as_mut().ok_or(PackError::Corrupt)
    }

    fn pack(&mut self) {
        if let Some(sums) = self.unpacked.take() {
            self.pane.views = sums.iter().map(Packed::new).collect();
        }
    }

    fn packed(mut self) -> PaneDelta {
        self.pack();
        self.pane
    }
}
