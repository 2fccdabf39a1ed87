//! All joins of a collector: a joiner for each join and partition, and the caps over them.

use super::joiner::{Expect, Held, Joiner, Labelled, Predicted, Revision, Ripe};
use super::journal::{JournalDelta, JournalError, JournalMark};
use super::key::Key;
use super::plan::JoinPlan;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

/// How far the journal of one joiner goes, in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinState {
    /// Index of the join.
    pub join: u16,
    /// Partition.
    pub partition: i32,
    /// Its segments.
    pub marks: Vec<JournalMark>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Joins {
    plans: Vec<JoinPlan>,
    /// By source.
    roles: Vec<Option<Role>>,
    joiners: BTreeMap<(u16, i32), Joiner>,
    /// By join: predictions held, and outcomes that wait.
    held: Vec<usize>,
    waiting: Vec<usize>,
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
            plans,
            roles,
            joiners: BTreeMap::new(),
        }
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
    pub fn predict(&mut self, join: u16, partition: i32, e: &Expect<'_>) -> Predicted {
        let index = usize::from(join);
        let joiner = self.joiners.entry((join, partition)).or_default();
        let before = (joiner.pending(), joiner.waiting());
        let end = joiner.predict(&self.plans[index], e, self.held[index]);
        self.held[index] = self.held[index] + joiner.pending() - before.0;
        self.waiting[index] = self.waiting[index] + joiner.waiting() - before.1;
        end
    }

    /// See [`Joiner::look`].
    pub fn look(&self, join: u16, partition: i32, key: Key) -> Option<Held<'_>> {
        self.joiners.get(&(join, partition))?.look(key)
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
        let end = joiner.label(plan, key, model, time_ms, class, classes, waiting, |r| {
            revised(plan, r);
        });
        self.waiting[index] = waiting + joiner.waiting() - before;
        end
    }

    /// Hands over all predictions of `model` in panes that begin before `line_ms`. See
    /// [`Joiner::mature`].
    pub fn mature(
        &mut self,
        model: u16,
        line_ms: i64,
        classes: &[u32],
        mut each: impl FnMut(&JoinPlan, Ripe<'_>),
    ) {
        for ((join, _), joiner) in &mut self.joiners {
            let index = usize::from(*join);
            let plan = &self.plans[index];
            let before = (joiner.pending() + joiner.settled(), joiner.waiting());
            joiner.mature(plan, model, line_ms, classes, |r| each(plan, r));
            self.held[index] = self.held[index] + joiner.pending() + joiner.settled() - before.0;
            self.waiting[index] = self.waiting[index] + joiner.waiting() - before.1;
        }
    }

    /// Lets go of mature predictions of `model` before `floor_ms`. See [`Joiner::forget`].
    pub fn forget(&mut self, model: u16, floor_ms: i64) {
        for ((join, _), joiner) in &mut self.joiners {
            let before = joiner.settled();
            joiner.forget(model, floor_ms);
            self.held[usize::from(*join)] -= before - joiner.settled();
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
    pub fn each_pending(&self, mut each: impl FnMut(u16, u32, u64)) {
        for ((join, _), joiner) in &self.joiners {
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
    pub fn held(&self) -> usize {
        self.held.iter().sum()
    }

    /// What the journals have that no snapshot has taken.
    pub fn take_journals(&mut self, floor_ms: i64) -> Vec<JournalDelta> {
        let joiners = self.joiners.iter_mut();
        joiners
            .flat_map(|((join, partition), j)| j.take_journal(*join, *partition, floor_ms))
            .collect()
    }

    /// How far the journals go.
    pub fn states(&self) -> Vec<JoinState> {
        let state = |(&(join, partition), j): (&(u16, i32), &Joiner)| JoinState {
            join,
            partition,
            marks: j.marks(),
        };
        self.joiners.iter().map(state).collect()
    }

    /// Puts back one joiner from its journal. See [`Joiner::replay`].
    pub fn restore<'s>(
        &mut self,
        state: &'s JoinState,
        segments: impl IntoIterator<Item = &'s [u8]>,
        views: &[usize],
        line_of: impl Fn(Option<u16>) -> i64,
        floor_of: impl Fn(u16) -> i64,
        due_of: impl Fn(u16, i64) -> i64,
    ) -> Result<(), JournalError> {
        let index = usize::from(state.join);
        if index >= self.plans.len() {
            return Err(JournalError::Corrupt);
        }
        let segments = state.marks.iter().zip(segments);
        let joiner = Joiner::replay(segments, views, line_of, floor_of, due_of)?;
        self.held[index] += joiner.pending() + joiner.settled();
        self.waiting[index] += joiner.waiting();
        self.joiners.insert((state.join, state.partition), joiner);
        Ok(())
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.joiners.values().map(Joiner::bytes).sum()
    }
}
