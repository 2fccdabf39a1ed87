//! The checkpoint of one partition: all state that a process needs to take the partition over.
//!
//! A checkpoint holds the engine of one partition (position, watermark, open panes, windows,
//! counters, and the length of the journal of its pending predictions), the verdicts, alerts and
//! detectors of its streams, and the notifications of firing alerts. It is stored in a compacted
//! topic as keyed records that are small enough for any broker:
//!
//! ```text
//! key                                                     value
//! GROUP/TOPIC/PARTITION/claim                             the process that took the partition over last
//! GROUP/TOPIC/PARTITION/EPOCH/head/SLOT                   "TRUEPARC" · version u32 · number u64 · chunks u32 ·
//!                                                         length u64 · crc32 of the body u32 · crc32 of this u32
//! GROUP/TOPIC/PARTITION/EPOCH/body/SLOT/CHUNK             number u64 · bytes of the body (postcard)
//! GROUP/TOPIC/PARTITION/EPOCH/journal/SEGMENT/OFFSET      bytes of the join journal, as on disk
//! GROUP/TOPIC/PARTITION/EPOCH/notified/NUMBER/FINGERPRINT what people were notified of an alert (postcard)
//! ```
//!
//! **Protocol.** A process that is assigned a partition writes a claim. The offset of the claim is
//! the *epoch* of the process. The process reads the topic up to its claim, restores the newest
//! whole checkpoint and resumes from the offsets in it. From then on it writes checkpoints under
//! its epoch: first the chunks and, once the broker has acknowledged all of them, the head that
//! names them. It alternates between two slots, so the previous checkpoint stays whole until the
//! new one is. A process that gives a partition up writes a last checkpoint before it does.
//!
//! ```text
//!   giver   …─ checkpoint 7 ─────────── checkpoint 8 ─ revoked
//!   topic   …─ e3 body, head 7 ──────── e3 body, head 8 ───────── claim(=e9) ───────── e9 body, head 1 ─…
//!   taker                                               assigned ─┘   └ restores 8, seeks, resumes
//! ```
//!
//! **Which checkpoint counts.** The one with the highest epoch, and within an epoch the one with
//! the highest number. A process that was frozen and continues to write under its old epoch is
//! ignored: its keys carry that epoch, and nobody reads below a higher epoch that has a whole
//! checkpoint. While the taker has not written one, the last checkpoint of the giver is valid
//! whenever it was written: every checkpoint is by itself the state of the partition after exactly
//! the records before its offsets, and the reader resumes from these offsets. Therefore no record
//! is counted twice or skipped, whichever process dies at any time.
//!
//! **Journal.** A checkpoint writes only the new bytes of the journal. Its `epochs` say which epoch
//! wrote which range, so bytes that a dead process wrote behind the mark of the restored checkpoint
//! are not mistaken for those of the taker.
//!
//! **Notifications.** One of several judges does not wait for its next checkpoint to record that
//! people were notified ([`Notified`]): a checkpoint of thousands of streams takes seconds, and a
//! process that takes over meanwhile would notify again. Such a record carries the number of the
//! last checkpoint begun before it. The reader uses the records with its checkpoint's number or a
//! later one, or of a later epoch.
//!
//! Any other key or value under the prefix of a partition is foreign, and the partition is refused
//! with the key in the message.

use super::format::{self, FormatError};
use crate::judge::StreamId;
use crate::monitor::delta_log::DeltaBatch;
use crate::monitor::{Snapshot, VerdictState};
use crate::stats::stored::Stored;
use serde::{Deserialize, Serialize};

/// Version of the checkpoint format; it changes with the version of the snapshot inside.
pub const VERSION: u32 = 3000 + format::VERSION;

/// Maximum bytes of one record: half of the default limit of brokers, because a batch holds several
/// records and each has a frame.
pub const CHUNK_BYTES: usize = 512 << 10;

const MAGIC: &[u8; 8] = b"TRUEPARC";
const HEAD_BYTES: usize = 8 + 4 + 8 + 4 + 8 + 4 + 4;

/// A record of the state topic: its key, and its value or `None` to delete the key.
pub type KeyedRecord = (String, Option<Vec<u8>>);

/// Everything that moves with a partition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PartitionCheckpoint {
    /// The engine of the partition.
    pub snapshot: Snapshot,
    /// Verdicts and alerts of its streams, as its writer had them.
    pub verdicts: Vec<VerdictState>,
    /// The epoch that wrote each range of the journal, oldest first.
    pub epochs: Vec<JournalRange>,
    /// Deltas since the previous checkpoint, if a separate process judges.
    pub deltas: Option<DeltaBatch>,
}

