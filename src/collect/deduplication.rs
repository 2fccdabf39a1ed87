//! The ids of records that carry their outcome, by partition: each is counted once, however often
//! it is delivered.
//!
//! [`SeenIds`] of each partition say which records were counted before. Each partition checks only
//! its own records, so partitions may be read in any order and by any process. A producer that
//! retries, or that assigns partitions by key, repeats a record in the same partition. If records
//! are spread over partitions at random, a repeat in another partition is not recognised.

use super::event::Origin;
use super::join::{GivenUp, JoinState, JournalDelta, JournalError};
use super::seen_ids::{Repeat, SeenId, SeenIds};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A source whose records carry an id and their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdPlan {
    /// Number of the source (topic).
    pub source: u16,
    /// Records with the same id count once if their event times differ by at most this.
    pub horizon_ms: i64,
}

/// The ids of all partitions of a collector.
#[derive(Debug, Default)]
pub(super) struct Deduplication {
    /// Horizon of each source whose ids are checked.
    horizons: BTreeMap<u16, i64>,
    partitions: BTreeMap<(u16, i32), SeenIds>,
    /// Number of the journals of a source.
    journals: BTreeMap<u16, u16>,
    /// Journal numbers that a snapshot uses.
    taken: Vec<u16>,
    /// Most ids over all partitions.
    ids_max: usize,
    /// How many collectors share `ids_max`.
    shared_by: usize,
    /// Ids over all partitions.
    len: usize,
}

impl Deduplication {
    pub fn new(plans: &[IdPlan], ids_max: usize) -> Deduplication {
        Deduplication {
            horizons: plans.iter().map(|p| (p.source, p.horizon_ms)).collect(),
            ids_max,
            shared_by: 1,
            ..Deduplication::default()
        }
    }

    /// The horizon of a source whose ids are checked.
    fn horizon_ms(&self, source: u16) -> Option<i64> {
        self.horizons.get(&source).copied()
    }

    /// What the record repeats, if it was counted before.
    pub fn find(&self, origin: Origin, id: &SeenId) -> Option<Repeat> {
        let seen = self.partitions.get(&(origin.source, origin.partition))?;
        seen.find(id, self.horizon_ms(origin.source)?)
    }

    /// Remembers a record; returns how many ids were forgotten too early to make room.
    pub fn insert(&mut self, origin: Origin, id: SeenId, sealed_until_ms: i64) -> u64 {
        let horizon_ms = self.horizon_ms(origin.source).unwrap_or(0);
        let floor_ms = sealed_until_ms.saturating_sub(horizon_ms);
        let evicted = match self.len >= (self.ids_max / self.shared_by).max(1) {
            true => self.make_room(sealed_until_ms),
            false => 0,
        };
        if !self.journals.contains_key(&origin.source) {
            self.number_journal(origin.source);
        }
        let at = (origin.source, origin.partition);
        let seen = self.partitions.entry(at).or_default();
        let before = seen.len();
        seen.insert(id, floor_ms);
        self.len = self.len + seen.len() - before;
        evicted
    }

    /// Forgets expired ids, and then the oldest ids of the largest partitions until there is room.
    #[cold]
    fn make_room(&mut self, sealed_until_ms: i64) -> u64 {
        for ((source, _), seen) in &mut self.partitions {
            let horizon_ms = self.horizons.get(source).copied();
            seen.forget(sealed_until_ms.saturating_sub(horizon_ms.unwrap_or(0)));
        }
        self.len = self.partitions.values().map(SeenIds::len).sum();
        let most = (self.ids_max / self.shared_by).max(1);
        // An eighth must be free, or the next record would sweep all ids again.
        let mut evicted = 0;
        while self.len > most - most / 8 {
            let largest = self.partitions.values_mut().max_by_key(|s| s.len());
            let gone = largest.map_or(0, SeenIds::evict);
            if gone == 0 {
                break;
            }
            evicted += gone as u64;
            self.len -= gone;
        }
        evicted
    }

    /// Gives the journals of a source the highest free number; joins have the lowest.
    #[cold]
    fn number_journal(&mut self, source: u16) {
        let free = |n: &u16| !self.taken.contains(n) && self.journals.values().all(|t| t != n);
        if let Some(number) = (0..=u16::MAX).rev().find(free) {
            self.journals.insert(source, number);
        }
    }

    /// The number of a source's journals, once it has any.
    fn journal(&self, source: u16) -> u16 {
        self.journals.get(&source).copied().unwrap_or(u16::MAX)
    }

