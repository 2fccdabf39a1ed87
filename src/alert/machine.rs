//! The life of an alert: one total function.
//!
//! Every judgement is one of three conditions: bad (worth a warning, or a page), good or unknown.
//! An alert fires when the condition has been bad for the hold time `pending_ms`, and stops firing
//! when it has not been bad for `keep_firing_ms`. So a single window by chance neither starts nor
//! ends an alert.
//!
//! ```text
//!              bad                held bad                good, held
//!  inactive ─────────► pending ───────────────► firing ───────────────► resolved
//!     ▲  ▲   not bad     │                       │  ▲      bad, held        │  │
//!     │  └───────────────┘       unknown, held   │  └───────────────────────┘  │
//!     ├──────────────────────────────────────────┘        (through pending     │
//!     └────────────────────────────────────────────────    unless hold is 0) ──┘
//!                              shown for RESOLVED_MS, or unknown
//!
//!  while firing:   warn ── a page ──► page ── no page for the hold ──► warn
//! ```
//!
//! * A firing alert that nothing can be said about any more becomes inactive, not resolved: nobody
//!   showed that the model is well again.
//! * A resolved alert that turns bad is pending again, and fires at once if the hold time is 0.
//! * Severity rises at once and falls only after the same hold as the alert itself.
//! * **Flaps.** If an alert fires again within `flap_within_ms` of its end, the time that it is
//!   kept is doubled, up to 2^[`FLAPS_MAX`] times, until it has stayed away for longer. So an alert
//!   that comes and goes every minute becomes one long alert and not sixty messages. The same holds
//!   for an alert that is a page again within `flap_within_ms` of the last condition worth a page.
//!   The start of firing and a rise to a page are never delayed.
//! * Time is whatever clock the caller passes as `now_ms`; if it goes back, held times count as 0.
//!
//! The states and hold times are those of Prometheus (`rules/alerting.go`).

use serde::{Deserialize, Serialize};
use std::fmt;
use strum::IntoStaticStr;

/// How long a resolved alert is shown as such: Prometheus's `resolvedRetention`, long enough for a
/// scrape or a notification to be missed and repeated.
pub const RESOLVED_MS: i64 = 15 * 60 * 1000;

/// State of an alert.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
        self.into()
    }

    /// The severity of an alert in this state; `None` if it asks nothing of people: its severity
    /// was reset when it ended.
    pub fn severity(self, severity: Severity) -> Option<Severity> {
        matches!(self, AlertState::Pending | AlertState::Firing).then_some(severity)
    }

    /// Rank for lists: firing alerts come first.
    pub fn urgency(self) -> u8 {
        match self {
            AlertState::Firing => 0,
            AlertState::Pending => 1,
            AlertState::Resolved => 2,
            AlertState::Inactive => 3,
        }
    }
}

/// How much an alert asks of people.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// To be looked at in working hours.
    #[default]
    Warn,
    /// To be looked at now.
    Page,
}

impl Severity {
    /// All severities, the lesser first.
    pub const ALL: [Severity; 2] = [Severity::Warn, Severity::Page];

    /// Its name, as in labels and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Warn => "warn",
            Severity::Page => "page",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Most doublings of the hold of an alert that flaps: with a hold of 5 minutes it stays for 80.
pub const FLAPS_MAX: u32 = 4;

/// The condition that a judgement gives to an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Miscalibrated, and how much that matters.
    Bad(Severity),
    /// Calibrated.
    Good,
    /// Undecided.
    Unknown,
}

/// Hold times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// Bad this long before firing.
    pub pending_ms: i64,
    /// Not bad this long before firing ends.
    pub keep_firing_ms: i64,
    /// Firing again this soon after an end counts as a flap; 0 for never.
    pub flap_within_ms: i64,
}

/// An alert: its state, and the times that its transitions need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Alert {
    /// The state.
    pub state: AlertState,
    /// When the state began; `None` if it was never left.
    pub since_ms: Option<i64>,
    /// When the condition was last bad.
    pub bad_ms: Option<i64>,
    /// How much it asks for while pending or firing; [`Severity::Warn`] otherwise.
    pub severity: Severity,
    /// When the condition was last worth a page.
    pub page_ms: Option<i64>,
    /// When it last stopped firing.
    pub ended_ms: Option<i64>,
    /// How often in a row it fired, or was a page, again too soon, at most [`FLAPS_MAX`].
    pub flaps: u32,
    /// Data from before this event time say nothing: the alert was closed then, or a deployment was
    /// marked. `None` if neither ever happened.
    pub counts_from_ms: Option<i64>,
}

impl Alert {
    /// Whether data that begin at `start_ms` count.
    pub fn counts(&self, start_ms: i64) -> bool {
        self.counts_from_ms
            .is_none_or(|from_ms| start_ms >= from_ms)
    }

