//! Prometheus Alertmanager, by `POST /api/v2/alerts`.
//!
//! An Alertmanager drops an alert that is not refreshed: each alert carries `endsAt` and is over
//! then. So firing alerts are sent again at an interval, with an `endsAt` that lies [`AHEAD`]
//! intervals in the future. So alerts outlive a restart of this process and some failed posts. A
//! resolved alert is sent once, with the time of its resolution.
//!
//! Labels identify and annotations describe: a number among the labels would create a new alert
//! each time. Severity is a label because routes use it. An alert whose severity changes is
//! therefore two alerts for the Alertmanager; one post ends the first and starts the second.
//!
//! List each Alertmanager of a cluster as a separate sink, as for Prometheus.

use super::notification::{ALERT_NAME, Notification, Status};
use super::options::{SinkOptions, Texts};
use super::post::Post;
use super::receiver::{Failure, Receiver};
use crate::alert::Severity;
use crate::report::moment::rfc3339_millis;
use serde_json::{Map, Value, json};

/// Intervals until `endsAt`. Prometheus uses four as well (`rules/alerting.go`).
const AHEAD: i64 = 4;
/// Most alerts in one resend: about 200 kB, below the limit of any proxy. If one request had all
/// alerts and a proxy refused it, all would end.
const RESENT_MAX: usize = 64;

/// An Alertmanager.
pub struct Alertmanager {
    post: Post,
    texts: Texts,
    ahead_ms: i64,
}

impl Alertmanager {
    /// The Alertmanager of these options.
    pub fn new(options: &SinkOptions, texts: &Texts) -> Result<Alertmanager, String> {
        let url = format!("{}/api/v2/alerts", options.address.trim_end_matches('/'));
        let every = i64::try_from(options.resend.as_millis()).unwrap_or(i64::MAX);
        Ok(Alertmanager {
            post: Post::new(options, url)?,
            texts: texts.clone(),
            ahead_ms: every.saturating_mul(AHEAD),
        })
    }

    fn alert(&self, notification: &Notification, now_ms: i64) -> Value {
        let ends_ms = match notification.status {
            Status::Firing => now_ms.saturating_add(self.ahead_ms),
            // Event time may be ahead of this machine's clock, and an end in the future would not
            // resolve.
            Status::Resolved => notification.at_ms.min(now_ms),
        };
        json!({
            "labels": labels(notification, notification.severity),
            "annotations": self.annotations(notification),
            "startsAt": rfc3339_millis(notification.since_ms.min(ends_ms)),
            "endsAt": rfc3339_millis(ends_ms),
            "generatorURL": notification.page,
        })
    }

    fn annotations(&self, notification: &Notification) -> Value {
        let number = |x: Option<f64>| x.map(|x| json!(x.to_string())).unwrap_or_default();
        let all = [
            ("summary", json!(self.texts.summary.fill(notification))),
            (
                "description",
                json!(self.texts.description.fill(notification)),
            ),
            ("runbook_url", json!(notification.runbook)),
            ("window", json!(notification.window)),
            ("what", json!(notification.what)),
            ("n", json!(notification.n.to_string())),
            ("error", json!(notification.error.map(|e| e.to_string()))),
            ("ece", number(notification.ece)),
            ("ece_lower", number(notification.ece_lower)),
            ("ece_upper", number(notification.ece_upper)),
            ("detectable", number(notification.detectable)),
            ("fingerprint", json!(notification.fingerprint)),
            ("key", json!(notification.key)),
            ("streams", json!(notification.streams_in_words())),
            ("evidence", json!(notification.evidence)),
        ];
        let present = all.into_iter().filter(|(_, v)| !v.is_null());
        Value::Object(present.map(|(k, v)| (k.to_owned(), v)).collect())
    }
}