    /// Takes what the journals wrote since the last call.
    pub fn take_journals(&mut self, sealed_until_ms: i64) -> Vec<JournalDelta> {
        let mut all = Vec::new();
        let (numbers, horizons) = (&self.journals, &self.horizons);
        for ((source, partition), seen) in &mut self.partitions {
            let number = numbers.get(source).copied().unwrap_or(u16::MAX);
            let horizon_ms = horizons.get(source).copied();
            let floor_ms = sealed_until_ms.saturating_sub(horizon_ms.unwrap_or(0));
            all.extend(seen.take_journal(number, *partition, floor_ms));
        }
        all
    }

    /// Bytes that the journals wrote since they were last taken.
    pub fn journal_bytes(&self) -> usize {
        self.partitions.values().map(SeenIds::journal_bytes).sum()
    }

    /// How far the journals go.
    pub fn states(&self) -> impl Iterator<Item = JoinState> {
        let state = |((source, partition), seen): (&(u16, i32), &SeenIds)| JoinState {
            given_up: GivenUp::default(),
            join: self.journal(*source),
            partition: *partition,
            predictions: *source,
            outcomes: *source,
            ids: true,
            marks: seen.marks(),
        };
        self.partitions.iter().map(state)
    }

    pub fn bytes(&self) -> usize {
        self.partitions.values().map(SeenIds::bytes).sum()
    }

    /// How many collectors share the ids that the plan allows.
    pub fn share(&mut self, by: usize) {
        self.shared_by = by.max(1);
    }

    /// Gives no new journal a number that a snapshot uses.
    pub fn reserve_journals(&mut self, states: &[JoinState]) {
        self.taken = states.iter().map(|s| s.join).collect();
    }

    /// Restores the ids of one partition; returns `false` if the plan no longer checks them.
    pub fn restore<'s>(
        &mut self,
        state: &JoinState,
        sealed_until_ms: i64,
        segment: impl Fn(usize) -> Result<Cow<'s, [u8]>, JournalError>,
    ) -> Result<bool, JournalError> {
        let source = state.predictions;
        let Some(horizon_ms) = self.horizon_ms(source) else {
            return Ok(false);
        };
        let floor_ms = sealed_until_ms.saturating_sub(horizon_ms);
        let mut seen = SeenIds::default();
        for (i, mark) in state.marks.iter().enumerate() {
            seen.replay(&segment(i)?, mark, floor_ms)?;
        }
        seen.resume(&state.marks);
        self.len += seen.len();
        self.journals.insert(source, state.join);
        self.partitions.insert((source, state.partition), seen);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::event::Event;
    use crate::collect::join::SEGMENT_BYTES;
    use crate::stats::view::Prediction;

    /// Takes an event whose id and event time are a number, at a watermark; returns how many ids
    /// were forgotten too early.
    fn insert(all: &mut Deduplication, partition: i32, i: i64, sealed_until_ms: i64) -> u64 {
        let event = Event {
            model: "m",
            version: "",
            segment: "",
            id: &i.to_le_bytes(),
            time_ms: i,
            arrival_ms: None,
            prediction: Prediction::Score(0.5),
            outcome: None,
            weight: None,
            cluster: None,
        };
        let origin = Origin {
            source: 0,
            partition,
            offset: i,
        };
        all.insert(origin, SeenId::of(&event, 0), sealed_until_ms)
    }

    #[test]
    fn where_no_partition_is_large_several_lose_ids_until_there_is_room() {
        let plans = [IdPlan {
            source: 0,
            horizon_ms: i64::MAX,
        }];
        let mut all = Deduplication::new(&plans, 1600);
        for i in 0..1600 {
            assert_eq!(insert(&mut all, (i % 16) as i32, i, 0), 0);
        }
        let evicted = insert(&mut all, 0, 1600, 0);
        let len = all.len;
        assert!(len <= 1600 - 1600 / 8 + 1, "{len}");
        assert_eq!(len as u64 + evicted, 1601);
    }

    #[test]
    fn the_journal_of_a_source_is_kept_for_its_own_horizon_alone() {
        let plan = |source, horizon_ms| IdPlan { source, horizon_ms };
        let mut all = Deduplication::new(&[plan(0, 10), plan(1, i64::MAX)], 10_000);
        // 25 bytes each: one segment is full, and the next one has begun.
        let n = SEGMENT_BYTES as i64 / 25 + 10;
        for i in 0..n {
            insert(&mut all, 0, i, i);
        }
        all.take_journals(n + 100);
        let marks: Vec<u64> = all
            .states()
            .flat_map(|s| s.marks)
            .map(|m| m.segment)
            .collect();
        assert_eq!(marks, [1]);
    }
}
