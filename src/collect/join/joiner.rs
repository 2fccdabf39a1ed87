//! The joiner of one partition of predictions and the partition of outcomes beside it.
//!
//! An [index](super::index) finds a pending prediction in one probe and its row. Nothing is done by the clock: rows
//! leave when [`Joiner::mature`] is told that the line has passed their pane.
//!
//! An id may be held once for each version that scored it; they are kin, found in one probe, and an outcome
//! goes to all of them. One that came before some of them is handed on by those that have it, so it does not
//! matter which of the records came first, while none of them is mature and gone. One that is late for some of them
//! is handed to these when they are mature, if late outcomes are taken; they are [marked](super::cohort::Row::owes), so
//! that of a pane that has spilled only these come back.
//!
//! Always: `pending` counts live rows of cohorts that have not matured, those that [spilled](super::spilled) too; replaying
//! the journal gives the same joiner.
//!
//! Cost: about 0.2 µs a prediction or outcome when millions are pending, most of it cache misses; where
//! some have spilled, an id that is not in memory costs a look into the store.

use super::cohort::{Cohort, Matured, kept_ms};
use super::index::{Index, Place};
use super::journal::{Journal, JournalDelta, JournalMark, Op, Views};
use super::key::{ByKey, Key};
use super::plan::{JoinPlan, Repeated};
use super::spill_backend::{SpillBackend, SpillError};
use super::spilled::Spilled;
use crate::stats::fixed::Score;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A place in the index: eight bytes with a control byte, in tables that are half full at worst.
const INDEXED: usize = 20;

/// Event time of the outcomes in one place of the queue.
const STEP_MS: i64 = 4096;

/// Keys in the queue, beside twice as many as wait, at which those that wait no more are swept out.
const SWEPT: usize = 1024;

/// Bytes that are moved out of memory at once, at most: a longer pause would be felt.
pub(super) const SPILL_BYTES: usize = 16 << 20;

/// Any model, in a waiting outcome.
pub(super) const ANY: u16 = u16::MAX;

/// A prediction to be held.
#[derive(Debug, Clone, Copy)]
pub struct NewPrediction<'a> {
    /// Its name.
    pub key: Key,
    /// Index of the model's plan.
    pub model: u16,
    /// Slot of its subject.
    pub subject: u32,
    /// Begin of its pane.
    pub start_ms: i64,
    /// Event time.
    pub time_ms: i64,
    /// Event time up to which its outcome is on time; the same for all of a pane.
    pub due_ms: i64,
    /// For each view the score and the class that makes its outcome true, and what else is [kept](super::RowLayout).
    pub views: &'a [(Score, u32)],
    /// Where among these its [whole vector](super::full_vector) begins, with its number of entries; 0 of them: there is none.
    pub full_vector: (usize, usize),
    /// Number of classes an outcome of it may have; 0: any.
    pub classes: u32,
}

/// A prediction that is held.
#[derive(Debug, Clone, Copy)]
pub struct Retained<'a> {
    /// Slot of its subject.
    pub subject: u32,
    /// Event time.
    pub time_ms: i64,
    /// Its score for each view.
    pub scores: &'a [f64],
    /// Event time of its outcome, and its class.
    pub outcome: Option<(i64, u32)>,
    /// Whether it is mature.
    pub matured: bool,
}

impl Retained<'_> {
    /// Whether it has this outcome.
    pub fn has(&self, time_ms: i64, class: u32) -> bool {
        self.outcome == Some((kept_ms(self.time_ms, time_ms), class))
    }
}

/// How a prediction ended up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicted {
    /// It is held.
    Pending {
        /// What became of an outcome that was waiting for it.
        met: Option<Labelled>,
        /// It took the place of a later prediction of the same id, held for this subject; whether the
        /// two had other scores.
        instead: Option<(u32, bool)>,
    },
    /// An earlier prediction of the same id is held, with the same scores.
    Duplicate,
    /// An earlier prediction of the same id is held, with other scores.
    Conflict,
    /// Too many are held.
    Refused,
}

