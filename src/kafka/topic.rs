//! A topic for alerts: one record at a time, each acknowledged before the next.
//!
//! [`Topic::write`] blocks until the brokers respond or the timeout ends, so it needs a thread of
//! its own. A record that times out has left the queue of the client, so a retry does not duplicate
//! a record that still waits. A record whose acknowledgement is lost is written twice; readers
//! recognise it by its content.

use super::rebootstrap::Rebootstrap;
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

/// Partition and offset of a record, or why it was not written.
type Written = Result<(i32, i64), String>;

/// Wait beyond the client's own timeout, which normally ends the wait.
const SLACK: Duration = Duration::from_secs(5);

/// A topic to write to.
pub struct Topic {
    producer: ThreadedProducer<Deliveries>,
    topic: String,
    timeout: Duration,
}

struct Deliveries {
    token: TokenFile,
    rebootstrap: Rebootstrap,
}

impl ClientContext for Deliveries {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.token.token()
    }

    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "librdkafka, alerts");
    }

    fn error(&self, error: Native, reason: &str) {
        self.rebootstrap.on_error(&error);
        // The consumer reports the same error; records that are not written are counted.
        tracing::debug!(%error, reason, "alerts topic");
    }
}

impl ProducerContext<NoCustomPartitioner> for Deliveries {
    type DeliveryOpaque = Box<SyncSender<Written>>;

    fn delivery(&self, result: &DeliveryResult<'_>, reply: Self::DeliveryOpaque) {
        let written = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.to_string()),
        };
        // The writer may have given up.
        let _ = reply.try_send(written);
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
            // Reconnect within a second after the brokers are back.
            .set("reconnect.backoff.max.ms", "1000");
        let producer = config
            .create_with_context(Deliveries {
                token: options.token(),
                rebootstrap: options.rebootstrap(),
            })
            .map_err(KafkaError::from_native)?;
        Ok(Topic {
            producer,
            topic: topic.to_owned(),
            timeout,
        })
    }

    /// Writes one record and waits until the brokers have it.
    pub fn write(&self, key: &str, value: &str) -> Written {
        let client = self.producer.client();
        client.context().rebootstrap.run_due(client);
        let (reply, written) = sync_channel(1);
        let record = BaseRecord::with_opaque_to(&self.topic, Box::new(reply));
        let sent = self.producer.send(record.key(key).payload(value));
        sent.map_err(|(error, _)| error.to_string())?;
        let within = self.timeout.max(Duration::from_secs(1)) + SLACK;
        written
            .recv_timeout(within)
            .unwrap_or_else(|_| Err(format!("no response from the brokers within {within:?}")))
    }
}
