//! How each record ends, and how many ended so. Each event of a record with several events counts
//! as a record.
//!
//! Every record, decoded or not, ends in exactly one [`Disposition`]. Always: the records of a
//! source equal the sum of its dispositions, because one function counts both.

use crate::stats::view::ViewError;
use serde::{Deserialize, Serialize};

/// Why a record is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// Not what the decoder expects: broken JSON, a row with too few fields.
    Malformed,
    /// A field that is needed is not there.
    MissingField,
    /// A score or probability is NaN or infinite.
    ScoreNotFinite,
    /// A score or probability is below 0 or above 1.
    ScoreOutOfRange,
    /// A score or probability is not a number.
    ScoreNotNumber,
    /// The probabilities do not sum to 1.
    VectorSum,
    /// The vector has not one probability for each class.
    VectorLength,
    /// A class that the model does not have.
    UnknownClass,
    /// The outcome is neither true nor false, nor a class.
    BadOutcome,
    /// A score where the model's views need a vector of probabilities, or the reverse.
    WrongShape,
    /// No model name.
    EmptyKey,
    /// The record, or a name in it, is too large.
    TooLarge,
    /// Event time before 2000, after 2100, or too far ahead of the broker's.
    TimeOutOfRange,
    /// Event time that cannot be read.
    BadTime,
    /// A model that the configuration does not name.
    UnknownModel,
    /// A second outcome of one prediction that says something else, where that is not allowed.
    Contradiction,
    /// The registry has no schema under the record's id, or one that cannot be used.
    UnknownSchema,
    /// The weight is zero, negative, not finite, too large, or too small for its resolution.
    BadWeight,
}

impl Reason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Reason; 18] = [
        Reason::Malformed,
        Reason::MissingField,
        Reason::ScoreNotFinite,
        Reason::ScoreOutOfRange,
        Reason::ScoreNotNumber,
        Reason::VectorSum,
        Reason::VectorLength,
        Reason::UnknownClass,
        Reason::BadOutcome,
        Reason::WrongShape,
        Reason::EmptyKey,
        Reason::TooLarge,
        Reason::TimeOutOfRange,
        Reason::BadTime,
        Reason::UnknownModel,
        Reason::Contradiction,
        Reason::UnknownSchema,
        Reason::BadWeight,
    ];

    /// Its name, as in labels, headers and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Malformed => "malformed",
            Reason::MissingField => "missing_field",
            Reason::ScoreNotFinite => "score_not_finite",
            Reason::ScoreOutOfRange => "score_out_of_range",
            Reason::ScoreNotNumber => "score_not_number",
            Reason::VectorSum => "vector_sum",
            Reason::VectorLength => "vector_length",
            Reason::UnknownClass => "unknown_class",
            Reason::BadOutcome => "bad_outcome",
            Reason::WrongShape => "wrong_shape",
            Reason::EmptyKey => "empty_key",
            Reason::TooLarge => "too_large",
            Reason::TimeOutOfRange => "time_out_of_range",
            Reason::BadTime => "bad_time",
            Reason::UnknownModel => "unknown_model",
            Reason::Contradiction => "contradiction",
            Reason::UnknownSchema => "unknown_schema",
            Reason::BadWeight => "bad_weight",
        }
    }

    /// What is wrong and what to do, where the record itself is not at hand to be quoted.
    pub fn words(self) -> &'static str {
        match self {
            Reason::Malformed => "not a JSON object; write one object a record",
            Reason::MissingField => "the outcome is missing; every record must carry one",
            Reason::ScoreNotFinite => "the score is not finite; send a probability from 0 to 1",
            Reason::ScoreOutOfRange => "the score is outside 0 to 1; send a probability",
            Reason::ScoreNotNumber => "the score is not a number; send it without quotes",
            Reason::VectorSum => "the probabilities do not sum to 1; send them after the softmax",
            Reason::VectorLength => {
                "the vector has not one probability for each of the model's `classes`; make them agree"
            }
            Reason::UnknownClass => {
                "the outcome or a view names a class that the vector does not have; see `classes` and `views`"
            }
            Reason::BadOutcome => "the outcome is neither 0 or 1 nor a class; see `fields.outcome`",
            Reason::WrongShape => {
                "a view of this model needs a vector of probabilities, or one score; `binary` in `views` is for \
                 scores and two classes: of more, list the `classes` in the [[model]], see `views` and `fields`"
            }
            Reason::EmptyKey => "the model's name or the message key is empty; fill it in",
            Reason::TooLarge => "model, version or segment are longer than 512 bytes; shorten them",
            Reason::TimeOutOfRange => {
                "the event time is before 2000, after 2100, or further ahead of the record's own than \
                 `future_max`; check the clock and `time_unit`"
            }
            Reason::BadTime => "the event time cannot be read; see `fields.time` and `time_unit`",
            Reason::UnknownModel => {
                "no [[model]] has this name, and there is none named \"*\"; add one of them"
            }
            Reason::UnknownSchema => {
                "the schema registry does not have the record's schema; register it and see [registry]"
            }
            Reason::BadWeight => {
                "the weight is not above 0 and below 65536, in steps of 1/65536; see `fields.weight`"
            }
            Reason::Contradiction => {
                "another outcome of this prediction came before; send one, or set `repeated`"
            }
        }
    }
}

