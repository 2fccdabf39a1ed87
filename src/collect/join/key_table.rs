//! A hash table of places by key, 8 bytes an entry.
//!
//! ```text
//!   slot   tag 22 bits │ cohort 25 bits │ row 17 bits        all ones: empty
//! ```
//! An entry holds 22 bits of its key, the *tag*, beside the place. So a search reads one cache line
//! of the table and the row of its answer, and adding, removing and growing read no row. With
//! places alone in a table of the usual kind a search reads control bytes, place and row, one after
//! the other, and growing reads every row.
//!
//! Always: the entries are in ascending order; each lies at its *home*, the slot to which its tag
//! is proportional, or after it without an empty slot between. Growing keeps the order, so it is
//! one pass over both arrays.
//!
//! Cost: a search passes over 3 slots on average when the table is fullest, mostly in one cache
//! line; adding and removing move 13 slots at most on average. Entries take 10 to 13 bytes each.
//! The scheme is ordered linear probing (Amble, Knuth. *Ordered hash tables.* 1974).

use std::hint::black_box;

const ROW_BITS: u32 = 17;
const COHORT_BITS: u32 = 25;
const PLACE_BITS: u32 = ROW_BITS + COHORT_BITS;
const TAG_BITS: u32 = u64::BITS - PLACE_BITS;

/// Rows of a cohort that an entry can distinguish.
pub(super) const ROWS_MAX: usize = 1 << ROW_BITS;

/// Cohorts that an entry can distinguish; the last number belongs to empty slots.
pub(super) const COHORTS_MAX: usize = (1 << COHORT_BITS) - 1;

/// Content of an empty slot; greater than every entry.
const EMPTY: u64 = u64::MAX;

/// Where a prediction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    pub cohort: u32,
    pub row: u32,
}

/// Places by the hash of their keys.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyTable {
    /// One slot for each home, and more for what the last homes have no room for.
    slots: Vec<u64>,
    homes: usize,
    len: usize,
}

impl KeyTable {
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    /// The places of all keys that agree with this hash in its first bits, in order.
    #[inline]
    pub fn places(&self, hash: u64) -> impl Iterator<Item = Location> {
        let tag = tag(hash);
        let slots = self.slots.iter().skip(self.first(tag << PLACE_BITS));
        slots
            .take_while(move |slot| **slot != EMPTY && **slot >> PLACE_BITS == tag)
            .map(|slot| location(*slot))
    }

    /// Reads the slot where a search for this hash begins.
    #[inline]
    pub fn touch(&self, hash: u64) {
        // Otherwise the compiler would drop the load; a reference would keep only the address.
        black_box(self.slots.get(self.home(tag(hash))).copied());
    }

    /// Adds a place that is not in the table.
    pub fn insert(&mut self, hash: u64, place: Location) {
        // Beyond four fifths searches become long.
        if self.len >= self.homes / 5 * 4 {
            self.grow();
        }
        let mut entry = entry(hash, place);
        let mut at = self.first(entry);
        while let Some(slot) = self.slots.get_mut(at) {
            entry = std::mem::replace(slot, entry);
            if entry == EMPTY {
                break;
            }
            at += 1;
        }
        if entry != EMPTY {
            self.push(entry);
        }
        self.len += 1;
    }

    pub fn remove(&mut self, hash: u64, place: Location) {
        let entry = entry(hash, place);
        let mut at = self.first(entry);
        if self.slots.get(at) != Some(&entry) {
            return;
        }
        // The entries that follow move up, until one is at its home.
        while let Some(next) = self.slots.get(at + 1).copied()
            && next != EMPTY
            && self.home(next >> PLACE_BITS) <= at
        {
            self.slots[at] = next;
            at += 1;
        }
        self.slots[at] = EMPTY;
        self.len -= 1;
    }

    /// The first slot, from this entry's home on, that is empty or whose entry is not less.
    #[inline]
    fn first(&self, entry: u64) -> usize {
        let mut at = self.home(entry >> PLACE_BITS);
        while self.slots.get(at).is_some_and(|slot| *slot < entry) {
            at += 1;
        }
        at
    }

