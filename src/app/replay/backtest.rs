//! Evaluates an alert policy on past records: the alerts that it would have raised.
//!
//! Each policy is a whole configuration. The same records pass through one engine per policy in
//! event time, as in a replay, so an alert fires when it would have fired in `run`. All results
//! come from the [`Change`]s of the engine: an alert lasts from its change to firing until its next
//! change, and an alarm of the detector from its start to its end. An alert or alarm that still
//! fires at the end of the records has no end.
//!
//! Totals are over the alerts of streams, which are those that people are notified of. The result
//! also has the signals of each window and each detector.

use std::collections::{BTreeMap, BTreeSet};

use super::session::{Listeners, Progress, Tally};
use super::{Input, replay};
use crate::alert::{Alert, AlertState, Severity};
use crate::app::error::AppError;
use crate::config::Config;
use crate::judge::{AccountReport, Change, ComparisonReport, Step};

/// Name of the signal that is the alert of a stream.
pub const ALERT: &str = "alert";

/// A signal that can fire: the alert of a stream, one of its windows, or its detector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal {
    /// The stream, printed.
    pub stream: String,
    /// Name of the window; `detector` for the detector, `alert` for the alert of the stream.
    pub window: String,
}

/// One period in which a signal fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Event time of its start.
    pub start_ms: i64,
    /// Event time of its end; `None` if it still fired when the records ended.
    pub end_ms: Option<i64>,
    /// Event times at which it became a page; only for the alert of a stream.
    pub pages_ms: Vec<i64>,
    /// The sentence of its first change.
    pub sentence: String,
}

/// The result of one policy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyOutcome {
    /// What became of the records.
    pub tally: Tally,
    /// Number of streams.
    pub streams: usize,
    /// Every signal that was judged, with the periods in which it fired, in order.
    pub signals: BTreeMap<Signal, Vec<Span>>,
    /// The budgets of false alarms at the end.
    pub ledger: Vec<AccountReport>,
    /// The comparisons of versions at the end.
    pub comparisons: Vec<ComparisonReport>,
}

/// Replays the input under one policy.
pub fn backtest(
    config: Config,
    input: &mut Input<'_>,
    progress: Progress<'_>,
) -> Result<PolicyOutcome, AppError> {
    let mut outcome = PolicyOutcome::default();
    let mut on_change = |change: &Change| outcome.take(change);
    let listeners = Listeners {
        on_change: &mut on_change,
        history: None,
    };
    let (engine, tally) = replay(config, input, listeners, progress)?;
    let mut streams = BTreeSet::new();
    for report in engine.reports() {
        let stream = report.id.to_string();
        let windows = report.windows.iter().map(|w| w.window.as_str());
        for window in windows.chain([ALERT]) {
            let window = window.to_owned();
            let stream = stream.clone();
            outcome
                .signals
                .entry(Signal { stream, window })
                .or_default();
        }
        streams.insert(stream);
    }
    outcome.ledger = engine.ledger();
    outcome.comparisons = engine.comparisons();
    outcome.tally = tally;
    outcome.streams = streams.len();
    Ok(outcome)
}

impl PolicyOutcome {
    fn take(&mut self, change: &Change) {
        let fires = match change.step {
            Step::Alert { to, .. } => to == AlertState::Firing,
            Step::Detector { alarm, .. } => alarm,
            Step::Stream { to, .. } => to.state == AlertState::Firing,
            Step::Verdict { .. } => return,
        };
        let is_page = |a: Alert| a.state == AlertState::Firing && a.severity == Severity::Page;
        let pages = match change.step {
            Step::Stream { from, to } => is_page(to) && !is_page(from),
            _ => false,
        };
        let pages_ms = pages.then_some(change.at_ms);
        let window = match change.step {
            // Named so whichever window caused it.
            Step::Stream { .. } => ALERT,
            _ => &change.window,
        };
        let signal = Signal {
            stream: change.stream.to_string(),
            window: window.to_owned(),
        };
        let spans = self.signals.entry(signal).or_default();
        let open = spans.last_mut().filter(|s| s.end_ms.is_none());
        match (open, fires) {
            (None, true) => spans.push(Span {
                start_ms: change.at_ms,
                end_ms: None,
                pages_ms: pages_ms.into_iter().collect(),
                sentence: change.sentence.clone(),
            }),
            (Some(span), false) => span.end_ms = Some(change.at_ms),
            // A detector raises a second alarm, or an alert changes its severity.
            (Some(span), true) => span.pages_ms.extend(pages_ms),
            // An alert moves between states that do not fire.
            (None, false) => {}
        }
    }

    fn alerts(&self) -> impl Iterator<Item = &Vec<Span>> {
        let alerts = self.signals.iter().filter(|(s, _)| s.window == ALERT);
        alerts.map(|(_, spans)| spans)
    }

    /// Number of streams whose alert fired.
    pub fn streams_fired(&self) -> usize {
        self.alerts().filter(|s| !s.is_empty()).count()
    }

