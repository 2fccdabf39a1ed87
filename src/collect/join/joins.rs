//! All joins of a collector: a joiner for each join and partition, and the caps on them.
//!
//! When a call returns, the predictions of a join use no more memory than its *ceiling*; within a
//! call they may use an eighth and a few megabytes more. The ceiling is usually what the plan
//! allows. If the allowance shrinks because more collectors share it, the ceiling stays at the
//! memory in use, and [`Joins::reduce_memory`] lowers it step by step: moving millions of rows at
//! once would block the caller.

mod journals;

use super::events::{
    MaturityEvent, NewPrediction, OutcomeResult, Predicted, Retained, Revision, SpillBudget,
};
use super::given_up::{GivenUp, rows_max};
use super::joiner::{Joiner, SPILL_BYTES};
use super::journal::JournalMark;
use super::key::Key;
use super::plan::JoinPlan;
use super::spill_backend::{SpillBackend, SpillError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The journal of one joiner in a snapshot, or of the ids of one partition. Its topics identify the
/// join, because the index of a join may differ under another configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JoinState {
    /// Number of the join's journals, which it keeps.
    pub join: u16,
    /// Partition.
    pub partition: i32,
    /// Number of the topic of its predictions.
    pub predictions: u16,
    /// Number of the topic of its outcomes.
    pub outcomes: u16,
    /// Whether this is the journal of a source's ids without join; both topics are then that
    /// source.
    pub ids: bool,
    /// Its segments.
    pub marks: Vec<JournalMark>,
    /// Predictions that matured without an outcome, if they are remembered.
    pub given_up: GivenUp,
}

/// What predictions and outcomes take up, in one joiner or in all joiners of a join.
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    /// Predictions retained.
    retained: usize,
    /// Outcomes that wait.
    waiting: usize,
    /// Bytes of predictions in memory.
    memory: usize,
}

impl Usage {
    fn of(joiner: &Joiner) -> Usage {
        Usage {
            retained: joiner.pending() + joiner.matured(),
            waiting: joiner.waiting(),
            memory: joiner.predictions.memory(),
        }
    }

    /// Replaces what one joiner contributed.
    fn replace(&mut self, before: Usage, after: Usage) {
        self.retained = self.retained + after.retained - before.retained;
        self.waiting = self.waiting + after.waiting - before.waiting;
        self.memory = self.memory + after.memory - before.memory;
    }
}

/// What a join uses, and how much memory it may use.
#[derive(Debug, Clone, Copy)]
struct Account {
    usage: Usage,
    /// Bytes that predictions may take in memory.
    memory_max: usize,
    /// Bytes that they may take until the next [`Joins::reduce_memory`].
    ceiling: usize,
}

/// All joiners of a collector.
#[derive(Debug, Default)]
pub struct Joins {
    plans: Vec<JoinPlan>,
    /// By join: number of its journals.
    journals: Vec<u16>,
    /// Memory of each join.
    accounts: Vec<Account>,
    joiners: BTreeMap<(u16, i32), Joiner>,
    /// Opens the tables for predictions that memory has no room for.
    backend: Option<Arc<dyn SpillBackend>>,
}

impl Joins {
    /// Joins without state.
    pub fn new(plans: Vec<JoinPlan>) -> Joins {
        let account = Account {
            usage: Usage::default(),
            memory_max: usize::MAX,
            ceiling: usize::MAX,
        };
        Joins {
            accounts: vec![account; plans.len()],
            journals: (0u16..).take(plans.len()).collect(),
            plans,
            joiners: BTreeMap::new(),
            backend: None,
        }
    }

    /// From now on, predictions that do not fit into memory spill. `shared_by` collectors share the
    /// memory of each plan.
    pub fn spill_to(&mut self, backend: Arc<dyn SpillBackend>, shared_by: usize) {
        self.backend = Some(backend);
        self.share(shared_by);
    }

    /// Sets how many collectors share the memory of each plan. If less is allowed now,
    /// [`Joins::reduce_memory`] has work to do.
    pub fn share(&mut self, by: usize) {
        if self.backend.is_some() {
            for (account, plan) in self.accounts.iter_mut().zip(&self.plans) {
                account.memory_max = plan.pending_memory / by.max(1);
                account.ceiling = account.memory_max.max(account.usage.memory);
            }
        }
    }

    /// Spills some of the predictions that exceed a memory limit which was [lowered](Joins::share);
    /// returns whether there were any.
    pub fn reduce_memory(&mut self) -> bool {
        let above = |a: &Account| a.ceiling > a.memory_max;
        let Some(index) = self.accounts.iter().position(above) else {
            return false;
        };
        let Account {
            usage, memory_max, ..
        } = self.accounts[index];
        let over = usage.memory.saturating_sub(memory_max);
        // Predictions that cannot be moved now are tried again when there are more.
        let moved = over == 0 || self.spill_some(index, over.min(SPILL_BYTES));
        let account = &mut self.accounts[index];
        let least = if moved { account.usage.memory } else { 0 };
        account.ceiling = memory_max.max(least);
        over > 0
    }

