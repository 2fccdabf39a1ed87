//! Predictions of one model in one pane that wait for their outcomes.
//!
//! 44 bytes for each, and 10 to 20 in the joiner's index, for a model with one view: a row of 32 bytes and, in
//! columns of their own, 12 for each view. Columns are cut to size when predictions of another pane begin to
//! come, for it is these that fill the memory. A pane with many predictions has [several](super::index) cohorts.
//!
//! What is kept of a prediction is what its views need ([`Kept`]): the score, and the class that makes the outcome
//! true. Where a model has views of cells of vectors, their largest
//! probabilities follow, as many as the views need together, each with its class and in 12 bytes as a view
//! ([`crate::stats::multiclass::ranked`]); for a kernel view the whole vector follows these ([`super::whole`]); else a vector of a thousand
//! probabilities is not kept. A weighted prediction has its weight in the place of a view more, the last: a
//! score of 0, and the weight's integer for a class ([`weight_view`]).

use super::key::Key;
use super::spilled::Facts;
use super::whole;
use crate::stats::fixed::Score;
use crate::stats::multiclass::ranked::{ABSENT, Ranked};
use crate::stats::weight::Weight;
use crate::window::WholeVector;

/// An outcome that has not come.
pub(super) const NONE: u32 = u32::MAX;

/// A row whose prediction went to another pane.
const GONE: u32 = u32::MAX;

/// Marks beside the slot of a subject, of which there are far less than 2³⁰.
const KIN: u32 = 1 << 31;
const OWES: u32 = 1 << 30;

/// Zero of [`Row::lag`]: outcomes may come before their predictions by the clocks.
const LAG_ZERO: i64 = 1 << 31;

#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub key: Key,
    /// Slot of the subject, with marks.
    subject: u32,
    /// Event time after the begin of the pane.
    pub offset_ms: u32,
    /// Class that happened, or [`NONE`].
    pub outcome: u32,
    /// Event time of the outcome after that of the prediction, from −24 to 24 days; further ones are not
    /// told apart when the first or last of two outcomes is looked for.
    lag: u32,
}

impl Row {
    /// Slot of the subject.
    pub fn subject(&self) -> u32 {
        self.subject & !(KIN | OWES)
    }

    /// Whether others of its id may lie in other cohorts.
    pub fn has_kin(&self) -> bool {
        self.subject & KIN > 0
    }

    pub fn set_kin(&mut self) {
        self.subject |= KIN;
    }

    /// Whether others of its id got an outcome that was late for this one, so that it is due when this one is mature.
    pub fn owes(&self) -> bool {
        self.subject & OWES > 0
    }

    pub fn set_owes(&mut self) {
        self.subject |= OWES;
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Cohort {
    pub model: u16,
    pub start_ms: i64,
    /// Event time up to which outcomes are on time.
    pub due_ms: i64,
    /// Whether it has matured and is kept for revisions.
    pub settled: bool,
    views: usize,
    rows: Vec<Row>,
    scores: Vec<f64>,
    classes: Vec<u32>,
    live: usize,
}

/// A prediction that has become mature.
#[derive(Debug, Clone, Copy)]
pub struct Matured<'a> {
    /// Its name.
    pub key: Key,
    /// Index of the model's plan.
    pub model: u16,
    /// Slot of its subject.
    pub subject: u32,
    /// Begin of its pane.
    pub start_ms: i64,
    /// Event time.
    pub time_ms: i64,
    /// Class that happened, if any outcome came.
    pub outcome: Option<u32>,
    scores: &'a [f64],
    classes: &'a [u32],
}

/// What is kept of each prediction of a model, in 12 bytes an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its views of single scores.
    pub views: usize,
    /// Its largest probabilities, for views of cells.
    pub depth: usize,
    /// Entries of its [whole vector](super::whole), for a kernel view.
    pub whole: usize,
    /// Whether there is a weight.
    pub weighted: bool,
}

impl Kept {
    /// Of a model without vector views and weights.
    pub fn scores(views: usize) -> Kept {
        Kept {
            views,
            ..Kept::default()
        }
    }