/// How an outcome ended up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labelled {
    /// Its prediction has it.
    Matched,
    /// Its prediction has not come yet, or was due before it.
    Waiting,
    /// Its prediction has another, or this one already.
    Duplicate,
    /// Its prediction has another, and that is not allowed.
    Contradiction,
    /// Its prediction has no such class.
    UnknownClass,
    /// Its prediction was mature: the sums are to be corrected.
    Revised,
    /// Too many are waiting.
    Refused,
}

/// A correction of a mature prediction.
#[derive(Debug, Clone, Copy)]
pub struct Revision<'a> {
    /// The prediction, with the outcome that it has now.
    pub now: Matured<'a>,
    /// The class that it was counted with, if it was.
    pub before: Option<u32>,
}

/// What happens when a pane is mature.
#[derive(Debug, Clone, Copy)]
pub enum MaturityEvent<'a> {
    /// A prediction, with what is known of its outcome.
    Matured(Matured<'a>),
    /// It has a late outcome already.
    Revised(Revision<'a>),
    /// How that late outcome, which was waiting, ended.
    Ended(Labelled),
}

/// How much memory a joiner may take while panes mature.
#[derive(Debug, Clone, Copy)]
pub struct Room<'a> {
    /// Where goes what there is no room for.
    pub spills: &'a dyn SpillBackend,
    /// Bytes of predictions in memory.
    pub bytes: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    time_ms: i64,
    class: u32,
    pub model: u16,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Joiner {
    pub(super) index: Index,
    pub(super) spilled: Spilled,
    pub(super) waiting: ByKey<Waiting>,
    /// Keys of waiting outcomes by [step](STEP_MS) of event time, to let them go in order; and of some that
    /// wait no more.
    queue: BTreeMap<i64, Vec<Key>>,
    /// Keys in the queue.
    queued: usize,
    pub(super) journal: Journal,
    pub(super) pending: usize,
    pub(super) matured: usize,
    /// Two versions were held under one id at some time.
    kindred: bool,
    /// Those of one id, at work.
    kin: Vec<Place>,
}

impl Joiner {
    /// Predictions that wait for their maturity.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Mature predictions that are kept for revisions.
    pub fn matured(&self) -> usize {
        self.matured
    }

    /// Outcomes that wait for their predictions.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Predictions, pending or kept for revisions, that are not in memory.
    pub fn spilled(&self) -> usize {
        self.spilled.rows()
    }

    /// Why the store of what has spilled failed, if it did: from then on the joiner knows less than it was
    /// told, and no snapshot may be made of it.
    pub fn fault(&self) -> Option<&SpillError> {
        self.spilled.fault()
    }

    /// Tells the slot of the subject and the number of its pending predictions, for each pane.
    pub fn each_pending(&mut self, mut each: impl FnMut(u32, u64)) {
        let mut tell = |cohort: &Cohort| {
            let mut subjects: BTreeMap<u32, u64> = BTreeMap::new();
            for row in cohort.rows() {
                *subjects.entry(cohort.row(row).subject()).or_default() += 1;
            }
            subjects
                .into_iter()
                .for_each(|(subject, n)| each(subject, n));
        };
        let here = self.index.cohorts().filter(|c| !c.matured);
        here.for_each(&mut tell);
        let panes: Vec<_> = self.spilled.all().collect();
        for (at, facts) in panes {
            if !facts.matured {
                self.spilled.visit(at, true, &mut tell);
            }
        }
    }

    /// Begin of the oldest pane that is pending for `model`.
    pub fn oldest_ms(&self, model: u16) -> Option<i64> {
        let here = self
            .index
            .before(model, i64::MAX)
            .find(|&(_, c)| self.cohort(c).is_some_and(|c| !c.matured && c.live() > 0))
            .map(|(start, _)| start);
        if self.spilled.rows() == 0 {
            return here;
        }
        let mut there = self.spilled.panes(model, i64::MAX);
        let there = there.find(|(_, matured)| !matured).map(|(start, _)| start);
        here.into_iter().chain(there).min()
    }

    /// Takes a prediction whose pane is not mature. `held` is what all joiners of the plan hold.
    pub fn predict(&mut self, plan: &JoinPlan, e: &NewPrediction<'_>, held: usize) -> Predicted {
        let end = self.place(plan, e, held);
        if let Predicted::Pending { .. } = end {
            let op = Op::Predict {
                model: e.model,
                start_ms: e.start_ms,
                offset_ms: u32::try_from(e.time_ms - e.start_ms).unwrap_or(u32::MAX),
                subject: e.subject,
                key: e.key,
                views: Views::Given(e.views),
                whole: e.full_vector.1 as u16,
            };
            self.journal.write(&op, e.time_ms);
        }
        match end {
            Predicted::Pending { instead, .. } => Predicted::Pending {
                met: self.meet(plan, e),
                instead,
            },
            other => other,
        }
    }

    fn place(&mut self, plan: &JoinPlan, e: &NewPrediction<'_>, held: usize) -> Predicted {
        let theirs = self.find(e.key).and_then(|at| {
            let cohort = self.cohort(at.cohort)?;
            let scores = cohort.scores(at.row);
            let kept = || scores.iter().zip(cohort.classes(at.row));
            let rank_at = if e.full_vector.1 > 0 {
                e.full_vector.0
            } else {
                usize::MAX
            };
            let same = kept()
                .zip(e.views)
                .enumerate()
                .all(|(i, ((a, k), (b, l)))| i == rank_at || (*a, *k) == (b.value(), *l));
            let first = cohort.matured || before(cohort.time_ms(at.row), kept(), e);
            Some((first, same, cohort.row(at.row).subject()))
        });
        match theirs {
            Some((true, true, _)) => Predicted::Duplicate,
            Some((true, false, _)) => Predicted::Conflict,
            None if held >= plan.pending_max => Predicted::Refused,
            None if self.fault().is_some() => Predicted::Refused,
            _ => {
                let outcome = theirs.and_then(|_| self.take_out(e.key));
                self.put(e, outcome);
                Predicted::Pending {
                    met: None,
                    instead: theirs.map(|(_, same, subject)| (subject, !same)),
                }
            }
        }
    }

    /// Holds a prediction whose key none has, with the outcome of the one whose place it took.
    pub(super) fn put(&mut self, e: &NewPrediction<'_>, outcome: Option<(i64, u32)>) {
        let pane = (e.model, e.start_ms);
        let matured = || self.spilled.facts(pane).is_some_and(|f| f.matured);
        let alone = self.index.kin_of(e.key).next().is_none();
        let Some(at) = self.index.push(e, matured) else {
            return;
        };
        self.pending += 1;
        if let Some(cohort) = self.index.cohort_mut(at.cohort)
            && let Some((time, class)) = outcome
        {
            cohort.set_outcome(at.row, time, class);
        }
        if alone {
            return;
        }
        self.kindred = true;
        self.index.mark_kin(e.key);
        let told = self.told(e.key);
        if let Some(cohort) = self.index.cohort_mut(at.cohort)
            && told.iter().any(|&(time_ms, _)| late(cohort, time_ms))
        {
            cohort.row_mut(at.row).set_owes();
        }
    }

    /// Lets go of the prediction of this key; returns its outcome.
    pub(super) fn take_out(&mut self, key: Key) -> Option<(i64, u32)> {
        let at = self.find(key)?;
        self.pending -= 1;
        self.index.take_out(key, at)
    }

    /// Gives a new prediction the outcome that other versions of its id have, and the one that was waiting.
    fn meet(&mut self, plan: &JoinPlan, e: &NewPrediction<'_>) -> Option<Labelled> {
        for (time_ms, class) in self.told(e.key) {
            self.hand_on(plan, e.key, time_ms, class, e.classes, |_| ());
        }
        if self.waiting.is_empty() {
            return None;
        }
        let key = e.key.any_version();
        let waiting = self.take_waiting(key)?;
        self.journal.write(&Op::Forget { key }, waiting.time_ms);
        if e.classes > 0 && waiting.class >= e.classes {
            return Some(Labelled::UnknownClass);
        }
        let (time_ms, class) = (waiting.time_ms, waiting.class);
        let end = self.hand_on(plan, e.key, time_ms, class, 0, |_| ());
        // After its time it waits on, with room for one: it waited before.
        Some(end.unwrap_or_else(|| self.wait(plan, key, ANY, time_ms, class, 0)))
    }

    /// The outcomes that other versions of this id have, in an order of their own.
    fn told(&self, key: Key) -> Vec<(i64, u32)> {
        if !self.kindred {
            return Vec::new();
        }
        let of = |at: Place| {
            let cohort = self.cohort(at.cohort)?;
            let other = cohort.row(at.row).key != key;
            cohort.outcome(at.row).filter(|_| other)
        };
        let mut all: Vec<(i64, u32)> = self.index.kin_of(key).filter_map(of).collect();
        all.sort_unstable();
        all
    }

    /// Gives one prediction an outcome; `None` where it is after its time.
    fn hand_on(
        &mut self,
        plan: &JoinPlan,
        key: Key,
        time_ms: i64,
        class: u32,
        most: u32,
        revised: impl FnOnce(Revision<'_>),
    ) -> Option<Labelled> {
        let at = self.find(key)?;
        if late(self.cohort(at.cohort)?, time_ms) {
            return None;
        }
        Some(self.label_one(plan, at, time_ms, class, most, revised))
    }

    /// Takes an outcome. `classes` has for each model the number of its classes, or 0; `model` is the one
    /// that the outcome names. `revised` is called when sums that were made must be corrected.
    #[expect(
        clippy::too_many_arguments,
        reason = "the facts of an outcome, and where it goes"
    )]
    pub fn label(
        &mut self,
        plan: &JoinPlan,
        key: Key,
        model: Option<u16>,
        time_ms: i64,
        class: u32,
        classes: &[u32],
        waiting: usize,
        mut revised: impl FnMut(Revision<'_>),
    ) -> Labelled {
        // One that happened after its prediction was due is not on time though it arrived early: it waits,
        // to revise the mature prediction, or in vain, like one that arrived too late. So the order of
        // arrival does not matter.
        self.recall(key);
        let mut kin = std::mem::take(&mut self.kin);
        let on_time = |at: &Place| self.cohort(at.cohort).is_some_and(|c| !late(c, time_ms));
        kin.extend(self.index.kin_of(key).filter(on_time));
        // The table has them in the order of its history, which a restart or a spill changes.
        kin.sort_unstable_by_key(|at| self.order(*at));
        let mut end: Option<Labelled> = None;
        for &at in &kin {
            let model = self.cohort(at.cohort).map_or(0, |c| usize::from(c.model));
            let most = classes.get(model).copied().unwrap_or(0);
            let one = self.label_one(plan, at, time_ms, class, most, &mut revised);
            // Of the record it is told what it did, if it did something for one of them.
            end = match (end, one) {
                (Some(Labelled::Matched), _) => end,
                (Some(before), Labelled::Matched | Labelled::Revised) if before != one => Some(one),
                (Some(_), _) => end,
                (None, _) => Some(one),
            };
        }
        kin.clear();
        self.kin = kin;
        if end.is_none() && self.fault().is_some() {
            return Labelled::Refused;
        }
        let model = model.unwrap_or(ANY);
        end.unwrap_or_else(|| self.wait(plan, key.any_version(), model, time_ms, class, waiting))
    }

    /// Gives an outcome that is on time to one prediction, of a model with `most` classes, or 0.
    fn label_one(
        &mut self,
        plan: &JoinPlan,
        at: Place,
        time_ms: i64,
        class: u32,
        most: u32,
        revised: impl FnOnce(Revision<'_>),
    ) -> Labelled {
        let Some(cohort) = self.index.cohort_mut(at.cohort) else {
            return Labelled::Duplicate;
        };
        if most > 0 && class >= most {
            return Labelled::UnknownClass;
        }
        let before = cohort.outcome(at.row);
        // Those that are too far away are not told apart, so that the order of arrival does not matter here either.
        let ours = (kept_ms(cohort.time_ms(at.row), time_ms), class);
        let replaces = before.is_none_or(|held| match plan.repeated {
            Repeated::First => ours < held,
            Repeated::Last => ours > held,
            Repeated::Reject => false,
        });
        if !replaces {
            let contradicts = before.is_some_and(|(_, c)| c != class);
            return match plan.repeated {
                Repeated::Reject if contradicts => Labelled::Contradiction,
                _ => Labelled::Duplicate,
            };
        }
        cohort.set_outcome(at.row, time_ms, class);
        let key = cohort.row(at.row).key;
        let op = Op::Outcome {
            model: cohort.model,
            start_ms: cohort.start_ms,
            key,
            class,
            time_ms,
        };
        self.journal.write(&op, cohort.time_ms(at.row));
        let matured = cohort.matured;
        if matured {
            revised(Revision {
                now: cohort.matured(at.row),
                before: before.map(|(_, c)| c),
            });
        }
        self.owe(key, time_ms);
        match before {
            _ if matured => Labelled::Revised,
            None => Labelled::Matched,
            Some(_) => Labelled::Duplicate,
        }
    }

    /// Marks the predictions of an id for which an outcome is late that another of them has.
    pub(super) fn owe(&mut self, key: Key, time_ms: i64) {
        if !self.kindred {
            return;
        }
        let is_late = |at: &Place| self.cohort(at.cohort).is_some_and(|c| late(c, time_ms));
        // Seldom any; of none nothing is allocated.
        let all: Vec<Place> = self.index.kin_of(key).filter(is_late).collect();
        for at in all {
            if let Some(cohort) = self.index.cohort_mut(at.cohort) {
                cohort.row_mut(at.row).set_owes();
            }
        }
    }

    fn wait(
        &mut self,
        plan: &JoinPlan,
        key: Key,
        model: u16,
        time_ms: i64,
        class: u32,
        waiting: usize,
    ) -> Labelled {
        if let Some(held) = self.waiting.get(&key).copied() {
            let ours = (time_ms, class);
            let theirs = (held.time_ms, held.class);
            let replaces = match plan.repeated {
                Repeated::First => ours < theirs,
                Repeated::Last => ours > theirs,
                Repeated::Reject if class != held.class => return Labelled::Contradiction,
                Repeated::Reject => false,
            };
            if !replaces {
                return Labelled::Duplicate;
            }
            self.keep_waiting(key, model, time_ms, class);
            return Labelled::Duplicate;
        }
        if waiting >= plan.pending_max {
            return Labelled::Refused;
        }
        self.keep_waiting(key, model, time_ms, class);
        Labelled::Waiting
    }

    pub(super) fn keep_waiting(&mut self, key: Key, model: u16, time_ms: i64, class: u32) {
        let op = Op::Wait {
            key,
            class,
            time_ms,
            model,
        };
        self.journal.write(&op, time_ms);
        let waiting = Waiting {
            time_ms,
            class,
            model,
        };
        self.waiting.insert(key, waiting);
        self.enqueue(key, time_ms);
        if self.queued > 2 * self.waiting.len() + SWEPT {
            self.sweep();
        }
    }

    /// Hands over the predictions of `model` in panes that begin before `line_ms`, oldest pane first, and
    /// lets them go, or keeps them for revisions, of which those come at once whose outcome is there. What comes back
    /// into memory for these spills again where there is no `room`.
    pub fn mature(
        &mut self,
        plan: &JoinPlan,
        model: u16,
        line_ms: i64,
        classes: &[u32],
        room: Option<Room<'_>>,
        mut each: impl FnMut(MaturityEvent<'_>),
    ) {
        let matured = |at: u32| self.cohort(at).is_none_or(|c| c.matured);
        let here = self.index.before(model, line_ms);
        let here = here.filter(|(_, at)| !matured(*at)).map(|(s, _)| s);
        let mut due: Vec<i64> = here.collect();
        if self.spilled.rows() > 0 {
            let there = self.spilled.panes(model, line_ms);
            due.extend(there.filter(|(_, matured)| !matured).map(|(s, _)| s));
            due.sort_unstable();
        }
        due.dedup();
        for start_ms in due {
            let mut met = Vec::new();
            self.mature_spilled(plan, (model, start_ms), &mut met, &mut each);
            self.mature_here(plan, (model, start_ms), &mut met, &mut each);
            for key in met {
                self.revise(plan, key, classes, &mut each);
                if let Some(room) = room
                    && self.memory() > room.bytes
                {
                    let over = self.memory() - room.bytes;
                    self.spill(room.spills, over + (room.bytes / 8).min(SPILL_BYTES));
                }
            }
        }
    }

    /// The part of a pane that is in memory; `met` gets the keys of those that late outcomes may be there for.
    fn mature_here(
        &mut self,
        plan: &JoinPlan,
        pane: (u16, i64),
        met: &mut Vec<Key>,
        each: &mut impl FnMut(MaturityEvent<'_>),
    ) {
        for at in self.index.of_pane(pane) {
            let Some(cohort) = self.index.cohort_mut(at).filter(|c| !c.matured) else {
                continue;
            };
            for row in cohort.rows() {
                each(MaturityEvent::Matured(cohort.matured(row)));
            }
            let live = cohort.live();
            self.pending -= live;
            if plan.revise {
                self.matured += live;
                cohort.matured = true;
                let rows = cohort.rows().map(|row| cohort.row(row));
                let meets =
                    rows.filter(|r| r.owes() || self.waiting.contains_key(&r.key.any_version()));
                met.extend(meets.map(|r| r.key));
                self.index.shrink(at);
            } else {
                self.index.drop_cohort(at);
            }
        }
    }

    /// The part that has spilled.
    fn mature_spilled(
        &mut self,
        plan: &JoinPlan,
        pane: (u16, i64),
        met: &mut Vec<Key>,
        each: &mut impl FnMut(MaturityEvent<'_>),
    ) {
        if self.spilled.rows() == 0 {
            return;
        }
        let waiting = &self.waiting;
        let live = self.spilled.visit(pane, plan.revise, |part| {
            for row in part.rows() {
                each(MaturityEvent::Matured(part.matured(row)));
                let row = part.row(row);
                if plan.revise && (row.owes() || waiting.contains_key(&row.key.any_version())) {
                    met.push(row.key);
                }
            }
        });
        self.pending -= live;
        if plan.revise {
            self.matured += self.spilled.mature(pane);
        }
    }

    /// Gives a mature prediction the late outcome that was waiting for its maturity.
    fn revise(
        &mut self,
        plan: &JoinPlan,
        key: Key,
        classes: &[u32],
        each: &mut impl FnMut(MaturityEvent<'_>),
    ) {
        self.recall(key);
        for (time_ms, class) in self.told(key) {
            self.hand_on(plan, key, time_ms, class, 0, |r| {
                each(MaturityEvent::Revised(r))
            });
        }
        let key = key.any_version();
        let Some(Waiting { time_ms, class, .. }) = self.take_waiting(key) else {
            return;
        };
        self.journal.write(&Op::Forget { key }, time_ms);
        let end = self.label(plan, key, None, time_ms, class, classes, 0, |r| {
            each(MaturityEvent::Revised(r));
        });
        each(MaturityEvent::Ended(end));
    }

    /// Lets go of mature predictions of `model` in panes that begin before `floor_ms`: no window holds
    /// their panes any more.
    pub fn evict(&mut self, model: u16, floor_ms: i64) {
        let gone: Vec<(i64, u32)> = self.index.before(model, floor_ms).collect();
        for (_, at) in gone {
            if let Some(cohort) = self.cohort(at).filter(|c| c.matured) {
                self.matured -= cohort.live();
                self.index.drop_cohort(at);
            }
        }
        if self.spilled.rows() > 0 {
            let gone = self.spilled.panes(model, floor_ms);
            let gone: Vec<i64> = gone.filter(|(_, matured)| *matured).map(|p| p.0).collect();
            for start_ms in gone {
                self.matured -= self.spilled.visit((model, start_ms), false, |_| ());
            }
        }
    }

    /// Bytes that predictions take in memory, their places in the index among them.
    #[inline]
    pub fn memory(&self) -> usize {
        let here = self.pending + self.matured - self.spilled.rows();
        self.index.bytes() + here * INDEXED
    }

    /// Moves cohorts from memory to the store, the oldest first, until so many bytes are free or nothing is
    /// left to move.
    #[cold]
    pub fn spill(&mut self, spills: &dyn SpillBackend, bytes: usize) {
        let least = self.memory().saturating_sub(bytes);
        while self.memory() > least
            && self.fault().is_none()
            && let Some(at) = self.index.oldest()
        {
            if let Some(cohort) = self.index.drop_cohort(at) {
                self.spilled.add(&cohort, self.kindred, spills);
            }
            if self.spilled.is_full() {
                self.spilled.flush(spills);
            }
        }
        self.spilled.flush(spills);
    }

    /// Lets go of waiting outcomes whose predictions can only come too late: `line_of` says for a model,
    /// or for `None` over all models, up to where panes are mature. Returns how many.
    pub fn orphan(&mut self, line_of: impl Fn(Option<u16>) -> i64) -> usize {
        let before = self.waiting.len();
        let lines: BTreeMap<u16, i64> = self
            .waiting_models()
            .map(|m| (m, line_of((m != ANY).then_some(m))))
            .collect();
        let Some(newest) = lines.values().max().copied() else {
            return 0;
        };
        let steps = ..=newest.div_euclid(STEP_MS);
        for keys in self.queue.range_mut(steps).map(|(_, keys)| keys) {
            self.queued -= keys.len();
            keys.retain(|key| {
                let Some(w) = self.waiting.get(key) else {
                    return false;
                };
                let over = lines.get(&w.model).is_some_and(|line| w.time_ms < *line);
                if over {
                    self.waiting.remove(key);
                }
                !over
            });
            self.queued += keys.len();
        }
        self.queue.retain(|_, keys| !keys.is_empty());
        before - self.waiting.len()
    }

    /// Models that waiting outcomes name; few, since sources carry few models.
    fn waiting_models(&self) -> impl Iterator<Item = u16> {
        let mut models = Vec::new();
        for w in self.waiting.values() {
            if !models.contains(&w.model) {
                models.push(w.model);
            }
        }
        models.into_iter()
    }

    /// What the journal has that no snapshot has taken; then lets go of segments that are older than
    /// `floor_ms`, before which nothing is held.
    pub fn take_journal(&mut self, join: u16, partition: i32, floor_ms: i64) -> Vec<JournalDelta> {
        let deltas = self.journal.take(join, partition);
        self.journal.release(floor_ms);
        deltas
    }

    /// How far the journal goes, for a snapshot.
    pub fn marks(&self) -> Vec<JournalMark> {
        self.journal.marks()
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        // A hash map entry with its control byte at three quarters full.
        let waiting = (size_of::<(Key, Waiting)>() + 1) * 4 / 3;
        self.index.heap_bytes()
            + self.waiting.capacity() * waiting
            + self.queued * size_of::<Key>()
            + self.journal.fresh_bytes()
            + self.spilled.bytes()
            + size_of::<Joiner>()
    }

    fn cohort(&self, at: u32) -> Option<&Cohort> {
        self.index.cohort(at)
    }

    /// Has the predictions of an id in memory, if any are held at all.
    pub fn reload(&mut self, key: Key) {
        self.recall(key);
    }

    /// The prediction that is held under a key, in memory; of a family, all of them in the order of their keys.
    pub fn retained_of(&self, key: Key) -> Vec<Retained<'_>> {
        let mut all: Vec<Place> = match self.index.find(key) {
            Some(one) => vec![one],
            None => self.index.kin_of(key).collect(),
        };
        all.sort_unstable_by_key(|at| self.order(*at));
        let held = |at: &Place| {
            let cohort = self.cohort(at.cohort)?;
            Some(Retained {
                subject: cohort.row(at.row).subject(),
                time_ms: cohort.time_ms(at.row),
                scores: cohort.scores(at.row),
                outcome: cohort.outcome(at.row),
                matured: cohort.matured,
            })
        };
        all.iter().filter_map(held).collect()
    }

    /// Where a prediction is; one that had spilled is brought back, and its kin with it.
    #[inline]
    pub(super) fn find(&mut self, key: Key) -> Option<Place> {
        self.recall(key);
        self.index.find(key)
    }

    /// Has all predictions of an id in memory that are held.
    #[inline]
    fn recall(&mut self, key: Key) {
        if self.spilled.rows() > 0
            && let (_, true) = self.index.knows(key)
        {
            self.bring_back(key);
        }
    }

    #[cold]
    fn bring_back(&mut self, key: Key) {
        let all = self.spilled.take(key);
        all.iter().for_each(|taken| self.index.put_back(taken));
        if !all.is_empty() {
            self.index.mark_kin(key);
        }
    }

    /// By what the predictions of an id are put in order.
    fn order(&self, at: Place) -> Option<[u64; 2]> {
        self.index.key_at(at).map(|key| key.0)
    }

    /// Lets go of a waiting outcome; its key stays in the queue until that is swept.
    pub(super) fn take_waiting(&mut self, key: Key) -> Option<Waiting> {
        let waiting = self.waiting.remove(&key);
        if self.waiting.is_empty() {
            self.queue.clear();
            self.queued = 0;
        }
        waiting
    }

    fn enqueue(&mut self, key: Key, time_ms: i64) {
        let step = time_ms.div_euclid(STEP_MS);
        self.queue.entry(step).or_default().push(key);
        self.queued += 1;
    }

    #[cold]
    fn sweep(&mut self) {
        self.queue.clear();
        self.queued = 0;
        let waiting: Vec<(Key, i64)> = self.waiting.iter().map(|(k, w)| (*k, w.time_ms)).collect();
        for (key, time_ms) in waiting {
            self.enqueue(key, time_ms);
        }
    }
}

/// Whether an outcome happened after a prediction that is not mature was due.
fn late(cohort: &Cohort, time_ms: i64) -> bool {
    time_ms > cohort.due_ms && !cohort.matured
}

/// Whether a held prediction goes before another of its id: by event time, then by its scores and their classes.
fn before<'a>(
    time_ms: i64,
    scores: impl Iterator<Item = (&'a f64, &'a u32)>,
    other: &NewPrediction<'_>,
) -> bool {
    let theirs = other.views.iter().map(|(z, k)| (z.value(), *k));
    let by_scores = || scores.map(|(z, k)| (*z, *k)).partial_cmp(theirs);
    match time_ms.cmp(&other.time_ms) {
        Ordering::Equal => by_scores() != Some(Ordering::Greater),
        order => order == Ordering::Less,
    }
}
