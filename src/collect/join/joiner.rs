//! The joiner of one partition of predictions and the partition of outcomes beside it.
//!
//! It combines the retained [predictions](super::predictions), the [outcomes that
//! wait](super::waiting) and the [journal](super::journal). It has no clock: predictions leave when
//! [`Joiner::mature`] is called with the time up to which panes are sealed.
//!
//! An outcome goes to all *siblings*: the predictions of its id, one for each version that scored
//! it. When it comes before some of them, the siblings that have it pass it on, so the order of the
//! records does not matter as long as one of them is retained. When it is late for some of them,
//! they get it at their maturity, if the plan accepts late outcomes.
//!
//! Always: replaying the journal yields the same joiner.
//!
//! Cost: about 0.2 µs for each prediction or outcome when millions are pending, most of it cache
//! misses. Where some have spilled, an id that is not in memory costs a look-up in the spill table.

mod ahead;
mod journaling;
mod restore;

use super::cohort::stored_ms;
use super::ended_streams::EndedStreams;
use super::events::{
    MaturityEvent, NewPrediction, OutcomeResult, Predicted, Replaced, Revision, SpillBudget,
};
use super::given_up::GivenUp;
use super::journal::Journal;
use super::key::Key;
use super::key_table::Location;
use super::operation::{Entries, Op, OutcomeOp, PredictOp};
use super::plan::{JoinPlan, Repeated};
use super::predictions::Predictions;
use super::waiting::{ANY_MODEL, WaitingOutcome, WaitingOutcomes};
use std::cmp::Ordering;

/// Most bytes that one step moves out of memory; a longer pause would be noticed.
pub(super) const SPILL_BYTES: usize = 16 << 20;

/// Joins one partition of predictions with one of outcomes.
#[derive(Debug, Default)]
pub struct Joiner {
    pub(super) predictions: Predictions,
    pub(super) waiting: WaitingOutcomes,
    journal: Journal,
    /// Some of the predictions that were given up.
    pub(super) given_up: GivenUp,
    /// Buffer for the siblings of one id.
    siblings: Vec<Location>,
    /// Used while the journal is replayed.
    ended: EndedStreams,
}

/// The retained prediction with the key of a new one.
struct Earlier {
    /// It stays, and the new one is not kept.
    stays: bool,
    /// Its scores are those of the new one.
    is_same: bool,
    /// The slot of its stream.
    slot: u32,
}

impl Joiner {
    /// Predictions that are not mature.
    pub fn pending(&self) -> usize {
        self.predictions.pending
    }

    /// Mature predictions that are retained for revisions.
    pub fn matured(&self) -> usize {
        self.predictions.matured
    }

