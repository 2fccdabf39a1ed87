//! The vector views of the models, beside the scalar ones.
//!
//! What the collector has counted in a stream of scores is counted here as a vector, if the model has vector views:
//! exactly the accepted events, in exactly the panes that the collector's line seals. Streams are of whole versions:
//! segments would multiply cells that are sparse already, so a version with segments has its vector views under segment
//! `*`, as a roll-up. Predictions that wait for their outcomes come when they are mature ([`Vectors::observe_matured`]), late outcomes
//! as revisions. Of a model with weights they count by them.
//!
//! Lanes and their union are in [`union`](PouredVector).
//!
//! Caps: each pane of a view has at most so many cells, and at most so many versions have any; events that find none are
//! counted, and their windows are `undecided(capacity)`. A version that was one too many gets cells once another is gone.
//!
//! A kernel view keeps a sample of the events whose [ranks](rank()) are lowest.
//!
//! Cost: of an engine without vector views, one comparison an event; of a model without in one that has some, a look-up by
//! slot; else k² additions and a search among the cells; or a hash and mostly one comparison.

use crate::collect::{Event, Key, LateVector, MaturedVector, Origin, ROLL_UP, rank};
use crate::judge::vector::VectorJudge;
use crate::judge::{Change, JudgeOptions, ModelPlan, Plan, Stopwatch, StreamId, StreamReport};
use crate::stats::multiclass::sums::Shape;
use crate::stats::view::{Checked, Outcome, View};
use crate::store::snapshot::VersionState;
use crate::window::held::{HeldShape, Seen};
use crate::window::sparse::Revised;

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
    /// What is sealed is laid out.
    lane: bool,
    /// In a union, up to where each model is sealed: what begins there does not judge what was before.
    stands: Option<Vec<i64>>,
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
    /// When the oldest of its predictions that wait are mature, as was told since the last tick.
    due_ms: Option<i64>,
    judges: Vec<VectorJudge>,
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

