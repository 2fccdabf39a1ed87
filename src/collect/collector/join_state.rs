//! Writes the collector's joins and ids to snapshots and journals, and restores them.

use super::Collector;
use crate::collect::join::{JoinState, Joins, JournalDelta, JournalError, RowLayout};
use crate::collect::shape::ModelShape;
use std::borrow::Cow;
use std::collections::BTreeMap;

impl Collector {
    /// Takes what the journals of joins and of ids wrote since the last call.
    pub fn take_journals(&mut self) -> Vec<JournalDelta> {
        let mut joins = std::mem::take(&mut self.joins);
        let revised: Vec<bool> = joins.plans().iter().map(|plan| plan.revise).collect();
        let mut all = joins.take_journals(|join, model| {
            let revise = revised[usize::from(join)];
            self.least_of(join, model, |m| self.floor_ms(m, revise))
        });
        self.joins = joins;
        all.extend(
            self.deduplication
                .take_journals(self.least_sealed_until_ms()),
        );
        all
    }

    /// Event time before which a join retains nothing of a model; `revise`: it takes late outcomes.
    fn floor_ms(&self, model: usize, revise: bool) -> i64 {
        let retention_ms = if revise {
            self.models[model].retention_ms
        } else {
            0
        };
        self.sealed_until_ms[model].saturating_sub(retention_ms)
    }

    /// The value of `of` for a model; for `None`, its least value over the models for which an
    /// outcome that names no model waits.
    pub(super) fn least_of(&self, join: u16, model: Option<u16>, of: impl Fn(usize) -> i64) -> i64 {
        let one = model.map(usize::from);
        let models = match &one {
            Some(model) => std::slice::from_ref(model),
            None => &self.unnamed[usize::from(join)],
        };
        let here = models.iter().filter(|m| **m < self.models.len());
        here.map(|m| of(*m)).min().unwrap_or(i64::MIN)
    }

    /// Bytes of the journals of joins and of ids that were not taken yet.
    pub fn journal_bytes(&self) -> usize {
        self.joins.journal_bytes() + self.deduplication.journal_bytes()
    }

    /// How far the journals of joins and of ids go.
    pub fn join_states(&self) -> Vec<JoinState> {
        let mut all = self.joins.states();
        all.extend(self.deduplication.states());
        all
    }

    /// Number of retained predictions.
    pub fn retained(&self) -> usize {
        self.joins.retained()
    }

    /// All joins.
    pub fn joins(&self) -> &Joins {
        &self.joins
    }

    /// All joins, to change them.
    pub fn joins_mut(&mut self) -> &mut Joins {
        &mut self.joins
    }

    /// Restores one joiner, without the predictions of those models of the snapshot (`before` in
    /// number) that are no longer the `same`. Waiting outcomes that name such a model then wait for
    /// any model. Sealed times must be restored first. Returns `false`, and leaves the join out, if
    /// the plan no longer has it.
    pub fn restore_joiner<'s>(
        &mut self,
        state: &JoinState,
        segment: impl Fn(usize) -> Result<Cow<'s, [u8]>, JournalError>,
        before: u16,
        same: impl Fn(u16) -> bool,
    ) -> Result<bool, JournalError> {
        let Some(join) = self.joins.join_of(state) else {
            return Ok(false);
        };
        let plan = self.joins.plan(join);
        let (revise, maturity) = (plan.revise, plan.maturity_ms);
        let closed = self.sealed_until_ms.clone();
        let floors: Vec<i64> = (0..closed.len())
            .map(|m| self.floor_ms(m, revise))
            .collect();
        // Nothing of other models is restored.
        let of = |all: &[i64], m: u16| match same(m) {
            true => all[usize::from(m)],
            false => i64::MAX,
        };
        let sealed_until = |m: u16| of(&closed, m);
        let floor_of = |m: u16| of(&floors, m);
        let models = self.models.clone();
        let due_of = |m: u16, start_ms: i64| models[usize::from(m)].due_ms(start_ms, maturity);
        let kept: Vec<RowLayout> = models.iter().map(ModelShape::row_layout).collect();
        self.joins
            .restore(state, segment, &kept, sealed_until, floor_of, due_of)?;
        for model in (0..before).filter(|m| !same(*m)) {
            self.joins.drop_model(join, state.partition, model);
        }
        Ok(true)
    }

    /// Call this once all joiners are restored. Forgets given-up predictions whose stream was not
    /// restored, or whose model is not the `same` as before.
    pub fn forget_given_up_of_none(&mut self, same: impl Fn(u16) -> bool) {
        let streams = &self.streams;
        let is = |model: u16, slot: u32| {
            let stream = streams.get(slot as usize);
            same(model) && stream.is_some_and(|s| s.model == usize::from(model))
        };
        self.joins.retain_given_up(is);
    }

    /// Call this once all joiners are restored. Gives streams their pending counts, and counts what
    /// was not restored as expired or orphaned. Predictions that were mature and wait again,
    /// because the watermark was moved back, are counted again.
    pub fn recount_joins(&mut self) {
        let mut pending: BTreeMap<u16, u64> = BTreeMap::new();
        let streams = &mut self.streams;
        self.joins.each_pending(|source, slot, n| {
            *pending.entry(source).or_default() += n;
            if let Some(stream) = streams.get_mut(slot as usize) {
                stream.add_pending(n);
            }
        });
        let mut waiting: BTreeMap<u16, u64> = BTreeMap::new();
        self.joins
            .each_waiting(|source, n| *waiting.entry(source).or_default() += n);
        let sources: Vec<u16> = self.counters.sources().map(|(source, _)| source).collect();
        for source in sources {
            let counts = self.counters.source_mut(source);
            let (p, w) = (pending.get(&source), waiting.get(&source));
            let p = p.copied().unwrap_or(0);
            let gone = counts.pending.saturating_sub(p);
            counts.pending -= gone;
            counts.expired += gone;
            let more = p.saturating_sub(counts.pending);
            counts.pending += more;
            counts.records += more;
            let w = w.copied().unwrap_or(0);
            let gone = counts.waiting.saturating_sub(w);
            counts.waiting -= gone;
            counts.orphaned += gone;
            // Outcomes beyond those that the snapshot counts as waiting are in its other counters.
            let back = w.saturating_sub(counts.waiting);
            self.joins.drop_oldest_waiting(source, back as usize);
        }
    }

    /// Event time at which the oldest pending predictions of `model` mature.
    pub fn due_ms(&self, model: usize) -> Option<i64> {
        let shape = &self.models[model];
        let oldest = self.joins.oldest_ms(model as u16)?;
        Some(oldest + shape.pane_ms + shape.lateness_ms + shape.maturity_ms)
    }
}
