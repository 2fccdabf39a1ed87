//! Finds the newest usable checkpoint among the records of a partition in the state topic.
//!
//! A [`CheckpointReader`] takes all records of the topic in order and keeps those of its partition.
//! [`CheckpointReader::newest`] assembles the newest whole checkpoint. A damaged one is reported
//! and the previous one is used; if all are damaged the result is an error and never an empty
//! start. The reader keeps the bytes of two checkpoints per epoch and, unless told to skip it, of
//! the journal.

use super::checkpoint::{
    self, CheckpointHead, JournalChunk, JournalRange, Notified, PartitionCheckpoint, epoch_at,
};
use super::format::FormatError;
use std::collections::{BTreeMap, BTreeSet};

/// The records of one partition, as they are read.
#[derive(Debug, Default)]
pub struct CheckpointReader {
    prefix: String,
    heads: BTreeMap<(i64, u64), Vec<u8>>,
    bodies: BTreeMap<(i64, u64, u32), Vec<u8>>,
    journal: BTreeMap<JournalChunk, Vec<u8>>,
    /// Notifications by epoch, number of the previous checkpoint, and fingerprint.
    notified: BTreeMap<(i64, u64, String), Vec<u8>>,
    /// Unknown keys that have a value.
    foreign: BTreeSet<Vec<u8>>,
    bytes: u64,
    /// Journals are skipped: the caller reads the sums and does not resume the partition.
    without_journals: bool,
}

/// The newest usable checkpoint of a partition.
#[derive(Debug, Default)]
pub struct FoundCheckpoint {
    /// The checkpoint.
    pub checkpoint: PartitionCheckpoint,
    /// The epoch under which it was written.
    pub epoch: i64,
    /// Its number within the epoch.
    pub number: u64,
    /// The key of its head.
    pub head: String,
    /// Bytes of the journal segments that it marks.
    pub segments: Vec<Vec<u8>>,
    /// What people were notified of since it was begun, the last of each stream.
    pub notified: Vec<Notified>,
    /// Newer checkpoints that were refused, by the key of their head.
    pub refused: Vec<(String, FormatError)>,
    /// Records of notifications that cannot be read, by key.
    pub unreadable: Vec<(String, FormatError)>,
}

impl CheckpointReader {
    /// A reader of the keys with this prefix.
    pub fn new(prefix: String) -> CheckpointReader {
        CheckpointReader {
            prefix,
            ..CheckpointReader::default()
        }
    }

    /// A reader that skips journals, for callers that do not resume the partition.
    pub fn without_journals(prefix: String) -> CheckpointReader {
        CheckpointReader {
            without_journals: true,
            ..CheckpointReader::new(prefix)
        }
    }

    /// Drops the records up to the found checkpoint, but keeps the bodies of a later checkpoint
    /// whose head has not come yet.
    pub fn clear_until(&mut self, found: &FoundCheckpoint) {
        let until = (found.epoch, found.number);
        self.heads.clear();
        self.bodies.retain(|(epoch, ..), value| {
            let number = value
                .split_first_chunk::<8>()
                .map(|(n, _)| u64::from_le_bytes(*n));
            number.is_some_and(|number| (*epoch, number) > until)
        });
        self.notified
            .retain(|(epoch, number, _), _| (*epoch, *number) >= until);
    }

    /// Takes one record of the topic, in order of offsets; records of other partitions are ignored.
    pub fn read(&mut self, key: &[u8], value: Option<&[u8]>) {
        let Some(rest) = key.strip_prefix(self.prefix.as_bytes()) else {
            return;
        };
        let known = std::str::from_utf8(rest)
            .ok()
            .and_then(|r| self.store(r, value));
        match (known, value) {
            (Some(()), _) => {}
            (None, Some(_)) => drop(self.foreign.insert(key.to_vec())),
            // An unknown key was deleted.
            (None, None) => drop(self.foreign.remove(key)),
        }
        self.bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
    }

    fn store(&mut self, rest: &str, value: Option<&[u8]>) -> Option<()> {
        let parts: Vec<&str> = rest.split('/').collect();
        let number = |text: &str| text.parse::<u64>().ok();
        match parts[..] {
            ["claim"] => Some(()),
            [epoch, "head", slot] => {
                let key = (epoch.parse().ok()?, number(slot)?);
                set(&mut self.heads, key, value)
            }
            [epoch, "body", slot, chunk] => {
                let key = (epoch.parse().ok()?, number(slot)?, chunk.parse().ok()?);
                set(&mut self.bodies, key, value)
            }
            [_, "journal", _, _] if self.without_journals => Some(()),
            [epoch, "journal", segment, offset] => {
                let key = (number(segment)?, number(offset)?, epoch.parse().ok()?);
                set(&mut self.journal, key, value)
            }
            [epoch, "notified", at, fingerprint] => {
                let key = (epoch.parse().ok()?, number(at)?, fingerprint.to_owned());
                set(&mut self.notified, key, value)
            }
            _ => None,
        }
    }

