//! What a replay notes of the records that pass, beside what the engine counts.

use std::collections::BTreeMap;

use crate::collect::{Counters, Reason};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Witness {
    /// Least and greatest event time of the predictions.
    pub times_ms: Option<(i64, i64)>,
    /// Newest event time of any record.
    pub newest_ms: Option<i64>,
    /// Outcomes that came apart.
    pub outcomes: u64,
    /// The first record that was rejected: where it lies and why.
    pub first_rejected: Option<String>,
}

impl Witness {
    /// A prediction of this time.
    pub fn event(&mut self, ms: i64) {
        let (first, last) = self.times_ms.unwrap_or((ms, ms));
        self.times_ms = Some((first.min(ms), last.max(ms)));
        self.newest_ms = self.newest_ms.max(Some(ms));
    }

    /// An outcome of this time.
    pub fn outcome(&mut self, ms: i64) {
        self.outcomes += 1;
        self.newest_ms = self.newest_ms.max(Some(ms));
    }

    /// Both together; of two first rejected records the one of `self`.
    pub fn with(self, other: Witness) -> Witness {
        let times = self.times_ms.into_iter().chain(other.times_ms);
        Witness {
            times_ms: times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
            newest_ms: self.newest_ms.max(other.newest_ms),
            outcomes: self.outcomes + other.outcomes,
            first_rejected: self.first_rejected.or(other.first_rejected),
        }
    }

    /// A record that was rejected, at a place that is asked for if it is the first.
    pub fn rejected(&mut self, reason: Reason, detail: &str, place: impl FnOnce() -> String) {
        if self.first_rejected.is_none() {
            let comma = if detail.is_empty() { "" } else { ", " };
            let (place, name) = (place(), reason.as_str());
            self.first_rejected = Some(format!("{place}: {name}{comma}{detail}"));
        }
    }
}

/// What went through a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records read.
    pub records: u64,
    /// Records that count in a window.
    pub observed: u64,
    /// All other records, by what became of them.
    pub others: BTreeMap<&'static str, u64>,
    /// Least and greatest event time of the records that could be read.
    pub times_ms: Option<(i64, i64)>,
    /// The first record that was rejected: where it lies and why.
    pub first_rejected: Option<String>,
    /// Of topics, the offsets that were read of each partition: the first, and the one after the last.
    pub offsets: BTreeMap<String, (i64, i64)>,
    /// What retention has deleted of the range.
    pub gaps: Vec<String>,
}

impl Tally {
    /// What the engine counted and the witness saw.
    pub fn of(counters: &Counters, witness: Witness) -> Tally {
        let total = counters.total();
        let mut others = BTreeMap::new();
        let mut count = |name, n| {
            if n > 0 {
                *others.entry(name).or_default() += n;
            }
        };
        for (name, n) in total.states() {
            if name != "observed" {
                count(name, n);
            }
        }
        count("pending", total.pending);
        count("waiting", total.waiting);
        for reason in Reason::ALL {
            count(reason.as_str(), total.rejected(reason));
        }
        count("refused", total.refused.iter().sum());
        Tally {
            records: total.records,
            observed: total.observed,
            others,
            times_ms: witness.times_ms,
            first_rejected: witness.first_rejected,
            ..Tally::default()
        }
    }
}
