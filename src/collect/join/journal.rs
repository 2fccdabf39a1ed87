//! What a joiner did, written down, so that a snapshot stores the difference and not all that is pending.
//!
//! A journal is a row of segments, each only ever appended to. A snapshot says for each segment how much
//! of it belongs to the snapshot, with the checksum of that much ([`JournalMark`]); what lies behind is
//! from a later time that the snapshot knows nothing of, and is cut off on restore. So any kept snapshot
//! can be restored, not only the newest, and writing one costs what happened since the one before.
//!
//! Operations, little-endian:
//! ```text
//! 1 predict   model u16 │ pane start i64 │ offset u32 │ subject u32 │ key 16 │ entries u16 │ (score f64 │ class u32)…
//! 2 outcome   model u16 │ pane start i64 │ key 16 │ class u32 │ time i64
//! 3 wait      key 16 │ class u32 │ time i64 │ model u16, or 0xffff for any
//! 4 forget    key 16                                            a waiting outcome found its prediction
//! 5 drop      model u16                    its views or cells changed: nothing of it before this is held, and outcomes
//!                                          that wait for it wait for any model
//! 6 predict   as 1, and behind the number of entries that of those which are a whole vector, u16
//! ```
//! A segment is whole history up to some event time; once every pane up to there is let go the segment
//! is, too. Replaying the operations in order, but those of panes that are no longer held, makes the
//! joiner that wrote them.

use super::key::Key;
use crate::stats::fixed::Score;
use crc32fast::Hasher;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;

/// A segment is ended when it is this long.
pub const SEGMENT_BYTES: u64 = 32 << 20;

/// What is new is kept in blocks of so many bytes: one buffer that doubles is copied to fresh memory each time,
/// which the kernel clears first, and that took a fifth of the time of a joined record.
const BLOCK_BYTES: usize = 256 << 10;

/// Room behind the end of a block for the operation that crosses it, of 30 views.
const SLACK_BYTES: usize = 400;

/// One operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op<'a> {
    Predict {
        model: u16,
        start_ms: i64,
        offset_ms: u32,
        subject: u32,
        key: Key,
        /// Twelve bytes for each entry.
        views: Views<'a>,
        /// How many of them are a [whole vector](super::full_vector).
        whole: u16,
    },
    Outcome {
        model: u16,
        start_ms: i64,
        key: Key,
        class: u32,
        time_ms: i64,
    },
    Wait {
        key: Key,
        class: u32,
        time_ms: i64,
        model: u16,
    },
    Forget {
        key: Key,
    },
    Drop {
        model: u16,
    },
}

/// Scores and classes by view, as they are given or as they were written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Views<'a> {
    Given(&'a [(Score, u32)]),
    Written(&'a [u8]),
}

/// How much of one segment belongs to a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalMark {
    /// Number of the segment.
    pub segment: u64,
    /// Bytes of it.
    pub len: u64,
    /// CRC-32 of these.
    pub crc: u32,
    /// Newest event time in it.
    pub until_ms: i64,
}

/// Bytes to be appended to a segment before the snapshot that marks them is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalDelta {
    /// Index of the join.
    pub join: u16,
    /// Partition.
    pub partition: i32,
    /// Number of the segment.
    pub segment: u64,
    /// Where in the segment they belong.
    pub offset: u64,
    /// The operations.
    pub bytes: Vec<u8>,
}

/// Why a journal cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalError {
    /// A segment is shorter than its mark, or its checksum is another.
    Torn,
    /// An operation is none.
    Corrupt,
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JournalError::Torn => "shorter than the snapshot says, or its checksum is wrong",
            JournalError::Corrupt => "holds an operation that is none",
        })
    }
}

impl std::error::Error for JournalError {}

#[derive(Debug, Clone)]
struct Segment {
    number: u64,
    len: u64,
    crc: Hasher,
    until_ms: i64,
    /// Not taken yet; none of the blocks is empty.
    fresh: Vec<Vec<u8>>,
}

impl Segment {
    /// The block that the next operation goes to.
    fn block(&mut self) -> &mut Vec<u8> {
        if self.fresh.last().is_none_or(|b| b.len() >= BLOCK_BYTES) {
            // The first grows with what comes: many partitions have little to write.
            let room = match self.fresh.len() {
                0 => 0,
                _ => BLOCK_BYTES + SLACK_BYTES,
            };
            self.fresh.push(Vec::with_capacity(room));
        }
        let last = self.fresh.len() - 1;
        &mut self.fresh[last]
    }

