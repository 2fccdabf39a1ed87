//! The collector: from decoded records to sums per stream and pane.
//!
//! It owns what is local to the partitions that it reads: positions, event time, open panes. What leaves
//! it are pane deltas, the sums of one stream over one sealed pane; they merge by addition, so any
//! number of collectors may feed one judge. Here one collector feeds it from the same thread.
//!
//! A model's panes seal together: all that end at or before the model's watermark, the frontier less
//! its lateness, rounded down to a pane. An event for a pane before that line is late. The line moves
//! with the events themselves and not with the clock or with ticks, so a replay draws it where the
//! live run did.
//!
//! Always: every record is counted once; an event counts for all views of its subject or for none.

use super::amend::Amendments;
use super::counters::Counters;
use super::event::{Disposition, Event, Label, Origin, Reason, Refusal};
use super::join::{self, JoinPlan, Joins, RowLayout};
use super::key::Names;
use super::pairing::{MatchedPairs, PairShape, Pairing};
use super::partition::Partitions;
use super::rank::Rows;
use super::segments::{Groups, Part, Segmenting};
use super::subject::Subject;
use super::table::Table;
use super::tap::Tap;
use crate::stats::axis::Grid;
use crate::stats::fixed::{Score, Scored};
use crate::stats::sampling::Sampling;
use crate::stats::view::{Checked, Prediction, View, ViewError, positive};
use crate::window::{Packed, Unlabelled};

/// 2000-01-01, before which no event time is believed: a clock that was never set says 1970.
pub const TIME_MIN_MS: i64 = 946_684_800_000;

/// 2100-01-01, from which on none is: seconds taken for milliseconds end up far beyond.
pub const TIME_MAX_MS: i64 = 4_102_444_800_000;

/// Longest model, version or segment name; longer ones are rejected, so that memory has a bound.
pub const NAME_MAX: usize = 512;

/// What the collector must know of a model.
#[derive(Debug, Clone)]
pub struct ModelShape {
    /// Name, or "*" for all others.
    pub name: String,
    /// What is tested of single scores.
    pub views: Vec<View>,
    /// How many of the largest probabilities are kept of a prediction that waits, for vector views.
    pub depth: usize,
    /// Seed of the ranks by which a sample of whole vectors is drawn, where a kernel view keeps one: they wait too.
    pub sampled: Option<u64>,
    /// Entries of a vector; 0: any number.
    pub classes: usize,
    /// Width of a base pane.
    pub pane_ms: i64,
    /// Allowed lateness.
    pub lateness_ms: i64,
    /// Cells.
    pub grid: Grid,
    /// How long its predictions wait for their outcomes; 0 where these come together.
    pub maturity_ms: i64,
    /// How long a sealed pane is held by some window.
    pub held_ms: i64,
    /// Its segments.
    pub segmenting: Segmenting,
    /// How its negatives were sampled; scores of the view `binary` are carried accordingly.
    pub sampling: Sampling,
    /// How its versions are compared, if they are.
    pub compare: Option<PairShape>,
}

/// What an event needs to know of its model, in a quarter of a cache line.
#[derive(Debug, Clone, Copy)]
struct Way {
    pane_ms: i64,
    /// There is one view, the binary one, of scores as they come.
    plain: bool,
    /// Its versions are compared.
    paired: bool,
}

/// Bounds of the collector.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Most streams.
    pub streams_max: usize,
    /// Most open panes of a subject.
    pub open_panes_max: usize,
    /// How far an event may be ahead of its arrival.
    pub future_max_ms: i64,
}

/// The sums of one subject over one sealed pane.
#[derive(Debug, Clone)]
pub struct PaneDelta {
    /// Begin of the pane.
    pub start_ms: i64,
    /// End of the pane, exclusive.
    pub end_ms: i64,
    /// Events that came too late since the delta before.
    pub late: u64,
    /// Sums for each view, in the order of the model's.
    pub views: Vec<Packed>,
    /// Predictions whose outcome never came, for each view.
    pub unlabelled: Vec<Unlabelled>,
}

