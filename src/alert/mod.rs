//! Floor 1: the life of an alert, one total function.
//!
//! Every judgement of a window is one of three conditions: bad (miscalibrated), good (calibrated) or
//! unknown (undecided). An alert fires when the condition has been bad for the hold time `pending_ms`,
//! and stops firing when it has not been bad for `keep_firing_ms`; so neither one unlucky window nor
//! one lucky one moves it.
//!
//! ```text
//!              bad                held bad                good, held
//!  inactive ─────────► pending ───────────────► firing ───────────────► resolved
//!     ▲  ▲   not bad     │                       │  ▲      bad, held        │  │
//!     │  └───────────────┘       unknown, held   │  └───────────────────────┘  │
//!     ├──────────────────────────────────────────┘        (through pending     │
//!     └────────────────────────────────────────────────    unless hold is 0) ──┘
//!                              shown for RESOLVED_MS, or unknown
//! ```
//!
//! * A firing alert that nothing can be said about any more becomes inactive, not resolved: nobody
//!   showed that the model is well again.
//! * A resolved alert that turns bad is pending again, and fires at once where the hold time is 0.
//! * Time is whatever clock the caller passes as `now_ms`; if it goes back, held times count as 0.
//!
//! The states and hold times are those of Prometheus (`rules/alerting.go`).

use serde::{Deserialize, Serialize};

/// How long a resolved alert is shown as such: Prometheus's `resolvedRetention`, long enough for a
/// scrape or a notification to be missed and repeated.
pub const RESOLVED_MS: i64 = 15 * 60 * 1000;

/// State of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// Nothing is wrong, or nothing is known.
    #[default]
    Inactive,
    /// Bad, but not yet for the hold time.
    Pending,
    /// Bad for the hold time.
    Firing,
    /// Was firing and is shown to be good again.
    Resolved,
}

impl AlertState {
    /// All states.
    pub const ALL: [AlertState; 4] = [
        AlertState::Inactive,
        AlertState::Pending,
        AlertState::Firing,
        AlertState::Resolved,
    ];

    /// Its name, as in labels and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            AlertState::Inactive => "inactive",
            AlertState::Pending => "pending",
            AlertState::Firing => "firing",
            AlertState::Resolved => "resolved",
        }
    }
}

/// What a judgement says to an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Miscalibrated.
    Bad,
    /// Calibrated.
    Good,
    /// Undecided.
    Unknown,
}

/// Hold times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holds {
    /// Bad this long before firing.
    pub pending_ms: i64,
    /// Not bad this long before firing ends.
    pub keep_firing_ms: i64,
}

/// An alert: its state and the two times that its transitions need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Alert {
    /// The state.
    pub state: AlertState,
    /// When the state began; `None` for one that was never left.
    pub since_ms: Option<i64>,
    /// When the condition was last bad.
    pub bad_ms: Option<i64>,
}

impl Alert {
    /// The alert after one more judgement. Total: every state has an answer to every condition.
    #[must_use]
    pub fn step(&self, condition: Condition, now_ms: i64, holds: &Holds) -> Alert {
        let since = self.since_ms.unwrap_or(now_ms);
        let held = now_ms.saturating_sub(since);
        let quiet = now_ms.saturating_sub(self.bad_ms.unwrap_or(since)) >= holds.keep_firing_ms;
        let start = if holds.pending_ms <= 0 {
            AlertState::Firing
        } else {
            AlertState::Pending
        };
        let state = match (self.state, condition) {
            (AlertState::Inactive | AlertState::Resolved, Condition::Bad) => start,
            (AlertState::Inactive, Condition::Good | Condition::Unknown) => AlertState::Inactive,
            (AlertState::Pending, Condition::Bad) if held >= holds.pending_ms => AlertState::Firing,
            (AlertState::Pending, Condition::Bad) => AlertState::Pending,
            (AlertState::Pending, Condition::Good | Condition::Unknown) => AlertState::Inactive,
            (AlertState::Firing, Condition::Good) if quiet => AlertState::Resolved,
            (AlertState::Firing, Condition::Unknown) if quiet => AlertState::Inactive,
            (AlertState::Firing, _) => AlertState::Firing,
            (AlertState::Resolved, Condition::Good) if held < RESOLVED_MS => AlertState::Resolved,
            (AlertState::Resolved, Condition::Good | Condition::Unknown) => AlertState::Inactive,
        };
        Alert {
            state,
            since_ms: if state == self.state {
                self.since_ms
            } else {
                Some(now_ms)
            },
            bad_ms: match condition {
                Condition::Bad => Some(now_ms),
                Condition::Good | Condition::Unknown => self.bad_ms,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AlertState::*;
    use Condition::*;

    const HOLDS: Holds = Holds {
        pending_ms: 10,
        keep_firing_ms: 20,
    };

    fn story(holds: &Holds, steps: &[(i64, Condition)]) -> Vec<AlertState> {
        let mut alert = Alert::default();
        let walk = steps.iter().map(|&(now, condition)| {
            alert = alert.step(condition, now, holds);
            alert.state
        });
        walk.collect()
    }

    #[test]
    fn an_alert_fires_after_its_hold_and_resolves_after_quiet() {
        let steps = [
            (0, Bad),
            (5, Bad),
            (10, Bad),
            (15, Good),
            (29, Good),
            (30, Good),
            (30 + RESOLVED_MS - 1, Good),
            (30 + RESOLVED_MS, Good),
        ];
        let states = [
            Pending, Pending, Firing, Firing, Firing, Resolved, Resolved, Inactive,
        ];
        assert_eq!(story(&HOLDS, &steps), states);
    }

    #[test]
    fn one_good_window_ends_pending_and_does_not_end_firing() {
        let steps = [
            (0, Bad),
            (5, Good),
            (6, Bad),
            (16, Bad),
            (20, Good),
            (25, Bad),
        ];
        let states = [Pending, Inactive, Pending, Firing, Firing, Firing];
        assert_eq!(story(&HOLDS, &steps), states);
    }

    #[test]
    fn a_firing_alert_without_data_becomes_inactive_and_never_resolved() {
        let steps = [(0, Bad), (10, Bad), (20, Unknown), (40, Unknown)];
        assert_eq!(story(&HOLDS, &steps), [Pending, Firing, Firing, Inactive]);
    }

    #[test]
    fn without_hold_times_an_alert_follows_the_condition() {
        let holds = Holds {
            pending_ms: 0,
            keep_firing_ms: 0,
        };
        let steps = [(0, Bad), (1, Good), (2, Bad), (3, Unknown)];
        assert_eq!(story(&holds, &steps), [Firing, Resolved, Firing, Inactive]);
    }

    #[test]
    fn every_state_answers_every_condition_and_the_clock_may_go_back() {
        for state in AlertState::ALL {
            for condition in [Bad, Good, Unknown] {
                for now in [i64::MIN, -1, 0, i64::MAX] {
                    let alert = Alert {
                        state,
                        since_ms: Some(0),
                        bad_ms: Some(0),
                    };
                    let _ = alert.step(condition, now, &HOLDS);
                }
            }
        }
    }
}
