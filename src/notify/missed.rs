//! Firing notifications that sinks did not get, and when these are offered again.

use serde::{Deserialize, Serialize};

/// Shortest time between two offers of an alert to a receiver that refuses it permanently, in ms.
/// Another offer helps only after somebody has corrected a template or the receiver.
pub const REFUSED_AGAIN_MS: i64 = 3_600_000;

/// Why a sink did not get the newest notification that an alert fires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// When its receiver refused it permanently; `None` if the sink had no room for it or was
    /// removed.
    pub refused_ms: Option<i64>,
}

impl Missed {
    /// Whether the alert can be offered to the sink again. A clock that steps back does not delay
    /// this.
    pub fn is_due(self, now_ms: i64) -> bool {
        let again = REFUSED_AGAIN_MS.unsigned_abs();
        self.refused_ms
            .is_none_or(|at_ms| now_ms.abs_diff(at_ms) >= again)
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
}
