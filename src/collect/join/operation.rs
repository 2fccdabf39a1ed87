//! The operations of a journal and their encoding, little-endian.
//!
//! ```text
//! 1 predict     model u16 │ pane start i64 │ offset u32 │ slot u32 │ key 16 │ entries u16 │ (score f64 │ class u32)…
//! 2 outcome     model u16 │ pane start i64 │ key 16 │ class u32 │ time i64
//! 3 wait        key 16 │ class u32 │ time i64 │ model u16, or 0xffff for any
//! 4 end wait    key 16                               the prediction of a waiting outcome came, or cannot come
//! 5 drop model  model u16                            its views or cells changed: nothing of it before this is
//!                                                    retained, and outcomes that wait for it wait for any model
//! 6 predict     as 1, with the number of entries of the full vector, u16, after the number of entries
//! 7 seen        key 12 │ content u32 │ time i64      a counted record, in the journal of ids
//! 8 end stream  slot u32                             it has expired: nothing of it before this is
//!                                                    retained, and its slot may become another stream's
//! ```

use super::key::Key;
use super::waiting::WaitingOutcome;
use crate::stats::fixed::Score;

#[derive(Debug, Clone, Copy)]
pub(in crate::collect) enum Op<'a> {
    Predict(PredictOp<'a>),
    Outcome(OutcomeOp),
    Wait { key: Key, outcome: WaitingOutcome },
    EndWait { key: Key },
    DropModel { model: u16 },
    Seen(SeenId),
    EndStream { slot: u32 },
}

#[derive(Debug, Clone, Copy)]
pub(in crate::collect) struct PredictOp<'a> {
    pub model: u16,
    pub start_ms: i64,
    /// Event time after the start of the pane.
    pub offset_ms: u32,
    pub slot: u32,
    pub key: Key,
    pub entries: Entries<'a>,
    /// How many of the entries are a [full vector](super::full_vector).
    pub full_vector: u16,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::collect) struct OutcomeOp {
    pub model: u16,
    pub start_ms: i64,
    pub key: Key,
    pub class: u32,
    pub time_ms: i64,
}

/// A counted record, in the journal of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenId {
    /// Model, version, segment, id, and row where a record holds several, hashed.
    pub(in crate::collect) key: [u32; 3],
    /// Prediction and outcome, hashed.
    pub(in crate::collect) content: u32,
    /// Event time.
    pub(in crate::collect) time_ms: i64,
}

/// Entries of a prediction, 12 bytes each.
#[derive(Debug, Clone, Copy)]
pub(in crate::collect) enum Entries<'a> {
    Given(&'a [(Score, u32)]),
    Encoded(&'a [u8]),
}

/// Why a journal cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// A segment is shorter than its mark, or its checksum differs.
    #[error("shorter than the snapshot says, or its checksum is wrong")]
    Torn,
    /// An operation is invalid.
    #[error("contains an invalid operation")]
    Corrupt,
}

impl Entries<'_> {
    fn len(&self) -> usize {
        match self {
            Entries::Given(entries) => entries.len(),
            Entries::Encoded(bytes) => bytes.len() / 12,
        }
    }

    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Entries::Encoded(bytes) => to.extend_from_slice(bytes),
            Entries::Given(entries) => {
                for (z, class) in *entries {
                    to.extend(z.value().to_le_bytes());
                    to.extend(class.to_le_bytes());
                }
            }
        }
    }

    /// Replaces what `to` holds by the entries, with their scores checked.
    pub fn decode(&self, to: &mut Vec<(Score, u32)>) -> Result<(), JournalError> {
        to.clear();
        match self {
            Entries::Given(entries) => to.extend_from_slice(entries),
            Entries::Encoded(bytes) => {
                for entry in bytes.chunks_exact(12) {
                    to.push(decode_entry(entry)?);
                }
            }
        }
        Ok(())
    }
}

fn decode_entry(mut bytes: &[u8]) -> Result<(Score, u32), JournalError> {
    let z = f64::from_le_bytes(take(&mut bytes)?);
    let z = Score::new(z).map_err(|_| JournalError::Corrupt)?;
    Ok((z, u32::from_le_bytes(take(&mut bytes)?)))
}

