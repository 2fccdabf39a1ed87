//! A sample of the predictions that matured without an outcome, to see whether outcomes come after
//! all.
//!
//! Without `revise`, a mature prediction is removed. To detect a maturity that is too short, a
//! joiner remembers some of the predictions that had no outcome, for twice the maturity. The hash
//! of a prediction's id decides: one of 2^level predictions is remembered, and the level rises
//! until at most [`rows_max`] are left. So the sample does not depend on the order of arrival, nor
//! on which process has which partitions.
//!
//! A topic may have any number of partitions, and one bound must hold for all of them together. The
//! first [`WHOLE`] partitions have [`ROWS_MAX`] rows each. Each later partition p has (WHOLE/p)^1.5
//! times as many, so the later ones together have at most twice as many rows as the first.
//!
//! Always: at most [`rows_max`] rows of at most [`ENTRIES_MAX`] views; each is met by one outcome
//! at most.

use super::events::Revision;
use super::key::Key;
use super::matured::Matured;
use crate::stats::stored::checked;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// Most rows of a joiner.
const ROWS_MAX: usize = 1024;

/// Partitions that have [`ROWS_MAX`] rows each.
const WHOLE: i32 = 32;

/// Most rows of the joiner of a partition, by its number.
pub fn rows_max(partition: i32) -> usize {
    if partition < WHOLE {
        return ROWS_MAX;
    }
    let share = f64::from(WHOLE) / f64::from(partition);
    (ROWS_MAX as f64 * share.powf(1.5)) as usize
}

/// Most views of a row; further ones have no late outcomes.
const ENTRIES_MAX: usize = 16;

/// The level falls when fewer rows than the most rows divided by this are left.
const FEW: usize = 4;

/// A prediction that was given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    model: u16,
    slot: u32,
    #[serde(deserialize_with = "checked")]
    start_ms: i64,
    #[serde(deserialize_with = "checked")]
    time_ms: i64,
    /// It stands for 2^level predictions.
    level: u8,
    /// Whether its outcome has come.
    met: bool,
    scores: Vec<f64>,
    classes: Vec<u32>,
}

/// See the module. It is saved with the snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GivenUp {
    #[serde(with = "rows")]
    rows: BTreeMap<[u64; 2], Row>,
    level: u8,
    /// No row has a lower level, so most outcomes need no look-up.
    least: u8,
}

/// In JSON the key of a row is one number, because a list cannot be a key.
mod rows {
    use super::*;

    type Rows = BTreeMap<[u64; 2], Row>;

