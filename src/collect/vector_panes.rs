//! The open panes of one vector view.
//!
//! Accepted events land in open base panes. A pane is sealed when the watermark passes its end, and
//! is then merged into the windows of the view. If partitions are counted separately, the sealed
//! panes of each are first merged into an open pane here.
//!
//! Always: a sealed pane depends on the events that were observed before it was sealed, and not on
//! their order. Later events count as late in the pane that seals next.

use crate::stats::stored::checked;
use crate::window::{
    EmptySums, LateOutcomes, PackError, Pane, PaneState, PaneSums, RetainedVector, Unlabelled,
    VectorCorrection, VectorEvent, ViewSums,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone)]
struct OpenPane {
    sums: ViewSums,
    /// Late events of the sealed panes that were merged into it.
    late: u64,
    unlabelled: Unlabelled,
}

/// The open panes of a view. See the module.
#[derive(Debug, Clone)]
pub struct VectorPanes {
    /// A pane without events, shared with the windows of the view.
    blank: Arc<ViewSums>,
    /// Width of a base pane.
    pane_ms: i64,
    open: BTreeMap<i64, OpenPane>,
    /// Events that came too late since the last pane was sealed.
    late: u64,
}

/// The open panes in a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VectorPanesState {
    /// Events that came too late since the last pane was sealed.
    #[serde(deserialize_with = "checked")]
    pub late: u64,
    /// The panes, oldest first.
    pub open: Vec<PaneState>,
}

impl VectorPanes {
    /// No panes; `blank` is a pane without events.
    pub fn new(blank: Arc<ViewSums>, pane_ms: i64) -> VectorPanes {
        VectorPanes {
            blank,
            pane_ms,
            open: BTreeMap::new(),
            late: 0,
        }
    }

    /// Adds an event that is not late; returns whether there was room for it.
    pub fn observe(&mut self, time_ms: i64, event: VectorEvent<'_>) -> bool {
        self.pane_at(time_ms).sums.observe(event)
    }

    /// Adds a mature prediction with its class, if it has one; `implied` if no outcome came.
    /// Returns whether there was room for it.
    pub fn mature(
        &mut self,
        time_ms: i64,
        vector: RetainedVector<'_>,
        class: Option<u32>,
        implied: bool,
    ) -> bool {
        let pane = self.pane_at(time_ms);
        if class.is_none() || implied {
            pane.unlabelled.count(vector.top(), implied);
        }
        class.is_none_or(|class| pane.sums.observe_retained(vector, class))
    }

    /// Takes a late outcome into an open pane; returns whether there was room for it, or `None` if
    /// the pane of its prediction is not open.
    pub fn revise(&mut self, r: &VectorCorrection<'_>) -> Option<bool> {
        let pane = self.open.get_mut(&self.start_of(r.time_ms))?;
        Some(r.apply(&mut pane.sums, &mut pane.unlabelled))
    }

    /// Counts an event that came too late.
    pub fn miss(&mut self) {
        self.late += 1;
    }

    /// Merges a base pane that was counted elsewhere into the open pane of the same time.
    pub fn merge(&mut self, pane: &Pane) {
        let Some(sums) = pane.sums.vector() else {
            return;
        };
        let open = self.pane_at(pane.start_ms);
        open.sums.merge_capped(sums);
        open.late = open.late.saturating_add(pane.late);
        open.unlabelled.merge(&pane.unlabelled);
    }

    /// A pane of this view in its stored form.
    pub fn unpack(&self, state: PaneState) -> Result<Pane, PackError> {
        state.restore(&EmptySums::Vector(self.blank.clone()))
    }

    /// Seals the oldest pane if it begins before `end_ms`.
    pub fn seal(&mut self, end_ms: i64) -> Option<Pane> {
        let oldest = self.open.first_entry().filter(|e| *e.key() < end_ms)?;
        let (start_ms, mut pane) = oldest.remove_entry();
        pane.sums.close();
        let late = pane.late.saturating_add(std::mem::take(&mut self.late));
        Some(self.pane(start_ms, late, pane))
    }

    fn pane(&self, start_ms: i64, late: u64, pane: OpenPane) -> Pane {
        Pane {
            start_ms,
            end_ms: start_ms + self.pane_ms,
            late,
            sums: PaneSums::Vector(Arc::new(pane.sums)),
            unlabelled: pane.unlabelled,
            late_outcomes: LateOutcomes::default(),
        }
    }