fn judges(
    plan: &ModelPlan,
    (name, version): (&str, &str),
    segmented: bool,
    cells_max: usize,
) -> Vec<VectorJudge> {
    let judge = |view: &View| {
        let id = StreamId {
            model: name.to_owned(),
            version: version.to_owned(),
            segment: if segmented { ROLL_UP } else { "" }.to_owned(),
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
    /// Whether it has cells at all.
    fn has_cells(&self) -> bool {
        self.judges.iter().any(VectorJudge::has_room)
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

    /// Takes an event that the collector has counted in the subject of a slot; answers how many views had no cell for it.
    #[cold]
    /// `at` is where it came from, and which row of its record it is.
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
        version.newest_ms = version.newest_ms.max(event.time_ms);
        let of = &plan.models[version.model];
        let rank = match of.samples() {
            true => rank(of.judge.kernel.seed, at.0, at.1, event),
            false => 0,
        };
        let seen = Seen {
            entries,
            sum,
            class,
            rank,
            weight: event.weight,
        };
        let judges = version.judges.iter_mut();
        lost(judges.map(|j| j.observe(event.time_ms, seen)))
    }

    /// Hears of a prediction that waits for its outcome.
    #[cold]
    pub fn expect(&mut self, plan: &Plan, slot: usize, event: &Event<'_>) {
        if let Some(version) = self.version(plan, slot, Of::event(event)) {
            version.seen = true;
            version.newest_ms = version.newest_ms.max(event.time_ms);
            let newest_ms = version.newest_ms;
            version.judges.iter_mut().for_each(|j| j.seen(newest_ms));
        }
    }

    /// Takes a prediction that is mature; answers how many views had no cell for it.
    pub fn observe_matured(&mut self, plan: &Plan, r: &MaturedVector<'_>) -> u64 {
        let Some(version) = self.version(plan, r.slot, Of::key(r.key)) else {
            return 0;
        };
        version.newest_ms = version.newest_ms.max(r.time_ms);
        let judges = version.judges.iter_mut();
        lost(judges.map(|j| j.observe_matured(r.time_ms, r.vector, r.class, r.implied)))
    }

    /// Takes a late outcome; answers how many views had no cell for its prediction.
    pub fn revise(&mut self, plan: &Plan, key: &Key, late: &LateVector) -> u64 {
        match self.version(plan, late.slot, Of::key(key)) {
            Some(version) => revise(version, late),
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
            version.judges.iter_mut().for_each(VectorJudge::miss);
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
            judges: judges(shape, (of.model, of.version), of.segmented, cells_max),
        });
        let stands = self.stands.as_ref().map(|lines| lines[model]);
        for judge in self
            .streams
            .last_mut()
            .into_iter()
            .flat_map(|v| &mut v.judges)
        {
            judge.time_by(self.stopwatch);
            if let Some(line_ms) = stands.filter(|line| *line > i64::MIN) {
                judge.windows_mut().stand_at(line_ms);
            }
            if self.lane {
                judge.windows_mut().lane();
            }
        }
        Some(self.streams.len() - 1)
    }

    /// All judges.
    pub fn judges(&self) -> impl Iterator<Item = &VectorJudge> {
        self.streams.iter().flat_map(|v| &v.judges)
    }

    /// All judges with how they judge.
    pub fn judges_mut<'p>(
        &mut self,
        plan: &'p Plan,
    ) -> impl Iterator<Item = (&mut VectorJudge, &'p JudgeOptions)> {
        self.streams.iter_mut().flat_map(|v| {
            let options = &plan.models[v.model].judge;
            v.judges.iter_mut().map(move |j| (j, options))
        })
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

    /// Seals all panes of a model before the line.
    pub fn seal(&mut self, plan: &Plan, model: usize, line_ms: i64, changes: &mut Vec<Change>) {
        if let Some(stands) = &mut self.stands {
            stands[model] = stands[model].max(line_ms);
        }
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
        let mine = self.streams.iter_mut().filter(move |v| v.model == model);
        mine.flat_map(|v| v.judges.iter_mut())
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
            for judge in &mut v.judges {
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
            let judges = version.judges.iter_mut();
            judges.for_each(|j| j.cap(plan.caps.vector_cells_max));
        }
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &StreamReport> {
        let judges = self.streams.iter().flat_map(|v| &v.judges);
        judges.map(VectorJudge::report)
    }

    /// Times every evaluation from now on.
    pub fn time_by(&mut self, stopwatch: Stopwatch) {
        self.stopwatch = Some(stopwatch);
        let judges = self.streams.iter_mut().flat_map(|v| &mut v.judges);
        judges.for_each(|j| j.time_by(Some(stopwatch)));
    }

    /// Moves the times of evaluations, in nanoseconds, to the end of `all`.
    pub fn take_nanos(&mut self, all: &mut Vec<u64>) {
        let judges = self.streams.iter_mut().flat_map(|v| &mut v.judges);
        judges.for_each(|j| j.take_nanos(all));
    }

    /// Panes held, open and sealed.
    pub fn panes(&self) -> usize {
        let judges = self.streams.iter().flat_map(|v| &v.judges);
        judges.map(VectorJudge::panes).sum()
    }

    /// Windows evaluated since the last call.
    pub fn take_evaluations(&mut self) -> u64 {
        let judges = self.streams.iter_mut().flat_map(|v| &mut v.judges);
        judges.map(VectorJudge::take_evaluations).sum()
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
            judges: (v.judges.iter())
                .map(|j| (j.report().id.view.to_string(), j.state()))
                .collect(),
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
        let mut judges = judges(shape, names, state.segmented, cells_max);
        for (view, state_of) in state.judges {
            // A view that is no longer asked for is let go.
            let same = |j: &&mut VectorJudge| j.report().id.view.to_string() == view;
            if let Some(judge) = judges.iter_mut().find(same) {
                judge.restore(state_of, &shape.judge)?;
                judge.seen(state.newest_ms);
            }
        }
        if judges.is_empty() {
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
            judges,
        });
        Some(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let judges = self.streams.iter().flat_map(|v| &v.judges);
        judges.map(VectorJudge::bytes).sum::<usize>() + self.places.capacity() * size_of::<Place>()
    }
}

fn revise(version: &mut Version, late: &LateVector) -> u64 {
    let revised = Revised {
        time_ms: late.time_ms,
        vector: late.vector(),
        before: late.before,
        implied: late.implied,
        now: late.now,
    };
    let judges = version.judges.iter_mut();
    lost(judges.map(|j| j.revise(&revised)))
}

/// How many views had no cell.
fn lost(took: impl Iterator<Item = bool>) -> u64 {
    took.map(|took| u64::from(!took)).sum()
}
