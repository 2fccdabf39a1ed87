//! Explains in words what keeps an alert open, and when it ends.
//!
//! The words follow [`crate::judge::alarm`] and [`crate::alert::machine`]: a firing alert ends when
//! the condition has not been bad for its hold, and the condition is bad while the detector is in
//! alarm or, if windows raise alerts, a window is miscalibrated.

use crate::alert::machine::FLAPS_MAX;
use crate::alert::{Alert, AlertState, Condition, Holds, Severity};
use crate::judge::{DetectorReport, StreamReport, Verdict, alarm};

/// Sentences about an alert that is pending or firing; none for other states. `clock` formats a
/// moment.
pub fn holding(
    report: &StreamReport,
    holds: &Holds,
    window_alerts: bool,
    now_ms: i64,
    clock: impl Fn(i64) -> String,
) -> Vec<String> {
    let alert = &report.alert;
    if !matches!(alert.state, AlertState::Firing | AlertState::Pending) {
        return Vec::new();
    }
    let mut all = Vec::new();
    let detector = report.detector.as_deref();
    all.extend(detector.and_then(|d| of_detector(d, &clock)));
    if window_alerts {
        let bad = report.windows.iter();
        let bad = bad.filter(|w| w.verdict == Verdict::Miscalibrated);
        let names: Vec<&str> = bad.map(|w| w.window.as_str()).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            all.push(format!(
                "The windows {names} are miscalibrated, and windows raise alerts here."
            ));
        }
    }
    let condition = match report.is_withdrawn() {
        true => Condition::Unknown,
        false => alarm::condition(report, window_alerts),
    };
    match alert.state {
        AlertState::Pending => all.push(format!(
            "It fires if it stays so for {}.",
            span(holds.pending_ms)
        )),
        _ => all.push(of_end(alert, condition, holds, now_ms, &clock)),
    }
    if alert.state == AlertState::Firing && alert.severity == Severity::Page {
        all.push(
            "It is a page while the detector is in alarm and some window is miscalibrated, and for the hold \
             after that."
                .to_owned(),
        );
    }
    all
}

/// The sentence about a detector in alarm: what it needs to be clear.
fn of_detector(detector: &DetectorReport, clock: impl Fn(i64) -> String) -> Option<String> {
    let alarm = detector.alarm.as_ref()?;
    let now = match detector.winning {
        true => "there is some in those so far",
        false => "there is none in those so far",
    };
    Some(format!(
        "The detector is in alarm: {} events since its last alarm ({}). It is clear after about {} events without \
         another alarm, once they hold no evidence against the scores; {now}.",
        detector.quiet_events,
        clock(alarm.at_ms),
        rounded(alarm.wait_events()),
    ))
}

/// Rounds a large number up to two digits.
fn rounded(x: f64) -> String {
    let unit = 10f64.powf(x.max(10.0).log10().floor() - 1.0);
    format!("{:.0}", (x / unit).ceil() * unit)
}

/// The sentence about the end of a firing alert.
fn of_end(
    alert: &Alert,
    condition: Condition,
    holds: &Holds,
    now_ms: i64,
    clock: impl Fn(i64) -> String,
) -> String {
    let doubled = alert.flaps.min(FLAPS_MAX);
    let keep_ms = holds.keep_firing_ms.saturating_mul(1 << doubled);
    let flaps = match doubled {
        0 => String::new(),
        1 => ", doubled because it came back soon after its end".to_owned(),
        n => format!(", doubled {n} times because it keeps coming back"),
    };
    let keep = format!("{}{flaps}", span(keep_ms));
    let end = |bad_ms: i64| {
        let end_ms = bad_ms.saturating_add(keep_ms);
        let end = format!("{} ({keep})", clock(end_ms));
        match end_ms > now_ms {
            true => (format!("at {end}"), ""),
            // Event time is behind the clock, or does not move.
            false => (
                format!("once event time passes {end}"),
                ", or ends after `stale_after` without data",
            ),
        }
    };
    match (condition, alert.bad_ms) {
        (Condition::Bad(_), _) | (_, None) => {
            format!("Once nothing of this holds any more, the alert ends {keep} later.")
        }
        (Condition::Good, Some(bad_ms)) => {
            let (since, (when, or)) = (clock(bad_ms), end(bad_ms));
            format!(
                "Nothing has been bad since {since}: it is resolved {when}, if that stays so{or}."
            )
        }
        (Condition::Unknown, Some(bad_ms)) => {
            let (since, (when, or)) = (clock(bad_ms), end(bad_ms));
            format!(
                "Nothing can be said since {since}: it ends {when} unless something is found again{or}."
            )
        }
    }
}

