//! Records that outlive the poll that read them.

use super::Record;
use super::headers::{Headers, Parts};

/// A record that owns its bytes.
#[derive(Debug)]
pub struct OwnedRecord {
    topic: u16,
    partition: i32,
    offset: i64,
    timestamp_ms: Option<i64>,
    key: Option<Vec<u8>>,
    payload: Vec<u8>,
    parts: Parts,
}

impl OwnedRecord {
    /// A copy of the record.
    pub fn of(record: &Record<'_>) -> OwnedRecord {
        OwnedRecord {
            topic: record.topic,
            partition: record.partition,
            offset: record.offset,
            timestamp_ms: record.timestamp_ms,
            key: record.key.map(<[u8]>::to_vec),
            payload: record.payload.to_vec(),
            parts: record.headers.copied(),
        }
    }

    /// The record, borrowed.
    pub fn record(&self) -> Record<'_> {
        Record {
            topic: self.topic,
            partition: self.partition,
            offset: self.offset,
            timestamp_ms: self.timestamp_ms,
            key: self.key.as_deref(),
            payload: &self.payload,
            headers: Headers::of_owned(&self.parts),
        }
    }

    /// Bytes of memory of its parts.
    pub fn bytes(&self) -> usize {
        let headers = self.parts.headers.iter();
        let headers = headers.map(|(n, v)| n.len() + v.as_ref().map_or(0, Vec::len) + 48);
        self.payload.len() + self.key.as_ref().map_or(0, Vec::len) + headers.sum::<usize>()
    }
}