    fn fresh_len(&self) -> u64 {
        self.fresh.iter().map(|b| b.len() as u64).sum()
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Journal {
    segments: VecDeque<Segment>,
    next: u64,
}

impl Journal {
    /// Goes on behind the marks of a snapshot.
    pub fn resume(marks: &[JournalMark]) -> Journal {
        let segments = marks.iter().map(|m| Segment {
            number: m.segment,
            len: m.len,
            crc: Hasher::new_with_initial_len(m.crc, m.len),
            until_ms: m.until_ms,
            fresh: Vec::new(),
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
            self.segments.push_back(Segment {
                number: self.next,
                len: 0,
                crc: Hasher::new(),
                until_ms: i64::MIN,
                fresh: Vec::new(),
            });
            self.next += 1;
        }
        if let Some(s) = self.segments.back_mut() {
            let block = s.block();
            let before = block.len();
            op.write(block);
            s.len += (block.len() - before) as u64;
            s.until_ms = s.until_ms.max(time_ms);
        }
    }

    /// What is new since the last call, for the segments of (`join`, `partition`).
    pub fn take(&mut self, join: u16, partition: i32) -> Vec<JournalDelta> {
        let mut deltas = Vec::new();
        for s in &mut self.segments {
            let mut offset = s.len - s.fresh_len();
            for bytes in std::mem::take(&mut s.fresh) {
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

    /// The marks of a snapshot; everything must have been taken.
    pub fn marks(&self) -> Vec<JournalMark> {
        let mark = |s: &Segment| JournalMark {
            segment: s.number,
            len: s.len - s.fresh_len(),
            crc: s.crc.clone().finalize(),
            until_ms: s.until_ms,
        };
        self.segments.iter().map(mark).collect()
    }

    /// Lets go of the segments in which nothing is later than `floor_ms`; the last one stays open.
    pub fn release(&mut self, floor_ms: i64) {
        while self.segments.len() > 1
            && let Some(oldest) = self.segments.front()
            && oldest.until_ms < floor_ms
            && oldest.fresh.is_empty()
        {
            self.segments.pop_front();
        }
    }

    /// Bytes that no snapshot has taken yet.
    pub fn fresh_bytes(&self) -> usize {
        let blocks = self.segments.iter().flat_map(|s| &s.fresh);
        blocks.map(Vec::capacity).sum()
    }
}

impl Op<'_> {
    fn write(&self, to: &mut Vec<u8>) {
        let key = |to: &mut Vec<u8>, key: &Key| {
            to.extend(key.0[0].to_le_bytes());
            to.extend(key.0[1].to_le_bytes());
        };
        match self {
            Op::Predict {
                model,
                start_ms,
                offset_ms,
                subject,
                key: k,
                views,
                whole,
            } => {
                to.push(if *whole == 0 { 1 } else { 6 });
                to.extend(model.to_le_bytes());
                to.extend(start_ms.to_le_bytes());
                to.extend(offset_ms.to_le_bytes());
                to.extend(subject.to_le_bytes());
                key(to, k);
                let entries = match views {
                    Views::Written(bytes) => bytes.len() / 12,
                    Views::Given(views) => views.len(),
                };
                to.extend((entries as u16).to_le_bytes());
                if *whole > 0 {
                    to.extend(whole.to_le_bytes());
                }
                match views {
                    Views::Written(bytes) => to.extend_from_slice(bytes),
                    Views::Given(views) => {
                        for (z, class) in *views {
                            to.extend(z.value().to_le_bytes());
                            to.extend(class.to_le_bytes());
                        }
                    }
                }
            }
            Op::Outcome {
                model,
                start_ms,
                key: k,
                class,
                time_ms,
            } => {
                to.push(2);
                to.extend(model.to_le_bytes());
                to.extend(start_ms.to_le_bytes());
                key(to, k);
                to.extend(class.to_le_bytes());
                to.extend(time_ms.to_le_bytes());
            }
            Op::Wait {
                key: k,
                class,
                time_ms,
                model,
            } => {
                to.push(3);
                key(to, k);
                to.extend(class.to_le_bytes());
                to.extend(time_ms.to_le_bytes());
                to.extend(model.to_le_bytes());
            }
            Op::Forget { key: k } => {
                to.push(4);
                key(to, k);
            }
            Op::Drop { model } => {
                to.push(5);
                to.extend(model.to_le_bytes());
            }
        }
    }
}

/// Reads the operations of one segment.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Checks the length and the checksum of the segment against its mark.
    pub fn new(bytes: &'a [u8], mark: &JournalMark) -> Result<Reader<'a>, JournalError> {
        let len = usize::try_from(mark.len).map_err(|_| JournalError::Torn)?;
        let bytes = bytes.get(..len).ok_or(JournalError::Torn)?;
        if crc32fast::hash(bytes) != mark.crc {
            return Err(JournalError::Torn);
        }
        Ok(Reader { bytes })
    }

    /// The next operation; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Op<'a>>, JournalError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let op = match self.take::<1>()?[0] {
            kind @ (1 | 6) => {
                let model = u16::from_le_bytes(self.take()?);
                let start_ms = i64::from_le_bytes(self.take()?);
                let offset_ms = u32::from_le_bytes(self.take()?);
                let subject = u32::from_le_bytes(self.take()?);
                let key = self.key()?;
                let entries = usize::from(u16::from_le_bytes(self.take()?));
                let whole = match kind {
                    6 => u16::from_le_bytes(self.take()?),
                    _ => 0,
                };
                let views = Views::Written(self.slice(entries * 12)?);
                Op::Predict {
                    model,
                    start_ms,
                    offset_ms,
                    subject,
                    key,
                    views,
                    whole,
                }
            }
            2 => Op::Outcome {
                model: u16::from_le_bytes(self.take()?),
                start_ms: i64::from_le_bytes(self.take()?),
                key: self.key()?,
                class: u32::from_le_bytes(self.take()?),
                time_ms: i64::from_le_bytes(self.take()?),
            },
            3 => Op::Wait {
                key: self.key()?,
                class: u32::from_le_bytes(self.take()?),
                time_ms: i64::from_le_bytes(self.take()?),
                model: u16::from_le_bytes(self.take()?),
            },
            4 => Op::Forget { key: self.key()? },
            5 => Op::Drop {
                model: u16::from_le_bytes(self.take()?),
            },
            _ => return Err(JournalError::Corrupt),
        };
        Ok(Some(op))
    }

    fn slice(&mut self, n: usize) -> Result<&'a [u8], JournalError> {
        let (head, tail) = self
            .bytes
            .split_at_checked(n)
            .ok_or(JournalError::Corrupt)?;
        self.bytes = tail;
        Ok(head)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], JournalError> {
        let slice = self.slice(N)?;
        slice.try_into().map_err(|_| JournalError::Corrupt)
    }

    fn key(&mut self) -> Result<Key, JournalError> {
        let high = u64::from_le_bytes(self.take()?);
        Ok(Key([high, u64::from_le_bytes(self.take()?)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: [Op<'_>; 6] = [
        Op::Predict {
            model: 1,
            start_ms: 7000,
            offset_ms: 5,
            subject: 3,
            key: Key([1, 2]),
            views: Views::Written(&[9; 24]),
            whole: 0,
        },
        Op::Outcome {
            model: 1,
            start_ms: 7000,
            key: Key([1, 2]),
            class: 1,
            time_ms: 9000,
        },
        Op::Wait {
            key: Key([3, 4]),
            class: 0,
            time_ms: -5,
            model: u16::MAX,
        },
        Op::Forget { key: Key([3, 4]) },
        Op::Drop { model: 1 },
        Op::Predict {
            model: 2,
            start_ms: 7000,
            offset_ms: 5,
            subject: 3,
            key: Key([5, 2]),
            views: Views::Written(&[7; 48]),
            whole: 3,
        },
    ];

    fn written() -> (Vec<u8>, JournalMark) {
        let mut journal = Journal::default();
        OPS.iter().for_each(|op| journal.write(op, 7000));
        let deltas = journal.take(0, 0);
        (deltas[0].bytes.clone(), journal.marks()[0])
    }

    #[test]
    fn operations_come_back_as_they_went() {
        let (bytes, mark) = written();
        let mut reader = Reader::new(&bytes, &mark).unwrap();
        for op in OPS {
            let read = reader.next().unwrap().unwrap();
            let bytes = |op: Op<'_>| {
                let mut to = Vec::new();
                op.write(&mut to);
                to
            };
            assert_eq!(bytes(read), bytes(op));
        }
        assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn what_lies_behind_the_mark_is_not_read_and_what_is_missing_is_torn() {
        let (mut bytes, mark) = written();
        bytes.extend([1, 2, 3]);
        assert!(Reader::new(&bytes, &mark).is_ok());
        assert!(Reader::new(&bytes[..20], &mark).is_err());
        bytes[5] ^= 1;
        assert!(Reader::new(&bytes, &mark).is_err());
    }

    #[test]
    fn a_journal_goes_on_where_its_marks_end() {
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
