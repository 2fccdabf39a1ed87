//! What the owner of a stream hands to its next owner about the stream's alert.
//!
//! After giving up a stream, a process neither resolves nor repeats its alert; the next owner knows
//! that people were notified, and sends the end. If several processes judge a stream, each judges
//! its own partitions and sends its own notifications.

use std::collections::BTreeMap;
use std::time::Duration;

use super::AlertDispatcher;
use crate::app::cluster::topology::Topology;
use crate::judge::StreamId;
use crate::notify::AlertHandover;

/// Least time between two accounts of what waits for sinks, if each account saves everything that
/// may move.
const SAVE_AGAIN: Duration = Duration::from_secs(1);

/// Least time between two accounts of what waits for sinks, if each account is a few records.
const RECORD_AGAIN: Duration = Duration::from_millis(100);

impl AlertDispatcher {
    /// If streams may move, hands what people were notified of to the engine, under the first
    /// stream of each alert. Returns whether it must be saved at once.
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
        // An alert that fires may end before the next comparison.
        for (stream, alert) in alerts {
            let notified = |fingerprint: &str| self.notifier.firing_since(fingerprint);
            self.groups.step(&stream, &alert, notified);
        }
        migrations.left
    }
}
