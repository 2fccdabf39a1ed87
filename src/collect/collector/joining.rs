//! The collector's side of joins: predictions in, outcomes in, mature cohorts to their streams'
//! panes.
//!
//! If a model has vector views, a pending prediction also keeps the numbers that these views need.
//! They go to the holder of the views ([`MaturedVector`]) when the prediction is mature and
//! counted. Changes by late outcomes are kept for the views too, beside the corrections of scores
//! ([`crate::collect::amend`]). Models without such views pay one comparison a prediction.

use super::{Collector, SourceKind, is_plausible_time};
use crate::collect::event::{
    Disposition, Event, Origin, OutcomeRecord, PartitionId, Reason, Refusal,
};
use crate::collect::join::{
    JoinPlan, Key, Matured, MaturityEvent, Missing, NewPrediction, OutcomeResult, Predicted,
    Revision, attribute_view, full_vector,
};
use crate::collect::key;
use crate::collect::pairing::Pairing;
use crate::collect::rank::rank;
use crate::collect::segment::SegmentKind;
use crate::collect::shape::ModelShape;
use crate::collect::streams::Streams;
use crate::stats::fixed::{Score, Scored};
use crate::stats::kernel::sums::value_of;
use crate::stats::multiclass::ranked::{ABSENT, ranked};
use crate::stats::view::{Checked, ViewError};
use crate::window::{LateOutcomes, RetainedVector};

/// A mature prediction, for its vector views.
#[derive(Debug, Clone, Copy)]
pub struct MaturedVector<'a> {
    /// Slot of its stream.
    pub slot: usize,
    /// Names of its stream.
    pub key: &'a key::Key,
    /// Event time.
    pub time_ms: i64,
    /// Its vector.
    pub vector: RetainedVector<'a>,
    /// The class with which it was counted, if it was.
    pub class: Option<u32>,
    /// Whether `class` is implied: no outcome came.
    pub implied: bool,
}

