//! What the owner of a stream hands to its next owner about the stream's alert.
//!
//! The process that gives up a stream neither resolves nor repeats its alert from then on; the next
//! owner knows that people were notified and sends the end. A stream whose partitions lie in
//! several processes that each judge is judged, and notified, by each process over its own
//! partitions.

use std::collections::BTreeMap;
use std::time::Duration;

use super::AlertDispatcher;
use crate::app::cluster::topology::Topology;
use crate::judge::StreamId;
use crate::notify::AlertHandover;

/// Least time between two accounts of what waits for sinks, where each is a save of all that may
/// move.
const SAVE_AGAIN: Duration = Duration::from_secs(1);

/// The same where each is a few records.
const RECORD_AGAIN: Duration = Duration::from_millis(100);

impl AlertDispatcher {
    /// Hands what people were notified of to the engine, where streams may move, under the first
    /// stream of each alert. Returns whether that is to be saved at once.
    pub fn carry(&mut self, engine: &mut Topology) -> bool {
        let again = match engine.divides_models() {
            true => SAVE_AGAIN,
            false => RECORD_AGAIN,
        };
        self.carry_after(again, engine)
    }

    pub(super) fn carry_after(&mut self, again: Duration, engine: &mut Topology) -> bool {
        if !engine.may_move() {
            return false;
        }
        let Some(notified) = self.notifier.transfers(again) else {
            return false;
        };
        let by = self.groups.by();
        let streams = engine.reports().map(|r| &r.id);
        let named = streams.map(|id| (id, by.group_of(id).fingerprint()));
        let notified = notified.under(named);
        engine.carry(notified)
    }

    /// Passes moved streams to the notifier; returns the streams that left.
    pub(super) fn follow_migrations(&mut self, engine: &mut Topology) -> Vec<StreamId> {
        let migrations = engine.take_migrations();
        let by = self.groups.by();
        for id in &migrations.left {
            self.groups.remove(id);
            self.notifier.release(&by.group_of(id).fingerprint());
        }
        let mut came: BTreeMap<String, AlertHandover> = BTreeMap::new();
        let alerts = migrations.came.iter();
        let alerts = alerts.map(|memory| (memory.stream.clone(), memory.alert));
        let alerts: Vec<_> = alerts.collect();
        for memory in migrations.came {
            let fingerprint = by.group_of(&memory.stream).fingerprint();
            let handover = came.entry(fingerprint.clone()).or_insert(AlertHandover {
                fingerprint,
                transferred: None,
                ended_ms: None,
            });
            handover.bring(memory.notified);
            handover.ended_ms = handover.ended_ms.max(memory.alert.ended_ms);
        }
        came.values()
            .for_each(|handover| self.notifier.acquire(handover));
        // What fires may end before the next comparison.
        for (stream, alert) in alerts {
            let notified = |fingerprint: &str| self.notifier.firing_since(fingerprint);
            self.groups.step(&stream, &alert, notified);
        }
        migrations.left
    }
}
