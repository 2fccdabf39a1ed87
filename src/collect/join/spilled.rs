//! The predictions of a joiner for which memory has no room.
//!
//! Whole cohorts spill, the oldest first, because most outcomes come soon after their prediction. A
//! prediction whose id is asked for returns to memory, into a cohort of its pane, and leaves again
//! with that cohort. So a record in the table never changes, and the joiner only ever modifies
//! predictions in memory.
//!
//! Each cohort is written twice, [by id and by pane](super::spill_record). Memory keeps one bit a
//! row: a record counts only while its bit is set. Removing a prediction therefore writes nothing
//! at once; its name is deleted with the next write.
//!
//! Siblings come back together, whatever panes they belong to, and all siblings of one cohort go
//! into one list. Where they lie in several cohorts their rows are marked, and the table is read
//! before more of them is written or their name is deleted. Most siblings lie in one cohort,
//! because versions score a request at the same time; they need no such read.
//!
//! Always: a key is in memory or in the table, never in both; `rows` is the number of bits that are
//! set.
//!
//! When the table fails, the error is kept. The driver must stop then and take no snapshot, because
//! from here on the joiner has lost predictions.

use super::cohort::{Cohort, CohortMeta, PaneId};
use super::key::Key;
use super::spill_backend::{SpillBackend, SpillError, SpillTable};
use super::spill_batch::SpillBatch;
use super::spill_record::{Name, Record, RecordPlace, SpilledRow, id_name, list_name, records};
use std::collections::BTreeMap;
use std::ops::Range;

const LIST_ROWS: usize = 1024;

#[derive(Debug)]
struct Pane {
    number: u32,
    meta: CohortMeta,
    live: usize,
    /// For each list the bits of the rows that are still there.
    lists: Vec<Vec<u64>>,
}

/// The spilled predictions of one joiner.
#[derive(Debug, Default)]
pub(super) struct Spilled {
    table: Option<Box<dyn SpillTable>>,
    panes: BTreeMap<PaneId, Pane>,
    numbers: BTreeMap<u32, PaneId>,
    /// Number of the newest pane.
    last_number: u32,
    /// Number of predictions that have spilled.
    pub rows: usize,
    batch: SpillBatch,
    /// The value that was read last.
    value: Vec<u8>,
    fault: Option<SpillError>,
}

impl Spilled {
    /// Why the table failed, if it did.
    pub fn fault(&self) -> Option<&SpillError> {
        self.fault.as_ref()
    }

    /// Starts of the panes of a model before `before_ms`, ascending, and whether they are mature.
    pub fn panes_before(&self, model: u16, before_ms: i64) -> impl Iterator<Item = (i64, bool)> {
        let range = (model, i64::MIN)..(model, before_ms);
        let panes = self.panes.range(range);
        panes.map(|((_, start_ms), pane)| (*start_ms, pane.meta.mature))
    }

    /// The panes that `wanted` picks by their id and by whether they are mature.
    pub fn panes(&self, wanted: impl Fn(PaneId, bool) -> bool) -> Vec<PaneId> {
        let all = self.panes.iter();
        let all = all.filter(|(id, pane)| wanted(**id, pane.meta.mature));
        all.map(|(id, _)| *id).collect()
    }

    /// The first model, from `from` on, that has predictions here.
    pub fn next_model(&self, from: u16) -> Option<u16> {
        let mut panes = self.panes.range((from, i64::MIN)..);
        panes.next().map(|((model, _), _)| *model)
    }

    pub fn meta(&self, pane: PaneId) -> Option<CohortMeta> {
        self.panes.get(&pane).map(|p| p.meta)
    }

    /// Adds the predictions of a cohort to the next write; `has_siblings` if it may have several of
    /// an id.
    pub fn add(&mut self, cohort: &Cohort, has_siblings: bool, backend: &dyn SpillBackend) {
        if cohort.live() == 0 {
            return;
        }
        let id = |row: &u32| cohort.row(*row).key.any_version();
        let mut rows: Vec<u32> = cohort.rows().collect();
        if has_siblings {
            rows.sort_by_key(|row| id(row).0);
            if rows.iter().any(|row| cohort.row(*row).has_siblings()) {
                // The table must hold everything when it is read below.
                self.flush(backend);
            }
        }
        let number = self.add_pane(cohort);
        let mut ids = rows.chunk_by(|a, b| id(a) == id(b)).peekable();
        while ids.peek().is_some() {
            self.add_list(cohort, number, &mut ids);
            // A pane can be longer than a batch may be.
            if self.is_full() {
                self.flush(backend);
            }
        }
    }

