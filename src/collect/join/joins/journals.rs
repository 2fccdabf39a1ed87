//! The journals of all joiners: what they wrote, and how joiners are restored from it.

use super::{JoinState, Joins};
use crate::collect::join::joiner::Joiner;
use crate::collect::join::journal::{self, JournalDelta};
use crate::collect::join::operation::JournalError;
use crate::collect::join::plan::JoinPlan;
use crate::collect::join::row_layout::RowLayout;
use std::borrow::Cow;

impl Joins {
    /// Bytes that the journals wrote since they were last taken.
    pub fn journal_bytes(&self) -> usize {
        self.joiners.values().map(Joiner::journal_bytes).sum()
    }

    /// Takes what the journals wrote since the last call. `floor_of` also gets the join. See
    /// [`Joiner::take_journal`].
    pub fn take_journals(
        &mut self,
        floor_of: impl Fn(u16, Option<u16>) -> i64,
    ) -> Vec<JournalDelta> {
        let mut all = Vec::new();
        for ((join, partition), joiner) in &mut self.joiners {
            let journal = self.journals[usize::from(*join)];
            let floor_of = |model| floor_of(*join, model);
            all.extend(joiner.take_journal(journal, *partition, floor_of));
        }
        all
    }

    /// The marks of the journals, for a snapshot.
    pub fn states(&self) -> Vec<JoinState> {
        let state = |(&(join, partition), j): (&(u16, i32), &Joiner)| JoinState {
            join: self.journals[usize::from(join)],
            partition,
            predictions: self.plan(join).predictions,
            outcomes: self.plan(join).outcomes,
            ids: false,
            marks: j.marks(),
            given_up: j.given_up.clone(),
        };
        self.joiners.iter().map(state).collect()
    }

    /// The join of a snapshot under this plan: the one of the same two topics, if there is one.
    pub fn join_of(&self, state: &JoinState) -> Option<u16> {
        let same =
            |p: &JoinPlan| (p.predictions, p.outcomes) == (state.predictions, state.outcomes);
        let at = self.plans.iter().position(|p| !state.ids && same(p));
        at.and_then(|at| u16::try_from(at).ok())
    }

    /// Numbers journals as a snapshot does; joins that are not in it get numbers that it does not
    /// use.
    pub fn number_journals(&mut self, states: &[JoinState]) {
        let mut free = (0..u16::MAX).filter(|n| states.iter().all(|s| s.join != *n));
        let theirs = |join: u16| states.iter().find(|s| self.join_of(s) == Some(join));
        let numbers = (0u16..).take(self.plans.len()).map(|join| {
            let known = theirs(join).map(|s| s.join);
            known.or_else(|| free.next()).unwrap_or(join)
        });
        self.journals = numbers.collect();
    }

    /// Restores one joiner from the segments of its journal, which are read one after the other.
    /// See [`Joiner::restore`].
    pub fn restore<'s>(
        &mut self,
        state: &JoinState,
        segment: impl Fn(usize) -> Result<Cow<'s, [u8]>, JournalError>,
        layouts: &[RowLayout],
        sealed_until: impl Fn(u16) -> i64,
        retained_from: impl Fn(u16) -> i64,
        due_ms: impl Fn(u16, i64) -> i64,
    ) -> Result<(), JournalError> {
        let join = self.join_of(state).ok_or(JournalError::Corrupt)?;
        self.joiners
            .insert((join, state.partition), Joiner::default());
        for (i, mark) in state.marks.iter().enumerate() {
            journal::replay(&segment(i)?, mark, |ops| {
                self.update(join, state.partition, |joiner, _, _| {
                    joiner.apply_all(ops, layouts, &retained_from, &due_ms)
                })
            })?;
        }
        self.update(join, state.partition, |joiner, _, _| {
            joiner.finish_restore(&state.marks, sealed_until);
            joiner.given_up = state.given_up.clone();
        });
        Ok(())
    }
}
