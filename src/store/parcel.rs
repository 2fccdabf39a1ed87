//! The parcel: everything that one partition contributed, so that it can move to another process.
//!
//! A parcel holds the engine of one partition (position, watermark, open panes, windows, counters, and how
//! far the journal of its pending predictions goes) with the verdicts, alerts and detectors of its streams, and what
//! people were told of those alerts that fire. It lies in
//! a compacted topic as keyed records, which are small enough for any broker:
//!
//! ```text
//! key                                                     value
//! GROUP/TOPIC/PARTITION/claim                             who took the partition over last
//! GROUP/TOPIC/PARTITION/EPOCH/head/SLOT                   "TRUEPARC" · version u32 · number u64 · chunks u32 ·
//!                                                         length u64 · crc32 of the body u32 · crc32 of this u32
//! GROUP/TOPIC/PARTITION/EPOCH/body/SLOT/CHUNK             number u64 · bytes of the body (postcard)
//! GROUP/TOPIC/PARTITION/EPOCH/journal/SEGMENT/OFFSET      bytes of the join journal, as on disk
//! ```
//!
//! **The protocol.** Who is given a partition writes a claim; the offset at which the claim came to lie is
//! its *epoch*. It reads the topic up to there, takes the newest whole parcel, and goes on from the
//! offsets in it. From then on it writes parcels under its epoch: chunks first, and when the broker has
//! them all, the head that names them. It writes by turns into two slots, so that the parcel before is
//! whole until the new one is. Who gives a partition up writes once more before it lets go.
//!
//! ```text
//!   giver   …─ parcel 7 ─────────────── parcel 8 ─ lets go
//!   topic   …─ e3 body, head 7 ──────── e3 body, head 8 ───────── claim(=e9) ───────── e9 body, head 1 ─…
//!   taker                                                  given ─┘   └ reads ◄ 8, seeks, counts on
//! ```
//!
//! Of two parcels the one of the higher epoch holds, within an epoch the one of the higher number. So
//! a process that was dead or frozen and goes on writing under its old epoch is not heard: its keys are
//! its own, and nobody reads below a higher epoch that has a whole parcel. And where the taker has not
//! written any yet, whatever the giver wrote last is as good as any: every parcel is by itself a state of
//! the partition after exactly the records before its offsets, and whoever takes it counts on from these.
//! That is why nothing is counted twice or left out, whoever dies when.
//!
//! The journal is not written anew with each parcel but only what is new in it. Which epoch wrote which
//! stretch of it is told by the parcel's *lineage*, so that what a dead process wrote behind the mark of the
//! parcel that was taken is not mistaken for the taker's.
//!
//! A key or value that is none of these, under the prefix of a partition, is foreign, and refused by name.

use super::file::Fault;
use super::laid::Laid;
use super::snapshot::Snapshot;
use crate::alert::Alert;
use crate::judge::{DetectorState, StreamId, WindowVerdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the format; it changes with that of the snapshot within.
pub const VERSION: u32 = 2000 + super::file::VERSION;

/// Most bytes of one record: half of what brokers take by default, for other records come with it in a
/// batch and each has a frame.
pub const CHUNK_BYTES: usize = 512 << 10;

const MAGIC: &[u8; 8] = b"TRUEPARC";
const HEAD: usize = 8 + 4 + 8 + 4 + 8 + 4 + 4;

/// A record of the topic: its key, and its value or `None` to take it away.
pub type Keyed = (String, Option<Vec<u8>>);

/// See the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Parcel {
    /// The engine of the partition.
    pub snapshot: Snapshot,
    /// Verdicts and alerts of its streams, as the process that wrote it had them.
    pub memories: Vec<MemoryState>,
    /// Which epoch wrote the journal from where on, oldest first.
    pub lineage: Vec<Stretch>,
    /// What was laid out since the parcel before, where another process judges.
    pub laid: Option<Laid>,
}