/// See the module.
#[derive(Debug)]
pub struct Collector {
    pub(super) models: Vec<ModelShape>,
    pub(super) bounds: Bounds,
    /// What an event needs to know of its model.
    ways: Vec<Way>,
    /// Begin of the oldest pane of each model that is not sealed.
    pub(super) closed_ms: Vec<i64>,
    /// Frontier at which the next pane of any model seals.
    due_ms: i64,
    pub(super) partitions: Partitions,
    pub(super) counters: Counters,
    pub(super) table: Table,
    pub(super) subjects: Vec<Option<Subject>>,
    /// Slots without a subject.
    pub(super) vacant: usize,
    pub(super) groups: Groups,
    pub(super) streams: usize,
    /// Slot of the subject of the last event.
    pub(super) last: usize,
    /// Scores and outcomes of the event at hand, by view.
    pub(super) seen: Vec<Scored>,
    /// Scores of the prediction at hand with the class that makes their outcome true, by view, and what else is
    /// [kept](join::RowLayout) of it.
    pub(super) expected: Vec<(Score, u32)>,
    /// Scratch: classes in falling order.
    pub(super) order: Vec<u32>,
    /// Scratch: a whole vector.
    pub(super) row: Vec<f64>,
    pub(super) rows: Rows,
    pub(super) joins: Joins,
    /// Number of classes of each model, or 0.
    pub(super) classes: Vec<u32>,
    pub(super) amendments: Amendments,
    /// Ids that versions share, by model.
    pub(super) pairings: Vec<Option<Pairing>>,
    /// Somebody looks.
    pub(super) tap: Option<Box<Tap>>,
}

impl Collector {
    /// A collector without state.
    pub fn new(models: Vec<ModelShape>, bounds: Bounds, joins: Vec<JoinPlan>) -> Collector {
        Collector {
            joins: Joins::new(joins),
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
            ways: models.iter().map(Way::new).collect(),
            closed_ms: vec![i64::MIN; models.len()],
            due_ms: i64::MIN,
            models,
            bounds,
            partitions: Partitions::default(),
            counters: Counters::default(),
            table: Table::default(),
            subjects: Vec::new(),
            vacant: 0,
            groups: Groups::default(),
            streams: 0,
            last: 0,
            seen: Vec::new(),
        }
    }

    /// Takes a decoded record.
    #[inline]
    pub fn observe(&mut self, origin: Origin, event: &Event<'_>) -> Disposition {
        let end = if !self.partitions.advance(origin) {
            Disposition::Replayed
        } else if let Some(role) = self.joins.role(origin.source) {
            self.expect(role, origin, event)
        } else {
            self.take(origin.source, event)
        };
        self.counters.source_mut(origin.source).count(end);
        end
    }

    /// Takes an outcome that came apart from its prediction; one from a source that is not joined is
    /// rejected, for it says nothing of a prediction.
    pub fn label(&mut self, origin: Origin, label: &Label<'_>) -> Disposition {
        let end = match self.joins.role(origin.source) {
            _ if !self.partitions.advance(origin) => Disposition::Replayed,
            Some(role) => self.join(role, origin, label),
            None => Disposition::Rejected(Reason::MissingField),
        };
        self.counters.source_mut(origin.source).count(end);
        end
    }

    /// Takes a record that could not be decoded.
    pub fn reject(&mut self, origin: Origin, reason: Reason) -> Disposition {
        let end = if self.partitions.advance(origin) {
            Disposition::Rejected(reason)
        } else {
            Disposition::Replayed
        };
        self.counters.source_mut(origin.source).count(end);
        end
    }

    #[inline]
    fn take(&mut self, source: u16, event: &Event<'_>) -> Disposition {
        if !believes(event.time_ms, event.arrival_ms, self.bounds.future_max_ms) {
            return Disposition::Rejected(Reason::TimeOutOfRange);
        }
        match self.subject_of(event, false) {
            Ok(slot) => self.land(source, slot, event),
            Err(end) => end,
        }
    }

    /// The subject of an event, begun if need be; `joined` events need no outcome.
    #[inline]
    pub(super) fn subject_of(
        &mut self,
        event: &Event<'_>,
        joined: bool,
    ) -> Result<usize, Disposition> {
        let names = Names::new(event.model, event.version, event.segment);
        let same = |slot: usize| {
            let subject = self.subjects.get(slot).and_then(Option::as_ref);
            subject.is_some_and(|s| s.key.is(&names))
        };
        if same(self.last) {
            return Ok(self.last);
        }
        let h = names.hash();
        if let Some(slot) = self.table.find(h, same) {
            self.last = slot;
            return Ok(slot);
        }
        self.begin(event, h, joined)
    }

    pub(super) fn model_of(&self, name: &str) -> Option<usize> {
        let named = |name: &str| self.models.iter().position(|m| m.name == name);
        named(name).or_else(|| named("*"))
    }

