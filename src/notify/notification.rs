//! A notification: one change of one alert, with all numbers of that moment.
//!
//! As JSON it is the body of a webhook and the value of a record on the alerts topic.
//! `deploy/alert.schema.json` describes it ([`schema`]). An undefined number is null. Times are
//! event times in ms since 1970.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::alert::{AlertState, Labels, Severity};
use crate::judge::{Change, Facts, Numbers, Step, StreamId};

/// Name of the alert in systems that identify alerts by name.
pub const ALERT_NAME: &str = "TruelineMiscalibrated";

/// Whether the alert fires or is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It fires.
    Firing,
    /// It is resolved.
    Resolved,
}

impl Status {
    /// Its name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Firing => "firing",
            Status::Resolved => "resolved",
        }
    }
}

/// One change of one alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    /// Identifies the change. It is the same however often the change is sent.
    pub key: String,
    /// Identifies the alert. It is the same for all changes of the alert of one stream.
    pub fingerprint: String,
    /// Firing or resolved.
    pub status: Status,
    /// Its severity; of a resolved alert, the last one.
    pub severity: Severity,
    /// The previous severity, if only the severity changed.
    pub was: Option<Severity>,
    /// When it changed.
    pub at_ms: i64,
    /// When it started to fire.
    pub since_ms: i64,
    /// The model.
    pub model: String,
    /// Its version, or "".
    pub version: String,
    /// The segment, or "".
    pub segment: String,
    /// The view that is tested.
    pub view: String,
    /// The window that represents the stream. The numbers are those of this window.
    pub window: String,
    /// The verdict of the window.
    pub verdict: String,
    /// The direction of the error in words, or why the alert was resolved.
    pub what: String,
    /// The direction as one word.
    pub direction: String,
    /// Number of events.
    pub n: u64,
    /// Debiased ℓ2-ECE; 0 if the estimate of its square is negative.
    pub ece: Option<f64>,
    /// Lower end of its interval.
    pub ece_lower: Option<f64>,
    /// Upper end of its interval.
    pub ece_upper: Option<f64>,
    /// Confidence of the interval.
    pub confidence: Option<f64>,
    /// Smallest ℓ2-ECE that the test detects with 80 % power at this n.
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
    /// Address of the stream's page.
    pub page: String,
    /// Address of the runbook.
    pub runbook: String,
}

/// Links for the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    /// The stream's page.
    pub page: String,
    /// The runbook.
    pub runbook: String,
}

impl Notification {
    /// The notification of a change, if the change needs one.
    pub fn of(change: &Change, links: Links) -> Option<Notification> {
        let (Step::Stream { from, to }, Some(facts)) = (change.step, &change.facts) else {
            return None;
        };
        let at = change.at_ms;
        match (from.state, to.state) {
            (_, AlertState::Firing) => Some(Notification::firing(&change.stream, facts, at, links)),
            (AlertState::Firing, _) => {
                let mut notification = Notification::blank(&change.stream, facts, links);
                notification.status = Status::Resolved;
                notification.severity = from.severity;
                notification.since_ms = from.since_ms.unwrap_or(at);
                let well = to.state == AlertState::Resolved;
                notification.resolve(at, if well { WELL } else { NOTHING_KNOWN });
                Some(notification)
            }
            _ => None,
        }
    }

    /// The notification of a firing alert.
    pub fn firing(id: &StreamId, facts: &Facts, at_ms: i64, links: Links) -> Notification {
        let mut notification = Notification::blank(id, facts, links);
        notification.at_ms = at_ms;
        notification.since_ms = facts.alert.since_ms.unwrap_or(at_ms);
        notification.key = key(
            &notification.fingerprint,
            at_ms,
            facts.alert.severity.as_str(),
        );
        notification
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
        self.what = why.to_owned();
        self.key = key(&self.fingerprint, at_ms, "resolved");
    }

    fn blank(id: &StreamId, facts: &Facts, links: Links) -> Notification {
        let window = &facts.window;
        let e = window.scores();
        let numbers = window.numbers.as_ref();
        let alarm = facts.detector.as_ref().and_then(|d| d.alarm.as_ref());
        let direction = match (alarm, e) {
            (Some(alarm), _) => Some(alarm.evidence.direction),
            (None, e) => e.map(|e| e.direction),
        };
        let tolerance = facts.evidence.as_ref();
        let tolerance = tolerance.map(|e| e.options.evaluation.tolerance.resolve(0.5));
        Notification {
            key: String::new(),
            fingerprint: id.fingerprint(),
            status: Status::Firing,
            severity: facts.alert.severity,
            was: None,
            at_ms: window.evaluated_at_ms,
            since_ms: window.evaluated_at_ms,
            model: id.model.clone(),
            version: id.version.clone(),
            segment: id.segment.clone(),
            view: id.view.to_string(),
            window: window.window.clone(),
            verdict: window.verdict.to_string(),
            what: direction.map_or("", |d| d.words()).to_owned(),
            direction: direction.map_or("", |d| d.as_str()).to_owned(),
            n: window.n,
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
            page: links.page,
            runbook: links.runbook,
        }
    }

