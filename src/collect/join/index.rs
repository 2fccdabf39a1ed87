//! The predictions of a joiner that are in memory: cohorts, and an index from key to cohort and
//! row.
//!
//! The index is split into 64 [tables](super::key_table), so that growth moves a sixty-fourth of it
//! at a time. The predictions of one pane lie in cohorts of a few megabytes each. This bounds what
//! one spill step moves, and what a growing cohort allocates at once.
//!
//! Always: a key is in the index exactly while its row is live. Siblings that lie, or once lay, in
//! several cohorts are [marked](super::cohort::Row::has_siblings); a prediction without the mark
//! has all its siblings beside it.

use super::cohort::{Cohort, CohortMeta, PaneId, Row};
use super::events::NewPrediction;
use super::key::Key;
use super::key_table::{COHORTS_MAX, KeyTable, Location, ROWS_MAX};
use super::spill_record::SpilledRow;
use std::collections::BTreeMap;

const TABLES: usize = 64;

/// Bytes of rows at which a cohort is full, so that the next one begins.
const COHORT_BYTES: usize = 4 << 20;

const _: () = assert!(COHORT_BYTES / size_of::<Row>() <= ROWS_MAX);

/// Keys that are removed together, so that their cache misses overlap.
const GROUP: usize = 32;

/// Model and start of a pane, and the number of the cohort within the pane.
type CohortId = (u16, i64, u32);

/// The cohorts in memory, and the index over their rows.
#[derive(Debug)]
pub(super) struct Index {
    tables: Vec<KeyTable>,
    cohorts: Vec<Option<Cohort>>,
    /// Unused positions in `cohorts`.
    free: Vec<u32>,
    /// Bytes of all cohorts.
    bytes: usize,
    ids: BTreeMap<CohortId, u32>,
    /// Cohort of the last prediction; it is cut to size when another one follows.
    last: u32,
}

impl Default for Index {
    fn default() -> Index {
        Index {
            tables: vec![KeyTable::default(); TABLES],
            cohorts: Vec::new(),
            free: Vec::new(),
            bytes: 0,
            ids: BTreeMap::new(),
            last: 0,
        }
    }
}

