//! The collector: from decoded records to sums per stream and pane.
//!
//! It owns what is local to the partitions that it reads: positions, event time, open panes. What
//! leaves it are pane deltas, the sums of one stream over one sealed pane; they merge by addition,
//! so any number of collectors may feed one judge. Here one collector feeds it from the same
//! thread.
//!
//! A model's panes seal together: all that end at or before the model's watermark, the frontier
//! less its lateness, rounded down to a pane. An event for a pane before that line is late. The
//! line moves with the events themselves and not with the clock or with ticks, so a replay draws it
//! where the live run did.
//!
//! The files below hold its methods for joins, ids that come twice, compared versions, event time,
//! taps, and what its holder does besides giving it records (`upkeep`).
//!
//! Always: every record is counted once; an event counts for all views of its stream or for none.

use super::amend::Amendments;
use super::counters::Counters;
use super::deduplication::{Deduplication, IdPlan};
use super::event::{Disposition, EVENT_TIMES_MS, Event, Origin, Reason, Refusal};
use super::join::{JoinPlan, Joins};
use super::pairing::Pairing;
use super::partition::Partitions;
use super::rank::Rows;
use super::segment::Part;
use super::shape::{ModelShape, project, unnamed_models};
use super::stream::{IN_STEP_PANES, OpenRoom, PaneDelta, Stream};
use super::streams::Streams;
use super::tap::Tap;
use crate::stats::fixed::{Score, Scored};
use crate::stats::view::{Prediction, View, ViewError, positive};

mod deduplicating;
mod join_state;
mod joining;
mod paired;
mod reaching;
mod tapping;
mod upkeep;

pub use joining::MaturedVector;

/// Longest model, version or segment name; longer ones are rejected, so that memory has a bound.
const NAME_MAX: usize = 512;

/// Bounds of the collector.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Most streams.
    pub streams_max: usize,
    /// Most open panes of a stream.
    pub open_panes_max: usize,
    /// Most bytes of open panes of all streams, beyond those within the lateness.
    pub open_bytes_max: usize,
    /// How far an event may be ahead of its arrival.
    pub future_max_ms: i64,
    /// Most ids that are remembered.
    pub ids_max: usize,
}

/// How records of a source are taken.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Each by itself, with its outcome.
    Alone,
    /// The same, but each id once.
    Once,
    /// As predictions or outcomes of a join.
    Joined(u16),
}

/// What an event needs to know of its model, in a quarter of a cache line.
#[derive(Debug, Clone, Copy)]
struct FastPath {
    pane_ms: i64,
    /// There is one view, the binary one, of scores as they come.
    plain: bool,
    /// Its versions are compared.
    paired: bool,
}

impl FastPath {
    fn new(shape: &ModelShape) -> FastPath {
        FastPath {
            pane_ms: shape.pane_ms,
            paired: shape.compare.is_some(),
            plain: shape.views == [View::Binary]
                && shape.sampling.is_none()
                && shape.grid.is_plain(),
        }
    }

    /// The score and outcome of the event where it has one score and the model one view, as most
    /// have; `None` for others.
    #[inline]
    fn only(&self, event: &Event<'_>) -> Result<Option<Scored>, Reason> {
        let Prediction::Score(z) = event.prediction else {
            return Ok(None);
        };
        if !self.plain {
            return Ok(None);
        }
        let outcome = event.outcome.ok_or(Reason::MissingField)?;
        let score = Score::new(z).map_err(ViewError::from)?;
        Ok(Some(Scored::new(score, positive(outcome)?)))
    }
}

/// See the module.
#[derive(Debug)]
pub struct Collector {
    models: Vec<ModelShape>,
    bounds: Bounds,
    /// How records of each source are taken.
    ways: Vec<Way>,
    /// What an event needs to know of its model.
    paths: Vec<FastPath>,
    /// Begin of the oldest pane of each model that is not sealed.
    sealed_until_ms: Vec<i64>,
    /// Frontier at which the next pane of any model seals.
    due_ms: i64,
    partitions: Partitions,
    counters: Counters,
    streams: Streams,
    /// Bytes of the packed open panes of all streams.
    open_bytes: usize,
    /// Where no more panes are opened ahead: up to where all partitions have come, by model.
    common_ms: Option<Vec<i64>>,
    /// Scores and outcomes of the event at hand, by view.
    seen: Vec<Scored>,
    /// Scores of the prediction at hand with the class that makes their outcome true, by view, and
    /// what else is [kept](join::RowLayout) of it.
    expected: Vec<(Score, u32)>,
    /// Scratch: classes in falling order.
    order: Vec<u32>,
    /// Scratch: a whole vector.
    row: Vec<f64>,
    rows: Rows,
    joins: Joins,
    /// By join: the models for which an outcome waits that names none.
    unnamed: Vec<Vec<usize>>,
    deduplication: Deduplication,
    /// Number of classes of each model, or 0.
    classes: Vec<u32>,
    amendments: Amendments,
    /// Ids that versions share, by model.
    pairings: Vec<Option<Pairing>>,
    /// Where pairs are shown, while someone looks.
    tap: Option<Box<Tap>>,
}

