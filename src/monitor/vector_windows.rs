//! The windows of one version's vector views, where partitions move. See [`super::retained`].

use super::snapshot::VersionState;
use super::vectors::{VersionName, revised, shape, vectors};
use crate::collect::LateVector;
use crate::judge::Plan;
use crate::judge::vector::VectorState;
use crate::stats::view::View;
use crate::window::held::Held;
use crate::window::sparse::{SparsePane, SparseWindows};

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
    /// What a pane without events holds.
    blank: Held,
    windows: SparseWindows,
}

impl VersionWindows {
    /// Windows without panes; `None` where the model has no vector view.
    pub fn new(plan: &Plan, name: VersionName<'_>) -> Option<VersionWindows> {
        let model = plan.serves(name.model)?;
        let of = &plan.models[model];
        let windows = |view: View| {
            let shape = shape(of, view, plan.caps.vector_cells_max)?;
            Some(ViewWindows {
                view,
                blank: shape.blank()?,
                windows: SparseWindows::new(shape, &of.ladder)?,
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

    /// Whether it is the version of this name.
    pub fn is(&self, name: VersionName<'_>) -> bool {
        self.name().is(name)
    }

    /// Takes a sealed pane of a view.
    pub fn apply(&mut self, view: View, pane: &SparsePane, sealed_until_ms: i64) {
        if let Some(ours) = self.views.iter_mut().find(|v| v.view == view)
            && let Some(sums) = pane.clone().pane(&ours.blank)
        {
            ours.windows.pour(pane.start_ms, &sums, sealed_until_ms);
        }
    }

    /// Takes a late outcome; answers for how many views there was no cell.
    pub fn revise(&mut self, late: &LateVector) -> u64 {
        let revised = revised(late);
        let took = self.views.iter_mut().map(|v| v.windows.revise(&revised));
        took.map(|took| u64::from(!took)).sum()
    }

    /// Moves the windows up to the line.
    pub fn pass(&mut self, line_ms: i64) {
        self.views.iter_mut().for_each(|v| v.windows.pass(line_ms));
    }

    /// The windows of each view.
    pub fn views(&self) -> impl Iterator<Item = (View, &SparseWindows)> {
        self.views.iter().map(|v| (v.view, &v.windows))
    }

    /// Panes held.
    pub fn panes(&self) -> usize {
        self.views.iter().map(|v| v.windows.panes()).sum()
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.views.iter().map(|v| v.windows.bytes()).sum()
    }

    /// Adds the windows to the snapshot of the shard, which has the open panes.
    pub fn save_to(&self, state: &mut VersionState) {
        for (view, theirs) in &mut state.judges {
            let mut views = self.views.iter();
            if let Some(ours) = views.find(|v| v.view.to_string() == *view) {
                theirs.windows.slots = ours.windows.state().slots;
            }
        }
    }

    /// Puts back the windows of a snapshot; `None` where they are of another shape.
    pub fn restore(&mut self, state: &VersionState) -> Option<()> {
        for (view, theirs) in &state.judges {
            let mut views = self.views.iter_mut();
            if let Some(ours) = views.find(|v| v.view.to_string() == *view)
                && !theirs.windows.slots.is_empty()
            {
                ours.windows.restore(without_open(theirs).windows)?;
            }
        }
        Some(())
    }
}

/// The windows of a view without the open panes, which are the shard's.
pub fn without_open(state: &VectorState) -> VectorState {
    let mut state = state.clone();
    state.windows.open.clear();
    state.windows.late = 0;
    state
}
