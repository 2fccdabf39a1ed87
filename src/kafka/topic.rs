//! A topic for alerts: one record at a time, each acknowledged before the next.
//!
//! [`Topic::write`] blocks until the brokers respond or the timeout ends, so it needs a thread of
//! its own. A record that times out has left the queue of the client, so a retry does not duplicate
//! a record that still waits. A record whose acknowledgement is lost is written twice; readers
//! recognise it by its content.

use super::quiet::{Quiet, Then, Written};
use super::{KafkaError, KafkaOptions};
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Wait beyond the client's own timeout, which normally ends the wait.
const SLACK: Duration = Duration::from_secs(5);

/// A topic to write to.
pub struct Topic {
    producer: ThreadedProducer<Quiet>,
    topic: String,
    timeout: Duration,
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
        Ok(Topic {
            producer: Quiet::client("alerts topic", &config, options)?,
            topic: topic.to_owned(),
            timeout,
        })
    }

    /// Writes one record and waits until the brokers have it.
    pub fn write(&self, key: &str, value: &str) -> Result<(i32, i64), String> {
        Quiet::rebootstrap(self.producer.client());
        let (reply, written) = sync_channel(1);
        let then: Then = Box::new(move |written: Written| {
            // The writer may have given up.
            let _ = reply.try_send(written);
        });
        let record = BaseRecord::with_opaque_to(&self.topic, Box::new(then));
        let sent = self.producer.send(record.key(key).payload(value));
        sent.map_err(|(error, _)| error.to_string())?;
        let within = self.timeout.max(Duration::from_secs(1)) + SLACK;
        written
            .recv_timeout(within)
            .unwrap_or_else(|_| Err(format!("no response from the brokers within {within:?}")))
    }
}