    /// Why a spill table failed, if one did. Predictions are lost then, and no snapshot may be
    /// taken.
    pub fn fault(&self) -> Option<&SpillError> {
        self.joiners.values().find_map(|j| j.predictions.fault())
    }

    /// Retained predictions that are not in memory.
    pub fn spilled(&self) -> usize {
        self.joiners.values().map(|j| j.predictions.spilled()).sum()
    }

    /// Bytes that retained predictions take in memory.
    pub fn memory(&self) -> usize {
        self.accounts.iter().map(|a| a.usage.memory).sum()
    }

    /// All joiners, by join and partition.
    pub(super) fn joiners(&self) -> impl Iterator<Item = (&(u16, i32), &Joiner)> {
        self.joiners.iter()
    }

    /// Retained predictions, mature ones included.
    pub fn retained(&self) -> usize {
        self.accounts.iter().map(|a| a.usage.retained).sum()
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        self.joiners.values().map(Joiner::bytes).sum()
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
        self.update(join, partition, |joiner, plan, usage| {
            joiner.predict(plan, e, usage.retained, usage.waiting)
        })
    }

    /// See [`Joiner::observe_outcome`].
    #[expect(
        clippy::too_many_arguments,
        reason = "the facts of an outcome, and where it goes"
    )]
    pub fn observe_outcome(
        &mut self,
        join: u16,
        partition: i32,
        key: Key,
        model: Option<u16>,
        time_ms: i64,
        class: u32,
        classes: &[u32],
        mut revised: impl FnMut(&JoinPlan, Revision<'_>),
    ) -> OutcomeResult {
        self.update(join, partition, |joiner, plan, usage| {
            let waiting = usage.waiting;
            joiner.observe_outcome(plan, key, model, time_ms, class, classes, waiting, |r| {
                revised(plan, r);
            })
        })
    }

    /// Changes one joiner, and spills if its join uses too much memory afterwards. `change` gets
    /// what all joiners of the join use.
    #[inline]
    fn update<R>(
        &mut self,
        join: u16,
        partition: i32,
        change: impl FnOnce(&mut Joiner, &JoinPlan, Usage) -> R,
    ) -> R {
        let index = usize::from(join);
        let (plan, account) = (&self.plans[index], &mut self.accounts[index]);
        let joiner = self.joiners.entry((join, partition)).or_default();
        let before = Usage::of(joiner);
        let end = change(joiner, plan, account.usage);
        account.usage.replace(before, Usage::of(joiner));
        if account.usage.memory > account.ceiling {
            self.spill_over(index);
        }
        end
    }

    /// Spills predictions of a join until its ceiling holds, and an eighth of the ceiling more, so
    /// that spilling is rare.
    #[cold]
    fn spill_over(&mut self, index: usize) {
        let most = self.accounts[index].ceiling;
        while self.accounts[index].usage.memory > most {
            let over = self.accounts[index].usage.memory - most;
            if !self.spill_some(index, (over + most / 8).min(SPILL_BYTES)) {
                return;
            }
        }
    }

    /// Spills about `bytes` bytes of the largest joiner of a join; returns whether any were moved.
    fn spill_some(&mut self, index: usize, bytes: usize) -> bool {
        let Some(backend) = self.backend.clone() else {
            return false;
        };
        let mine = self.joiners.iter_mut();
        let mine = mine.filter(|((join, _), _)| usize::from(*join) == index);
        let Some((_, joiner)) = mine.max_by_key(|(_, j)| j.predictions.memory()) else {
            return false;
        };
        let before = joiner.predictions.memory();
        joiner.predictions.spill(&*backend, bytes);
        let moved = before.saturating_sub(joiner.predictions.memory());
        self.accounts[index].usage.memory -= moved;
        moved > 0
    }

    /// Reloads the predictions of an id, if any are retained.
    pub fn reload(&mut self, join: u16, partition: i32, key: Key) {
        if let Some(joiner) = self.joiners.get_mut(&(join, partition)) {
            let before = Usage::of(joiner);
            joiner.predictions.reload(key);
            let usage = &mut self.accounts[usize::from(join)].usage;
            usage.replace(before, Usage::of(joiner));
        }
    }

    /// The prediction of a key, if it is in memory; for a key without version all siblings, in the
    /// order of their keys.
    pub fn retained_of(&self, join: u16, partition: i32, key: Key) -> Vec<Retained<'_>> {
        let joiner = self.joiners.get(&(join, partition));
        joiner.map_or_else(Vec::new, |j| j.predictions.retained_of(key))
    }

    /// Shows all predictions of `model` in panes that start before `sealed_until_ms`. See
    /// [`Joiner::mature`].
    pub fn mature(
        &mut self,
        model: u16,
        sealed_until_ms: i64,
        classes: &[u32],
        mut each: impl FnMut(&JoinPlan, MaturityEvent<'_>),
    ) {
        let backend = self.backend.clone();
        for ((join, partition), joiner) in &mut self.joiners {
            let index = usize::from(*join);
            let (plan, account) = (&self.plans[index], &mut self.accounts[index]);
            let before = Usage::of(joiner);
            let others = account.usage.memory - before.memory;
            let budget = backend.as_deref().map(|backend| SpillBudget {
                backend,
                // If the others take everything, the predictions that are reloaded must not spill
                // one by one.
                bytes: (account.ceiling.saturating_sub(others)).max(account.ceiling / 8),
            });
            let sampled = (plan, rows_max(*partition));
            joiner.mature(sampled, model, sealed_until_ms, classes, budget, |event| {
                each(plan, event);
            });
            account.usage.replace(before, Usage::of(joiner));
        }
        for index in 0..self.accounts.len() {
            if self.accounts[index].usage.memory > self.accounts[index].ceiling {
                self.spill_over(index);
            }
        }
    }

    /// Removes mature predictions of `model` before `floor_ms`. See [`Joiner::evict`].
    pub fn evict(&mut self, model: u16, floor_ms: i64) {
        for ((join, _), joiner) in &mut self.joiners {
            let before = Usage::of(joiner);
            joiner.evict(model, floor_ms);
            let usage = &mut self.accounts[usize::from(*join)].usage;
            usage.replace(before, Usage::of(joiner));
        }
    }

    /// Removes outcomes that can only be late; calls `each` with the source and their number.
    /// `sealed_until` also gets the join. See [`Joiner::orphan`].
    pub fn orphan(
        &mut self,
        sealed_until: impl Fn(u16, Option<u16>) -> i64,
        mut each: impl FnMut(u16, usize),
    ) {
        for ((join, _), joiner) in &mut self.joiners {
            let orphaned = joiner.orphan(|model| sealed_until(*join, model));
            if orphaned > 0 {
                self.accounts[usize::from(*join)].usage.waiting -= orphaned;
                each(self.plans[usize::from(*join)].outcomes, orphaned);
            }
        }
    }

    /// Calls `each` with the source, the slot of the stream and the number of pending predictions,
    /// pane by pane.
    pub fn each_pending(&mut self, mut each: impl FnMut(u16, u32, u64)) {
        for ((join, _), joiner) in &mut self.joiners {
            let source = self.plans[usize::from(*join)].predictions;
            joiner.each_pending(|slot, n| each(source, slot, n));
        }
    }

    /// Calls `each` with the source and the number of waiting outcomes of each joiner.
    pub fn each_waiting(&self, mut each: impl FnMut(u16, u64)) {
        for ((join, _), joiner) in &self.joiners {
            let source = self.plans[usize::from(*join)].outcomes;
            each(source, joiner.waiting() as u64);
        }
    }

    /// Drops the `n` oldest outcomes of `source` that wait.
    pub fn drop_oldest_waiting(&mut self, source: u16, n: usize) {
        if n == 0 {
            return;
        }
        let ours = |join: u16| self.plans[usize::from(join)].outcomes == source;
        let joiners = self.joiners.iter().filter(|((join, _), _)| ours(*join));
        let mut all: Vec<(i64, [u64; 2], (u16, i32))> = joiners
            .flat_map(|(of, joiner)| joiner.waiting.times().map(|(key, ms)| (ms, key.0, *of)))
            .collect();
        all.sort_unstable();
        for (_, key, of) in all.into_iter().take(n) {
            if let Some(joiner) = self.joiners.get_mut(&of) {
                let before = Usage::of(joiner);
                joiner.end_wait(Key(key));
                let usage = &mut self.accounts[usize::from(of.0)].usage;
                usage.replace(before, Usage::of(joiner));
            }
        }
    }

    /// Start of the oldest pending pane of `model`.
    pub fn oldest_ms(&self, model: u16) -> Option<i64> {
        let all = self.joiners.values();
        all.filter_map(|j| j.predictions.oldest_ms(model)).min()
    }

    /// Forgets given-up predictions, except those whose model and slot `keep` accepts.
    pub fn retain_given_up(&mut self, keep: impl Fn(u16, u32) -> bool) {
        for joiner in self.joiners.values_mut() {
            joiner.given_up.retain(|model, slot, _| keep(model, slot));
        }
    }

    /// See [`Joiner::end_stream`].
    pub fn end_stream(&mut self, slot: u32) {
        for joiner in self.joiners.values_mut() {
            joiner.end_stream(slot);
        }
    }

    /// See [`Joiner::drop_model`].
    pub fn drop_model(&mut self, join: u16, partition: i32, model: u16) {
        if let Some(joiner) = self.joiners.get_mut(&(join, partition)) {
            joiner.drop_model(model);
        }
    }
}
