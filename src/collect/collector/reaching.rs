//! The collector's side of event time: how far a record brings its partition.

use super::Collector;
use crate::collect::event::{Disposition, Refusal};

impl Collector {
    /// Advances the partition of a record that is in no sum to this time.
    pub(super) fn reach_uncounted(&mut self, source: u16, time_ms: i64, arrival_ms: Option<i64>) {
        let ahead_max_ms = self.caps.future_max_ms;
        let partitions = &mut self.partitions;
        if partitions.observe_uncounted(time_ms, arrival_ms, ahead_max_ms) {
            self.counters.source_mut(source).ahead += 1;
        }
    }

    /// A record that is in no sum advances its partition too: a refused record by its event time,
    /// like an event; others by their arrival.
    #[cold]
    pub(super) fn advance_uncounted(
        &mut self,
        source: u16,
        end: Disposition,
        time_ms: i64,
        arrival_ms: Option<i64>,
    ) {
        match (end, arrival_ms) {
            // The join has already used its time.
            (Disposition::Refused(Refusal::Pending), _) => {}
            (Disposition::Refused(_), _) => self.reach(source, time_ms, arrival_ms),
            (
                Disposition::Rejected(_)
                | Disposition::Duplicate
                | Disposition::Conflict
                | Disposition::Late,
                Some(arrival_ms),
            ) => self.partitions.hear(arrival_ms),
            _ => {}
        }
    }

    /// Advances the partition of a joined record, which ended as `end`, to this time.
    pub(super) fn reach_joined(
        &mut self,
        source: u16,
        end: Disposition,
        time_ms: i64,
        arrival_ms: Option<i64>,
    ) {
        match end {
            Disposition::Pending
            | Disposition::Matched
            | Disposition::Waiting
            | Disposition::Revised => self.reach(source, time_ms, arrival_ms),
            _ => self.reach_uncounted(source, time_ms, arrival_ms),
        }
    }
}
