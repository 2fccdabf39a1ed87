//! What the thread "notifications" does with alerts that move between processes.

use super::Dispatcher;
use crate::notify::journal::{Entry, State, TransferredAlert};
use crate::notify::moved::{Keeps, Move};
use crate::notify::notification::{Notification, Status};
use parking_lot::MutexGuard;
use std::collections::BTreeSet;

impl Dispatcher {
    pub(super) fn follow(&self, moved: Move) {
        match moved {
            Move::Hold { alert } => {
                self.withdraw(&alert);
                self.held().insert(alert);
            }
            Move::Resume { alert, keeps } => self.resume(&alert, &keeps),
            Move::TakeOver(alert) => self.take_over(*alert),
            Move::Close { alert } => {
                self.forget(&alert);
                let mut journal = self.journal.lock();
                let entry = Entry::Closed { fingerprint: alert };
                let _ = journal.append(&entry, true);
                self.publish(&journal);
            }
        }
    }

    /// Notifications that a sink still has to send, without those of held alerts.
    pub(super) fn undelivered(&self, state: &State, sink: &str) -> Vec<Notification> {
        let held = self.held();
        let all = state.undelivered.iter();
        let ours = all
            .filter(|(n, sinks)| sinks.iter().any(|s| s == sink) && !held.contains(&n.fingerprint));
        ours.map(|(notification, _)| notification.clone()).collect()
    }

    fn resume(&self, alert: &str, keeps: &Keeps) {
        if !self.held().remove(alert) {
            return;
        }
        let waiting = {
            let mut journal = self.journal.lock();
            let all = journal.state().waiting_of(alert);
            journal.withdraw(alert, |n, sink| keeps.keeps(&all, n, sink))
        };
        for (notification, sinks) in waiting {
            self.push(&notification, &sinks);
        }
    }

    fn take_over(&self, mut alert: TransferredAlert) {
        self.forget(&alert.notification.fingerprint);
        let mut waiting = alert.to_send(&self.sinks());
        let newest = waiting.pop_if(|(n, _)| n.key == alert.notification.key);
        for (notification, sinks) in waiting {
            self.queue(notification, sinks);
        }
        let entry = match alert.notification.status {
            Status::Firing => {
                if let Some((_, sinks)) = &newest {
                    alert.missed.retain(|sink, _| !sinks.contains(sink));
                }
                alert.earlier = None;
                Entry::Acquired(Box::new(alert))
            }
            Status::Resolved => Entry::Closed {
                fingerprint: alert.notification.fingerprint,
            },
        };
        {
            let mut journal = self.journal.lock();
            let _ = journal.append(&entry, true);
            self.publish(&journal);
        }
        if let Some((notification, sinks)) = newest {
            self.queue(notification, sinks);
        }
    }

    /// Whether nothing of the alert is sent, because another process may own it.
    pub(super) fn is_held(&self, alert: &str) -> bool {
        self.held().contains(alert)
    }

    /// Drops the waiting notifications of an alert, because another process must send them.
    pub(super) fn forget(&self, alert: &str) {
        self.held().remove(alert);
        self.withdraw(alert);
        self.journal.lock().withdraw(alert, |_, _| false);
    }

    fn withdraw(&self, alert: &str) {
        self.sinks().iter().for_each(|s| s.withdraw(alert));
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.held.lock()
    }
}
