//! Which subject an event belongs to, found without making a `String`.
//!
//! An open-addressing table of slot numbers, hashed over the borrowed parts of the [`Key`](super::key::Key);
//! a `HashMap` would need an owned key to ask with. Half of the table is always empty.

/// Slots by key. The keys themselves lie with the caller, who compares them.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Slot + 1 and the hash; 0 is empty. A power of two long.
    places: Vec<(u32, u32)>,
    used: usize,
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
    use super::super::key::Names;
    use super::*;

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
        table.clear();
        assert_eq!(table.find(hash("model-1"), |_| true), None);
    }
}
