//! A topic that is written to one record at a time, each acknowledged before the next: for alerts.
//!
//! [`Topic::write`] waits for the brokers' answer, for no longer than the timeout, and is meant for a thread that has nothing else to do.
//! A record whose time ran out has left the client's queue, so the next try is not a second copy of one that still waits; one whose
//! acknowledgement was lost on the way is written twice, and readers know it by its content.

use super::lifeline::Lifeline;
use super::token::TokenFile;
use super::{KafkaError, KafkaOptions};
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError as Native;
use rdkafka::message::Message;
use rdkafka::producer::{
    BaseRecord, DeliveryResult, NoCustomPartitioner, Producer, ProducerContext, ThreadedProducer,
};
use std::error::Error;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// What became of a record: partition and offset, or why not.
type Answer = Result<(i32, i64), String>;

/// Longer than the client's own timeout, which answers by itself.
const SLACK: Duration = Duration::from_secs(5);

/// A topic to write to. See the module.
pub struct Topic {
    producer: ThreadedProducer<Answers>,
    topic: String,
    timeout: Duration,
}

struct Answers(TokenFile, Lifeline);

impl ClientContext for Answers {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.0.token()
    }

    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "librdkafka, alerts");
    }

    fn error(&self, error: Native, reason: &str) {
        self.1.note(&error);
        // The consumer tells the same of the same brokers; what is not written is counted.
        tracing::debug!(%error, reason, "alerts topic");
    }
}

impl ProducerContext<NoCustomPartitioner> for Answers {
    type DeliveryOpaque = Box<SyncSender<Answer>>;

    fn delivery(&self, result: &DeliveryResult<'_>, asker: Self::DeliveryOpaque) {
        let answer = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.to_string()),
        };
        // Who asked may have given up.
        let _ = asker.try_send(answer);
    }
}

impl Topic {
    /// A producer for this topic.
    pub fn new(
        options: &KafkaOptions,
        topic: &str,
        timeout: Duration,
    ) -> Result<Topic, KafkaError> {
        let mut config = options.producer_config();
        config
            .set("linger.ms", "0")
            .set("enable.idempotence", "true")
            .set(
                "message.timeout.ms",
                timeout.as_millis().max(1_000).to_string(),
            )
            // Brokers that are back are found within a second.
            .set("reconnect.backoff.max.ms", "1000");
        let producer = config
            .create_with_context(Answers(options.token(), options.lifeline()))
            .map_err(KafkaError::from_native)?;
        Ok(Topic {
            producer,
            topic: topic.to_owned(),
            timeout,
        })
    }

    /// Writes one record and waits until the brokers have it.
    pub fn write(&self, key: &str, value: &str) -> Answer {
        let client = self.producer.client();
        client.context().1.hold(client);
        let (asker, answer) = sync_channel(1);
        let record = BaseRecord::with_opaque_to(&self.topic, Box::new(asker));
        let sent = self.producer.send(record.key(key).payload(value));
        sent.map_err(|(error, _)| error.to_string())?;
        let within = self.timeout.max(Duration::from_secs(1)) + SLACK;
        match answer.recv_timeout(within) {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer from the brokers within {within:?}")),
        }
    }
}
