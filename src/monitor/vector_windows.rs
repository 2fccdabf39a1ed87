//! The windows of one version's vector views, where partitions move. See [`super::retained`].

use super::snapshot::VersionState;
use super::views::{VersionName, blank, revision, vectors};
use crate::collect::{LateVector, VectorPanes, VectorPanesState};
use crate::judge::Plan;
use crate::stats::view::View;
use crate::window::{EmptySums, PackError, PaneState, Revision, Windows};

/// The windows of one version. See the module.
#[derive(Debug, Clone)]
pub struct VersionWindows {
    model: usize,
    name: String,
    version: String,
    segmented: bool,
    views: Vec<ViewWindows>,
}

#[derive(Debug, Clone)]
struct ViewWindows {
    view: View,
    /// Sealed panes that the windows have not passed.
    pending: VectorPanes,
    windows: Windows,
}

impl ViewWindows {
    fn revise(&mut self, r: &Revision<'_>) -> bool {
        let pending = self.pending.revise(r);
        pending.unwrap_or_else(|| self.windows.revise(r))
    }

    fn apply(&mut self, pane: &PaneState, sealed_until_ms: i64) -> Result<(), PackError> {
        let pane = self.pending.unpack(pane.clone())?;
        if pane.start_ms >= sealed_until_ms {
            self.pending.merge(&pane);
            return Ok(());
        }
        self.windows.place(&pane, sealed_until_ms)
    }
}

impl VersionWindows {
    /// Windows without panes; `None` where the model has no vector view.
    pub fn new(plan: &Plan, name: VersionName<'_>) -> Option<VersionWindows> {
        let model = plan.serves(name.model)?;
        let of = &plan.models[model];
        let windows = |view: View| {
            let blank = blank(of, view, plan.caps.vector_cells_max)?;
            Some(ViewWindows {
                view,
                pending: VectorPanes::new(blank.clone(), of.ladder.pane_ms),
                windows: Windows::new(&of.ladder, EmptySums::Vector(blank)),
            })
        };
        let views: Vec<ViewWindows> = vectors(of).filter_map(windows).collect();
        (!views.is_empty()).then(|| VersionWindows {
            model,
            name: name.model.to_owned(),
            version: name.version.to_owned(),
            segmented: name.segmented,
            views,
        })
    }

    /// Index of the model's plan.
    pub fn model(&self) -> usize {
        self.model
    }

    /// Its names.
    pub fn name(&self) -> VersionName<'_> {
        VersionName {
            model: &self.name,
            version: &self.version,
            segmented: self.segmented,
        }
    }

    /// Takes a sealed pane of a view.
    pub fn apply(&mut self, view: View, pane: &PaneState, sealed_until_ms: i64) {
        if let Some(ours) = self.views.iter_mut().find(|v| v.view == view) {
            // A pane of another shape stays out.
            let _ = ours.apply(pane, sealed_until_ms);
        }
    }

    /// Takes a late outcome; answers for how many views there was no cell.
    pub fn revise(&mut self, late: &LateVector) -> u64 {
        let revision = revision(late);
        let took = self.views.iter_mut().map(|v| v.revise(&revision));
        took.map(|took| u64::from(!took)).sum()
    }

    /// Walks the panes up to the line, as the windows of scores do.
    pub fn advance(&mut self, from_ms: i64, line_ms: i64, pane_ms: i64) {
        let mut at_ms = from_ms;
        while at_ms < line_ms {
            if !self.views.iter().any(|v| v.windows.moves()) {
                let oldest = self.views.iter().filter_map(|v| v.pending.oldest_ms());
                match oldest.min() {
                    Some(oldest) if oldest < line_ms => at_ms = at_ms.max(oldest),
                    _ => break,
                }
            }
            let end_ms = at_ms + pane_ms;
            for view in &mut self.views {
                let pane = view.pending.seal(end_ms);
                let _ = view.windows.seal(pane.as_ref(), end_ms);
                view.windows.trim(end_ms);
            }
            at_ms = end_ms;
        }
    }

    /// The windows of each view.
    pub fn views(&self) -> impl Iterator<Item = (View, &Windows)> {
        self.views.iter().map(|v| (v.view, &v.windows))
    }

    /// Panes of each view that its windows have not passed.
    pub fn pending(&self) -> impl Iterator<Item = (View, VectorPanesState)> {
        self.views.iter().map(|v| (v.view, v.pending.state()))
    }

    /// Panes held.
    pub fn panes(&self) -> usize {
        let panes = |v: &ViewWindows| v.pending.len() + v.windows.panes();
        self.views.iter().map(panes).sum()
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let bytes = |v: &ViewWindows| v.pending.bytes() + v.windows.bytes();
        self.views.iter().map(bytes).sum()
    }

    /// Adds the windows to the snapshot of the shard, which has the open panes.
    pub fn save_to(&self, state: &mut VersionState) {
        for ours in &self.views {
            let theirs = state.view_mut(ours.view);
            theirs.pending = ours.pending.state();
            theirs.judge.rings = ours.windows.state();
        }
    }

    /// Restores the windows of a snapshot; an error where they are of another shape.
    pub fn restore(&mut self, state: &VersionState) -> Result<(), PackError> {
        for ours in &mut self.views {
            let Some(theirs) = state.view(ours.view) else {
                continue;
            };
            ours.pending.restore(theirs.pending.clone())?;
            if !theirs.judge.rings.is_empty() {
                ours.windows.restore(theirs.judge.rings.clone())?;
            }
        }
        Ok(())
    }
}
