//! The retained predictions of one model in one pane, stored by column.
//!
//! A prediction of a model with one view takes 44 bytes here and 10 to 13 in the joiner's index: a
//! row of 32 bytes and, in columns of their own, 12 bytes for each [entry](super::RowLayout).
//! Columns are cut to size when predictions of another pane begin to arrive, because pending panes
//! are what fills memory. A pane with many predictions has [several](super::index) cohorts.

use super::key::Key;
use super::matured::Matured;
use crate::stats::fixed::Score;

/// Value of [`Row::outcome`] while no outcome has come.
const NONE: u32 = u32::MAX;

/// Value of [`Row::slot`] once the prediction was removed.
const REMOVED: u32 = u32::MAX;

/// Flags beside the slot of a stream; slots stay far below 2³⁰.
const SIBLINGS: u32 = 1 << 31;
const LATE_OUTCOME: u32 = 1 << 30;

/// Zero of [`Row::lag`]: clocks may put an outcome before its prediction.
const LAG_ZERO: i64 = 1 << 31;

/// A pane: its model, and its start in milliseconds.
pub(super) type PaneId = (u16, i64);

/// What all rows of a cohort share.
#[derive(Debug, Clone, Copy)]
pub(super) struct CohortMeta {
    /// Event time up to which outcomes are on time.
    pub due_ms: i64,
    /// Whether the pane has matured and is retained for revisions only.
    pub mature: bool,
    /// Number of entries of a row.
    pub entries: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub key: Key,
    /// Slot of the stream, with flags.
    slot: u32,
    /// Event time after the start of the pane.
    offset_ms: u32,
    /// Class of the outcome, or [`NONE`].
    outcome: u32,
    /// Event time of the outcome minus that of the prediction, clamped to ±24 days. Times beyond
    /// compare equal when the first or last of two outcomes is chosen.
    lag: u32,
}

impl Row {
    pub fn slot(&self) -> u32 {
        self.slot & !(SIBLINGS | LATE_OUTCOME)
    }

    /// Whether siblings of this prediction may lie in other cohorts.
    pub fn has_siblings(&self) -> bool {
        self.slot & SIBLINGS > 0
    }

    pub fn mark_siblings(&mut self) {
        self.slot |= SIBLINGS;
    }

    /// Whether a sibling has an outcome that was late for this prediction, so that it revises this
    /// one at maturity.
    pub fn has_late_outcome(&self) -> bool {
        self.slot & LATE_OUTCOME > 0
    }

    pub fn mark_late_outcome(&mut self) {
        self.slot |= LATE_OUTCOME;
    }
}

/// The retained predictions of one model in one pane.
#[derive(Debug)]
pub(super) struct Cohort {
    model: u16,
    start_ms: i64,
    meta: CohortMeta,
    rows: Vec<Row>,
    scores: Vec<f64>,
    classes: Vec<u32>,
    live: usize,
}

impl Cohort {
    pub fn new((model, start_ms): PaneId, meta: CohortMeta) -> Cohort {
        Cohort {
            model,
            start_ms,
            meta,
            rows: Vec::new(),
            scores: Vec::new(),
            classes: Vec::new(),
            live: 0,
        }
    }

    /// Adds a prediction without outcome; returns its row.
    pub fn push(&mut self, key: Key, slot: u32, time_ms: i64, entries: &[(Score, u32)]) -> u32 {
        self.reserve(entries.len());
        self.rows.push(Row {
            key,
            slot,
            offset_ms: u32::try_from(time_ms - self.start_ms).unwrap_or(u32::MAX),
            outcome: NONE,
            lag: 0,
        });
        self.scores.extend(entries.iter().map(|(z, _)| z.value()));
        self.classes.extend(entries.iter().map(|(_, k)| *k));
        self.live += 1;
        (self.rows.len() - 1) as u32
    }

    /// Removes a prediction that an earlier one of the same key replaces; its row stays, empty.
    pub fn remove(&mut self, row: u32) {
        self.rows[row as usize].slot = REMOVED;
        self.live -= 1;
    }

    pub fn pane(&self) -> PaneId {
        (self.model, self.start_ms)
    }

    pub fn meta(&self) -> CohortMeta {
        self.meta
    }

    pub fn is_mature(&self) -> bool {
        self.meta.mature
    }

    /// From now on the pane is retained for revisions only.
    pub fn set_mature(&mut self) {
        self.meta.mature = true;
    }

    /// Whether an outcome at `time_ms` is late: it happened after these predictions were due, and
    /// they are not mature yet.
    pub fn is_late(&self, time_ms: i64) -> bool {
        time_ms > self.meta.due_ms && !self.meta.mature
    }

    /// Number of rows, removed ones included.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Number of rows that were not removed.
    pub fn live(&self) -> usize {
        self.live
    }

