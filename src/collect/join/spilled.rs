//! The predictions of a joiner that memory had no room for.
//!
//! FullVector cohorts go, the oldest first: outcomes come mostly soon after their predictions, so the newest are
//! asked for most. A prediction that is asked for comes back into memory, into a cohort of its pane, and
//! leaves again with that; so what is in the store never changes, and everything a joiner does to a
//! prediction it does in memory.
//!
//! ```text
//!   0 │ family 16              → for each version: a record        to find an id
//!   1 │ pane u32 │ list u32    → some 1024 records                 to go through all of a pane
//!
//!   record   key 16 │ pane u32 │ list u32 │ place u16 │ views u16 │ row
//! ```
//! A row is 16 bytes and 12 for each view, as in a [`cohort`](super::cohort). Both forms are written once and
//! in order of their names, which a store takes in without sorting anything again. In memory stays one bit
//! a row, that says whether it is still there: a record counts only while the bit of its place is
//! set. So taking one away writes nothing at once; names that mean nothing any more go with the next write.
//!
//! Where ids are held once for each version (kin), all of a family comes back together, from whatever panes: who asks for
//! an id gets all of its kin. A family that lay in several cohorts is marked in its rows; only of such ones what the store
//! has is read before more of it is written, or before a name is taken away. Kin that lie in one cohort, as those of
//! versions that score the same requests at the same time mostly do, go and come together and need no look.
//!
//! Always: a key is in memory or in the store, never in both; `rows` is the number of bits that are set.
//!
//! When the store fails, that is kept and the joiner holds what it has: whoever drives it must stop, and
//! make no snapshot, for from here on the joiner knows less than it was told.

use super::cohort::Cohort;
use super::key::Key;
use super::spill_backend::{SpillBackend, SpillError, SpillTable};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rows of one list.
const LIST_ROWS: usize = 1024;
/// Bytes of rows that are written at once.
const BATCH_BYTES: usize = 16 << 20;
/// Names that mean nothing any more and wait for the next write, at most.
const DEAD_MAX: usize = 1 << 16;
/// Bytes of a record before its row: key, pane, list, place, number of views.
const HEAD: usize = 28;

/// Model and begin of a pane.
pub(super) type At = (u16, i64);
/// Names of rows and of lists are equally long.
type Name = [u8; 17];

/// What a cohort says of all its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub due_ms: i64,
    pub matured: bool,
    pub views: usize,
}

/// A prediction that was taken out.
#[derive(Debug)]
pub(super) struct Taken {
    pub at: At,
    pub facts: Facts,
    pub key: Key,
    pub row: Vec<u8>,
}

#[derive(Debug)]
struct Pane {
    number: u32,
    facts: Facts,
    live: usize,
    /// For each list the rows that are still there.
    lists: Vec<Vec<u64>>,
}

/// A name with its value in the batch, or without.
#[derive(Debug, Clone, Copy)]
struct Entry {
    name: Name,
    from: u32,
    len: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Spilled {
    store: Option<Box<dyn SpillTable>>,
    panes: BTreeMap<At, Pane>,
    numbers: BTreeMap<u32, At>,
    next: u32,
    rows: usize,
    entries: Vec<Entry>,
    batch: Vec<u8>,
    value: Vec<u8>,
    fault: Option<SpillError>,
}

impl Spilled {
    /// Predictions that are there.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Why the store failed, if it did.
    pub fn fault(&self) -> Option<&SpillError> {
        self.fault.as_ref()
    }

    /// Panes that have predictions there, and whether they are matured.
    pub fn panes(&self, model: u16, before_ms: i64) -> impl Iterator<Item = (i64, bool)> {
        let mine = self.panes.range((model, i64::MIN)..(model, before_ms));
        mine.map(|((_, start), p)| (*start, p.facts.matured))
    }

    /// All panes.
    pub fn all(&self) -> impl Iterator<Item = (At, Facts)> {
        self.panes.iter().map(|(at, p)| (*at, p.facts))
    }

    /// What is known of a pane.
    pub fn facts(&self, at: At) -> Option<Facts> {
        self.panes.get(&at).map(|p| p.facts)
    }

