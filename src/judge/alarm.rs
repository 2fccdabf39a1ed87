//! The alert of a stream: what its windows and its detector say together.
//!
//! A window has a verdict, a stream has an alert. Windows are tested again and again, so chance
//! alone rejects one now and then: five calibrated streams had 38 to 52 such alerts in a day. The
//! detector bounds its false alarms over all time, but says less about the size of the error. So
//! only the detector raises alarms by default, and windows show the size. `window_alerts` lets a
//! window raise an alert alone.
//!
//! | detector alarms | some window is miscalibrated | condition |
//! |---|---|---|
//! | yes | yes | page |
//! | yes | no | warn |
//! | no, or there is none | yes, and windows alarm | warn |
//! | no | otherwise, and one is decided or there is a detector | good |
//! | - | no window is decided, no detector has seen a pane | unknown |
//!
//! A condition depends on verdicts and never on their numbers.
//!
//! Only windows that begin after the alert was last closed, or after a deployment was marked, count
//! ([`Alert::counts`]).
//!
//! If data stop, the condition is unknown, whatever it was before, until events come again. It is
//! also unknown while the detector is on hold.
//!
//! The conditions drive the machine of [`crate::alert::machine`]. A change of its state or severity
//! leaves with the [`Facts`] of that moment: reports change, and a notification that is sent later
//! should say what was known at the change.

use super::detector_report::DetectorReport;
use super::report::{AlertGround, Facts, StreamReport, WindowReport};
use super::stream::{StreamId, fnv1a};
use super::verdict::Verdict;
use crate::alert::{Alert, AlertState, Condition, Labels, Severity};
use std::cmp::Ordering;
use std::sync::Arc;

/// The condition that a report gives to the alert of its stream. With `window_alerts`, a
/// miscalibrated window alone is enough for a bad condition.
pub fn condition(report: &StreamReport, window_alerts: bool) -> Condition {
    let on_hold = |d: &Arc<DetectorReport>| d.hold.is_some();
    if report.detector.as_ref().is_some_and(on_hold) {
        return Condition::Unknown;
    }
    let counts = |w: &&WindowReport| report.alert.counts(w.begins_ms());
    let windows = report.windows.iter().filter(counts);
    let detector = report.detector.as_ref().map(|d| d.alarm.is_some());
    of_verdicts(detector, windows.map(|w| w.verdict), window_alerts)
}

/// [`condition`] of a stream that is `stale` or not.
pub fn condition_of(stale: bool, report: &StreamReport, window_alerts: bool) -> Condition {
    match stale {
        true => Condition::Unknown,
        false => condition(report, window_alerts),
    }
}

/// Says that streams without a detector raise no alert, and what to do.
pub fn no_alert(why: &str) -> String {
    format!("no detector, since {why}: no alert; set `window_alerts = true` in [model.alert]")
}

/// The table of the module: the condition that follows from whether the detector alarms, if there
/// is one, and from the verdicts of the windows that count.
pub fn of_verdicts(
    detector: Option<bool>,
    verdicts: impl Iterator<Item = Verdict>,
    window_alerts: bool,
) -> Condition {
    let (mut miscalibrated, mut decided) = (false, false);
    for verdict in verdicts {
        miscalibrated |= verdict == Verdict::Miscalibrated;
        decided |= verdict.is_evaluated();
    }
    match detector {
        Some(true) if miscalibrated => Condition::Bad(Severity::Page),
        Some(true) => Condition::Bad(Severity::Warn),
        _ if miscalibrated && window_alerts => Condition::Bad(Severity::Warn),
        _ if decided || detector.is_some() => Condition::Good,
        _ => Condition::Unknown,
    }
}

/// The window that represents the stream in alerts. Miscalibrated windows come first, then
/// calibrated, then undecided ones. Among equals, the one with the largest lower bound of the
/// error, then with most events.
pub fn speaker(report: &StreamReport) -> Option<usize> {
    let rank = |w: &WindowReport| match w.verdict {
        Verdict::Miscalibrated => 2,
        Verdict::Calibrated => 1,
        Verdict::Undecided(_) => 0,
    };
    let order = |a: &WindowReport, b: &WindowReport| -> Ordering {
        let sure = a.lower().total_cmp(&b.lower());
        rank(a).cmp(&rank(b)).then(sure).then(a.n.cmp(&b.n))
    };
    let windows = report.windows.iter().enumerate();
    windows.max_by(|a, b| order(a.1, b.1)).map(|(i, _)| i)
}