    #[inline]
    fn land(&mut self, source: u16, slot: usize, event: &Event<'_>) -> Disposition {
        let Some(subject) = self.subjects.get_mut(slot).and_then(Option::as_mut) else {
            return Disposition::Refused(Refusal::Streams);
        };
        let (way, time) = (self.ways[subject.model], event.time_ms);
        let only = match way.only(event) {
            Ok(only) => only,
            Err(reason) => return Disposition::Rejected(reason),
        };
        // An open pane is not before the line.
        if let (Some(one), Some(pane)) = (only, subject.current(time, way.pane_ms)) {
            if let Err(refusal) = pane.observe_one(one) {
                return Disposition::Refused(refusal);
            }
            subject.saw(time);
            if subject.part == Part::Other {
                self.counters.source_mut(source).other += 1;
            }
        } else if let Err(end) = self.land_elsewhere(source, slot, event, only) {
            return end;
        }
        self.partitions.observe(time);
        if way.paired {
            self.pair(slot, event, only);
        }
        if self.tap.is_some() {
            self.tap_event(slot, event);
        }
        Disposition::Observed
    }

    /// [`Collector::land`] of what has several views or a weight, or lies in another pane than the one before. By
    /// itself, because with it in the same function every event took a fifth longer.
    #[inline(never)]
    fn land_elsewhere(
        &mut self,
        source: u16,
        slot: usize,
        event: &Event<'_>,
        only: Option<Scored>,
    ) -> Result<(), Disposition> {
        let Some(subject) = self.subjects.get_mut(slot).and_then(Option::as_mut) else {
            return Err(Disposition::Refused(Refusal::Streams));
        };
        let (shape, time) = (&self.models[subject.model], event.time_ms);
        let mut renormalised = false;
        if only.is_none() {
            renormalised = project(shape, event, &mut self.seen).map_err(Disposition::Rejected)?;
        }
        if subject.current(time, shape.pane_ms).is_none() {
            let start = time - time.rem_euclid(shape.pane_ms);
            if start < self.closed_ms[subject.model] {
                subject.seen = true;
                subject.late += 1;
                self.partitions.observe(time);
                return Err(Disposition::Late);
            }
            let panes_max = self.bounds.open_panes_max;
            let turned = subject.turn_to(start, shape.views.len(), shape.grid, panes_max);
            turned.map_err(Disposition::Refused)?;
        }
        let pane = subject.current(time, shape.pane_ms).ok_or(Refusal::Panes);
        let taken = pane.and_then(|pane| match only {
            Some(one) => pane.observe_one(one),
            None => pane.observe(&self.seen, event.weight),
        });
        taken.map_err(Disposition::Refused)?;
        subject.saw(time);
        let other = subject.part == Part::Other;
        if renormalised || other {
            let source = self.counters.source_mut(source);
            source.renormalised += u64::from(renormalised);
            source.other += u64::from(other);
        }
        Ok(())
    }

    /// Keeps an observation for the other versions of its model.
    #[inline(never)]
    fn pair(&mut self, slot: usize, event: &Event<'_>, only: Option<Scored>) {
        let model = self.subject(slot).map(|s| s.model);
        let Some((model, Some(pairing))) = model.map(|m| (m, &mut self.pairings[m])) else {
            return;
        };
        if event.id.is_empty() {
            pairing.count_nameless();
            return;
        }
        let start_ms = event.time_ms - event.time_ms.rem_euclid(self.models[model].pane_ms);
        let one = only.map(|one| [one]);
        let seen = one.as_ref().map_or(self.seen.as_slice(), |one| one);
        let key = join::Key::new(None, event.id);
        pairing.observe(start_ms, event.time_ms, slot, key, seen);
    }

