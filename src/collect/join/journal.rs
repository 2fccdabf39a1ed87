//! The changelog of a joiner, or of the [ids](super::super::seen_ids) of a partition: a snapshot
//! stores what happened since the last one, not everything that is held.
//!
//! A journal is a sequence of segments that are only appended to. A snapshot records how much of
//! each segment belongs to it, with the checksum of that part ([`JournalMark`]). Bytes after the
//! mark are newer than the snapshot and are cut off when it is restored. So every snapshot that is
//! kept can be restored, not only the newest, and each costs only what happened since the one
//! before.
//!
//! A segment holds the complete history up to some event time. Once every pane up to that time is
//! evicted, the segment is removed too. Replaying the [operations](super::operation) in order,
//! except those of evicted panes, yields the joiner that wrote them.

use super::operation::{JournalError, Op};
use crate::stats::stored::{checked, checked_or_min};
use crc32fast::Hasher;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Length at which a segment ends.
pub const SEGMENT_BYTES: u64 = 32 << 20;

/// Size of the blocks that hold new bytes. One buffer that doubles is copied to fresh memory each
/// time, which the kernel clears first; that took a fifth of the time of a joined record.
const BLOCK_BYTES: usize = 256 << 10;

/// Room after the end of a block for the operation that crosses it, of 30 views.
const SLACK_BYTES: usize = 400;

/// How much of one segment belongs to a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalMark {
    /// Number of the segment.
    #[serde(deserialize_with = "checked")]
    pub segment: u64,
    /// Bytes of the segment.
    #[serde(deserialize_with = "checked")]
    pub len: u64,
    /// CRC-32 of these bytes.
    pub crc: u32,
    /// Newest event time in the segment.
    #[serde(deserialize_with = "checked_or_min")]
    pub until_ms: i64,
}

/// Bytes to append to a segment before the snapshot that marks them is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalDelta {
    /// Index of the join.
    pub join: u16,
    /// Partition.
    pub partition: i32,
    /// Number of the segment.
    pub segment: u64,
    /// Offset of the bytes within the segment.
    pub offset: u64,
    /// The operations.
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Segment {
    number: u64,
    len: u64,
    crc: Hasher,
    until_ms: i64,
    /// Bytes that were not taken yet; no block is empty.
    new: Vec<Vec<u8>>,
}

impl Segment {
    fn empty(number: u64) -> Segment {
        Segment {
            number,
            len: 0,
            crc: Hasher::new(),
            until_ms: i64::MIN,
            new: Vec::new(),
        }
    }

    /// Appends an operation about event time `time_ms`.
    fn write(&mut self, op: &Op<'_>, time_ms: i64) {
        let block = self.block();
        let before = block.len();
        op.encode(block);
        let written = block.len() - before;
        self.len += written as u64;
        self.until_ms = self.until_ms.max(time_ms);
    }

    /// The block for the next operation.
    fn block(&mut self) -> &mut Vec<u8> {
        if self.new.last().is_none_or(|b| b.len() >= BLOCK_BYTES) {
            // The first block grows with its content, because many partitions have little to write.
            let room = if self.new.is_empty() {
                0
            } else {
                BLOCK_BYTES + SLACK_BYTES
            };
            self.new.push(Vec::with_capacity(room));
        }
        let last = self.new.len() - 1;
        &mut self.new[last]
    }

    fn new_len(&self) -> u64 {
        self.new.iter().map(|b| b.len() as u64).sum()
    }
}

/// The segments of one joiner.
#[derive(Debug, Clone, Default)]
pub(in crate::collect) struct Journal {
    segments: VecDeque<Segment>,
    /// Number of the next segment.
    next: u64,
}

impl Journal {
    /// Continues after the marks of a snapshot.
    pub fn resume(marks: &[JournalMark]) -> Journal {
        let segments = marks.iter().map(|m| Segment {
            number: m.segment,
            len: m.len,
            crc: Hasher::new_with_initial_len(m.crc, m.len),
            until_ms: m.until_ms,
            new: Vec::new(),
        });
        Journal {
            segments: segments.collect(),
            next: marks.last().map_or(0, |m| m.segment + 1),
        }
    }

    /// Appends an operation about event time `time_ms`.
    pub fn write(&mut self, op: &Op<'_>, time_ms: i64) {
        let full = |s: &Segment| s.len >= SEGMENT_BYTES;
        if self.segments.back().is_none_or(full) {
            self.segments.push_back(Segment::empty(self.next));
            self.next += 1;
        }
        if let Some(segment) = self.segments.back_mut() {
            segment.write(op, time_ms);
        }
    }

    /// Takes what was written since the last call, for the segments of (`join`, `partition`).
    pub fn take(&mut self, join: u16, partition: i32) -> Vec<JournalDelta> {
        let mut deltas = Vec::new();
        for s in &mut self.segments {
            let mut offset = s.len - s.new_len();
            for bytes in std::mem::take(&mut s.new) {
                s.crc.update(&bytes);
                let end = offset + bytes.len() as u64;
                deltas.push(JournalDelta {
                    join,
                    partition,
                    segment: s.number,
                    offset,
                    bytes,
                });
                offset = end;
            }
        }
        deltas
    }

