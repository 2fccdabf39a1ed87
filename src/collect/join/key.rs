//! The key of a prediction, 16 bytes: 96 bits of SipHash-1-3 of model and id, and 32 bits of its
//! version.
//!
//! Ten million pending ids of unknown length would take most of the memory. Two ids of one source
//! collide with probability 2⁻⁹⁶ a pair, 10⁻¹⁵ for ten million pending ones; a collision would join
//! one outcome wrongly.
//!
//! An outcome names the id and seldom the version. Two versions that score the same request (a
//! champion and its shadow) both get it. So all predictions of one id, its siblings, share the bits
//! by which an index finds them, and differ in the version alone. Two versions of one id whose 32
//! bits agree would be taken for one, with probability 2⁻³² a pair.

use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Model, id and version of a prediction, hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u64; 2]);

/// A hash table by key. Keys are hashes already, so half of one serves as its hash.
pub(super) type ByKey<T> = std::collections::HashMap<Key, T, BuildHasherDefault<Half>>;

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0[0]);
    }
}

/// The word that was written last; the hash of [`ByKey`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Half(u64);

impl Hasher for Half {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Bits of the second word that belong to the id.
const ID: u64 = 0xffff_ffff;

impl Key {
    /// The key of an id within a model, or within the source, without version.
    pub fn new(model: Option<&str>, id: &[u8]) -> Key {
        let mut hasher = SipHasher13::new();
        // The length separates model "ab" with id "c" from "a" with "bc".
        hasher.write_u64(model.map_or(u64::MAX, |m| m.len() as u64));
        hasher.write(model.unwrap_or_default().as_bytes());
        hasher.write(id);
        let hash = hasher.finish128();
        Key([hash.h1, hash.h2 & ID])
    }

    /// The key of the prediction of this id by a version.
    pub fn of_version(self, version: &str) -> Key {
        let mut hasher = SipHasher13::new();
        hasher.write(version.as_bytes());
        Key([self.0[0], self.0[1] & ID | hasher.finish128().h1 & !ID])
    }

    /// Whether the key is in a sample of one in 2^level; all siblings are, or none.
    pub fn is_sampled(self, level: u8) -> bool {
        self.0[0].trailing_zeros() >= u32::from(level)
    }

    /// The key without version, which all siblings share.
    #[inline]
    pub fn any_version(self) -> Key {
        Key([self.0[0], self.0[1] & ID])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_the_model_the_id_and_their_border() {
        let keys = [
            Key::new(None, b"abc"),
            Key::new(Some(""), b"abc"),
            Key::new(Some("a"), b"bc"),
            Key::new(Some("ab"), b"c"),
        ];
        for (i, a) in keys.iter().enumerate() {
            assert!(keys[..i].iter().all(|b| a != b));
        }
        assert_eq!(Key::new(Some("a"), b"bc"), keys[2]);
    }

    #[test]
    fn versions_of_one_id_differ_and_are_siblings() {
        let id = Key::new(Some("a"), b"bc");
        let versions = ["", "1", "2", "10", "v1", "v2"].map(|v| id.of_version(v));
        for (i, a) in versions.iter().enumerate() {
            assert!(versions[..i].iter().all(|b| a != b));
            assert_eq!((a.any_version(), a.0[0]), (id, id.0[0]));
        }
        assert_ne!(Key::new(Some("a"), b"bd").of_version("1").any_version(), id);
    }
}