    /// Tells the pairs of `model` in panes that end at or before `line_ms`.
    pub fn pair_up(&mut self, model: usize, line_ms: i64, each: impl FnMut(MatchedPairs<'_>)) {
        let Some(mut pairing) = self.pairings[model].take() else {
            return;
        };
        let name = |slot: u32| {
            let subject = self.subject(slot as usize)?;
            Some((subject.key.model(), subject.key.version()))
        };
        pairing.seal(line_ms, self.models[model].pane_ms, name, each);
        self.pairings[model] = Some(pairing);
    }

    /// The ids that versions of `model` share, if these are compared.
    pub fn pairing(&self, model: usize) -> Option<&Pairing> {
        self.pairings.get(model)?.as_ref()
    }

    /// Puts back the rows of a snapshot, but those of subjects that did not come back; the subjects must be
    /// back. `false` where they are of another shape.
    pub fn put_back_pairing(&mut self, model: usize, state: super::PairingState) -> bool {
        let Some(mut pairing) = self.pairings[model].take() else {
            return true;
        };
        let sound = pairing.restore(state);
        let here = |slot: u32| {
            self.subject(slot as usize)
                .is_some_and(|s| s.model == model)
        };
        pairing.retain(here);
        self.pairings[model] = Some(pairing);
        sound
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
        let shape = &self.models[model];
        let watermark = self.partitions.frontier_ms()? - shape.lateness_ms - shape.maturity_ms;
        let line = watermark - watermark.rem_euclid(shape.pane_ms);
        (line > self.closed_ms[model]).then_some(line)
    }

    /// The line of `model` after the newest event of all, for the end of input. It does not depend on
    /// which partition had the event, nor on how far the line has come.
    pub fn last_line(&self, model: usize) -> i64 {
        let pane_ms = self.models[model].pane_ms;
        // Outcomes come after the last prediction; nothing is judged for their sake.
        let newest = match self.joins.plans() {
            [] => self.partitions.newest_ms(),
            _ => self.subjects.iter().flatten().map(|s| s.newest_ms).max(),
        };
        let end = newest.map(|t| t - t.rem_euclid(pane_ms) + pane_ms);
        end.map_or(self.closed_ms[model], |end| end.max(self.closed_ms[model]))
    }

    /// The line of `model` before which everything is mature at this event time; not before the present one.
    pub fn mature_line(&self, model: usize, now_ms: i64) -> i64 {
        let shape = &self.models[model];
        let at = now_ms.saturating_sub(shape.maturity_ms);
        let line = at.saturating_sub(at.rem_euclid(shape.pane_ms));
        line.max(self.closed_ms[model])
    }

    /// The line of `model` up to which everything is sealed.
    pub fn closed_ms(&self, model: usize) -> i64 {
        self.closed_ms[model]
    }

    /// What is taken next is one more event of the record at `origin`, the last that was taken of its partition. It is
    /// an error to call this of a record that was replayed.
    pub fn next_row(&mut self, origin: Origin) {
        self.partitions.reopen(origin);
        self.rows.next(origin);
    }

    /// Which row of its record the event at `origin` is.
    pub fn row_of(&self, origin: Origin) -> u32 {
        self.rows.of(origin)
    }

    /// Moves `model`'s line. The caller has taken all panes before it.
    pub fn close(&mut self, model: usize, line_ms: i64) {
        self.closed_ms[model] = self.closed_ms[model].max(line_ms);
        let due = |(shape, closed): (&ModelShape, &i64)| {
            closed.saturating_add(shape.pane_ms + shape.lateness_ms + shape.maturity_ms)
        };
        let all = self.models.iter().zip(&self.closed_ms).map(due);
        self.due_ms = all.min().unwrap_or(i64::MAX);
    }

    /// Subjects of a model with their slots.
    pub fn slots(&self, model: usize) -> impl Iterator<Item = (usize, &Subject)> {
        let all = self.subjects.iter().enumerate();
        all.filter_map(move |(slot, s)| s.as_ref().filter(|s| s.model == model).map(|s| (slot, s)))
    }

    /// The subject in a slot.
    pub fn subject(&self, slot: usize) -> Option<&Subject> {
        self.subjects.get(slot)?.as_ref()
    }

    /// The subject in a slot, to be changed.
    pub fn subject_mut(&mut self, slot: usize) -> Option<&mut Subject> {
        self.subjects.get_mut(slot)?.as_mut()
    }

    /// Slot of the subject of the last event that had one.
    pub fn last_slot(&self) -> usize {
        self.last
    }

    /// Number of slots, used or not.
    pub fn slots_len(&self) -> usize {
        self.subjects.len()
    }

    /// Seals the oldest pane of the subject if it begins before `line_ms`.
    pub fn seal(&mut self, slot: usize, line_ms: i64) -> Option<PaneDelta> {
        let subject = self.subjects.get_mut(slot)?.as_mut()?;
        if subject.oldest_ms()? >= line_ms {
            return None;
        }
        let (start_ms, views, unlabelled) = subject.take_oldest()?;
        Some(PaneDelta {
            start_ms,
            end_ms: start_ms + self.models[subject.model].pane_ms,
            late: std::mem::take(&mut subject.late),
            views,
            unlabelled,
        })
    }

    /// Puts back positions, counts and lines of a snapshot.
    pub fn restore(&mut self, partitions: Partitions, counters: Counters, closed: &[(usize, i64)]) {
        self.partitions = partitions;
        self.counters = counters;
        for &(model, line) in closed {
            self.close(model, line);
        }
    }

    /// Partitions, for assignment and snapshots.
    pub fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// Partitions, to assign, end and revoke them.
    pub fn partitions_mut(&mut self) -> &mut Partitions {
        &mut self.partitions
    }

    /// Where every record went.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts of what happens to streams outside the collector.
    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// Changes the cap on streams; those above it stay until they expire.
    pub fn streams_max(&mut self, streams_max: usize) {
        self.bounds.streams_max = streams_max;
    }

    /// The models' shapes.
    pub fn models(&self) -> &[ModelShape] {
        &self.models
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let subjects = self.subjects.iter().flatten();
        subjects.map(Subject::bytes).sum::<usize>()
            + self.subjects.capacity() * size_of::<Option<Subject>>()
            + self.table.bytes()
            + self.partitions.bytes()
            + self.joins.bytes()
            + self
                .pairings
                .iter()
                .flatten()
                .map(Pairing::bytes)
                .sum::<usize>()
            + self.group_bytes()
    }
}

impl ModelShape {
    /// What is kept of its predictions while they wait.
    pub(super) fn row_layout(&self) -> RowLayout {
        RowLayout {
            views: self.views.len(),
            depth: self.depth,
            full_vector: self
                .sampled
                .map_or(0, |_| join::full_vector::entries(self.classes)),
            weighted: self.grid.is_weighted(),
        }
    }

