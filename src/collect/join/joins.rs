//! All joins of a collector: a joiner for each join and partition, and the caps over them.
//!
//! Predictions of a join take no more memory than its *ceiling*, when a call has returned, and within one an eighth more and
//! a few megabytes. The ceiling is what the plan allows; where that becomes less, because more share it, what is there
//! already stays allowed, and [`Joins::reduce_memory`] brings it down step by step: all at once would hold whoever drives the
//! joins up for as long as it takes to move millions of rows.

use super::cohort::RowLayout;
use super::joiner::{
    Joiner, Labelled, MaturityEvent, NewPrediction, Predicted, Retained, Revision, Room,
    SPILL_BYTES,
};
use super::journal::{JournalDelta, JournalError, JournalMark, Reader};
use super::key::Key;
use super::plan::JoinPlan;
use super::spill_backend::{SpillBackend, SpillError};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a source is to a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Role {
    /// Index of the join.
    pub join: u16,
    /// Whether predictions come from the source.
    pub predictions: bool,
    /// Whether outcomes do.
    pub outcomes: bool,
}

/// How far the journal of one joiner goes, in a snapshot. A join is known by its topics; in another configuration it
/// may be at another place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinState {
    /// Number of the join's journals, which it keeps.
    pub join: u16,
    /// Partition.
    pub partition: i32,
    /// Number of the topic of its predictions.
    pub predictions: u16,
    /// Number of the topic of its outcomes.
    pub outcomes: u16,
    /// Its segments.
    pub marks: Vec<JournalMark>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Joins {
    plans: Vec<JoinPlan>,
    /// By source.
    roles: Vec<Option<Role>>,
    /// By join: number of its journals.
    journals: Vec<u16>,
    joiners: BTreeMap<(u16, i32), Joiner>,
    /// By join: predictions held, and outcomes that wait.
    held: Vec<usize>,
    waiting: Vec<usize>,
    /// By join: bytes that its predictions take in memory, and how many they may.
    memory: Vec<usize>,
    memory_max: Vec<usize>,
    /// By join: bytes that they may take until the next [`Joins::reduce_memory`].
    ceiling: Vec<usize>,
    /// Where stores for the rest come from.
    spills: Option<Arc<dyn SpillBackend>>,
}

impl Joins {
    /// Joins without state.
    pub fn new(plans: Vec<JoinPlan>) -> Joins {
        let mut roles: Vec<Option<Role>> = Vec::new();
        for (join, plan) in (0u16..).zip(&plans) {
            for source in [plan.predictions, plan.outcomes] {
                let index = usize::from(source);
                roles.resize(roles.len().max(index + 1), None);
                roles[index] = Some(Role {
                    join,
                    predictions: source == plan.predictions,
                    outcomes: source == plan.outcomes,
                });
            }
        }
        Joins {
            held: vec![0; plans.len()],
            waiting: vec![0; plans.len()],
            memory: vec![0; plans.len()],
            memory_max: vec![usize::MAX; plans.len()],
            ceiling: vec![usize::MAX; plans.len()],
            spills: None,
            journals: (0u16..).take(plans.len()).collect(),
            plans,
            roles,
            joiners: BTreeMap::new(),
        }
    }

    /// From now on predictions spill that memory has no room for, of which each plan's is shared by so many.
    pub fn spill_to(&mut self, spills: Arc<dyn SpillBackend>, shared_by: usize) {
        self.spills = Some(spills);
        self.share(shared_by);
    }

    /// How many share the memory that plans allow. Where it is less now, [`Joins::reduce_memory`] has work to do.
    pub fn share(&mut self, by: usize) {
        if self.spills.is_some() {
            let each = |p: &JoinPlan| p.pending_memory / by.max(1);
            self.memory_max = self.plans.iter().map(each).collect();
            let both = self.memory_max.iter().zip(&self.memory);
            self.ceiling = both.map(|(max, memory)| *max.max(memory)).collect();
        }
    }