/// What is remembered of one stream over several partitions: verdicts and alerts, and its detector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryState {
    /// The stream.
    pub stream: StreamId,
    /// One for each window.
    pub windows: Vec<WindowVerdict>,
    /// The detector, where one watches.
    pub detector: Option<DetectorState>,
    /// The alert of the stream.
    pub alert: Alert,
    /// What people were told of it, where it fires: opaque here, written and read by who tells.
    pub told: Option<String>,
}

/// A stretch of the journal, up to the begin of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stretch {
    /// Segment in which it begins.
    pub segment: u64,
    /// Where in the segment.
    pub offset: u64,
    /// Who wrote it.
    pub epoch: i64,
}

/// What a piece of the journal is called: segment, offset, epoch.
pub type Piece = (u64, u64, i64);

/// The prefix of all keys of a partition.
pub fn prefix(group: &str, topic: &str, partition: i32) -> String {
    format!("{group}/{topic}/{partition}/")
}

/// The key of the claim of a partition.
pub fn claim_key(prefix: &str) -> String {
    format!("{prefix}claim")
}

/// The records of a parcel: those of its body, and the head that is to be written once they are safe.
pub fn records(
    parcel: &Parcel,
    prefix: &str,
    epoch: i64,
    number: u64,
) -> Result<(Vec<Keyed>, Keyed), String> {
    let body = postcard::to_stdvec(parcel).map_err(|e| format!("encoding a parcel: {e}"))?;
    let slot = number % 2;
    let chunk = |(i, bytes): (usize, &[u8])| {
        let mut value = number.to_le_bytes().to_vec();
        value.extend(bytes);
        (format!("{prefix}{epoch}/body/{slot}/{i}"), Some(value))
    };
    let chunks: Vec<Keyed> = body.chunks(CHUNK_BYTES).enumerate().map(chunk).collect();
    let mut head = MAGIC.to_vec();
    head.extend(VERSION.to_le_bytes());
    head.extend(number.to_le_bytes());
    head.extend((chunks.len() as u32).to_le_bytes());
    head.extend((body.len() as u64).to_le_bytes());
    head.extend(crc32fast::hash(&body).to_le_bytes());
    head.extend(crc32fast::hash(&head).to_le_bytes());
    Ok((chunks, (format!("{prefix}{epoch}/head/{slot}"), Some(head))))
}

/// The key of a piece of the journal.
pub fn piece_key(prefix: &str, (segment, offset, epoch): Piece) -> String {
    format!("{prefix}{epoch}/journal/{segment}/{offset}")
}

/// What a head says.
#[derive(Debug, Clone, Copy)]
struct Head {
    number: u64,
    chunks: u32,
    length: u64,
    crc: u32,
}

/// The records of one partition, as they are read.
#[derive(Debug, Default)]
pub struct Shelf {
    prefix: String,
    heads: BTreeMap<(i64, u64), Vec<u8>>,
    bodies: BTreeMap<(i64, u64, u32), Vec<u8>>,
    pieces: BTreeMap<Piece, Vec<u8>>,
    foreign: Vec<String>,
    bytes: u64,
    /// Journals are passed over: parcels are wanted for what was counted, not to go on from.
    light: bool,
}

/// What was found of a partition.
#[derive(Debug, Default)]
pub struct Found {
    /// The newest whole parcel.
    pub parcel: Parcel,
    /// The epoch under which it was written.
    pub epoch: i64,
    /// The key of its head.
    pub head: String,
    /// Bytes of the journal segments that it marks.
    pub segments: Vec<Vec<u8>>,
    /// Newer ones that were refused, by the key of their head.
    pub refused: Vec<(String, Fault)>,
}

impl Shelf {
    /// An empty shelf for the keys of this prefix.
    pub fn new(prefix: String) -> Shelf {
        Shelf {
            prefix,
            ..Shelf::default()
        }
    }

    /// The same for who only wants to know what was counted: journals are passed over.
    pub fn light(prefix: String) -> Shelf {
        Shelf {
            light: true,
            ..Shelf::new(prefix)
        }
    }