impl From<ViewError> for Reason {
    fn from(e: ViewError) -> Reason {
        match e {
            ViewError::NotFinite => Reason::ScoreNotFinite,
            ViewError::OutOfRange => Reason::ScoreOutOfRange,
            ViewError::VectorSum => Reason::VectorSum,
            ViewError::VectorLength => Reason::VectorLength,
            ViewError::UnknownClass => Reason::UnknownClass,
            ViewError::Shape => Reason::WrongShape,
        }
    }
}

/// Which cap refused a good record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Refusal {
    /// It would have begun a stream above the cap on streams.
    Streams,
    /// It would have opened a pane above the cap on open panes of its stream, or on their bytes
    /// over all streams.
    Panes,
    /// A sum of its cell would overflow.
    Sums,
    /// The cap on waiting predictions, or on waiting outcomes, is reached.
    Pending,
}

impl Refusal {
    /// All refusals, in the order of their discriminants.
    pub const ALL: [Refusal; 4] = [
        Refusal::Streams,
        Refusal::Panes,
        Refusal::Sums,
        Refusal::Pending,
    ];

    /// Its name, as in labels and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::Streams => "streams",
            Refusal::Panes => "panes",
            Refusal::Sums => "sums",
            Refusal::Pending => "pending",
        }
    }
}

/// How a record ended, for now. A pending or waiting record ends later, in one of the states in
/// brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// Added to the sums.
    Observed,
    /// A prediction that is not mature (observed, expired, refused).
    Pending,
    /// An outcome whose prediction is pending.
    Matched,
    /// An outcome whose prediction has not come (matched, orphaned, rejected).
    Waiting,
    /// A prediction or outcome that was there already.
    Duplicate,
    /// A prediction of the id of another, with other scores.
    Conflict,
    /// An outcome that corrected the sums of a mature prediction.
    Revised,
    /// Its pane was sealed already.
    Late,
    /// It cannot be used.
    Rejected(Reason),
    /// It could be used, but for a cap.
    Refused(Refusal),
    /// Its offset is below the position: it was counted in an earlier reading.
    Replayed,
}

impl Disposition {
    /// The state of the record as in labels; reasons have a label of their own.
    pub fn as_str(self) -> &'static str {
        match self {
            Disposition::Observed => "observed",
            Disposition::Pending => "pending",
            Disposition::Matched => "matched",
            Disposition::Waiting => "waiting",
            Disposition::Duplicate => "duplicate",
            Disposition::Conflict => "conflict",
            Disposition::Revised => "revised",
            Disposition::Late => "late",
            Disposition::Rejected(_) => "rejected",
            Disposition::Refused(_) => "refused",
            Disposition::Replayed => "replayed",
        }
    }
}