    /// Entries of a prediction.
    pub fn entries(&self) -> usize {
        self.views + self.depth + self.whole + usize::from(self.weighted)
    }

    /// Where the whole vector begins, with its number of entries.
    pub fn whole(&self) -> (usize, usize) {
        (self.views + self.depth, self.whole)
    }

    /// Makes entries of what was kept while the vector views were others, with so many of a whole vector: probabilities
    /// that were not kept are absent, and those that are no longer asked for go.
    pub fn fit(&self, entries: &mut Vec<(Score, u32)>, whole: usize) {
        if (entries.len(), whole) == (self.entries(), self.whole) {
            return;
        }
        let weight = match self.weighted {
            true => entries.pop(),
            false => None,
        };
        let mut vector = entries.split_off(entries.len() - whole.min(entries.len()));
        if vector.len() != self.whole {
            vector = vec![(Score::ZERO, ABSENT); self.whole];
        }
        entries.resize(self.views + self.depth, (Score::ZERO, ABSENT));
        entries.extend(vector);
        entries.extend(weight);
    }
}

/// The entry behind the views that holds a weight.
pub fn weight_view(weight: Weight) -> (Score, u32) {
    (Score::ZERO, weight.fixed())
}

impl Matured<'_> {
    /// The weight, of a prediction that has one.
    pub fn weight(&self) -> Option<Weight> {
        self.classes.last().copied().and_then(Weight::from_fixed)
    }

    /// Its largest probabilities, by what its model keeps.
    pub fn ranked(&self, kept: Kept) -> Ranked<'_> {
        let range = kept.views..kept.views + kept.depth;
        Ranked {
            values: self.scores.get(range.clone()).unwrap_or_default(),
            classes: self.classes.get(range).unwrap_or_default(),
        }
    }

    /// Its whole vector of `classes`, put into `row`, with its rank; `None` where it is not there.
    pub fn whole<'r>(
        &self,
        kept: Kept,
        classes: usize,
        row: &'r mut Vec<f64>,
    ) -> Option<WholeVector<'r>> {
        let (begin, len) = kept.whole();
        let scores = self.scores.get(begin..begin + len)?;
        let halves = self.classes.get(begin..begin + len)?;
        let rank = whole::unpack(scores, halves, classes, row)?;
        Some(WholeVector { rank, row })
    }

    /// For each view the score, and whether `class` makes its outcome true; further entries, which mean nothing,
    /// where there is more.
    pub fn against(&self, class: u32) -> impl Iterator<Item = (Score, bool)> {
        let both = self.scores.iter().zip(self.classes);
        // Scores were checked when they came.
        both.filter_map(move |(&z, &k)| Some((Score::new(z).ok()?, k == class)))
    }
}

impl Cohort {
    pub fn new(model: u16, start_ms: i64, facts: Facts) -> Cohort {
        Cohort {
            model,
            start_ms,
            due_ms: facts.due_ms,
            settled: facts.settled,
            views: facts.views,
            rows: Vec::new(),
            scores: Vec::new(),
            classes: Vec::new(),
            live: 0,
        }
    }

    /// Adds a prediction without outcome; returns its row.
    pub fn push(&mut self, key: Key, subject: u32, time_ms: i64, views: &[(Score, u32)]) -> u32 {
        reserve(&mut self.rows, 1);
        reserve(&mut self.scores, views.len());
        reserve(&mut self.classes, views.len());
        self.rows.push(Row {
            key,
            subject,
            offset_ms: u32::try_from(time_ms - self.start_ms).unwrap_or(u32::MAX),
            outcome: NONE,
            lag: 0,
        });
        self.scores.extend(views.iter().map(|(z, _)| z.value()));
        self.classes.extend(views.iter().map(|(_, k)| *k));
        self.live += 1;
        (self.rows.len() - 1) as u32
    }

    /// Rows, those that are gone among them.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of a row in memory.
    pub fn row_bytes(&self) -> usize {
        size_of::<Row>() + 12 * self.views
    }