    /// The alert after one more judgement. Total: every state has an answer to every condition.
    #[must_use]
    pub fn step(&self, condition: Condition, now_ms: i64, holds: &Holds) -> Alert {
        let state = self.next_state(condition, now_ms, holds);
        let same = state == self.state;
        let fires = state == AlertState::Firing && !same;
        let ends = self.state == AlertState::Firing && !same;
        let page = condition == Condition::Bad(Severity::Page);
        let severity = self.next_severity(state, condition, now_ms, holds);
        let rises = state == AlertState::Firing && same && severity > self.severity;
        Alert {
            state,
            since_ms: if same { self.since_ms } else { Some(now_ms) },
            bad_ms: match condition {
                Condition::Bad(_) => Some(now_ms),
                Condition::Good | Condition::Unknown => self.bad_ms,
            },
            severity,
            page_ms: if page { Some(now_ms) } else { self.page_ms },
            ended_ms: if ends { Some(now_ms) } else { self.ended_ms },
            flaps: if fires {
                self.flaps_after(self.ended_ms, now_ms, holds)
            } else if rises {
                self.flaps_after(self.page_ms, now_ms, holds)
                    .max(self.flaps)
            } else {
                self.flaps
            },
            counts_from_ms: self.counts_from_ms,
        }
    }

    /// Whether steps under this condition, and no other, change neither state nor severity.
    pub fn lasts(&self, condition: Condition) -> bool {
        match (self.state, condition) {
            (AlertState::Inactive, Condition::Good | Condition::Unknown) => true,
            (AlertState::Firing, Condition::Bad(severity)) => severity == self.severity,
            _ => false,
        }
    }

    fn next_state(&self, condition: Condition, now_ms: i64, holds: &Holds) -> AlertState {
        let since = self.since_ms.unwrap_or(now_ms);
        let held = now_ms.saturating_sub(since);
        let quiet = now_ms.saturating_sub(self.bad_ms.unwrap_or(since)) >= self.keep_ms(holds);
        let start = if holds.pending_ms <= 0 {
            AlertState::Firing
        } else {
            AlertState::Pending
        };
        match (self.state, condition) {
            (AlertState::Inactive | AlertState::Resolved, Condition::Bad(_)) => start,
            (AlertState::Inactive, Condition::Good | Condition::Unknown) => AlertState::Inactive,
            (AlertState::Pending, Condition::Bad(_)) if held >= holds.pending_ms => {
                AlertState::Firing
            }
            (AlertState::Pending, Condition::Bad(_)) => AlertState::Pending,
            (AlertState::Pending, Condition::Good | Condition::Unknown) => AlertState::Inactive,
            (AlertState::Firing, Condition::Good) if quiet => AlertState::Resolved,
            (AlertState::Firing, Condition::Unknown) if quiet => AlertState::Inactive,
            (AlertState::Firing, _) => AlertState::Firing,
            (AlertState::Resolved, Condition::Good) if held < RESOLVED_MS => AlertState::Resolved,
            (AlertState::Resolved, Condition::Good | Condition::Unknown) => AlertState::Inactive,
        }
    }

    fn next_severity(
        &self,
        state: AlertState,
        condition: Condition,
        now_ms: i64,
        holds: &Holds,
    ) -> Severity {
        let calm = |page_ms: i64| now_ms.saturating_sub(page_ms) >= self.keep_ms(holds);
        match (state, condition) {
            (AlertState::Inactive | AlertState::Resolved, _) => Severity::Warn,
            (_, Condition::Bad(Severity::Page)) => Severity::Page,
            // No notification was sent for a pending alert: it is as bad as its present condition.
            (AlertState::Pending, _) => Severity::Warn,
            (AlertState::Firing, _) if self.state != AlertState::Firing => Severity::Warn,
            (AlertState::Firing, Condition::Bad(Severity::Warn))
                if self.page_ms.is_none_or(calm) =>
            {
                Severity::Warn
            }
            (AlertState::Firing, _) => self.severity,
        }
    }

    /// How long the alert must not be bad before it ends.
    fn keep_ms(&self, holds: &Holds) -> i64 {
        holds
            .keep_firing_ms
            .saturating_mul(1 << self.flaps.min(FLAPS_MAX))
    }

    /// Flaps of an alert that fires, or is a page, again after `last_ms`.
    fn flaps_after(&self, last_ms: Option<i64>, now_ms: i64, holds: &Holds) -> u32 {
        let soon = |last_ms: i64| now_ms.saturating_sub(last_ms).max(0) < holds.flap_within_ms;
        match last_ms.is_some_and(soon) {
            true => (self.flaps + 1).min(FLAPS_MAX),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests;
