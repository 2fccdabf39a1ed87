//! Finds the newest usable checkpoint among the records of a partition in the state topic.
//!
//! A [`CheckpointReader`] takes all records of the topic in order and keeps those of its partition.
//! [`CheckpointReader::newest`] assembles the newest whole checkpoint. A damaged one is reported
//! and the one before it is used; where all are damaged the result is an error and never an empty
//! start. The reader keeps the bytes of two checkpoints per epoch and of the journal, if it is
//! asked to read that.

use super::checkpoint::{
    CheckpointHead, JournalChunk, JournalRange, PartitionCheckpoint, epoch_at,
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
    /// Keys that are none of ours, as long as they have a value.
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
    /// Newer checkpoints that were refused, by the key of their head.
    pub refused: Vec<(String, FormatError)>,
}

impl CheckpointReader {
    /// A reader for the keys with this prefix.
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
            // Somebody has deleted what was none of ours.
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
            _ => None,
        }
    }

    /// Bytes of the partition's records read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The newest whole checkpoint; `None` where none was ever written. The error has the key of
    /// every head and what is wrong with it.
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
                    return Ok(Some(FoundCheckpoint {
                        checkpoint,
                        epoch,
                        number,
                        head: self.head_key(epoch, slot),
                        segments,
                        refused,
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

    /// The first `len` bytes of a segment, each range as its epoch wrote it.
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
        let all = heads.chain(bodies);
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
mod tests {
    use super::*;
    use crate::collect::join::{JoinState, JournalMark};
    use crate::store::checkpoint::{CHUNK_BYTES, VERSION, journal_key, records};

    const PREFIX: &str = "g/t/3/";

    /// A checkpoint of several chunks, identified by a number.
    fn numbered(n: u64) -> PartitionCheckpoint {
        let mut checkpoint = PartitionCheckpoint::default();
        checkpoint.snapshot.counters.evaluations = n;
        checkpoint.snapshot.topics = (0..60_000).map(|i| format!("topic number {i}")).collect();
        checkpoint
    }

    fn put(
        reader: &mut CheckpointReader,
        checkpoint: &PartitionCheckpoint,
        epoch: i64,
        number: u64,
    ) {
        let (body, head) = records(checkpoint, PREFIX, epoch, number).expect("encoded");
        assert!(body.len() > 1);
        for (key, value) in body.into_iter().chain([head]) {
            assert!(value.as_ref().is_some_and(|v| v.len() <= CHUNK_BYTES + 8));
            reader.read(key.as_bytes(), value.as_deref());
        }
    }

    fn reader() -> CheckpointReader {
        CheckpointReader::new(PREFIX.to_owned())
    }

    fn evaluations(reader: &CheckpointReader) -> u64 {
        let found = reader.newest().expect("sound").expect("a checkpoint");
        found.checkpoint.snapshot.counters.evaluations
    }

    #[test]
    fn the_highest_epoch_holds_and_in_it_the_highest_number() {
        let mut reader = reader();
        assert!(reader.newest().expect("sound").is_none());
        for (epoch, number, n) in [(5, 1, 10), (5, 2, 20), (9, 1, 30)] {
            put(&mut reader, &numbered(n), epoch, number);
            assert_eq!(evaluations(&reader), n);
        }
        // A frozen process continues under its old epoch.
        put(&mut reader, &numbered(40), 5, 3);
        assert_eq!(evaluations(&reader), 30);
        // Keys of other partitions are ignored.
        reader.read(b"g/t/33/9/head/0", Some(b"x"));
        reader.read(b"other", None);
        assert_eq!(evaluations(&reader), 30);
        assert!(
            reader
                .keys_of_other_epochs(9)
                .iter()
                .all(|key| key.starts_with("g/t/3/5/"))
        );
    }

    #[test]
    fn a_checkpoint_that_was_cut_short_leaves_the_one_before() {
        let mut reader = reader();
        put(&mut reader, &numbered(1), 5, 1);
        // The next one is interrupted after each chunk, before its head.
        let (body, _) = records(&numbered(2), PREFIX, 5, 2).expect("encoded");
        for (key, value) in body {
            reader.read(key.as_bytes(), value.as_deref());
            assert_eq!(evaluations(&reader), 1);
        }
        // Overwriting the slot of a whole checkpoint destroys that one; the other stays usable.
        put(&mut reader, &numbered(2), 5, 2);
        let (body, _) = records(&numbered(4), PREFIX, 5, 4).expect("encoded");
        reader.read(body[0].0.as_bytes(), body[0].1.as_deref());
        let found = reader.newest().expect("sound").expect("a checkpoint");
        assert_eq!(found.checkpoint.snapshot.counters.evaluations, 1);
        assert_eq!(
            found.refused,
            [("g/t/3/5/head/0".to_owned(), FormatError::Torn)]
        );
    }

    #[test]
    fn foreign_damaged_and_future_checkpoints_are_refused_by_name_and_never_a_fresh_start() {
        let (body, head) = records(&numbered(1), PREFIX, 5, 1).expect("encoded");
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut reader = reader();
            for (key, value) in &body {
                reader.read(key.as_bytes(), value.as_deref());
            }
            let mut bytes = head.1.clone().expect("a head");
            change(&mut bytes);
            reader.read(head.0.as_bytes(), Some(&bytes));
            reader.newest().expect_err("refused")
        };
        let key = head.0.clone();
        type Change<'a> = &'a dyn Fn(&mut Vec<u8>);
        let cases: [(Change<'_>, FormatError); 5] = [
            (&|b| b[0] ^= 1, FormatError::Foreign),
            (&|b| b.truncate(30), FormatError::Torn),
            (&|b| b[13] ^= 1, FormatError::Checksum),
            (&|b| b[11] = 1, FormatError::Future(VERSION | 1 << 24)),
            (&|b| b[8] -= 1, FormatError::Past(VERSION - 1)),
        ];
        for (change, fault) in cases {
            assert_eq!(with(change), [(key.clone(), fault)]);
        }
        let mut reader = reader();
        reader.read(b"g/t/3/notes", Some(b"x"));
        let named = [("g/t/3/notes".to_owned(), FormatError::Foreign)];
        assert_eq!(reader.newest().expect_err("refused"), named);
    }

    #[test]
    fn a_foreign_key_that_is_deleted_does_not_matter_any_more() {
        let mut reader = reader();
        put(&mut reader, &numbered(1), 5, 1);
        let foreign: [&[u8]; 3] = [b"g/t/3/notes", b"g/t/3/\xff", b"g/t/3/\xfe"];
        for key in foreign {
            reader.read(key, Some(b"x"));
            reader.read(key, Some(b"y"));
        }
        for key in foreign {
            assert!(reader.newest().is_err());
            reader.read(key, None);
        }
        assert_eq!(evaluations(&reader), 1);
        // Deleting a key that was never there changes nothing.
        reader.read(b"g/t/3/other", None);
        assert_eq!(evaluations(&reader), 1);
    }

    #[test]
    fn a_journal_is_read_as_the_epochs_of_the_checkpoint_wrote_it() {
        let mut reader = reader();
        let mut chunk = |segment: u64, offset: u64, epoch: i64, bytes: &[u8]| {
            let key = journal_key(PREFIX, (segment, offset, epoch));
            reader.read(key.as_bytes(), Some(bytes));
        };
        chunk(0, 0, 5, b"abc");
        chunk(0, 3, 5, b"def");
        // Behind the mark of the restored checkpoint.
        chunk(0, 6, 5, b"xxx");
        chunk(0, 6, 9, b"ghi");
        chunk(1, 0, 9, b"jkl");
        let whole: [&[u8]; 2] = [b"abcdefghi", b"jkl"];
        let mut checkpoint = numbered(1);
        checkpoint.snapshot.joins = vec![JoinState {
            partition: 3,
            outcomes: 1,
            marks: (0..)
                .zip(whole)
                .map(|(segment, bytes)| JournalMark {
                    segment,
                    len: bytes.len() as u64,
                    crc: crc32fast::hash(bytes),
                    until_ms: 0,
                })
                .collect(),
            ..JoinState::default()
        }];
        let range = |segment, offset, epoch| JournalRange {
            segment,
            offset,
            epoch,
        };
        checkpoint.epochs = vec![range(0, 0, 5), range(0, 6, 9)];
        put(&mut reader, &checkpoint, 9, 1);
        let found = reader.newest().expect("sound").expect("a checkpoint");
        assert_eq!(found.segments, whole);
        // A missing chunk is an error, not an empty journal.
        reader.read(journal_key(PREFIX, (0, 3, 5)).as_bytes(), None);
        let refused = reader.newest().expect_err("a chunk is missing");
        assert_eq!(refused[0].1, FormatError::Missing);
    }
}
