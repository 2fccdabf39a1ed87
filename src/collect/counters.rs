//! How many records ended in each way.
//!
//! Always: the records of a source equal the sum of its dispositions, because one function counts
//! both.

use super::event::{Disposition, Reason, Refusal};
use crate::stats::stored::checked;
use serde::{Deserialize, Serialize};

/// Counts of one source. `pending` and `waiting` decrease when their records end; the others only
/// grow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCounters {
    /// Records read.
    #[serde(deserialize_with = "checked")]
    pub records: u64,
    /// Records added to the sums.
    #[serde(deserialize_with = "checked")]
    pub observed: u64,
    /// Predictions that are not mature.
    #[serde(deserialize_with = "checked")]
    pub pending: u64,
    /// Mature predictions without outcome that are in no sum.
    #[serde(deserialize_with = "checked")]
    pub expired: u64,
    /// Outcomes whose prediction is or was pending.
    #[serde(deserialize_with = "checked")]
    pub matched: u64,
    /// Outcomes whose prediction has not come.
    #[serde(deserialize_with = "checked")]
    pub waiting: u64,
    /// Outcomes whose prediction did not come in time.
    #[serde(deserialize_with = "checked")]
    pub orphaned: u64,
    /// Predictions and outcomes that had come before.
    #[serde(deserialize_with = "checked")]
    pub duplicate: u64,
    /// Predictions with the id of another and other scores.
    #[serde(deserialize_with = "checked")]
    pub conflict: u64,
    /// Outcomes that corrected the sums of a mature prediction.
    #[serde(deserialize_with = "checked")]
    pub revised: u64,
    /// Records for sealed panes.
    #[serde(deserialize_with = "checked")]
    pub late: u64,
    /// Records that were read again.
    #[serde(deserialize_with = "checked")]
    pub replayed: u64,
    /// Records that cannot be used, in the order of [`Reason::ALL`].
    #[serde(deserialize_with = "checked")]
    pub rejected: [u64; Reason::ALL.len()],
    /// Records that a cap refused, in the order of [`Refusal::ALL`].
    #[serde(deserialize_with = "checked")]
    pub refused: [u64; Refusal::ALL.len()],
    /// Records whose probabilities were divided by their sum; also counted as observed, or as
    /// pending and then as they ended.
    #[serde(deserialize_with = "checked")]
    pub renormalised: u64,
    /// Observed predictions whose outcome was implied at maturity; also counted as observed.
    #[serde(deserialize_with = "checked")]
    pub implied: u64,
    /// Observed records of excess segments, in segment `other`; also counted as observed.
    #[serde(deserialize_with = "checked")]
    pub other: u64,
    /// Vector views without a free cell for an observed record; the record is counted as observed.
    #[serde(deserialize_with = "checked")]
    pub no_cell: u64,
    /// Records whose time was set aside, because it was far ahead of their partition's; also
    /// counted as they ended.
    #[serde(deserialize_with = "checked")]
    pub ahead: u64,
    /// Ids that were forgotten before their time because there were too many: a repeat of their
    /// records would be counted.
    #[serde(deserialize_with = "checked")]
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
    #[serde(deserialize_with = "checked")]
    pub streams_expired: u64,
    /// Streams of a snapshot that the configuration no longer has.
    #[serde(deserialize_with = "checked")]
    pub streams_dropped: u64,
    /// Windows evaluated.
    #[serde(deserialize_with = "checked")]
    pub evaluations: u64,
}

impl Counters {
    /// The counts of `source`, created on first use.
    #[inline]
    pub fn source_mut(&mut self, source: u16) -> &mut SourceCounters {
        let index = usize::from(source);
        if index >= self.sources.len() {
            return self.first_of(index);
        }
        &mut self.sources[index]
    }

    #[cold]
    fn first_of(&mut self, index: usize) -> &mut SourceCounters {
        self.sources.resize_with(index + 1, SourceCounters::default);
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