    /// The slot to which a tag is proportional.
    #[inline]
    fn home(&self, tag: u64) -> usize {
        ((tag * self.homes as u64) >> TAG_BITS) as usize
    }

    /// Makes the table a quarter larger.
    #[cold]
    fn grow(&mut self) {
        self.homes += self.homes / 4 + 5;
        let room = self.homes + self.homes / 256;
        let mut grown = Vec::with_capacity(room);
        grown.resize(room, EMPTY);
        let (mut free, old) = (0, std::mem::replace(&mut self.slots, grown));
        for entry in old.into_iter().filter(|slot| *slot != EMPTY) {
            let at = self.home(entry >> PLACE_BITS).max(free);
            match self.slots.get_mut(at) {
                Some(slot) => *slot = entry,
                None => self.push(entry),
            }
            free = at + 1;
        }
    }

    /// Adds the last entry after all slots.
    #[cold]
    fn push(&mut self, entry: u64) {
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(4 + self.homes / 256);
        }
        self.slots.push(entry);
    }
}

#[inline]
fn tag(hash: u64) -> u64 {
    hash >> PLACE_BITS
}

#[inline]
fn entry(hash: u64, place: Location) -> u64 {
    tag(hash) << PLACE_BITS | u64::from(place.cohort) << ROW_BITS | u64::from(place.row)
}

#[inline]
fn location(entry: u64) -> Location {
    Location {
        cohort: (entry >> ROW_BITS) as u32 & COHORTS_MAX as u32,
        row: entry as u32 & (ROWS_MAX as u32 - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::rng::Rng;
    use std::collections::BTreeSet;

    /// What the table has to be: in order, no gap between an entry and its home, all there.
    fn check(table: &KeyTable, all: &BTreeSet<u64>) {
        let entries = table.slots.iter().filter(|slot| **slot != EMPTY);
        assert!(entries.eq(all));
        assert_eq!(table.len, all.len());
        for (at, slot) in table.slots.iter().enumerate().filter(|s| *s.1 != EMPTY) {
            let home = table.home(slot >> PLACE_BITS);
            assert!(home <= at && !table.slots[home..at].contains(&EMPTY));
        }
    }

    /// Adds and removes at random; all tags are among the first or the last `tags`.
    fn run(tags: u64, steps: u32) {
        let (mut rng, mut table, mut all) = (Rng::new(tags), KeyTable::default(), BTreeSet::new());
        for step in 0..steps {
            let tag = match rng.bits() % 2 {
                0 => rng.bits() % tags,
                _ => (1 << TAG_BITS) - 1 - rng.bits() % tags,
            };
            let place = Location {
                cohort: rng.bits() as u32 % (COHORTS_MAX as u32),
                row: rng.bits() as u32 % (ROWS_MAX as u32),
            };
            let hash = tag << PLACE_BITS | rng.bits() >> TAG_BITS;
            all.insert(entry(hash, place));
            table.insert(hash, place);
            assert!(table.places(hash).any(|at| at == place));
            if rng.bits() % 3 == 0
                && let Some(gone) = all.range(rng.bits()..).next().copied()
            {
                all.remove(&gone);
                table.remove(gone, location(gone));
                table.remove(gone, location(gone));
                assert!(table.places(gone).all(|at| at != location(gone)));
            }
            if step % 64 == 0 {
                check(&table, &all);
            }
        }
        check(&table, &all);
    }

    #[test]
    fn entries_are_in_order_near_their_homes_and_found() {
        run(1, 500);
        run(30, 3_000);
        run(1 << (TAG_BITS - 1), 20_000);
    }

    #[test]
    fn a_table_takes_as_much_memory_as_its_comment_says() {
        let (mut rng, mut table) = (Rng::new(3), KeyTable::default());
        for n in 1..200_000u32 {
            let place = Location {
                cohort: n,
                row: n % 7,
            };
            table.insert(rng.bits(), place);
            let each = table.bytes() as f64 / f64::from(n);
            assert!(n < 5_000 || (10.0..13.0).contains(&each), "{n}: {each}");
        }
    }
}