    /// Adds the predictions of a cohort to what is written next; `kindred` where it may have several of an id.
    pub fn add(&mut self, cohort: &Cohort, kindred: bool, spills: &dyn SpillBackend) {
        let at = (cohort.model, cohort.start_ms);
        if cohort.live() == 0 {
            return;
        }
        let mut rows: Vec<u32> = cohort.rows().collect();
        let family = |row: &u32| cohort.row(*row).key.any_version();
        if kindred {
            rows.sort_by_key(|row| family(row).0);
            if rows.iter().any(|row| cohort.row(*row).has_kin()) {
                // What is read back below is then all there is.
                self.flush(spills);
            }
        }
        let next = &mut self.next;
        let pane = self.panes.entry(at).or_insert_with(|| {
            *next += 1;
            Pane {
                number: *next,
                facts: cohort.facts(),
                live: 0,
                lists: Vec::new(),
            }
        });
        let (number, before) = (pane.number, pane.lists.len());
        self.numbers.insert(number, at);
        pane.live += rows.len();
        self.rows += rows.len();
        let mut kin = rows.chunk_by(|a, b| family(a) == family(b)).peekable();
        let mut lists = Vec::new();
        let mut heads = Vec::with_capacity(LIST_ROWS);
        while kin.peek().is_some() {
            let (list, first) = ((before + lists.len()) as u32, self.batch.len());
            let mut n = 0;
            // All of a family in one list.
            while n < LIST_ROWS
                && let Some(one) = kin.next()
            {
                let from = self.batch.len();
                for &row in one {
                    self.batch.extend(bytes_of(cohort.row(row).key));
                    self.batch.extend(number.to_le_bytes());
                    self.batch.extend(list.to_le_bytes());
                    self.batch.extend((n as u16).to_le_bytes());
                    self.batch
                        .extend((cohort.facts().views as u16).to_le_bytes());
                    cohort.write(row, &mut self.batch);
                    n += 1;
                }
                let elsewhere = cohort.row(one[0]).has_kin();
                heads.push((name_of(family(&one[0])), from..self.batch.len(), elsewhere));
            }
            let name = list_name(number, list);
            self.entries.push(entry(name, first, self.batch.len()));
            lists.push(ones(n));
            for (name, new, elsewhere) in heads.drain(..) {
                let (from, to) = match elsewhere {
                    true => self.joined(&name, new),
                    false => (new.start, new.end),
                };
                self.entries.push(entry(name, from, to));
            }
            // A pane can be longer than a batch may be.
            if self.is_full() {
                self.flush(spills);
            }
        }
        if let Some(pane) = self.panes.get_mut(&at) {
            pane.lists.extend(lists);
        }
    }

    /// The records of a family in the batch, with those that the store has of it before them.
    fn joined(&mut self, name: &Name, new: Range<usize>) -> (usize, usize) {
        if !self.read(name) {
            return (new.start, new.end);
        }
        let value = std::mem::take(&mut self.value);
        let from = self.batch.len();
        for record in self.held(&value) {
            self.batch.extend_from_slice(record.bytes);
        }
        self.value = value;
        if self.batch.len() == from {
            return (new.start, new.end);
        }
        self.batch.extend_from_within(new);
        (from, self.batch.len())
    }

