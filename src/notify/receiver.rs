//! The receiver of a sink: all kinds behind one call.

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
pub enum Receiver {
    /// Logs what would be sent.
    Dry(Texts),
    /// An Alertmanager.
    Alertmanager(Alertmanager),
    /// A webhook.
    Webhook(Webhook),
    /// Slack.
    Slack(Slack),
    /// Microsoft Teams.
    Teams(Teams),
    /// PagerDuty.
    PagerDuty(PagerDuty),
    /// Opsgenie.
    Opsgenie(Opsgenie),
    /// A Kafka topic.
    Topic(Box<dyn TopicSink>, Texts, Duration),
}

impl Receiver {
    /// The receiver of these options. [`Kind::Kafka`] needs a `topic`.
    pub fn new(
        options: &SinkOptions,
        texts: &Texts,
        topic: Option<Box<dyn TopicSink>>,
    ) -> Result<Receiver, String> {
        if options.dry_run {
            return Ok(Receiver::Dry(texts.clone()));
        }
        Ok(match options.kind {
            Kind::Alertmanager => Receiver::Alertmanager(Alertmanager::new(options, texts)?),
            Kind::Webhook => Receiver::Webhook(Webhook::new(options, texts)?),
            Kind::Slack => Receiver::Slack(Slack::new(options, texts)?),
            Kind::Teams => Receiver::Teams(Teams::new(options, texts)?),
            Kind::PagerDuty => Receiver::PagerDuty(PagerDuty::new(options, texts)?),
            Kind::Opsgenie => Receiver::Opsgenie(Opsgenie::new(options, texts)?),
            Kind::Kafka => {
                let topic = topic.ok_or("no connection to the topic was provided")?;
                Receiver::Topic(topic, texts.clone(), options.timeout)
            }
        })
    }

    /// Sends one notification. Returns the response in one line.
    pub fn send(
        &mut self,
        sink: &str,
        notification: &Notification,
        now_ms: i64,
    ) -> Result<String, Failure> {
        match self {
            Receiver::Dry(texts) => {
                let body = body(notification, texts);
                tracing::info!(sink, body, "dry run: notification not sent");
                Ok("dry run, nothing was sent".to_owned())
            }
            Receiver::Alertmanager(it) => it.send(notification, now_ms),
            Receiver::Webhook(it) => it.send(notification, now_ms),
            Receiver::Slack(it) => it.send(notification),
            Receiver::Teams(it) => it.send(notification),
            Receiver::PagerDuty(it) => it.send(notification),
            Receiver::Opsgenie(it) => it.send(notification),
            Receiver::Topic(topic, texts, timeout) => {
                let body = body(notification, texts);
                let written = topic.write(&notification.fingerprint, &body, *timeout);
                written.map_err(Failure::Temporary)
            }
        }
    }

    /// Whether firing alerts must be sent again and again.
    pub fn needs_resend(&self) -> bool {
        matches!(self, Receiver::Alertmanager(_))
    }

    /// Sends the firing alerts again.
    pub fn resend(&mut self, firing: &[Notification], now_ms: i64) -> Result<String, Failure> {
        match self {
            Receiver::Alertmanager(it) => it.resend(firing, now_ms),
            _ => Ok(String::new()),
        }
    }
}
