//! The vector views of the models, as the second stage has them: windows, verdicts and alerts of
//! versions.
//!
//! Sealed panes come as deltas of [`VectorCounts`](super::vector_counts::VectorCounts), and wait
//! until all shards have passed them; windows and judges are of the same types as for scores.
//! Streams are of whole versions: a version with segments has its vector views under segment `*`.
//! Caps hold for each shard, and for the monitor.

use super::activity::Activity;
use super::snapshot::VersionState;
use super::vector_windows::VersionWindows;
use super::views::{VersionName, blank, revision, vectors};
use crate::collect::{LateVector, ROLL_UP, VectorPanes};
use crate::judge::{
    Change, Judge, JudgeOptions, ModelPlan, Plan, Stopwatch, StreamId, StreamReport,
    WindowJudgement,
};
use crate::stats::view::View;
use crate::window::{EmptySums, PackError, PaneState, Revision};
use std::sync::Arc;

/// All vector streams of a monitor.
#[derive(Debug, Clone, Default)]
pub struct Vectors {
    versions: Vec<Version>,
    stopwatch: Option<Stopwatch>,
}

/// The vector views of one version.
#[derive(Debug, Clone)]
struct Version {
    model: usize,
    name: String,
    version: String,
    segmented: bool,
    newest_ms: i64,
    seen: bool,
    seen_ms: Option<i64>,
    /// When the oldest of its predictions that wait are mature, since the last tick.
    due_ms: Option<i64>,
    views: Vec<VectorView>,
}

/// One vector view of a version.
#[derive(Debug, Clone)]
struct VectorView {
    /// Sealed panes that not all shards have passed.
    pending: VectorPanes,
    judge: Judge,
}

fn views(plan: &ModelPlan, name: VersionName<'_>, cells_max: usize) -> Vec<VectorView> {
    let vector = |view: View| {
        let id = StreamId {
            model: name.model.to_owned(),
            version: name.version.to_owned(),
            segment: if name.segmented { ROLL_UP } else { "" }.to_owned(),
            view,
        };
        let blank = blank(plan, view, cells_max)?;
        let empty = EmptySums::Vector(blank.clone());
        Some(VectorView {
            pending: VectorPanes::new(blank, plan.ladder.pane_ms),
            judge: Judge::of_sums(id, &plan.ladder, plan.grid, empty),
        })
    };
    vectors(plan).filter_map(vector).collect()
}

impl VectorView {
    fn view(&self) -> View {
        self.judge.report().id.view
    }

    fn apply(&mut self, pane: &PaneState, sealed_until_ms: i64) -> Result<(), PackError> {
        let pane = self.pending.unpack(pane.clone())?;
        if pane.start_ms >= sealed_until_ms {
            self.pending.merge(&pane);
            return Ok(());
        }
        self.judge.place(&pane, sealed_until_ms)
    }

    fn revise(&mut self, r: &Revision<'_>) -> bool {
        let pending = self.pending.revise(r);
        pending.unwrap_or_else(|| self.judge.revise(r))
    }
}

impl Version {
    fn new(plan: &Plan, model: usize, name: VersionName<'_>, cells_max: usize) -> Version {
        Version {
            model,
            name: name.model.to_owned(),
            version: name.version.to_owned(),
            segmented: name.segmented,
            newest_ms: i64::MIN,
            seen: true,
            seen_ms: None,
            due_ms: None,
            views: views(&plan.models[model], name, cells_max),
        }
    }

