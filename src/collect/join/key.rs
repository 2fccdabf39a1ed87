//! The name of a prediction in 16 bytes: SipHash-1-3 of model and id.
//!
//! Ten million pending ids of unknown length would be most of the memory. Two ids of one source meet with
//! probability 2⁻¹²⁸ each pair, 10⁻²⁵ for ten million pending; a meeting would join one outcome wrongly.

use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub [u64; 2]);

impl Key {
    /// The key of an id within a model; without one, within the source.
    pub fn new(model: Option<&str>, id: &[u8]) -> Key {
        let mut hasher = SipHasher13::new();
        // The length keeps model "ab" with id "c" apart from "a" with "bc".
        hasher.write_u64(model.map_or(u64::MAX, |m| m.len() as u64));
        hasher.write(model.unwrap_or_default().as_bytes());
        hasher.write(id);
        let hash = hasher.finish128();
        Key([hash.h1, hash.h2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_ids_and_their_border_all_matter() {
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
}
