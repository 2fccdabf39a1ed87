//! The vector views of the models, as the second stage has them: windows, verdicts and alerts of versions.
//!
//! Sealed panes come as deltas of [`VectorCounts`](super::vector_counts::VectorCounts), and wait in the
//! windows until all shards have passed them. Streams are of whole versions: a version with segments has its
//! vector views under segment `*`. Caps hold for each shard, and for the monitor.

use super::activity::Activity;
use super::snapshot::VersionState;
use super::vector_windows::{VersionWindows, without_open};
use crate::collect::{Event, Key, LateVector, ROLL_UP};
use crate::judge::vector::VectorJudge;
use crate::judge::{Change, JudgeOptions, ModelPlan, Plan, Stopwatch, StreamId, StreamReport};
use crate::stats::multiclass::sums::Shape;
use crate::stats::view::View;
use crate::window::held::HeldShape;
use crate::window::sparse::{Revised, SparsePane};

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
    judges: Vec<VectorJudge>,
}

/// What a version is called.
#[derive(Debug, Clone, Copy)]
pub struct VersionName<'a> {
    /// Name of the model as it came.
    pub model: &'a str,
    /// Version.
    pub version: &'a str,
    /// Whether its events have segments.
    pub segmented: bool,
}

impl<'a> VersionName<'a> {
    /// The version of an event.
    pub fn of_event(event: &Event<'a>) -> VersionName<'a> {
        VersionName {
            model: event.model,
            version: event.version,
            segmented: !event.segment.is_empty(),
        }
    }

    /// The version of a stream of scores.
    pub fn of_key(key: &'a Key) -> VersionName<'a> {
        VersionName {
            model: key.model(),
            version: key.version(),
            segmented: !key.segment().is_empty(),
        }
    }

    /// The version of a vector stream.
    pub fn of_stream(id: &'a StreamId) -> VersionName<'a> {
        VersionName {
            model: &id.model,
            version: &id.version,
            segmented: !id.segment.is_empty(),
        }
    }

    /// Whether both are one version.
    pub fn is(self, other: VersionName<'_>) -> bool {
        self.model == other.model && self.version == other.version
    }
}

/// The shape under which a model keeps a vector view; `None` of a scalar one.
pub fn shape(plan: &ModelPlan, view: View, cells_max: usize) -> Option<HeldShape> {
    let classes = plan.classes.len();
    if view == View::Kernel {
        let keeping = plan.judge.kernel;
        return Some(HeldShape::Kernel { classes, keeping });
    }
    Some(HeldShape::Cells(Shape {
        view: view.cells()?,
        classes,
        cells_max,
        weighted: plan.grid.is_weighted(),
    }))
}

/// The vector views of a model.
pub fn vectors(plan: &ModelPlan) -> impl Iterator<Item = View> {
    plan.views.iter().copied().filter(|v| v.is_vector())
}

/// The scalar views of a model, which the collector counts.
pub fn scalars(plan: &ModelPlan) -> impl Iterator<Item = View> {
    plan.views.iter().copied().filter(|v| !v.is_vector())
}

/// What a late outcome changes.
pub fn revised(late: &LateVector) -> Revised<'_> {
    Revised {
        time_ms: late.time_ms,
        vector: late.vector(),
        before: late.before,
        implied: late.implied,
        now: late.now,
    }
}

fn judges(plan: &ModelPlan, name: VersionName<'_>, cells_max: usize) -> Vec<VectorJudge> {
    let judge = |view: &View| {
        let id = StreamId {
            model: name.model.to_owned(),
            version: name.version.to_owned(),
            segment: if name.segmented { ROLL_UP } else { "" }.to_owned(),
            view: *view,
        };
        let shape = shape(plan, *view, cells_max)?;
        let mut judge = VectorJudge::new(id, shape, &plan.ladder, plan.grid)?;
        judge.cap(cells_max);
        Some(judge)
    };
    plan.views.iter().filter_map(judge).collect()
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
            judges: judges(&plan.models[model], name, cells_max),
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
        self.judges.iter().any(VectorJudge::has_room)
    }

    /// Takes the newest event time.
    fn see(&mut self, newest_ms: i64) {
        self.newest_ms = self.newest_ms.max(newest_ms);
        let newest_ms = self.newest_ms;
        self.judges.iter_mut().for_each(|j| j.seen(newest_ms));
    }
}

impl Vectors {
    /// Takes a sealed pane; all panes of its model before `line_ms` are sealed here. `None` where it does
    /// not fit the plan.
    pub fn apply(
        &mut self,
        plan: &Plan,
        stream: &StreamId,
        newest_ms: i64,
        pane: &SparsePane,
        line_ms: &[i64],
    ) -> Option<()> {
        let at = self.find_or_begin(plan, VersionName::of_stream(stream), line_ms)?;
        let version = &mut self.versions[at];
        let of = &plan.models[version.model];
        let blank = shape(of, stream.view, plan.caps.vector_cells_max)?.blank()?;
        let sums = pane.clone().pane(&blank)?;
        version.seen = true;
        version.see(newest_ms);
        let line_ms = line_ms[version.model];
        let mut judges = version.judges.iter_mut();
        let judge = judges.find(|j| j.report().id.view == stream.view)?;
        judge.windows_mut().pour(pane.start_ms, &sums, line_ms);
        Some(())
    }