impl Index {
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Heap bytes of cohorts and index.
    pub fn heap_bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(KeyTable::bytes).sum();
        tables + self.bytes + self.ids.len() * 2 * size_of::<(CohortId, u32)>()
    }

    /// Whether no more cohorts of new predictions fit. As many again fit for predictions that come
    /// back from the spill table.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && self.cohorts.len() >= COHORTS_MAX / 2
    }

    pub fn cohort(&self, at: u32) -> Option<&Cohort> {
        self.cohorts.get(at as usize)?.as_ref()
    }

    /// A cohort, for changes that add and remove no rows.
    pub fn cohort_mut(&mut self, at: u32) -> Option<&mut Cohort> {
        self.cohorts.get_mut(at as usize)?.as_mut()
    }

    pub fn cohorts(&self) -> impl Iterator<Item = &Cohort> {
        self.cohorts.iter().flatten()
    }

    /// All cohorts, for changes that add and remove no rows.
    pub fn cohorts_mut(&mut self) -> impl Iterator<Item = &mut Cohort> {
        self.cohorts.iter_mut().flatten()
    }

    /// The cohorts of panes of a model that start before `before_ms`, in order, each with its
    /// start.
    pub fn before(&self, model: u16, before_ms: i64) -> impl Iterator<Item = (i64, u32)> {
        let range = (model, i64::MIN, 0)..(model, before_ms, 0);
        (self.ids.range(range)).map(|((_, start_ms, _), &at)| (*start_ms, at))
    }

    /// The cohorts of a pane, in order.
    pub fn of_pane(&self, pane: PaneId) -> Vec<u32> {
        self.ids_of(pane).map(|(_, &at)| at).collect()
    }

    fn ids_of(
        &self,
        (model, start_ms): PaneId,
    ) -> impl DoubleEndedIterator<Item = (&CohortId, &u32)> {
        self.ids
            .range((model, start_ms, 0)..=(model, start_ms, u32::MAX))
    }

    /// The first model, from `from` on, that has predictions here.
    pub fn next_model(&self, from: u16) -> Option<u16> {
        let cohorts = self.ids.range((from, i64::MIN, 0)..);
        let is_live = |at: u32| self.cohort(at).is_some_and(|c| c.live() > 0);
        let mut live = cohorts.filter(|&(_, &at)| is_live(at));
        live.next().map(|((model, ..), _)| *model)
    }

    /// The cohort that starts first, over all models.
    pub fn oldest(&self) -> Option<u32> {
        let (mut oldest, mut model) = (None, 0);
        while let Some((&(m, start_ms, nth), &at)) = self.ids.range((model, i64::MIN, 0)..).next() {
            oldest = oldest.into_iter().chain([(start_ms, m, nth, at)]).min();
            match m.checked_add(1) {
                Some(next) => model = next,
                None => break,
            }
        }
        oldest.map(|(.., at)| at)
    }

    /// Adds a prediction whose key is new; `mature` says whether its pane is mature.
    pub fn insert(
        &mut self,
        e: &NewPrediction<'_>,
        mature: impl FnOnce() -> bool,
    ) -> Option<Location> {
        let meta = || CohortMeta {
            due_ms: e.due_ms,
            mature: mature(),
            entries: e.views.len(),
        };
        self.add(e.key, (e.model, e.start_ms), meta, |cohort| {
            Some(cohort.push(e.key, e.slot, e.time_ms, e.views))
        })
    }

    /// Adds a prediction that had spilled.
    pub fn reload(&mut self, spilled: &SpilledRow) {
        let key = spilled.key;
        let meta = || spilled.meta;
        self.add(key, spilled.pane, meta, |c| c.decode(key, &spilled.row));
    }

    /// Adds the row that `push` writes, and its key.
    fn add(
        &mut self,
        key: Key,
        pane: PaneId,
        meta: impl FnOnce() -> CohortMeta,
        push: impl FnOnce(&mut Cohort) -> Option<u32>,
    ) -> Option<Location> {
        let at = self.cohort_for(pane, meta)?;
        let cohort = self.cohorts.get_mut(at as usize)?.as_mut()?;
        let before = cohort.bytes();
        let row = push(cohort);
        self.bytes += cohort.bytes() - before;
        let location = Location {
            cohort: at,
            row: row?,
        };
        self.tables[table(key)].insert(hash(key), location);
        Some(location)
    }

    /// The cohort to which the next prediction of a pane is added; `None` beyond [`COHORTS_MAX`].
    fn cohort_for(&mut self, pane: PaneId, meta: impl FnOnce() -> CohortMeta) -> Option<u32> {
        let has_room = |c: &Cohort| c.len() * c.row_bytes() < COHORT_BYTES;
        if let Some(last) = self.cohort(self.last)
            && last.pane() == pane
            && has_room(last)
        {
            return Some(self.last);
        }
        let newest = self.ids_of(pane).next_back();
        let newest = newest.map(|(&(_, _, nth), &at)| (nth, at));
        if let Some((_, at)) = newest
            && self.cohort(at).is_some_and(has_room)
        {
            self.turn_to(at);
            return Some(at);
        }
        let at = self.free.pop().unwrap_or(self.cohorts.len() as u32);
        if at as usize >= COHORTS_MAX {
            return None;
        }
        let cohort = Cohort::new(pane, meta());
        if at as usize == self.cohorts.len() {
            self.cohorts.push(None);
        }
        self.bytes += cohort.bytes();
        let nth = newest.map_or(0, |(nth, _)| nth + 1);
        self.ids.insert((pane.0, pane.1, nth), at);
        self.turn_to(at);
        self.cohorts[at as usize] = Some(cohort);
        Some(at)
    }

    fn turn_to(&mut self, at: u32) {
        self.shrink(self.last);
        self.last = at;
    }

    /// Frees the memory that growth left unused in a cohort.
    pub fn shrink(&mut self, at: u32) {
        if let Some(cohort) = self.cohorts.get_mut(at as usize).and_then(Option::as_mut) {
            let before = cohort.bytes();
            cohort.shrink();
            self.bytes -= before - cohort.bytes();
        }
    }

    pub fn shrink_all(&mut self) {
        (0..self.cohorts.len() as u32).for_each(|at| self.shrink(at));
    }

    /// Removes a prediction; returns its outcome.
    pub fn remove(&mut self, key: Key, at: Location) -> Option<(i64, u32)> {
        let cohort = self.cohorts.get_mut(at.cohort as usize)?.as_mut()?;
        let outcome = cohort.outcome(at.row);
        cohort.remove(at.row);
        self.remove_key(key, at);
        outcome
    }

    /// Removes a cohort and its keys.
    pub fn remove_cohort(&mut self, at: u32) -> Option<Cohort> {
        let cohort = self.cohorts.get_mut(at as usize)?.take()?;
        self.free.push(at);
        self.bytes -= cohort.bytes();
        let id = self.ids_of(cohort.pane()).find(|&(_, &c)| c == at);
        if let Some(id) = id.map(|(id, _)| *id) {
            self.ids.remove(&id);
        }
        let rows: Vec<u32> = cohort.rows().collect();
        for rows in rows.chunks(GROUP) {
            rows.iter().for_each(|row| self.touch(cohort.row(*row).key));
            for &row in rows {
                self.remove_key(cohort.row(row).key, Location { cohort: at, row });
            }
        }
        Some(cohort)
    }

    /// The prediction of this key.
    pub fn find(&self, key: Key) -> Option<Location> {
        let mut places = self.tables[table(key)].places(hash(key));
        places.find(|at| self.key_at(*at) == Some(key))
    }

    /// The predictions of the id of a key by all versions, in no order.
    pub fn siblings(&self, key: Key) -> impl Iterator<Item = Location> {
        let id = key.any_version();
        let is = move |at: &Location| self.key_at(*at).is_some_and(|k| k.any_version() == id);
        self.tables[table(key)].places(hash(key)).filter(is)
    }

    /// Reads the slot where a search for this key begins.
    #[inline]
    pub fn touch(&self, key: Key) {
        self.tables[table(key)].touch(hash(key));
    }

    /// The key of the prediction there.
    pub fn key_at(&self, at: Location) -> Option<Key> {
        self.cohort(at.cohort).map(|c| c.row(at.row).key)
    }

    /// Marks the predictions of an id if they lie in more than one cohort.
    pub fn mark_siblings(&mut self, key: Key) {
        let first = self.siblings(key).next().map(|at| at.cohort);
        if self.siblings(key).all(|at| Some(at.cohort) == first) {
            return;
        }
        let all: Vec<Location> = self.siblings(key).collect();
        for at in all {
            if let Some(cohort) = self.cohort_mut(at.cohort) {
                cohort.row_mut(at.row).mark_siblings();
            }
        }
    }

    /// Whether predictions of an id may be elsewhere: none is here, or one here is marked.
    #[inline]
    pub fn may_lack(&self, key: Key) -> bool {
        // A prediction without the mark has all others beside it.
        self.siblings(key).next().is_none_or(|at| {
            let cohort = self.cohort(at.cohort);
            cohort.is_some_and(|c| c.row(at.row).has_siblings())
        })
    }

    fn remove_key(&mut self, key: Key, at: Location) {
        self.tables[table(key)].remove(hash(key), at);
    }
}

/// Keys are hashes already: the first half is the hash within a table.
fn hash(key: Key) -> u64 {
    key.0[0]
}

/// The second half picks the table.
fn table(key: Key) -> usize {
    (key.0[1] % TABLES as u64) as usize
}