/// Shows a prediction to its vector views; returns how many of them had no cell for it.
pub type Show<'f> = &'f mut dyn FnMut(&MaturedVector<'_>) -> u64;

impl Collector {
    /// Takes an outcome that came separately from its prediction. An outcome from a source that is
    /// not joined is rejected, because it belongs to no prediction.
    pub fn observe_outcome(&mut self, origin: Origin, record: &OutcomeRecord<'_>) -> Disposition {
        let end = match self.kind_of(origin.source) {
            _ if !self.partitions.advance(origin) => Disposition::Replayed,
            SourceKind::Joined(join) => self.join(join, origin, record),
            SourceKind::Plain | SourceKind::Deduplicated => {
                Disposition::Rejected(Reason::MissingField)
            }
        };
        self.counters.source_mut(origin.source).count(end);
        self.advance_uncounted(origin.source, end, record.time_ms, record.arrival_ms);
        end
    }

    /// Takes a prediction of a joined source: it is held until it is mature.
    pub(super) fn observe_prediction(
        &mut self,
        join: u16,
        at: PartitionId,
        offset: i64,
        event: &Event<'_>,
    ) -> Disposition {
        let origin = at.at(offset);
        if !is_plausible_time(event.time_ms, event.arrival_ms, self.caps.future_max_ms) {
            return Disposition::Rejected(Reason::TimeOutOfRange);
        }
        if event.id.is_empty() {
            return Disposition::Rejected(Reason::EmptyKey);
        }
        let slot = match self.stream_of(event, true) {
            Ok(slot) => slot,
            Err(end) => return end,
        };
        let Some(model) = self.streams.get(slot).map(|s| s.model) else {
            return Disposition::Refused(Refusal::Streams);
        };
        let rank = (self.models[model].sampled)
            .map_or(0, |seed| rank(seed, origin, self.rows.of(origin), event));
        let renormalised = match self.views_of(model, rank, event) {
            Ok(renormalised) => renormalised,
            Err(reason) => return Disposition::Rejected(reason),
        };
        let time = event.time_ms;
        let start_ms = self.models[model].start_of(time);
        let late = start_ms < self.sealed_until_ms[model];
        if let Some(stream) = self.streams.get_mut(slot) {
            match late {
                true => stream.miss(time),
                false => stream.touch(),
            }
        }
        if late {
            self.reach_joined(origin.source, Disposition::Late, time, event.arrival_ms);
            return Disposition::Late;
        }
        let plan = self.joins.plan(join);
        let key = Key::new(plan.by_model.then_some(event.model), event.id);
        let key = key.of_version(event.version);
        let expect = NewPrediction {
            key,
            model: model as u16,
            slot: slot as u32,
            start_ms,
            time_ms: time,
            due_ms: self.models[model].due_ms(start_ms, plan.maturity_ms),
            views: &self.expected,
            full_vector: self.models[model].row_layout().full_vector(),
            classes: self.classes[model],
        };
        let end = self.joins.predict(join, origin.partition, &expect);
        self.predicted(join, slot, end);
        if let (
            true,
            Predicted::Pending {
                met: Some(OutcomeResult::Matched),
                ..
            },
        ) = (self.tap.is_some(), end)
        {
            self.tap_joined(join, origin.partition, key, event.id);
        }
        if let Predicted::Pending { .. } = end {
            if let Some(stream) = self.streams.get_mut(slot) {
                stream.saw(time);
            }
            if renormalised {
                self.counters.source_mut(origin.source).renormalised += 1;
            }
            if let Some(outcome) = event.outcome {
                // The record carries its outcome: it is one record, whatever becomes of the
                // outcome.
                self.attach(join, origin.partition, key, None, time, outcome.class());
            }
        }
        let end = match end {
            Predicted::Pending { .. } => Disposition::Pending,
            Predicted::Duplicate => Disposition::Duplicate,
            Predicted::Conflict => Disposition::Conflict,
            Predicted::Refused => Disposition::Refused(Refusal::Pending),
        };
        self.reach_joined(origin.source, end, time, event.arrival_ms);
        end
    }

    /// Counts what a prediction changed besides itself.
    fn predicted(&mut self, join: u16, slot: usize, end: Predicted) {
        let Predicted::Pending { met, instead } = end else {
            return;
        };
        let plan = self.joins.plan(join);
        let (predictions, outcomes) = (plan.predictions, plan.outcomes);
        if let Some(stream) = self.streams.get_mut(slot) {
            stream.add_pending(1);
        }
        if let Some(met) = met {
            let source = self.counters.source_mut(outcomes);
            source.end(Disposition::Waiting, disposition_of(met));
        }
        if let Some(replaced) = instead {
            if let Some(stream) = self.streams.get_mut(replaced.slot as usize) {
                stream.end_pending();
            }
            let after = if replaced.differs {
                Disposition::Conflict
            } else {
                Disposition::Duplicate
            };
            let source = self.counters.source_mut(predictions);
            source.end(Disposition::Pending, after);
            if replaced.waits {
                // Counted again, because the outcome stays counted as matched.
                let source = self.counters.source_mut(outcomes);
                source.count(Disposition::Waiting);
            }
        }
    }

    /// Gives an outcome to a join: it is attached to predictions that wait for it, and corrects
    /// those that are mature.
    fn attach(
        &mut self,
        join: u16,
        partition: i32,
        key: Key,
        model: Option<u16>,
        time_ms: i64,
        class: u32,
    ) -> OutcomeResult {
        let mut joins = std::mem::take(&mut self.joins);
        let classes = std::mem::take(&mut self.classes);
        let revise = |plan: &JoinPlan, revision: Revision<'_>| self.revise(plan, revision);
        let end = joins.observe_outcome(
            join, partition, key, model, time_ms, class, &classes, revise,
        );
        (self.joins, self.classes) = (joins, classes);
        end
    }

    /// Counts a late outcome in its stream, and keeps what it changes in sealed panes.
    fn revise(&mut self, plan: &JoinPlan, revision: Revision<'_>) {
        let (streams, sealed) = (&mut self.streams, &self.sealed_until_ms);
        count_late(streams, &self.models, sealed, plan, &revision);
        if revision.given_up.is_none() {
            miss(&mut self.pairings, plan, &revision);
            self.amendments.add(plan, revision, &self.models);
        }
    }

    /// Takes an outcome from a record of its own.
    pub(super) fn join(
        &mut self,
        join: u16,
        origin: Origin,
        record: &OutcomeRecord<'_>,
    ) -> Disposition {
        if !is_plausible_time(record.time_ms, record.arrival_ms, self.caps.future_max_ms) {
            return Disposition::Rejected(Reason::TimeOutOfRange);
        }
        if record.id.is_empty() {
            return Disposition::Rejected(Reason::EmptyKey);
        }
        let by_model = self.joins.plan(join).by_model;
        let name = by_model.then_some(record.model.unwrap_or_default());
        let fixed = self.joins.plan(join).model.as_deref();
        let model = record.model.or(fixed).and_then(|name| self.model_of(name));
        let key = Key::new(name, record.id);
        let (model, class) = (model.map(|m| m as u16), record.outcome.class());
        let end = self.attach(join, origin.partition, key, model, record.time_ms, class);
        let end = disposition_of(end);
        self.reach_joined(origin.source, end, record.time_ms, record.arrival_ms);
        self.tap_outcome(join, origin.partition, key, record, end);
        end
    }

    /// Turns the predictions of `model` in its oldest pending pane into observations, if that pane
    /// ends before `watermark_ms`, and passes those with vector views to `show`. Returns the end of
    /// the pane, or the watermark if nothing else is pending before it.
    pub fn mature(&mut self, model: usize, watermark_ms: i64, show: Show<'_>) -> i64 {
        let pane_ms = self.models[model].pane_ms;
        let oldest = self.joins.oldest_ms(model as u16);
        let watermark_ms = oldest.map_or(watermark_ms, |oldest| watermark_ms.min(oldest + pane_ms));
        let mut joins = std::mem::take(&mut self.joins);
        let classes = std::mem::take(&mut self.classes);
        joins.mature(
            model as u16,
            watermark_ms,
            &classes,
            |plan, event| match event {
                MaturityEvent::Matured(matured) => self.observe_matured(plan, &matured, show),
                MaturityEvent::Revised(revision) => self.revise(plan, revision),
                MaturityEvent::Ended(end) => {
                    let source = self.counters.source_mut(plan.outcomes);
                    source.end(Disposition::Waiting, disposition_of(end));
                }
            },
        );
        self.classes = classes;
        let floor_ms = watermark_ms.saturating_sub(self.models[model].retention_ms);
        joins.evict(model as u16, floor_ms);
        self.joins = joins;
        watermark_ms
    }

    fn observe_matured(&mut self, plan: &JoinPlan, matured: &Matured<'_>, show: Show<'_>) {
        let (end, implied) = self.settle(plan.missing, matured);
        if self.models[usize::from(matured.model)].has_vectors() {
            self.show_matured(plan, matured, end, show);
        }
        let other = end == Some(Disposition::Observed) && self.is_other(matured.slot as usize);
        let source = self.counters.source_mut(plan.predictions);
        source.implied += u64::from(implied);
        source.other += u64::from(other);
        match end {
            Some(end) => source.end(Disposition::Pending, end),
            None => {
                source.pending -= 1;
                source.expired += 1;
            }
        }
    }

    /// Shows a prediction that was counted, or left out because it had no outcome, to its vector
    /// views.
    #[cold]
    fn show_matured(
        &mut self,
        plan: &JoinPlan,
        matured: &Matured<'_>,
        end: Option<Disposition>,
        show: Show<'_>,
    ) {
        let slot = matured.slot as usize;
        let (Some(Disposition::Observed) | None, Some(stream)) = (end, self.streams.get(slot))
        else {
            return;
        };
        let mut row = std::mem::take(&mut self.row);
        let implied = plan.missing.class().filter(|_| matured.outcome.is_none());
        let shape = &self.models[stream.model];
        let lost = show(&MaturedVector {
            slot,
            key: &stream.key,
            time_ms: matured.time_ms,
            vector: RetainedVector {
                ranked: matured.ranked(shape.row_layout()),
                whole: matured.full_vector(shape.row_layout(), shape.classes, &mut row),
                weight: shape.attribute_kept(matured).weight(),
            },
            class: matured.outcome.or(implied),
            implied: implied.is_some(),
        });
        self.row = row;
        self.counters.source_mut(plan.predictions).no_cell += lost;
    }

    fn is_other(&self, slot: usize) -> bool {
        self.streams
            .get(slot)
            .is_some_and(|s| s.kind == SegmentKind::Other)
    }

    /// Adds one mature prediction to its stream's pane. Returns how it ended (`None` if it
    /// expired), and whether its outcome was implied.
    fn settle(&mut self, missing: Missing, m: &Matured<'_>) -> (Option<Disposition>, bool) {
        let refused = |refusal| (Some(Disposition::Refused(refusal)), false);
        let slot = m.slot as usize;
        let Some(stream) = self.streams.get_mut(slot) else {
            return refused(Refusal::Streams);
        };
        stream.end_pending();
        let class = m.outcome.or(missing.class());
        self.seen.clear();
        // Without an outcome only the scores are used.
        let scored = m.against(class.unwrap_or(0));
        self.seen.extend(scored.map(|(z, y)| Scored::new(z, y)));
        let shape = &self.models[stream.model];
        let attribute = shape.attribute_kept(m);
        self.seen.truncate(shape.views.len());
        let pane_ms = shape.pane_ms;
        if let Err(refusal) = self.open_pane(slot, m.start_ms) {
            return refused(refusal);
        }
        let stream = self.streams.get_mut(slot);
        let Some(pane) = stream.and_then(|s| s.current(m.start_ms, pane_ms)) else {
            return refused(Refusal::Panes);
        };
        if class.is_some()
            && let Err(refusal) = pane.observe(&self.seen, attribute)
        {
            return refused(refusal);
        }
        if m.outcome.is_none() {
            pane.count_unlabelled(&self.seen, class.is_some());
        }
        if class.is_some()
            && let Some(pairing) = &mut self.pairings[usize::from(m.model)]
        {
            pairing.observe(m.start_ms, m.time_ms, slot, m.key, &self.seen);
        }
        let unlabelled = m.outcome.is_none();
        (
            class.map(|_| Disposition::Observed),
            unlabelled && class.is_some(),
        )
    }

    /// Ends waiting outcomes as orphaned when every prediction that could still come would be late.
    pub fn orphan(&mut self) {
        let mut joins = std::mem::take(&mut self.joins);
        let sealed_until =
            |join: u16, model: Option<u16>| self.least_of(join, model, |m| self.sealed_until_ms[m]);
        let mut gone = Vec::new();
        joins.orphan(sealed_until, |source, n| gone.push((source, n as u64)));
        for (source, n) in gone {
            let source = self.counters.source_mut(source);
            source.waiting -= n;
            source.orphaned += n;
        }
        self.joins = joins;
    }

    /// Sets `expected` to the score of each view and the class that makes its outcome true; returns
    /// whether a vector was divided by its sum. `rank` is the event's rank in samples.
    pub(super) fn views_of(
        &mut self,
        model: usize,
        rank: u64,
        event: &Event<'_>,
    ) -> Result<bool, Reason> {
        let shape = &self.models[model];
        let checked = shape.check(event.prediction)?;
        self.expected.clear();
        for view in &shape.views {
            let (score, class) = checked.project_pending(*view)?;
            self.expected.push((shape.carried(*view, score), class));
        }
        if shape.depth > 0 {
            add_ranked(&checked, shape.depth, &mut self.order, &mut self.expected)?;
        }
        match (shape.sampled, &checked) {
            (Some(_), Checked::Vector { entries, sum }) => {
                self.row.clear();
                self.row.extend(entries.iter().map(value_of(*sum)));
                full_vector::pack(rank, &self.row, &mut self.expected);
            }
            (Some(_), Checked::Score(_)) => {
                let absent = (Score::ZERO, ABSENT);
                let entries = full_vector::entries(shape.classes);
                self.expected.extend(std::iter::repeat_n(absent, entries));
            }
            (None, _) => {}
        }
        let attribute = shape.attribute_of(event)?;
        self.expected.extend(attribute_view(attribute));
        Ok(checked.renormalised())
    }
}

/// Appends the largest probabilities of a prediction to its entries.
#[cold]
fn add_ranked(
    checked: &Checked<'_>,
    depth: usize,
    order: &mut Vec<u32>,
    to: &mut Vec<(Score, u32)>,
) -> Result<(), Reason> {
    let (entries, sum) = match checked {
        Checked::Vector { entries, sum } => (*entries, *sum),
        Checked::Score(_) => (&[][..], 1.0),
    };
    for (z, class) in ranked(entries, sum, order, depth) {
        to.push((Score::new(z).map_err(ViewError::from)?, class));
    }
    Ok(())
}

/// Counts a late outcome in its stream, in the pane that matures when event time reaches the
/// outcome.
fn count_late(
    streams: &mut Streams,
    models: &[ModelShape],
    sealed_until_ms: &[i64],
    plan: &JoinPlan,
    r: &Revision<'_>,
) {
    let model = usize::from(r.now.model);
    let (Some(shape), Some(stream)) = (models.get(model), streams.get_mut(r.now.slot as usize))
    else {
        return;
    };
    let before = r.before.or(plan.missing.class());
    let now = r.now.outcome.unwrap_or_default();
    let both = r.now.against(now).zip(r.now.against(before.unwrap_or(now)));
    let view = |((z, now), (_, was)): ((Score, bool), (Score, bool))| {
        let mut one = LateOutcomes::default();
        one.count(z, before.map(|_| was), now, r.given_up.unwrap_or(1));
        one
    };
    let views: Vec<LateOutcomes> = both.take(shape.views.len()).map(view).collect();
    let reached_ms = r.late_ms.saturating_sub(shape.maturity_ms);
    let start_ms = shape.start_of(reached_ms).max(sealed_until_ms[model]);
    stream.add_late_outcomes(start_ms, &views);
}

/// Counts a late outcome of compared versions, whose pairs are not revised.
fn miss(pairings: &mut [Option<Pairing>], plan: &JoinPlan, r: &Revision<'_>) {
    let Some(Some(pairing)) = pairings.get_mut(usize::from(r.now.model)) else {
        return;
    };
    let before = r.before.or(plan.missing.class());
    let now = r.now.outcome.unwrap_or_default();
    let both = r.now.against(now).zip(r.now.against(before.unwrap_or(now)));
    pairing.count_unrevised(both.map(|((_, now), (_, was))| before.is_none() || now != was));
}

fn disposition_of(end: OutcomeResult) -> Disposition {
    match end {
        OutcomeResult::Matched => Disposition::Matched,
        OutcomeResult::Waiting => Disposition::Waiting,
        OutcomeResult::Duplicate => Disposition::Duplicate,
        OutcomeResult::Contradiction => Disposition::Rejected(Reason::Contradiction),
        OutcomeResult::UnknownClass => Disposition::Rejected(Reason::UnknownClass),
        OutcomeResult::Revised => Disposition::Revised,
        OutcomeResult::Refused => Disposition::Refused(Refusal::Pending),
    }
}