    /// Whether there are vector views, so that vectors wait.
    pub(super) fn has_vectors(&self) -> bool {
        self.depth > 0 || self.sampled.is_some()
    }

    /// Event time up to which outcomes of a pane's predictions are on time.
    pub(super) fn due_ms(&self, start_ms: i64, maturity_ms: i64) -> i64 {
        start_ms + self.pane_ms + maturity_ms
    }

    /// The score of a view on the scale of the events that are there.
    #[inline]
    pub(super) fn carried(&self, view: View, score: Score) -> Score {
        if self.sampling.is_none() || view != View::Binary {
            return score;
        }
        self.sampling.carry(score)
    }

    /// Number of classes that an outcome may name; 0: any.
    fn outcomes(&self) -> u32 {
        let binary = self.views.contains(&View::Binary);
        if binary { 2 } else { self.classes as u32 }
    }
}

/// Whether the event time is in this century and not too far ahead of the event's arrival.
#[inline]
pub(super) fn believes(time_ms: i64, arrival_ms: Option<i64>, ahead_max_ms: i64) -> bool {
    let ahead = |arrival: i64| time_ms > arrival.saturating_add(ahead_max_ms);
    (TIME_MIN_MS..TIME_MAX_MS).contains(&time_ms) && !arrival_ms.is_some_and(ahead)
}

impl Way {
    fn new(shape: &ModelShape) -> Way {
        Way {
            pane_ms: shape.pane_ms,
            paired: shape.compare.is_some(),
            plain: shape.views == [View::Binary]
                && shape.sampling.is_none()
                && !shape.grid.is_weighted(),
        }
    }

    /// The score and outcome of the event where it has one score and the model one view, as most have;
    /// `None` for others.
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

/// Takes the score and outcome of the event for each view of the model; returns whether a vector was
/// divided by its sum.
#[inline]
pub(super) fn project(
    shape: &ModelShape,
    event: &Event<'_>,
    seen: &mut Vec<Scored>,
) -> Result<bool, Reason> {
    let outcome = event.outcome.ok_or(Reason::MissingField)?;
    let checked = Checked::new(event.prediction)?;
    if let Prediction::Vector(p) = event.prediction
        && shape.classes > 0
        && p.len() != shape.classes
    {
        return Err(Reason::VectorLength);
    }
    if shape.grid.is_weighted() && event.weight.is_none() {
        return Err(Reason::MissingField);
    }
    seen.clear();
    for view in &shape.views {
        let (score, outcome) = checked.project(*view, outcome)?;
        seen.push(Scored::new(shape.carried(*view, score), outcome));
    }
    Ok(checked.renormalised())
}
