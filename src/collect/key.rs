//! The key of a stream: names of the model, its version and the segment; and a table that is
//! searched by it.
//!
//! Every event has three names, borrowed from its record. Most events belong to the stream of the
//! previous event or to one of a thousand others. Names are short. So the first and last bytes of
//! each name, at most sixteen, are read once as two words. The hash is made of these words, and
//! they are the whole name if it is no longer than that. Key comparisons then do not read the text,
//! which is elsewhere in memory, and do not call `memcmp`, which costs more than the comparison.
//!
//! The hash is a folded multiplication of two words, as in wyhash, unkeyed: the cap on streams
//! bounds what chosen collisions can cost. Equality is always that of all bytes.
//!
//! [`Slots`] holds one value per stream under a number, its slot. The slot stays the same while the
//! stream lives; a new stream takes the first vacant slot. [`Table`] finds the slot by borrowed
//! names; a `HashMap` would need an owned key for each look-up. It is an open-addressing table of
//! slot numbers, at least half empty.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a name that its [`ends`] cover.
const SHORT: u64 = 16;

/// Three names, borrowed, with what is compared first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a> {
    /// Model, version, segment.
    text: [&'a str; 3],
    mark: Mark,
}

/// Lengths and ends of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    ends: [(u64, u64); 3],
    /// All three in one word, which tells apart those that are not [`LONG`].
    lengths: u64,
}

/// Among the lengths: some name may be longer than [`SHORT`], and must be compared itself.
const LONG: u64 = 1 << 63;

impl Mark {
    #[inline]
    fn new(text: [&str; 3]) -> Mark {
        let [i, j, k] = text.map(|name| name.len() as u64);
        let long = if i | j | k > SHORT { LONG } else { 0 };
        Mark {
            ends: text.map(ends),
            lengths: (i ^ j << 20 ^ k << 40) & !LONG | long,
        }
    }

    /// Compares word by word. The derived comparison reads the words in other pieces than they were
    /// just written in, and so waits until the writes reach the cache. Names that differ mostly do
    /// in their last bytes; these are compared first, so the branch is well predicted.
    #[inline]
    fn is(&self, o: &Mark) -> bool {
        let last = |i: usize| self.ends[i].1 == o.ends[i].1;
        let first = |i: usize| self.ends[i].0 == o.ends[i].0;
        last(0)
            && last(2)
            && last(1)
            && self.lengths == o.lengths
            && first(0)
            && first(2)
            && first(1)
    }
}

/// Names of a stream. See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    mark: Mark,
    /// Model, version and segment, one after the other.
    text: Box<str>,
    /// Where the version and the segment begin.
    cuts: [usize; 2],
}

impl<'a> Names<'a> {
    /// Takes names as a record has them.
    #[inline]
    pub fn new(model: &'a str, version: &'a str, segment: &'a str) -> Names<'a> {
        let text = [model, version, segment];
        Names {
            text,
            mark: Mark::new(text),
        }
    }

    /// Hash of all bytes.
    #[inline]
    pub fn hash(&self) -> u32 {
        let [(a, b), (c, d), (e, f)] = self.mark.ends;
        let words = fold(a, b) ^ fold(c, d).rotate_left(21) ^ fold(e, f).rotate_left(42);
        let mut h = fold(words, self.mark.lengths);
        if self.mark.lengths & LONG != 0 {
            h = hash_long(h, self.text);
        }
        (h >> 32) as u32
    }

    /// Model, version and segment.
    pub fn text(&self) -> [&'a str; 3] {
        self.text
    }

    /// Model and version, without the segment.
    pub fn group(&self) -> Names<'a> {
        Names::new(self.text[0], self.text[1], "")
    }

    /// The names as a key of its own.
    pub fn to_key(&self) -> Key {
        let [model, version, _] = self.text.map(str::len);
        Key {
            mark: self.mark,
            text: self.text.concat().into(),
            cuts: [model, model + version],
        }
    }
}

