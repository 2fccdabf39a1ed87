//! Where every record went. For each source, records read equal the sum of the dispositions; this is
//! true after every call, because one function counts both.

use super::event::{Disposition, Reason, Refusal};
use serde::{Deserialize, Serialize};

/// Counts of one source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCounters {
    /// Records read.
    pub records: u64,
    /// Records added to the sums.
    pub observed: u64,
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
}

impl SourceCounters {
    /// Counts one record and how it ended.
    #[inline]
    pub fn count(&mut self, disposition: Disposition) {
        self.records += 1;
        match disposition {
            Disposition::Observed => self.observed += 1,
            Disposition::Late => self.late += 1,
            Disposition::Replayed => self.replayed += 1,
            Disposition::Rejected(reason) => self.rejected[reason as usize] += 1,
            Disposition::Refused(refusal) => self.refused[refusal as usize] += 1,
        }
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
        let rejected: u64 = self.rejected.iter().sum();
        let refused: u64 = self.refused.iter().sum();
        self.observed + self.late + self.replayed + rejected + refused
    }

    fn add(&mut self, o: &SourceCounters) {
        self.records += o.records;
        self.observed += o.observed;
        self.late += o.late;
        self.replayed += o.replayed;
        self.renormalised += o.renormalised;
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
        ];
        for (source, end) in (0..).zip(ends) {
            counters.source_mut(source).count(end);
        }
        let total = counters.total();
        assert_eq!((total.records, total.disposed()), (5, 5));
        assert_eq!(total.rejected(Reason::UnknownModel), 1);
    }
}
