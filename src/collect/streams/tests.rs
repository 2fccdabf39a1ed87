//! The slots of streams, and their search by names.

use super::*;

impl Named for Key {
    fn key(&self) -> &Key {
        self
    }
}

#[test]
fn a_stream_takes_the_first_vacant_slot_and_is_found_whatever_came_and_went() {
    let mut slots: Slots<Key> = Slots::default();
    let mut rng = crate::stats::rng::Rng::new(3);
    for n in 0..4000 {
        let slot = (rng.uniform() * slots.len() as f64) as usize;
        match rng.uniform() < 0.45 {
            true => {
                let gone = slots.remove(slot);
                assert!(gone.is_none_or(|key| slots.find(&key.names()).is_none()));
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
            let found = |(slot, key): (usize, &Key)| slots.find(&key.names()) == Some(slot);
            assert!(slots.iter().all(found));
        }
    }
}