impl Receiver for Alertmanager {
    fn send(&mut self, notification: &Notification, now_ms: i64) -> Result<String, Failure> {
        let mut alerts = Vec::new();
        if let Some(was) = notification.was {
            let before = Notification {
                status: Status::Resolved,
                severity: was,
                ..notification.clone()
            };
            alerts.push(self.alert(&before, now_ms));
        }
        alerts.push(self.alert(notification, now_ms));
        self.post.json(&Value::Array(alerts).to_string(), &[])
    }

    fn needs_resend(&self) -> bool {
        true
    }

    fn resend(&mut self, firing: &[Notification], now_ms: i64) -> Result<String, Failure> {
        let mut result = Ok(String::new());
        for some in firing.chunks(RESENT_MAX) {
            let alerts = some.iter().map(|n| self.alert(n, now_ms));
            let alerts = Value::Array(alerts.collect());
            match self.post.json(&alerts.to_string(), &[]) {
                Ok(said) if result.is_ok() => result = Ok(said),
                Ok(_) => {}
                // The other requests may be accepted.
                Err(refused) if refused.is_permanent() => result = Err(refused),
                Err(failed) => return Err(failed),
            }
        }
        result
    }
}

/// The labels that are not empty; an Alertmanager would drop empty ones.
fn labels(notification: &Notification, severity: Severity) -> Value {
    let all = [
        ("alertname", ALERT_NAME),
        ("model", &notification.model),
        ("version", &notification.version),
        ("segment", &notification.segment),
        ("view", &notification.view),
        ("severity", severity.as_str()),
    ];
    let present = all.into_iter().filter(|(_, value)| !value.is_empty());
    let labels: Map<String, Value> = present.map(|(k, v)| (k.to_owned(), json!(v))).collect();
    Value::Object(labels)
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::tests::{firing, options};
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread;

    /// Resends this many alerts to a server that answers with these statuses in turn. Returns the
    /// result, and how many alerts each request had.
    fn resent(alerts: u8, statuses: &'static [u16]) -> (Result<String, Failure>, Vec<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let server = thread::spawn(move || {
            let mut sizes = Vec::new();
            for status in statuses {
                let (stream, _) = listener.accept().expect("a client");
                let mut reader = BufReader::new(stream);
                let (mut length, mut line) = (0, String::new());
                while line != "\r\n" {
                    line.clear();
                    reader.read_line(&mut line).expect("a head");
                    let lower = line.to_lowercase();
                    if let Some(text) = lower.strip_prefix("content-length:") {
                        length = text.trim().parse().expect("a length");
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).expect("a body");
                let all: Vec<Value> = serde_json::from_slice(&body).expect("a list");
                sizes.push(all.len());
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                );
                reader
                    .get_mut()
                    .write_all(head.as_bytes())
                    .expect("it listens");
            }
            sizes
        });
        let mut options = options(&["a"]);
        let sink = &mut options.sinks[0];
        (sink.kind, sink.address) = (Kind::Alertmanager, format!("http://{address}"));
        let mut receiver = Alertmanager::new(sink, &options.texts).expect("a client");
        let all: Vec<Notification> = (0..alerts).map(|i| firing(i, 1)).collect();
        let ended = receiver.resend(&all, 2);
        (ended, server.join().expect("no panic"))
    }

    #[test]
    fn alerts_are_sent_again_a_few_at_a_time_and_a_refusal_is_about_those_alone() {
        let (ended, sizes) = resent(200, &[200, 413, 200, 200]);
        assert!(ended.is_err_and(|failure| failure.is_permanent()));
        assert_eq!(sizes, [64, 64, 64, 8]);
        // After a temporary failure, the rest waits.
        let (ended, sizes) = resent(200, &[200, 503]);
        assert!(ended.is_err_and(|failure| !failure.is_permanent()));
        assert_eq!(sizes, [64, 64]);
        let (ended, sizes) = resent(65, &[200, 200]);
        assert!(ended.is_ok() && sizes == [64, 1]);
    }
}
