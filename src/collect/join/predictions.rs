//! The predictions that a joiner retains, in memory and spilled.
//!
//! A caller asks for an id and gets its predictions in memory: those that [spilled](super::spilled)
//! are reloaded first. The same id may be retained once for each version that scored it; these
//! predictions are *siblings*. They are found in one probe of the [index](super::index), and share
//! their outcomes: an outcome that is on time for one sibling and late for another
//! [marks](super::cohort::Row::has_late_outcome) the other, which is revised when it matures.
//! Thanks to the mark, a spilled pane that matures reloads only such predictions.
//!
//! Always: `pending` and `matured` count the live rows of pending and mature cohorts, spilled ones
//! included.

use super::cohort::{Cohort, PaneId};
use super::events::{NewPrediction, Retained};
use super::index::Index;
use super::key::Key;
use super::key_table::Location;
use super::matured::Matured;
use super::spill_backend::{SpillBackend, SpillError};
use super::spilled::Spilled;
use std::collections::BTreeMap;

/// Bytes of an entry of the index, at most.
const INDEXED: usize = 13;

#[derive(Debug, Default)]
pub(super) struct Predictions {
    index: Index,
    spilled: Spilled,
    /// Predictions that are not mature.
    pub pending: usize,
    /// Mature predictions that are retained for revisions.
    pub matured: usize,
    /// Whether two versions were ever retained under one id.
    has_siblings: bool,
}

impl Predictions {
    /// Predictions that are not in memory.
    pub fn spilled(&self) -> usize {
        self.spilled.rows
    }

    /// Why the spill table failed, if it did.
    pub fn fault(&self) -> Option<&SpillError> {
        self.spilled.fault()
    }

    /// Bytes that predictions and their index entries take in memory.
    #[inline]
    pub fn memory(&self) -> usize {
        let here = self.pending + self.matured - self.spilled.rows;
        self.index.bytes() + here * INDEXED
    }

    pub fn bytes(&self) -> usize {
        self.index.heap_bytes() + self.spilled.bytes()
    }

    /// Retains a prediction whose key is new, with the outcome of the prediction that it replaces.
    /// Returns that outcome instead if it is late for this one.
    pub fn insert(
        &mut self,
        e: &NewPrediction<'_>,
        outcome: Option<(i64, u32)>,
    ) -> Option<(i64, u32)> {
        let late = outcome.filter(|(time_ms, _)| *time_ms > e.due_ms);
        let pane = (e.model, e.start_ms);
        let mature = || self.spilled.meta(pane).is_some_and(|meta| meta.mature);
        let alone = self.index.siblings(e.key).next().is_none();
        let Some(at) = self.index.insert(e, mature) else {
            return late;
        };
        self.pending += 1;
        if let Some(cohort) = self.index.cohort_mut(at.cohort)
            && let Some((time_ms, class)) = outcome.filter(|_| late.is_none())
        {
            cohort.set_outcome(at.row, time_ms, class);
        }
        if alone {
            return late;
        }
        self.has_siblings = true;
        self.index.mark_siblings(e.key);
        let outcomes = self.sibling_outcomes(e.key);
        if let Some(cohort) = self.index.cohort_mut(at.cohort)
            && outcomes.iter().any(|&(time_ms, _)| cohort.is_late(time_ms))
        {
            cohort.row_mut(at.row).mark_late_outcome();
        }
        late
    }

    /// Removes the prediction of this key; returns its outcome.
    pub fn remove(&mut self, key: Key) -> Option<(i64, u32)> {
        let at = self.find(key)?;
        self.pending -= 1;
        self.index.remove(key, at)
    }

