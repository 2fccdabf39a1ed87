//! The vector views of the models, beside the scalar ones.
//!
//! A model's vector views count exactly the events that the collector has accepted, in exactly the panes
//! that it seals. Streams are of whole versions: segments would multiply cells that are sparse already, so
//! a version with segments has its vector views under segment `*`, as a roll-up. Predictions that wait for
//! their outcomes are counted when they are mature ([`Vectors::ripen`]); a late outcome revises its
//! prediction. Where events have weights they count by them.
//!
//! Open panes are [`VectorPanes`]; sealed ones go to the [`Judge`] of the view, as those of scores do.
//! Several counts of partitions and their merge are in [`union`](PouredVector).
//!
//! Caps: each pane of a view has at most so many cells, and at most so many versions have any. Events that
//! find none are counted, and their windows are `undecided(capacity)`. A version beyond the cap gets cells
//! once another is gone.
//!
//! A kernel view keeps a sample of the events whose [ranks](rank()) are lowest.
//!
//! Cost: of an engine without vector views, one comparison an event; of a model without in one that has
//! some, a look-up by slot; else k² additions and a search among the cells, or a hash and mostly one
//! comparison.

use crate::collect::{Event, Key, LateVector, Origin, ROLL_UP, Ripened, VectorPanes, rank};
use crate::judge::{
    Change, Judge, JudgeOptions, ModelPlan, Plan, Stopwatch, StreamId, StreamReport,
};
use crate::stats::multiclass::sums::Shape;
use crate::stats::view::{Checked, Outcome, View};
use crate::store::snapshot::{VectorViewState, VersionState};
use crate::window::{EmptySums, Revision, VectorEvent, ViewShape};
use std::sync::Arc;

mod union;

pub use union::PouredVector;

/// All vector streams of an engine.
#[derive(Debug, Clone, Default)]
pub struct Vectors {
    /// Some model has vector views.
    wanted: bool,
    streams: Vec<Version>,
    /// Where the versions of the collector's slots are.
    places: Vec<Place>,
    stopwatch: Option<Stopwatch>,
    /// What was sealed and not taken yet, where another engine judges.
    poured: Option<Vec<PouredVector>>,
}

/// Where the version of a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Unknown,
    /// Its model has no vector view.
    Nowhere,
    At(usize),
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
    /// When the oldest of its waiting predictions are mature, as reported since the last tick.
    due_ms: Option<i64>,
    views: Vec<VectorView>,
}

/// One vector view of a version.
#[derive(Debug, Clone)]
struct VectorView {
    open: VectorPanes,
    judge: Judge,
}

/// The version that something is of.
#[derive(Debug, Clone, Copy)]
struct Of<'a> {
    model: &'a str,
    version: &'a str,
    segmented: bool,
}

