//! What people are told: one change of one alert, with all that was known at that moment.
//!
//! As JSON this is the body of a webhook and the value of a record on the alerts topic, described by
//! `deploy/alert.schema.json` ([`schema`]). A number that is undefined is null. Times are milliseconds since
//! 1970 in event time, as the sums that they belong to.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::alert::{AlertState, Labels, Severity};
use crate::judge::{Change, Facts, Numbers, Step, StreamId};

/// Name of the alert at those who know alerts by name.
pub const ALERT_NAME: &str = "TruelineMiscalibrated";

/// Whether the alert fires or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It fires.
    Firing,
    /// It has ended.
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
pub struct Notice {
    /// The change: the same for the same change, however often it is told.
    pub key: String,
    /// The alert: the same for all changes of one stream's alert.
    pub fingerprint: String,
    /// Fires, or has ended.
    pub status: Status,
    /// How much it asks for; of one that has ended, how much it asked for last.
    pub severity: Severity,
    /// The severity told before, where that is all that changed.
    pub was: Option<Severity>,
    /// When it changed.
    pub at_ms: i64,
    /// Since when it fires, or fired.
    pub since_ms: i64,
    /// The model.
    pub model: String,
    /// Its version, or "".
    pub version: String,
    /// The segment, or "".
    pub segment: String,
    /// What is tested.
    pub view: String,
    /// The window that speaks for the stream; the numbers are its.
    pub window: String,
    /// Its verdict.
    pub verdict: String,
    /// Why, in words: the direction of the error, or why the alert ended.
    pub what: String,
    /// The direction as one word.
    pub direction: String,
    /// Number of events.
    pub n: u64,
    /// Debiased ℓ2-ECE, 0 where its square is estimated below 0.
    pub ece: Option<f64>,
    /// Lower end of its interval.
    pub ece_lower: Option<f64>,
    /// Upper end of its interval.
    pub ece_upper: Option<f64>,
    /// Confidence of the interval.
    pub confidence: Option<f64>,
    /// Smallest ℓ2-ECE that this many events would have shown with 80 % power.
    pub detectable: Option<f64>,
    /// ℓ2-ECE that is tolerated.
    pub tolerance: Option<f64>,
    /// p-value of the test that decided.
    pub p_value: Option<f64>,
    /// Mean score.
    pub mean_score: Option<f64>,
    /// Share of positive outcomes.
    pub event_rate: Option<f64>,
    /// When the error began, as the detector estimates it, where one alarms.
    pub onset_ms: Option<i64>,
    /// Log evidence of its alarm.
    pub log_evidence: Option<f64>,
    /// Address of the stream's page.
    pub page: String,
    /// Address of the runbook.
    pub runbook: String,
}

/// Where people read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    /// The stream's page.
    pub page: String,
    /// The runbook.
    pub runbook: String,
}

impl Notice {
    /// What is to be told of a change, if anything.
    pub fn of(change: &Change, links: Links) -> Option<Notice> {
        let (Step::Stream { from, to }, Some(facts)) = (change.step, &change.facts) else {
            return None;
        };
        let at = change.at_ms;
        match (from.state, to.state) {
            (_, AlertState::Firing) => Some(Notice::firing(&change.stream, facts, at, links)),
            (AlertState::Firing, _) => {
                let mut notice = Notice::blank(&change.stream, facts, links);
                notice.status = Status::Resolved;
                notice.severity = from.severity;
                notice.since_ms = from.since_ms.unwrap_or(at);
                let well = to.state == AlertState::Resolved;
                notice.ends(at, if well { WELL } else { NOTHING_KNOWN });
                Some(notice)
            }
            _ => None,
        }
    }

    /// The notice of an alert that fires.
    pub fn firing(id: &StreamId, facts: &Facts, at_ms: i64, links: Links) -> Notice {
        let mut notice = Notice::blank(id, facts, links);
        notice.at_ms = at_ms;
        notice.since_ms = facts.alert.since_ms.unwrap_or(at_ms);
        notice.key = key(&notice.fingerprint, at_ms, facts.alert.severity.as_str());
        notice
    }

    /// The notice that this alert is over, for a reason of ours.
    #[must_use]
    pub fn ended(&self, at_ms: i64, why: &str) -> Notice {
        let mut notice = self.clone();
        notice.status = Status::Resolved;
        notice.was = None;
        notice.ends(at_ms, why);
        notice
    }

