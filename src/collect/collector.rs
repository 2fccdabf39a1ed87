//! The collector: from decoded records to sums per stream and pane.
//!
//! It owns what is local to the partitions that it reads: positions, event time, open panes. It
//! emits pane deltas, the sums of one stream over one sealed pane; they merge by addition, so any
//! number of collectors may feed one judge.
//!
//! A model's panes seal together: all that end at or before its *watermark*, which is the frontier
//! minus its lateness, rounded down to a pane. An event for a pane before it is late. The watermark
//! moves with the events themselves and not with the clock or with ticks, so a replay has it where
//! the live run had it.
//!
//! The files below hold its methods for joins, ids that come twice, compared versions, event time,
//! taps, and what its holder does besides giving it records (`upkeep`).
//!
//! Always: every record is counted once; an event counts for all views of its stream or for none.

use super::amend::Amendments;
use super::caps::Caps;
use super::counters::Counters;
use super::deduplication::{Deduplication, IdPlan};
use super::event::{Disposition, EVENT_TIMES_MS, Event, Origin, Reason, Refusal};
use super::join::{JoinPlan, Joins};
use super::pairing::Pairing;
use super::partition::Partitions;
use super::rank::Rows;
use super::segment::SegmentKind;
use super::shape::{ModelShape, project, unnamed_models};
use super::stream::{IN_STEP_PANES, OpenRoom, PaneDelta, Stream};
use super::streams::Streams;
use super::tap::Tap;
use crate::stats::fixed::{Score, Scored};

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

/// What the records of a source are.
#[derive(Debug, Clone, Copy)]
enum SourceKind {
    /// Each record has its outcome.
    Plain,
    /// Each record has its outcome, and each id counts once.
    Deduplicated,
    /// Predictions or outcomes of a join.
    Joined(u16),
}

/// See the module.
#[derive(Debug)]
pub struct Collector {
    models: Vec<ModelShape>,
    caps: Caps,
    /// What the records of each source are.
    kinds: Vec<SourceKind>,
    /// Start of each model's oldest pane that is not sealed.
    sealed_until_ms: Vec<i64>,
    /// Frontier at which the next pane of any model seals.
    due_ms: i64,
    partitions: Partitions,
    counters: Counters,
    streams: Streams,
    /// Bytes of the packed open panes of all streams.
    open_bytes: usize,
    /// While no panes are opened ahead: up to where all partitions have come, by model.
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
    /// By join: the models for which an outcome that names no model waits.
    unnamed: Vec<Vec<usize>>,
    deduplication: Deduplication,
    /// Number of classes of each model, or 0.
    classes: Vec<u32>,
    amendments: Amendments,
    /// Ids that versions share, by model.
    pairings: Vec<Option<Pairing>>,
    /// Collects pairs while a client looks.
    tap: Option<Box<Tap>>,
}

