//! Rehashing in place of a hash table whose entries come and go.
//!
//! When an entry leaves, the table marks some of the freed buckets as deleted (tombstones), so that searches pass over
//! them. Tombstones count as full when the table computes how much room is left. When no room is left the table doubles,
//! unless it is at most half full. A table that stays six tenths full therefore grows to twice its size within hours and
//! never shrinks. Here it is rebuilt at its own size instead. In the worst case 4 % of the entries that leave become
//! tombstones, so a rebuild happens at most once per table's worth of entries.

use hashbrown::HashTable;

/// Makes room for one more entry at the same size, if what fills the table is mostly tombstones.
pub fn reclaim_tombstones<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    if table.len() < table.capacity() {
        return;
    }
    let full = table.num_buckets() / 8 * 7;
    if table.len() > full / 16 * 15 || full == 0 {
        return;
    }
    let mut rebuilt = HashTable::with_capacity(full);
    for entry in table.drain() {
        rebuilt.insert_unique(hash(&entry), entry, &hash);
    }
    *table = rebuilt;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::rng::Rng;
    use std::collections::VecDeque;

    /// Buckets once `held * passes` entries went through a table that holds `held`.
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
        // 1024 buckets hold 896 entries; with up to 840 the table keeps its size.
        for held in [500, 620, 700, 800, 830] {
            let with = buckets(held, 400, |t| reclaim_tombstones(t, |e| *e));
            assert_eq!(with, 1024, "{held}");
        }
        assert!(buckets(800, 400, |_| ()) > 1024);
        // A full table grows as usual.
        assert_eq!(buckets(890, 1, |t| reclaim_tombstones(t, |e| *e)), 1024);
        assert_eq!(buckets(897, 1, |t| reclaim_tombstones(t, |e| *e)), 2048);
    }
}
