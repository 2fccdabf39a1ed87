//! A notification: one change of one alert, with all numbers at that time.
//!
//! As JSON it is the body of a webhook and the value of a record on the alerts topic.
//! `deploy/alert.schema.json` describes it. An undefined number is null. Times are event times in
//! ms since 1970.

mod trial;

use serde::{Deserialize, Serialize};

use super::grouping::GroupId;
use crate::alert::{Deployment, Labels, Matcher, Severity, Silences};
use crate::judge::detector_report::{DetectorReport, alarm_numbers};
use crate::judge::{
    DecidedError, Facts, Numbers, StreamId, StreamReport, Undecided, Verdict, WindowReport, alarm,
};
use crate::report::moment::rfc3339;
use crate::stats::direction::Direction;
use strum::IntoStaticStr;

/// Most streams that a notification lists.
pub const STREAMS_MAX: usize = 20;

/// Name of the alert in systems that identify alerts by name.
pub const ALERT_NAME: &str = "TruelineMiscalibrated";

/// Whether the alert fires or is resolved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// It fires.
    #[default]
    Firing,
    /// It is resolved.
    Resolved,
}

impl Status {
    /// The name of the status, as in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One change of one alert.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    /// Identifies the change. It stays the same if the change is sent again.
    pub key: String,
    /// Identifies the alert. It is the same for all changes of one alert.
    pub fingerprint: String,
    /// Name of the alert: the model, and version, segment and view if alerts are grouped by them.
    #[serde(default)]
    pub alert: String,
    /// Firing or resolved.
    pub status: Status,
    /// Its severity; of a resolved alert, the one that was notified last.
    pub severity: Severity,
    /// The previous severity, if only the severity changed.
    pub was: Option<Severity>,
    /// The other severities that were notified since it started to fire.
    #[serde(default)]
    pub earlier: Vec<Severity>,
    /// It ended for a reason other than its data: alerts are grouped differently, or its streams
    /// are gone.
    #[serde(default)]
    pub administrative: bool,
    /// When it changed.
    pub at_ms: i64,
    /// When it started to fire.
    pub since_ms: i64,
    /// When one of its streams was last bad, according to the data judged by then.
    #[serde(default)]
    pub bad_ms: Option<i64>,
    /// The model.
    pub model: String,
    /// The version, if alerts are grouped by it; else "".
    pub version: String,
    /// The segment, if alerts are grouped by it; else "".
    pub segment: String,
    /// The view, if alerts are grouped by it; else "".
    pub view: String,
    /// The worst stream, which represents the alert: the numbers are those of this stream.
    #[serde(default)]
    pub stream: String,
    /// Number of streams that fire.
    #[serde(default)]
    pub streams_firing: u64,
    /// The streams that fire, the worst first; at most [`STREAMS_MAX`].
    #[serde(default)]
    pub streams: Vec<FiringStream>,
    /// The window that represents the stream. The numbers are those of this window.
    pub window: String,
    /// The end of the window, which is the time of the numbers. It is later than the change if the
    /// alert is sent late, for example after a backlog.
    #[serde(default)]
    pub window_end_ms: Option<i64>,
    /// The verdict of the window.
    pub verdict: String,
    /// The direction of the error in words, or why the alert was resolved.
    pub what: String,
    /// The direction as one word.
    pub direction: String,
    /// Number of events.
    pub n: u64,
    /// The error that was compared with the tolerance.
    #[serde(default)]
    pub error: Option<DecidedError>,
    /// Debiased ℓ2-ECE; 0 if the estimate of its square is negative.
    pub ece: Option<f64>,
    /// Lower end of its interval.
    pub ece_lower: Option<f64>,
    /// Upper end of its interval.
    pub ece_upper: Option<f64>,
    /// Confidence of the interval.
    pub confidence: Option<f64>,
    /// ℓ2-ECE of the smallest change of all odds that the test detects with 80 % power at this n.
    pub detectable: Option<f64>,
    /// Tolerated ℓ2-ECE.
    pub tolerance: Option<f64>,
    /// p-value of the test that decided.
    pub p_value: Option<f64>,
    /// Mean score.
    pub mean_score: Option<f64>,
    /// Share of positive outcomes.
    pub event_rate: Option<f64>,
    /// The detector's estimate of when the error started, while it alarms.
    pub onset_ms: Option<i64>,
    /// Log evidence of the detector's alarm.
    pub log_evidence: Option<f64>,
    /// Lower end of the mean residual at the detector's alarm.
    #[serde(default)]
    pub residual_lower: Option<f64>,
    /// Upper end of the mean residual at the detector's alarm.
    #[serde(default)]
    pub residual_upper: Option<f64>,
    /// The evidence for the alert, in words: the numbers of the window and of the detector.
    #[serde(default)]
    pub evidence: String,
    /// The newest deployment of the model that was marked.
    #[serde(default)]
    pub deployment: Option<Deployment>,
    /// The argument for `trueline explain`: the key of the record of the stream's change, or the
    /// stream's fingerprint, which stands for its newest record.
    #[serde(default)]
    pub record: String,
    /// Address of the stream's page.
    pub page: String,
    /// Address of the runbook.
    pub runbook: String,
    /// The labels of each firing stream, for routes and silences.
    #[serde(skip)]
    pub labels: Vec<Labels>,
    /// The notification is only that a stream has joined an alert that already fires.
    #[serde(skip)]
    pub joined: bool,
}