    /// Adds the rows of a cohort to the count of its pane; returns the number of the pane.
    fn add_pane(&mut self, cohort: &Cohort) -> u32 {
        let next = &mut self.last_number;
        let pane = self.panes.entry(cohort.pane()).or_insert_with(|| {
            *next += 1;
            Pane {
                number: *next,
                meta: cohort.meta(),
                live: 0,
                lists: Vec::new(),
            }
        });
        pane.live += cohort.live();
        self.rows += cohort.live();
        self.numbers.insert(pane.number, cohort.pane());
        pane.number
    }

    /// Adds one list of records, with all siblings of an id in it.
    fn add_list<'c>(
        &mut self,
        cohort: &Cohort,
        number: u32,
        ids: &mut impl Iterator<Item = &'c [u32]>,
    ) {
        let list = self.panes.get(&cohort.pane()).map_or(0, |p| p.lists.len()) as u32;
        let first = self.batch.len();
        let mut written = Vec::with_capacity(LIST_ROWS);
        let mut n = 0;
        while n < LIST_ROWS
            && let Some(siblings) = ids.next()
        {
            let from = self.batch.len();
            for &row in siblings {
                let place = RecordPlace {
                    pane: number,
                    list,
                    place: n as u16,
                };
                self.batch.append(cohort, row, place);
                n += 1;
            }
            let head = cohort.row(siblings[0]);
            let name = id_name(head.key);
            written.push((name, from..self.batch.len(), head.has_siblings()));
        }
        self.batch
            .put(list_name(number, list), first..self.batch.len());
        if let Some(pane) = self.panes.get_mut(&cohort.pane()) {
            pane.lists.push(ones(n));
        }
        for (name, new, elsewhere) in written {
            let value = if elsewhere {
                self.with_stored(&name, new)
            } else {
                new
            };
            self.batch.put(name, value);
        }
    }

    /// The new records of an id in the batch, after a copy of those that the table has of it.
    fn with_stored(&mut self, name: &Name, new: Range<usize>) -> Range<usize> {
        if !self.read(name) {
            return new;
        }
        let value = std::mem::take(&mut self.value);
        let from = self.batch.len();
        for record in self.live_records(&value) {
            self.batch.append_encoded(record.bytes);
        }
        self.value = value;
        if self.batch.len() == from {
            return new;
        }
        self.batch.repeat(new);
        from..self.batch.len()
    }

    /// The records of a value that count.
    fn live_records<'v>(&self, value: &'v [u8]) -> Vec<Record<'v>> {
        records(value).filter(|r| self.is_live(r)).collect()
    }

    /// Whether a record counts.
    fn is_live(&self, record: &Record<'_>) -> bool {
        let place = record.place;
        let pane = self.numbers.get(&place.pane);
        let pane = pane.and_then(|id| self.panes.get(id));
        let list = pane.and_then(|p| p.lists.get(place.list as usize));
        list.is_some_and(|bits| is_set(bits, usize::from(place.place)))
    }

    pub fn is_full(&self) -> bool {
        self.batch.is_full()
    }

    pub fn flush(&mut self, backend: &dyn SpillBackend) {
        if self.table.is_none() && self.fault.is_none() {
            match backend.open() {
                Ok(table) => self.table = Some(table),
                Err(error) => self.fault = Some(error),
            }
        }
        self.write();
    }

    fn write(&mut self) {
        if let (Some(table), None) = (&mut self.table, &self.fault)
            && let Err(error) = self.batch.write(&mut **table)
        {
            self.fault = Some(error);
        }
    }

    /// Removes all predictions of an id and returns them.
    pub fn take(&mut self, key: Key) -> Vec<SpilledRow> {
        let name = id_name(key);
        if !self.read(&name) {
            return Vec::new();
        }
        let value = std::mem::take(&mut self.value);
        let live = self.live_records(&value);
        let row = |record: &Record<'_>| {
            let pane = *self.numbers.get(&record.place.pane)?;
            Some(SpilledRow {
                pane,
                meta: self.meta(pane)?,
                key: record.key,
                row: record.row().to_vec(),
            })
        };
        let all = live.iter().filter_map(row).collect();
        if !live.is_empty() {
            self.batch.delete(name);
        }
        for record in live {
            self.clear(record.place);
        }
        self.value = value;
        self.write_deletions();
        all
    }

    /// Clears the bit of a record.
    fn clear(&mut self, at: RecordPlace) {
        let Some(&id) = self.numbers.get(&at.pane) else {
            return;
        };
        let Some(pane) = self.panes.get_mut(&id) else {
            return;
        };
        let (list, place) = (at.list as usize, usize::from(at.place));
        let bits = pane.lists.get_mut(list);
        if let Some(word) = bits.and_then(|bits| bits.get_mut(place / 64)) {
            *word &= !(1 << (place % 64));
        }
        pane.live -= 1;
        self.rows -= 1;
        if pane.live == 0 {
            self.remove_pane(id);
        }
    }

    /// Shows all predictions of a pane, in cohorts that are parts of it, and removes them unless
    /// `retain` is set. Returns how many there were.
    pub fn visit(&mut self, id: PaneId, retain: bool, mut each: impl FnMut(&Cohort)) -> usize {
        let Some(pane) = self.panes.get(&id) else {
            return 0;
        };
        let (number, meta, live) = (pane.number, pane.meta, pane.live);
        let mut seen = 0;
        for list in 0..pane.lists.len() {
            let bits = self.panes.get(&id).map(|p| p.lists[list].clone());
            let bits = bits.unwrap_or_default();
            if bits.iter().all(|word| *word == 0) {
                continue;
            }
            if !self.read(&list_name(number, list as u32)) {
                break;
            }
            let part = part_of(id, meta, &self.value, &bits);
            seen += part.live();
            each(&part);
            if !retain {
                self.delete_names(&part, number);
            }
        }
        if seen != live && self.fault.is_none() {
            self.fault = Some(SpillError(format!(
                "the spill store has {seen} of {live} predictions of a pane: its files were changed or the disk is \
                 failing; check the disk of the state directory and start again"
            )));
        }
        if !retain {
            self.rows -= live;
            self.remove_pane(id);
        }
        live
    }

    /// Deletes the names of the ids in a part of a pane, unless siblings lie in other panes.
    fn delete_names(&mut self, part: &Cohort, number: u32) {
        for row in part.rows().map(|row| part.row(row)) {
            let name = id_name(row.key);
            if !row.has_siblings() || !self.has_others(&name, number) {
                self.batch.delete(name);
            }
        }
        self.write_deletions();
    }

    /// Whether an id has predictions in another pane.
    fn has_others(&mut self, name: &Name, number: u32) -> bool {
        self.read(name) && records(&self.value).any(|r| r.place.pane != number && self.is_live(&r))
    }

    /// Notes that the predictions of a pane are retained for revisions only; returns how many there
    /// are.
    pub fn set_mature(&mut self, pane: PaneId) -> usize {
        let Some(pane) = self.panes.get_mut(&pane) else {
            return 0;
        };
        pane.meta.mature = true;
        pane.live
    }

    pub fn bytes(&self) -> usize {
        let lists = |p: &Pane| {
            let words = p.lists.iter().map(|l| l.capacity() * 8 + 16);
            p.lists.capacity() * size_of::<Vec<u64>>() + words.sum::<usize>()
        };
        self.panes.values().map(lists).sum::<usize>()
            + self.panes.len() * 2 * size_of::<(PaneId, Pane, u32, PaneId)>()
            + self.batch.bytes()
            + self.value.capacity()
    }

    /// Removes a pane whose predictions are all gone.
    fn remove_pane(&mut self, id: PaneId) {
        if let Some(pane) = self.panes.remove(&id) {
            self.numbers.remove(&pane.number);
            for list in 0..pane.lists.len() as u32 {
                self.batch.delete(list_name(pane.number, list));
            }
        }
        if self.rows == 0 {
            // A new table replaces one that is full of names to delete.
            self.batch.clear();
            self.table = None;
        }
    }

    /// Writes the batch if many deletions wait in it.
    fn write_deletions(&mut self) {
        if self.batch.has_many_deletions() {
            self.write();
        }
    }

    fn read(&mut self, name: &Name) -> bool {
        let (Some(table), None) = (&mut self.table, &self.fault) else {
            return false;
        };
        match table.read(name, &mut self.value) {
            Ok(found) => found,
            Err(error) => {
                self.fault = Some(error);
                false
            }
        }
    }
}

/// The rows of a list that are still there.
fn part_of(pane: PaneId, meta: CohortMeta, list: &[u8], bits: &[u64]) -> Cohort {
    let mut part = Cohort::new(pane, meta);
    for (i, record) in records(list).enumerate() {
        if is_set(bits, i) {
            part.decode(record.key, record.row());
        }
    }
    part
}

fn is_set(bits: &[u64], at: usize) -> bool {
    bits.get(at / 64)
        .is_some_and(|word| word >> (at % 64) & 1 == 1)
}

/// A list of `n` set bits.
fn ones(n: usize) -> Vec<u64> {
    let word = |i: usize| match n - 64 * i {
        64.. => u64::MAX,
        rest => (1 << rest) - 1,
    };
    (0..n.div_ceil(64)).map(word).collect()
}