/// Counts of one source. `pending` and `waiting` decrease when their records end; the others only
/// grow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCounters {
    /// Records read.
    pub records: u64,
    /// Records added to the sums.
    pub observed: u64,
    /// Predictions that are not mature.
    pub pending: u64,
    /// Mature predictions without outcome that are in no sum.
    pub expired: u64,
    /// Outcomes whose prediction is or was pending.
    pub matched: u64,
    /// Outcomes whose prediction has not come.
    pub waiting: u64,
    /// Outcomes whose prediction did not come in time.
    pub orphaned: u64,
    /// Predictions and outcomes that had come before.
    pub duplicate: u64,
    /// Predictions with the id of another and other scores.
    pub conflict: u64,
    /// Outcomes that corrected the sums of a mature prediction.
    pub revised: u64,
    /// Records for sealed panes.
    pub late: u64,
    /// Records that were read again.
    pub replayed: u64,
    /// Records that cannot be used, in the order of [`Reason::ALL`].
    pub rejected: [u64; Reason::ALL.len()],
    /// Records that a cap refused, in the order of [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
    /// Records whose probabilities were divided by their sum; also counted as observed, or as
    /// pending and then as what became of them.
    pub renormalised: u64,
    /// Observed predictions whose outcome was implied at maturity; also counted as observed.
    pub implied: u64,
    /// Observed records of excess segments, in segment `other`; also counted as observed.
    pub other: u64,
    /// Vector views without a free cell for an observed record; the record is counted as observed.
    pub no_cell: u64,
    /// Records whose time was set aside, because it was far ahead of their partition's; also
    /// counted as what became of them.
    pub ahead: u64,
    /// Ids that were forgotten before their time because there were too many: a repeat of their
    /// records would be counted.
    pub ids_evicted: u64,
}

impl SourceCounters {
    /// Counts one record by its disposition.
    #[inline]
    pub fn count(&mut self, disposition: Disposition) {
        self.records += 1;
        match disposition {
            Disposition::Observed => self.observed += 1,
            other => self.count_other(other),
        }
    }

    #[cold]
    fn count_other(&mut self, disposition: Disposition) {
        *self.of(disposition) += 1;
    }

    /// Changes the disposition of a record that was pending or waiting.
    pub fn end(&mut self, before: Disposition, after: Disposition) {
        *self.of(before) -= 1;
        *self.of(after) += 1;
    }

    #[inline]
    fn of(&mut self, disposition: Disposition) -> &mut u64 {
        match disposition {
            Disposition::Observed => &mut self.observed,
            Disposition::Pending => &mut self.pending,
            Disposition::Matched => &mut self.matched,
            Disposition::Waiting => &mut self.waiting,
            Disposition::Duplicate => &mut self.duplicate,
            Disposition::Conflict => &mut self.conflict,
            Disposition::Revised => &mut self.revised,
            Disposition::Late => &mut self.late,
            Disposition::Replayed => &mut self.replayed,
            Disposition::Rejected(reason) => &mut self.rejected[reason as usize],
            Disposition::Refused(refusal) => &mut self.refused[refusal as usize],
        }
    }

    /// The final dispositions with their names, in a fixed order, without rejected and refused.
    pub fn states(&self) -> [(&'static str, u64); 9] {
        [
            ("observed", self.observed),
            ("expired", self.expired),
            ("matched", self.matched),
            ("orphaned", self.orphaned),
            ("duplicate", self.duplicate),
            ("conflict", self.conflict),
            ("revised", self.revised),
            ("late", self.late),
            ("replayed", self.replayed),
        ]
    }

    /// Records rejected for `reason`.
    pub fn rejected(&self, reason: Reason) -> u64 {
        self.rejected[reason as usize]
    }

    /// Records refused by `refusal`.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize]
    }

    /// Sum of all dispositions; equal to `records`.
    pub fn disposed(&self) -> u64 {
        let states: u64 = self.states().iter().map(|(_, n)| n).sum();
        let rejected: u64 = self.rejected.iter().sum();
        let refused: u64 = self.refused.iter().sum();
        states + self.pending + self.waiting + rejected + refused
    }

    /// Records without a final disposition yet.
    pub fn open(&self) -> u64 {
        self.pending + self.waiting
    }

    /// What was counted since `before`; pending and waiting records stay as they are.
    pub fn since(&self, before: &SourceCounters) -> SourceCounters {
        let mut since = self.clone();
        since.each_total(before, |a, b| *a -= b);
        since
    }