/// A stream that fires, in the notification of its alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FiringStream {
    /// The stream.
    pub stream: String,
    /// Its severity.
    pub severity: Severity,
    /// When it started to fire.
    pub since_ms: i64,
    /// The direction of its error in words.
    pub what: String,
    /// Number of events in its window.
    pub n: u64,
    /// Its error that was compared with the tolerance.
    #[serde(default)]
    pub error: Option<DecidedError>,
    /// Lower end of the interval of its ℓ2-ECE.
    pub ece_lower: Option<f64>,
    /// Upper end of the interval of its ℓ2-ECE.
    pub ece_upper: Option<f64>,
    /// Address of its page.
    pub page: String,
}

/// Links for the reader.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    /// The stream's page.
    pub page: String,
    /// The runbook.
    pub runbook: String,
}

/// A stream of an alert, with its facts.
#[derive(Debug, Clone, Copy)]
pub struct StreamFacts<'a> {
    /// The stream.
    pub id: &'a StreamId,
    /// What was known of it after its change; without a change, what is known now.
    pub facts: &'a Facts,
}

impl Notification {
    /// The notification of an alert that fires, from the facts of the stream that represents it.
    /// `own` says that this stream itself changed, so that a record of the change exists.
    pub fn firing(
        group: &GroupId,
        since_ms: i64,
        severity: Severity,
        stream: StreamFacts<'_>,
        at_ms: i64,
        own: bool,
        links: Links,
    ) -> Notification {
        let StreamFacts { id, facts } = stream;
        let mut notification = Notification::blank(group, stream, links);
        notification.severity = severity;
        notification.at_ms = at_ms;
        notification.since_ms = since_ms;
        if own {
            notification.record = record(id, at_ms, facts.alert.severity.as_str());
        } else if let Some(end_ms) = notification.window_end_ms.filter(|end_ms| *end_ms > at_ms) {
            let later = format!("; the numbers are those of {}", rfc3339(end_ms));
            notification.evidence.push_str(&later);
        }
        notification.name_change();
        notification
    }

    /// The notification of the end of an alert. `why` is empty unless somebody closed it.
    pub fn ended(
        group: &GroupId,
        since_ms: i64,
        severity: Severity,
        stream: StreamFacts<'_>,
        at_ms: i64,
        why: &str,
        links: Links,
    ) -> Notification {
        let StreamFacts { id, facts } = stream;
        let mut notification = Notification::blank(group, stream, links);
        notification.status = Status::Resolved;
        notification.severity = severity;
        notification.since_ms = since_ms;
        notification.record = record(id, at_ms, Status::Resolved.as_str());
        match why {
            "" => notification.resolve(at_ms, &alarm::end_reason(facts)),
            why => notification.resolve(at_ms, why),
        }
        notification
    }

    /// Lists the streams that fire, the representative one first.
    pub fn list(
        &mut self,
        streams: &[(&StreamReport, Severity)],
        page: impl Fn(&StreamId) -> String,
    ) {
        self.streams_firing = streams.len() as u64;
        self.labels = streams.iter().map(|(r, s)| r.id.labels(*s)).collect();
        let listed = streams.iter().take(STREAMS_MAX);
        self.streams = listed
            .map(|(r, s)| FiringStream::of(r, *s, page(&r.id)))
            .collect();
    }

    /// The notification that resolves this alert for the given reason.
    #[must_use]
    pub fn resolved(&self, at_ms: i64, why: &str) -> Notification {
        let mut notification = self.clone();
        notification.status = Status::Resolved;
        notification.was = None;
        notification.resolve(at_ms, why);
        notification
    }

