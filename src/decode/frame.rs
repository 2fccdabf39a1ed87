//! The frame of a Confluent-compatible schema registry, and its schemas.
//!
//! ```text
//!  0        1                    5
//! ┌────────┬────────────────────┬───────────────────────────────┬──────────┐
//! │ 0x00   │ schema id, u32 BE  │ Protobuf only: message indexes │ the data │
//! └────────┴────────────────────┴───────────────────────────────┴──────────┘
//! ```
//!
//! The message indexes identify the message in the `.proto` file: their number and then each index
//! as a zigzag varint, from the outermost message inwards. The first message of the file, `[0]`, is
//! the single byte 0. (Confluent, "Formats, Serializers, and Deserializers", section "Wire
//! format".)
//!
//! The schema of framed JSON is not requested, because all wanted fields are checked here anyway.
//! JSON cannot start with a zero byte, so framed and plain records may be mixed.

use super::options::Format;
use super::rejection::Rejection;
use crate::collect::Reason;

/// Bytes of the magic byte and the id.
pub(super) const FRAME: usize = 5;

/// A schema of the registry, with the schemas that it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaText {
    /// The format that it describes.
    pub format: Format,
    /// An Avro schema as JSON, or a `.proto` file.
    pub text: String,
    /// Names and texts of the referenced schemas, dependencies first.
    pub references: Vec<(String, String)>,
}

/// The schema id of a framed value.
pub(super) fn schema_id(payload: &[u8]) -> Option<u32> {
    match payload.first_chunk::<FRAME>()? {
        [0, a, b, c, d] => Some(u32::from_be_bytes([*a, *b, *c, *d])),
        _ => None,
    }
}

/// Position of the data in a JSON value, after a frame if it has one.
pub(super) fn json_start(payload: &[u8]) -> usize {
    if schema_id(payload).is_some() {
        FRAME
    } else {
        0
    }
}

/// Rejects a value without the required frame.
#[cold]
pub(super) fn unframed(payload: &[u8], format: Format) -> Rejection {
    let seen = match payload.first() {
        None => "the record is empty".to_owned(),
        Some(0) => format!("the record ends after {} bytes", payload.len()),
        Some(b) => format!("the first byte is {b:#04x}"),
    };
    Rejection::new(
        Reason::Malformed,
        format!(
            "{seen}, not the frame of a schema registry (0x00 and the id in four bytes); send {} \
             with a serializer that registers its schema",
            format.as_str()
        ),
    )
}

/// The message indexes of a Protobuf value, and the bytes after them.
pub(super) fn message_indexes(bytes: &[u8]) -> Option<(Vec<usize>, &[u8])> {
    /// Deepest nesting of messages; real files have only a few levels.
    const DEPTH_MAX: i64 = 32;
    let mut at = 0;
    let count = varint(bytes, &mut at)?;
    if count == 0 {
        return Some((vec![0], &bytes[at..]));
    }
    if !(1..=DEPTH_MAX).contains(&count) {
        return None;
    }
    let mut indexes = Vec::new();
    for _ in 0..count {
        indexes.push(usize::try_from(varint(bytes, &mut at)?).ok()?);
    }
    Some((indexes, &bytes[at..]))
}

/// A zigzag varint of at most 64 bits, as in Avro, in the message indexes and in Parquet.
#[inline]
pub(super) fn varint(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let (mut n, mut shift) = (0u64, 0);
    loop {
        let b = *bytes.get(*at)?;
        *at += 1;
        if shift == 63 && b > 1 {
            return None;
        }
        n |= u64::from(b & 0x7f) << shift;
        if b & 0x80 == 0 {
            return Some((n >> 1) as i64 ^ -((n & 1) as i64));
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_read_to_their_ends_and_no_further() {
        for (bytes, n) in [
            (&[0u8][..], Some(0)),
            (&[1], Some(-1)),
            (&[2], Some(1)),
            (&[0x80, 1], Some(64)),
            (
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
                Some(i64::MIN),
            ),
            (
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
                None,
            ),
            (&[0x80], None),
            (&[], None),
        ] {
            assert_eq!(varint(bytes, &mut 0), n, "{bytes:?}");
        }
    }

    #[test]
    fn the_first_message_is_one_byte() {
        assert_eq!(message_indexes(&[0, 9]), Some((vec![0], &[9][..])));
        assert_eq!(message_indexes(&[4, 2, 0, 9]), Some((vec![1, 0], &[9][..])));
        assert_eq!(message_indexes(&[2]), None);
        assert_eq!(message_indexes(&[1]), None);
        assert_eq!(message_indexes(&[200, 200, 1]), None);
    }

    #[test]
    fn a_frame_is_a_zero_and_an_id() {
        assert_eq!(schema_id(&[0, 0, 0, 1, 2, 9]), Some(258));
        assert_eq!(schema_id(&[0, 0, 0, 1]), None);
        assert_eq!(schema_id(b"{\"a\":1}"), None);
        assert_eq!(json_start(b"\0\0\0\0\x01{}"), 5);
    }
}
