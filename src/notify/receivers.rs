//! Makes receivers by kind, and holds those that need no file of their own.

use super::alertmanager::Alertmanager;
use super::notification::Notification;
use super::opsgenie::Opsgenie;
use super::options::{Kind, SinkOptions, Texts};
use super::pagerduty::PagerDuty;
use super::post::Post;
use super::receiver::{Failure, Receiver, TopicSink};
use super::webhook::{Webhook, body};
use super::{slack, teams};
use serde_json::Value;

/// The receiver of these options. [`Kind::Kafka`] needs a `topic`.
pub fn of(
    options: &SinkOptions,
    texts: &Texts,
    topic: Option<TopicSink>,
) -> Result<Box<dyn Receiver>, String> {
    if options.dry_run {
        return Ok(Box::new(Dry {
            sink: options.name.clone(),
            texts: texts.clone(),
        }));
    }
    let hook = |message: Message| -> Result<Box<dyn Receiver>, String> {
        Ok(Box::new(Hook {
            post: Post::new(options, options.address.clone())?,
            texts: texts.clone(),
            message,
        }))
    };
    Ok(match options.kind {
        Kind::Alertmanager => Box::new(Alertmanager::new(options, texts)?),
        Kind::Webhook => Box::new(Webhook::new(options, texts)?),
        Kind::Slack => hook(slack::message)?,
        Kind::Teams => hook(teams::message)?,
        Kind::PagerDuty => Box::new(PagerDuty::new(options, texts)?),
        Kind::Opsgenie => Box::new(Opsgenie::new(options, texts)?),
        Kind::Kafka => {
            let topic = topic.ok_or("no connection to the topic was provided")?;
            Box::new(Records(topic, texts.clone()))
        }
    })
}

/// Logs what would be sent.
struct Dry {
    sink: String,
    texts: Texts,
}

impl Receiver for Dry {
    fn send(&mut self, n: &Notification, _: i64) -> Result<String, Failure> {
        let body = body(n, &self.texts);
        tracing::info!(sink = self.sink, body, "dry run: notification not sent");
        Ok("dry run, nothing was sent".to_owned())
    }
}

/// A Kafka topic.
struct Records(TopicSink, Texts);

impl Receiver for Records {
    fn send(&mut self, n: &Notification, _: i64) -> Result<String, Failure> {
        let written = (self.0)(&n.fingerprint, &body(n, &self.1));
        written.map_err(Failure::Temporary)
    }
}

/// Makes the message of a hook.
type Message = fn(&Notification, &Texts) -> Value;

/// A hook of Slack or Teams: one POST of a message.
struct Hook {
    post: Post,
    texts: Texts,
    message: Message,
}

impl Receiver for Hook {
    fn send(&mut self, n: &Notification, _: i64) -> Result<String, Failure> {
        let message = (self.message)(n, &self.texts).to_string();
        self.post.json(&message, &[])
    }
}
