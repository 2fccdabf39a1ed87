//! The predictions of a joiner that are in memory: cohorts, and an index from key to cohort and row.
//!
//! The index is cut into shards, so that growth moves a sixty-fourth of it at a time. The predictions of one pane lie
//! in cohorts of a few megabytes, one after the other: so what is moved out of memory in one step is never more than that,
//! nor is what a cohort that grows takes at once.
//!
//! Always: a key is in the index exactly while its row is live; predictions of one id that lie in several cohorts, or
//! did, are [marked](super::cohort::Row::has_kin), so that those which are not need not be looked for elsewhere.

use super::cohort::Cohort;
use super::joiner::NewPrediction;
use super::key::Key;
use super::spilled::{Facts, Taken};
use super::tombstones::reclaim_tombstones;
use hashbrown::HashTable;
use std::collections::BTreeMap;

const SHARDS: usize = 64;

/// Bytes of the rows of a cohort, from which on the next one begins.
const COHORT_BYTES: usize = 4 << 20;

/// Where a prediction is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub cohort: u32,
    pub row: u32,
}

/// Model and begin of a pane, and which of its cohorts.
type Name = (u16, i64, u32);

/// See the module.
#[derive(Debug)]
pub(super) struct Index {
    shards: Vec<HashTable<Place>>,
    cohorts: Vec<Option<Cohort>>,
    /// Places among the cohorts that have none.
    free: Vec<u32>,
    /// Bytes of all cohorts.
    bytes: usize,
    names: BTreeMap<Name, u32>,
    /// Cohort of the last prediction, cut to size when another begins.
    last: u32,
}

impl Default for Index {
    fn default() -> Index {
        Index {
            shards: vec![HashTable::new(); SHARDS],
            cohorts: Vec::new(),
            free: Vec::new(),
            bytes: 0,
            names: BTreeMap::new(),
            last: 0,
        }
    }
}

impl Index {
    /// Bytes of all cohorts.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Heap bytes of all of it.
    pub fn heap_bytes(&self) -> usize {
        let index: usize = self.shards.iter().map(HashTable::allocation_size).sum();
        index + self.bytes + self.names.len() * 2 * size_of::<(Name, u32)>()
    }

    pub fn cohort(&self, at: u32) -> Option<&Cohort> {
        self.cohorts.get(at as usize)?.as_ref()
    }

    /// A cohort, for what changes neither its rows nor their number.
    pub fn cohort_mut(&mut self, at: u32) -> Option<&mut Cohort> {
        self.cohorts.get_mut(at as usize)?.as_mut()
    }

    /// All cohorts.
    pub fn cohorts(&self) -> impl Iterator<Item = &Cohort> {
        self.cohorts.iter().flatten()
    }

    /// The same, for what changes neither their rows nor the number of these.
    pub fn cohorts_mut(&mut self) -> impl Iterator<Item = &mut Cohort> {
        self.cohorts.iter_mut().flatten()
    }

    /// The cohorts of panes of a model that begin before `before_ms`, in order, with the begins.
    pub fn before(&self, model: u16, before_ms: i64) -> impl Iterator<Item = (i64, u32)> {
        let mine = (model, i64::MIN, 0)..(model, before_ms, 0);
        self.names
            .range(mine)
            .map(|((_, start, _), &at)| (*start, at))
    }

    /// The cohorts of a pane, in order.
    pub fn of_pane(&self, (model, start_ms): (u16, i64)) -> Vec<u32> {
        let mine = (model, start_ms, 0)..=(model, start_ms, u32::MAX);
        self.names.range(mine).map(|(_, &at)| at).collect()
    }

    /// The cohort that begins first, of all models.
    pub fn oldest(&self) -> Option<u32> {
        let (mut oldest, mut model) = (None, 0);
        while let Some((&(m, start_ms, nth), &at)) = self.names.range((model, i64::MIN, 0)..).next()
        {
            oldest = oldest.into_iter().chain([(start_ms, m, nth, at)]).min();
            match m.checked_add(1) {
                Some(next) => model = next,
                None => break,
            }
        }
        oldest.map(|(.., at)| at)
    }

    /// Holds a prediction whose key none has; `matured` where its pane is.
    pub fn push(&mut self, e: &NewPrediction<'_>, matured: impl FnOnce() -> bool) -> Option<Place> {
        let facts = || Facts {
            due_ms: e.due_ms,
            matured: matured(),
            views: e.views.len(),
        };
        let at = self.cohort_for((e.model, e.start_ms), facts);
        let cohort = self.cohorts.get_mut(at as usize)?.as_mut()?;
        let before = cohort.bytes();
        let row = cohort.push(e.key, e.subject, e.time_ms, e.views);
        self.bytes += cohort.bytes() - before;
        let place = Place { cohort: at, row };
        self.insert(e.key, place);
        Some(place)
    }

    /// Holds a prediction that had spilled.
    pub fn put_back(&mut self, taken: &Taken) {
        let at = self.cohort_for(taken.at, || taken.facts);
        let Some(cohort) = self.cohorts.get_mut(at as usize).and_then(Option::as_mut) else {
            return;
        };
        let before = cohort.bytes();
        let row = cohort.read(taken.key, &taken.row);
        self.bytes += cohort.bytes() - before;
        if let Some(row) = row {
            self.insert(taken.key, Place { cohort: at, row });
        }
    }