    /// The records of a value that count.
    fn held<'v>(&self, value: &'v [u8]) -> Vec<Record<'v>> {
        records(value).filter(|r| self.holds(r)).collect()
    }

    /// Whether a record counts.
    fn holds(&self, record: &Record<'_>) -> bool {
        let pane = self
            .numbers
            .get(&record.pane)
            .and_then(|at| self.panes.get(at));
        let list = pane.and_then(|p| p.lists.get(record.list));
        let word = list.and_then(|l| l.get(record.place / 64));
        word.is_some_and(|word| word >> (record.place % 64) & 1 == 1)
    }

    /// Whether so much waits to be written that it should be.
    pub fn is_full(&self) -> bool {
        self.batch.len() >= BATCH_BYTES
    }

    /// Writes what was added and what is to go.
    pub fn flush(&mut self, spills: &dyn SpillBackend) {
        if self.store.is_none() && self.fault.is_none() {
            match spills.open() {
                Ok(store) => self.store = Some(store),
                Err(error) => self.fault = Some(error),
            }
        }
        self.write();
    }

    fn write(&mut self) {
        let (Some(store), None) = (&mut self.store, &self.fault) else {
            return;
        };
        // Where a name goes and comes again, it stays.
        self.entries
            .sort_unstable_by_key(|e| (e.name, e.len == 0, e.from));
        self.entries.dedup_by_key(|e| e.name);
        let value = |e: &Entry| &self.batch[e.from as usize..][..e.len as usize];
        let mut entries = self
            .entries
            .iter()
            .map(|e| (&e.name[..], (e.len > 0).then(|| value(e))));
        if let Err(error) = store.write(&mut entries) {
            self.fault = Some(error);
        }
        self.entries.clear();
        self.batch.clear();
        self.entries.shrink_to(DEAD_MAX);
        self.batch.shrink_to(BATCH_BYTES / 16);
    }

    /// Takes all predictions of an id out.
    pub fn take(&mut self, key: Key) -> Vec<Taken> {
        let name = name_of(key.any_version());
        if !self.read(&name) {
            return Vec::new();
        }
        let value = std::mem::take(&mut self.value);
        let live = self.held(&value);
        let taken = |record: &Record<'_>| {
            let at = *self.numbers.get(&record.pane)?;
            Some(Taken {
                at,
                facts: self.facts(at)?,
                key: record.key,
                row: record.bytes[HEAD..].to_vec(),
            })
        };
        let all = live.iter().filter_map(taken).collect();
        if !live.is_empty() {
            self.entries.push(entry(name, 0, 0));
        }
        for record in live {
            self.clear(&record);
        }
        self.value = value;
        self.bury();
        all
    }

    /// A record counts no more.
    fn clear(&mut self, record: &Record<'_>) {
        let Some(&at) = self.numbers.get(&record.pane) else {
            return;
        };
        let Some(pane) = self.panes.get_mut(&at) else {
            return;
        };
        if let Some(word) = pane
            .lists
            .get_mut(record.list)
            .and_then(|l| l.get_mut(record.place / 64))
        {
            *word &= !(1 << (record.place % 64));
        }
        pane.live -= 1;
        self.rows -= 1;
        if pane.live == 0 {
            self.close(at);
        }
    }

    /// Shows all predictions of a pane, in cohorts that are parts of it; they stay if they are `kept`.
    /// Returns how many there were.
    pub fn visit(&mut self, at: At, kept: bool, mut each: impl FnMut(&Cohort)) -> usize {
        let Some(pane) = self.panes.get(&at) else {
            return 0;
        };
        let (number, facts, live) = (pane.number, pane.facts, pane.live);
        let mut seen = 0;
        for list in 0..pane.lists.len() {
            let name = list_name(number, list as u32);
            let bits = self.panes.get(&at).map(|p| p.lists[list].clone());
            let bits = bits.unwrap_or_default();
            if bits.iter().all(|word| *word == 0) {
                continue;
            }
            if !self.read(&name) {
                break;
            }
            let part = part_of(at, facts, &self.value, &bits);
            seen += part.live();
            each(&part);
            if !kept {
                for row in part.rows().map(|row| part.row(row)) {
                    let name = name_of(row.key.any_version());
                    // The name goes with the last of a family.
                    if !row.has_kin() || !self.has_others(&name, number) {
                        self.entries.push(entry(name, 0, 0));
                    }
                }
                self.bury();
            }
        }
        if seen != live && self.fault.is_none() {
            self.fault = Some(SpillError(format!(
                "the spill store has {seen} of {live} predictions of a pane; its files were changed or the disk is \
                 failing: check the disk under the state directory and start again"
            )));
        }
        if !kept {
            self.rows -= live;
            self.close(at);
        }
        live
    }

    /// Whether a family has predictions of another pane.
    fn has_others(&mut self, name: &Name, pane: u32) -> bool {
        if !self.read(name) {
            return false;
        }
        records(&self.value).any(|r| r.pane != pane && self.holds(&r))
    }

    /// From now on the predictions of a pane are kept for revisions only.
    pub fn mature(&mut self, at: At) -> usize {
        let Some(pane) = self.panes.get_mut(&at) else {
            return 0;
        };
        pane.facts.matured = true;
        pane.live
    }

    /// Heap bytes of what stays in memory, but for what is being written.
    pub fn bytes(&self) -> usize {
        let lists = |p: &Pane| {
            let words = p.lists.iter().map(|l| l.capacity() * 8 + 16);
            p.lists.capacity() * size_of::<Vec<u64>>() + words.sum::<usize>()
        };
        let panes = self.panes.values().map(lists).sum::<usize>();
        panes
            + self.panes.len() * 2 * size_of::<(At, Pane, u32, At)>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.batch.capacity()
            + self.value.capacity()
    }

    /// Forgets a pane whose predictions are all gone.
    fn close(&mut self, at: At) {
        if let Some(pane) = self.panes.remove(&at) {
            self.numbers.remove(&pane.number);
            let lists = (0..pane.lists.len() as u32).map(|l| list_name(pane.number, l));
            self.entries.extend(lists.map(|name| entry(name, 0, 0)));
        }
        if self.rows == 0 {
            // An empty store, rather than one full of names that are to go.
            self.entries.clear();
            self.store = None;
        }
    }

    /// Lets dead names go when there are many.
    fn bury(&mut self) {
        if self.entries.len() >= DEAD_MAX {
            self.write();
        }
    }

    fn read(&mut self, name: &Name) -> bool {
        let (Some(store), None) = (&mut self.store, &self.fault) else {
            return false;
        };
        match store.read(name, &mut self.value) {
            Ok(found) => found,
            Err(error) => {
                self.fault = Some(error);
                false
            }
        }
    }
}