    /// Adds all counts of `o`.
    pub fn add(&mut self, o: &SourceCounters) {
        self.each_total(o, |a, b| *a += b);
        self.pending += o.pending;
        self.waiting += o.waiting;
    }

    /// Combines every count that only grows with that of `o`.
    fn each_total(&mut self, o: &SourceCounters, combine: impl Fn(&mut u64, u64)) {
        combine(&mut self.records, o.records);
        combine(&mut self.observed, o.observed);
        combine(&mut self.expired, o.expired);
        combine(&mut self.matched, o.matched);
        combine(&mut self.orphaned, o.orphaned);
        combine(&mut self.duplicate, o.duplicate);
        combine(&mut self.conflict, o.conflict);
        combine(&mut self.revised, o.revised);
        combine(&mut self.late, o.late);
        combine(&mut self.replayed, o.replayed);
        combine(&mut self.renormalised, o.renormalised);
        combine(&mut self.implied, o.implied);
        combine(&mut self.other, o.other);
        combine(&mut self.no_cell, o.no_cell);
        combine(&mut self.ahead, o.ahead);
        combine(&mut self.ids_evicted, o.ids_evicted);
        let rejected = self.rejected.iter_mut().zip(o.rejected);
        let refused = self.refused.iter_mut().zip(o.refused);
        rejected.chain(refused).for_each(|(a, b)| combine(a, b));
    }
}

/// Counts of all sources, and of what happened to streams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    sources: Vec<SourceCounters>,
    /// Streams that were evicted because they were unused.
    pub streams_expired: u64,
    /// Streams of a snapshot that the configuration no longer has.
    pub streams_dropped: u64,
    /// Windows evaluated.
    pub evaluations: u64,
}

impl Counters {
    /// The counts of `source`, created on first use.
    #[inline]
    pub fn source_mut(&mut self, source: u16) -> &mut SourceCounters {
        let index = usize::from(source);
        if index >= self.sources.len() {
            self.sources.resize_with(index + 1, SourceCounters::default);
        }
        &mut self.sources[index]
    }

    /// Counts by source; sources that were never read have zeros or are missing.
    pub fn sources(&self) -> impl Iterator<Item = (u16, &SourceCounters)> {
        (0..).zip(self.sources.iter())
    }

    /// The counts of `source`.
    pub fn source(&self, source: u16) -> SourceCounters {
        let counts = self.sources.get(usize::from(source));
        counts.cloned().unwrap_or_default()
    }

    /// Moves the counts of each source to its new number. See `Partitions::renumber`.
    pub fn renumber(&mut self, number: impl Fn(u16) -> u16) {
        let before = std::mem::take(&mut self.sources);
        for (source, counts) in (0..).zip(before) {
            self.source_mut(number(source)).add(&counts);
        }
    }

    /// The sum over sources.
    pub fn total(&self) -> SourceCounters {
        let mut total = SourceCounters::default();
        self.sources.iter().for_each(|s| total.add(s));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_the_order_of_the_discriminants() {
        assert!((0..).zip(Reason::ALL).all(|(i, r)| r as usize == i));
        assert!((0..).zip(Refusal::ALL).all(|(i, r)| r as usize == i));
    }

    #[test]
    fn every_record_is_counted_once() {
        let mut counters = Counters::default();
        let ends = [
            Disposition::Observed,
            Disposition::Late,
            Disposition::Rejected(Reason::UnknownModel),
            Disposition::Refused(Refusal::Sums),
            Disposition::Replayed,
            Disposition::Pending,
            Disposition::Matched,
            Disposition::Waiting,
            Disposition::Duplicate,
            Disposition::Conflict,
            Disposition::Revised,
        ];
        for (source, end) in (0..).zip(ends) {
            counters.source_mut(source).count(end);
        }
        let total = counters.total();
        assert_eq!((total.records, total.disposed()), (11, 11));
        assert_eq!(total.rejected(Reason::UnknownModel), 1);
        let mut one = SourceCounters::default();
        one.count(Disposition::Pending);
        one.end(Disposition::Pending, Disposition::Observed);
        assert_eq!((one.pending, one.observed, one.disposed()), (0, 1, 1));
    }
}