impl Key {
    /// A key of these names.
    pub fn new(model: &str, version: &str, segment: &str) -> Key {
        Names::new(model, version, segment).to_key()
    }

    /// Name of the model.
    pub fn model(&self) -> &str {
        &self.text[..self.cuts[0]]
    }

    /// Version of the model.
    pub fn version(&self) -> &str {
        &self.text[self.cuts[0]..self.cuts[1]]
    }

    /// Segment.
    pub fn segment(&self) -> &str {
        &self.text[self.cuts[1]..]
    }

    /// The names.
    pub fn names(&self) -> Names<'_> {
        Names::new(self.model(), self.version(), self.segment())
    }

    /// Whether these are its names.
    #[inline]
    pub fn is(&self, names: &Names<'_>) -> bool {
        let short = names.mark.lengths & LONG == 0;
        self.mark.is(&names.mark) && (short || self.names().text == names.text)
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        [self.model(), self.version(), self.segment()].serialize(to)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Key, D::Error> {
        let [model, version, segment] = <[String; 3]>::deserialize(from)?;
        Ok(Key::new(&model, &version, &segment))
    }
}

/// The first and last eight bytes, which overlap where there are fewer than sixteen; of fewer than
/// eight the first and last four, and of fewer than four all.
#[inline]
fn ends(name: &str) -> (u64, u64) {
    let bytes = name.as_bytes();
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return (first.into(), last.into());
    }
    match *bytes {
        [] => (0, 0),
        [a] => (a.into(), 0),
        [a, b] => (a.into(), b.into()),
        [a, b, ref rest @ ..] => (u64::from(a) << 8 | u64::from(b), rest[0].into()),
    }
}

#[cold]
fn hash_long(mut h: u64, names: [&str; 3]) -> u64 {
    // The last eight bytes of each, whole or not, are among the ends.
    for eight in names.iter().flat_map(|name| name.as_bytes().as_chunks().0) {
        h = fold(h, u64::from_le_bytes(*eight));
    }
    h
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let (a, b) = (a ^ 0xa076_1d64_78bd_642f, b ^ 0xe703_7ed1_a0b4_28db);
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ (wide >> 64) as u64
}

/// What has the names of a stream.
pub trait Named {
    /// The names.
    fn key(&self) -> &Key;
}

/// One value per stream, by slot.
#[derive(Debug, Clone)]
pub struct Slots<T> {
    table: Table,
    all: Vec<Option<T>>,
    vacant: usize,
    /// No slot before it is vacant.
    from: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots {
            table: Table::default(),
            all: Vec::new(),
            vacant: 0,
            from: 0,
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
            _ => (self.from..self.all.len()).find(|slot| self.all[*slot].is_none()),
        };
        let slot = free.unwrap_or(self.all.len());
        self.insert_at(slot, value);
        self.from = slot + 1;
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
        self.from = self.from.min(slot);
        self.table.remove(gone.key().names().hash(), slot);
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

    /// Removes a slot with this hash. Those behind it that were placed past it move up, so that no
    /// search ends before them.
    fn remove(&mut self, hash: u32, slot: usize) {
        let Some(mask) = self.places.len().checked_sub(1) else {
            return;
        };
        let mut gap = hash as usize & mask;
        while self.places[gap] != (slot as u32 + 1, hash) {
            if self.places[gap].0 == 0 {
                return;
            }
            gap = (gap + 1) & mask;
        }
        self.used -= 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let (slot, h) = self.places[at];
            if slot == 0 {
                break;
            }
            // Not before the place at which its search begins.
            let from_home = at.wrapping_sub(h as usize) & mask;
            if from_home >= (at.wrapping_sub(gap) & mask) {
                self.places[gap] = (slot, h);
                gap = at;
            }
        }
        self.places[gap] = (0, 0);
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
mod tests;
