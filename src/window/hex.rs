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

/// Packed sums.
pub mod packed {
    use super::*;

    /// Writes packed sums.
    pub fn serialize<S: Serializer>(packed: &Packed, s: S) -> Result<S::Ok, S::Error> {
        super::serialize(packed.as_bytes(), s)
    }

    /// Reads what [`serialize`] wrote.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Packed, D::Error> {
        let bytes = super::deserialize(d)?;
        Packed::from_bytes(&bytes).map_err(|_| D::Error::custom("not packed sums"))
    }
}

/// Packed sums of several views.
pub mod views {
    use super::*;

    /// Writes the sums of each view.
    pub fn serialize<S: Serializer>(views: &[Packed], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(views.iter().map(|p| Bytes(p.as_bytes().to_vec())))
    }

    /// Reads what [`serialize`] wrote.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Packed>, D::Error> {
        let views = Vec::<Bytes>::deserialize(d)?;
        let one = |b: &Bytes| Packed::from_bytes(&b.0);
        let all: Result<_, _> = views.iter().map(one).collect();
        all.map_err(|_| D::Error::custom("not packed sums"))
    }
}

/// The open panes of a stream: begin, and packed sums of each view.
pub mod panes {
    use super::*;

    type Panes = Vec<(i64, Vec<Vec<u8>>)>;

    /// Writes open panes.
    pub fn serialize<S: Serializer>(panes: &Panes, s: S) -> Result<S::Ok, S::Error> {
        let one = |(start, views): &(i64, Vec<Vec<u8>>)| {
            let views: Vec<Bytes> = views.iter().cloned().map(Bytes).collect();
            (*start, views)
        };
        s.collect_seq(panes.iter().map(one))
    }

    /// Reads what [`serialize`] wrote.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Panes, D::Error> {
        let panes = Vec::<(i64, Vec<Bytes>)>::deserialize(d)?;
        let one = |(start, views): (i64, Vec<Bytes>)| {
            let views = views.into_iter().map(|b| b.0);
            (start, views.collect())
        };
        Ok(panes.into_iter().map(one).collect())
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

/// The bytes of hexadecimal digits; `None` where they are none.
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
}
