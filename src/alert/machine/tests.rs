//! The life of an alert: stories, and laws that hold for every state and input.

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
        // Warnings never make a page, and a page is never kept from people.
        let page = next.severity == Severity::Page;
        prop_assert!(!page || condition == Dire || (alert.severity == Severity::Page && alert.state == Firing));
        prop_assert!(condition != Dire || page);
        prop_assert!(!page || matches!(next.state, Pending | Firing));
        prop_assert!(next.flaps <= FLAPS_MAX);
        // The same judgement at the same moment changes nothing, except that a state without a hold
        // moves on.
        let again = next.step(condition, now, &holds);
        prop_assert!(again.state == next.state || next.state == Pending && pending_ms == 0
            || keep_firing_ms == 0 && next.state == Firing);
        prop_assert_eq!(again.severity, next.severity);
    }
}