    /// Number of times that an alert fired.
    pub fn fired(&self) -> usize {
        self.alerts().map(Vec::len).sum()
    }

    /// Number of times that an alert became a page.
    pub fn pages(&self) -> usize {
        self.alerts().map(|spans| pages(spans)).sum()
    }

    /// Total time that alerts fired.
    pub fn firing_ms(&self) -> i64 {
        self.alerts()
            .map(|spans| firing_ms(spans, self.end_ms()))
            .sum()
    }

    /// Event time at which an alert first fired.
    pub fn first_ms(&self) -> Option<i64> {
        self.alerts()
            .filter_map(|s| s.first())
            .map(|s| s.start_ms)
            .min()
    }

    /// Event time at which the records end.
    pub fn end_ms(&self) -> i64 {
        self.tally.times_ms.map_or(0, |(_, last)| last)
    }

    /// Alerts per day of event time; `None` where the records span no time.
    pub fn fired_per_day(&self) -> Option<f64> {
        let (first, last) = self.tally.times_ms?;
        (last > first).then(|| self.fired() as f64 * 86_400_000.0 / (last - first) as f64)
    }
}

/// Number of times that an alert with these spans became a page.
pub fn pages(spans: &[Span]) -> usize {
    spans.iter().map(|s| s.pages_ms.len()).sum()
}

/// Total duration of these spans; a span without an end lasts until `end_ms`.
pub fn firing_ms(spans: &[Span], end_ms: i64) -> i64 {
    let one = |s: &Span| s.end_ms.unwrap_or(end_ms.max(s.start_ms)) - s.start_ms;
    spans.iter().map(one).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Verdict;
    use crate::notify::tests::stream;

    fn change(at_ms: i64, step: Step) -> Change {
        Change {
            stream: stream("m", "", ""),
            window: "5m".into(),
            at_ms,
            step,
            sentence: format!("at {at_ms}"),
            facts: None,
        }
    }

    fn alert(at_ms: i64, state: AlertState, severity: Severity) -> Change {
        let from = Alert::default();
        let to = Alert {
            state,
            severity,
            ..from
        };
        change(at_ms, Step::Stream { from, to })
    }

    #[test]
    fn an_alert_lasts_from_firing_to_what_follows_it() {
        use AlertState::{Firing, Inactive, Pending, Resolved};
        let mut outcome = PolicyOutcome::default();
        let verdict = Step::Verdict {
            from: Verdict::Calibrated,
            to: Verdict::Miscalibrated,
        };
        for change in [
            change(0, verdict),
            alert(1, Pending, Severity::Warn),
            alert(10, Firing, Severity::Warn),
            alert(40, Resolved, Severity::Warn),
            alert(60, Inactive, Severity::Warn),
            alert(100, Firing, Severity::Warn),
        ] {
            outcome.take(&change);
        }
        outcome.tally.times_ms = Some((0, 150));
        let spans = outcome.signals.values().next().unwrap();
        let times: Vec<_> = spans.iter().map(|s| (s.start_ms, s.end_ms)).collect();
        assert_eq!(times, [(10, Some(40)), (100, None)]);
        assert_eq!(spans[0].sentence, "at 10");
        assert_eq!(outcome.firing_ms(), 30 + 50);
        assert_eq!(outcome.first_ms(), Some(10));
    }

    #[test]
    fn an_alert_is_a_page_as_often_as_it_becomes_one() {
        use AlertState::{Firing, Pending, Resolved};
        use Severity::{Page, Warn};
        let mut outcome = PolicyOutcome::default();
        let mut before = Alert::default();
        for (at_ms, state, severity) in [
            (1, Pending, Page),
            (2, Firing, Page),
            (3, Firing, Warn),
            (4, Firing, Page),
            (5, Firing, Page),
            (6, Resolved, Warn),
            (7, Firing, Warn),
            (8, Firing, Page),
        ] {
            let mut change = alert(at_ms, state, severity);
            if let Step::Stream { from, to } = &mut change.step {
                (*from, before) = (before, *to);
            }
            outcome.take(&change);
        }
        assert_eq!((outcome.fired(), outcome.pages()), (2, 3));
        let spans = outcome.signals.values().next().unwrap();
        assert_eq!(spans[0].pages_ms, [2, 4]);
        assert_eq!(spans[1].pages_ms, [8]);
    }

    #[test]
    fn a_detector_that_alarms_again_is_one_alarm_until_it_is_over() {
        let mut outcome = PolicyOutcome::default();
        for (at, alarm) in [(5, true), (7, true), (9, false), (11, false), (20, true)] {
            outcome.take(&change(
                at,
                Step::Detector {
                    alarm,
                    again: false,
                },
            ));
        }
        let spans = outcome.signals.values().next().unwrap();
        assert_eq!(spans.len(), 2);
        assert_eq!(outcome.fired(), 0, "an alarm is no alert yet");
    }
}