    /// Bytes of a row as it is written.
    pub fn row_len(views: usize) -> usize {
        16 + 12 * views
    }

    /// Writes a row down, but for its key.
    pub fn write(&self, row: u32, to: &mut Vec<u8>) {
        let r = self.row(row);
        for word in [r.subject, r.offset_ms, r.outcome, r.lag] {
            to.extend(word.to_le_bytes());
        }
        let first = row as usize * self.views;
        let views = first..first + self.views;
        for (z, k) in self.scores[views.clone()].iter().zip(&self.classes[views]) {
            to.extend(z.to_le_bytes());
            to.extend(k.to_le_bytes());
        }
    }

    /// Adds a row as it was written; `None` where it is too short.
    pub fn read(&mut self, key: Key, bytes: &[u8]) -> Option<u32> {
        let bytes = bytes.get(..Cohort::row_len(self.views))?;
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let row = Row {
            key,
            subject: word(0)?,
            offset_ms: word(4)?,
            outcome: word(8)?,
            lag: word(12)?,
        };
        reserve(&mut self.rows, 1);
        reserve(&mut self.scores, self.views);
        reserve(&mut self.classes, self.views);
        for view in bytes[16..].chunks_exact(12) {
            let (z, k) = view.split_at(8);
            self.scores.push(f64::from_le_bytes(z.try_into().ok()?));
            self.classes.push(u32::from_le_bytes(k.try_into().ok()?));
        }
        self.rows.push(row);
        self.live += 1;
        Some((self.rows.len() - 1) as u32)
    }

    /// What holds for all rows.
    pub fn facts(&self) -> Facts {
        Facts {
            due_ms: self.due_ms,
            settled: self.settled,
            views: self.views,
        }
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

    /// Takes a prediction out, for it has come again with an earlier time; its row stays, empty.
    pub fn remove(&mut self, row: u32) {
        self.rows[row as usize].subject = GONE;
        self.live -= 1;
    }

    pub fn live(&self) -> usize {
        self.live
    }

    pub fn scores(&self, row: u32) -> &[f64] {
        let first = row as usize * self.views;
        &self.scores[first..first + self.views]
    }

    pub fn classes(&self, row: u32) -> &[u32] {
        let first = row as usize * self.views;
        &self.classes[first..first + self.views]
    }

    pub fn matured(&self, row: u32) -> Matured<'_> {
        let r = self.row(row);
        Matured {
            key: r.key,
            time_ms: self.time_ms(row),
            model: self.model,
            subject: r.subject(),
            start_ms: self.start_ms,
            outcome: (r.outcome != NONE).then_some(r.outcome),
            scores: self.scores(row),
            classes: self.classes(row),
        }
    }

    /// Its rows, but those that are gone.
    pub fn rows(&self) -> impl Iterator<Item = u32> {
        let all = (0u32..).zip(&self.rows);
        all.filter(|(_, r)| r.subject != GONE).map(|(i, _)| i)
    }

    /// Gives back what growth left over.
    pub fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.scores.shrink_to_fit();
        self.classes.shrink_to_fit();
    }

    pub fn bytes(&self) -> usize {
        size_of::<Cohort>()
            + self.rows.capacity() * size_of::<Row>()
            + self.scores.capacity() * 8
            + self.classes.capacity() * 4
    }
}

/// Event time of an outcome after that of its prediction, as far as it is kept.
fn lag(time_ms: i64, outcome_ms: i64) -> i64 {
    let most = i64::from(u32::MAX) - LAG_ZERO;
    (outcome_ms - time_ms).clamp(-LAG_ZERO, most)
}

/// Event time of an outcome as it is kept with a prediction: exact within 24 days of the prediction's.
pub(super) fn kept_ms(time_ms: i64, outcome_ms: i64) -> i64 {
    time_ms + lag(time_ms, outcome_ms)
}

fn reserve<T>(v: &mut Vec<T>, more: usize) {
    if v.capacity() - v.len() < more {
        v.reserve_exact(v.len() / 2 + 4 * more);
    }
}