/// Whether a change may need a notification: firing began or stopped, or its severity changed.
pub fn notifies(from: &Alert, to: &Alert) -> bool {
    let fires = |a: &Alert| a.state == AlertState::Firing;
    fires(from) != fires(to) || (fires(to) && from.severity != to.severity)
}

/// What is known of a stream whose alert is `alert`.
pub fn facts(
    report: &StreamReport,
    alert: Alert,
    evidence: Option<Box<AlertGround>>,
) -> Option<Arc<Facts>> {
    let window = report.windows.get(speaker(report)?)?;
    Some(Arc::new(Facts {
        alert,
        window: window.clone(),
        detector: report.detector.clone(),
        evidence,
    }))
}

/// "alert of fraud/3//binary fires (page)". `closed` says who closed it and why, if someone did;
/// `facts` are those after the change.
pub fn sentence(
    id: &StreamId,
    from: &Alert,
    to: &Alert,
    closed: Option<&str>,
    facts: Option<&Facts>,
) -> String {
    let severity = to.severity;
    if let (AlertState::Firing, Some(why)) = (from.state, closed) {
        return format!("alert of {id} is {why}");
    }
    let why = || facts.map_or(NOTHING_KNOWN.to_owned(), end_reason);
    match (from.state, to.state) {
        (AlertState::Firing, AlertState::Firing) => {
            let was = from.severity;
            format!("alert of {id} is now a {severity}, it was a {was}")
        }
        (_, AlertState::Firing) => format!("alert of {id} fires ({severity})"),
        (_, AlertState::Resolved) => format!("alert of {id} is resolved: {}", why()),
        (AlertState::Firing, _) => format!("alert of {id} ends: {}", why()),
        (from, to) => {
            let (from, to) = (from.as_str(), to.as_str());
            format!("alert of {id} is {to} (was {from})")
        }
    }
}

/// Why the alert of a stream ended if nobody closed it: the same in its sentence and in its
/// notification.
pub fn end_reason(facts: &Facts) -> String {
    let (detector, window) = (facts.detector.as_deref(), &facts.window);
    if let Some(hold) = detector.and_then(|d| d.hold) {
        return format!("the detector is on hold: {}", hold.why.words());
    }
    if facts.alert.state != AlertState::Resolved {
        return NOTHING_KNOWN.to_owned();
    }
    // Without an alarm of the detector, the window alone keeps no alert open.
    if detector.is_some() && window.verdict == Verdict::Miscalibrated {
        let window = &window.window;
        return format!("the detector is clear; the error still shows over {window}");
    }
    WELL.to_owned()
}

/// The reason for resolving the alert of a stream that is calibrated again.
const WELL: &str = "calibrated again";
/// The reason for ending the alert of a stream that no longer has a verdict.
const NOTHING_KNOWN: &str =
    "no verdict is possible any more; this does not mean that the model is calibrated";

/// Identifies an alert by its model, version, segment and view: 16 hexadecimal digits, the same in
/// every process and version.
pub fn fingerprint(parts: [&str; 4]) -> String {
    // Lengths go in too, so that no two alerts read alike.
    let bytes = parts.into_iter().flat_map(|part| {
        let length = (part.len() as u64).to_le_bytes();
        length.into_iter().chain(part.bytes())
    });
    format!("{:016x}", fnv1a(bytes))
}

impl StreamId {
    /// Identifies the alert of the stream.
    pub fn fingerprint(&self) -> String {
        let view = self.view.to_string();
        fingerprint([&self.model, &self.version, &self.segment, &view])
    }

    /// The labels of its alert.
    pub fn labels(&self, severity: Severity) -> Labels {
        [
            self.model.clone(),
            self.version.clone(),
            self.segment.clone(),
            self.view.to_string(),
            severity.as_str().to_owned(),
        ]
    }
}