impl Collector {
    /// A collector without state.
    pub fn new(
        models: Vec<ModelShape>,
        bounds: Bounds,
        joins: Vec<JoinPlan>,
        ids: &[IdPlan],
    ) -> Collector {
        Collector {
            ways: ways(&joins, ids),
            unnamed: unnamed_models(&joins, &models),
            joins: Joins::new(joins),
            deduplication: Deduplication::new(ids, bounds.ids_max),
            classes: models.iter().map(ModelShape::outcomes).collect(),
            expected: Vec::new(),
            order: Vec::new(),
            row: Vec::new(),
            rows: Rows::default(),
            amendments: Amendments::default(),
            pairings: models
                .iter()
                .map(|m| m.compare.clone().map(Pairing::new))
                .collect(),
            tap: None,
            paths: models.iter().map(FastPath::new).collect(),
            sealed_until_ms: vec![i64::MIN; models.len()],
            due_ms: i64::MIN,
            models,
            bounds,
            partitions: Partitions::default(),
            counters: Counters::default(),
            streams: Streams::default(),
            open_bytes: 0,
            common_ms: None,
            seen: Vec::new(),
        }
    }

    /// Takes a decoded record.
    #[inline]
    pub fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition {
        let end = match self.way_of(origin.source) {
            _ if !self.partitions.advance(origin) => Disposition::Replayed,
            Way::Alone => self.take(origin.source, event),
            Way::Once => self.take_once(origin, event),
            Way::Joined(join) => self.expect(join, origin, event),
        };
        self.counters.source_mut(origin.source).count(end);
        if end != Disposition::Observed {
            self.pass(origin.source, end, event.time_ms, event.arrival_ms);
        }
        end
    }

    /// Takes a record that could not be decoded, and when it arrived.
    pub fn reject(
        &mut self,
        origin: Origin,
        arrival_ms: Option<i64>,
        reason: Reason,
    ) -> Disposition {
        let end = if self.partitions.advance(origin) {
            Disposition::Rejected(reason)
        } else {
            Disposition::Replayed
        };
        self.counters.source_mut(origin.source).count(end);
        self.pass(origin.source, end, i64::MIN, arrival_ms);
        end
    }

    /// The next event is one more row of the record at `origin`, the last record taken from its
    /// partition. It is an error to call this after a record that was replayed.
    pub fn next_row(&mut self, origin: Origin) {
        self.partitions.reopen(origin);
        self.rows.next(origin);
    }

    #[inline]
    fn way_of(&self, source: u16) -> Way {
        let way = self.ways.get(usize::from(source));
        way.copied().unwrap_or(Way::Alone)
    }

    #[inline]
    fn take(&mut self, source: u16, event: &Event<'_>) -> Disposition {
        if !believes(event.time_ms, event.arrival_ms, self.bounds.future_max_ms) {
            return Disposition::Rejected(Reason::TimeOutOfRange);
        }
        match self.stream_of(event, false) {
            Ok(slot) => self.land(source, slot, event),
            Err(end) => end,
        }
    }

    /// The stream of an event, begun if need be; `joined` events need no outcome.
    #[inline]
    fn stream_of(&mut self, event: &Event<'_>, joined: bool) -> Result<usize, Disposition> {
        match self.streams.find(&event.names()) {
            Some(slot) => Ok(slot),
            None => self.begin(event, joined),
        }
    }

    /// A stream for the first event of its names, or the one that takes its events.
    #[cold]
    fn begin(&mut self, event: &Event<'_>, joined: bool) -> Result<usize, Disposition> {
        let model = self.admit(event, joined).map_err(Disposition::Rejected)?;
        let names = event.names();
        let (shape, streams_max) = (&self.models[model], self.bounds.streams_max);
        let slot = self.streams.begin(&names, model, shape, streams_max);
        slot.ok_or(Disposition::Refused(Refusal::Streams))
    }