    /// Start of the oldest open pane.
    pub fn oldest_ms(&self) -> Option<i64> {
        self.open.keys().next().copied()
    }

    /// Changes the cap of cells of panes that open from now on.
    pub fn set_cells_max(&mut self, cells_max: usize) {
        Arc::make_mut(&mut self.blank).set_cells_max(cells_max);
    }

    /// Whether any event would find room.
    pub fn has_room(&self) -> bool {
        self.blank.has_room()
    }

    /// Number of open panes.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// The open panes, for a snapshot.
    pub fn state(&self) -> VectorPanesState {
        let pane = |(start_ms, pane): (&i64, &OpenPane)| {
            PaneState::from(&self.pane(*start_ms, pane.late, pane.clone()))
        };
        VectorPanesState {
            late: self.late,
            open: self.open.iter().map(pane).collect(),
        }
    }

    /// Restores a snapshot; an error if it is of another shape.
    pub fn restore(&mut self, state: VectorPanesState) -> Result<(), PackError> {
        self.late = state.late;
        for state in state.open {
            let pane = self.unpack(state)?;
            let sums = pane.sums.vector().ok_or(PackError::Corrupt)?.clone();
            let open = OpenPane {
                sums,
                late: pane.late,
                unlabelled: pane.unlabelled,
            };
            self.open.insert(pane.start_ms, open);
        }
        Ok(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let pane = |p: &OpenPane| size_of::<OpenPane>() + p.sums.bytes() + p.unlabelled.bytes();
        self.open.values().map(pane).sum()
    }

    fn start_of(&self, time_ms: i64) -> i64 {
        time_ms - time_ms.rem_euclid(self.pane_ms)
    }

    fn pane_at(&mut self, time_ms: i64) -> &mut OpenPane {
        let start_ms = self.start_of(time_ms);
        self.open.entry(start_ms).or_insert_with(|| OpenPane {
            sums: ViewSums::clone(&self.blank),
            late: 0,
            unlabelled: Unlabelled::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::multiclass::VectorView;
    use crate::stats::multiclass::sums::Shape;
    use crate::window::ViewShape;

    fn panes() -> VectorPanes {
        let shape = ViewShape::Cells(Shape {
            view: VectorView::Full,
            classes: 3,
            cells_max: 100,
            weighted: false,
        });
        VectorPanes::new(Arc::new(shape.blank().expect("a dimension")), 1000)
    }

    fn event(panes: &mut VectorPanes, time_ms: i64) {
        let event = VectorEvent {
            entries: &[0.5, 0.3, 0.2],
            sum: 1.0,
            class: (time_ms % 3) as u32,
            rank: 0,
            weight: None,
        };
        assert!(panes.observe(time_ms, event));
    }

    #[test]
    fn panes_seal_oldest_first_and_late_events_count_in_the_next_also_after_a_restart() {
        let mut before = panes();
        for t in [1100, 100, 900] {
            event(&mut before, t);
        }
        before.miss();
        before.miss();
        let mut after = panes();
        after.restore(before.state()).expect("the same shape");
        for mut panes in [before, after] {
            assert_eq!((panes.oldest_ms(), panes.len()), (Some(0), 2));
            assert!(panes.seal(0).is_none());
            let first = panes.seal(1000).expect("a pane before the watermark");
            assert_eq!((first.start_ms, first.end_ms, first.late), (0, 1000, 2));
            assert_eq!(first.sums.n(), 2);
            let second = panes.seal(2000).expect("a pane before the watermark");
            assert_eq!(
                (second.start_ms, second.late, second.sums.n()),
                (1000, 0, 1)
            );
            assert_eq!(panes.len(), 0);
        }
    }

    #[test]
    fn the_panes_of_two_counts_add_up_with_what_came_late_in_each() {
        let (mut one, mut other, mut both) = (panes(), panes(), panes());
        event(&mut one, 100);
        for t in [200, 300] {
            event(&mut other, t);
        }
        one.miss();
        for count in [&mut one, &mut other] {
            let pane = count.seal(1000).expect("a pane before the watermark");
            both.merge(&pane);
        }
        let pane = both.seal(1000).expect("a pane before the watermark");
        assert_eq!((pane.sums.n(), pane.late), (3, 1));
    }
}
