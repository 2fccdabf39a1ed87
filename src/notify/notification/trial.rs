//! The notification that tests sinks.

use super::{Links, Notification};

impl Notification {
    /// A notification to test the sinks with.
    pub fn trial(at_ms: i64, links: Links) -> Notification {
        let mut trial = Notification {
            fingerprint: "0000000000000000".to_owned(),
            alert: "trueline-test".to_owned(),
            at_ms,
            since_ms: at_ms,
            bad_ms: Some(at_ms),
            model: "trueline-test".to_owned(),
            stream: "trueline-test///binary".to_owned(),
            streams_firing: 1,
            window: "5m".to_owned(),
            verdict: "miscalibrated".to_owned(),
            what: "this is a test of `trueline alert test`; nothing is wrong".to_owned(),
            direction: "none".to_owned(),
            evidence: "a test has no numbers".to_owned(),
            page: links.page,
            runbook: links.runbook,
            ..Notification::default()
        };
        trial.name_change();
        trial
    }
}