    /// Whether no more predictions are taken: the index is full, or the spill table failed.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.index.is_full() || self.fault().is_some()
    }

    /// Reads the slot where a search for this key begins.
    #[inline]
    pub fn touch(&self, key: Key) {
        self.index.touch(key);
    }

    /// Reads the row of this key, if it is in memory.
    #[inline]
    pub fn touch_row(&self, key: Key) {
        // Otherwise the compiler would drop the look-up.
        std::hint::black_box(self.index.find(key));
    }

    /// Where the prediction of this key is; reloads it if it had spilled, and its siblings with it.
    #[inline]
    pub fn find(&mut self, key: Key) -> Option<Location> {
        self.reload(key);
        self.index.find(key)
    }

    pub fn cohort(&self, at: Location) -> Option<&Cohort> {
        self.index.cohort(at.cohort)
    }

    /// Reloads all predictions of an id that had spilled.
    #[inline]
    pub fn reload(&mut self, key: Key) {
        if self.spilled.rows > 0 && self.index.may_lack(key) {
            self.reload_spilled(key);
        }
    }

    #[cold]
    fn reload_spilled(&mut self, key: Key) {
        let all = self.spilled.take(key);
        all.iter().for_each(|row| self.index.reload(row));
        if !all.is_empty() {
            self.index.mark_siblings(key);
        }
    }

    /// The prediction of a key, if it is in memory; for a key without version all siblings, in the
    /// order of their keys.
    pub fn retained_of(&self, key: Key) -> Vec<Retained<'_>> {
        let mut all: Vec<Location> = match self.index.find(key) {
            Some(one) => vec![one],
            None => self.index.siblings(key).collect(),
        };
        self.sort(&mut all);
        let retained = |at: &Location| {
            let cohort = self.cohort(*at)?;
            Some(Retained {
                slot: cohort.row(at.row).slot(),
                time_ms: cohort.time_ms(at.row),
                scores: cohort.scores(at.row),
                outcome: cohort.outcome(at.row),
                matured: cohort.is_mature(),
            })
        };
        all.iter().filter_map(retained).collect()
    }

    /// Adds the predictions of an id for which an outcome is on time to `to`, in the order of their
    /// keys.
    pub fn find_on_time(&mut self, key: Key, time_ms: i64, to: &mut Vec<Location>) {
        self.reload(key);
        let on_time = |at: &Location| self.cohort(*at).is_some_and(|c| !c.is_late(time_ms));
        to.extend(self.index.siblings(key).filter(on_time));
        // The index lists them in the order of its history, which a restart or a spill changes.
        self.sort(to);
    }

    /// Whether a prediction of this id, by any version, is in memory.
    pub fn has(&self, key: Key) -> bool {
        self.index.siblings(key).next().is_some()
    }

    fn sort(&self, all: &mut [Location]) {
        all.sort_unstable_by_key(|at| self.index.key_at(*at).map(|key| key.0));
    }

    /// The outcomes of the siblings of this key, sorted.
    pub fn sibling_outcomes(&self, key: Key) -> Vec<(i64, u32)> {
        if !self.has_siblings {
            return Vec::new();
        }
        let of = |at: Location| {
            let cohort = self.cohort(at)?;
            let other = cohort.row(at.row).key != key;
            cohort.outcome(at.row).filter(|_| other)
        };
        let mut all: Vec<(i64, u32)> = self.index.siblings(key).filter_map(of).collect();
        all.sort_unstable();
        all
    }

    /// Attaches an outcome to one prediction, and marks the siblings for which it is late.
    pub fn set_outcome(&mut self, at: Location, time_ms: i64, class: u32) {
        let Some(cohort) = self.index.cohort_mut(at.cohort) else {
            return;
        };
        cohort.set_outcome(at.row, time_ms, class);
        if !self.has_siblings {
            return;
        }
        let key = cohort.row(at.row).key;
        let late = |at: &Location| self.cohort(*at).is_some_and(|c| c.is_late(time_ms));
        // Mostly empty, and then nothing is allocated.
        let all: Vec<Location> = self.index.siblings(key).filter(late).collect();
        for at in all {
            if let Some(cohort) = self.index.cohort_mut(at.cohort) {
                cohort.row_mut(at.row).mark_late_outcome();
            }
        }
    }

    /// Calls `each` with the slot of each stream and the number of its pending predictions, pane
    /// by pane.
    pub fn each_pending(&mut self, mut each: impl FnMut(u32, u64)) {
        let mut count = |cohort: &Cohort| {
            let mut slots: BTreeMap<u32, u64> = BTreeMap::new();
            for row in cohort.rows() {
                *slots.entry(cohort.row(row).slot()).or_default() += 1;
            }
            for (slot, n) in slots {
                each(slot, n);
            }
        };
        for cohort in self.index.cohorts().filter(|c| !c.is_mature()) {
            count(cohort);
        }
        for pane in self.spilled.panes(|_, mature| !mature) {
            self.spilled.visit(pane, true, &mut count);
        }
    }

    /// The models that have retained predictions.
    pub fn models(&self) -> Vec<u16> {
        let (mut all, mut next) = (Vec::new(), Some(0));
        while let Some(from) = next {
            let (here, there) = (self.index.next_model(from), self.spilled.next_model(from));
            let model = here.into_iter().chain(there).min();
            all.extend(model);
            next = model.and_then(|model| model.checked_add(1));
        }
        all
    }

    /// Start of the oldest pending pane of `model`.
    pub fn oldest_ms(&self, model: u16) -> Option<i64> {
        let pending = |c: &Cohort| !c.is_mature() && c.live() > 0;
        let mut here = self.index.before(model, i64::MAX);
        let here = here.find(|&(_, at)| self.index.cohort(at).is_some_and(pending));
        let here = here.map(|(start_ms, _)| start_ms);
        if self.spilled.rows == 0 {
            return here;
        }
        let mut there = self.spilled.panes_before(model, i64::MAX);
        let there = there.find(|(_, mature)| !mature);
        here.into_iter().chain(there.map(|p| p.0)).min()
    }

    /// Starts of the pending panes of `model` that start before `before_ms`, ascending.
    pub fn pending_panes(&self, model: u16, before_ms: i64) -> Vec<i64> {
        let pending = |at: u32| self.index.cohort(at).is_some_and(|c| !c.is_mature());
        let here = self.index.before(model, before_ms);
        let here = here
            .filter(|(_, at)| pending(*at))
            .map(|(start_ms, _)| start_ms);
        let mut all: Vec<i64> = here.collect();
        if self.spilled.rows > 0 {
            let there = self.spilled.panes_before(model, before_ms);
            all.extend(there.filter(|(_, mature)| !mature).map(|p| p.0));
            all.sort_unstable();
        }
        all.dedup();
        all
    }

    /// Shows the predictions of a pane, which are mature now, and removes them unless `retain`
    /// keeps them for revisions. Returns the keys for which there may be a late outcome: a sibling
    /// has one, or one `waits`. Without `retain`, these are only keys without an outcome.
    pub fn mature(
        &mut self,
        pane: PaneId,
        retain: bool,
        waits: impl Fn(Key) -> bool,
        mut each: impl FnMut(Matured<'_>),
    ) -> Vec<Key> {
        let mut late = Vec::new();
        let mut show = |cohort: &Cohort| {
            for row in cohort.rows() {
                each(cohort.matured(row));
                let lacks = cohort.outcome(row).is_none();
                let row = cohort.row(row);
                if (retain || lacks) && (row.has_late_outcome() || waits(row.key.any_version())) {
                    late.push(row.key);
                }
            }
        };
        if self.spilled.rows > 0 {
            self.pending -= self.spilled.visit(pane, retain, &mut show);
            if retain {
                self.matured += self.spilled.set_mature(pane);
            }
        }
        for at in self.index.of_pane(pane) {
            let Some(cohort) = self.index.cohort_mut(at).filter(|c| !c.is_mature()) else {
                continue;
            };
            show(cohort);
            self.pending -= cohort.live();
            if retain {
                self.matured += cohort.live();
                cohort.set_mature();
                self.index.shrink(at);
            } else {
                self.index.remove_cohort(at);
            }
        }
        late
    }

    /// Removes the mature predictions of `model` in panes that start before `before_ms`.
    pub fn evict(&mut self, model: u16, before_ms: i64) {
        let panes: Vec<(i64, u32)> = self.index.before(model, before_ms).collect();
        for (_, at) in panes {
            if self.index.cohort(at).is_some_and(Cohort::is_mature) {
                let gone = self.index.remove_cohort(at);
                self.matured -= gone.map_or(0, |c| c.live());
            }
        }
        let mature: Vec<i64> = (self.spilled.panes_before(model, before_ms))
            .filter_map(|(start_ms, mature)| mature.then_some(start_ms))
            .collect();
        for start_ms in mature {
            self.matured -= self.spilled.visit((model, start_ms), false, |_| ());
        }
    }

    /// Removes all predictions of a model. None of them may be mature.
    pub fn evict_model(&mut self, model: u16) {
        let panes: Vec<(i64, u32)> = self.index.before(model, i64::MAX).collect();
        for (_, at) in panes {
            let gone = self.index.remove_cohort(at);
            self.pending -= gone.map_or(0, |c| c.live());
        }
        let there: Vec<_> = self.spilled.panes_before(model, i64::MAX).collect();
        for (start_ms, _) in there {
            self.pending -= self.spilled.visit((model, start_ms), false, |_| ());
        }
    }

    /// Removes the predictions of some streams, by slot. None may be mature.
    #[cold]
    pub fn remove_of(&mut self, is_one: impl Fn(u32) -> bool) {
        let mut keys: Vec<Key> = Vec::new();
        let mut collect = |cohort: &Cohort| {
            let rows = cohort.rows().map(|row| cohort.row(row));
            keys.extend(rows.filter(|row| is_one(row.slot())).map(|row| row.key));
        };
        self.index.cohorts().for_each(&mut collect);
        for pane in self.spilled.panes(|_, _| true) {
            self.spilled.visit(pane, true, &mut collect);
        }
        for key in keys {
            self.remove(key);
        }
    }

    /// Marks the panes that start before `sealed_until` of their model as mature, once all
    /// predictions are restored.
    pub fn finish_restore(&mut self, sealed_until: impl Fn(u16) -> i64) {
        self.index.shrink_all();
        let sealed = |(model, start_ms): PaneId| start_ms < sealed_until(model);
        for cohort in self.index.cohorts_mut() {
            if sealed(cohort.pane()) {
                cohort.set_mature();
                self.pending -= cohort.live();
                self.matured += cohort.live();
            }
        }
        for pane in self.spilled.panes(|pane, _| sealed(pane)) {
            let live = self.spilled.set_mature(pane);
            self.pending -= live;
            self.matured += live;
        }
    }

    /// Moves cohorts to the spill table, the oldest first, until `bytes` are free or no cohort is
    /// left.
    #[cold]
    pub fn spill(&mut self, backend: &dyn SpillBackend, bytes: usize) {
        let least = self.memory().saturating_sub(bytes);
        while self.memory() > least
            && self.fault().is_none()
            && let Some(at) = self.index.oldest()
        {
            if let Some(cohort) = self.index.remove_cohort(at) {
                self.spilled.add(&cohort, self.has_siblings, backend);
            }
            if self.spilled.is_full() {
                self.spilled.flush(backend);
            }
        }
        self.spilled.flush(backend);
    }
}