    fn name(&self) -> VersionName<'_> {
        VersionName {
            model: &self.name,
            version: &self.version,
            segmented: self.segmented,
        }
    }

    /// Whether it has cells at all.
    fn has_cells(&self) -> bool {
        self.views.iter().any(|v| v.pending.has_room())
    }

    /// Takes the newest event time.
    fn see(&mut self, newest_ms: i64) {
        self.newest_ms = self.newest_ms.max(newest_ms);
        for view in &mut self.views {
            view.judge.seen(self.newest_ms);
        }
    }

    /// Walks the panes from `from_ms` to the line, as those of scores are walked.
    fn seal(&mut self, plan: &ModelPlan, from_ms: i64, line_ms: i64, changes: &mut Vec<Change>) {
        let mut at_ms = from_ms;
        while at_ms < line_ms {
            if !self.views.iter().any(|v| v.judge.moves()) {
                let oldest = self.views.iter().filter_map(|v| v.pending.oldest_ms());
                match oldest.min() {
                    Some(oldest) if oldest < line_ms => at_ms = at_ms.max(oldest),
                    _ => break,
                }
            }
            let end_ms = at_ms + plan.ladder.pane_ms;
            for view in &mut self.views {
                let pane = view.pending.seal(end_ms);
                view.judge.seal(pane.as_ref(), end_ms, &plan.judge, changes);
            }
            at_ms = end_ms;
        }
    }
}

impl Vectors {
    /// Takes a sealed pane; all panes of its model before `line_ms` are sealed here. `None` where
    /// it does not fit the plan.
    pub fn apply(
        &mut self,
        plan: &Plan,
        stream: &StreamId,
        newest_ms: i64,
        pane: &PaneState,
        line_ms: &[i64],
    ) -> Option<()> {
        let at = self.find_or_begin(plan, VersionName::of_stream(stream))?;
        let version = &mut self.versions[at];
        let line_ms = line_ms[version.model];
        let view = version.views.iter_mut().find(|v| v.view() == stream.view)?;
        view.apply(pane, line_ms).ok()?;
        version.see(newest_ms);
        Some(())
    }

    /// Takes a late outcome; answers for how many views there was no cell.
    pub fn revise(&mut self, plan: &Plan, name: VersionName<'_>, late: &LateVector) -> u64 {
        let Some(at) = self.find_or_begin(plan, name) else {
            return 0;
        };
        let revision = revision(late);
        let views = self.versions[at].views.iter_mut();
        views.map(|v| u64::from(!v.revise(&revision))).sum()
    }

    /// Takes what a shard says of a version.
    pub fn observe(&mut self, plan: &Plan, a: &Activity<VersionName<'_>>) {
        let at = match self.find(a.of) {
            None if a.begins => self.find_or_begin(plan, a.of),
            known => known,
        };
        if let Some(at) = at {
            let version = &mut self.versions[at];
            version.seen |= a.seen;
            version.seen_ms = version.seen_ms.max(a.seen_ms);
            version.see(a.newest_ms);
        }
    }

    /// Takes when the oldest predictions of a stream that wait are mature, before the next tick.
    pub fn await_until(&mut self, plan: &Plan, name: VersionName<'_>, due_ms: i64) {
        if let Some(at) = self.find_or_begin(plan, name) {
            let due = &mut self.versions[at].due_ms;
            *due = Some(due.map_or(due_ms, |due| due.min(due_ms)));
        }
    }

    /// Adds the windows of a version of one partition, which are no further than `line_ms`.
    pub fn absorb(&mut self, plan: &Plan, theirs: &VersionWindows, line_ms: &[i64]) {
        let Some(at) = self.find_or_begin(plan, theirs.name()) else {
            return;
        };
        let version = &mut self.versions[at];
        let line_ms = line_ms[version.model];
        for (view, windows) in theirs.views() {
            if let Some(ours) = version.views.iter_mut().find(|v| v.view() == view) {
                // Sums of another shape stay out.
                let _ = ours.judge.absorb(windows, line_ms);
            }
        }
    }

