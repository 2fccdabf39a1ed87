//! Statistics of the records of a replay, beside the counters of the engine.

use crate::decode::Rejection;
use std::collections::BTreeMap;

/// What a replay reports about its records.
#[derive(Debug, Clone, Default)]
pub struct ReplayStats {
    /// Smallest and largest event time of the predictions.
    pub times_ms: Option<(i64, i64)>,
    /// Newest event time of any record.
    pub newest_ms: Option<i64>,
    /// Number of outcomes in records of their own.
    pub outcomes: u64,
    /// The first rejected record: its place and the reason.
    pub first_rejected: Option<String>,
    /// By reason, how many records were rejected, with place and detail of the first one.
    pub reasons: BTreeMap<&'static str, (u64, String)>,
}

impl ReplayStats {
    /// Notes a prediction of this time.
    pub fn event(&mut self, ms: i64) {
        let (first, last) = self.times_ms.unwrap_or((ms, ms));
        self.times_ms = Some((first.min(ms), last.max(ms)));
        self.newest_ms = self.newest_ms.max(Some(ms));
    }

    /// Notes an outcome of this time.
    pub fn outcome(&mut self, ms: i64) {
        self.outcomes += 1;
        self.newest_ms = self.newest_ms.max(Some(ms));
    }

    /// Notes a rejected record. `place` is called for the first one of each reason only.
    pub fn rejected(&mut self, rejection: &Rejection, place: impl FnOnce() -> String) {
        let (name, detail) = (rejection.reason.as_str(), &rejection.detail);
        if let Some((records, _)) = self.reasons.get_mut(name) {
            *records += 1;
            return;
        }
        let place = place();
        let comma = if detail.is_empty() { "" } else { ", " };
        (self.first_rejected).get_or_insert_with(|| format!("{place}: {name}{comma}{detail}"));
        self.reasons.insert(name, (1, format!("{place}: {detail}")));
    }

    /// The merged statistics; the first rejected record is that of `self`, if it has one.
    pub fn merged(self, other: ReplayStats) -> ReplayStats {
        let times = self.times_ms.into_iter().chain(other.times_ms);
        let mut reasons = self.reasons;
        for (name, (records, first)) in other.reasons {
            reasons.entry(name).or_insert((0, first)).0 += records;
        }
        ReplayStats {
            times_ms: times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
            newest_ms: self.newest_ms.max(other.newest_ms),
            outcomes: self.outcomes + other.outcomes,
            first_rejected: self.first_rejected.or(other.first_rejected),
            reasons,
        }
    }
}
