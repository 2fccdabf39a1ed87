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
//! * A resolved alert that turns bad is pending again, and fires at once where the hold time is 0.
//! * Severity rises at once and falls only after the same hold as the alert itself.
//! * **Flaps.** If an alert fires again within `flap_within_ms` of its end, the time that it is
//!   kept is doubled, up to 2^[`FLAPS_MAX`] times, until it has stayed away for longer. So an alert
//!   that comes and goes every minute becomes one long alert and not sixty messages. The same holds
//!   of one that is a page again within `flap_within_ms` of the last condition worth a page. The
//!   start of firing and a rise to a page are never delayed.
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

    /// The severity of an alert in this state; `None` of one that asks nothing of people, as its
    /// severity was reset when it ended.
    pub fn severity(self, severity: Severity) -> Option<Severity> {
        matches!(self, AlertState::Pending | AlertState::Firing).then_some(severity)
    }

    /// Rank for lists: what fires comes first.
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

/// What a judgement says to an alert.
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
    /// When the state began; `None` for one that was never left.
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
            // No notification was sent for a pending one: it is as bad as it is now.
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

    /// How long it must not be bad before it ends.
    fn keep_ms(&self, holds: &Holds) -> i64 {
        holds
            .keep_firing_ms
            .saturating_mul(1 << self.flaps.min(FLAPS_MAX))
    }

    /// Flaps of one that fires, or is a page, again after this.
    fn flaps_after(&self, last_ms: Option<i64>, now_ms: i64, holds: &Holds) -> u32 {
        let soon = |last_ms: i64| now_ms.saturating_sub(last_ms).max(0) < holds.flap_within_ms;
        match last_ms.is_some_and(soon) {
            true => (self.flaps + 1).min(FLAPS_MAX),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AlertState::*;
    use Condition::{Good, Unknown};
    use proptest::prelude::*;

    #[expect(non_upper_case_globals, reason = "reads as the condition it is")]
    const Bad: Condition = Condition::Bad(Severity::Warn);
    #[expect(non_upper_case_globals, reason = "reads as the condition it is")]
    const Dire: Condition = Condition::Bad(Severity::Page);

    const HOLDS: Holds = Holds {
        pending_ms: 10,
        keep_firing_ms: 20,
        flap_within_ms: 0,
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
            ..HOLDS
        };
        let steps = [(0, Bad), (1, Good), (2, Bad), (3, Unknown)];
        assert_eq!(story(&holds, &steps), [Firing, Resolved, Firing, Inactive]);
    }

    #[test]
    fn a_severity_that_comes_and_goes_stays_twice_as_long_each_time() {
        let holds = Holds {
            pending_ms: 0,
            flap_within_ms: 1000,
            ..HOLDS
        };
        // Worth a page for one moment in every forty.
        let pages = |holds: &Holds| {
            let (mut alert, mut pages) = (Alert::default(), 0);
            for now in 0..4000 {
                let next = alert.step(if now % 40 == 5 { Dire } else { Bad }, now, holds);
                pages += u32::from(next.severity > alert.severity);
                alert = next;
            }
            assert_eq!(alert.state, Firing);
            pages
        };
        let never = Holds {
            flap_within_ms: 0,
            ..holds
        };
        assert_eq!((pages(&holds), pages(&never)), (2, 100));
    }

    #[test]
    fn severity_rises_at_once_and_falls_after_the_hold() {
        let holds = Holds {
            pending_ms: 0,
            ..HOLDS
        };
        let mut alert = Alert::default();
        let mut severities = Vec::new();
        for (now, condition) in [
            (0, Bad),
            (1, Dire),
            (2, Bad),
            (20, Bad),
            (21, Bad),
            (22, Dire),
        ] {
            alert = alert.step(condition, now, &holds);
            severities.push(alert.severity);
        }
        let (w, p) = (Severity::Warn, Severity::Page);
        assert_eq!(severities, [w, p, p, p, w, p]);
        assert_eq!((alert.state, alert.since_ms), (Firing, Some(0)));
        assert_eq!(alert.state.severity(alert.severity), Some(p));
        alert = alert.step(Good, 42, &holds);
        assert_eq!(alert.state, Resolved);
        assert_eq!(alert.state.severity(alert.severity), None);
    }

    #[test]
    fn one_that_flaps_is_held_twice_as_long_each_time_and_forgiven_after_a_while() {
        let holds = Holds {
            pending_ms: 0,
            keep_firing_ms: 10,
            flap_within_ms: 100,
        };
        let mut alert = Alert::default();
        let (mut now, mut lengths) = (0, Vec::new());
        for _ in 0..6 {
            alert = alert.step(Bad, now, &holds);
            let begun = now;
            while alert.state == Firing {
                now += 1;
                alert = alert.step(Good, now, &holds);
            }
            lengths.push(now - begun);
            now += 50;
        }
        assert_eq!(lengths, [10, 20, 40, 80, 160, 160]);
        alert = alert.step(Bad, now + 100, &holds);
        assert_eq!(alert.flaps, 0);
    }

    fn any_alert() -> impl Strategy<Value = Alert> {
        let time = || prop_oneof![Just(None), (-50i64..50).prop_map(Some)];
        let severity = prop_oneof![Just(Severity::Warn), Just(Severity::Page)];
        let state = prop::sample::select(AlertState::ALL.to_vec());
        let parts = (
            state,
            time(),
            time(),
            severity,
            time(),
            time(),
            0..=FLAPS_MAX,
        );
        parts.prop_map(
            |(state, since_ms, bad_ms, severity, page_ms, ended_ms, flaps)| Alert {
                state,
                since_ms,
                bad_ms,
                severity,
                page_ms,
                ended_ms,
                flaps,
                counts_from_ms: None,
            },
        )
    }

    fn any_condition() -> impl Strategy<Value = Condition> {
        prop::sample::select(vec![Bad, Dire, Good, Unknown])
    }

    proptest! {
        #[test]
        fn the_laws_hold_for_every_state_and_every_input(
            alert in any_alert(),
            condition in any_condition(),
            now in prop_oneof![Just(i64::MIN), Just(i64::MAX), -100i64..100],
            pending_ms in 0i64..30,
            keep_firing_ms in 0i64..30,
            flap_within_ms in 0i64..30,
        ) {
            let holds = Holds { pending_ms, keep_firing_ms, flap_within_ms };
            let next = alert.step(condition, now, &holds);
            let bad = matches!(condition, Condition::Bad(_));
            // Only what is bad begins, only what is good is resolved, and nothing skips a state.
            match (alert.state, next.state) {
                (a, b) if a == b => prop_assert_eq!(next.since_ms, alert.since_ms),
                (Inactive | Resolved, Pending) => prop_assert!(bad && pending_ms > 0),
                (Inactive | Resolved, Firing) => prop_assert!(bad && pending_ms == 0),
                (Pending, Firing) => prop_assert!(bad),
                (Pending, Inactive) => prop_assert!(!bad),
                (Firing, Resolved) => prop_assert_eq!(condition, Good),
                (Firing, Inactive) => prop_assert_eq!(condition, Unknown),
                (Resolved, Inactive) => prop_assert!(!bad),
                (a, b) => prop_assert!(false, "{:?} became {:?}", a, b),
            }
            if next.state != alert.state {
                prop_assert_eq!(next.since_ms, Some(now));
            }
            // A hold is kept: nothing ends while it was bad within it.
            if alert.state == Firing && next.state != Firing && let Some(last) = alert.bad_ms {
                prop_assert!(now.saturating_sub(last) >= keep_firing_ms);
            }
            // A page is never made of warnings, and never kept from people.
            let page = next.severity == Severity::Page;
            prop_assert!(!page || condition == Dire || (alert.severity == Severity::Page && alert.state == Firing));
            prop_assert!(condition != Dire || page);
            prop_assert!(!page || matches!(next.state, Pending | Firing));
            prop_assert!(next.flaps <= FLAPS_MAX);
            // The same judgement at the same moment says nothing new, but that what has no hold
            // moves on.
            let again = next.step(condition, now, &holds);
            prop_assert!(again.state == next.state || next.state == Pending && pending_ms == 0
                || keep_firing_ms == 0 && next.state == Firing);
            prop_assert_eq!(again.severity, next.severity);
        }
    }
}
