//! The names of a stream.
//!
//! Every event has three [`Names`], of its model, its version and its segment. Most events belong
//! to the stream of the previous event or to one of a thousand others. Names are short. So the
//! first and last bytes of each name, at most sixteen, are read once as two words. The hash is made
//! of these words, and they are the whole name if it is no longer than that. Comparisons with a
//! [`Key`] then do not read the text, which is elsewhere in memory, and do not call `memcmp`, which
//! costs more than the comparison.
//!
//! The hash is a folded multiplication of two words, as in wyhash, unkeyed: the cap on streams
//! bounds what chosen collisions can cost. Equality is always that of all bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a name that its [`ends`] cover.
const SHORT: usize = 16;

/// Three names, borrowed, with what is compared first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a> {
    /// Model, version, segment.
    text: [&'a str; 3],
    ends: [(u64, u64); 3],
}

/// Names of a stream. See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    ends: [(u64, u64); 3],
    /// Where the version and the segment begin.
    cuts: [usize; 2],
    /// Model, version and segment, one after the other.
    text: Box<str>,
    /// Some name is longer than [`SHORT`], and must be compared itself.
    long: bool,
}

impl<'a> Names<'a> {
    /// Takes names as a record has them.
    #[inline]
    pub fn new(model: &'a str, version: &'a str, segment: &'a str) -> Names<'a> {
        // Not `map`, which the compiler calls as a function here: a twentieth of an event's time.
        Names {
            text: [model, version, segment],
            ends: [ends(model), ends(version), ends(segment)],
        }
    }

    /// Hash of all bytes.
    #[inline]
    pub fn hash(&self) -> u64 {
        let [(a, b), (c, d), (e, f)] = self.ends;
        let words = fold(a, b) ^ fold(c, d).rotate_left(21) ^ fold(e, f).rotate_left(42);
        let [model, version, segment] = self.text;
        let (i, j, k) = (model.len(), version.len(), segment.len());
        let h = fold(words, (i ^ j << 20 ^ k << 40) as u64);
        match self.is_long() {
            false => h,
            true => hash_long(h, self.text),
        }
    }

    /// Whether the ends do not cover some name.
    #[inline]
    fn is_long(&self) -> bool {
        let [model, version, segment] = self.text;
        model.len() | version.len() | segment.len() > SHORT
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
            ends: self.ends,
            cuts: [model, model + version],
            text: self.text.concat().into(),
            long: self.is_long(),
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
    ///
    /// Compares word by word. The derived comparison reads the words in other pieces than they were
    /// just written in, and so waits until the writes reach the cache. Names that differ mostly do
    /// in their last bytes; these are compared first, so the branch is well predicted.
    #[inline]
    pub fn is(&self, names: &Names<'_>) -> bool {
        let last = |i: usize| self.ends[i].1 == names.ends[i].1;
        let first = |i: usize| self.ends[i].0 == names.ends[i].0;
        last(0)
            && last(2)
            && last(1)
            && self.has_lengths(names.text)
            && first(0)
            && first(2)
            && first(1)
            && (!self.long || self.names().text == names.text)
    }

    #[inline]
    fn has_lengths(&self, [model, version, segment]: [&str; 3]) -> bool {
        // Wrapping, for the lengths of slices that overlap may add up to more than there is.
        let cut = model.len().wrapping_add(version.len());
        self.cuts == [model.len(), cut] && self.text.len() == cut.wrapping_add(segment.len())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_own_names_and_no_others() {
        let text = "abcdefghijklmnopqrstuvwxyz";
        let names: Vec<&str> = (0..=text.len()).map(|n| &text[..n]).collect();
        for a in &names {
            let key = Key::new(a, "7", "country=de");
            assert_eq!(
                (key.model(), key.version(), key.segment()),
                (*a, "7", "country=de")
            );
            for b in &names {
                assert_eq!(key.is(&Names::new(b, "7", "country=de")), a == b);
            }
        }
        let key = Key::new("ab", "c", "");
        assert!(!key.is(&Names::new("a", "bc", "")) && !key.is(&Names::new("ab", "", "c")));
    }

    #[test]
    fn one_other_byte_makes_other_names_and_another_hash() {
        for n in 1..40 {
            let name = "x".repeat(n);
            let key = Key::new(&name, &name, &name);
            for i in 0..n {
                let mut other = name.clone();
                other.replace_range(i..=i, "y");
                for [a, b, c] in [
                    [&other, &name, &name],
                    [&name, &other, &name],
                    [&name, &name, &other],
                ] {
                    let other = Names::new(a, b, c);
                    assert!(!key.is(&other) && other.hash() != key.names().hash());
                }
            }
        }
    }

    #[test]
    fn where_one_part_ends_and_the_next_begins_matters() {
        let hash = |a, b, c| Names::new(a, b, c).hash();
        assert_ne!(hash("ab", "c", ""), hash("a", "bc", ""));
        assert_ne!(hash("a", "", "b"), hash("a", "b", ""));
        assert_ne!(hash("a", "b", ""), hash("b", "a", ""));
    }
}