    /// The rows that were not removed.
    pub fn rows(&self) -> impl Iterator<Item = u32> {
        let all = (0u32..).zip(&self.rows);
        all.filter(|(_, r)| r.slot != REMOVED).map(|(i, _)| i)
    }

    pub fn row(&self, row: u32) -> &Row {
        &self.rows[row as usize]
    }

    pub fn row_mut(&mut self, row: u32) -> &mut Row {
        &mut self.rows[row as usize]
    }

    pub fn time_ms(&self, row: u32) -> i64 {
        self.start_ms + i64::from(self.row(row).offset_ms)
    }

    /// Scores of all entries of a prediction.
    pub fn scores(&self, row: u32) -> &[f64] {
        let first = row as usize * self.meta.entries;
        &self.scores[first..first + self.meta.entries]
    }

    /// Classes of all entries of a prediction.
    pub fn classes(&self, row: u32) -> &[u32] {
        let first = row as usize * self.meta.entries;
        &self.classes[first..first + self.meta.entries]
    }

    /// The outcome with its event time, which is exact within 24 days of the prediction's.
    pub fn outcome(&self, row: u32) -> Option<(i64, u32)> {
        let r = self.row(row);
        let time = self.time_ms(row) + i64::from(r.lag) - LAG_ZERO;
        (r.outcome != NONE).then_some((time, r.outcome))
    }

    pub fn set_outcome(&mut self, row: u32, time_ms: i64, outcome: u32) {
        let lag = lag(self.time_ms(row), time_ms);
        let r = &mut self.rows[row as usize];
        r.outcome = outcome;
        r.lag = (lag + LAG_ZERO) as u32;
    }

    /// A prediction as it is counted.
    pub fn matured(&self, row: u32) -> Matured<'_> {
        let r = self.row(row);
        Matured {
            key: r.key,
            time_ms: self.time_ms(row),
            model: self.model,
            slot: r.slot(),
            start_ms: self.start_ms,
            outcome: (r.outcome != NONE).then_some(r.outcome),
            scores: self.scores(row),
            classes: self.classes(row),
        }
    }

    /// Bytes of an encoded row.
    pub fn encoded_len(entries: usize) -> usize {
        16 + 12 * entries
    }

    /// Encodes a row without its key.
    pub fn encode(&self, row: u32, to: &mut Vec<u8>) {
        let r = self.row(row);
        for word in [r.slot, r.offset_ms, r.outcome, r.lag] {
            to.extend(word.to_le_bytes());
        }
        for (z, k) in self.scores(row).iter().zip(self.classes(row)) {
            to.extend(z.to_le_bytes());
            to.extend(k.to_le_bytes());
        }
    }

    /// Adds an encoded row; `None` if it is too short.
    pub fn decode(&mut self, key: Key, bytes: &[u8]) -> Option<u32> {
        let bytes = bytes.get(..Cohort::encoded_len(self.meta.entries))?;
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let row = Row {
            key,
            slot: word(0)?,
            offset_ms: word(4)?,
            outcome: word(8)?,
            lag: word(12)?,
        };
        self.reserve(self.meta.entries);
        for entry in bytes[16..].chunks_exact(12) {
            let (z, k) = entry.split_at(8);
            self.scores.push(f64::from_le_bytes(z.try_into().ok()?));
            self.classes.push(u32::from_le_bytes(k.try_into().ok()?));
        }
        self.rows.push(row);
        self.live += 1;
        Some((self.rows.len() - 1) as u32)
    }

    fn reserve(&mut self, entries: usize) {
        reserve(&mut self.rows, 1);
        reserve(&mut self.scores, entries);
        reserve(&mut self.classes, entries);
    }

    /// Frees the memory that growth left unused.
    pub fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.scores.shrink_to_fit();
        self.classes.shrink_to_fit();
    }

    pub fn row_bytes(&self) -> usize {
        size_of::<Row>() + 12 * self.meta.entries
    }

    pub fn bytes(&self) -> usize {
        size_of::<Cohort>()
            + self.rows.capacity() * size_of::<Row>()
            + self.scores.capacity() * 8
            + self.classes.capacity() * 4
    }
}

/// Event time of an outcome minus that of its prediction, clamped to what a row stores.
fn lag(time_ms: i64, outcome_ms: i64) -> i64 {
    let most = i64::from(u32::MAX) - LAG_ZERO;
    (outcome_ms - time_ms).clamp(-LAG_ZERO, most)
}

/// Event time of an outcome as a row stores it: exact within 24 days of the prediction's.
pub(super) fn stored_ms(time_ms: i64, outcome_ms: i64) -> i64 {
    time_ms + lag(time_ms, outcome_ms)
}

fn reserve<T>(v: &mut Vec<T>, more: usize) {
    if v.capacity() - v.len() < more {
        v.reserve_exact(v.len() / 2 + 4 * more);
    }
}
