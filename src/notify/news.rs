//! What the journal says of alerts since the engine's thread last asked. So that thread knows
//! which sinks still need what, and never waits for the disk.

use super::missed::Missed;
use super::notification::Notification;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Notifications that wait, oldest first, each with the sinks that still need it.
pub type Waiting = Vec<(Notification, Vec<String>)>;

/// What the journal says of one alert.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AlertNews {
    /// Key of its last notification.
    pub last: Option<String>,
    /// Which sinks missed that it fires.
    pub missed: BTreeMap<String, Missed>,
    /// What of it waits for sinks.
    pub waiting: Waiting,
}

/// The alerts of which the journal says something new, by fingerprint.
#[derive(Debug, Default)]
pub struct News(Mutex<BTreeMap<String, AlertNews>>);

impl News {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, AlertNews>> {
        // The map is whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what the journal says of this alert now.
    pub fn tell(&self, fingerprint: String, news: AlertNews) {
        self.lock().insert(fingerprint, news);
    }

    /// What was told since the last call, the newest of each alert.
    pub fn take(&self) -> BTreeMap<String, AlertNews> {
        std::mem::take(&mut *self.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_alert_is_told_once() {
        let news = News::default();
        let of = |last: &str| AlertNews {
            last: Some(last.to_owned()),
            ..AlertNews::default()
        };
        for (alert, last) in [("a", "1"), ("b", "1"), ("a", "2")] {
            news.tell(alert.to_owned(), of(last));
        }
        let expected = [("a", "2"), ("b", "1")].map(|(a, last)| (a.to_owned(), of(last)));
        assert_eq!(news.take(), BTreeMap::from(expected));
        assert!(news.take().is_empty());
    }
}