    /// The model of an event whose names are new: no stream begins for an event that is rejected.
    fn admit(&mut self, event: &Event<'_>, joined: bool) -> Result<usize, Reason> {
        if event.model.is_empty() {
            return Err(Reason::EmptyKey);
        }
        let long = |s: &str| s.len() > NAME_MAX;
        if long(event.model) || long(event.version) || long(event.segment) {
            return Err(Reason::TooLarge);
        }
        if Part::of(event.segment).is_derived() {
            return Err(Reason::Malformed);
        }
        let model = self.model_of(event.model).ok_or(Reason::UnknownModel)?;
        if joined {
            self.views_of(model, 0, event)?;
        } else {
            project(&self.models[model], event, &mut self.seen)?;
        }
        Ok(model)
    }

    fn model_of(&self, name: &str) -> Option<usize> {
        let named = |name: &str| self.models.iter().position(|m| m.name == name);
        named(name).or_else(|| named("*"))
    }

    #[inline]
    fn land(&mut self, source: u16, slot: usize, event: &Event<'_>) -> Disposition {
        let Some(stream) = self.streams.get_mut(slot) else {
            return Disposition::Refused(Refusal::Streams);
        };
        let (path, time) = (self.paths[stream.model], event.time_ms);
        let only = match path.only(event) {
            Ok(only) => only,
            Err(reason) => return Disposition::Rejected(reason),
        };
        // An open pane is not before the line.
        if let (Some(one), Some(pane)) = (only, stream.current(time, path.pane_ms)) {
            if let Err(refusal) = pane.observe_one(one) {
                return Disposition::Refused(refusal);
            }
            stream.saw(time);
            if stream.part == Part::Other {
                self.counters.source_mut(source).other += 1;
            }
        } else if let Err(end) = self.land_elsewhere(source, slot, event, only) {
            return end;
        }
        self.reach(source, time, event.arrival_ms);
        if path.paired {
            self.pair(slot, event, only);
        }
        if self.tap.is_some() {
            self.tap_event(slot, event);
        }
        Disposition::Observed
    }

    /// [`Collector::land`] of an event with several views or an attribute, or in another pane than
    /// the event before. It is a function of its own because inside `land` it made every event a
    /// fifth slower.
    #[inline(never)]
    fn land_elsewhere(
        &mut self,
        source: u16,
        slot: usize,
        event: &Event<'_>,
        only: Option<Scored>,
    ) -> Result<(), Disposition> {
        let Some(stream) = self.streams.get_mut(slot) else {
            return Err(Disposition::Refused(Refusal::Streams));
        };
        let (shape, time) = (&self.models[stream.model], event.time_ms);
        let mut renormalised = false;
        if only.is_none() {
            renormalised = project(shape, event, &mut self.seen).map_err(Disposition::Rejected)?;
        }
        if stream.current(time, shape.pane_ms).is_none() {
            let start = shape.start_of(time);
            if start < self.sealed_until_ms[stream.model] {
                stream.miss(time);
                self.reach_uncounted(source, time, event.arrival_ms);
                return Err(Disposition::Late);
            }
            self.open_pane(slot, start).map_err(Disposition::Refused)?;
        }
        let Some(stream) = self.streams.get_mut(slot) else {
            return Err(Disposition::Refused(Refusal::Streams));
        };
        let shape = &self.models[stream.model];
        let attribute = shape.attribute_of(event).map_err(Disposition::Rejected)?;
        let pane = stream.current(time, shape.pane_ms).ok_or(Refusal::Panes);
        let taken = pane.and_then(|pane| match only {
            Some(one) => pane.observe_one(one),
            None => pane.observe(&self.seen, attribute),
        });
        taken.map_err(Disposition::Refused)?;
        stream.saw(time);
        let other = stream.part == Part::Other;
        if renormalised || other {
            let source = self.counters.source_mut(source);
            source.renormalised += u64::from(renormalised);
            source.other += u64::from(other);
        }
        Ok(())
    }

    /// The partition of the record at hand has come to this time.
    #[inline]
    fn reach(&mut self, source: u16, time_ms: i64, arrival_ms: Option<i64>) {
        let ahead_max_ms = self.bounds.future_max_ms;
        if self.partitions.observe(time_ms, arrival_ms, ahead_max_ms) {
            self.counters.source_mut(source).ahead += 1;
        }
    }