    pub fn serialize<S: Serializer>(rows: &Rows, s: S) -> Result<S::Ok, S::Error> {
        if !s.is_human_readable() {
            return rows.serialize(s);
        }
        let number = |[high, low]: [u64; 2]| u128::from(high) << 64 | u128::from(low);
        s.collect_map(rows.iter().map(|(&key, row)| (number(key), row)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Rows, D::Error> {
        if !d.is_human_readable() {
            return Rows::deserialize(d);
        }
        let rows = BTreeMap::<u128, Row>::deserialize(d)?.into_iter();
        let key = |number: u128| [(number >> 64) as u64, number as u64];
        Ok(rows.map(|(number, row)| (key(number), row)).collect())
    }
}

impl GivenUp {
    /// Forgets predictions of `model` in panes that start before `floor_ms`; `most` is
    /// [`rows_max`].
    pub fn evict(&mut self, model: u16, floor_ms: i64, most: usize) {
        let before = self.rows.len();
        self.retain(|m, _, start_ms| m != model || start_ms >= floor_ms);
        if self.rows.len() < before.min(most / FEW) {
            self.level = self.level.saturating_sub(1);
        }
    }

    /// Keeps the rows whose model, slot and pane `keep` accepts.
    pub fn retain(&mut self, keep: impl Fn(u16, u32, i64) -> bool) {
        let kept = |r: &Row| keep(r.model, r.slot, r.start_ms);
        self.rows.retain(|_, row| kept(row));
    }

    /// Takes a prediction that matured without an outcome; `most` is [`rows_max`].
    #[inline]
    pub fn add(&mut self, m: &Matured<'_>, most: usize) {
        if most > 0 && m.key.is_sampled(self.level) {
            self.insert(m, most);
        }
    }

    fn insert(&mut self, m: &Matured<'_>, most: usize) {
        let entries = m.scores.len().min(ENTRIES_MAX);
        let row = Row {
            model: m.model,
            slot: m.slot,
            start_ms: m.start_ms,
            time_ms: m.time_ms,
            level: self.level,
            met: false,
            scores: m.scores[..entries].to_vec(),
            classes: m.classes[..entries].to_vec(),
        };
        self.rows.insert(m.key.0, row);
        self.least = self.least.min(self.level);
        while self.rows.len() > most {
            self.level += 1;
            let level = self.level;
            self.rows.retain(|key, _| Key(*key).is_sampled(level));
            for row in self.rows.values_mut() {
                row.level = row.level.max(level);
            }
            self.least = level;
        }
    }

    /// Whether it remembers this prediction, and no outcome has met it.
    pub fn lacks_outcome(&self, key: Key) -> bool {
        self.rows.get(&key.0).is_some_and(|row| !row.met)
    }

    /// One of 2^level predictions is remembered.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Shows the remembered predictions of an id that this outcome is the first to meet.
    /// Predictions older than `within_ms` at the time of the outcome are left out.
    pub fn meet(
        &mut self,
        id: Key,
        (time_ms, class): (i64, u32),
        within_ms: i64,
        mut each: impl FnMut(Revision<'_>),
    ) {
        if !id.is_sampled(self.least) {
            return;
        }
        let id = id.any_version();
        let same = [id.0[0], 0]..=[id.0[0], u64::MAX];
        for (key, row) in self.rows.range_mut(same) {
            let key = Key(*key);
            let reached = time_ms.saturating_sub(row.time_ms) <= within_ms;
            if key.any_version() != id || row.met || !reached {
                continue;
            }
            row.met = true;
            each(Revision {
                now: Matured {
                    key,
                    model: row.model,
                    slot: row.slot,
                    start_ms: row.start_ms,
                    time_ms: row.time_ms,
                    outcome: Some(class),
                    scores: &row.scores,
                    classes: &row.classes,
                },
                before: None,
                late_ms: time_ms,
                given_up: Some(1 << row.level.min(62)),
            });
        }
    }

    /// Most heap bytes over all partitions of a join, for predictions of `views` views: nodes of
    /// the tree may be half empty. Σ_{p ≥ 32} (32/p)^1.5 is below 66.
    pub fn bytes_max(views: u64) -> u64 {
        let row = size_of::<(Key, Row)>() as u64 + 12 * views.min(ENTRIES_MAX as u64);
        let partitions = 3 * WHOLE as u64 + 2;
        2 * partitions * ROWS_MAX as u64 * row
    }

    /// Heap bytes, approximately.
    pub fn bytes(&self) -> usize {
        let row = |r: &Row| size_of::<(Key, Row)>() + 12 * r.scores.len();
        self.rows.values().map(row).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matured(id: u64, start_ms: i64) -> Matured<'static> {
        Matured {
            key: Key::new(None, &id.to_le_bytes()).of_version("1"),
            model: 0,
            slot: 3,
            start_ms,
            time_ms: start_ms,
            outcome: None,
            scores: &[0.25],
            classes: &[1],
        }
    }

    #[test]
    fn a_sample_is_bounded_stands_for_all_and_does_not_depend_on_the_order() {
        let n = 40_000;
        let (mut ours, mut theirs) = (GivenUp::default(), GivenUp::default());
        (0..n).for_each(|id| ours.add(&matured(id, 0), ROWS_MAX));
        (0..n)
            .rev()
            .for_each(|id| theirs.add(&matured(id, 0), ROWS_MAX));
        assert_eq!(ours, theirs);
        assert!((ROWS_MAX / FEW..=ROWS_MAX).contains(&ours.rows.len()));
        let mut stands_for = 0;
        for _ in 0..2 {
            for id in 0..n {
                let key = Key::new(None, &id.to_le_bytes());
                ours.meet(key, (5, 1), 10, |r| stands_for += r.given_up.unwrap());
            }
        }
        let share = stands_for as f64 / n as f64;
        assert!((0.85..1.15).contains(&share), "{share}");
        ours.evict(0, 1, ROWS_MAX);
        assert!(ours.rows.is_empty() && ours.level < theirs.level);
    }

    #[test]
    fn a_sample_goes_through_json_and_back() {
        let mut sample = GivenUp::default();
        (0..100).for_each(|id| sample.add(&matured(id, 0), ROWS_MAX));
        let text = serde_json::to_string(&sample).unwrap();
        assert_eq!(serde_json::from_str::<GivenUp>(&text).unwrap(), sample);
        let bytes = postcard::to_stdvec(&sample).unwrap();
        let plain = (&sample.rows, sample.level, sample.least);
        assert_eq!(bytes, postcard::to_stdvec(&plain).unwrap());
        assert_eq!(postcard::from_bytes::<GivenUp>(&bytes).unwrap(), sample);
    }

    #[test]
    fn all_partitions_together_have_three_times_the_rows_of_the_first_ones() {
        assert_eq!([0, 31, 32, 128].map(rows_max), [1024, 1024, 1024, 128]);
        let all: usize = (0..1_000_000).map(rows_max).sum();
        assert!(all <= 98 * ROWS_MAX, "{all}");
        assert_eq!(rows_max(i32::MAX), 0);
        let mut none = GivenUp::default();
        (0..100).for_each(|id| none.add(&matured(id, 0), 0));
        assert!(none.rows.is_empty());
    }

    #[test]
    fn an_outcome_meets_each_version_of_its_id_once_and_within_its_time() {
        let mut sample = GivenUp::default();
        for version in ["1", "2"] {
            let mut m = matured(7, 100);
            m.key = Key::new(None, &7u64.to_le_bytes()).of_version(version);
            sample.add(&m, ROWS_MAX);
        }
        sample.add(&matured(8, 100), ROWS_MAX);
        let key = Key::new(None, &7u64.to_le_bytes());
        let mut met = Vec::new();
        sample.meet(key, (111, 1), 10, |r| met.push(r.late_ms));
        assert!(met.is_empty());
        for time_ms in [110, 105] {
            sample.meet(key, (time_ms, 1), 10, |r| met.push(r.late_ms));
        }
        assert_eq!(met, [110, 110]);
        let lacks =
            |id: u64| sample.lacks_outcome(Key::new(None, &id.to_le_bytes()).of_version("1"));
        assert!(lacks(8) && !lacks(7) && !lacks(9));
    }
}
