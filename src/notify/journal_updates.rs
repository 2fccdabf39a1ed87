//! News of the journal about alerts, for the engine's thread. So that thread knows which sinks
//! still need what, and never waits for the disk.

use super::missed::Missed;
use super::notification::Notification;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Waiting notifications, oldest first, each with the sinks that still need it.
pub type Waiting = Vec<(Notification, Vec<String>)>;

/// What the journal says about one alert.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AlertUpdate {
    /// Key of its last notification.
    pub last: Option<String>,
    /// The sinks that missed its newest firing notification.
    pub missed: BTreeMap<String, Missed>,
    /// Its notifications that wait for sinks.
    pub waiting: Waiting,
}

/// The alerts with news in the journal, by fingerprint.
#[derive(Debug, Default)]
pub struct JournalUpdates(Mutex<BTreeMap<String, AlertUpdate>>);

impl JournalUpdates {
    /// Adds what the journal says of this alert now.
    pub fn push(&self, fingerprint: String, update: AlertUpdate) {
        self.0.lock().insert(fingerprint, update);
    }

    /// Returns the news since the last call: the newest of each alert.
    pub fn drain(&self) -> BTreeMap<String, AlertUpdate> {
        std::mem::take(&mut *self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_alert_is_drained_once() {
        let updates = JournalUpdates::default();
        let of = |last: &str| AlertUpdate {
            last: Some(last.to_owned()),
            ..AlertUpdate::default()
        };
        for (alert, last) in [("a", "1"), ("b", "1"), ("a", "2")] {
            updates.push(alert.to_owned(), of(last));
        }
        let expected = [("a", "2"), ("b", "1")].map(|(a, last)| (a.to_owned(), of(last)));
        assert_eq!(updates.drain(), BTreeMap::from(expected));
        assert!(updates.drain().is_empty());
    }
}