    /// Moves some of the predictions out of memory for which there was room before it was [shared](Joins::share) by more;
    /// answers whether there were any.
    pub fn reduce_memory(&mut self) -> bool {
        let above = |i: &usize| self.ceiling[*i] > self.memory_max[*i];
        let Some(index) = (0..self.plans.len()).find(above) else {
            return false;
        };
        let over = self.memory[index].saturating_sub(self.memory_max[index]);
        // What cannot be moved is tried again when there is more.
        let moved = over == 0 || self.step(index, over.min(SPILL_BYTES));
        let least = if moved { self.memory[index] } else { 0 };
        self.ceiling[index] = self.memory_max[index].max(least);
        over > 0
    }

    /// Why a store failed, if one did. See [`Joiner::fault`].
    pub fn fault(&self) -> Option<&SpillError> {
        self.joiners.values().find_map(Joiner::fault)
    }

    /// Predictions that are not in memory.
    pub fn spilled(&self) -> usize {
        self.joiners.values().map(Joiner::spilled).sum()
    }

    /// Bytes that the others take.
    pub fn memory(&self) -> usize {
        self.memory.iter().sum()
    }

    /// Moves predictions of a join out of memory until its ceiling holds, and an eighth of that more, so that it is not
    /// done too often.
    #[cold]
    fn make_room(&mut self, index: usize) {
        let most = self.ceiling[index];
        while self.memory[index] > most {
            let over = self.memory[index] - most;
            if !self.step(index, (over + most / 8).min(SPILL_BYTES)) {
                return;
            }
        }
    }

    /// Moves so many bytes of the joiner that has most; answers whether it could.
    fn step(&mut self, index: usize, bytes: usize) -> bool {
        let Some(spills) = self.spills.clone() else {
            return false;
        };
        let mine = self.joiners.iter_mut();
        let mine = mine.filter(|((join, _), _)| usize::from(*join) == index);
        let Some((_, joiner)) = mine.max_by_key(|(_, j)| j.memory()) else {
            return false;
        };
        let before = joiner.memory();
        joiner.spill(&*spills, bytes);
        let moved = before.saturating_sub(joiner.memory());
        self.memory[index] -= moved;
        moved > 0
    }

    /// What the source is to a join, if anything.
    #[inline]
    pub fn role(&self, source: u16) -> Option<Role> {
        self.roles.get(usize::from(source)).copied().flatten()
    }

    /// The plan of a join.
    pub fn plan(&self, join: u16) -> &JoinPlan {
        &self.plans[usize::from(join)]
    }

    /// All plans.
    pub fn plans(&self) -> &[JoinPlan] {
        &self.plans
    }

    /// See [`Joiner::predict`].
    pub fn predict(&mut self, join: u16, partition: i32, e: &NewPrediction<'_>) -> Predicted {
        let index = usize::from(join);
        let joiner = self.joiners.entry((join, partition)).or_default();
        let before = (joiner.pending(), joiner.waiting(), joiner.memory());
        let end = joiner.predict(&self.plans[index], e, self.held[index]);
        self.held[index] = self.held[index] + joiner.pending() - before.0;
        self.waiting[index] = self.waiting[index] + joiner.waiting() - before.1;
        self.memory[index] = self.memory[index] + joiner.memory() - before.2;
        if self.memory[index] > self.ceiling[index] {
            self.make_room(index);
        }
        end
    }

    /// See [`Joiner::reload`].
    pub fn reload(&mut self, join: u16, partition: i32, key: Key) {
        if let Some(joiner) = self.joiners.get_mut(&(join, partition)) {
            let before = joiner.memory();
            joiner.reload(key);
            let memory = &mut self.memory[usize::from(join)];
            *memory = *memory + joiner.memory() - before;
        }
    }

