//! The joiner of one partition of predictions and the partition of outcomes beside it.
//!
//! An index from key to cohort and row finds a pending prediction in one probe and its row; it is cut
//! into shards, so that growth moves a sixty-fourth of it at a time. Nothing is done by the clock: rows
//! leave when [`Joiner::mature`] is told that the line has passed their pane.
//!
//! An id may be held once for each version that scored it; they are kin, found in one probe, and an outcome
//! goes to all of them. One that came before some of them is handed on by those that have it, so it does not
//! matter which of the records came first, while none of them is mature and gone.
//!
//! Always: a key is in the index exactly while its row is live in memory; `pending` counts live rows of
//! cohorts that have not settled, those that [spilled](super::spilled) too; replaying the journal gives the
//! same joiner.
//!
//! Cost: about 0.2 µs a prediction or outcome when millions are pending, most of it cache misses; where
//! some have spilled, an id that is not in memory costs a look into the store.

use super::churn::make_way;
use super::cohort::{Cohort, Kept, Matured, kept_ms};
use super::journal::{Journal, JournalDelta, JournalError, JournalMark, Op, Reader, Views};
use super::key::{ByKey, Key};
use super::plan::{JoinPlan, Repeated};
use super::spill::{SpillError, Spills};
use super::spilled::Spilled;
use crate::stats::fixed::Score;
use hashbrown::HashTable;
use std::cmp::Ordering;
use std::collections::BTreeMap;

const SHARDS: usize = 64;

/// A place in the index: eight bytes with a control byte, in tables that are half full at worst.
const INDEXED: usize = 20;

/// Event time of the outcomes in one place of the queue.
const STEP_MS: i64 = 4096;

/// Keys in the queue, beside twice as many as wait, at which those that wait no more are swept out.
const SWEPT: usize = 1024;

/// Any model, in a waiting outcome.
const ANY: u16 = u16::MAX;

/// A prediction to be held.
#[derive(Debug, Clone, Copy)]
pub struct Expect<'a> {
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
    /// For each view the score and the class that makes its outcome true, and what else is [kept](Kept).
    pub views: &'a [(Score, u32)],
    /// Where among these its [whole vector](super::whole) begins, with its number of entries; 0 of them: there is none.
    pub whole: (usize, usize),
    /// Number of classes an outcome of it may have; 0: any.
    pub classes: u32,
}

/// A prediction that is held.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    /// Slot of its subject.
    pub subject: u32,
    /// Event time.
    pub time_ms: i64,
    /// Its score for each view.
    pub scores: &'a [f64],
    /// Event time of its outcome, and its class.
    pub outcome: Option<(i64, u32)>,
    /// Whether it is mature.
    pub settled: bool,
}