    fn resolve(&mut self, at_ms: i64, why: &str) {
        self.at_ms = at_ms;
        (self.streams_firing, self.streams) = (0, Vec::new());
        self.what = why.to_owned();
        self.name_change();
    }

    /// For receivers with an incident per severity: the request that `open`s or `close`s the
    /// incident of the current severity, and the requests that close others. If these matchers
    /// select only the previous severity, no incident is opened, and none need exist at the end.
    pub fn incidents<R>(
        &self,
        matchers: &[Matcher],
        open: impl Fn() -> R,
        close: impl Fn(Severity) -> R,
    ) -> (Option<R>, Vec<R>) {
        let selected = Matcher::all_of_severity(matchers, self.severity.as_str());
        let mut others = self.earlier.clone();
        let own = match self.status {
            Status::Firing => {
                others = Vec::from_iter(self.was);
                (selected || self.was.is_none()).then(open)
            }
            Status::Resolved if selected => Some(close(self.severity)),
            Status::Resolved => {
                others.push(self.severity);
                None
            }
        };
        (own, others.into_iter().map(close).collect())
    }

    /// Moves start, change and bad time to at least these times.
    pub fn follow(&mut self, since_ms: i64, at_ms: i64, bad_ms: i64) {
        self.since_ms = self.since_ms.max(since_ms);
        self.at_ms = self.at_ms.max(at_ms);
        self.bad_ms = self.bad_ms.max(Some(bad_ms));
        self.name_change();
    }

    /// Sets the start of the firing.
    pub fn start(&mut self, since_ms: i64) {
        self.since_ms = since_ms;
        self.name_change();
    }

    fn name_change(&mut self) {
        let state = match self.status {
            Status::Firing => self.severity.as_str(),
            Status::Resolved => self.status.as_str(),
        };
        let (fingerprint, since_ms, at_ms) = (&self.fingerprint, self.since_ms, self.at_ms);
        self.key = format!("{fingerprint}-{since_ms}-{at_ms}-{state}");
    }

    fn blank(group: &GroupId, stream: StreamFacts<'_>, links: Links) -> Notification {
        let StreamFacts { id, facts } = stream;
        let window = &facts.window;
        let e = window.scores();
        let numbers = window.numbers.as_ref();
        let alarm = facts.detector.as_ref().and_then(|d| d.alarm.as_ref());
        let direction = direction(facts.detector.as_deref(), window);
        let tolerance = facts.evidence.as_ref();
        let tolerance = tolerance
            .zip(numbers)
            .map(|(e, numbers)| numbers.tolerated(&e.options.evaluation.tolerance));
        let mut error = numbers.map(DecidedError::of);
        if let Some(error) = &mut error {
            error.most = error.most.or(tolerance);
        }
        let mut notification = Notification {
            fingerprint: group.fingerprint(),
            alert: group.name(),
            severity: facts.alert.severity,
            at_ms: window.evaluated_at_ms,
            since_ms: window.evaluated_at_ms,
            bad_ms: facts.alert.bad_ms,
            model: group.model.clone(),
            version: group.version.clone(),
            segment: group.segment.clone(),
            view: group.view.clone(),
            stream: id.to_string(),
            streams_firing: 1,
            window: window.window.clone(),
            window_end_ms: (window.end_ms != 0).then_some(window.end_ms),
            verdict: window.verdict.to_string(),
            what: direction.map_or("", |d| d.words()).to_owned(),
            direction: direction.map_or("", |d| d.as_str()).to_owned(),
            n: window.n,
            error,
            ece: (numbers.and_then(Numbers::ece_squared)).map(|squared| squared.max(0.0).sqrt()),
            ece_lower: numbers.map(Numbers::lower),
            ece_upper: numbers.map(Numbers::upper),
            confidence: numbers.map(Numbers::confidence),
            detectable: e.and_then(|e| e.detectable_ece_l2),
            tolerance: (e.map(|e| e.tolerance.tolerance))
                .or(tolerance.filter(|_| numbers.is_some())),
            p_value: numbers.and_then(Numbers::p_value),
            mean_score: e.map(|e| e.mean_score),
            event_rate: e.map(|e| e.event_rate),
            onset_ms: alarm.map(|a| a.evidence.onset.ms.round() as i64),
            log_evidence: alarm.map(|a| a.evidence.log_worth),
            residual_lower: alarm.map(|a| a.residual.0),
            residual_upper: alarm.map(|a| a.residual.1),
            record: id.fingerprint(),
            page: links.page,
            runbook: links.runbook,
            labels: vec![id.labels(facts.alert.severity)],
            ..Notification::default()
        };
        notification.evidence = notification.evidence_of(facts.detector.as_deref());
        notification
    }

