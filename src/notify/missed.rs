//! What sinks did not get of an alert that fires, and when it is offered to them again.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shortest time between two offers of an alert to a receiver that refuses it for good, in ms. What
/// it refuses is seldom right later: after somebody has mended a template or the receiver.
pub const REFUSED_AGAIN_MS: i64 = 3_600_000;

/// Why a sink did not get the newest notification that an alert fires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// When its receiver refused it for good; `None` if the sink had no room for it, or was
    /// removed.
    pub refused_ms: Option<i64>,
}

impl Missed {
    /// Whether the alert can be offered to the sink again. A clock that steps back does not delay
    /// that.
    pub fn is_due(self, now_ms: i64) -> bool {
        let again = REFUSED_AGAIN_MS.unsigned_abs();
        self.refused_ms
            .is_none_or(|at_ms| now_ms.abs_diff(at_ms) >= again)
    }
}

/// Alert and sink, and why it did not get the newest notification.
type All = BTreeMap<(String, String), Missed>;

/// What sinks missed since somebody last asked.
#[derive(Debug, Default)]
pub struct NewlyMissed(Mutex<All>);

impl NewlyMissed {
    fn lock(&self) -> MutexGuard<'_, All> {
        // The map is whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells that this alert was missed by this sink.
    pub fn tell(&self, fingerprint: String, sink: String, missed: Missed) {
        self.lock().insert((fingerprint, sink), missed);
    }

    /// What was told since the last call: alert, sink and why.
    pub fn take(&self) -> impl Iterator<Item = (String, String, Missed)> + use<> {
        let all = std::mem::take(&mut *self.lock());
        all.into_iter()
            .map(|((alert, sink), missed)| (alert, sink, missed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_due_after_an_hour_and_what_had_no_room_at_once() {
        let refused = Missed {
            refused_ms: Some(5_000_000),
        };
        let due = |now_ms| refused.is_due(now_ms);
        let minutes = |n: i64| 5_000_000 + n * 60_000;
        assert!(!due(minutes(0)) && !due(minutes(59)) && due(minutes(60)));
        // The clock was set back.
        assert!(!due(minutes(-59)) && due(minutes(-60)));
        assert!(Missed::default().is_due(0));
    }

    #[test]
    fn what_was_missed_is_told_once() {
        let missed = NewlyMissed::default();
        for sink in ["a", "b", "a"] {
            missed.tell("alert".to_owned(), sink.to_owned(), Missed::default());
        }
        let sinks: Vec<String> = missed.take().map(|(_, sink, _)| sink).collect();
        assert_eq!(sinks, ["a", "b"]);
        assert_eq!(missed.take().count(), 0);
    }
}