/// A range of the journal that one epoch wrote, up to the start of the next range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JournalRange {
    /// The segment in which it starts.
    pub segment: u64,
    /// The offset in that segment.
    pub offset: u64,
    /// The epoch of its writer.
    pub epoch: i64,
}

/// A notification about an alert, recorded between two checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notified {
    /// The stream with which the alert moves.
    pub stream: StreamId,
    /// What people were notified of, as in [`VerdictState::notified`]; also for an alert that has
    /// ended.
    pub text: String,
}

/// Identifies a chunk of the journal: segment, offset, epoch.
pub type JournalChunk = (u64, u64, i64);

/// The prefix of all keys of a partition.
pub fn prefix(group: &str, topic: &str, partition: i32) -> String {
    format!("{group}/{topic}/{partition}/")
}

/// The key of a claim of the partition.
pub fn claim_key(prefix: &str) -> String {
    format!("{prefix}claim")
}

/// The records of a checkpoint: those of its body, and the head, which is written once they are
/// safe.
pub fn records(
    checkpoint: &PartitionCheckpoint,
    prefix: &str,
    epoch: i64,
    number: u64,
) -> Result<(Vec<KeyedRecord>, KeyedRecord), String> {
    let body = postcard::to_stdvec(checkpoint);
    let body = body.map_err(|e| format!("encoding a checkpoint: {e}"))?;
    let slot = number % 2;
    let chunk = |(i, bytes): (usize, &[u8])| {
        let mut value = number.to_le_bytes().to_vec();
        value.extend(bytes);
        (format!("{prefix}{epoch}/body/{slot}/{i}"), Some(value))
    };
    let chunks = body.chunks(CHUNK_BYTES).enumerate().map(chunk);
    let chunks: Vec<KeyedRecord> = chunks.collect();
    let head = CheckpointHead {
        number,
        chunks: chunks.len() as u32,
        length: body.len() as u64,
        crc: crc32fast::hash(&body),
    };
    let head = (format!("{prefix}{epoch}/head/{slot}"), Some(head.encode()));
    Ok((chunks, head))
}

/// The key of a chunk of the journal.
pub fn journal_key(prefix: &str, (segment, offset, epoch): JournalChunk) -> String {
    format!("{prefix}{epoch}/journal/{segment}/{offset}")
}

/// The key of a notification of the stream with this fingerprint, after the checkpoint of this
/// epoch and number was begun.
pub fn notified_key(prefix: &str, (epoch, number): (i64, u64), fingerprint: &str) -> String {
    format!("{prefix}{epoch}/notified/{number}/{fingerprint}")
}

/// The record of a notification after the checkpoint of this epoch and number was begun; `None` if
/// it is too large for a record or cannot be encoded; then a checkpoint must carry it.
pub fn notified_record(prefix: &str, at: (i64, u64), notified: &Notified) -> Option<KeyedRecord> {
    let key = notified_key(prefix, at, &notified.stream.fingerprint());
    let value = postcard::to_stdvec(notified).ok()?;
    (value.len() <= CHUNK_BYTES).then_some((key, Some(value)))
}

/// The epoch that wrote the journal at an offset.
pub fn epoch_at(epochs: &[JournalRange], segment: u64, offset: u64) -> Option<i64> {
    let here = |r: &&JournalRange| (r.segment, r.offset) <= (segment, offset);
    epochs.iter().rev().find(here).map(|r| r.epoch)
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CheckpointHead {
    /// Number of the checkpoint within its epoch.
    pub number: u64,
    /// Number of its chunks.
    pub chunks: u32,
    /// Bytes of its body.
    pub length: u64,
    /// Checksum of its body.
    pub crc: u32,
}

impl CheckpointHead {
    fn encode(self) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend(self.number.to_le_bytes());
        head.extend(self.chunks.to_le_bytes());
        head.extend(self.length.to_le_bytes());
        head.extend(self.crc.to_le_bytes());
        head.extend(crc32fast::hash(&head).to_le_bytes());
        head
    }

    /// Reads the value of a head record.
    pub fn decode(bytes: &[u8]) -> Result<CheckpointHead, FormatError> {
        format::after_version(bytes, MAGIC, VERSION)?;
        let bytes: &[u8; HEAD_BYTES] = bytes.try_into().map_err(|_| FormatError::Torn)?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if crc32fast::hash(&bytes[..HEAD_BYTES - 4]) != word(HEAD_BYTES - 4) {
            return Err(FormatError::Checksum);
        }
        let number = long(12);
        if !number.is_possible() {
            return Err(FormatError::Unusable(format!("its number is {number}")));
        }
        Ok(CheckpointHead {
            number,
            chunks: word(20),
            length: long(24),
            crc: word(32),
        })
    }
}
