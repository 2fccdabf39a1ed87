//! Where every record went; of a record with several events, where each of these went, for they are
//! counted as records. For each source, records read equal the sum of the dispositions; this is
//! true after every call, because one function counts both.

use super::event::{Disposition, Reason, Refusal};
use serde::{Deserialize, Serialize};

/// Counts of one source. `pending` and `waiting` go down again, when what they count ends; the others
/// only grow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCounters {
    /// Records read.
    pub records: u64,
    /// Records added to the sums.
    pub observed: u64,
    /// Predictions that are not mature.
    pub pending: u64,
    /// Mature predictions that no outcome came for and that are in no sum.
    pub expired: u64,
    /// Outcomes whose prediction is or was pending.
    pub matched: u64,
    /// Outcomes whose prediction has not come.
    pub waiting: u64,
    /// Outcomes whose prediction did not come before it would have been mature.
    pub orphaned: u64,
    /// Predictions and outcomes that were there already.
    pub duplicate: u64,
    /// Predictions of the id of another, with other scores.
    pub conflict: u64,
    /// Outcomes that corrected the sums of a mature prediction.
    pub revised: u64,
    /// Records for sealed panes.
    pub late: u64,
    /// Records read again.
    pub replayed: u64,
    /// Records that cannot be used, in the order of [`Reason::ALL`].
    pub rejected: [u64; Reason::ALL.len()],
    /// Records that a cap refused, in the order of [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
    /// Observed records whose probabilities were divided by their sum; these are observed too.
    pub renormalised: u64,
    /// Observed predictions whose outcome was implied when they were mature; these are observed too.
    pub implied: u64,
    /// Observed records of segments that are too many, in segment `other`; these are observed too.
    pub other: u64,
    /// Vector views of observed records that had no cell for them; these records are observed too.
    pub no_cell: u64,
}

impl SourceCounters {
    /// Counts one record and how it ended.
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

    /// A record that was pending or waiting ends.
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

    /// Every count that only grows with the name of its state, in a fixed order; rejected and refused are
    /// left out.
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

    /// Records that have no end yet.
    pub fn open(&self) -> u64 {
        self.pending + self.waiting
    }

    /// What was counted since `before`; what is open now stays as it is.
    pub fn since(&self, before: &SourceCounters) -> SourceCounters {
        let mut s = self.clone();
        let pairs = [
            (&mut s.records, before.records),
            (&mut s.observed, before.observed),
            (&mut s.expired, before.expired),
            (&mut s.matched, before.matched),
            (&mut s.orphaned, before.orphaned),
            (&mut s.duplicate, before.duplicate),
            (&mut s.conflict, before.conflict),
            (&mut s.revised, before.revised),
            (&mut s.late, before.late),
            (&mut s.replayed, before.replayed),
            (&mut s.renormalised, before.renormalised),
            (&mut s.implied, before.implied),
            (&mut s.other, before.other),
            (&mut s.no_cell, before.no_cell),
        ];
        pairs.into_iter().for_each(|(a, b)| *a -= b);
        for (a, b) in s.rejected.iter_mut().zip(before.rejected) {
            *a -= b;
        }
        for (a, b) in s.refused.iter_mut().zip(before.refused) {
            *a -= b;
        }
        s
    }

    /// Adds all counts of `o`.
    pub fn add(&mut self, o: &SourceCounters) {
        let pairs = [
            (&mut self.records, o.records),
            (&mut self.observed, o.observed),
            (&mut self.pending, o.pending),
            (&mut self.expired, o.expired),
            (&mut self.matched, o.matched),
            (&mut self.waiting, o.waiting),
            (&mut self.orphaned, o.orphaned),
            (&mut self.duplicate, o.duplicate),
            (&mut self.conflict, o.conflict),
            (&mut self.revised, o.revised),
            (&mut self.late, o.late),
            (&mut self.replayed, o.replayed),
            (&mut self.renormalised, o.renormalised),
            (&mut self.implied, o.implied),
            (&mut self.other, o.other),
            (&mut self.no_cell, o.no_cell),
        ];
        pairs.into_iter().for_each(|(a, b)| *a += b);
        for (a, b) in self.rejected.iter_mut().zip(o.rejected) {
            *a += b;
        }
        for (a, b) in self.refused.iter_mut().zip(o.refused) {
            *a += b;
        }
    }
}

/// Counts of all sources, and of what happened to streams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    sources: Vec<SourceCounters>,
    /// Streams that went unused and were let go.
    pub streams_expired: u64,
    /// Streams of a snapshot that the configuration no longer fits.
    pub streams_dropped: u64,
    /// Windows evaluated.
    pub evaluations: u64,
}

impl Counters {
    /// The counts of `source`, made on first use.
    #[inline]
    pub fn source_mut(&mut self, source: u16) -> &mut SourceCounters {
        let index = usize::from(source);
        if index >= self.sources.len() {
            self.sources.resize_with(index + 1, SourceCounters::default);
        }
        &mut self.sources[index]
    }

    /// Counts by source; sources that were never read have zeros or are not there.
    pub fn sources(&self) -> impl Iterator<Item = (u16, &SourceCounters)> {
        (0..).zip(self.sources.iter())
    }

    /// The counts of `source`.
    pub fn source(&self, source: u16) -> SourceCounters {
        let counts = self.sources.get(usize::from(source));
        counts.cloned().unwrap_or_default()
    }

    /// Moves the counts of each source to the number that `number` says. See `Partitions::renumber`.
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
    fn the_lists_follow_the_discriminants() {
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
