//! Hash tables that entries pass through for years without the table growing.
//!
//! A table marks some of the places that were emptied as deleted, so that searches pass over them, and takes
//! them for full when it counts the room that is left. When none is left it doubles, unless it is no more than half
//! full: so a table that always holds some six tenths of its places grows to twice its size within hours, and
//! stays so. Here it is made anew at its size instead. At the fullest at which that happens, some 4 % of the entries
//! that leave mark their places, so it comes once in a table's worth of entries or more seldom.

use hashbrown::HashTable;

/// Makes room for one more entry at the same size, where what fills the table is mostly deleted marks.
pub fn reclaim_tombstones<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    if table.len() < table.capacity() {
        return;
    }
    let full = table.num_buckets() / 8 * 7;
    if table.len() > full / 16 * 15 || full == 0 {
        return;
    }
    let mut anew = HashTable::with_capacity(full);
    for entry in table.drain() {
        anew.insert_unique(hash(&entry), entry, &hash);
    }
    *table = anew;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::rng::Rng;
    use std::collections::VecDeque;

    /// Buckets after so many entries have passed through a table that holds `held` of them.
    fn buckets(
        held: usize,
        passes: usize,
        reclaim_tombstones: impl Fn(&mut HashTable<u64>),
    ) -> usize {
        let (mut rng, mut table) = (Rng::new(held as u64), HashTable::new());
        let mut inside: VecDeque<u64> = VecDeque::new();
        for _ in 0..held * passes {
            if inside.len() == held
                && let Some(oldest) = inside.pop_front()
                && let Ok(entry) = table.find_entry(oldest, |e| *e == oldest)
            {
                entry.remove();
            }
            let next = rng.bits();
            reclaim_tombstones(&mut table);
            table.insert_unique(next, next, |e| *e);
            inside.push_back(next);
        }
        assert_eq!(table.len(), held);
        assert!(inside.iter().all(|i| table.find(*i, |e| e == i).is_some()));
        table.num_buckets()
    }

    #[test]
    fn a_table_of_steady_size_does_not_grow_and_would_without() {
        // 1024 places hold 896; up to 840 are kept at that.
        for held in [500, 620, 700, 800, 830] {
            let with = buckets(held, 400, |t| reclaim_tombstones(t, |e| *e));
            assert_eq!(with, 1024, "{held}");
        }
        assert!(buckets(800, 400, |_| ()) > 1024);
        // A table that is full grows as ever.
        assert_eq!(buckets(890, 1, |t| reclaim_tombstones(t, |e| *e)), 1024);
        assert_eq!(buckets(897, 1, |t| reclaim_tombstones(t, |e| *e)), 2048);
    }
}