    /// Forgets the parcels that were opened. What came of the next is forgotten with them.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.bodies.clear();
    }

    /// Takes one record of the topic, in order; others' are passed over.
    pub fn take(&mut self, key: &[u8], value: Option<&[u8]>) {
        let Some(rest) = key.strip_prefix(self.prefix.as_bytes()) else {
            return;
        };
        let known = std::str::from_utf8(rest)
            .ok()
            .and_then(|r| self.put(r, value));
        if known.is_none() && value.is_some() {
            let key = String::from_utf8_lossy(key).into_owned();
            self.foreign.push(key);
        }
        self.bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
    }

    fn put(&mut self, rest: &str, value: Option<&[u8]>) -> Option<()> {
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
            [_, "journal", _, _] if self.light => Some(()),
            [epoch, "journal", segment, offset] => {
                let key = (number(segment)?, number(offset)?, epoch.parse().ok()?);
                set(&mut self.pieces, key, value)
            }
            _ => None,
        }
    }

    /// Bytes of the partition's records that were read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The newest whole parcel; `None` where none was ever written. An error names every head, each with
    /// what is wrong with it.
    pub fn open(&self) -> Result<Option<Found>, Vec<(String, Fault)>> {
        if !self.foreign.is_empty() {
            let named = self.foreign.iter().map(|key| (key.clone(), Fault::Foreign));
            return Err(named.collect());
        }
        let mut refused = Vec::new();
        let mut heads: Vec<(i64, u64, u64, Head)> = Vec::new();
        for (&(epoch, slot), bytes) in &self.heads {
            match head_of(bytes) {
                Ok(head) => heads.push((epoch, head.number, slot, head)),
                Err(fault) => refused.push((self.head_key(epoch, slot), fault)),
            }
        }
        heads.sort_by_key(|&(epoch, number, ..)| std::cmp::Reverse((epoch, number)));
        for (epoch, _, slot, head) in heads {
            match self.assemble(epoch, slot, head) {
                Ok((parcel, segments)) => {
                    return Ok(Some(Found {
                        parcel,
                        epoch,
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

    fn assemble(&self, epoch: i64, slot: u64, head: Head) -> Result<(Parcel, Vec<Vec<u8>>), Fault> {
        let mut body = Vec::new();
        for chunk in 0..head.chunks {
            let value = self.bodies.get(&(epoch, slot, chunk)).ok_or(Fault::Torn)?;
            let (number, bytes) = value.split_first_chunk::<8>().ok_or(Fault::Torn)?;
            if u64::from_le_bytes(*number) != head.number {
                return Err(Fault::Torn);
            }
            body.extend_from_slice(bytes);
        }
        if body.len() as u64 != head.length {
            return Err(Fault::Torn);
        }
        if crc32fast::hash(&body) != head.crc {
            return Err(Fault::Checksum);
        }
        let parcel: Parcel = postcard::from_bytes(&body).map_err(|e| Fault::Body(e.to_string()))?;
        if self.light {
            return Ok((parcel, Vec::new()));
        }
        let joins = parcel.snapshot.joins.iter();
        let marks = joins.flat_map(|j| &j.marks);
        let segments: Result<Vec<Vec<u8>>, Fault> = marks
            .map(|mark| {
                let bytes = self.segment(&parcel.lineage, mark.segment, mark.len)?;
                match crc32fast::hash(&bytes) == mark.crc {
                    true => Ok(bytes),
                    false => Err(Fault::Checksum),
                }
            })
            .collect();
        let segments = segments?;
        Ok((parcel, segments))
    }

    /// The first `len` bytes of a segment, each stretch as the epoch wrote it that the lineage says.
    fn segment(&self, lineage: &[Stretch], segment: u64, len: u64) -> Result<Vec<u8>, Fault> {
        let mut bytes: Vec<u8> = Vec::new();
        while (bytes.len() as u64) < len {
            let offset = bytes.len() as u64;
            let epoch = author(lineage, segment, offset).ok_or(Fault::Torn)?;
            let piece = self
                .pieces
                .get(&(segment, offset, epoch))
                .ok_or(Fault::Torn)?;
            if piece.is_empty() {
                return Err(Fault::Torn);
            }
            bytes.extend_from_slice(piece);
        }
        // Marks lie where pieces end.
        if bytes.len() as u64 == len {
            Ok(bytes)
        } else {
            Err(Fault::Torn)
        }
    }

    /// All keys of parcels of other epochs.
    pub fn older(&self, epoch: i64) -> Vec<String> {
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

    /// All pieces of the journal that are there.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.pieces.keys().copied()
    }
}

/// Who wrote the journal at a place.
pub fn author(lineage: &[Stretch], segment: u64, offset: u64) -> Option<i64> {
    let here = |s: &&Stretch| (s.segment, s.offset) <= (segment, offset);
    lineage.iter().rev().find(here).map(|s| s.epoch)
}

fn set<K: Ord>(map: &mut BTreeMap<K, Vec<u8>>, key: K, value: Option<&[u8]>) -> Option<()> {
    match value {
        Some(value) => map.insert(key, value.to_vec()),
        None => map.remove(&key),
    };
    Some(())
}

fn head_of(bytes: &[u8]) -> Result<Head, Fault> {
    let (magic, rest) = bytes.split_first_chunk::<8>().ok_or(Fault::Torn)?;
    if magic != MAGIC {
        return Err(Fault::Foreign);
    }
    let (version, _) = rest.split_first_chunk::<4>().ok_or(Fault::Torn)?;
    match u32::from_le_bytes(*version) {
        VERSION => {}
        older if older < VERSION => return Err(Fault::Past(older)),
        newer => return Err(Fault::Future(newer)),
    }
    let bytes: &[u8; HEAD] = bytes.try_into().map_err(|_| Fault::Torn)?;
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    if crc32fast::hash(&bytes[..HEAD - 4]) != word(HEAD - 4) {
        return Err(Fault::Checksum);
    }
    Ok(Head {
        number: long(12),
        chunks: word(20),
        length: long(24),
        crc: word(32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::join::{JoinState, JournalMark};

    const PREFIX: &str = "g/t/3/";

    /// A parcel that takes several chunks, known by a number.
    fn numbered(n: u64) -> Parcel {
        let mut parcel = Parcel::default();
        parcel.snapshot.counters.evaluations = n;
        parcel.snapshot.topics = (0..60_000).map(|i| format!("topic number {i}")).collect();
        parcel
    }

    fn put(shelf: &mut Shelf, parcel: &Parcel, epoch: i64, number: u64) {
        let (body, head) = records(parcel, PREFIX, epoch, number).expect("encoded");
        assert!(body.len() > 1);
        for (key, value) in body.into_iter().chain([head]) {
            assert!(value.as_ref().is_some_and(|v| v.len() <= CHUNK_BYTES + 8));
            shelf.take(key.as_bytes(), value.as_deref());
        }
    }

    fn shelf() -> Shelf {
        Shelf::new(PREFIX.to_owned())
    }

    fn evaluations(shelf: &Shelf) -> u64 {
        let found = shelf.open().expect("sound").expect("a parcel");
        found.parcel.snapshot.counters.evaluations
    }

    #[test]
    fn the_highest_epoch_holds_and_in_it_the_highest_number() {
        let mut shelf = shelf();
        assert!(shelf.open().expect("sound").is_none());
        for (epoch, number, n) in [(5, 1, 10), (5, 2, 20), (9, 1, 30)] {
            put(&mut shelf, &numbered(n), epoch, number);
            assert_eq!(evaluations(&shelf), n);
        }
        // A process that was frozen goes on under its old epoch.
        put(&mut shelf, &numbered(40), 5, 3);
        assert_eq!(evaluations(&shelf), 30);
        // What lies under others' keys is passed over.
        shelf.take(b"g/t/33/9/head/0", Some(b"x"));
        shelf.take(b"other", None);
        assert_eq!(evaluations(&shelf), 30);
        assert!(shelf.older(9).iter().all(|key| key.starts_with("g/t/3/5/")));
    }

    #[test]
    fn a_parcel_that_was_cut_short_leaves_the_one_before() {
        let mut shelf = shelf();
        put(&mut shelf, &numbered(1), 5, 1);
        // The next dies at each of its chunks, and before its head.
        let (body, _) = records(&numbered(2), PREFIX, 5, 2).expect("encoded");
        for (key, value) in body {
            shelf.take(key.as_bytes(), value.as_deref());
            assert_eq!(evaluations(&shelf), 1);
        }
        // One that came into the slot of a whole one makes that unusable, and the other holds.
        put(&mut shelf, &numbered(2), 5, 2);
        let (body, _) = records(&numbered(4), PREFIX, 5, 4).expect("encoded");
        shelf.take(body[0].0.as_bytes(), body[0].1.as_deref());
        let found = shelf.open().expect("sound").expect("a parcel");
        assert_eq!(found.parcel.snapshot.counters.evaluations, 1);
        assert_eq!(found.refused, [("g/t/3/5/head/0".to_owned(), Fault::Torn)]);
    }

    #[test]
    fn foreign_damaged_and_future_parcels_are_refused_by_name_and_never_a_fresh_start() {
        let (body, head) = records(&numbered(1), PREFIX, 5, 1).expect("encoded");
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut shelf = shelf();
            for (key, value) in &body {
                shelf.take(key.as_bytes(), value.as_deref());
            }
            let mut bytes = head.1.clone().expect("a head");
            change(&mut bytes);
            shelf.take(head.0.as_bytes(), Some(&bytes));
            shelf.open().expect_err("refused")
        };
        let key = head.0.clone();
        type Change<'a> = &'a dyn Fn(&mut Vec<u8>);
        let cases: [(Change<'_>, Fault); 5] = [
            (&|b| b[0] ^= 1, Fault::Foreign),
            (&|b| b.truncate(30), Fault::Torn),
            (&|b| b[13] ^= 1, Fault::Checksum),
            (&|b| b[11] = 1, Fault::Future(VERSION | 1 << 24)),
            (&|b| b[8] -= 1, Fault::Past(VERSION - 1)),
        ];
        for (change, fault) in cases {
            assert_eq!(with(change), [(key.clone(), fault)]);
        }
        let mut shelf = shelf();
        shelf.take(b"g/t/3/notes", Some(b"x"));
        let named = [("g/t/3/notes".to_owned(), Fault::Foreign)];
        assert_eq!(shelf.open().expect_err("refused"), named);
    }

    #[test]
    fn a_journal_is_read_as_those_wrote_it_who_wrote_the_parcel() {
        let mut shelf = shelf();
        let mut piece = |segment: u64, offset: u64, epoch: i64, bytes: &[u8]| {
            let key = piece_key(PREFIX, (segment, offset, epoch));
            shelf.take(key.as_bytes(), Some(bytes));
        };
        piece(0, 0, 5, b"abc");
        piece(0, 3, 5, b"def");
        // Behind the mark of the parcel that was taken over.
        piece(0, 6, 5, b"xxx");
        piece(0, 6, 9, b"ghi");
        piece(1, 0, 9, b"jkl");
        let whole: [&[u8]; 2] = [b"abcdefghi", b"jkl"];
        let mut parcel = numbered(1);
        parcel.snapshot.joins = vec![JoinState {
            join: 0,
            partition: 3,
            predictions: 0,
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
        }];
        let stretch = |segment, offset, epoch| Stretch {
            segment,
            offset,
            epoch,
        };
        parcel.lineage = vec![stretch(0, 0, 5), stretch(0, 6, 9)];
        put(&mut shelf, &parcel, 9, 1);
        let found = shelf.open().expect("sound").expect("a parcel");
        assert_eq!(found.segments, whole);
        // A piece that is missing is a fault, not an empty journal.
        shelf.take(piece_key(PREFIX, (0, 3, 5)).as_bytes(), None);
        assert_eq!(shelf.open().expect_err("torn")[0].1, Fault::Torn);
    }
}
