//! The table that is searched by names.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn hash(model: &str) -> u32 {
    Names::new(model, "v1", "").hash()
}

#[test]
fn every_key_is_found_again_and_no_other() {
    let keys: Vec<String> = (0..1000).map(|i| format!("model-{i}")).collect();
    let mut table = Table::default();
    for (slot, key) in keys.iter().enumerate() {
        let h = hash(key);
        assert_eq!(table.find(h, |s| keys[s] == *key), None);
        table.insert(h, slot);
    }
    for (slot, key) in keys.iter().enumerate() {
        let h = hash(key);
        assert_eq!(table.find(h, |s| keys[s] == *key), Some(slot));
    }
    for (slot, key) in keys.iter().enumerate() {
        table.remove(hash(key), slot);
        assert_eq!(table.find(hash(key), |s| keys[s] == *key), None);
    }
    assert!(table.used == 0 && table.places.iter().all(|place| *place == (0, 0)));
}

impl Named for Key {
    fn key(&self) -> &Key {
        self
    }
}

#[test]
fn a_stream_takes_the_first_vacant_slot_whatever_came_and_went() {
    let mut slots: Slots<Key> = Slots::default();
    let mut rng = crate::stats::rng::Rng::new(3);
    for n in 0..4000 {
        let slot = (rng.uniform() * slots.len() as f64) as usize;
        match rng.uniform() < 0.45 {
            true => {
                slots.remove(slot);
            }
            false => {
                let vacant = (0..slots.len()).find(|slot| slots.get(*slot).is_none());
                let first = vacant.unwrap_or(slots.len());
                assert_eq!(slots.insert(Key::new(&n.to_string(), "", "")), first);
            }
        }
        if n % 1000 == 500 {
            // A restart puts streams back into slots behind vacant ones.
            assert!(slots.insert_at(slots.len() + 3, Key::new("back", &n.to_string(), "")));
        }
    }
}

proptest! {
    /// Hashes of few bits, so that most collide and runs wrap around the end.
    #[test]
    fn a_table_holds_what_a_map_would_whatever_was_removed(
        steps in proptest::collection::vec((0..24u32, 0..6u32, any::<bool>()), 1..200),
    ) {
        let (mut table, mut map) = (Table::default(), HashMap::new());
        for (key, bits, adds) in steps {
            let known: Option<u32> = map.get(&key).copied();
            match (adds, known) {
                (true, None) => {
                    // The last place of a table of any size is among their homes.
                    let hash = bits.wrapping_sub(3);
                    table.insert(hash, key as usize);
                    map.insert(key, hash);
                }
                (false, Some(hash)) => {
                    table.remove(hash, key as usize);
                    map.remove(&key);
                }
                _ => {}
            }
            prop_assert_eq!(table.used, map.len());
            for key in 0..24 {
                let hash = map.get(&key).copied();
                let at = |hash| table.find(hash, |slot| slot == key as usize);
                prop_assert_eq!(hash.and_then(at), hash.map(|_| key as usize));
                let all = (0..6u32).map(|bits| bits.wrapping_sub(3));
                let found = all.filter(|hash| at(*hash).is_some()).count();
                prop_assert_eq!(found, usize::from(hash.is_some()));
            }
        }
    }
}
