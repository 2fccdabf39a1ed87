//! The vector views of the models, as the second stage has them: windows, verdicts and alerts of
//! versions.
//!
//! Sealed panes come as deltas of [`VectorCounts`](super::vector_counts::VectorCounts), and wait
//! until all shards have passed them; windows and judges are of the same types as for scores. Caps
//! hold for each shard, and for the monitor.

use super::activity::Activity;
use super::delta::PaneWalk;
use super::snapshot::VersionState;
use super::version::{Version, VersionView};
use super::versions::Versions;
use super::views::VersionName;
use crate::collect::LateVector;
use crate::judge::{
    Change, Judge, JudgeOptions, ModelPlan, Plan, Stopwatch, StreamId, StreamReport,
    WindowJudgement,
};
use crate::window::{EmptySums, PaneState, Windows};
use std::sync::Arc;

/// All vector streams of a monitor.
#[derive(Debug, Clone, Default)]
pub struct Vectors {
    versions: Versions<Judge>,
    stopwatch: Option<Stopwatch>,
}

impl Vectors {
    /// Takes a sealed pane; all panes of its model before `sealed_until_ms` are sealed here. `None`
    /// if it does not fit the plan.
    pub fn apply(
        &mut self,
        plan: &Plan,
        stream: &StreamId,
        newest_ms: i64,
        pane: &PaneState,
        sealed_until_ms: &[i64],
    ) -> Option<()> {
        let at = self.find_or_begin(plan, VersionName::of_stream(stream))?;
        let version = &mut self.versions[at];
        let sealed_until_ms = sealed_until_ms[version.model];
        if pane.end_ms - pane.start_ms != plan.models[version.model].ladder.pane_ms {
            return None;
        }
        version.apply(stream.view, pane, sealed_until_ms, Judge::place)?;
        see(version, newest_ms);
        Some(())
    }

    /// Takes a late outcome; returns how many views had no cell.
    pub fn revise(&mut self, plan: &Plan, name: VersionName<'_>, late: &LateVector) -> u64 {
        match self.find_or_begin(plan, name) {
            Some(at) => self.versions[at].revise(late, Judge::revise),
            None => 0,
        }
    }

    /// Takes what a shard says of a version.
    pub fn observe(&mut self, plan: &Plan, a: &Activity<VersionName<'_>>) {
        let at = match self.versions.find(a.of) {
            None if a.begins => self.find_or_begin(plan, a.of),
            known => known,
        };
        if let Some(at) = at {
            let version = &mut self.versions[at];
            version.last.merge(a.last);
            see(version, a.last.newest_ms);
        }
    }

    /// Takes when the oldest waiting predictions of a stream are mature, before the next tick.
    pub fn await_until(&mut self, plan: &Plan, name: VersionName<'_>, due_ms: i64) {
        if let Some(at) = self.find_or_begin(plan, name) {
            let due = &mut self.versions[at].due_ms;
            *due = Some(due.map_or(due_ms, |due| due.min(due_ms)));
        }
    }

    /// Adds the windows of a version of one partition, which are no further than `sealed_until_ms`.
    pub fn absorb(&mut self, plan: &Plan, theirs: &Version<Windows>, sealed_until_ms: &[i64]) {
        let Some(at) = self.find_or_begin(plan, theirs.name()) else {
            return;
        };
        let version = &mut self.versions[at];
        let sealed_until_ms = sealed_until_ms[version.model];
        for theirs in &theirs.views {
            if let Some(ours) = version.view_mut(theirs.view) {
                // Sums of another shape stay out.
                let _ = ours.sink.absorb(&theirs.sink, sealed_until_ms);
            }
        }
    }

    /// Adds the panes that the windows of a version of one partition have not passed.
    pub fn absorb_pending(&mut self, theirs: &Version<Windows>, sealed_until_ms: &[i64]) {
        let Some(at) = self.versions.find(theirs.name()) else {
            return;
        };
        let version = &mut self.versions[at];
        let sealed_until_ms = sealed_until_ms[version.model];
        for theirs in &theirs.views {
            for pane in &theirs.panes.state().open {
                version.apply(theirs.view, pane, sealed_until_ms, Judge::place);
            }
        }
    }

    /// The version of a name, begun if it is new.
    fn find_or_begin(&mut self, plan: &Plan, name: VersionName<'_>) -> Option<usize> {
        if let Some(at) = self.versions.find(name) {
            return Some(at);
        }
        let at = self.versions.begin(plan, name, |of, view, empty| {
            judge(of, name.stream(view), empty)
        })?;
        for view in &mut self.versions[at].views {
            view.sink.time_by(self.stopwatch);
        }
        Some(at)
    }

    /// All judges.
    pub fn judges(&self) -> impl Iterator<Item = &Judge> {
        let views = self.versions.iter().flat_map(|v| &v.views);
        views.map(|v| &v.sink)
    }

    fn judges_mut(&mut self) -> impl Iterator<Item = &mut Judge> {
        let views = self.versions.iter_mut().flat_map(|v| &mut v.views);
        views.map(|v| &mut v.sink)
    }

    /// All judges, each with the index of its model.
    pub fn judges_of_models(&mut self) -> impl Iterator<Item = (usize, &mut Judge)> {
        let versions = self.versions.iter_mut();
        versions.flat_map(|v| v.views.iter_mut().map(|view| (v.model, &mut view.sink)))
    }

