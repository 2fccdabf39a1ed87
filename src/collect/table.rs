//! A table of streams that is searched with borrowed names, without making a `String`.
//!
//! [`Slots`] holds one value per stream under a number, its slot, that stays the same while the stream
//! lives; a new stream takes the first vacant slot. [`Table`] finds the slot: an open-addressing table
//! of slot numbers, hashed over the borrowed parts of the [`Key`]. A `HashMap` would need an owned key
//! to ask with. At least half of the table is empty.

use super::key::{Key, Names};

/// What has the names of a stream.
pub trait Named {
    /// The names.
    fn key(&self) -> &Key;
}

/// One value per stream, by slot. See the module.
#[derive(Debug, Clone)]
pub struct Slots<T> {
    table: Table,
    all: Vec<Option<T>>,
    vacant: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots {
            table: Table::default(),
            all: Vec::new(),
            vacant: 0,
        }
    }
}

impl<T: Named> Slots<T> {
    /// The slot of the stream with these names.
    #[inline]
    pub fn find(&self, names: &Names<'_>) -> Option<usize> {
        self.table.find(names.hash(), |slot| self.is(slot, names))
    }

    /// Whether the stream in a slot has these names.
    #[inline]
    pub fn is(&self, slot: usize, names: &Names<'_>) -> bool {
        self.get(slot).is_some_and(|value| value.key().is(names))
    }

    /// The value in a slot.
    #[inline]
    pub fn get(&self, slot: usize) -> Option<&T> {
        self.all.get(slot)?.as_ref()
    }

    /// The value in a slot, to change it.
    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.all.get_mut(slot)?.as_mut()
    }

    /// All values with their slots.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(slot, value)| Some((slot, value.as_ref()?)))
    }

    /// All values with their slots, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let all = self.all.iter_mut().enumerate();
        all.filter_map(|(slot, value)| Some((slot, value.as_mut()?)))
    }

    /// Number of slots, taken or vacant.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is no slot.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Puts a stream whose names are not there yet into the first vacant slot.
    pub fn insert(&mut self, value: T) -> usize {
        let free = match self.vacant {
            0 => None,
            _ => self.all.iter().position(Option::is_none),
        };
        let slot = free.unwrap_or(self.all.len());
        self.insert_at(slot, value);
        slot
    }

    /// Puts a stream into its slot; `false` where another is there.
    pub fn insert_at(&mut self, slot: usize, value: T) -> bool {
        if slot >= self.all.len() {
            self.vacant += slot + 1 - self.all.len();
            self.all.resize_with(slot + 1, || None);
        }
        if self.all[slot].is_some() {
            return false;
        }
        self.table.insert(value.key().names().hash(), slot);
        self.all[slot] = Some(value);
        self.vacant -= 1;
        true
    }

    /// Takes a stream out.
    pub fn remove(&mut self, slot: usize) -> Option<T> {
        let gone = self.all.get_mut(slot)?.take()?;
        self.vacant += 1;
        self.table.clear();
        for (slot, value) in self.all.iter().enumerate() {
            if let Some(value) = value {
                self.table.insert(value.key().names().hash(), slot);
            }
        }
        Some(gone)
    }

    /// Heap bytes of the table and of the slots, without what the values hold.
    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.all.capacity() * size_of::<Option<T>>()
    }
}

/// Slots by key. The keys themselves lie with the caller, who compares them.
#[derive(Debug, Clone, Default)]
struct Table {
    /// Slot + 1 and the hash; 0 is empty. A power of two long.
    places: Vec<(u32, u32)>,
    used: usize,
}

impl Table {
    /// The slot with this hash for which `same` holds.
    #[inline]
    fn find(&self, hash: u32, same: impl Fn(usize) -> bool) -> Option<usize> {
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
    fn insert(&mut self, hash: u32, slot: usize) {
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
    fn clear(&mut self) {
        self.places.fill((0, 0));
        self.used = 0;
    }

    /// Heap bytes held.
    fn bytes(&self) -> usize {
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
