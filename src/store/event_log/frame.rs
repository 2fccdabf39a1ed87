//! Frames. Each is written, synced and acknowledged as a whole.
//!
//! ```text
//! frame:  "TLEF"  length u32  CRC-32 u32  body          body: postcard of a Frame
//! ```
//!
//! One frame is one write and one sync. So unless the file was damaged, only the last frame can be
//! incomplete, and none of its events were acknowledged. [`any_whole`] distinguishes the two cases:
//! it finds later frames.

use crc32fast::hash;
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 4] = b"TLEF";
/// Bytes before the body.
pub const HEAD: usize = 12;
/// Longest body that is written or read.
pub const FRAME_BYTES_MAX: usize = 256 << 20;

/// Requests that are written together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame<'a> {
    /// Offset of the first event.
    pub base: u64,
    /// Time of writing in ms since 1970, by the clock at that time.
    pub at_ms: i64,
    /// The requests.
    #[serde(borrow)]
    pub requests: Vec<Request<'a>>,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request<'a> {
    /// Its idempotency key.
    pub key: Option<&'a str>,
    /// A hash of its events.
    pub digest: u64,
    /// Its events, each one JSON object.
    #[serde(borrow)]
    pub events: Vec<&'a str>,
}

impl Frame<'_> {
    /// The number of events.
    pub fn events(&self) -> u64 {
        self.requests.iter().map(|r| r.events.len() as u64).sum()
    }

    /// The bytes of the frame; an error if it is too long to be read.
    pub fn write(&self) -> Result<Vec<u8>, postcard::Error> {
        let mut out = vec![0; HEAD];
        out = postcard::to_extend(self, out)?;
        let length = u32::try_from(out.len() - HEAD).ok();
        let length = length.filter(|&length| length as usize <= FRAME_BYTES_MAX);
        let length = length.ok_or(postcard::Error::SerializeBufferFull)?;
        let sum = hash(&out[HEAD..]);
        out[..4].copy_from_slice(MAGIC);
        out[4..8].copy_from_slice(&length.to_le_bytes());
        out[8..12].copy_from_slice(&sum.to_le_bytes());
        Ok(out)
    }
}

/// Length and CRC-32 of the body of a readable frame that begins with these bytes.
pub fn head(bytes: &[u8]) -> Option<(usize, u32)> {
    any_head(bytes).filter(|(length, _)| *length <= FRAME_BYTES_MAX)
}

/// Length and CRC-32 of the body of a frame of any length that begins with these bytes.
fn any_head(bytes: &[u8]) -> Option<(usize, u32)> {
    let word = |from: usize| {
        let word = bytes.get(from..from + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(word))
    };
    let length = word(4)? as usize;
    bytes.starts_with(MAGIC).then_some((length, word(8)?))
}

/// Decodes the body of a frame; `None` if it is damaged.
pub fn body(bytes: &[u8], sum: u32) -> Option<Frame<'_>> {
    let whole = hash(bytes) == sum;
    whole.then(|| postcard::from_bytes(bytes).ok()).flatten()
}

/// The frame at a position, and the position of the next one.
pub fn at(bytes: &[u8], at: usize) -> Option<(Frame<'_>, usize)> {
    let rest = bytes.get(at..)?;
    let (length, _) = head(rest)?;
    Some((whole(rest)?, at + HEAD + length))
}

/// The frame of any length that begins with these bytes.
fn whole(bytes: &[u8]) -> Option<Frame<'_>> {
    let (length, sum) = any_head(bytes)?;
    body(bytes.get(HEAD..)?.get(..length)?, sum)
}

/// Whether a whole frame begins at `from` or later, even one too long to be read, as earlier
/// versions have acknowledged.
pub fn any_whole(bytes: &[u8], from: usize) -> bool {
    let rest = bytes.get(from..).unwrap_or_default();
    let mut places = rest.windows(MAGIC.len()).enumerate();
    places.any(|(i, bytes)| bytes == MAGIC && whole(&rest[i..]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(base: u64) -> Vec<u8> {
        let request = Request {
            key: Some("k"),
            digest: 7,
            events: vec!["{}", r#"{"score":0.5}"#],
        };
        let requests = vec![request.clone(), request];
        let at_ms = 1_760_000_000_000;
        let frame = Frame {
            base,
            at_ms,
            requests,
        };
        frame.write().expect("it fits")
    }

    #[test]
    fn a_frame_is_read_as_written_and_no_changed_byte_goes_unnoticed() {
        let mut bytes = frame(5);
        bytes.extend(frame(9));
        let (first, next) = at(&bytes, 0).expect("whole");
        assert_eq!((first.base, first.events()), (5, 4));
        let (second, end) = at(&bytes, next).expect("whole");
        assert_eq!((second.base, end), (9, bytes.len()));
        for i in 0..next {
            let mut changed = bytes.clone();
            changed[i] ^= 1;
            assert_eq!(at(&changed, 0), None, "byte {i}");
            assert!(any_whole(&changed, 0), "byte {i}");
        }
    }

    #[test]
    fn a_torn_frame_has_no_frame_after_it() {
        let bytes = frame(5);
        for length in 0..bytes.len() {
            assert_eq!(at(&bytes[..length], 0), None);
            assert!(!any_whole(&bytes[..length], 0));
        }
        assert!(!any_whole(&[], 0));
    }

    #[test]
    fn a_frame_that_is_too_long_is_not_written_and_not_taken_for_a_torn_one() {
        let text = "1".repeat(FRAME_BYTES_MAX);
        let request = Request {
            key: None,
            digest: 7,
            events: vec![&text],
        };
        let frame = Frame {
            base: 0,
            at_ms: 0,
            requests: vec![request],
        };
        assert!(frame.write().is_err());
        // As an earlier version wrote it.
        let mut bytes = postcard::to_extend(&frame, vec![0; HEAD]).expect("it fits");
        let length = u32::try_from(bytes.len() - HEAD).expect("it fits");
        let sum = hash(&bytes[HEAD..]);
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        assert!(at(&bytes, 0).is_none() && any_whole(&bytes, 0));
        bytes.pop();
        assert!(!any_whole(&bytes, 0));
    }
}
