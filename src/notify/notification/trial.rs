//! The notification that tests sinks.

use super::{Links, Notification, Status};
use crate::alert::Severity;

impl Notification {
    /// A notification to test the sinks with.
    pub fn trial(at_ms: i64, links: Links) -> Notification {
        let mut trial = Notification {
            key: String::new(),
            fingerprint: "0000000000000000".to_owned(),
            alert: "trueline-test".to_owned(),
            status: Status::Firing,
            severity: Severity::Warn,
            was: None,
            earlier: Vec::new(),
            at_ms,
            since_ms: at_ms,
            bad_ms: Some(at_ms),
            model: "trueline-test".to_owned(),
            version: String::new(),
            segment: String::new(),
            view: String::new(),
            stream: "trueline-test///binary".to_owned(),
            streams_firing: 1,
            streams: Vec::new(),
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
            residual_lower: None,
            residual_upper: None,
            evidence: "a test has no numbers".to_owned(),
            deployment: None,
            record: String::new(),
            page: links.page,
            runbook: links.runbook,
            labels: Vec::new(),
            joined: false,
        };
        trial.name_change();
        trial
    }
}