impl<'a> Op<'a> {
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Op::Predict(p) => {
                to.push(if p.full_vector == 0 { 1 } else { 6 });
                to.extend(p.model.to_le_bytes());
                to.extend(p.start_ms.to_le_bytes());
                to.extend(p.offset_ms.to_le_bytes());
                to.extend(p.slot.to_le_bytes());
                encode_key(p.key, to);
                to.extend((p.entries.len() as u16).to_le_bytes());
                if p.full_vector > 0 {
                    to.extend(p.full_vector.to_le_bytes());
                }
                p.entries.encode(to);
            }
            Op::Outcome(o) => {
                to.push(2);
                to.extend(o.model.to_le_bytes());
                to.extend(o.start_ms.to_le_bytes());
                encode_key(o.key, to);
                to.extend(o.class.to_le_bytes());
                to.extend(o.time_ms.to_le_bytes());
            }
            Op::Wait { key, outcome } => {
                to.push(3);
                encode_key(*key, to);
                to.extend(outcome.class.to_le_bytes());
                to.extend(outcome.time_ms.to_le_bytes());
                to.extend(outcome.model.to_le_bytes());
            }
            Op::EndWait { key } => {
                to.push(4);
                encode_key(*key, to);
            }
            Op::DropModel { model } => {
                to.push(5);
                to.extend(model.to_le_bytes());
            }
            Op::Seen(seen) => {
                to.push(7);
                seen.key.iter().for_each(|k| to.extend(k.to_le_bytes()));
                to.extend(seen.content.to_le_bytes());
                to.extend(seen.time_ms.to_le_bytes());
            }
            Op::EndStream { slot } => {
                to.push(8);
                to.extend(slot.to_le_bytes());
            }
        }
    }

    /// Decodes the first operation of `from`, which holds the rest afterwards.
    pub fn decode(from: &mut &'a [u8]) -> Result<Op<'a>, JournalError> {
        Ok(match take::<1>(from)?[0] {
            1 => Op::decode_prediction(from, false)?,
            6 => Op::decode_prediction(from, true)?,
            2 => Op::Outcome(OutcomeOp {
                model: u16::from_le_bytes(take(from)?),
                start_ms: i64::from_le_bytes(take(from)?),
                key: decode_key(from)?,
                class: u32::from_le_bytes(take(from)?),
                time_ms: i64::from_le_bytes(take(from)?),
            }),
            3 => Op::Wait {
                key: decode_key(from)?,
                outcome: WaitingOutcome {
                    class: u32::from_le_bytes(take(from)?),
                    time_ms: i64::from_le_bytes(take(from)?),
                    model: u16::from_le_bytes(take(from)?),
                },
            },
            4 => Op::EndWait {
                key: decode_key(from)?,
            },
            5 => Op::DropModel {
                model: u16::from_le_bytes(take(from)?),
            },
            7 => {
                let [a, b, c] = [take(from)?, take(from)?, take(from)?];
                Op::Seen(SeenId {
                    key: [a, b, c].map(u32::from_le_bytes),
                    content: u32::from_le_bytes(take(from)?),
                    time_ms: i64::from_le_bytes(take(from)?),
                })
            }
            8 => Op::EndStream {
                slot: u32::from_le_bytes(take(from)?),
            },
            _ => return Err(JournalError::Corrupt),
        })
    }

    fn decode_prediction(from: &mut &'a [u8], full: bool) -> Result<Op<'a>, JournalError> {
        let model = u16::from_le_bytes(take(from)?);
        let start_ms = i64::from_le_bytes(take(from)?);
        let offset_ms = u32::from_le_bytes(take(from)?);
        let slot = u32::from_le_bytes(take(from)?);
        let key = decode_key(from)?;
        let entries = usize::from(u16::from_le_bytes(take(from)?));
        let full_vector = if full {
            u16::from_le_bytes(take(from)?)
        } else {
            0
        };
        Ok(Op::Predict(PredictOp {
            model,
            start_ms,
            offset_ms,
            slot,
            key,
            entries: Entries::Encoded(slice(from, entries * 12)?),
            full_vector,
        }))
    }
}

fn encode_key(key: Key, to: &mut Vec<u8>) {
    to.extend(key.0[0].to_le_bytes());
    to.extend(key.0[1].to_le_bytes());
}

fn decode_key(from: &mut &[u8]) -> Result<Key, JournalError> {
    let first = u64::from_le_bytes(take(from)?);
    Ok(Key([first, u64::from_le_bytes(take(from)?)]))
}

fn take<const N: usize>(from: &mut &[u8]) -> Result<[u8; N], JournalError> {
    slice(from, N)?
        .try_into()
        .map_err(|_| JournalError::Corrupt)
}

fn slice<'a>(from: &mut &'a [u8], n: usize) -> Result<&'a [u8], JournalError> {
    let (head, tail) = from.split_at_checked(n).ok_or(JournalError::Corrupt)?;
    *from = tail;
    Ok(head)
}
