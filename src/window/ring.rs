//! The sealed panes of one window.
//!
//! A window by time takes the panes of the slide under way as parts, merges them when the slide is
//! over, and drops the panes before its start. A window by count takes base panes, and folds those
//! with the fewest events if there are too many.

use super::pack_error::PackError;
use super::pane::{EmptySums, MergeOptions, Pane, PaneState, PaneSums};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most panes of a window by count.
pub const COUNT_PANES_MAX: usize = 64;

/// Most parts of a slide that is being gathered.
const PARTS_MAX: usize = 16;

/// Parts are merged once their events could fill this many grids. Bytes do not decide, because a
/// part that is unpacked has none yet.
const PARTS_GRIDS: u64 = 2;

/// Panes of one window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ring {
    /// Whole panes, oldest first.
    pub panes: VecDeque<Pane>,
    /// The slide that is being gathered, in disjoint parts in order of time. Sums of scores are
    /// merged once it is over, or the parts are many; sums of vectors are one part.
    pub gathering: Vec<Pane>,
}

/// The panes of one window in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RingState {
    /// Whole panes, oldest first.
    pub panes: Vec<PaneState>,
    /// The parts of the slide that is being gathered.
    pub gathering: Vec<PaneState>,
}

impl Ring {
    /// All panes; those that are being gathered come last.
    pub fn all(&self) -> impl Iterator<Item = &Pane> {
        self.panes.iter().chain(&self.gathering)
    }

    /// Whether it holds no pane.
    pub fn is_empty(&self) -> bool {
        self.panes.is_empty() && self.gathering.is_empty()
    }

    /// The panes of a window that ends with a whole slide, or within its first.
    pub(super) fn held(&self, whole: bool) -> impl Iterator<Item = &Pane> {
        let first = (!whole).then_some(&self.gathering);
        self.panes.iter().chain(first.into_iter().flatten())
    }

    /// The pane that holds an event time.
    pub(super) fn pane_at(&mut self, time_ms: i64) -> Option<&mut Pane> {
        let mut panes = self.panes.iter_mut().chain(&mut self.gathering);
        panes.find(|p| p.holds(time_ms))
    }

    /// Adds a pane to the slide under way.
    pub(super) fn gather(&mut self, pane: Pane, by: MergeOptions<'_>) -> Result<(), PackError> {
        let parts = &mut self.gathering;
        let first = parts.first().map(|p| &p.sums);
        let is_unpacked = by.unpacked && first.is_some_and(|sums| sums.unpacked_bytes() > 0);
        // The pane joins parts that it overlaps; with sums of vectors or unpacked sums, all parts.
        let (begin, end, cells) = match by.empty {
            PaneSums::Vector(_) => (0, parts.len(), 0),
            PaneSums::Scores(_) if is_unpacked => (0, parts.len(), 0),
            PaneSums::Scores(grid) => (
                parts.partition_point(|p| p.end_ms <= pane.start_ms),
                parts.partition_point(|p| p.start_ms < pane.end_ms),
                u64::from(grid.cells()),
            ),
        };
        match parts
            .get_mut(begin..end)
            .and_then(<[Pane]>::split_first_mut)
        {
            Some((first, others)) => {
                first.merge_all(others, by)?;
                first.merge_all(std::slice::from_ref(&pane), by)?;
                parts.drain(begin + 1..end);
            }
            None => parts.insert(begin, pane),
        }
        // An event occupies one cell at most.
        let occupied: u64 = parts.iter().map(|p| p.sums.n().min(cells)).sum();
        if parts.len() > PARTS_MAX || (parts.len() > 1 && occupied >= PARTS_GRIDS * cells) {
            self.gathering = self.gathered(by)?.into_iter().collect();
        }
        Ok(())
    }

    /// Takes out the parts of the slide under way, as one pane.
    fn gathered(&mut self, by: MergeOptions<'_>) -> Result<Option<Pane>, PackError> {
        let mut parts = std::mem::take(&mut self.gathering).into_iter();
        let Some(mut whole) = parts.next() else {
            return Ok(None);
        };
        whole.merge_all(parts.as_slice(), by)?;
        Ok(Some(whole))
    }

    /// Drops panes that a window by count no longer needs, and folds two if there are too many.
    pub(super) fn trim_count(&mut self, last: u64, empty: &EmptySums) -> Result<(), PackError> {
        let panes = &mut self.panes;
        let mut n: u64 = panes.iter().map(|p| p.sums.n()).sum();
        while let Some(oldest) = panes.front()
            && n - oldest.sums.n() >= last
        {
            n -= oldest.sums.n();
            panes.pop_front();
        }
        if panes.len() > COUNT_PANES_MAX {
            let both = |i: &usize| panes[*i].sums.n() + panes[*i + 1].sums.n();
            let at = (0..panes.len() - 1).min_by_key(both).unwrap_or(0);
            if let Some(next) = panes.remove(at + 1) {
                panes[at].merge(&next, empty)?;
            }
        }
        Ok(())
    }

    /// Ends the slide; returns its pane, if any event fell into it. Drops panes from before
    /// `begin_ms`.
    pub(super) fn complete(
        &mut self,
        begin_ms: i64,
        by: MergeOptions<'_>,
    ) -> Result<Option<Pane>, PackError> {
        let whole = self.gathered(by)?;
        self.panes.extend(whole.clone());
        self.evict(begin_ms);
        Ok(whole)
    }

    fn evict(&mut self, begin_ms: i64) {
        while let Some(oldest) = self.panes.front()
            && oldest.start_ms < begin_ms
        {
            self.panes.pop_front();
        }
    }
}