impl Collector {
    /// A collector without state.
    pub fn new(
        models: Vec<ModelShape>,
        caps: Caps,
        joins: Vec<JoinPlan>,
        ids: &[IdPlan],
    ) -> Collector {
        Collector {
            kinds: source_kinds(&joins, ids),
            unnamed: unnamed_models(&joins, &models),
            joins: Joins::new(joins),
            deduplication: Deduplication::new(ids, caps.ids_max),
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
            sealed_until_ms: vec![i64::MIN; models.len()],
            due_ms: i64::MIN,
            models,
            caps,
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
        // Functions that are not inlined take the origin by its fields: an origin that was just
        // written field by field can be read whole only once the writes have reached the cache.
        let (at, offset) = (origin.partition_id(), origin.offset);
        let end = match self.kind_of(origin.source) {
            _ if !self.partitions.advance(origin) => Disposition::Replayed,
            SourceKind::Plain => self.observe_alone(origin.source, event),
            SourceKind::Deduplicated => self.observe_once(at, offset, event),
            SourceKind::Joined(join) => self.observe_prediction(join, at, offset, event),
        };
        self.counters.source_mut(origin.source).count(end);
        if end != Disposition::Observed {
            self.advance_uncounted(origin.source, end, event.time_ms, event.arrival_ms);
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
        self.advance_uncounted(origin.source, end, i64::MIN, arrival_ms);
        end
    }

    /// The next event is one more row of the record at `origin`, the last record taken from its
    /// partition. It is an error to call this after a record that was replayed.
    pub fn next_row(&mut self, origin: Origin) {
        self.partitions.reopen(origin);
        self.rows.next(origin);
    }

    #[inline]
    fn kind_of(&self, source: u16) -> SourceKind {
        let kind = self.kinds.get(usize::from(source));
        kind.copied().unwrap_or(SourceKind::Plain)
    }

    #[inline]
    fn observe_alone(&mut self, source: u16, event: &Event<'_>) -> Disposition {
        if !is_plausible_time(event.time_ms, event.arrival_ms, self.caps.future_max_ms) {
            return Disposition::Rejected(Reason::TimeOutOfRange);
        }
        match self.stream_of(event, false) {
            Ok(slot) => self.add(source, slot, event),
            Err(end) => end,
        }
    }

    /// The stream of an event, begun if it is new; `joined` events need no outcome.
    #[inline]
    fn stream_of(&mut self, event: &Event<'_>, joined: bool) -> Result<usize, Disposition> {
        match self.streams.find(&event.names()) {
            Some(slot) => Ok(slot),
            None => self.begin(event, joined),
        }
    }

    /// Begins a stream for an event whose names are new, or returns the one that takes such events.
    #[cold]
    fn begin(&mut self, event: &Event<'_>, joined: bool) -> Result<usize, Disposition> {
        let model = self.admit(event, joined).map_err(Disposition::Rejected)?;
        let names = event.names();
        let (shape, streams_max) = (&self.models[model], self.caps.streams_max);
        let slot = self.streams.begin(&names, model, shape, streams_max);
        slot.ok_or(Disposition::Refused(Refusal::Streams))
    }

    /// Returns the model of an event whose names are new. A rejected event begins no stream.
    fn admit(&mut self, event: &Event<'_>, joined: bool) -> Result<usize, Reason> {
        if event.model.is_empty() {
            return Err(Reason::EmptyKey);
        }
        let long = |s: &str| s.len() > NAME_MAX;
        if long(event.model) || long(event.version) || long(event.segment) {
            return Err(Reason::TooLarge);
        }
        if SegmentKind::of(event.segment).is_derived() {
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
    fn add(&mut self, source: u16, slot: usize, event: &Event<'_>) -> Disposition {
        let Some(stream) = self.streams.get_mut(slot) else {
            return Disposition::Refused(Refusal::Streams);
        };
        let (facts, time) = (stream.facts, event.time_ms);
        let only = match facts.only(event) {
            Ok(only) => only,
            Err(reason) => return Disposition::Rejected(reason),
        };
        // An open pane is not before the watermark.
        if let Some(one) = only
            && let Some(pane) = stream.current(time, facts.pane_ms)
        {
            if let Err(refusal) = pane.observe_one(one) {
                return Disposition::Refused(refusal);
            }
            stream.saw(time);
            if stream.kind == SegmentKind::Other {
                self.counters.source_mut(source).other += 1;
            }
        } else if let Err(end) = self.add_slow(source, slot, event, only) {
            return end;
        }
        self.reach(source, time, event.arrival_ms);
        if facts.paired {
            self.pair(slot, event, only);
        }
        if self.tap.is_some() {
            self.tap_event(slot, event);
        }
        Disposition::Observed
    }

    /// [`Collector::add`] for an event with several views or an attribute, or in another pane than
    /// the previous event. It is a function of its own because inside `add` it made every event a
    /// fifth slower.
    #[inline(never)]
    fn add_slow(
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
        let other = stream.kind == SegmentKind::Other;
        if renormalised || other {
            let source = self.counters.source_mut(source);
            source.renormalised += u64::from(renormalised);
            source.other += u64::from(other);
        }
        Ok(())
    }

    /// Advances the partition of the record at hand to this time.
    #[inline]
    fn reach(&mut self, source: u16, time_ms: i64, arrival_ms: Option<i64>) {
        let ahead_max_ms = self.caps.future_max_ms;
        if self.partitions.observe(time_ms, arrival_ms, ahead_max_ms) {
            self.counters.source_mut(source).ahead += 1;
        }
    }

    /// Makes the pane of a stream that begins at `start_ms` the current one, if there is room for
    /// it. When the open panes of all streams have reached their cap in bytes, there is room only a
    /// little beyond what is sealed, or, if the caller [says so](Collector::hold_ahead), a little
    /// beyond where all partitions have come.
    fn open_pane(&mut self, slot: usize, start_ms: i64) -> Result<(), Refusal> {
        let stream = self.streams.get_mut(slot).ok_or(Refusal::Streams)?;
        let (model, shape) = (stream.model, &self.models[stream.model]);
        let full = self.open_bytes >= self.caps.open_bytes_max;
        let from_ms = match &self.common_ms {
            Some(common_ms) => Some(common_ms[model]),
            None => full.then_some(self.sealed_until_ms[model]),
        };
        let ahead_ms = shape.lateness_ms + IN_STEP_PANES * shape.pane_ms;
        let room = OpenRoom {
            panes_max: self.caps.open_panes_max,
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

    /// The watermark of `model`, before which panes can be sealed, if it has moved.
    pub fn watermark_ms(&self, model: usize) -> Option<i64> {
        let watermark_ms = self.watermark_at(model, self.partitions.frontier_ms()?);
        (watermark_ms > self.sealed_until_ms[model]).then_some(watermark_ms)
    }

    /// The watermark of `model` when event time has come to `time_ms`.
    pub fn watermark_at(&self, model: usize, time_ms: i64) -> i64 {
        self.models[model].watermark_at(time_ms)
    }

    /// Takes out all panes of `model` that begin before `watermark_ms`, stream by stream.
    pub fn take_panes(
        &mut self,
        model: usize,
        watermark_ms: i64,
        mut each: impl FnMut(&Stream, PaneDelta),
    ) {
        let shape = &self.models[model];
        for (_, stream) in self.streams.iter_mut().filter(|(_, s)| s.model == model) {
            let before = stream.packed_bytes();
            let views = shape.views.len();
            while let Some(pane) = stream.seal(watermark_ms, shape.pane_ms, views, shape.grid) {
                each(stream, pane);
            }
            self.open_bytes = self.open_bytes + stream.packed_bytes() - before;
        }
    }

    /// The end of the oldest open pane of a model with roll-ups, if it is before `watermark_ms`,
    /// and otherwise `watermark_ms`. So the second stage merges the panes of one stretch of time
    /// after the other.
    pub fn next_end_ms(&self, model: usize, watermark_ms: i64) -> i64 {
        let shape = &self.models[model];
        if !shape.segmenting.rollup {
            return watermark_ms;
        }
        let streams = self.streams.iter().filter(|(_, s)| s.model == model);
        let oldest = streams.filter_map(|(_, s)| s.oldest_ms()).min();
        oldest.map_or(watermark_ms, |oldest| {
            watermark_ms.min(oldest + shape.pane_ms)
        })
    }

    /// Moves `model`'s watermark. The caller has taken all panes before it.
    pub fn close(&mut self, model: usize, watermark_ms: i64) {
        self.sealed_until_ms[model] = self.sealed_until_ms[model].max(watermark_ms);
        let due = |(shape, closed): (&ModelShape, &i64)| {
            closed.saturating_add(shape.pane_ms + shape.lateness_ms + shape.maturity_ms)
        };
        let all = self.models.iter().zip(&self.sealed_until_ms).map(due);
        self.due_ms = all.min().unwrap_or(i64::MAX);
    }
}

/// The kinds of records, by source; sources beyond the list are plain.
fn source_kinds(joins: &[JoinPlan], ids: &[IdPlan]) -> Vec<SourceKind> {
    let once = ids
        .iter()
        .map(|plan| (plan.source, SourceKind::Deduplicated));
    let joined = (0u16..).zip(joins).flat_map(|(join, plan)| {
        [plan.predictions, plan.outcomes].map(|source| (source, SourceKind::Joined(join)))
    });
    let mut kinds = Vec::new();
    for (source, kind) in once.chain(joined) {
        let index = usize::from(source);
        kinds.resize(kinds.len().max(index + 1), SourceKind::Plain);
        kinds[index] = kind;
    }
    kinds
}

/// Whether the event time is in this century and not too far ahead of the event's arrival.
#[inline]
pub(super) fn is_plausible_time(time_ms: i64, arrival_ms: Option<i64>, ahead_max_ms: i64) -> bool {
    let ahead = |arrival: i64| time_ms > arrival.saturating_add(ahead_max_ms);
    EVENT_TIMES_MS.contains(&time_ms) && !arrival_ms.is_some_and(ahead)
}
