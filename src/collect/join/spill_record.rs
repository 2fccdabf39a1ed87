//! The format of predictions in a spill table.
//!
//! ```text
//!   name 0 │ id 16               → a record for each version       to find an id
//!   name 1 │ pane u32 │ list u32 → about 1024 records              to visit a whole pane
//!
//!   record   key 16 │ pane u32 │ list u32 │ place u16 │ entries u16 │ row
//! ```
//! A row takes 16 bytes and 12 for each entry, as in a [`Cohort`]. Names are big-endian, so that
//! they sort in the order in which they are written; a table can take them in without sorting them
//! again.

use super::cohort::{Cohort, CohortMeta, PaneId};
use super::key::Key;

/// Bytes of a record before its row: key, pane, list, place, number of entries.
const HEAD: usize = 28;

/// Name of an entry; names of ids and of lists have the same length.
pub(super) type Name = [u8; 17];

/// A prediction that comes back from a spill table.
#[derive(Debug)]
pub(super) struct SpilledRow {
    pub pane: PaneId,
    pub meta: CohortMeta,
    pub key: Key,
    /// The row as [`Cohort::decode`] reads it.
    pub row: Vec<u8>,
}

/// Where a record lies: number of its pane, list within the pane, place within the list.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordPlace {
    pub pane: u32,
    pub list: u32,
    pub place: u16,
}

/// One encoded prediction.
pub(super) struct Record<'a> {
    pub key: Key,
    pub place: RecordPlace,
    /// The whole record.
    pub bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// The row as [`Cohort::decode`] reads it.
    pub fn row(&self) -> &'a [u8] {
        &self.bytes[HEAD..]
    }
}

pub(super) fn encode(cohort: &Cohort, row: u32, at: RecordPlace, to: &mut Vec<u8>) {
    to.extend(key_bytes(cohort.row(row).key));
    to.extend(at.pane.to_le_bytes());
    to.extend(at.list.to_le_bytes());
    to.extend(at.place.to_le_bytes());
    to.extend((cohort.meta().entries as u16).to_le_bytes());
    cohort.encode(row, to);
}

/// Decodes the records of a value, up to the first that is damaged.
pub(super) fn records(mut rest: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let half = |at: usize| Some(u16::from_le_bytes(rest.get(at..at + 2)?.try_into().ok()?));
        let entries = usize::from(half(HEAD - 2)?);
        let bytes = rest.get(..HEAD + Cohort::encoded_len(entries))?;
        let record = Record {
            key: decode_key(bytes)?,
            place: RecordPlace {
                pane: word(16)?,
                list: word(20)?,
                place: half(24)?,
            },
            bytes,
        };
        rest = &rest[bytes.len()..];
        Some(record)
    })
}

pub(super) fn id_name(key: Key) -> Name {
    let mut name = [0; 17];
    name[1..].copy_from_slice(&key_bytes(key.any_version()));
    name
}

pub(super) fn list_name(pane: u32, list: u32) -> Name {
    let mut name = [0; 17];
    name[0] = 1;
    name[1..5].copy_from_slice(&pane.to_be_bytes());
    name[5..9].copy_from_slice(&list.to_be_bytes());
    name
}

fn key_bytes(key: Key) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key.0[0].to_be_bytes());
    bytes[8..].copy_from_slice(&key.0[1].to_be_bytes());
    bytes
}

fn decode_key(bytes: &[u8]) -> Option<Key> {
    let half = |at: usize| Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some(Key([half(0)?, half(8)?]))
}