impl<'a> Of<'a> {
    fn version(v: &'a Version) -> Of<'a> {
        Of {
            model: &v.name,
            version: &v.version,
            segmented: v.segmented,
        }
    }

    fn event(event: &Event<'a>) -> Of<'a> {
        Of {
            model: event.model,
            version: event.version,
            segmented: !event.segment.is_empty(),
        }
    }

    fn key(key: &'a Key) -> Of<'a> {
        Of {
            model: key.model(),
            version: key.version(),
            segmented: !key.segment().is_empty(),
        }
    }
}

/// The shape under which a model keeps a vector view; `None` of a scalar one.
pub fn shape(plan: &ModelPlan, view: View, cells_max: usize) -> Option<ViewShape> {
    let classes = plan.classes.len();
    if view == View::Kernel {
        let keeping = plan.judge.kernel;
        return Some(ViewShape::Kernel { classes, keeping });
    }
    Some(ViewShape::Cells(Shape {
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

fn views(
    plan: &ModelPlan,
    (name, version): (&str, &str),
    segmented: bool,
    cells_max: usize,
) -> Vec<VectorView> {
    let vector = |view: &View| {
        let id = StreamId {
            model: name.to_owned(),
            version: version.to_owned(),
            segment: if segmented { ROLL_UP } else { "" }.to_owned(),
            view: *view,
        };
        let mut blank = shape(plan, *view, cells_max)?.blank()?;
        blank.cap(cells_max);
        let blank = Arc::new(blank);
        let empty = EmptySums::Vector(blank.clone());
        Some(VectorView {
            open: VectorPanes::new(blank, plan.ladder.pane_ms),
            judge: Judge::of_sums(id, &plan.ladder, plan.grid, empty),
        })
    };
    plan.views.iter().filter_map(vector).collect()
}

impl VectorView {
    fn revise(&mut self, r: &Revision<'_>) -> bool {
        let open = self.open.revise(r);
        open.unwrap_or_else(|| self.judge.revise(r))
    }

    fn cap(&mut self, cells_max: usize) {
        self.open.cap(cells_max);
        self.judge.cap(cells_max);
    }
}

impl Version {
    /// Whether it has cells at all.
    fn has_cells(&self) -> bool {
        self.views.iter().any(|v| v.open.has_room())
    }

    /// Takes a newer event time.
    fn advance(&mut self, time_ms: i64) {
        self.newest_ms = self.newest_ms.max(time_ms);
        for view in &mut self.views {
            view.judge.seen(self.newest_ms);
        }
    }

    /// Takes a late outcome; answers how many views had no room for its prediction.
    fn revise(&mut self, late: &LateVector) -> u64 {
        let revision = Revision {
            time_ms: late.time_ms,
            vector: late.waited(),
            before: late.before,
            implied: late.implied,
            now: late.now,
        };
        refused(self.views.iter_mut().map(|v| v.revise(&revision)))
    }

    /// Walks the panes from `from_ms` to `line_ms`, as the engine does for scores: a stretch without open
    /// panes is skipped once the windows are empty.
    fn seal(
        &mut self,
        plan: &ModelPlan,
        (from_ms, line_ms): (i64, i64),
        changes: &mut Vec<Change>,
        mut poured: Option<&mut Vec<PouredVector>>,
    ) {
        let mut at_ms = from_ms;
        while at_ms < line_ms {
            if !self.views.iter().any(|v| v.judge.moves()) {
                match self.views.iter().filter_map(|v| v.open.oldest_ms()).min() {
                    Some(oldest) if oldest < line_ms => at_ms = at_ms.max(oldest),
                    _ => break,
                }
            }
            let end_ms = at_ms + plan.ladder.pane_ms;
            for view in &mut self.views {
                let pane = view.open.seal(end_ms);
                view.judge.seal(pane.as_ref(), end_ms, &plan.judge, changes);
                if let (Some(poured), Some(pane)) = (&mut poured, pane) {
                    poured.push(PouredVector {
                        name: self.name.clone(),
                        version: self.version.clone(),
                        segmented: self.segmented,
                        newest_ms: self.newest_ms,
                        view: view.judge.report().id.view,
                        pane,
                    });
                }
            }
            at_ms = end_ms;
        }
    }
}

impl Vectors {
    /// Without streams.
    pub fn new(plan: &Plan) -> Vectors {
        Vectors {
            wanted: plan.models.iter().any(|m| vectors(m).next().is_some()),
            ..Vectors::default()
        }
    }

    /// Whether any event need be shown.
    #[inline]
    pub fn wanted(&self) -> bool {
        self.wanted
    }

    /// Takes an event that the collector has counted in the subject of a slot; `at` is where it came from, and
    /// which row of its record it is. Answers how many views had no room for it.
    #[cold]
    pub fn observe(
        &mut self,
        plan: &Plan,
        slot: usize,
        at: (Origin, u32),
        event: &Event<'_>,
    ) -> u64 {
        let Some(version) = self.version(plan, slot, Of::event(event)) else {
            return 0;
        };
        let Some(class) = event.outcome.map(Outcome::class) else {
            return 0;
        };
        let Ok(Checked::Vector { entries, sum }) = Checked::new(event.prediction) else {
            return 0;
        };
        version.seen = true;
        version.advance(event.time_ms);
        let of = &plan.models[version.model];
        let rank = match of.samples() {
            true => rank(of.judge.kernel.seed, at.0, at.1, event),
            false => 0,
        };
        let seen = VectorEvent {
            entries,
            sum,
            class,
            rank,
            weight: event.weight,
        };
        let views = version.views.iter_mut();
        refused(views.map(|v| v.open.observe(event.time_ms, seen)))
    }

    /// Takes notice of a prediction that waits for its outcome.
    #[cold]
    pub fn expect(&mut self, plan: &Plan, slot: usize, event: &Event<'_>) {
        if let Some(version) = self.version(plan, slot, Of::event(event)) {
            version.seen = true;
            version.advance(event.time_ms);
        }
    }

    /// Takes a prediction that is mature; answers how many views had no room for it.
    pub fn ripen(&mut self, plan: &Plan, r: &Ripened<'_>) -> u64 {
        let Some(version) = self.version(plan, r.slot, Of::key(r.key)) else {
            return 0;
        };
        version.advance(r.time_ms);
        let views = version.views.iter_mut();
        refused(views.map(|v| v.open.mature(r.time_ms, r.waited, r.class, r.implied)))
    }

    /// Takes a late outcome; answers how many views had no room for its prediction.
    pub fn revise(&mut self, plan: &Plan, key: &Key, late: &LateVector) -> u64 {
        match self.version(plan, late.slot, Of::key(key)) {
            Some(version) => version.revise(late),
            None => 0,
        }
    }

    /// Tells when the oldest predictions of a subject that wait are mature, before the next tick.
    pub fn awaits(&mut self, plan: &Plan, slot: usize, key: &Key, due_ms: i64) {
        if let Some(version) = self.version(plan, slot, Of::key(key)) {
            version.due_ms = version.due_ms.into_iter().chain([due_ms]).min();
        }
    }

    /// Counts an event that came too late for its pane.
    #[cold]
    pub fn miss(&mut self, plan: &Plan, slot: usize, event: &Event<'_>) {
        if let Some(version) = self.version(plan, slot, Of::event(event)) {
            version.seen = true;
            version.views.iter_mut().for_each(|v| v.open.miss());
        }
    }

    /// The stream of what is in a slot, begun if need be.
    fn version(&mut self, plan: &Plan, slot: usize, of: Of<'_>) -> Option<&mut Version> {
        if slot >= self.places.len() {
            self.places.resize(slot + 1, Place::Unknown);
        }
        if self.places[slot] == Place::Unknown {
            let place = self.named(plan, of);
            self.places[slot] = place.map_or(Place::Nowhere, Place::At);
        }
        match self.places[slot] {
            Place::At(index) => self.streams.get_mut(index),
            Place::Unknown | Place::Nowhere => None,
        }
    }

    /// The stream of a name, begun if need be.
    fn named(&mut self, plan: &Plan, of: Of<'_>) -> Option<usize> {
        let same = |v: &Version| v.name == of.model && v.version == of.version;
        let known = self.streams.iter().position(same);
        known.or_else(|| self.begin(plan, of))
    }

    fn begin(&mut self, plan: &Plan, of: Of<'_>) -> Option<usize> {
        let model = plan.serves(of.model)?;
        let shape = &plan.models[model];
        vectors(shape).next()?;
        let room = self.with_cells() < plan.caps.vector_versions_max;
        let cells_max = if room { plan.caps.vector_cells_max } else { 0 };
        self.streams.push(Version {
            model,
            name: of.model.to_owned(),
            version: of.version.to_owned(),
            segmented: of.segmented,
            newest_ms: i64::MIN,
            seen: true,
            seen_ms: None,
            due_ms: None,
            views: views(shape, (of.model, of.version), of.segmented, cells_max),
        });
        let added = self.streams.last_mut().into_iter();
        for view in added.flat_map(|v| &mut v.views) {
            view.judge.time_by(self.stopwatch);
        }
        Some(self.streams.len() - 1)
    }

    /// All judges.
    pub fn judges(&self) -> impl Iterator<Item = &Judge> {
        self.streams.iter().flat_map(|v| &v.views).map(|v| &v.judge)
    }

    /// All judges with how they judge.
    pub fn judges_mut<'p>(
        &mut self,
        plan: &'p Plan,
    ) -> impl Iterator<Item = (&mut Judge, &'p JudgeOptions)> {
        self.streams.iter_mut().flat_map(|v| {
            let options = &plan.models[v.model].judge;
            v.views.iter_mut().map(move |v| (&mut v.judge, options))
        })
    }

    fn all_judges(&mut self) -> impl Iterator<Item = &mut Judge> {
        let views = self.streams.iter_mut().flat_map(|v| &mut v.views);
        views.map(|v| &mut v.judge)
    }

    fn with_cells(&self) -> usize {
        self.streams.iter().filter(|v| v.has_cells()).count()
    }

    /// A slot of the collector is another's from now on, or nobody's.
    pub fn forget(&mut self, slot: usize) {
        if let Some(place) = self.places.get_mut(slot) {
            *place = Place::Unknown;
        }
    }

    /// Seals all panes of a model up to the line; those before `from_ms` are sealed.
    pub fn seal(
        &mut self,
        plan: &Plan,
        model: usize,
        (from_ms, line_ms): (i64, i64),
        changes: &mut Vec<Change>,
    ) {
        let plan = &plan.models[model];
        for version in self.streams.iter_mut().filter(|v| v.model == model) {
            let poured = self.poured.as_mut();
            version.seal(plan, (from_ms, line_ms), changes, poured);
        }
    }

    /// The input has ended at the line.
    pub fn finish(&mut self, plan: &Plan, model: usize, line_ms: i64, changes: &mut Vec<Change>) {
        let options = &plan.models[model].judge;
        let mine = self.streams.iter_mut().filter(|v| v.model == model);
        for view in mine.flat_map(|v| &mut v.views) {
            view.judge.finish(line_ms, options, changes);
        }
    }

    /// Tells the time: withdraws what is stale, lets go of what expired.
    pub fn tick(&mut self, plan: &Plan, now_ms: i64, changes: &mut Vec<Change>) {
        let before = self.streams.len();
        self.streams.retain_mut(|v| {
            if std::mem::take(&mut v.seen) || v.seen_ms.is_none() {
                v.seen_ms = Some(now_ms);
            }
            let quiet = now_ms.saturating_sub(v.seen_ms.unwrap_or(now_ms));
            let options = &plan.models[v.model].judge;
            let due_ms = v.due_ms.take();
            let expired = quiet >= plan.caps.expire_after_ms && due_ms.is_none();
            for judge in v.views.iter_mut().map(|v| &mut v.judge) {
                judge.awaits(due_ms);
                if expired {
                    judge.leave(now_ms, options, changes);
                } else if quiet >= options.stale_after_ms {
                    judge.withdraw(now_ms, options, changes);
                }
            }
            !expired
        });
        if self.streams.len() < before {
            self.places.clear();
            self.admit(plan);
        }
    }

    /// Gives cells to those that began when there were none.
    fn admit(&mut self, plan: &Plan) {
        let mut room = plan
            .caps
            .vector_versions_max
            .saturating_sub(self.with_cells());
        for version in self.streams.iter_mut().filter(|v| !v.has_cells()) {
            if room == 0 {
                break;
            }
            room -= 1;
            let views = version.views.iter_mut();
            views.for_each(|v| v.cap(plan.caps.vector_cells_max));
        }
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &StreamReport> {
        self.judges().map(Judge::report)
    }

    /// Times every evaluation from now on.
    pub fn time_by(&mut self, stopwatch: Stopwatch) {
        self.stopwatch = Some(stopwatch);
        self.all_judges().for_each(|j| j.time_by(Some(stopwatch)));
    }

    /// Moves the times of evaluations, in nanoseconds, to the end of `all`.
    pub fn take_nanos(&mut self, all: &mut Vec<u64>) {
        self.all_judges().for_each(|j| j.take_nanos(all));
    }

    /// Panes held, open and sealed.
    pub fn panes(&self) -> usize {
        let open = self
            .streams
            .iter()
            .flat_map(|v| &v.views)
            .map(|v| v.open.len());
        open.sum::<usize>() + self.judges().map(|j| j.windows().panes()).sum::<usize>()
    }

    /// Windows evaluated since the last call.
    pub fn take_evaluations(&mut self) -> u64 {
        self.all_judges().map(Judge::take_evaluations).sum()
    }

    /// For a snapshot.
    pub fn state(&self) -> Vec<VersionState> {
        let version = |v: &Version| VersionState {
            model: v.model as u32,
            name: v.name.clone(),
            version: v.version.clone(),
            segmented: v.segmented,
            newest_ms: v.newest_ms,
            seen_ms: v.seen_ms,
            cells: v.has_cells(),
            views: v.views.iter().map(VectorView::state).collect(),
        };
        self.streams.iter().map(version).collect()
    }

    /// Puts back a version of a snapshot whose model is `model` of the plan; `None` where its sums are not of the
    /// plan's shape.
    pub fn restore(&mut self, plan: &Plan, model: usize, state: VersionState) -> Option<()> {
        let shape = &plan.models[model];
        let cells_max = if state.cells {
            plan.caps.vector_cells_max
        } else {
            0
        };
        let names = (state.name.as_str(), state.version.as_str());
        let mut views = views(shape, names, state.segmented, cells_max);
        for before in state.views {
            // A view that is no longer configured is let go.
            let same = |v: &&mut VectorView| v.judge.report().id.view.to_string() == before.view;
            if let Some(view) = views.iter_mut().find(same) {
                view.open.restore(before.open).ok()?;
                view.judge.restore(before.judge, &shape.judge).ok()?;
                view.judge.seen(state.newest_ms);
            }
        }
        if views.is_empty() {
            return Some(());
        }
        self.streams.push(Version {
            model,
            name: state.name,
            version: state.version,
            segmented: state.segmented,
            newest_ms: state.newest_ms,
            seen: false,
            seen_ms: state.seen_ms,
            due_ms: None,
            views,
        });
        Some(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let open = self
            .streams
            .iter()
            .flat_map(|v| &v.views)
            .map(|v| v.open.bytes());
        open.sum::<usize>()
            + self.judges().map(Judge::bytes).sum::<usize>()
            + self.places.capacity() * size_of::<Place>()
    }
}

impl VectorView {
    fn state(&self) -> VectorViewState {
        VectorViewState {
            view: self.judge.report().id.view.to_string(),
            open: self.open.state(),
            judge: self.judge.state(),
        }
    }
}

/// How many views had no room.
fn refused(took: impl Iterator<Item = bool>) -> u64 {
    took.map(|took| u64::from(!took)).sum()
}