    /// The numbers of the window and of the detector, in words.
    fn evidence_of(&self, detector: Option<&DetectorReport>) -> String {
        let Notification { window, n, .. } = self;
        let mut said = match &self.error {
            Some(e) => format!(
                "{} {} ({:.0} % interval {} to {}) over {window}, n = {n}; tolerated {}",
                e.quantity.name(),
                e.digits(e.estimate),
                100.0 * e.confidence,
                e.digits(e.lower),
                e.digits(e.upper),
                e.tolerated().unwrap_or("unknown".to_owned()),
            ),
            None => format!("{} (n = {n} over {window})", self.no_numbers()),
        };
        let alarm = detector.and_then(|d| Some((d.alarm.as_ref()?, d.log_threshold)));
        if let Some((alarm, log_threshold)) = alarm {
            said += &format!("; detector: {}", alarm_numbers(alarm, log_threshold));
        }
        said
    }

    /// Why there is no interval: its stream is young, or has few events, or the numbers were
    /// withdrawn because data stopped.
    pub fn no_numbers(&self) -> &'static str {
        let is = |why| Verdict::Undecided(why).to_string() == self.verdict;
        if is(Undecided::Immature) {
            "no window has a verdict yet"
        } else if is(Undecided::TooFew) {
            "no window has enough events for a verdict"
        } else {
            "no window has numbers now"
        }
    }

    /// The firing streams in words: one by name, or their number and the worst.
    pub fn streams_in_words(&self) -> String {
        match self.streams_firing {
            0 => format!("the last stream {}", self.stream),
            1 => format!("stream {}", self.stream),
            n => format!("{n} streams, the worst {}", self.stream),
        }
    }

    /// Whether some stream of the alert satisfies all matchers, at its severity or at `severity`.
    pub fn matches(&self, matchers: &[Matcher], severity: Option<Severity>) -> bool {
        let mut labels = self.stream_labels();
        labels.any(|mut labels| {
            if let Some(severity) = severity {
                labels[SEVERITY] = severity.as_str().to_owned();
            }
            Matcher::all(matchers, &labels)
        })
    }

    /// Whether every stream of the alert is silenced.
    pub fn is_silenced(&self, silences: &Silences, now_ms: i64) -> bool {
        let mut labels = self.stream_labels();
        labels.all(|labels| silences.silence_of(&labels, now_ms).is_some())
    }

    /// The labels of the streams; those of the alert itself if none are known.
    fn stream_labels(&self) -> impl Iterator<Item = Labels> {
        let own = self.labels.is_empty().then(|| {
            let names = [&*self.model, &self.version, &self.segment, &self.view];
            let [model, version, segment, view] = names.map(str::to_owned);
            [model, version, segment, view, self.severity.to_string()]
        });
        self.labels.iter().cloned().chain(own)
    }
}

impl FiringStream {
    fn of(report: &StreamReport, severity: Severity, page: String) -> FiringStream {
        let window = alarm::speaker(report).and_then(|i| report.windows.get(i));
        let numbers = window.and_then(|w| w.numbers.as_ref());
        let direction = window.and_then(|w| direction(report.detector.as_deref(), w));
        FiringStream {
            stream: report.id.to_string(),
            severity,
            since_ms: report.alert.since_ms.unwrap_or_default(),
            what: direction.map_or("", |d| d.words()).to_owned(),
            n: window.map_or(0, |w| w.n),
            error: numbers.map(DecidedError::of),
            ece_lower: numbers.map(Numbers::lower),
            ece_upper: numbers.map(Numbers::upper),
            page,
        }
    }
}

/// The direction of the error: the detector's while it alarms, else the window's.
fn direction(detector: Option<&DetectorReport>, window: &WindowReport) -> Option<Direction> {
    match detector.and_then(|d| d.alarm.as_ref()) {
        Some(alarm) => Some(alarm.evidence.direction),
        None => window.scores().map(|e| e.direction),
    }
}

/// Index of the severity among the labels.
const SEVERITY: usize = 4;

/// Key of the record of a stream's change.
fn record(stream: &StreamId, at_ms: i64, state: &str) -> String {
    format!("{}-{at_ms}-{state}", stream.fingerprint())
}

#[cfg(test)]
mod tests;