    /// A notification to test the sinks with.
    pub fn trial(at_ms: i64, links: Links) -> Notification {
        let fingerprint = "0000000000000000".to_owned();
        Notification {
            key: key(&fingerprint, at_ms, "warn"),
            fingerprint,
            status: Status::Firing,
            severity: Severity::Warn,
            was: None,
            at_ms,
            since_ms: at_ms,
            model: "trueline-test".to_owned(),
            version: String::new(),
            segment: String::new(),
            view: "binary".to_owned(),
            window: "5m".to_owned(),
            verdict: "miscalibrated".to_owned(),
            what: "this is a test of `trueline alert test`; nothing is wrong".to_owned(),
            direction: "none".to_owned(),
            n: 0,
            ece: None,
            ece_lower: None,
            ece_upper: None,
            confidence: None,
            detectable: None,
            tolerance: None,
            p_value: None,
            mean_score: None,
            event_rate: None,
            onset_ms: None,
            log_evidence: None,
            page: links.page,
            runbook: links.runbook,
        }
    }

    /// `model/version/segment/view`.
    pub fn stream(&self) -> String {
        let Notification {
            model,
            version,
            segment,
            view,
            ..
        } = self;
        format!("{model}/{version}/{segment}/{view}")
    }

    /// Its labels, which routes and silences match.
    pub fn labels(&self) -> Labels {
        [
            self.model.clone(),
            self.version.clone(),
            self.segment.clone(),
            self.view.clone(),
            self.severity.as_str().to_owned(),
        ]
    }
}

/// The reason for resolving the alert of a stream that is calibrated again.
const WELL: &str = "calibrated again";
/// The reason for resolving the alert of a stream that no longer has a verdict.
const NOTHING_KNOWN: &str =
    "no verdict is possible any more; this does not mean that the model is calibrated";

fn key(fingerprint: &str, at_ms: i64, word: &str) -> String {
    format!("{fingerprint}-{at_ms}-{word}")
}

/// A time in UTC (RFC 3339); outside the years 1970 to 9999 a number.
pub fn moment(ms: i64) -> String {
    const YEAR_10000_MS: i64 = 253_402_300_800_000;
    match u64::try_from(ms) {
        Ok(positive) if ms < YEAR_10000_MS => {
            let moment = std::time::UNIX_EPOCH + std::time::Duration::from_millis(positive);
            humantime::format_rfc3339_millis(moment).to_string()
        }
        _ => format!("{ms} ms"),
    }
}

/// The JSON Schema of a notification as it is sent: its fields and the two configured texts.
pub fn schema() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let ms = |about: &str| json!({ "type": "integer", "description": about });
    let number = |about: &str| json!({ "type": ["number", "null"], "description": about });
    let one_of = |words: &[&str], about: &str| json!({ "enum": words, "description": about });
    let properties = json!({
        "key": text("Identifies the change. It is the same however often the change is sent."),
        "fingerprint": text("Identifies the alert. It is the same for all changes of the alert of one stream."),
        "status": one_of(&["firing", "resolved"], "Whether the alert fires or is resolved."),
        "severity": one_of(&["warn", "page"], "Severity; of a resolved alert, the last one."),
        "was": { "enum": ["warn", "page", null], "description": "The previous severity, if only the severity changed." },
        "at_ms": ms("Event time of the change, in ms since 1970."),
        "since_ms": ms("Event time at which it started to fire, in ms since 1970."),
        "model": text("Model."),
        "version": text("Version of the model, or empty."),
        "segment": text("Segment as k=v,k=v, or empty."),
        "view": text("View that is tested."),
        "window": text("Window that represents the stream. The numbers are those of this window."),
        "verdict": text("Verdict of the window."),
        "what": text("Direction of the error in words, or why the alert was resolved."),
        "direction": text("Direction as one word."),
        "n": { "type": "integer", "minimum": 0, "description": "Number of events." },
        "ece": number("Debiased l2-ECE; 0 if the estimate of its square is negative."),
        "ece_lower": number("Lower end of its interval."),
        "ece_upper": number("Upper end of its interval."),
        "confidence": number("Confidence of the interval."),
        "detectable": number("Smallest l2-ECE that the test detects with 80 % power at this n."),
        "tolerance": number("Tolerated l2-ECE."),
        "p_value": number("p-value of the test that decided."),
        "mean_score": number("Mean score."),
        "event_rate": number("Share of positive outcomes."),
        "onset_ms": { "type": ["integer", "null"], "description": "Event time at which the error started, as the detector estimates it, in ms since 1970." },
        "log_evidence": number("Log evidence of the detector's alarm."),
        "page": text("Address of the stream's page."),
        "runbook": text("Address of the runbook."),
        "summary": text("The configured one-line text."),
        "description": text("The configured text."),
    });
    let names = properties.as_object().map(|all| all.keys().cloned());
    let required: Vec<String> = names.into_iter().flatten().collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A change of a trueline alert",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