    /// All judges with how they judge.
    pub fn judges_with<'p>(
        &mut self,
        plan: &'p Plan,
    ) -> impl Iterator<Item = (&mut Judge, &'p JudgeOptions)> {
        self.versions.iter_mut().flat_map(|v| {
            let options = &plan.models[v.model].judge;
            v.views.iter_mut().map(move |v| (&mut v.sink, options))
        })
    }

    /// Seals and judges the panes of a model from `from_ms` to the watermark.
    pub fn seal(
        &mut self,
        plan: &Plan,
        model: usize,
        from_ms: i64,
        watermark_ms: i64,
        changes: &mut Vec<Change>,
    ) {
        let (options, pane_ms) = (&plan.models[model].judge, plan.models[model].ladder.pane_ms);
        for version in self.versions.iter_mut().filter(|v| v.model == model) {
            let walk = PaneWalk::new(from_ms, watermark_ms, pane_ms);
            let sliding = |judge: &Judge, after, until| judge.next_end_ms(after, until, options);
            version.seal(walk, sliding, |judge, pane, end_ms| {
                judge.seal(pane, end_ms, options, changes);
            });
        }
    }

    /// Whether time alone changes a window of a model.
    pub fn can_slide(&self, model: usize) -> bool {
        let mine = self.views_of(model);
        mine.map(|v| &v.sink).any(Judge::can_slide)
    }

    /// Start of the oldest waiting pane of a model.
    pub fn oldest_ms(&self, model: usize) -> Option<i64> {
        let mine = self.views_of(model);
        mine.filter_map(|v| v.panes.oldest_ms()).min()
    }

    fn views_of(&self, model: usize) -> impl Iterator<Item = &VersionView<Judge>> {
        let mine = self.versions.iter().filter(move |v| v.model == model);
        mine.flat_map(|v| &v.views)
    }

    /// Judges every window of a model as it stands when the input has ended at the watermark.
    pub fn finish(
        &mut self,
        plan: &Plan,
        model: usize,
        watermark_ms: i64,
        changes: &mut Vec<Change>,
    ) {
        let options = &plan.models[model].judge;
        let mine = self.versions.iter_mut().filter(|v| v.model == model);
        for view in mine.flat_map(|v| &mut v.views) {
            view.sink.finish(watermark_ms, options, changes);
        }
    }

    /// Advances the clock: withdraws stale values and expires unused versions; `expired` decides by
    /// model and newest event time.
    pub fn tick(
        &mut self,
        plan: &Plan,
        now_ms: i64,
        stalled: bool,
        expired: impl Fn(usize, i64) -> bool,
        changes: &mut Vec<Change>,
    ) {
        let left = self.versions.retain(|v| {
            let came = v.last.seen;
            let without_event_ms = v.last.tick(now_ms);
            let options = &plan.models[v.model].judge;
            let due_ms = v.due_ms.take();
            let expired = expired(v.model, v.last.newest_ms) && due_ms.is_none();
            let stale = without_event_ms >= options.stale_after_ms;
            for judge in v.views.iter_mut().map(|v| &mut v.sink) {
                judge.set_due_ms(due_ms);
                if came {
                    judge.note_event();
                }
                if expired {
                    judge.leave(now_ms, options, changes);
                } else {
                    judge.tick(now_ms, stale, stalled, options, changes);
                }
            }
            !expired
        });
        if left {
            self.versions.admit(plan, Judge::set_cells_max);
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
            .map(|v| v.panes.len() + v.sink.windows().panes())
            .sum()
    }

    /// Windows evaluated since the last call.
    pub fn take_evaluations(&mut self) -> u64 {
        self.judges_mut().map(Judge::take_evaluations).sum()
    }

    /// Adds windows, verdicts and alerts to the snapshot of a shard, if there is one.
    pub fn save_to(&self, states: &mut Vec<VersionState>) {
        let mut known = vec![false; self.versions.len()];
        for state in states.iter_mut() {
            if let Some(at) = self.versions.find(state.name()) {
                save(&self.versions[at], state);
                known[at] = true;
            }
        }
        let others = self.versions.iter().zip(known).filter(|(_, known)| !known);
        states.extend(others.map(|(version, _)| {
            let mut state = version.state();
            save(version, &mut state);
            state
        }));
    }

    /// Restores a version of a snapshot whose model is `model` of the plan; `None` if its sums are
    /// of another shape.
    pub fn restore(&mut self, plan: &Plan, model: usize, state: &VersionState) -> Option<()> {
        let mut version = Version::of_state(plan, model, state, |of, view, empty| {
            judge(of, state.name().stream(view), empty)
        });
        // A view that is no longer configured is dropped.
        for ours in &mut version.views {
            ours.sink.set_last_event_ms(state.newest_ms);
            let Some(theirs) = state.view(ours.view) else {
                continue;
            };
            ours.panes.restore(theirs.pending.clone()).ok()?;
            if !theirs.judge.rings.is_empty() {
                let options = &plan.models[model].judge;
                ours.sink.restore(theirs.judge.clone(), options).ok()?;
            }
        }
        if !version.views.is_empty() {
            self.versions.push(version);
        }
        Some(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let views = self.versions.iter().flat_map(|v| &v.views);
        views.map(|v| v.panes.bytes() + v.sink.bytes()).sum()
    }
}

fn judge(plan: &ModelPlan, id: StreamId, empty: EmptySums) -> Judge {
    Judge::of_sums(id, &plan.ladder, plan.grid, empty)
}

/// Adds windows, verdicts and alerts of a version to its state.
fn save(version: &Version<Judge>, state: &mut VersionState) {
    for ours in &version.views {
        let theirs = state.view_mut(ours.view);
        theirs.pending = ours.panes.state();
        theirs.judge = ours.sink.state();
    }
}

/// Takes the newest event time of a version.
fn see(version: &mut Version<Judge>, newest_ms: i64) {
    let last = &mut version.last;
    last.newest_ms = last.newest_ms.max(newest_ms);
    let newest_ms = last.newest_ms;
    for view in &mut version.views {
        view.sink.set_last_event_ms(newest_ms);
    }
}