    fn ends(&mut self, at_ms: i64, why: &str) {
        self.at_ms = at_ms;
        self.what = why.to_owned();
        self.key = key(&self.fingerprint, at_ms, "resolved");
    }

    fn blank(id: &StreamId, facts: &Facts, links: Links) -> Notice {
        let window = &facts.window;
        let e = window.scores();
        let numbers = window.numbers.as_ref();
        let alarm = facts.detector.as_ref().and_then(|d| d.alarm.as_ref());
        let direction = match (alarm, e) {
            (Some(alarm), _) => Some(alarm.evidence.direction),
            (None, e) => e.map(|e| e.direction),
        };
        let tolerance = facts.evidence.as_ref().map(|e| e.options.tolerance);
        Notice {
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
            ece_upper: numbers.and_then(Numbers::upper),
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

    /// A notice for a trial of the sinks.
    pub fn trial(at_ms: i64, links: Links) -> Notice {
        let fingerprint = "0000000000000000".to_owned();
        Notice {
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
        let Notice {
            model,
            version,
            segment,
            view,
            ..
        } = self;
        format!("{model}/{version}/{segment}/{view}")
    }

    /// Its labels, by which it is routed and silenced.
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

/// Why an alert ended whose stream is calibrated again.
const WELL: &str = "calibrated again";
/// Why one ended whose stream has no verdict any more.
const NOTHING_KNOWN: &str = "no verdict can be given any more; nobody showed that it is well";

fn key(fingerprint: &str, at_ms: i64, word: &str) -> String {
    format!("{fingerprint}-{at_ms}-{word}")
}

/// A moment as people read it, in UTC; outside the years 1970 to 9999 a number.
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

/// The JSON Schema of a notice as it leaves: its fields, and the two texts that are made of them.
pub fn schema() -> Value {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let ms = |about: &str| json!({ "type": "integer", "description": about });
    let number = |about: &str| json!({ "type": ["number", "null"], "description": about });
    let one_of = |words: &[&str], about: &str| json!({ "enum": words, "description": about });
    let properties = json!({
        "key": text("The change: the same for the same change, however often it is told."),
        "fingerprint": text("The alert: the same for all changes of one stream's alert."),
        "status": one_of(&["firing", "resolved"], "Whether it fires or has ended."),
        "severity": one_of(&["warn", "page"], "How much it asks for; of one that has ended, what it asked for last."),
        "was": { "enum": ["warn", "page", null], "description": "The severity told before, where that is what changed." },
        "at_ms": ms("Event time of the change, milliseconds since 1970."),
        "since_ms": ms("Event time since which it fires, or fired."),
        "model": text("Model."),
        "version": text("Version of the model, or empty."),
        "segment": text("Segment as k=v,k=v, or empty."),
        "view": text("What is tested."),
        "window": text("The window that speaks for the stream; the numbers are its."),
        "verdict": text("Its verdict."),
        "what": text("The direction of the error in words, or why the alert ended."),
        "direction": text("The direction as one word."),
        "n": { "type": "integer", "minimum": 0, "description": "Number of events." },
        "ece": number("Debiased l2-ECE, 0 where its square is estimated below 0."),
        "ece_lower": number("Lower end of its interval."),
        "ece_upper": number("Upper end of its interval."),
        "confidence": number("Confidence of the interval."),
        "detectable": number("Smallest l2-ECE that this many events would have shown with 80 % power."),
        "tolerance": number("l2-ECE that is tolerated."),
        "p_value": number("p-value of the test that decided."),
        "mean_score": number("Mean score."),
        "event_rate": number("Share of positive outcomes."),
        "onset_ms": { "type": ["integer", "null"], "description": "When the error began, as the detector estimates it." },
        "log_evidence": number("Log evidence of the detector's alarm."),
        "page": text("Address of the stream's page."),
        "runbook": text("Address of the runbook."),
        "summary": text("One line, by the configured template."),
        "description": text("The configured text."),
    });
    let names = properties.as_object().map(|all| all.keys().cloned());
    let required: Vec<String> = names.into_iter().flatten().collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A change of an alert of trueline",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
