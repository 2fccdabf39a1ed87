//! The ids of one partition whose records were counted.
//!
//! Kafka delivers at least once: a producer that retries, or an application that starts again from
//! an older position, writes a record a second time. Where records carry an id, the second one is
//! recognised here. A record is a *duplicate* if a record of the same names and id was counted
//! before and their event times differ by the horizon at most, and a *conflict* if that one had
//! another prediction or outcome. Neither is counted in any sum; the first that was counted stays.
//!
//! An id is remembered as long as a duplicate of it could be counted: until the watermark (every
//! event before it is late) is a horizon past the id's event time. So the records of the partition
//! alone decide which records are duplicates. The exception is the cap on ids: beyond it, the ids
//! with the oldest event times are forgotten, and counted.
//!
//! Names and id are kept as 96 bits of SipHash-1-3. Two different ids of one partition are taken
//! for one with probability 2⁻⁹⁶ a pair: of ten million remembered ids, one record in 10²² is lost.
//!
//! Ids are written to a [journal](super::join), so that a snapshot costs what came since the last
//! one. Replaying it yields the ids that wrote it, and at most some that the cap had evicted.
//!
//! Cost: 24 bytes an id in a table that is at least 7/16 full; about 0.1 µs a record, most of it
//! one cache miss.

use super::event::Event;
pub use super::join::SeenId;
use super::join::{Journal, JournalDelta, JournalError, JournalMark, Op, replay};
use crate::stats::view::Prediction;
use hashbrown::HashTable;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;

/// Bytes of an id in memory, at most: a table is at least 7/16 full when it has just grown.
pub const ID_BYTES: usize = size_of::<SeenId>() * 16 / 7 + 3;

/// How a record repeats one that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It has the same prediction and outcome.
    Duplicate,
    /// It has another prediction or outcome.
    Conflict,
}

impl SeenId {
    /// The id of an event, which is row `row` of its record.
    pub fn of(event: &Event<'_>, row: u32) -> SeenId {
        let mut hasher = SipHasher13::new();
        // Lengths separate model "ab" with version "c" from "a" with "bc".
        for name in [event.model, event.version, event.segment] {
            hasher.write_u32(name.len() as u32);
            hasher.write(name.as_bytes());
        }
        hasher.write_u32(row);
        hasher.write(event.id);
        let hash = hasher.finish128();
        SeenId {
            key: [hash.h1 as u32, (hash.h1 >> 32) as u32, hash.h2 as u32],
            content: content(event),
            time_ms: event.time_ms,
        }
    }

    fn hash(&self) -> u64 {
        u64::from(self.key[0]) | u64::from(self.key[1]) << 32
    }
}

