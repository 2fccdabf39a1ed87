//! The collector's side of ids: a record that carries its outcome is counted once.

use super::Collector;
use crate::collect::event::{Disposition, Event, PartitionId};
use crate::collect::join::{JoinState, JournalError};
use crate::collect::seen_ids::{Repeat, SeenId};
use std::borrow::Cow;

impl Collector {
    /// Takes a record of a source whose ids are checked.
    #[inline(never)]
    pub(super) fn observe_once(
        &mut self,
        at: PartitionId,
        offset: i64,
        event: &Event<'_>,
    ) -> Disposition {
        let origin = at.at(offset);
        if event.id.is_empty() {
            return self.observe_alone(origin.source, event);
        }
        let id = SeenId::of(event, self.rows.of(origin));
        if let Some(repeat) = self.deduplication.find(origin, &id)
            && !self.is_late(event)
        {
            return match repeat {
                Repeat::Duplicate => Disposition::Duplicate,
                Repeat::Conflict => Disposition::Conflict,
            };
        }
        let end = self.observe_alone(origin.source, event);
        if end == Disposition::Observed {
            let sealed_until_ms = self.least_sealed_until_ms();
            let evicted = self.deduplication.insert(origin, id, sealed_until_ms);
            self.counters.source_mut(origin.source).ids_evicted += evicted;
        }
        end
    }

    /// Whether the pane of an event is sealed. An event that is late is counted as such, whether
    /// its id is still remembered or not.
    fn is_late(&self, event: &Event<'_>) -> bool {
        let Some(model) = self.model_of(event.model) else {
            return false;
        };
        self.models[model].start_of(event.time_ms) < self.sealed_until_ms[model]
    }

    /// Event time before which every event is late, whatever its model.
    pub(super) fn least_sealed_until_ms(&self) -> i64 {
        let all = self.sealed_until_ms.iter().copied();
        all.min().unwrap_or(i64::MIN)
    }

    /// How many collectors share the ids that the plan allows.
    pub fn share_ids(&mut self, by: usize) {
        self.deduplication.share(by);
    }

    /// Gives no new journal a number that a snapshot uses.
    pub fn reserve_journals(&mut self, states: &[JoinState]) {
        self.deduplication.reserve_journals(states);
    }

    /// Restores the ids of one partition; returns `false` if the plan no longer checks them. Sealed
    /// times must be restored first.
    pub fn restore_ids<'s>(
        &mut self,
        state: &JoinState,
        segment: impl Fn(usize) -> Result<Cow<'s, [u8]>, JournalError>,
    ) -> Result<bool, JournalError> {
        let sealed_until_ms = self.least_sealed_until_ms();
        self.deduplication.restore(state, sealed_until_ms, segment)
    }
}