    /// The marks of a snapshot, of what was taken.
    pub fn marks(&self) -> Vec<JournalMark> {
        let mark = |s: &Segment| JournalMark {
            segment: s.number,
            len: s.len - s.new_len(),
            crc: s.crc.clone().finalize(),
            until_ms: s.until_ms,
        };
        self.segments.iter().map(mark).collect()
    }

    /// Removes the segments in which nothing is later than `floor_ms`; the last segment stays open.
    pub fn release(&mut self, floor_ms: i64) {
        while self.segments.len() > 1
            && let Some(oldest) = self.segments.front()
            && oldest.until_ms < floor_ms
            && oldest.new.is_empty()
        {
            self.segments.pop_front();
        }
    }

    /// Heap bytes of what was not taken yet.
    pub fn bytes(&self) -> usize {
        let blocks = self.segments.iter().flat_map(|s| &s.new);
        blocks.map(Vec::capacity).sum()
    }
}

/// Operations that are decoded before they are applied.
const GROUP: usize = 64;

/// Decodes the operations of one segment in groups, in order, after its length and checksum are
/// compared with its mark.
pub(in crate::collect) fn replay<'a>(
    bytes: &'a [u8],
    mark: &JournalMark,
    mut each: impl FnMut(&[Op<'a>]) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let len = usize::try_from(mark.len).map_err(|_| JournalError::Torn)?;
    let mut rest = bytes.get(..len).ok_or(JournalError::Torn)?;
    if crc32fast::hash(rest) != mark.crc {
        return Err(JournalError::Torn);
    }
    let mut group = Vec::with_capacity(GROUP);
    while !rest.is_empty() {
        group.clear();
        while group.len() < GROUP && !rest.is_empty() {
            group.push(Op::decode(&mut rest)?);
        }
        each(&group)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::key::Key;
    use super::super::operation::{Entries, OutcomeOp, PredictOp, SeenId};
    use super::super::waiting::WaitingOutcome;
    use super::*;

    const OPS: [Op<'_>; 8] = [
        Op::Predict(PredictOp {
            model: 1,
            start_ms: 7000,
            offset_ms: 5,
            slot: 3,
            key: Key([1, 2]),
            entries: Entries::Encoded(&[9; 24]),
            full_vector: 0,
        }),
        Op::Outcome(OutcomeOp {
            model: 1,
            start_ms: 7000,
            key: Key([1, 2]),
            class: 1,
            time_ms: 9000,
        }),
        Op::Wait {
            key: Key([3, 4]),
            outcome: WaitingOutcome {
                class: 0,
                time_ms: -5,
                model: u16::MAX,
            },
        },
        Op::EndWait { key: Key([3, 4]) },
        Op::DropModel { model: 1 },
        Op::Predict(PredictOp {
            model: 2,
            start_ms: 7000,
            offset_ms: 5,
            slot: 3,
            key: Key([5, 2]),
            entries: Entries::Encoded(&[7; 48]),
            full_vector: 3,
        }),
        Op::Seen(SeenId {
            key: [1, 2, 3],
            content: 4,
            time_ms: -7,
        }),
        Op::EndStream { slot: 3 },
    ];

    fn written() -> (Vec<u8>, JournalMark) {
        let mut journal = Journal::default();
        OPS.iter().for_each(|op| journal.write(op, 7000));
        let deltas = journal.take(0, 0);
        (deltas[0].bytes.clone(), journal.marks()[0])
    }

    fn encoded(op: Op<'_>) -> Vec<u8> {
        let mut to = Vec::new();
        op.encode(&mut to);
        to
    }

    #[test]
    fn operations_are_decoded_as_they_were_written() {
        let (bytes, mark) = written();
        let mut all = Vec::new();
        let collect = |ops: &[Op<'_>]| {
            all.extend(ops.iter().map(|op| encoded(*op)));
            Ok(())
        };
        replay(&bytes, &mark, collect).unwrap();
        assert_eq!(all, OPS.map(encoded));
    }

    #[test]
    fn bytes_after_the_mark_are_not_read_and_missing_bytes_are_torn() {
        let (mut bytes, mark) = written();
        bytes.extend([1, 2, 3]);
        assert!(replay(&bytes, &mark, |_| Ok(())).is_ok());
        assert!(replay(&bytes[..20], &mark, |_| Ok(())).is_err());
        bytes[5] ^= 1;
        assert!(replay(&bytes, &mark, |_| Ok(())).is_err());
    }

    #[test]
    fn a_journal_continues_where_its_marks_end() {
        let (_, mark) = written();
        let mut journal = Journal::resume(&[mark]);
        journal.write(&OPS[3], 8000);
        let deltas = journal.take(2, 5);
        assert_eq!((deltas[0].segment, deltas[0].offset), (0, mark.len));
        assert_eq!((deltas[0].join, deltas[0].partition), (2, 5));
        let marks = journal.marks();
        assert_eq!((marks[0].len, marks[0].until_ms), (mark.len + 17, 8000));
    }
}
