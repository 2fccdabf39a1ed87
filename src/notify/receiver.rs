//! Who takes notices: the four kinds behind one call.

use super::alertmanager::Alertmanager;
use super::notice::Notice;
use super::options::{Kind, SinkOptions, Texts};
use super::slack::Slack;
use super::webhook::{Webhook, body};
use std::fmt;
use std::time::Duration;

/// Why a notice was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may be taken another time.
    Later(String),
    /// It never will be.
    Never(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Later(why) | Failure::Never(why)) = self;
        f.write_str(why)
    }
}

/// Writes a record to a topic, and waits until the brokers have it. Handed in by the application, since who knows Kafka and who
/// knows alerts do not know one another.
pub trait Carrier: Send {
    /// Answers where it is, or why it is not.
    fn carry(&mut self, key: &str, body: &str, timeout: Duration) -> Result<String, String>;
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
    /// A topic.
    Topic(Box<dyn Carrier>, Texts, Duration),
}

impl Receiver {
    /// One of these options; `carrier` is needed for [`Kind::Kafka`].
    pub fn new(
        options: &SinkOptions,
        texts: &Texts,
        carrier: Option<Box<dyn Carrier>>,
    ) -> Result<Receiver, String> {
        if options.dry_run {
            return Ok(Receiver::Dry(texts.clone()));
        }
        Ok(match options.kind {
            Kind::Alertmanager => Receiver::Alertmanager(Alertmanager::new(options, texts)?),
            Kind::Webhook => Receiver::Webhook(Webhook::new(options, texts)?),
            Kind::Slack => Receiver::Slack(Slack::new(options, texts)?),
            Kind::Kafka => {
                let carrier = carrier.ok_or("no way to the topic was handed in")?;
                Receiver::Topic(carrier, texts.clone(), options.timeout)
            }
        })
    }

    /// Tells one notice; answers what came back in a line.
    pub fn tell(&mut self, sink: &str, notice: &Notice, now_ms: i64) -> Result<String, Failure> {
        match self {
            Receiver::Dry(texts) => {
                let body = body(notice, texts);
                tracing::info!(sink, body, "dry run: this would be sent");
                Ok("dry run, nothing was sent".to_owned())
            }
            Receiver::Alertmanager(it) => it.tell(notice, now_ms),
            Receiver::Webhook(it) => it.tell(notice, now_ms),
            Receiver::Slack(it) => it.tell(notice),
            Receiver::Topic(carrier, texts, timeout) => {
                let body = body(notice, texts);
                let carried = carrier.carry(&notice.fingerprint, &body, *timeout);
                carried.map_err(Failure::Later)
            }
        }
    }

    /// Whether what still fires must be said again and again.
    pub fn forgets(&self) -> bool {
        matches!(self, Receiver::Alertmanager(_))
    }

    /// Says again what fires.
    pub fn remind(&mut self, firing: &[Notice], now_ms: i64) -> Result<String, Failure> {
        match self {
            Receiver::Alertmanager(it) => it.remind(firing, now_ms),
            _ => Ok(String::new()),
        }
    }
}