/// Formats a duration in words.
fn span(ms: i64) -> String {
    let duration = std::time::Duration::from_millis(ms.max(0).unsigned_abs());
    match duration.is_zero() {
        true => "at once".to_owned(),
        false => humantime::format_duration(duration).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{StreamId, WindowReport};
    use crate::stats::view::View;

    const HOLDS: Holds = Holds {
        pending_ms: 60_000,
        keep_firing_ms: 300_000,
        flap_within_ms: 0,
    };

    fn report(state: AlertState, verdict: Verdict) -> StreamReport {
        let alert = Alert {
            state,
            since_ms: Some(0),
            bad_ms: Some(1000),
            flaps: 1,
            ..Alert::default()
        };
        let window = WindowReport {
            verdict,
            ..WindowReport::blank("5m")
        };
        StreamReport {
            id: StreamId {
                model: "m".to_owned(),
                version: String::new(),
                segment: String::new(),
                view: View::Binary,
            },
            last_event_ms: 0,
            due_ms: None,
            overdispersion: None,
            detector: None,
            alert,
            windows: vec![window],
        }
    }

    fn words(state: AlertState, verdict: Verdict) -> String {
        words_at(2000, state, verdict)
    }

    fn words_at(now_ms: i64, state: AlertState, verdict: Verdict) -> String {
        let clock = |ms| format!("[{ms}]");
        holding(&report(state, verdict), &HOLDS, true, now_ms, clock).join(" ")
    }

    #[test]
    fn large_numbers_are_rounded_up() {
        assert_eq!(
            [10_000.0, 15_996.0, 63_984.0, 10.0].map(rounded),
            ["10000", "16000", "64000", "10"]
        );
    }

    #[test]
    fn an_alert_says_what_holds_it_and_when_it_ends() {
        let held = words(AlertState::Firing, Verdict::Miscalibrated);
        assert!(
            held.contains("windows 5m are miscalibrated") && held.contains("10m, doubled"),
            "{held}"
        );
        let good = words(AlertState::Firing, Verdict::Calibrated);
        assert!(
            good.contains("[1000]: it is resolved at [601000]"),
            "{good}"
        );
        let unknown = words(
            AlertState::Firing,
            Verdict::Undecided(crate::judge::Undecided::TooFew),
        );
        assert!(unknown.contains("[1000]: it ends at [601000]"), "{unknown}");
        // Event time does not move, or is far behind the clock.
        let late = |verdict| words_at(601_000, AlertState::Firing, verdict);
        let good = late(Verdict::Calibrated);
        assert!(
            good.contains(
                "it is resolved once event time passes [601000] (10m, doubled because it came back soon after its end), \
                 if that stays so, or ends after `stale_after` without data."
            ),
            "{good}"
        );
        let unknown = late(Verdict::Undecided(crate::judge::Undecided::TooFew));
        assert!(
            unknown.contains("it ends once event time passes [601000]"),
            "{unknown}"
        );
        let pending = words(AlertState::Pending, Verdict::Miscalibrated);
        assert!(pending.contains("fires if it stays so for 1m"), "{pending}");
        assert_eq!(words(AlertState::Inactive, Verdict::Miscalibrated), "");
    }
}