impl Held<'_> {
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
pub enum Ripe<'a> {
    /// A prediction, with what is known of its outcome.
    Mature(Matured<'a>),
    /// It has a late outcome already.
    Revised(Revision<'a>),
    /// How that late outcome, which was waiting, ended.
    Ended(Labelled),
}

#[derive(Debug, Clone, Copy)]
struct Place {
    cohort: u32,
    row: u32,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    time_ms: i64,
    class: u32,
    model: u16,
}

/// See the module.
#[derive(Debug)]
pub struct Joiner {
    shards: Vec<HashTable<Place>>,
    cohorts: Vec<Option<Cohort>>,
    /// Places among the cohorts that have none.
    free: Vec<u32>,
    /// Bytes of all cohorts.
    bytes: usize,
    spilled: Spilled,
    /// Cohort by model and begin.
    places: BTreeMap<(u16, i64), u32>,
    waiting: ByKey<Waiting>,
    /// Keys of waiting outcomes by [step](STEP_MS) of event time, to let them go in order; and of some that
    /// wait no more.
    queue: BTreeMap<i64, Vec<Key>>,
    /// Keys in the queue.
    queued: usize,
    journal: Journal,
    pending: usize,
    settled: usize,
    /// Cohort of the last prediction, cut to size when another begins.
    last: u32,
    /// Two versions were held under one id at some time.
    kindred: bool,
    /// Those of one id, at work.
    kin: Vec<Place>,
}

impl Default for Joiner {
    fn default() -> Joiner {
        Joiner {
            shards: vec![HashTable::new(); SHARDS],
            cohorts: Vec::new(),
            free: Vec::new(),
            bytes: 0,
            spilled: Spilled::default(),
            places: BTreeMap::new(),
            waiting: ByKey::default(),
            queue: BTreeMap::new(),
            queued: 0,
            journal: Journal::default(),
            pending: 0,
            settled: 0,
            last: 0,
            kindred: false,
            kin: Vec::new(),
        }
    }
}

impl Joiner {
    /// Predictions that wait for their maturity.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Mature predictions that are kept for revisions.
    pub fn settled(&self) -> usize {
        self.settled
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
                *subjects.entry(cohort.row(row).subject).or_default() += 1;
            }
            subjects
                .into_iter()
                .for_each(|(subject, n)| each(subject, n));
        };
        let here = self.cohorts.iter().flatten().filter(|c| !c.settled);
        here.for_each(&mut tell);
        let panes: Vec<_> = self.spilled.all().collect();
        for (at, facts) in panes {
            if !facts.settled {
                self.spilled.visit(at, (true, false), &mut tell);
            }
        }
    }

    /// Begin of the oldest pane that is pending for `model`.
    pub fn oldest_ms(&self, model: u16) -> Option<i64> {
        let mine = self.places.range((model, i64::MIN)..=(model, i64::MAX));
        let here = mine
            .map(|((_, start), &c)| (*start, c))
            .find(|&(_, c)| self.cohort(c).is_some_and(|c| !c.settled && c.live() > 0))
            .map(|(start, _)| start);
        if self.spilled.rows() == 0 {
            return here;
        }
        let mut there = self.spilled.panes(model, i64::MAX);
        let there = there.find(|(_, settled)| !settled).map(|(start, _)| start);
        here.into_iter().chain(there).min()
    }

    /// Takes a prediction whose pane is not mature. `held` is what all joiners of the plan hold.
    pub fn predict(&mut self, plan: &JoinPlan, e: &Expect<'_>, held: usize) -> Predicted {
        let end = self.place(plan, e, held);
        if let Predicted::Pending { .. } = end {
            let op = Op::Predict {
                model: e.model,
                start_ms: e.start_ms,
                offset_ms: u32::try_from(e.time_ms - e.start_ms).unwrap_or(u32::MAX),
                subject: e.subject,
                key: e.key,
                views: Views::Given(e.views),
                whole: e.whole.1 as u16,
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

    fn place(&mut self, plan: &JoinPlan, e: &Expect<'_>, held: usize) -> Predicted {
        let theirs = self.find(e.key).and_then(|at| {
            let cohort = self.cohort(at.cohort)?;
            let scores = cohort.scores(at.row);
            let kept = || scores.iter().zip(cohort.classes(at.row));
            let rank_at = if e.whole.1 > 0 { e.whole.0 } else { usize::MAX };
            let same = kept()
                .zip(e.views)
                .enumerate()
                .all(|(i, ((a, k), (b, l)))| i == rank_at || (*a, *k) == (b.value(), *l));
            let first = cohort.settled || before(cohort.time_ms(at.row), kept(), e);
            Some((first, same, cohort.row(at.row).subject))
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

    /// Holds a prediction whose id none has, with the outcome of the one whose place it took.
    fn put(&mut self, e: &Expect<'_>, outcome: Option<(i64, u32)>) {
        let at = self.cohort_of(e);
        if let Some(cohort) = self.cohorts[at as usize].as_mut() {
            let before = cohort.bytes();
            let row = cohort.push(e.key, e.subject, e.time_ms, e.views);
            self.bytes += cohort.bytes() - before;
            if let Some((time, class)) = outcome {
                cohort.set_outcome(row, time, class);
            }
            self.pending += 1;
            let alone = self.kin_of(e.key).next().is_none();
            self.kindred |= !alone;
            self.index(e.key, Place { cohort: at, row });
        }
    }

    /// Lets go of the prediction of this key; returns its outcome.
    fn take_out(&mut self, key: Key) -> Option<(i64, u32)> {
        let at = self.find(key)?;
        let cohort = self.cohorts[at.cohort as usize].as_mut()?;
        let outcome = cohort.outcome(at.row);
        cohort.remove(at.row);
        self.pending -= 1;
        self.unindex(key);
        outcome
    }

    /// Gives a new prediction the outcome that other versions of its id have, and the one that was waiting.
    fn meet(&mut self, plan: &JoinPlan, e: &Expect<'_>) -> Option<Labelled> {
        for (time_ms, class) in self.told(e.key) {
            self.hand_on(plan, e.key, time_ms, class, e.classes, |_| ());
        }
        if self.waiting.is_empty() {
            return None;
        }
        let key = e.key.family();
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
        let mut all: Vec<(i64, u32)> = self.kin_of(key).filter_map(of).collect();
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
        kin.extend(self.kin_of(key).filter(on_time));
        // The table has them in the order of its history, which a restart or a spill changes.
        kin.sort_unstable_by_key(|at| self.key_at(*at));
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
        end.unwrap_or_else(|| self.wait(plan, key.family(), model, time_ms, class, waiting))
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
        let Some(cohort) = self.cohorts[at.cohort as usize].as_mut() else {
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
        let op = Op::Outcome {
            model: cohort.model,
            start_ms: cohort.start_ms,
            key: cohort.row(at.row).key,
            class,
            time_ms,
        };
        self.journal.write(&op, cohort.time_ms(at.row));
        if !cohort.settled {
            return if before.is_none() {
                Labelled::Matched
            } else {
                Labelled::Duplicate
            };
        }
        revised(Revision {
            now: cohort.matured(at.row),
            before: before.map(|(_, c)| c),
        });
        Labelled::Revised
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

    fn keep_waiting(&mut self, key: Key, model: u16, time_ms: i64, class: u32) {
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
    /// lets them go, or keeps them for revisions, of which those come at once whose outcome is there.
    pub fn mature(
        &mut self,
        plan: &JoinPlan,
        model: u16,
        line_ms: i64,
        classes: &[u32],
        mut each: impl FnMut(Ripe<'_>),
    ) {
        let here = self.places.range((model, i64::MIN)..(model, line_ms));
        let settled = |at: &u32| self.cohort(*at).is_none_or(|c| c.settled);
        let here = here.filter(|(_, at)| !settled(at)).map(|((_, s), _)| *s);
        let mut due: Vec<i64> = here.collect();
        if self.spilled.rows() > 0 {
            let there = self.spilled.panes(model, line_ms);
            due.extend(there.filter(|(_, settled)| !settled).map(|(s, _)| s));
            due.sort_unstable();
            due.dedup();
        }
        for start_ms in due {
            let mut met = Vec::new();
            self.mature_spilled(plan, (model, start_ms), &mut met, &mut each);
            self.mature_here(plan, (model, start_ms), &mut met, &mut each);
            for key in met {
                self.revise(plan, key, classes, &mut each);
            }
        }
    }

    /// The part of a pane that is in memory; `met` gets the keys whose late outcomes are waiting.
    fn mature_here(
        &mut self,
        plan: &JoinPlan,
        pane: (u16, i64),
        met: &mut Vec<Key>,
        each: &mut impl FnMut(Ripe<'_>),
    ) {
        let Some(&at) = self.places.get(&pane) else {
            return;
        };
        let Some(cohort) = self.cohorts[at as usize].as_mut() else {
            return;
        };
        for row in cohort.rows() {
            each(Ripe::Mature(cohort.matured(row)));
        }
        let live = cohort.live();
        self.pending -= live;
        if plan.revise {
            self.settled += live;
            cohort.settled = true;
            let before = cohort.bytes();
            cohort.shrink();
            self.bytes -= before - cohort.bytes();
            let keys = cohort.rows().map(|row| cohort.row(row).key);
            let waits = |k: &Key| self.kindred || self.waiting.contains_key(&k.family());
            met.extend(keys.filter(waits));
        } else {
            self.drop_cohort(at);
        }
    }

    /// The part that has spilled.
    fn mature_spilled(
        &mut self,
        plan: &JoinPlan,
        pane: (u16, i64),
        met: &mut Vec<Key>,
        each: &mut impl FnMut(Ripe<'_>),
    ) {
        if self.spilled.rows() == 0 {
            return;
        }
        let (kindred, waiting) = (self.kindred, &self.waiting);
        let live = self.spilled.visit(pane, (plan.revise, kindred), |part| {
            for row in part.rows() {
                each(Ripe::Mature(part.matured(row)));
                let key = part.row(row).key;
                if plan.revise && (kindred || waiting.contains_key(&key.family())) {
                    met.push(key);
                }
            }
        });
        self.pending -= live;
        if plan.revise {
            self.settled += self.spilled.settle(pane);
        }
    }

    /// Gives a mature prediction the late outcome that was waiting for its maturity.
    fn revise(
        &mut self,
        plan: &JoinPlan,
        key: Key,
        classes: &[u32],
        each: &mut impl FnMut(Ripe<'_>),
    ) {
        self.recall(key);
        for (time_ms, class) in self.told(key) {
            self.hand_on(plan, key, time_ms, class, 0, |r| each(Ripe::Revised(r)));
        }
        let key = key.family();
        let Some(Waiting { time_ms, class, .. }) = self.take_waiting(key) else {
            return;
        };
        self.journal.write(&Op::Forget { key }, time_ms);
        let end = self.label(plan, key, None, time_ms, class, classes, 0, |r| {
            each(Ripe::Revised(r));
        });
        each(Ripe::Ended(end));
    }

    /// Lets go of mature predictions of `model` in panes that begin before `floor_ms`: no window holds
    /// their panes any more.
    pub fn forget(&mut self, model: u16, floor_ms: i64) {
        let gone = self.places.range((model, i64::MIN)..(model, floor_ms));
        let gone: Vec<u32> = gone.map(|(_, &at)| at).collect();
        for at in gone {
            if let Some(cohort) = self.cohort(at).filter(|c| c.settled) {
                self.settled -= cohort.live();
                self.drop_cohort(at);
            }
        }
        if self.spilled.rows() > 0 {
            let gone = self.spilled.panes(model, floor_ms);
            let gone: Vec<i64> = gone.filter(|(_, settled)| *settled).map(|p| p.0).collect();
            for start_ms in gone {
                let how = (false, self.kindred);
                self.settled -= self.spilled.visit((model, start_ms), how, |_| ());
            }
        }
    }

    /// Bytes that predictions take in memory, their places in the index among them.
    #[inline]
    pub fn memory(&self) -> usize {
        let here = self.pending + self.settled - self.spilled.rows();
        self.bytes + here * INDEXED
    }

    /// Moves cohorts from memory to the store, the oldest first, until so many bytes are free or nothing is
    /// left to move.
    #[cold]
    pub fn spill(&mut self, spills: &dyn Spills, bytes: usize) {
        let least = self.memory().saturating_sub(bytes);
        while self.memory() > least
            && self.fault().is_none()
            && let Some(at) = self.oldest_here()
        {
            if let Some(cohort) = self.drop_cohort(at) {
                self.spilled.add(&cohort, self.kindred, spills);
            }
            if self.spilled.is_full() {
                self.spilled.flush(spills);
            }
        }
        self.spilled.flush(spills);
    }

    /// The cohort in memory that begins first, of all models.
    fn oldest_here(&self) -> Option<u32> {
        let (mut oldest, mut model) = (None, 0);
        while let Some((&(m, start_ms), &at)) = self.places.range((model, i64::MIN)..).next() {
            oldest = oldest.into_iter().chain([(start_ms, at)]).min();
            match m.checked_add(1) {
                Some(next) => model = next,
                None => break,
            }
        }
        oldest.map(|(_, at)| at)
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

    /// The joiner that wrote these segments. `kept` says of each model what is kept of its predictions; panes
    /// before `floor_of` a model are no longer held, those before `line_of` it, or of all models for
    /// `None`, are mature; `due_of` says up to when outcomes of a model's pane are on time.
    pub fn replay<'s>(
        segments: impl IntoIterator<Item = (&'s JournalMark, &'s [u8])>,
        kept: &[Kept],
        line_of: impl Fn(Option<u16>) -> i64,
        floor_of: impl Fn(u16) -> i64,
        due_of: impl Fn(u16, i64) -> i64,
    ) -> Result<Joiner, JournalError> {
        let mut joiner = Joiner::default();
        let mut marks = Vec::new();
        for (mark, bytes) in segments {
            marks.push(*mark);
            let mut reader = Reader::new(bytes, mark)?;
            while let Some(op) = reader.next()? {
                joiner.redo(op, kept, &floor_of, &due_of)?;
            }
        }
        joiner.resume(&marks, line_of);
        Ok(joiner)
    }

    /// After everything was [done again](Joiner::redo): goes on behind the marks.
    pub(super) fn resume(&mut self, marks: &[JournalMark], line_of: impl Fn(Option<u16>) -> i64) {
        for cohort in self.cohorts.iter_mut().flatten() {
            let before = cohort.bytes();
            cohort.shrink();
            self.bytes -= before - cohort.bytes();
            if cohort.start_ms < line_of(Some(cohort.model)) {
                cohort.settled = true;
                self.pending -= cohort.live();
                self.settled += cohort.live();
            }
        }
        let panes: Vec<_> = self.spilled.all().map(|(at, _)| at).collect();
        for at in panes {
            if at.1 < line_of(Some(at.0)) {
                let live = self.spilled.settle(at);
                self.pending -= live;
                self.settled += live;
            }
        }
        self.orphan(line_of);
        self.journal = Journal::resume(marks);
    }

    /// Does one operation of a journal again.
    pub(super) fn redo(
        &mut self,
        op: Op<'_>,
        kept: &[Kept],
        floor_of: impl Fn(u16) -> i64,
        due_of: impl Fn(u16, i64) -> i64,
    ) -> Result<(), JournalError> {
        match op {
            Op::Predict {
                model,
                start_ms,
                offset_ms,
                subject,
                key,
                views,
                whole,
            } => {
                if start_ms < floor_of(model) {
                    // Mature and gone, and so is a later one that it took the place of.
                    self.take_out(key);
                    return Ok(());
                }
                let Views::Written(views) = views else {
                    return Err(JournalError::Corrupt);
                };
                let views: Result<Vec<_>, _> = views.chunks_exact(12).map(view_of).collect();
                let mut views = views?;
                let mut at = (0, 0);
                if let Some(kept) = kept.get(usize::from(model)) {
                    kept.fit(&mut views, usize::from(whole));
                    at = kept.whole();
                }
                let e = Expect {
                    key,
                    model,
                    subject,
                    start_ms,
                    time_ms: start_ms + i64::from(offset_ms),
                    due_ms: due_of(model, start_ms),
                    views: &views,
                    whole: at,
                    classes: 0,
                };
                let outcome = self.take_out(key);
                self.put(&e, outcome);
            }
            Op::Outcome {
                model,
                start_ms,
                key,
                class,
                time_ms,
            } => {
                if start_ms >= floor_of(model)
                    && let Some(at) = self.find(key)
                    && let Some(cohort) = self.cohorts[at.cohort as usize].as_mut()
                {
                    cohort.set_outcome(at.row, time_ms, class);
                }
            }
            Op::Wait {
                key,
                class,
                time_ms,
                model,
            } => {
                self.keep_waiting(key, model, time_ms, class);
            }
            Op::Forget { key } => {
                self.take_waiting(key);
            }
            Op::Drop { model } => {
                self.drop_model(model);
                self.unname(model);
            }
        }
        Ok(())
    }

    /// Writes down that nothing is held of a model, whose views or cells are others than those of what the journal
    /// has of it: what comes later under its number is not to be taken for that, nor that for it.
    pub fn part_with(&mut self, model: u16) {
        self.journal.write(&Op::Drop { model }, i64::MIN);
        self.unname(model);
    }

    /// Outcomes that wait and named a model whose number means another now, or none, wait for any.
    fn unname(&mut self, model: u16) {
        let waiting = self.waiting.values_mut();
        waiting
            .filter(|w| w.model == model)
            .for_each(|w| w.model = ANY);
    }

    /// Lets go of all predictions of a model, none of which is settled.
    fn drop_model(&mut self, model: u16) {
        let mine = self.places.range((model, i64::MIN)..=(model, i64::MAX));
        let mine: Vec<u32> = mine.map(|(_, &at)| at).collect();
        for at in mine {
            let gone = self.drop_cohort(at);
            self.pending -= gone.map_or(0, |c| c.live());
        }
        let there: Vec<i64> = self.spilled.panes(model, i64::MAX).map(|p| p.0).collect();
        for start_ms in there {
            let how = (false, self.kindred);
            self.pending -= self.spilled.visit((model, start_ms), how, |_| ());
        }
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let index: usize = self.shards.iter().map(HashTable::allocation_size).sum();
        let cohorts: usize = self.cohorts.iter().flatten().map(Cohort::bytes).sum();
        // A hash map entry with its control byte at three quarters full.
        let waiting = (size_of::<(Key, Waiting)>() + 1) * 4 / 3;
        index
            + cohorts
            + self.waiting.capacity() * waiting
            + self.queued * size_of::<Key>()
            + self.places.len() * 2 * size_of::<((u16, i64), u32)>()
            + self.journal.fresh_bytes()
            + self.spilled.bytes()
            + size_of::<Joiner>()
    }

    fn cohort(&self, at: u32) -> Option<&Cohort> {
        self.cohorts.get(at as usize)?.as_ref()
    }

    fn cohort_of(&mut self, e: &Expect<'_>) -> u32 {
        let (model, start_ms) = (e.model, e.start_ms);
        if let Some(last) = self.cohort(self.last)
            && (last.model, last.start_ms) == (model, start_ms)
        {
            return self.last;
        }
        if let Some(&at) = self.places.get(&(model, start_ms)) {
            return at;
        }
        if let Some(last) = self
            .cohorts
            .get_mut(self.last as usize)
            .and_then(Option::as_mut)
        {
            let before = last.bytes();
            last.shrink();
            self.bytes -= before - last.bytes();
        }
        let mut cohort = Cohort::new(model, start_ms, e.due_ms, e.views.len());
        if let Some(facts) = self.spilled.facts((model, start_ms)) {
            cohort.settled = facts.settled;
        }
        self.last = self.begin(cohort);
        self.last
    }

    fn begin(&mut self, cohort: Cohort) -> u32 {
        let at = self.free.pop().unwrap_or(self.cohorts.len() as u32);
        if at as usize == self.cohorts.len() {
            self.cohorts.push(None);
        }
        self.bytes += cohort.bytes();
        self.places.insert((cohort.model, cohort.start_ms), at);
        self.cohorts[at as usize] = Some(cohort);
        at
    }

    fn drop_cohort(&mut self, at: u32) -> Option<Cohort> {
        let cohort = self.cohorts[at as usize].take()?;
        self.free.push(at);
        self.bytes -= cohort.bytes();
        self.places.remove(&(cohort.model, cohort.start_ms));
        for row in cohort.rows() {
            let key = cohort.row(row).key;
            if let Ok(entry) =
                self.shards[shard(key)].find_entry(hash(key), |p| p.cohort == at && p.row == row)
            {
                entry.remove();
            }
        }
        Some(cohort)
    }

    /// Has the predictions of an id in memory, if any are held at all.
    pub fn bring(&mut self, key: Key) {
        self.recall(key);
    }

    /// The prediction that is held under a key, in memory; of a family, all of them in the order of their keys.
    pub fn look(&self, key: Key) -> Vec<Held<'_>> {
        let mut all: Vec<Place> = match self.find_here(key) {
            Some(one) => vec![one],
            None => self.kin_of(key).collect(),
        };
        all.sort_unstable_by_key(|at| self.key_at(*at));
        let held = |at: &Place| {
            let cohort = self.cohort(at.cohort)?;
            Some(Held {
                subject: cohort.row(at.row).subject,
                time_ms: cohort.time_ms(at.row),
                scores: cohort.scores(at.row),
                outcome: cohort.outcome(at.row),
                settled: cohort.settled,
            })
        };
        all.iter().filter_map(held).collect()
    }

    /// Where a prediction is; one that had spilled is brought back, and its kin with it.
    #[inline]
    fn find(&mut self, key: Key) -> Option<Place> {
        self.recall(key);
        self.find_here(key)
    }

    /// Has all predictions of an id in memory that are held.
    #[inline]
    fn recall(&mut self, key: Key) {
        let spilled = self.spilled.rows() > 0;
        // Of an id that was never held twice nothing is elsewhere if it is here.
        if spilled && (self.kindred || self.kin_of(key).next().is_none()) {
            self.bring_back(key);
        }
    }

    #[cold]
    fn bring_back(&mut self, key: Key) {
        for taken in self.spilled.take(key) {
            let ((model, start_ms), facts) = (taken.at, taken.facts);
            let at = match self.places.get(&(model, start_ms)) {
                Some(&at) => at,
                None => {
                    let mut cohort = Cohort::new(model, start_ms, facts.due_ms, facts.views);
                    cohort.settled = facts.settled;
                    self.begin(cohort)
                }
            };
            let Some(cohort) = self.cohorts[at as usize].as_mut() else {
                continue;
            };
            let before = cohort.bytes();
            let row = cohort.read(taken.key, &taken.row);
            self.bytes += cohort.bytes() - before;
            if let Some(row) = row {
                self.index(taken.key, Place { cohort: at, row });
            }
        }
    }

    fn find_here(&self, key: Key) -> Option<Place> {
        let is = |p: &Place| {
            let cohort = self.cohorts[p.cohort as usize].as_ref();
            cohort.is_some_and(|c| c.row(p.row).key == key)
        };
        self.shards[shard(key)].find(hash(key), is).copied()
    }

    fn key_at(&self, at: Place) -> Option<[u64; 2]> {
        self.cohort(at.cohort).map(|c| c.row(at.row).key.0)
    }

    /// The predictions of the id of a key, by all versions, in no order.
    fn kin_of(&self, key: Key) -> impl Iterator<Item = Place> {
        let is = move |p: &&Place| {
            let cohort = self.cohorts[p.cohort as usize].as_ref();
            cohort.is_some_and(|c| c.row(p.row).key.family() == key.family())
        };
        let all = self.shards[shard(key)].iter_hash(hash(key));
        all.filter(is).copied()
    }

    fn index(&mut self, key: Key, place: Place) {
        let cohorts = &self.cohorts;
        let rehash = |p: &Place| {
            let cohort = cohorts[p.cohort as usize].as_ref();
            cohort.map_or(0, |c| hash(c.row(p.row).key))
        };
        let shard = &mut self.shards[shard(key)];
        make_way(shard, rehash);
        shard.insert_unique(hash(key), place, rehash);
    }

    fn unindex(&mut self, key: Key) {
        let cohorts = &self.cohorts;
        let is = |p: &Place| {
            let cohort = cohorts[p.cohort as usize].as_ref();
            cohort.is_some_and(|c| c.row(p.row).key == key)
        };
        if let Ok(entry) = self.shards[shard(key)].find_entry(hash(key), is) {
            entry.remove();
        }
    }

    /// Lets go of a waiting outcome; its key stays in the queue until that is swept.
    fn take_waiting(&mut self, key: Key) -> Option<Waiting> {
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
    time_ms > cohort.due_ms && !cohort.settled
}

/// The keys are hashes already: one half picks the place in a shard, the other the shard.
fn hash(key: Key) -> u64 {
    key.0[0]
}

fn shard(key: Key) -> usize {
    (key.0[1] % SHARDS as u64) as usize
}

/// Whether a held prediction goes before another of its id: by event time, then by its scores and their classes.
fn before<'a>(
    time_ms: i64,
    scores: impl Iterator<Item = (&'a f64, &'a u32)>,
    other: &Expect<'_>,
) -> bool {
    let theirs = other.views.iter().map(|(z, k)| (z.value(), *k));
    let by_scores = || scores.map(|(z, k)| (*z, *k)).partial_cmp(theirs);
    match time_ms.cmp(&other.time_ms) {
        Ordering::Equal => by_scores() != Some(Ordering::Greater),
        order => order == Ordering::Less,
    }
}

fn view_of(bytes: &[u8]) -> Result<(Score, u32), JournalError> {
    let (z, k) = bytes.split_at_checked(8).ok_or(JournalError::Corrupt)?;
    let z = z.try_into().map_err(|_| JournalError::Corrupt)?;
    let k = k.try_into().map_err(|_| JournalError::Corrupt)?;
    let z = Score::new(f64::from_le_bytes(z)).map_err(|_| JournalError::Corrupt)?;
    Ok((z, u32::from_le_bytes(k)))
}