    /// Makes the pane of a stream that begins at `start_ms` the current one, if there is room for
    /// it. When the open panes of all streams have reached their cap in bytes, there is room only a
    /// little beyond the sealed line, or, if the caller [says so](Collector::hold_ahead), a little
    /// beyond where all partitions have come.
    fn open_pane(&mut self, slot: usize, start_ms: i64) -> Result<(), Refusal> {
        let stream = self.streams.get_mut(slot).ok_or(Refusal::Streams)?;
        let (model, shape) = (stream.model, &self.models[stream.model]);
        let full = self.open_bytes >= self.bounds.open_bytes_max;
        let from_ms = match &self.common_ms {
            Some(common_ms) => Some(common_ms[model]),
            None => full.then_some(self.sealed_until_ms[model]),
        };
        let ahead_ms = shape.lateness_ms + IN_STEP_PANES * shape.pane_ms;
        let room = OpenRoom {
            panes_max: self.bounds.open_panes_max,
            until_ms: from_ms.map_or(i64::MAX, |ms| ms.saturating_add(ahead_ms)),
        };
        let before = stream.packed_bytes();
        let turned = stream.turn_to(start_ms, shape.views.len(), shape.grid, room);
        self.open_bytes = self.open_bytes + stream.packed_bytes() - before;
        turned
    }

    /// Whether a pane of some model can be sealed.
    #[inline]
    pub fn due(&self) -> bool {
        self.partitions
            .frontier_ms()
            .is_some_and(|frontier| frontier >= self.due_ms)
    }

    /// The line before which `model`'s panes can be sealed, if it has moved.
    pub fn line(&self, model: usize) -> Option<i64> {
        let line = self.line_at(model, self.partitions.frontier_ms()?);
        (line > self.sealed_until_ms[model]).then_some(line)
    }

    /// The line of `model` where event time has come to `time_ms`.
    pub fn line_at(&self, model: usize, time_ms: i64) -> i64 {
        self.models[model].line_at(time_ms)
    }

    /// Takes out all panes of `model` that begin before `line_ms`, stream by stream.
    pub fn take_panes(
        &mut self,
        model: usize,
        line_ms: i64,
        mut each: impl FnMut(&Stream, PaneDelta),
    ) {
        let shape = &self.models[model];
        let empty = (shape.views.len(), shape.grid);
        for (_, stream) in self.streams.iter_mut().filter(|(_, s)| s.model == model) {
            let before = stream.packed_bytes();
            while let Some(pane) = stream.seal(line_ms, shape.pane_ms, empty) {
                each(stream, pane);
            }
            self.open_bytes = self.open_bytes + stream.packed_bytes() - before;
        }
    }

    /// The end of the oldest open pane of a model with roll-ups, if that is before `line_ms`. The
    /// second stage then merges the panes of one stretch of time after the other.
    pub fn next_end_ms(&self, model: usize, line_ms: i64) -> i64 {
        let shape = &self.models[model];
        if !shape.segmenting.rollup {
            return line_ms;
        }
        let streams = self.streams.iter().filter(|(_, s)| s.model == model);
        let oldest = streams.filter_map(|(_, s)| s.oldest_ms()).min();
        oldest.map_or(line_ms, |oldest| line_ms.min(oldest + shape.pane_ms))
    }

    /// Moves `model`'s line. The caller has taken all panes before it.
    pub fn close(&mut self, model: usize, line_ms: i64) {
        self.sealed_until_ms[model] = self.sealed_until_ms[model].max(line_ms);
        let due = |(shape, closed): (&ModelShape, &i64)| {
            closed.saturating_add(shape.pane_ms + shape.lateness_ms + shape.maturity_ms)
        };
        let all = self.models.iter().zip(&self.sealed_until_ms).map(due);
        self.due_ms = all.min().unwrap_or(i64::MAX);
    }
}

/// How records are taken, by source; those of others are taken alone.
fn ways(joins: &[JoinPlan], ids: &[IdPlan]) -> Vec<Way> {
    let once = ids.iter().map(|plan| (plan.source, Way::Once));
    let joined = (0u16..).zip(joins).flat_map(|(join, plan)| {
        [plan.predictions, plan.outcomes].map(|source| (source, Way::Joined(join)))
    });
    let mut ways = Vec::new();
    for (source, way) in once.chain(joined) {
        let index = usize::from(source);
        ways.resize(ways.len().max(index + 1), Way::Alone);
        ways[index] = way;
    }
    ways
}

/// Whether the event time is in this century and not too far ahead of the event's arrival.
#[inline]
pub(super) fn believes(time_ms: i64, arrival_ms: Option<i64>, ahead_max_ms: i64) -> bool {
    let ahead = |arrival: i64| time_ms > arrival.saturating_add(ahead_max_ms);
    EVENT_TIMES_MS.contains(&time_ms) && !arrival_ms.is_some_and(ahead)
}
