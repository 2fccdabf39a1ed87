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
//! bounds what chosen collisions can cost. Equality always compares all bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a name that its [`ends`] cover.
const SHORT: usize = 16;

/// The bit of the lengths that says that some name is longer than [`SHORT`]: then the text must be
/// compared too.
const LONG: u64 = 1 << 63;

/// Three names, borrowed, with what is compared first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a> {
    /// Model, version, segment.
    text: [&'a str; 3],
    ends: [(u64, u64); 3],
}

/// Names of a stream. See the module. What is compared fills a line of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C)]
pub struct Key {
    ends: [(u64, u64); 3],
    lengths: u64,
    /// Model, version and segment, one after the other.
    text: Box<str>,
    /// Where the version and the segment begin.
    cuts: [usize; 2],
}

impl<'a> Names<'a> {
    /// Takes names as a record has them.
    #[inline]
    pub fn new(model: &'a str, version: &'a str, segment: &'a str) -> Names<'a> {
        // `map` would be a function call here, which takes a twentieth of an event's time.
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
        let lengths = self.lengths();
        let h = fold(words, lengths);
        match lengths & LONG {
            0 => h,
            _ => hash_long(h, self.text),
        }
    }

    /// A hash of the ends that takes few steps; its first bits are the best.
    #[inline]
    pub fn digest(&self) -> u64 {
        let [(a, b), (_, d), (e, f)] = self.ends;
        let first = a.rotate_left(11) ^ e.rotate_left(32);
        let last = b ^ d.rotate_left(21) ^ f.rotate_left(42);
        (first ^ last).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The three lengths, if the ends cover the names; else a number with [`LONG`].
    #[inline]
    fn lengths(&self) -> u64 {
        let [model, version, segment] = self.text;
        let (i, j, k) = (model.len(), version.len(), segment.len());
        let long = u64::from(i | j | k > SHORT);
        i as u64 | (j as u64) << 20 | (k as u64) << 40 | long << LONG.trailing_zeros()
    }

    /// Model, version and segment.
    pub fn text(&self) -> [&'a str; 3] {
        self.text
    }

    /// Model and version, without the segment.
    pub fn group(&self) -> Names<'a> {
        Names::new(self.text[0], self.text[1], "")
    }

    /// The names as an owned key.
    pub fn to_key(&self) -> Key {
        let [model, version, _] = self.text.map(str::len);
        Key {
            ends: self.ends,
            lengths: self.lengths(),
            cuts: [model, model + version],
            text: self.text.concat().into(),
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
    /// just written in, and so waits until the writes reach the cache. Names that differ usually
    /// differ in their last bytes; these are compared first, so the branch is well predicted.
    #[inline]
    pub fn is(&self, names: &Names<'_>) -> bool {
        let last = |i: usize| self.ends[i].1 == names.ends[i].1;
        let first = |i: usize| self.ends[i].0 == names.ends[i].0;
        last(0)
            && last(2)
            && last(1)
            && self.lengths == names.lengths()
            && first(0)
            && first(2)
            && first(1)
            && (self.lengths & LONG == 0 || self.has_text(names))
    }

    #[inline]
    fn has_text(&self, names: &Names<'_>) -> bool {
        let [model, version, segment] = names.text;
        self.model() == model && self.version() == version && self.segment() == segment
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
        [first, ..] => {
            let (middle, last) = (bytes[bytes.len() / 2], bytes[bytes.len() - 1]);
            (u64::from(first) << 8 | u64::from(middle), last.into())
        }
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

/// A value that has the names of a stream.
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