    /// Adds the panes that the windows of a version of one partition have not passed.
    pub fn absorb_pending(&mut self, theirs: &VersionWindows, line_ms: &[i64]) {
        let Some(at) = self.find(theirs.name()) else {
            return;
        };
        let version = &mut self.versions[at];
        let line_ms = line_ms[version.model];
        for (view, pending) in theirs.pending() {
            if let Some(ours) = version.views.iter_mut().find(|v| v.view() == view) {
                for pane in &pending.open {
                    let _ = ours.apply(pane, line_ms);
                }
            }
        }
    }

    fn find(&self, name: VersionName<'_>) -> Option<usize> {
        self.versions.iter().position(|v| v.name() == name)
    }

    /// The version of a name, begun if need be.
    fn find_or_begin(&mut self, plan: &Plan, name: VersionName<'_>) -> Option<usize> {
        if let Some(at) = self.find(name) {
            return Some(at);
        }
        let model = plan.serves(name.model)?;
        vectors(&plan.models[model]).next()?;
        let room = self.with_cells() < plan.caps.vector_versions_max;
        let cells_max = if room { plan.caps.vector_cells_max } else { 0 };
        let mut version = Version::new(plan, model, name, cells_max);
        for view in &mut version.views {
            view.judge.time_by(self.stopwatch);
        }
        self.versions.push(version);
        Some(self.versions.len() - 1)
    }

    /// All judges.
    pub fn judges(&self) -> impl Iterator<Item = &Judge> {
        let views = self.versions.iter().flat_map(|v| &v.views);
        views.map(|v| &v.judge)
    }

    fn judges_mut(&mut self) -> impl Iterator<Item = &mut Judge> {
        let views = self.versions.iter_mut().flat_map(|v| &mut v.views);
        views.map(|v| &mut v.judge)
    }

    /// All judges, each with the index of its model.
    pub fn judges_of_models(&mut self) -> impl Iterator<Item = (usize, &mut Judge)> {
        let versions = self.versions.iter_mut();
        versions.flat_map(|v| v.views.iter_mut().map(|view| (v.model, &mut view.judge)))
    }