    /// The cohort to which predictions of a pane are added.
    fn cohort_for(&mut self, pane: (u16, i64), facts: impl FnOnce() -> Facts) -> u32 {
        let has_room = |c: &Cohort| c.len() * c.row_bytes() < COHORT_BYTES;
        if let Some(last) = self.cohort(self.last)
            && (last.model, last.start_ms) == pane
            && has_room(last)
        {
            return self.last;
        }
        let mine = (pane.0, pane.1, 0)..=(pane.0, pane.1, u32::MAX);
        let newest = self.names.range(mine).next_back();
        let newest = newest.map(|(&(_, _, nth), &at)| (nth, at));
        if let Some((_, at)) = newest
            && self.cohort(at).is_some_and(has_room)
        {
            self.turn_to(at);
            return at;
        }
        let facts = facts();
        let cohort = Cohort::new(pane.0, pane.1, facts);
        let at = self.free.pop().unwrap_or(self.cohorts.len() as u32);
        if at as usize == self.cohorts.len() {
            self.cohorts.push(None);
        }
        self.bytes += cohort.bytes();
        let nth = newest.map_or(0, |(nth, _)| nth + 1);
        self.names.insert((pane.0, pane.1, nth), at);
        self.turn_to(at);
        self.cohorts[at as usize] = Some(cohort);
        at
    }

    fn turn_to(&mut self, at: u32) {
        self.shrink(self.last);
        self.last = at;
    }

    /// Gives back what growth left over.
    pub fn shrink(&mut self, at: u32) {
        if let Some(cohort) = self.cohorts.get_mut(at as usize).and_then(Option::as_mut) {
            let before = cohort.bytes();
            cohort.shrink();
            self.bytes -= before - cohort.bytes();
        }
    }

    /// The same of all cohorts.
    pub fn shrink_all(&mut self) {
        (0..self.cohorts.len() as u32).for_each(|at| self.shrink(at));
    }

    /// Lets go of a prediction; returns its outcome.
    pub fn take_out(&mut self, key: Key, at: Place) -> Option<(i64, u32)> {
        let cohort = self.cohorts.get_mut(at.cohort as usize)?.as_mut()?;
        let outcome = cohort.outcome(at.row);
        cohort.remove(at.row);
        self.remove(key, at);
        outcome
    }

    /// Lets go of a cohort.
    pub fn drop_cohort(&mut self, at: u32) -> Option<Cohort> {
        let cohort = self.cohorts.get_mut(at as usize)?.take()?;
        self.free.push(at);
        self.bytes -= cohort.bytes();
        let mine = (cohort.model, cohort.start_ms, 0)..=(cohort.model, cohort.start_ms, u32::MAX);
        let name = self.names.range(mine).find(|&(_, &c)| c == at);
        if let Some(name) = name.map(|(name, _)| *name) {
            self.names.remove(&name);
        }
        for row in cohort.rows() {
            self.remove(cohort.row(row).key, Place { cohort: at, row });
        }
        Some(cohort)
    }

    /// The prediction of this key.
    pub fn find(&self, key: Key) -> Option<Place> {
        let is = |p: &Place| self.key_at(*p) == Some(key);
        self.shards[shard(key)].find(hash(key), is).copied()
    }

    /// The predictions of the id of a key, by all versions, in no order.
    pub fn kin_of(&self, key: Key) -> impl Iterator<Item = Place> {
        let is = move |p: &&Place| {
            self.key_at(**p)
                .is_some_and(|theirs| theirs.any_version() == key.any_version())
        };
        let all = self.shards[shard(key)].iter_hash(hash(key));
        all.filter(is).copied()
    }

    /// The key of the prediction there.
    pub fn key_at(&self, at: Place) -> Option<Key> {
        self.cohort(at.cohort).map(|c| c.row(at.row).key)
    }

    /// Marks the predictions of an id where they lie in more than one cohort.
    pub fn mark_kin(&mut self, key: Key) {
        let first = self.kin_of(key).next().map(|at| at.cohort);
        if self.kin_of(key).all(|at| Some(at.cohort) == first) {
            return;
        }
        let all: Vec<Place> = self.kin_of(key).collect();
        for at in all {
            if let Some(cohort) = self.cohort_mut(at.cohort) {
                cohort.row_mut(at.row).set_kin();
            }
        }
    }

    /// Whether predictions of an id are here, and whether others of it may be elsewhere.
    #[inline]
    pub fn knows(&self, key: Key) -> (bool, bool) {
        let marked = |at: Place| {
            let cohort = self.cohort(at.cohort);
            cohort.is_some_and(|c| c.row(at.row).has_kin())
        };
        let mut kin = self.kin_of(key);
        match kin.next() {
            None => (false, true),
            // One that is not marked has all others beside it.
            Some(one) => (true, marked(one)),
        }
    }

    fn insert(&mut self, key: Key, place: Place) {
        let cohorts = &self.cohorts;
        let rehash = |p: &Place| {
            let cohort = cohorts[p.cohort as usize].as_ref();
            cohort.map_or(0, |c| hash(c.row(p.row).key))
        };
        let shard = &mut self.shards[shard(key)];
        reclaim_tombstones(shard, rehash);
        shard.insert_unique(hash(key), place, rehash);
    }

    fn remove(&mut self, key: Key, at: Place) {
        let is = |p: &Place| (p.cohort, p.row) == (at.cohort, at.row);
        if let Ok(entry) = self.shards[shard(key)].find_entry(hash(key), is) {
            entry.remove();
        }
    }
}

/// The keys are hashes already: one half picks the place in a shard, the other the shard.
fn hash(key: Key) -> u64 {
    key.0[0]
}

fn shard(key: Key) -> usize {
    (key.0[1] % SHARDS as u64) as usize
}