/// The rows of a list that are still there.
fn part_of(at: At, facts: Facts, list: &[u8], bits: &[u64]) -> Cohort {
    let mut part = Cohort::new(at.0, at.1, facts);
    for (i, record) in records(list).enumerate() {
        if bits.get(i / 64).is_some_and(|w| w >> (i % 64) & 1 == 1) {
            part.read(record.key, &record.bytes[HEAD..]);
        }
    }
    part
}

/// One prediction, as it was written.
struct Record<'a> {
    key: Key,
    /// Number of its pane.
    pane: u32,
    list: usize,
    place: usize,
    /// All of it.
    bytes: &'a [u8],
}

/// The records of a value, up to one that is none.
fn records(mut rest: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let half = |at: usize| Some(u16::from_le_bytes(rest.get(at..at + 2)?.try_into().ok()?));
        let views = usize::from(half(HEAD - 2)?);
        let bytes = rest.get(..HEAD + Cohort::row_len(views))?;
        let record = Record {
            key: key_of(bytes)?,
            pane: word(16)?,
            list: word(20)? as usize,
            place: usize::from(half(24)?),
            bytes,
        };
        rest = &rest[bytes.len()..];
        Some(record)
    })
}

fn entry(name: Name, from: usize, to: usize) -> Entry {
    Entry {
        name,
        from: from as u32,
        len: (to - from) as u32,
    }
}

fn ones(n: usize) -> Vec<u64> {
    let word = |i: usize| match n - 64 * i {
        64.. => u64::MAX,
        rest => (1 << rest) - 1,
    };
    (0..n.div_ceil(64)).map(word).collect()
}

fn bytes_of(key: Key) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key.0[0].to_be_bytes());
    bytes[8..].copy_from_slice(&key.0[1].to_be_bytes());
    bytes
}

fn key_of(bytes: &[u8]) -> Option<Key> {
    let half = |at: usize| Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some(Key([half(0)?, half(8)?]))
}

fn name_of(key: Key) -> Name {
    let mut name = [0; 17];
    name[1..].copy_from_slice(&bytes_of(key));
    name
}

fn list_name(pane: u32, list: u32) -> Name {
    let mut name = [0; 17];
    name[0] = 1;
    name[1..5].copy_from_slice(&pane.to_be_bytes());
    name[5..9].copy_from_slice(&list.to_be_bytes());
    name
}
