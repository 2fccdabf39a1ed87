//! Which subject an event belongs to, found without making a `String`.
//!
//! An open-addressing table of slot numbers, hashed over the borrowed parts of the key; a `HashMap`
//! would need an owned key to ask with. The hash is a folded multiplication per eight bytes, as in
//! wyhash, unkeyed: it must be the same after a restart only in that the table is rebuilt, and the cap
//! on streams bounds what chosen collisions can cost. Half of the table is always empty.

/// Slots by key. The keys themselves lie with the caller, who compares them.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Slot + 1 and the hash; 0 is empty. A power of two long.
    places: Vec<(u32, u32)>,
    used: usize,
}

/// Hash of a key of three parts.
#[inline]
pub fn hash(parts: [&str; 3]) -> u32 {
    let mut h = 0x9e37_79b9_7f4a_7c15_u64;
    for part in parts {
        let bytes = part.as_bytes();
        h = fold(h ^ bytes.len() as u64);
        let (eights, rest) = bytes.as_chunks::<8>();
        for eight in eights {
            h = fold(h ^ u64::from_le_bytes(*eight));
        }
        if !rest.is_empty() {
            let mut last = 0;
            for byte in rest {
                last = last << 8 | u64::from(*byte);
            }
            h = fold(h ^ last);
        }
    }
    (h >> 32) as u32
}

#[inline]
fn fold(x: u64) -> u64 {
    let wide = u128::from(x ^ 0xa076_1d64_78bd_642f) * u128::from(0xe703_7ed1_a0b4_28db_u64);
    (wide as u64) ^ (wide >> 64) as u64
}

impl Table {
    /// The slot with this hash for which `same` holds.
    #[inline]
    pub fn find(&self, hash: u32, same: impl Fn(usize) -> bool) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let (slot, h) = self.places[at];
            let slot = (slot as usize).checked_sub(1)?;
            if h == hash && same(slot) {
                return Some(slot);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a slot whose key is not there yet.
    pub fn insert(&mut self, hash: u32, slot: usize) {
        if (self.used + 1) * 2 > self.places.len() {
            let doubled = vec![(0, 0); (self.places.len() * 2).max(16)];
            for (slot, h) in std::mem::replace(&mut self.places, doubled) {
                if slot > 0 {
                    self.place(h, slot);
                }
            }
        }
        self.used += 1;
        self.place(hash, slot as u32 + 1);
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.places.fill((0, 0));
        self.used = 0;
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.places.len() * size_of::<(u32, u32)>()
    }

    fn place(&mut self, hash: u32, slot: u32) {
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        while self.places[at].0 != 0 {
            at = (at + 1) & mask;
        }
        self.places[at] = (slot, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_again_and_no_other() {
        let keys: Vec<String> = (0..1000).map(|i| format!("model-{i}")).collect();
        let mut table = Table::default();
        for (slot, key) in keys.iter().enumerate() {
            let h = hash([key, "v1", ""]);
            assert_eq!(table.find(h, |s| keys[s] == *key), None);
            table.insert(h, slot);
        }
        for (slot, key) in keys.iter().enumerate() {
            let h = hash([key, "v1", ""]);
            assert_eq!(table.find(h, |s| keys[s] == *key), Some(slot));
        }
        table.clear();
        assert_eq!(table.find(hash(["model-1", "v1", ""]), |_| true), None);
    }

    #[test]
    fn where_one_part_ends_and_the_next_begins_matters() {
        assert_ne!(hash(["ab", "c", ""]), hash(["a", "bc", ""]));
    }
}