    /// All judges with how they judge.
    pub fn judges_with<'p>(
        &mut self,
        plan: &'p Plan,
    ) -> impl Iterator<Item = (&mut Judge, &'p JudgeOptions)> {
        self.versions.iter_mut().flat_map(|v| {
            let options = &plan.models[v.model].judge;
            v.views.iter_mut().map(move |v| (&mut v.judge, options))
        })
    }

    fn with_cells(&self) -> usize {
        self.versions.iter().filter(|v| v.has_cells()).count()
    }

    /// Seals and judges the panes of a model from `from_ms` to the line.
    pub fn seal(
        &mut self,
        plan: &Plan,
        model: usize,
        (from_ms, line_ms): (i64, i64),
        changes: &mut Vec<Change>,
    ) {
        for version in self.versions.iter_mut().filter(|v| v.model == model) {
            version.seal(&plan.models[model], from_ms, line_ms, changes);
        }
    }

    /// The input has ended at the line.
    pub fn finish(&mut self, plan: &Plan, model: usize, line_ms: i64, changes: &mut Vec<Change>) {
        let options = &plan.models[model].judge;
        let mine = self.versions.iter_mut().filter(|v| v.model == model);
        for view in mine.flat_map(|v| &mut v.views) {
            view.judge.finish(line_ms, options, changes);
        }
    }

    /// Advances the clock: withdraws stale values and expires unused versions; `expired` decides by
    /// model and newest event time.
    pub fn tick(
        &mut self,
        plan: &Plan,
        (now_ms, stalled): (i64, bool),
        expired: impl Fn(usize, i64) -> bool,
        changes: &mut Vec<Change>,
    ) {
        let before = self.versions.len();
        self.versions.retain_mut(|v| {
            if std::mem::take(&mut v.seen) || v.seen_ms.is_none() {
                v.seen_ms = Some(now_ms);
            }
            let quiet_ms = now_ms.saturating_sub(v.seen_ms.unwrap_or(now_ms));
            let options = &plan.models[v.model].judge;
            let due_ms = v.due_ms.take();
            let expired = expired(v.model, v.newest_ms) && due_ms.is_none();
            let quiet = quiet_ms >= options.stale_after_ms;
            for judge in v.views.iter_mut().map(|v| &mut v.judge) {
                judge.awaits(due_ms);
                if expired {
                    judge.leave(now_ms, options, changes);
                } else {
                    judge.tick(now_ms, (quiet, stalled), options, changes);
                }
            }
            !expired
        });
        if self.versions.len() < before {
            self.admit(plan);
        }
    }

    /// Gives cells to versions that began when there were none.
    fn admit(&mut self, plan: &Plan) {
        let most = plan.caps.vector_versions_max;
        let room = most.saturating_sub(self.with_cells());
        let without = self.versions.iter_mut().filter(|v| !v.has_cells());
        for view in without.take(room).flat_map(|v| &mut v.views) {
            view.pending.cap(plan.caps.vector_cells_max);
            view.judge.cap(plan.caps.vector_cells_max);
        }
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &Arc<StreamReport>> {
        self.judges().map(Judge::report)
    }

    /// Times every evaluation from now on.
    pub fn time_by(&mut self, stopwatch: Option<Stopwatch>) {
        self.stopwatch = stopwatch;
        self.judges_mut().for_each(|j| j.time_by(stopwatch));
    }

    /// Moves the judgements since the last call to the end of `all`.
    pub fn take_judgements(&mut self, all: &mut Vec<WindowJudgement>) {
        self.judges_mut().for_each(|j| j.take_judgements(all));
    }

    /// Panes held.
    pub fn panes(&self) -> usize {
        let views = self.versions.iter().flat_map(|v| &v.views);
        views
            .map(|v| v.pending.len() + v.judge.windows().panes())
            .sum()
    }

    /// Windows evaluated since the last call.
    pub fn take_evaluations(&mut self) -> u64 {
        self.judges_mut().map(Judge::take_evaluations).sum()
    }

    /// Adds windows, verdicts and alerts to the snapshot of a shard, if there is one.
    pub fn save_to(&self, states: &mut Vec<VersionState>) {
        for v in &self.versions {
            let known = states.iter().position(|s| s.name() == v.name());
            let at = known.unwrap_or_else(|| {
                states.push(VersionState {
                    model: v.model as u32,
                    name: v.name.clone(),
                    version: v.version.clone(),
                    segmented: v.segmented,
                    newest_ms: v.newest_ms,
                    cells: v.has_cells(),
                    views: Vec::new(),
                });
                states.len() - 1
            });
            for ours in &v.views {
                let theirs = states[at].view_mut(ours.view());
                theirs.pending = ours.pending.state();
                theirs.judge = ours.judge.state();
            }
        }
    }

    /// Restores a version of a snapshot whose model is `model` of the plan; `None` where its sums
    /// are of another shape.
    pub fn restore(&mut self, plan: &Plan, model: usize, state: &VersionState) -> Option<()> {
        let cells_max = if state.cells {
            plan.caps.vector_cells_max
        } else {
            0
        };
        let mut version = Version::new(plan, model, state.name(), cells_max);
        // A view that is no longer configured is let go.
        for ours in &mut version.views {
            ours.judge.seen(state.newest_ms);
            let Some(theirs) = state.view(ours.view()) else {
                continue;
            };
            ours.pending.restore(theirs.pending.clone()).ok()?;
            if !theirs.judge.rings.is_empty() {
                let options = &plan.models[model].judge;
                ours.judge.restore(theirs.judge.clone(), options).ok()?;
            }
        }
        (version.newest_ms, version.seen) = (state.newest_ms, false);
        if !version.views.is_empty() {
            self.versions.push(version);
        }
        Some(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let views = self.versions.iter().flat_map(|v| &v.views);
        views.map(|v| v.pending.bytes() + v.judge.bytes()).sum()
    }
}
