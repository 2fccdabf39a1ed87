//! Versions with vector views: what a shard, the windows of a partition and a monitor hold of them.
//!
//! Vector streams are of whole versions: segments would multiply cells that are sparse already, so
//! a version with segments has its vector views under segment `*`, like a roll-up. `S` is the sink
//! of the sealed panes of a view: nothing in a shard, where panes are open; windows; or a judge.

use super::delta::PaneWalk;
use super::snapshot::VersionState;
use super::views::{VersionName, blank, correction, vectors};
use crate::collect::{LastSeen, LateVector, VectorPanes};
use crate::judge::{ModelPlan, Plan};
use crate::stats::view::View;
use crate::window::{EmptySums, PackError, Pane, PaneState, VectorCorrection};

/// A version. See the module.
#[derive(Debug, Clone)]
pub struct Version<S> {
    /// Index of the model's plan.
    pub model: usize,
    name: String,
    version: String,
    segmented: bool,
    /// Its last event, in a shard and in a monitor.
    pub last: LastSeen,
    /// When its oldest waiting predictions are mature, as told since the last tick of a monitor.
    pub due_ms: Option<i64>,
    /// Its vector views.
    pub views: Vec<VersionView<S>>,
}

/// A vector view of a version.
#[derive(Debug, Clone)]
pub struct VersionView<S> {
    /// The view.
    pub view: View,
    /// Open panes of a shard; elsewhere sealed ones that not all shards have passed.
    pub panes: VectorPanes,
    /// The sink, which takes the panes.
    pub sink: S,
}

impl<S> Version<S> {
    /// A version of `model` without panes, which have room for `cells_max` cells; an event of it
    /// has come.
    pub fn new(
        plan: &Plan,
        model: usize,
        name: VersionName<'_>,
        cells_max: usize,
        sink: impl Fn(&ModelPlan, View, EmptySums) -> S,
    ) -> Version<S> {
        let of = &plan.models[model];
        let view = |view: View| {
            let blank = blank(of, view, cells_max)?;
            Some(VersionView {
                view,
                sink: sink(of, view, EmptySums::Vector(blank.clone())),
                panes: VectorPanes::new(blank, of.ladder.pane_ms),
            })
        };
        Version {
            model,
            name: name.model.to_owned(),
            version: name.version.to_owned(),
            segmented: name.segmented,
            last: LastSeen {
                seen: true,
                ..LastSeen::before(i64::MIN)
            },
            due_ms: None,
            views: vectors(of).filter_map(view).collect(),
        }
    }

    /// A version of a snapshot, without its panes yet.
    pub fn of_state(
        plan: &Plan,
        model: usize,
        state: &VersionState,
        sink: impl Fn(&ModelPlan, View, EmptySums) -> S,
    ) -> Version<S> {
        let cells_max = match state.cells {
            true => plan.caps.vector_cells_max,
            false => 0,
        };
        let version = Version::new(plan, model, state.name(), cells_max, sink);
        Version {
            last: LastSeen::before(state.newest_ms),
            ..version
        }
    }

    /// Its names.
    pub fn name(&self) -> VersionName<'_> {
        VersionName {
            model: &self.name,
            version: &self.version,
            segmented: self.segmented,
        }
    }

    /// Whether any event of it would find room.
    pub fn has_cells(&self) -> bool {
        self.views.iter().any(|v| v.panes.has_room())
    }

    /// Its state without its views, for a snapshot.
    pub fn state(&self) -> VersionState {
        VersionState {
            model: self.model as u32,
            name: self.name.clone(),
            version: self.version.clone(),
            segmented: self.segmented,
            newest_ms: self.last.newest_ms,
            cells: self.has_cells(),
            views: Vec::new(),
        }
    }

    /// One of its views.
    pub fn view_mut(&mut self, view: View) -> Option<&mut VersionView<S>> {
        self.views.iter_mut().find(|v| v.view == view)
    }

    /// Takes a sealed pane of a view: it waits, or is placed if all panes of its time are sealed
    /// already. `None` if it does not fit.
    pub fn apply(
        &mut self,
        view: View,
        pane: &PaneState,
        sealed_until_ms: i64,
        place: impl FnOnce(&mut S, &Pane, i64) -> Result<(), PackError>,
    ) -> Option<()> {
        let view = self.view_mut(view)?;
        let pane = view.panes.unpack(pane.clone()).ok()?;
        if pane.start_ms >= sealed_until_ms {
            view.panes.merge(&pane);
            return Some(());
        }
        place(&mut view.sink, &pane, sealed_until_ms).ok()
    }

    /// Takes a late outcome; returns how many views had no cell.
    pub fn revise(
        &mut self,
        late: &LateVector,
        revise: impl Fn(&mut S, &VectorCorrection<'_>) -> bool,
    ) -> u64 {
        let correction = correction(late);
        let took = self.views.iter_mut().map(|v| {
            let waiting = v.panes.revise(&correction);
            waiting.unwrap_or_else(|| revise(&mut v.sink, &correction))
        });
        took.map(|took| u64::from(!took)).sum()
    }

    /// Gives the panes of the walk to the sinks of all views, each with its end.
    pub fn seal(
        &mut self,
        mut walk: PaneWalk,
        sliding: impl Fn(&S, i64, i64) -> Option<i64>,
        mut seal: impl FnMut(&mut S, Option<&Pane>, i64),
    ) {
        let oldest_ms = |views: &[VersionView<S>]| {
            let oldest = views.iter().filter_map(|v| v.panes.oldest_ms());
            oldest.min()
        };
        while let Some(end_ms) = walk.next_end_ms(oldest_ms(&self.views), |after, until| {
            let views = self.views.iter();
            (views.filter_map(|v| sliding(&v.sink, after, until))).min()
        }) {
            for view in &mut self.views {
                let pane = view.panes.seal(end_ms);
                seal(&mut view.sink, pane.as_ref(), end_ms);
            }
        }
    }
}
