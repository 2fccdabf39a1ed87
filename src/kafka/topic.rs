//! A topic for alerts: one record at a time, each acknowledged before the next.
//!
//! [`Topic::write`] blocks until the brokers respond or the timeout ends, so it needs a thread of
//! its own. A record that times out has left the queue of the client, so a retry does not duplicate
//! a record that still waits. A record whose acknowledgement is lost is written twice; readers
//! recognise it by its content.

use super::client_callbacks::{OnDelivery, Written};
use super::producer::IdempotentProducer;
use super::{KafkaError, KafkaOptions};
use rdkafka::producer::BaseRecord;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Wait beyond the client's own timeout, which normally ends the wait.
const SLACK: Duration = Duration::from_secs(5);

/// A topic to write to.
pub struct Topic {
    producer: IdempotentProducer,
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
            .set(
                "message.timeout.ms",
                timeout.as_millis().max(1_000).to_string(),
            )
            // Reconnect within a second after the brokers are back.
            .set("reconnect.backoff.max.ms", "1000");
        Ok(Topic {
            producer: IdempotentProducer::new("alerts topic", config, options)?,
            topic: topic.to_owned(),
            timeout,
        })
    }

    /// Writes one record and waits until the brokers have it.
    pub fn write(&self, key: &str, value: &str) -> Result<(i32, i64), String> {
        self.producer.renew().map_err(|error| error.to_string())?;
        let (reply, written) = sync_channel(1);
        let on_delivery: OnDelivery = Box::new(move |written: Written| {
            // The writer may have given up.
            let _ = reply.try_send(written);
        });
        let record = BaseRecord::with_opaque_to(&self.topic, Box::new(on_delivery));
        let sent = self.producer.client().send(record.key(key).payload(value));
        sent.map_err(|(error, _)| error.to_string())?;
        let within = self.timeout.max(Duration::from_secs(1)) + SLACK;
        written
            .recv_timeout(within)
            .unwrap_or_else(|_| Err(format!("no response from the brokers within {within:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::mock::broker;
    use rdkafka::producer::Producer;
    use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
    use std::time::Instant;

    #[test]
    fn a_topic_whose_client_has_ended_is_written_to() {
        let (mock, options) = broker("alerts");
        // What a broker says to a user who may write nowhere.
        let denied = RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
        mock.request_errors(RDKafkaApiKey::InitProducerId, &[denied]);
        let topic = Topic::new(&options, "alerts", Duration::from_secs(30)).expect("a client");
        let begun = Instant::now();
        while topic.producer.client().client().fatal_error().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(topic.write("k", "v"), Ok((0, 0)));
    }
}