    /// Outcomes that wait for their predictions.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        self.predictions.bytes()
            + self.waiting.bytes()
            + self.journal.bytes()
            + self.given_up.bytes()
            + size_of::<Joiner>()
    }

    /// Bytes that the journal wrote since it was last taken.
    pub fn journal_bytes(&self) -> usize {
        self.journal.bytes()
    }

    /// Calls `each` with the slot of each stream and the number of its pending predictions, pane
    /// by pane.
    pub fn each_pending(&mut self, each: impl FnMut(u32, u64)) {
        self.predictions.each_pending(each);
    }

    /// Observes a prediction whose pane is not mature. `retained` counts the predictions of all
    /// joiners of the plan, `waiting` their waiting outcomes.
    pub fn predict(
        &mut self,
        plan: &JoinPlan,
        e: &NewPrediction<'_>,
        retained: usize,
        waiting: usize,
    ) -> Predicted {
        let mut instead = match self.earlier(e) {
            Some(earlier) if earlier.stays => {
                return match earlier.is_same {
                    true => Predicted::Duplicate,
                    false => Predicted::Conflict,
                };
            }
            Some(_) if waiting >= plan.pending_max && self.would_return_outcome(e) => {
                return Predicted::Refused;
            }
            Some(earlier) => Some(Replaced {
                slot: earlier.slot,
                differs: !earlier.is_same,
                waits: false,
            }),
            None if retained >= plan.pending_max || self.predictions.is_full() => {
                return Predicted::Refused;
            }
            None => None,
        };
        let outcome = instead.and_then(|_| self.predictions.remove(e.key));
        let late = self.predictions.insert(e, outcome);
        let op = Op::Predict(PredictOp {
            model: e.model,
            start_ms: e.start_ms,
            offset_ms: u32::try_from(e.time_ms - e.start_ms).unwrap_or(u32::MAX),
            slot: e.slot,
            key: e.key,
            entries: Entries::Given(e.views),
            full_vector: e.full_vector.1 as u16,
        });
        self.journal.write(&op, e.time_ms);
        let met = self.attach_known(plan, e);
        if let (Some(replaced), Some(outcome)) = (&mut instead, late)
            && !self.predictions.sibling_outcomes(e.key).contains(&outcome)
        {
            // There is room, or the prediction would have been refused.
            let key = e.key.any_version();
            let end = self.wait(plan, key, ANY_MODEL, outcome, 0);
            replaced.waits = end == OutcomeResult::Waiting;
        }
        Predicted::Pending { met, instead }
    }

    /// Whether replacing the earlier prediction puts its outcome back among those that wait: it is
    /// late for the new prediction, and no other outcome of the id waits.
    fn would_return_outcome(&mut self, e: &NewPrediction<'_>) -> bool {
        let at = self.predictions.find(e.key);
        let row = at.and_then(|at| Some((self.predictions.cohort(at)?, at.row)));
        let outcome = row.and_then(|(cohort, row)| cohort.outcome(row));
        outcome.is_some_and(|outcome| {
            outcome.0 > e.due_ms
                && !self.predictions.sibling_outcomes(e.key).contains(&outcome)
                && !self.waiting.contains(e.key.any_version())
        })
    }

    /// The retained prediction of the same key.
    fn earlier(&mut self, e: &NewPrediction<'_>) -> Option<Earlier> {
        let at = self.predictions.find(e.key)?;
        let cohort = self.predictions.cohort(at)?;
        let entries = || {
            let both = cohort.scores(at.row).iter().zip(cohort.classes(at.row));
            both.map(|(z, k)| (*z, *k))
        };
        let (first, len) = e.full_vector;
        // The rank of a full vector is a hash, and says nothing about its scores.
        let is_rank = |i: usize| len > 0 && i == first;
        let theirs = || e.views.iter().map(|(z, k)| (z.value(), *k));
        let mut both = entries().zip(theirs()).enumerate();
        let is_same = both.all(|(i, (a, b))| is_rank(i) || a == b);
        let stays = match cohort.time_ms(at.row).cmp(&e.time_ms) {
            _ if cohort.is_mature() => true,
            Ordering::Equal => entries().partial_cmp(theirs()) != Some(Ordering::Greater),
            order => order == Ordering::Less,
        };
        Some(Earlier {
            stays,
            is_same,
            slot: cohort.row(at.row).slot(),
        })
    }

    /// Attaches its siblings' outcomes to a new prediction, and the outcome that waited for it.
    fn attach_known(&mut self, plan: &JoinPlan, e: &NewPrediction<'_>) -> Option<OutcomeResult> {
        for outcome in self.predictions.sibling_outcomes(e.key) {
            self.attach_to(plan, e.key, outcome, e.classes, |_| ());
        }
        if self.waiting.len() == 0 {
            return None;
        }
        let key = e.key.any_version();
        let waiting = self.end_wait(key)?;
        if e.classes > 0 && waiting.class >= e.classes {
            return Some(OutcomeResult::UnknownClass);
        }
        let outcome = (waiting.time_ms, waiting.class);
        let end = self.attach_to(plan, e.key, outcome, 0, |_| ());
        // A late outcome continues to wait; there is room for it, because it waited before.
        Some(end.unwrap_or_else(|| self.wait(plan, key, ANY_MODEL, outcome, 0)))
    }

    /// Attaches an outcome to one prediction; `None` if the outcome is late.
    fn attach_to(
        &mut self,
        plan: &JoinPlan,
        key: Key,
        outcome: (i64, u32),
        classes: u32,
        revised: impl FnOnce(Revision<'_>),
    ) -> Option<OutcomeResult> {
        let at = self.predictions.find(key)?;
        if self.predictions.cohort(at)?.is_late(outcome.0) {
            return None;
        }
        Some(self.attach(plan, at, outcome, classes, revised))
    }

    /// Observes an outcome. `model` is the model that it names, `classes` the number of classes of
    /// each model, or 0. `waiting` counts the waiting outcomes of all joiners of the plan.
    /// `revised` is called when sums must be corrected.
    #[expect(
        clippy::too_many_arguments,
        reason = "the facts of an outcome, and where it goes"
    )]
    pub fn observe_outcome(
        &mut self,
        plan: &JoinPlan,
        key: Key,
        model: Option<u16>,
        time_ms: i64,
        class: u32,
        classes: &[u32],
        waiting: usize,
        mut revised: impl FnMut(Revision<'_>),
    ) -> OutcomeResult {
        // An outcome that happened after its prediction was due waits even if it arrives early: it
        // revises the mature prediction or is orphaned, as if it had arrived late. So the order of
        // arrival does not matter.
        let mut siblings = std::mem::take(&mut self.siblings);
        self.predictions.find_on_time(key, time_ms, &mut siblings);
        let mut end: Option<OutcomeResult> = None;
        for at in siblings.drain(..) {
            let model = self.predictions.cohort(at).map_or(0, |c| c.pane().0);
            let classes = classes.get(usize::from(model)).copied().unwrap_or(0);
            let one = self.attach(plan, at, (time_ms, class), classes, &mut revised);
            // The record ends as matched or revised if any sibling was.
            end = match (end, one) {
                (Some(OutcomeResult::Matched), _) => end,
                (Some(_), OutcomeResult::Matched | OutcomeResult::Revised) | (None, _) => Some(one),
                (Some(_), _) => end,
            };
        }
        self.siblings = siblings;
        if end.is_none() && self.predictions.fault().is_some() {
            return OutcomeResult::Refused;
        }
        let outcome = (time_ms, class);
        let model = model.unwrap_or(ANY_MODEL);
        let end =
            end.unwrap_or_else(|| self.wait(plan, key.any_version(), model, outcome, waiting));
        // An outcome that one version got in time may be late for another.
        if !matches!(end, OutcomeResult::UnknownClass | OutcomeResult::Refused) {
            let within_ms = given_up_for_ms(plan);
            self.given_up.meet(key, outcome, within_ms, revised);
        }
        end
    }

    /// Attaches an outcome that is on time to one prediction, of a model with `classes` classes (0:
    /// any).
    fn attach(
        &mut self,
        plan: &JoinPlan,
        at: Location,
        (time_ms, class): (i64, u32),
        classes: u32,
        revised: impl FnOnce(Revision<'_>),
    ) -> OutcomeResult {
        let Some(cohort) = self.predictions.cohort(at) else {
            return OutcomeResult::Duplicate;
        };
        if classes > 0 && class >= classes {
            return OutcomeResult::UnknownClass;
        }
        let before = cohort.outcome(at.row);
        // The stored time is compared, so that the order of arrival does not matter for outcomes
        // that are far away.
        let ours = (stored_ms(cohort.time_ms(at.row), time_ms), class);
        let refused = |theirs| refusal(plan.repeated, ours, theirs, !cohort.is_mature());
        if let Some(end) = before.and_then(refused) {
            return end;
        }
        let (model, start_ms) = cohort.pane();
        let op = Op::Outcome(OutcomeOp {
            model,
            start_ms,
            key: cohort.row(at.row).key,
            class,
            time_ms,
        });
        self.journal.write(&op, cohort.time_ms(at.row));
        self.predictions.set_outcome(at, time_ms, class);
        match self.predictions.cohort(at) {
            Some(cohort) if cohort.is_mature() => {
                revised(Revision {
                    now: cohort.matured(at.row),
                    before: before.map(|(_, class)| class),
                    late_ms: time_ms,
                    given_up: None,
                });
                OutcomeResult::Revised
            }
            _ if before.is_none() => OutcomeResult::Matched,
            _ => OutcomeResult::Duplicate,
        }
    }

    /// Keeps an outcome until its prediction comes or matures.
    fn wait(
        &mut self,
        plan: &JoinPlan,
        key: Key,
        model: u16,
        (time_ms, class): (i64, u32),
        waiting: usize,
    ) -> OutcomeResult {
        let end = match self.waiting.get(key) {
            Some(theirs) => {
                let theirs = (theirs.time_ms, theirs.class);
                if let Some(end) = refusal(plan.repeated, (time_ms, class), theirs, true) {
                    return end;
                }
                OutcomeResult::Duplicate
            }
            None if waiting >= plan.pending_max => return OutcomeResult::Refused,
            None => OutcomeResult::Waiting,
        };
        let outcome = WaitingOutcome {
            time_ms,
            class,
            model,
        };
        self.journal.write(&Op::Wait { key, outcome }, time_ms);
        self.waiting.insert(key, outcome);
        end
    }

    /// Removes a waiting outcome, and records that in the journal.
    pub(super) fn end_wait(&mut self, key: Key) -> Option<WaitingOutcome> {
        let outcome = self.waiting.remove(key)?;
        self.journal.write(&Op::EndWait { key }, outcome.time_ms);
        Some(outcome)
    }

    /// Shows the predictions of `model` in panes that start before `sealed_until_ms`, oldest pane
    /// first. They are removed, or retained for revisions; revisions whose outcome is there already
    /// follow at once. Predictions that are reloaded for these spill again beyond the `budget`.
    pub fn mature(
        &mut self,
        (plan, given_up_max): (&JoinPlan, usize),
        model: u16,
        sealed_until_ms: i64,
        classes: &[u32],
        budget: Option<SpillBudget<'_>>,
        mut each: impl FnMut(MaturityEvent<'_>),
    ) {
        let floor_ms = sealed_until_ms.saturating_sub(given_up_for_ms(plan));
        self.given_up.evict(model, floor_ms, given_up_max);
        for start_ms in self.predictions.pending_panes(model, sealed_until_ms) {
            let (given_up, waiting) = (&mut self.given_up, &self.waiting);
            let level = given_up.level();
            let late = self.predictions.mature(
                (model, start_ms),
                plan.revise,
                |key| (plan.revise || key.is_sampled(level)) && waiting.contains(key),
                |matured| {
                    if !plan.revise && matured.outcome.is_none() {
                        given_up.add(&matured, given_up_max);
                    }
                    each(MaturityEvent::Matured(matured));
                },
            );
            for key in late {
                match plan.revise {
                    true => self.revise(plan, key, classes, &mut each),
                    false => self.meet_given_up(plan, key, &mut each),
                }
                if let Some(budget) = budget
                    && self.predictions.memory() > budget.bytes
                {
                    let over = self.predictions.memory() - budget.bytes;
                    let bytes = over + (budget.bytes / 8).min(SPILL_BYTES);
                    self.predictions.spill(budget.backend, bytes);
                }
            }
        }
    }

    /// Shows late outcomes that were already there to a prediction that was given up.
    fn meet_given_up(
        &mut self,
        plan: &JoinPlan,
        key: Key,
        each: &mut impl FnMut(MaturityEvent<'_>),
    ) {
        if !self.given_up.lacks_outcome(key) {
            return;
        }
        self.predictions.reload(key);
        let waits = self.waiting.get(key.any_version());
        let waits = waits.map(|w| (w.time_ms, w.class));
        let passed_on = self.predictions.sibling_outcomes(key);
        for outcome in waits.into_iter().chain(passed_on) {
            self.given_up
                .meet(key, outcome, given_up_for_ms(plan), |r| {
                    each(MaturityEvent::Revised(r));
                });
        }
    }

    /// Attaches late outcomes that were already there to a mature prediction.
    fn revise(
        &mut self,
        plan: &JoinPlan,
        key: Key,
        classes: &[u32],
        each: &mut impl FnMut(MaturityEvent<'_>),
    ) {
        self.predictions.reload(key);
        for outcome in self.predictions.sibling_outcomes(key) {
            self.attach_to(plan, key, outcome, 0, |r| each(MaturityEvent::Revised(r)));
        }
        let key = key.any_version();
        let Some(WaitingOutcome { time_ms, class, .. }) = self.end_wait(key) else {
            return;
        };
        let end = self.observe_outcome(plan, key, None, time_ms, class, classes, 0, |r| {
            each(MaturityEvent::Revised(r));
        });
        each(MaturityEvent::Ended(end));
    }

    /// Removes mature predictions of `model` in panes that start before `floor_ms`: no window holds
    /// these panes.
    pub fn evict(&mut self, model: u16, floor_ms: i64) {
        self.predictions.evict(model, floor_ms);
    }

    /// Removes waiting outcomes that can only be late; returns how many. `sealed_until` says up to
    /// where panes of a model are mature; for `None`, of all models for which an outcome that names
    /// none waits. Such an outcome waits for the models of retained predictions too.
    pub fn orphan(&mut self, sealed_until: impl Fn(Option<u16>) -> i64) -> usize {
        let (predictions, journal) = (&self.predictions, &mut self.journal);
        let limit_of = |model: u16| match model {
            ANY_MODEL => {
                let retained = predictions.models().into_iter();
                let theirs = retained.map(|m| sealed_until(Some(m)));
                theirs.fold(sealed_until(None), i64::min)
            }
            _ => sealed_until(Some(model)),
        };
        self.waiting.orphan(limit_of, |key, outcome| {
            journal.write(&Op::EndWait { key }, outcome.time_ms);
        })
    }
}

/// How long a prediction that was given up is remembered after its event time.
fn given_up_for_ms(plan: &JoinPlan) -> i64 {
    plan.maturity_ms.saturating_mul(2)
}

/// What becomes of an outcome, as time and class, that does not replace another one of the same
/// prediction; `None` if it does. `pending`: no sum has the other outcome.
fn refusal(
    repeated: Repeated,
    ours: (i64, u32),
    theirs: (i64, u32),
    pending: bool,
) -> Option<OutcomeResult> {
    match repeated {
        Repeated::First if ours < theirs => None,
        Repeated::Last if ours > theirs => None,
        Repeated::Reject if ours.1 != theirs.1 => Some(OutcomeResult::Contradiction),
        // A repeat keeps the earlier time: the later time may be late for the prediction.
        Repeated::Reject if pending && ours.0 < theirs.0 => None,
        _ => Some(OutcomeResult::Duplicate),
    }
}