/// A multiplicative hash of prediction and outcome.
fn content(event: &Event<'_>) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |h: u64, word: u64| (h.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let class = event.outcome.map_or(u64::MAX, |o| u64::from(o.class()));
    let hash = match event.prediction {
        Prediction::Score(z) => mix(mix(1, class), z.to_bits()),
        Prediction::Vector(p) => p.iter().fold(mix(2, class), |h, z| mix(h, z.to_bits())),
    };
    (hash >> 32) as u32
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct SeenIds {
    table: HashTable<SeenId>,
    journal: Journal,
}

impl SeenIds {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// How a record repeats the record that was counted before under its id, if there is one.
    #[inline]
    pub fn find(&self, id: &SeenId, horizon_ms: i64) -> Option<Repeat> {
        let within = horizon_ms.unsigned_abs();
        let repeats = |s: &SeenId| s.key == id.key && s.time_ms.abs_diff(id.time_ms) <= within;
        let seen = self.table.find(id.hash(), repeats)?;
        // An id that is used again after the horizon has several records.
        let is_same = |s: &SeenId| s.content == id.content;
        let same = || (self.table).find(id.hash(), |s| repeats(s) && is_same(s));
        Some(match is_same(seen) || same().is_some() {
            true => Repeat::Duplicate,
            false => Repeat::Conflict,
        })
    }

    /// Remembers a record that was counted. Ids from before `floor_ms` are forgotten when there is
    /// no room left in the table.
    pub fn insert(&mut self, id: SeenId, floor_ms: i64) {
        self.journal.write(&Op::Seen(id), id.time_ms);
        self.put(id, floor_ms);
    }

    fn put(&mut self, id: SeenId, floor_ms: i64) {
        if self.table.len() == self.table.capacity() {
            self.forget(floor_ms);
        }
        let is_same = |s: &SeenId| s.key == id.key && s.time_ms == id.time_ms;
        let same = self.table.find_mut(id.hash(), is_same);
        match same {
            Some(seen) => *seen = id,
            None => {
                self.table.insert_unique(id.hash(), id, SeenId::hash);
            }
        }
    }

    /// Forgets the ids from before `floor_ms`.
    pub fn forget(&mut self, floor_ms: i64) {
        let kept = self.table.iter().filter(|s| s.time_ms >= floor_ms).count();
        if kept == self.table.len() {
            return;
        }
        // Copies to a new table: places that entries left in the old one would count as taken.
        let room = kept + kept / 7;
        let mut table = HashTable::with_capacity(room);
        for id in self.table.iter().filter(|s| s.time_ms >= floor_ms) {
            table.insert_unique(id.hash(), *id, SeenId::hash);
        }
        self.table = table;
    }

    /// Forgets the eighth with the oldest event times, and those of the same time as the newest of
    /// them; returns how many.
    pub fn evict(&mut self) -> usize {
        let before = self.table.len();
        let mut times: Vec<i64> = self.table.iter().map(|s| s.time_ms).collect();
        if !times.is_empty() {
            let (_, newest, _) = times.select_nth_unstable(before / 8);
            let floor_ms = newest.saturating_add(1);
            self.forget(floor_ms);
        }
        before - self.table.len()
    }

    /// Restores what the segments of a journal hold from `floor_ms` on.
    pub fn replay(
        &mut self,
        bytes: &[u8],
        mark: &JournalMark,
        floor_ms: i64,
    ) -> Result<(), JournalError> {
        let mut put = |op: &Op<'_>| match *op {
            Op::Seen(id) if id.time_ms < floor_ms => Ok(()),
            Op::Seen(id) => {
                self.put(id, floor_ms);
                Ok(())
            }
            _ => Err(JournalError::Corrupt),
        };
        replay(bytes, mark, |ops| ops.iter().try_for_each(&mut put))
    }

    /// Continues the journal after these marks.
    pub fn resume(&mut self, marks: &[JournalMark]) {
        self.journal = Journal::resume(marks);
    }

    /// Takes what the journal wrote since the last call, and releases segments older than
    /// `floor_ms`.
    pub fn take_journal(
        &mut self,
        number: u16,
        partition: i32,
        floor_ms: i64,
    ) -> Vec<JournalDelta> {
        let deltas = self.journal.take(number, partition);
        self.journal.release(floor_ms);
        deltas
    }

    /// Bytes that the journal wrote since it was last taken.
    pub fn journal_bytes(&self) -> usize {
        self.journal.bytes()
    }

    /// The marks of the journal, for a snapshot.
    pub fn marks(&self) -> Vec<JournalMark> {
        self.journal.marks()
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        self.table.allocation_size() + self.journal.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::view::Outcome;

    fn event<'a>(version: &'a str, id: &'a str, time_ms: i64, z: f64) -> Event<'a> {
        Event {
            model: "m",
            version,
            segment: "",
            id: id.as_bytes(),
            time_ms,
            arrival_ms: None,
            prediction: Prediction::Score(z),
            outcome: Some(Outcome::Binary(true)),
            weight: None,
            cluster: None,
        }
    }

    fn numbered(i: i64) -> SeenId {
        SeenId::of(&event("1", &format!("id-{i}"), i, 0.5), 0)
    }

    #[test]
    fn a_record_is_recognised_within_the_horizon_by_its_names_id_and_row() {
        let mut seen = SeenIds::default();
        seen.insert(SeenId::of(&event("1", "a", 1000, 0.5), 0), 0);
        let find = |e: &Event<'_>, row| seen.find(&SeenId::of(e, row), 100);
        let again = event("1", "a", 1100, 0.5);
        assert_eq!(find(&again, 0), Some(Repeat::Duplicate));
        assert_eq!(find(&event("1", "a", 900, 0.5), 0), Some(Repeat::Duplicate));
        assert_eq!(find(&event("1", "a", 1000, 0.6), 0), Some(Repeat::Conflict));
        assert_eq!(find(&event("1", "a", 1101, 0.5), 0), None);
        assert_eq!(find(&event("2", "a", 1000, 0.5), 0), None);
        assert_eq!(find(&event("1", "b", 1000, 0.5), 0), None);
        assert_eq!(find(&event("1a", "", 1000, 0.5), 0), None);
        assert_eq!(find(&again, 1), None);
    }

    #[test]
    fn an_id_that_is_used_again_after_the_horizon_does_not_hide_its_first_record() {
        let mut seen = SeenIds::default();
        let of = |time_ms, z| SeenId::of(&event("1", "a", time_ms, z), 0);
        seen.insert(of(1000, 0.5), 0);
        assert_eq!(seen.find(&of(1150, 0.6), 100), None);
        seen.insert(of(1150, 0.6), 0);
        for (time_ms, z, repeat) in [
            (1000, 0.5, Repeat::Duplicate),
            (1000, 0.6, Repeat::Conflict),
            (1150, 0.6, Repeat::Duplicate),
            // Near both.
            (1075, 0.5, Repeat::Duplicate),
            (1075, 0.6, Repeat::Duplicate),
            (1075, 0.7, Repeat::Conflict),
        ] {
            let found = seen.find(&of(time_ms, z), 100);
            assert_eq!(found, Some(repeat), "{time_ms} {z}");
        }
        seen.forget(1100);
        assert_eq!(seen.find(&of(1000, 0.5), 100), None);
    }

    #[test]
    fn ids_before_the_floor_leave_before_the_table_grows() {
        let mut seen = SeenIds::default();
        (0..100_000).for_each(|i| seen.insert(numbered(i), i - 1000));
        assert!(seen.bytes() < 200_000 + seen.journal.bytes());
        assert!((99_001..100_000).all(|i| seen.find(&numbered(i), 0).is_some()));
        seen.forget(99_990);
        assert_eq!(seen.len(), 10);
    }

    #[test]
    fn the_oldest_eighth_is_evicted_whatever_the_order() {
        let (mut up, mut down) = (SeenIds::default(), SeenIds::default());
        (0..1000).for_each(|i| up.insert(numbered(i), 0));
        (0..1000).rev().for_each(|i| down.insert(numbered(i), 0));
        for seen in [&mut up, &mut down] {
            assert_eq!(seen.evict(), 126);
            assert_eq!(seen.find(&numbered(125), 0), None);
            assert!(seen.find(&numbered(126), 0).is_some());
        }
    }

    #[test]
    fn a_replayed_journal_yields_the_ids() {
        let mut seen = SeenIds::default();
        (0..500).for_each(|i| seen.insert(numbered(i), 0));
        let deltas = seen.take_journal(3, 0, 0);
        let mark = seen.marks()[0];
        let mut back = SeenIds::default();
        back.replay(&deltas[0].bytes, &mark, 100).unwrap();
        assert_eq!(back.len(), 400);
        assert!((100..500).all(|i| back.find(&numbered(i), 0) == Some(Repeat::Duplicate)));
        let torn = back.replay(&deltas[0].bytes[1..], &mark, 0);
        assert_eq!(torn, Err(JournalError::Torn));
    }
}