    /// Bytes of the partition's records read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The newest whole checkpoint; `None` if none was ever written. The error lists every bad key
    /// with its fault.
    pub fn newest(&self) -> Result<Option<FoundCheckpoint>, Vec<(String, FormatError)>> {
        if !self.foreign.is_empty() {
            let name = |key: &Vec<u8>| String::from_utf8_lossy(key).into_owned();
            let named = self.foreign.iter();
            let named = named.map(|key| (name(key), FormatError::Foreign));
            return Err(named.collect());
        }
        let mut refused = Vec::new();
        let mut heads: Vec<(i64, u64, u64, CheckpointHead)> = Vec::new();
        for (&(epoch, slot), bytes) in &self.heads {
            match CheckpointHead::decode(bytes) {
                Ok(head) => heads.push((epoch, head.number, slot, head)),
                Err(fault) => refused.push((self.head_key(epoch, slot), fault)),
            }
        }
        heads.sort_by_key(|&(epoch, number, ..)| std::cmp::Reverse((epoch, number)));
        for (epoch, number, slot, head) in heads {
            match self.assemble(epoch, slot, head) {
                Ok((checkpoint, segments)) => {
                    let (notified, unreadable) = self.notified_after(epoch, number);
                    return Ok(Some(FoundCheckpoint {
                        checkpoint,
                        epoch,
                        number,
                        head: self.head_key(epoch, slot),
                        segments,
                        notified,
                        refused,
                        unreadable,
                    }));
                }
                Err(fault) => refused.push((self.head_key(epoch, slot), fault)),
            }
        }
        if refused.is_empty() {
            Ok(None)
        } else {
            Err(refused)
        }
    }

    /// What people were notified of since this checkpoint was begun, the last of each stream, and
    /// the records that cannot be read.
    fn notified_after(
        &self,
        epoch: i64,
        number: u64,
    ) -> (Vec<Notified>, Vec<(String, FormatError)>) {
        let (mut last, mut unreadable) = (BTreeMap::new(), Vec::new());
        for (key, value) in self.notified.range((epoch, number, String::new())..) {
            match postcard::from_bytes::<Notified>(value) {
                Ok(notified) => drop(last.insert(&key.2, notified)),
                Err(error) => {
                    let fault = FormatError::Body(error.to_string());
                    unreadable.push((self.notified_key(key), fault));
                }
            }
        }
        (last.into_values().collect(), unreadable)
    }

    fn notified_key(&self, (epoch, number, fingerprint): &(i64, u64, String)) -> String {
        checkpoint::notified_key(&self.prefix, (*epoch, *number), fingerprint)
    }

    fn head_key(&self, epoch: i64, slot: u64) -> String {
        format!("{}{epoch}/head/{slot}", self.prefix)
    }

    fn assemble(
        &self,
        epoch: i64,
        slot: u64,
        head: CheckpointHead,
    ) -> Result<(PartitionCheckpoint, Vec<Vec<u8>>), FormatError> {
        let mut body = Vec::new();
        for chunk in 0..head.chunks {
            let value = self
                .bodies
                .get(&(epoch, slot, chunk))
                .ok_or(FormatError::Missing)?;
            let (number, bytes) = value.split_first_chunk::<8>().ok_or(FormatError::Torn)?;
            if u64::from_le_bytes(*number) != head.number {
                return Err(FormatError::Torn);
            }
            body.extend_from_slice(bytes);
        }
        if body.len() as u64 != head.length {
            return Err(FormatError::Torn);
        }
        if crc32fast::hash(&body) != head.crc {
            return Err(FormatError::Checksum);
        }
        let checkpoint: PartitionCheckpoint =
            postcard::from_bytes(&body).map_err(|e| FormatError::Body(e.to_string()))?;
        if self.without_journals {
            return Ok((checkpoint, Vec::new()));
        }
        let joins = checkpoint.snapshot.joins.iter();
        let marks = joins.flat_map(|j| &j.marks);
        let segments: Result<Vec<Vec<u8>>, FormatError> = marks
            .map(|mark| {
                let bytes = self.segment(&checkpoint.epochs, mark.segment, mark.len)?;
                if crc32fast::hash(&bytes) == mark.crc {
                    Ok(bytes)
                } else {
                    Err(FormatError::Checksum)
                }
            })
            .collect();
        let segments = segments?;
        Ok((checkpoint, segments))
    }

    /// The first `len` bytes of a segment, made of the ranges that each epoch wrote.
    fn segment(
        &self,
        epochs: &[JournalRange],
        segment: u64,
        len: u64,
    ) -> Result<Vec<u8>, FormatError> {
        let mut bytes: Vec<u8> = Vec::new();
        while (bytes.len() as u64) < len {
            let offset = bytes.len() as u64;
            let epoch = epoch_at(epochs, segment, offset).ok_or(FormatError::Torn)?;
            let chunk = self
                .journal
                .get(&(segment, offset, epoch))
                .ok_or(FormatError::Missing)?;
            if chunk.is_empty() {
                return Err(FormatError::Torn);
            }
            bytes.extend_from_slice(chunk);
        }
        // Marks lie where chunks end.
        if bytes.len() as u64 == len {
            Ok(bytes)
        } else {
            Err(FormatError::Torn)
        }
    }

    /// The keys of all checkpoints of other epochs.
    pub fn keys_of_other_epochs(&self, epoch: i64) -> Vec<String> {
        let heads = self
            .heads
            .keys()
            .map(|&(e, slot)| (e, self.head_key(e, slot)));
        let bodies = self.bodies.keys().map(|&(e, slot, chunk)| {
            let key = format!("{}{e}/body/{slot}/{chunk}", self.prefix);
            (e, key)
        });
        let notified = self
            .notified
            .keys()
            .map(|key| (key.0, self.notified_key(key)));
        let all = heads.chain(bodies).chain(notified);
        all.filter(|(e, _)| *e != epoch)
            .map(|(_, key)| key)
            .collect()
    }

    /// All chunks of the journal.
    pub fn journal_chunks(&self) -> impl Iterator<Item = JournalChunk> {
        self.journal.keys().copied()
    }
}

fn set<K: Ord>(map: &mut BTreeMap<K, Vec<u8>>, key: K, value: Option<&[u8]>) -> Option<()> {
    match value {
        Some(value) => map.insert(key, value.to_vec()),
        None => map.remove(&key),
    };
    Some(())
}

#[cfg(test)]
mod tests;