    /// See [`Joiner::retained_of`].
    pub fn retained_of(&self, join: u16, partition: i32, key: Key) -> Vec<Retained<'_>> {
        let joiner = self.joiners.get(&(join, partition));
        joiner.map_or_else(Vec::new, |joiner| joiner.retained_of(key))
    }

    /// See [`Joiner::label`].
    #[expect(
        clippy::too_many_arguments,
        reason = "the facts of an outcome, and where it goes"
    )]
    pub fn label(
        &mut self,
        join: u16,
        partition: i32,
        key: Key,
        model: Option<u16>,
        time_ms: i64,
        class: u32,
        classes: &[u32],
        mut revised: impl FnMut(&JoinPlan, Revision<'_>),
    ) -> Labelled {
        let (index, plan) = (usize::from(join), &self.plans[usize::from(join)]);
        let joiner = self.joiners.entry((join, partition)).or_default();
        let (before, waiting) = (joiner.waiting(), self.waiting[index]);
        let memory = joiner.memory();
        let end = joiner.label(plan, key, model, time_ms, class, classes, waiting, |r| {
            revised(plan, r);
        });
        self.waiting[index] = waiting + joiner.waiting() - before;
        self.memory[index] = self.memory[index] + joiner.memory() - memory;
        if self.memory[index] > self.ceiling[index] {
            self.make_room(index);
        }
        end
    }

    /// Hands over all predictions of `model` in panes that begin before `line_ms`. See
    /// [`Joiner::mature`].
    pub fn mature(
        &mut self,
        model: u16,
        line_ms: i64,
        classes: &[u32],
        mut each: impl FnMut(&JoinPlan, MaturityEvent<'_>),
    ) {
        let spills = self.spills.clone();
        for ((join, _), joiner) in &mut self.joiners {
            let index = usize::from(*join);
            let plan = &self.plans[index];
            let before = (joiner.pending() + joiner.matured(), joiner.waiting());
            let memory = joiner.memory();
            let others = self.memory[index] - memory;
            let ceiling = self.ceiling[index];
            let room = spills.as_deref().map(|spills| Room {
                spills,
                // Where the others take all, not every one that comes back is to spill at once.
                bytes: ceiling.saturating_sub(others).max(ceiling / 8),
            });
            joiner.mature(plan, model, line_ms, classes, room, |r| each(plan, r));
            self.memory[index] = others + joiner.memory();
            self.held[index] = self.held[index] + joiner.pending() + joiner.matured() - before.0;
            self.waiting[index] = self.waiting[index] + joiner.waiting() - before.1;
        }
        for index in 0..self.plans.len() {
            if self.memory[index] > self.ceiling[index] {
                self.make_room(index);
            }
        }
    }

    /// Lets go of mature predictions of `model` before `floor_ms`. See [`Joiner::evict`].
    pub fn evict(&mut self, model: u16, floor_ms: i64) {
        for ((join, _), joiner) in &mut self.joiners {
            let (before, memory) = (joiner.matured(), joiner.memory());
            joiner.evict(model, floor_ms);
            self.held[usize::from(*join)] -= before - joiner.matured();
            self.memory[usize::from(*join)] -= memory - joiner.memory();
        }
    }

    /// Lets go of outcomes that waited in vain; tells for each source how many. See
    /// [`Joiner::orphan`].
    pub fn orphan(
        &mut self,
        line_of: impl Fn(Option<u16>) -> i64,
        mut each: impl FnMut(u16, usize),
    ) {
        for ((join, _), joiner) in &mut self.joiners {
            let gone = joiner.orphan(&line_of);
            if gone > 0 {
                self.waiting[usize::from(*join)] -= gone;
                each(self.plans[usize::from(*join)].outcomes, gone);
            }
        }
    }

    /// Tells the source, the slot of the subject and the number of predictions that are not mature, for
    /// each pane that holds some.
    pub fn each_pending(&mut self, mut each: impl FnMut(u16, u32, u64)) {
        for ((join, _), joiner) in &mut self.joiners {
            let source = self.plans[usize::from(*join)].predictions;
            joiner.each_pending(|subject, n| each(source, subject, n));
        }
    }

    /// Outcomes that wait, by source.
    pub fn each_waiting(&self, mut each: impl FnMut(u16, u64)) {
        for ((join, _), joiner) in &self.joiners {
            let source = self.plans[usize::from(*join)].outcomes;
            each(source, joiner.waiting() as u64);
        }
    }

    /// Begin of the oldest pane that is pending for `model`.
    pub fn oldest_ms(&self, model: u16) -> Option<i64> {
        let oldest = self.joiners.values().filter_map(|j| j.oldest_ms(model));
        oldest.min()
    }

    /// Predictions held, mature ones that are kept for revisions among them.
    pub fn retained(&self) -> usize {
        self.held.iter().sum()
    }

    /// What the journals have that no snapshot has taken.
    pub fn take_journals(&mut self, floor_ms: i64) -> Vec<JournalDelta> {
        let joiners = self.joiners.iter_mut();
        let number = |join: u16| self.journals[usize::from(join)];
        joiners
            .flat_map(|((join, partition), j)| j.take_journal(number(*join), *partition, floor_ms))
            .collect()
    }

    /// How far the journals go.
    pub fn states(&self) -> Vec<JoinState> {
        let state = |(&(join, partition), j): (&(u16, i32), &Joiner)| JoinState {
            join: self.journals[usize::from(join)],
            partition,
            predictions: self.plan(join).predictions,
            outcomes: self.plan(join).outcomes,
            marks: j.marks(),
        };
        self.joiners.iter().map(state).collect()
    }

    /// The join that a snapshot speaks of, if the plan still has it: one of the same two topics.
    pub fn join_of(&self, state: &JoinState) -> Option<u16> {
        let same =
            |p: &JoinPlan| (p.predictions, p.outcomes) == (state.predictions, state.outcomes);
        let at = self.plans.iter().position(same);
        at.and_then(|at| u16::try_from(at).ok())
    }

    /// Numbers journals as a snapshot does; joins that it does not know get numbers that it does not know.
    pub fn number_journals(&mut self, states: &[JoinState]) {
        let mut free = (0..u16::MAX).filter(|n| states.iter().all(|s| s.join != *n));
        let theirs = |join: u16| states.iter().find(|s| self.join_of(s) == Some(join));
        let numbers = (0u16..).take(self.plans.len()).map(|join| {
            let known = theirs(join).map(|s| s.join);
            known.or_else(|| free.next()).unwrap_or(join)
        });
        self.journals = numbers.collect();
    }

    /// Puts back one joiner from the segments of its journal, which are asked for one after the other. See
    /// [`Joiner::restore`].
    pub fn restore<'s>(
        &mut self,
        state: &JoinState,
        segment: impl Fn(usize) -> Result<Cow<'s, [u8]>, JournalError>,
        kept: &[RowLayout],
        line_of: impl Fn(Option<u16>) -> i64,
        floor_of: impl Fn(u16) -> i64,
        due_of: impl Fn(u16, i64) -> i64,
    ) -> Result<(), JournalError> {
        let join = self.join_of(state).ok_or(JournalError::Corrupt)?;
        let (index, at) = (usize::from(join), (join, state.partition));
        self.joiners.insert(at, Joiner::default());
        for (i, mark) in state.marks.iter().enumerate() {
            let bytes = segment(i)?;
            let mut reader = Reader::new(&bytes, mark)?;
            while let Some(op) = reader.next()? {
                let joiner = self.joiners.entry(at).or_default();
                let before = joiner.memory();
                joiner.redo(op, kept, &floor_of, &due_of)?;
                self.memory[index] = self.memory[index] + joiner.memory() - before;
                if self.memory[index] > self.ceiling[index] {
                    self.make_room(index);
                }
            }
        }
        let joiner = self.joiners.entry(at).or_default();
        let before = joiner.memory();
        joiner.resume(&state.marks, line_of);
        self.memory[index] = self.memory[index] + joiner.memory() - before;
        self.held[index] += joiner.pending() + joiner.matured();
        self.waiting[index] += joiner.waiting();
        Ok(())
    }

    /// See [`Joiner::drop_model`].
    pub fn drop_model(&mut self, join: u16, partition: i32, model: u16) {
        if let Some(joiner) = self.joiners.get_mut(&(join, partition)) {
            joiner.drop_model(model);
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.joiners.values().map(Joiner::bytes).sum()
    }
}
