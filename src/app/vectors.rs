//! The vector views of the models, beside the scalar ones.
//!
//! What the collector has counted in a stream of scores is counted here as a vector, if the model has vector views:
//! exactly the accepted events, in exactly the panes that the collector's line seals. Streams are of whole versions:
//! segments would multiply cells that are sparse already, so a version with segments has its vector views under segment
//! `*`, as a roll-up. The configuration refuses vector views where outcomes are joined, events weighted or partitions moved
//! between processes: what waits or moves there are scores.
//!
//! Caps: each pane of a view has at most so many cells, and at most so many versions have any; events that find none are
//! counted, and their windows are `undecided(capacity)`. A version that was one too many gets cells once another is gone.
//!
//! Cost: of an engine without vector views, one comparison an event; of a model without in one that has some, a look-up by
//! slot; else k² additions and a search among the cells.

use crate::collect::{Event, ROLL_UP};
use crate::judge::vector::VectorJudge;
use crate::judge::{Change, ModelPlan, Plan, Stopwatch, StreamId, StreamReport};
use crate::stats::multiclass::sums::Shape;
use crate::stats::view::{Checked, Outcome, View};
use crate::store::snapshot::VersionState;

/// All vector streams of an engine.
#[derive(Debug, Clone, Default)]
pub struct Vectors {
    /// Some model has vector views.
    wanted: bool,
    streams: Vec<Version>,
    /// Where the versions of the collector's slots are.
    places: Vec<Place>,
    stopwatch: Option<Stopwatch>,
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
    judges: Vec<VectorJudge>,
}

/// The shape under which a model keeps a vector view; `None` of a scalar one.
pub fn shape(plan: &ModelPlan, view: View, cells_max: usize) -> Option<Shape> {
    Some(Shape {
        view: view.vector()?,
        classes: plan.classes.len(),
        cells_max,
    })
}

/// The vector views of a model.
pub fn vectors(plan: &ModelPlan) -> impl Iterator<Item = View> {
    plan.views.iter().copied().filter(|v| v.vector().is_some())
}

/// The scalar views of a model, which the collector counts.
pub fn scalars(plan: &ModelPlan) -> impl Iterator<Item = View> {
    plan.views.iter().copied().filter(|v| v.vector().is_none())
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
        VectorJudge::new(id, shape, &plan.ladder, plan.grid)
    };
    plan.views.iter().filter_map(judge).collect()
}

impl Version {
    /// Whether it has cells at all.
    fn has_cells(&self) -> bool {
        self.judges.iter().any(|j| j.cells_max() > 0)
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
    pub fn observe(&mut self, plan: &Plan, slot: usize, event: &Event<'_>) -> u64 {
        let Some(version) = self.version(plan, slot, event) else {
            return 0;
        };
        let Some(class) = event.outcome.map(class_of) else {
            return 0;
        };
        let Ok(Checked::Vector { entries, sum }) = Checked::new(event.prediction) else {
            return 0;
        };
        version.seen = true;
        version.newest_ms = version.newest_ms.max(event.time_ms);
        let judges = version.judges.iter_mut();
        let took =
            judges.filter_map(|j| (!j.observe(event.time_ms, entries, sum, class)).then_some(1));
        took.sum()
    }

    /// Counts an event that came too late for its pane.
    #[cold]
    pub fn miss(&mut self, plan: &Plan, slot: usize, event: &Event<'_>) {
        if let Some(version) = self.version(plan, slot, event) {
            version.seen = true;
            version.judges.iter_mut().for_each(VectorJudge::miss);
        }
    }

    /// The stream of an event, begun if need be.
    fn version(&mut self, plan: &Plan, slot: usize, event: &Event<'_>) -> Option<&mut Version> {
        if slot >= self.places.len() {
            self.places.resize(slot + 1, Place::Unknown);
        }
        if self.places[slot] == Place::Unknown {
            let same = |v: &Version| v.name == event.model && v.version == event.version;
            let known = self.streams.iter().position(same);
            let place = known.or_else(|| self.begin(plan, event));
            self.places[slot] = place.map_or(Place::Nowhere, Place::At);
        }
        match self.places[slot] {
            Place::At(index) => self.streams.get_mut(index),
            Place::Unknown | Place::Nowhere => None,
        }
    }

    fn begin(&mut self, plan: &Plan, event: &Event<'_>) -> Option<usize> {
        let model = plan.serves(event.model)?;
        let shape = &plan.models[model];
        vectors(shape).next()?;
        let room = self.with_cells() < plan.caps.vector_versions_max;
        let cells_max = if room { plan.caps.vector_cells_max } else { 0 };
        let segmented = !event.segment.is_empty();
        self.streams.push(Version {
            model,
            name: event.model.to_owned(),
            version: event.version.to_owned(),
            segmented,
            newest_ms: i64::MIN,
            seen: true,
            seen_ms: None,
            judges: judges(shape, (event.model, event.version), segmented, cells_max),
        });
        if let (Some(begun), stopwatch) = (self.streams.last_mut(), self.stopwatch) {
            begun.judges.iter_mut().for_each(|j| j.time_by(stopwatch));
        }
        Some(self.streams.len() - 1)
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
            let expired = quiet >= plan.caps.expire_after_ms;
            for judge in &mut v.judges {
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

/// A binary outcome is of the two classes 0 and 1.
fn class_of(outcome: Outcome) -> u32 {
    match outcome {
        Outcome::Binary(y) => u32::from(y),
        Outcome::Class(class) => class,
    }
}