    /// Takes a late outcome; answers for how many views there was no cell.
    pub fn revise(
        &mut self,
        plan: &Plan,
        name: VersionName<'_>,
        late: &LateVector,
        line_ms: &[i64],
    ) -> u64 {
        let Some(at) = self.find_or_begin(plan, name, line_ms) else {
            return 0;
        };
        let revised = revised(late);
        let judges = self.versions[at].judges.iter_mut();
        judges.map(|j| u64::from(!j.revise(&revised))).sum()
    }

    /// Takes what a shard says of a version.
    pub fn observe(&mut self, plan: &Plan, a: &Activity<VersionName<'_>>, line_ms: &[i64]) {
        let at = match self.find(a.of) {
            None if a.begins => self.find_or_begin(plan, a.of, line_ms),
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
    pub fn await_until(
        &mut self,
        plan: &Plan,
        name: VersionName<'_>,
        due_ms: i64,
        line_ms: &[i64],
    ) {
        if let Some(at) = self.find_or_begin(plan, name, line_ms) {
            let due = &mut self.versions[at].due_ms;
            *due = Some(due.map_or(due_ms, |due| due.min(due_ms)));
        }
    }

    /// Adds the windows of a version of one partition, which are no further than `line_ms`.
    pub fn absorb(&mut self, plan: &Plan, theirs: &VersionWindows, line_ms: &[i64]) {
        let Some(at) = self.find_or_begin(plan, theirs.name(), line_ms) else {
            return;
        };
        let version = &mut self.versions[at];
        let line_ms = line_ms[version.model];
        for (view, windows) in theirs.views() {
            let mut judges = version.judges.iter_mut();
            if let Some(judge) = judges.find(|j| j.report().id.view == view) {
                judge.windows_mut().absorb(windows, line_ms);
            }
        }
    }

    fn find(&self, name: VersionName<'_>) -> Option<usize> {
        self.versions.iter().position(|v| v.name().is(name))
    }

    /// The version of a name, begun if need be: its first window ends after the line.
    fn find_or_begin(
        &mut self,
        plan: &Plan,
        name: VersionName<'_>,
        line_ms: &[i64],
    ) -> Option<usize> {
        if let Some(at) = self.find(name) {
            return Some(at);
        }
        let model = plan.serves(name.model)?;
        vectors(&plan.models[model]).next()?;
        let room = self.with_cells() < plan.caps.vector_versions_max;
        let cells_max = if room { plan.caps.vector_cells_max } else { 0 };
        let mut version = Version::new(plan, model, name, cells_max);
        for judge in &mut version.judges {
            judge.time_by(self.stopwatch);
            if line_ms[model] > i64::MIN {
                judge.windows_mut().stand_at(line_ms[model]);
            }
        }
        self.versions.push(version);
        Some(self.versions.len() - 1)
    }

    /// All judges.
    pub fn judges(&self) -> impl Iterator<Item = &VectorJudge> {
        self.versions.iter().flat_map(|v| &v.judges)
    }

    fn judges_mut(&mut self) -> impl Iterator<Item = &mut VectorJudge> {
        self.versions.iter_mut().flat_map(|v| &mut v.judges)
    }

    /// All judges with how they judge.
    pub fn judges_with<'p>(
        &mut self,
        plan: &'p Plan,
    ) -> impl Iterator<Item = (&mut VectorJudge, &'p JudgeOptions)> {
        self.versions.iter_mut().flat_map(|v| {
            let options = &plan.models[v.model].judge;
            v.judges.iter_mut().map(move |j| (j, options))
        })
    }

    fn with_cells(&self) -> usize {
        self.versions.iter().filter(|v| v.has_cells()).count()
    }

    /// Seals all panes of a model before the line.
    pub fn seal(&mut self, plan: &Plan, model: usize, line_ms: i64, changes: &mut Vec<Change>) {
        let options = &plan.models[model].judge;
        for judge in self.of(model) {
            judge.seal(line_ms, options, changes);
        }
    }

    /// The input has ended at the line.
    pub fn finish(&mut self, plan: &Plan, model: usize, line_ms: i64, changes: &mut Vec<Change>) {
        let options = &plan.models[model].judge;
        for judge in self.of(model) {
            judge.finish(line_ms, options, changes);
        }
    }

    fn of(&mut self, model: usize) -> impl Iterator<Item = &mut VectorJudge> {
        let mine = self.versions.iter_mut().filter(move |v| v.model == model);
        mine.flat_map(|v| v.judges.iter_mut())
    }

    /// Takes the time: withdraws what is stale, lets go of what expired.
    pub fn tick(&mut self, plan: &Plan, now_ms: i64, changes: &mut Vec<Change>) {
        let before = self.versions.len();
        self.versions.retain_mut(|v| {
            if std::mem::take(&mut v.seen) || v.seen_ms.is_none() {
                v.seen_ms = Some(now_ms);
            }
            let quiet_ms = now_ms.saturating_sub(v.seen_ms.unwrap_or(now_ms));
            let options = &plan.models[v.model].judge;
            let due_ms = v.due_ms.take();
            let expired = quiet_ms >= plan.caps.expire_after_ms && due_ms.is_none();
            for judge in &mut v.judges {
                judge.awaits(due_ms);
                if expired {
                    judge.leave(now_ms, options, changes);
                } else if quiet_ms >= options.stale_after_ms {
                    judge.withdraw(now_ms, options, changes);
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
        for judge in without.take(room).flat_map(|v| &mut v.judges) {
            judge.cap(plan.caps.vector_cells_max);
        }
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &StreamReport> {
        self.judges().map(VectorJudge::report)
    }

    /// Times every evaluation from now on.
    pub fn time_by(&mut self, stopwatch: Stopwatch) {
        self.stopwatch = Some(stopwatch);
        self.judges_mut().for_each(|j| j.time_by(Some(stopwatch)));
    }

    /// Moves the times of evaluations, in nanoseconds, to the end of `all`.
    pub fn take_nanos(&mut self, all: &mut Vec<u64>) {
        self.judges_mut().for_each(|j| j.take_nanos(all));
    }

    /// Panes held.
    pub fn panes(&self) -> usize {
        self.judges().map(VectorJudge::panes).sum()
    }

    /// Windows evaluated since the last call.
    pub fn take_evaluations(&mut self) -> u64 {
        self.judges_mut().map(VectorJudge::take_evaluations).sum()
    }

    /// Adds windows, verdicts and alerts to the snapshot of a shard, if there is one.
    pub fn save_to(&self, states: &mut Vec<VersionState>) {
        for v in &self.versions {
            let known = states.iter().position(|s| s.name().is(v.name()));
            let at = known.unwrap_or_else(|| {
                states.push(VersionState {
                    model: v.model as u32,
                    name: v.name.clone(),
                    version: v.version.clone(),
                    segmented: v.segmented,
                    newest_ms: v.newest_ms,
                    seen_ms: v.seen_ms,
                    cells: v.has_cells(),
                    judges: Vec::new(),
                });
                states.len() - 1
            });
            let theirs = &mut states[at].judges;
            for judge in &v.judges {
                let (view, mut state) = (judge.report().id.view.to_string(), judge.state());
                match theirs.iter_mut().find(|(of, _)| *of == view) {
                    None => theirs.push((view, state)),
                    Some((_, open)) => {
                        // Panes that are still open are the shard's.
                        state.windows.open.append(&mut open.windows.open);
                        state.windows.late += open.windows.late;
                        *open = state;
                    }
                }
            }
        }
    }

    /// Puts back a version of a snapshot whose model is `model` of the plan; `None` where its sums are of
    /// another shape. Open panes are taken where no shard has them.
    pub fn restore(
        &mut self,
        plan: &Plan,
        model: usize,
        state: &VersionState,
        alone: bool,
    ) -> Option<()> {
        let cells_max = if state.cells {
            plan.caps.vector_cells_max
        } else {
            0
        };
        let mut version = Version::new(plan, model, state.name(), cells_max);
        for (view, theirs) in &state.judges {
            // A view that is no longer asked for is let go.
            let same = |j: &&mut VectorJudge| j.report().id.view.to_string() == *view;
            let Some(judge) = version.judges.iter_mut().find(same) else {
                continue;
            };
            judge.seen(state.newest_ms);
            if !theirs.windows.slots.is_empty() {
                let theirs = match alone {
                    true => theirs.clone(),
                    false => without_open(theirs),
                };
                judge.restore(theirs, &plan.models[model].judge)?;
            }
        }
        (version.newest_ms, version.seen) = (state.newest_ms, false);
        version.seen_ms = state.seen_ms;
        if !version.judges.is_empty() {
            self.versions.push(version);
        }
        Some(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.judges().map(VectorJudge::bytes).sum()
    }
}
