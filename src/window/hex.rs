//! Packed sums as bytes in snapshots, and as text in formats that people read.
//!
//! postcard writes a byte string as it writes a list of bytes. JSON gets one hexadecimal text
//! instead of a list of numbers, which is a quarter as long.

use super::Packed;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Write;

/// Bytes that are written as the module says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(
    /// The bytes.
    pub Vec<u8>,
);

/// Writes bytes.
pub fn serialize<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
    if s.is_human_readable() {
        s.serialize_str(&text(bytes))
    } else {
        s.serialize_bytes(bytes)
    }
}

/// Reads what [`serialize`] wrote.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
    if d.is_human_readable() {
        let text = String::deserialize(d)?;
        bytes(&text).ok_or_else(|| D::Error::custom("not hexadecimal"))
    } else {
        Vec::<u8>::deserialize(d)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, s)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
        deserialize(d).map(Bytes)
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        serialize(self.as_bytes(), s)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Packed, D::Error> {
        let packed = Packed::from_bytes(&deserialize(d)?);
        packed.map_err(|_| D::Error::custom("not packed sums"))
    }
}

/// Bytes as hexadecimal digits.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes of hexadecimal digits; `None` if they are something else.
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let byte = |&[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::axis::{Axis, Grid};
    use crate::stats::sums::Sums;

    #[test]
    fn all_bytes_go_through_text_and_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes(&text(&all)), Some(all));
        assert_eq!(bytes("abc"), None);
        assert_eq!(bytes("zz"), None);
    }

    #[test]
    fn in_snapshots_they_are_what_a_list_of_bytes_would_be() {
        let list = vec![1u8, 200, 3];
        let ours = postcard::to_stdvec(&Bytes(list.clone())).unwrap();
        assert_eq!(ours, postcard::to_stdvec(&list).unwrap());
        assert_eq!(postcard::from_bytes::<Bytes>(&ours).unwrap().0, list);
    }

    #[test]
    fn packed_sums_are_written_as_their_bytes_and_broken_ones_are_refused() {
        let packed = Packed::new(&Sums::new(Grid::new(Axis::Linear, 4)));
        let bytes = packed.as_bytes().to_vec();
        let ours = postcard::to_stdvec(&packed).unwrap();
        assert_eq!(ours, postcard::to_stdvec(&bytes).unwrap());
        assert_eq!(postcard::from_bytes::<Packed>(&ours).unwrap(), packed);
        let json = serde_json::to_string(&packed).unwrap();
        assert_eq!(json, format!("\"{}\"", text(&bytes)));
        assert_eq!(serde_json::from_str::<Packed>(&json).unwrap(), packed);
        assert!(serde_json::from_str::<Packed>("\"\"").is_err());
    }
}
