//! The receiver of a sink: all kinds behind one trait.

use super::alertmanager::Alertmanager;
use super::failure::Failure;
use super::notification::Notification;
use super::opsgenie::Opsgenie;
use super::options::{Kind, SinkOptions, Texts};
use super::pagerduty::PagerDuty;
use super::slack::Slack;
use super::teams::Teams;
use super::webhook::{Webhook, body};
use std::time::Duration;

/// Writes records to a topic. The application provides it, because the edges for Kafka and for
/// alerts do not know each other.
pub trait TopicSink: Send {
    /// Writes one record and waits for the brokers. Returns its position, or why it was not
    /// written.
    fn write(&mut self, key: &str, body: &str, timeout: Duration) -> Result<String, String>;
}

/// One receiver.
pub trait Receiver: Send {
    /// Sends one notification. Returns the response in one line.
    fn send(
        &mut self,
        sink: &str,
        notification: &Notification,
        now_ms: i64,
    ) -> Result<String, Failure>;

    /// Whether firing alerts must be sent again and again.
    fn needs_resend(&self) -> bool {
        false
    }

    /// Sends the firing alerts again.
    fn resend(&mut self, _firing: &[Notification], _now_ms: i64) -> Result<String, Failure> {
        Ok(String::new())
    }
}

/// The receiver of these options. [`Kind::Kafka`] needs a `topic`.
pub fn of(
    options: &SinkOptions,
    texts: &Texts,
    topic: Option<Box<dyn TopicSink>>,
) -> Result<Box<dyn Receiver>, String> {
    if options.dry_run {
        return Ok(Box::new(Dry(texts.clone())));
    }
    Ok(match options.kind {
        Kind::Alertmanager => Box::new(Alertmanager::new(options, texts)?),
        Kind::Webhook => Box::new(Webhook::new(options, texts)?),
        Kind::Slack => Box::new(Slack::new(options, texts)?),
        Kind::Teams => Box::new(Teams::new(options, texts)?),
        Kind::PagerDuty => Box::new(PagerDuty::new(options, texts)?),
        Kind::Opsgenie => Box::new(Opsgenie::new(options, texts)?),
        Kind::Kafka => {
            let topic = topic.ok_or("no connection to the topic was provided")?;
            Box::new(Records(topic, texts.clone(), options.timeout))
        }
    })
}

/// Logs what would be sent.
struct Dry(Texts);

impl Receiver for Dry {
    fn send(&mut self, sink: &str, n: &Notification, _: i64) -> Result<String, Failure> {
        let body = body(n, &self.0);
        tracing::info!(sink, body, "dry run: notification not sent");
        Ok("dry run, nothing was sent".to_owned())
    }
}

/// A Kafka topic, with the timeout of a write.
struct Records(Box<dyn TopicSink>, Texts, Duration);

impl Receiver for Records {
    fn send(&mut self, _: &str, n: &Notification, _: i64) -> Result<String, Failure> {
        let written = self.0.write(&n.fingerprint, &body(n, &self.1), self.2);
        written.map_err(Failure::Temporary)
    }
}

impl Receiver for Alertmanager {
    fn send(&mut self, _: &str, n: &Notification, now_ms: i64) -> Result<String, Failure> {
        Alertmanager::send(self, n, now_ms)
    }

    fn needs_resend(&self) -> bool {
        true
    }

    fn resend(&mut self, firing: &[Notification], now_ms: i64) -> Result<String, Failure> {
        Alertmanager::resend(self, firing, now_ms)
    }
}

impl Receiver for Webhook {
    fn send(&mut self, _: &str, n: &Notification, now_ms: i64) -> Result<String, Failure> {
        Webhook::send(self, n, now_ms)
    }
}

impl Receiver for Slack {
    fn send(&mut self, _: &str, n: &Notification, _: i64) -> Result<String, Failure> {
        Slack::send(self, n)
    }
}

impl Receiver for Teams {
    fn send(&mut self, _: &str, n: &Notification, _: i64) -> Result<String, Failure> {
        Teams::send(self, n)
    }
}

impl Receiver for PagerDuty {
    fn send(&mut self, _: &str, n: &Notification, _: i64) -> Result<String, Failure> {
        PagerDuty::send(self, n)
    }
}

impl Receiver for Opsgenie {
    fn send(&mut self, _: &str, n: &Notification, _: i64) -> Result<String, Failure> {
        Opsgenie::send(self, n)
    }
}
