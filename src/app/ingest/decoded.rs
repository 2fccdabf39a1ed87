//! Records that were decoded before they are counted.
//!
//! A decoded event borrows from the buffers of its decoder, which the next record overwrites.
//! [`Decoded`] keeps the contents of many records, in order: the borrowed data is copied into three
//! reusable buffers. Contents are returned exactly as they were, to the bit.

use crate::collect::{Event, OutcomeRecord};
use crate::decode::{Content, Rejection};
use crate::stats::clusters::Bucket;
use crate::stats::view::{Outcome, Prediction};
use crate::stats::weight::Weight;
use std::ops::Range;

/// Most bytes of a buffer that is kept. Larger buffers come from records with large ids or vectors.
const KEPT: usize = 1 << 16;

/// The contents of some records, in order. See the module.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    /// The rows of each record; `None` if the record is left to the caller.
    records: Vec<Option<Range<usize>>>,
    rows: Vec<Row>,
    text: String,
    ids: Vec<u8>,
    probabilities: Vec<f64>,
}

#[derive(Debug)]
enum Row {
    Event {
        model: Range<usize>,
        version: Range<usize>,
        segment: Range<usize>,
        id: Range<usize>,
        time_ms: i64,
        prediction: Stored,
        outcome: Option<Outcome>,
        weight: Option<Weight>,
        cluster: Option<Bucket>,
    },
    Outcome {
        model: Option<Range<usize>>,
        id: Range<usize>,
        time_ms: i64,
        outcome: Outcome,
    },
    Rejected(Box<Rejection>),
}

#[derive(Debug)]
enum Stored {
    Score(f64),
    Vector(Range<usize>),
}

impl Decoded {
    /// Forgets all records.
    pub fn clear(&mut self) {
        self.records.clear();
        self.rows.clear();
        self.text.clear();
        self.ids.clear();
        self.probabilities.clear();
        self.rows.shrink_to(KEPT / size_of::<Row>());
        self.text.shrink_to(KEPT);
        self.ids.shrink_to(KEPT);
        self.probabilities.shrink_to(KEPT / size_of::<f64>());
    }

    /// Bytes of memory that are in use.
    pub fn bytes(&self) -> usize {
        self.rows.len() * size_of::<Row>()
            + self.text.len()
            + self.ids.len()
            + self.probabilities.len() * size_of::<f64>()
    }

    /// Bytes of memory of the buffers, in use or not.
    pub fn held(&self) -> usize {
        self.records.capacity() * size_of::<Option<Range<usize>>>()
            + self.rows.capacity() * size_of::<Row>()
            + self.text.capacity()
            + self.ids.capacity()
            + self.probabilities.capacity() * size_of::<f64>()
    }

    /// Appends a record that the caller decodes itself.
    pub fn leave(&mut self) {
        self.records.push(None);
    }

    /// Appends a record. `decode` calls its argument with each row, in order.
    pub fn keep(&mut self, decode: impl FnOnce(&mut dyn FnMut(&Result<Content<'_>, Rejection>))) {
        let first = self.rows.len();
        decode(&mut |content| self.push(content));
        self.records.push(Some(first..self.rows.len()));
    }

    fn push(&mut self, content: &Result<Content<'_>, Rejection>) {
        let row = match content {
            Ok(Content::Event(e)) => Row::Event {
                model: self.text(e.model),
                version: self.text(e.version),
                segment: self.text(e.segment),
                id: self.id(e.id),
                time_ms: e.time_ms,
                prediction: match e.prediction {
                    Prediction::Score(z) => Stored::Score(z),
                    Prediction::Vector(p) => {
                        let start = self.probabilities.len();
                        self.probabilities.extend_from_slice(p);
                        Stored::Vector(start..self.probabilities.len())
                    }
                },
                outcome: e.outcome,
                weight: e.weight,
                cluster: e.cluster,
            },
            Ok(Content::Outcome(l)) => Row::Outcome {
                model: l.model.map(|model| self.text(model)),
                id: self.id(l.id),
                time_ms: l.time_ms,
                outcome: l.outcome,
            },
            Err(rejection) => Row::Rejected(Box::new(rejection.clone())),
        };
        self.rows.push(row);
    }

    fn text(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }

    fn id(&mut self, id: &[u8]) -> Range<usize> {
        let start = self.ids.len();
        self.ids.extend_from_slice(id);
        start..self.ids.len()
    }

    /// Calls `take` with each row of a record, in order, and returns their number; `None` if the
    /// record is left to the caller. Arrival times of events and outcomes are missing: the caller
    /// knows them.
    pub fn rows(
        &self,
        record: usize,
        mut take: impl FnMut(usize, &mut Result<Content<'_>, Rejection>),
    ) -> Option<usize> {
        let rows = &self.rows[self.records.get(record)?.clone()?];
        for (number, row) in rows.iter().enumerate() {
            take(number, &mut self.content(row));
        }
        Some(rows.len())
    }

    fn content<'a>(&'a self, row: &'a Row) -> Result<Content<'a>, Rejection> {
        match row {
            Row::Event {
                model,
                version,
                segment,
                id,
                time_ms,
                prediction,
                outcome,
                weight,
                cluster,
            } => Ok(Content::Event(Event {
                model: &self.text[model.clone()],
                version: &self.text[version.clone()],
                segment: &self.text[segment.clone()],
                id: &self.ids[id.clone()],
                time_ms: *time_ms,
                arrival_ms: None,
                prediction: match prediction {
                    Stored::Score(z) => Prediction::Score(*z),
                    Stored::Vector(p) => Prediction::Vector(&self.probabilities[p.clone()]),
                },
                outcome: *outcome,
                weight: *weight,
                cluster: *cluster,
            })),
            Row::Outcome {
                model,
                id,
                time_ms,
                outcome,
            } => Ok(Content::Outcome(OutcomeRecord {
                model: model.clone().map(|model| &self.text[model]),
                id: &self.ids[id.clone()],
                time_ms: *time_ms,
                arrival_ms: None,
                outcome: *outcome,
            })),
            Row::Rejected(rejection) => Err(Rejection::clone(rejection)),
        }
    }
}
