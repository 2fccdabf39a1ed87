//! The dead-letter topic, for records that could not be decoded.
//!
//! A dead letter is the original record with key, value and headers unchanged, including a null
//! value and null headers; a header name that is not UTF-8 is empty. Additional headers describe
//! the failure, so that a program that does not know this one can repair and resend it:
//!
//! | header | value |
//! |---|---|
//! | `trueline.reason` | the name of the counter, `score_out_of_range` |
//! | `trueline.detail` | field, value and remedy in words |
//! | `trueline.topic`, `trueline.partition`, `trueline.offset` | its origin |
//! | `trueline.timestamp_ms` | the Kafka timestamp of the record, if it had one |
//!
//! Writing never blocks. The queue is librdkafka's and is bounded; what it cannot take is counted
//! as dropped. A broker that is down thus costs dead letters but never delays consumption.

use super::client_callbacks::{ClientCallbacks, OnDelivery};
use super::{KafkaError, KafkaOptions, Record};
use parking_lot::Mutex;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use std::sync::Arc;
use std::time::Duration;

/// Counts of dead letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeadLetterCounts {
    /// Acknowledged by the broker.
    pub delivered: u64,
    /// Given up by the client after its retries.
    pub failed: u64,
    /// Not queued: the queue was full, or the record was too large.
    pub dropped: u64,
}

/// Writes records to the dead-letter topic without blocking. A separate thread serves deliveries.
pub struct DeadLetter {
    producer: ThreadedProducer<ClientCallbacks>,
    counts: Arc<Mutex<DeadLetterCounts>>,
    topic: Arc<str>,
}

impl DeadLetter {
    /// A producer for [`KafkaOptions::dead_letter`]; `None` if that is not set.
    pub fn new(options: &KafkaOptions) -> Result<Option<DeadLetter>, KafkaError> {
        let Some(topic) = options.dead_letter.as_deref() else {
            return Ok(None);
        };
        Ok(Some(DeadLetter {
            producer: ClientCallbacks::client("dead letters", &options.producer_config(), options)?,
            counts: Arc::default(),
            topic: topic.into(),
        }))
    }

    /// Queues the original record, with its origin (`topic` by name) and the reason in headers.
    pub fn send(&self, topic: &str, record: &Record<'_>, reason: &str, detail: &str) {
        let (partition, offset) = (record.partition.to_string(), record.offset.to_string());
        let mut headers = OwnedHeaders::new();
        for (key, value) in record.headers.iter() {
            headers = headers.insert(Header { key, value });
        }
        let timestamp_ms = record.timestamp_ms.map(|ms| ms.to_string());
        for (key, value) in [
            ("trueline.reason", Some(reason)),
            ("trueline.detail", Some(detail)),
            ("trueline.topic", Some(topic)),
            ("trueline.partition", Some(partition.as_str())),
            ("trueline.offset", Some(offset.as_str())),
            ("trueline.timestamp_ms", timestamp_ms.as_deref()),
        ] {
            if value.is_some() {
                headers = headers.insert(Header { key, value });
            }
        }
        let (counts, to) = (Arc::clone(&self.counts), Arc::clone(&self.topic));
        let on_delivery: OnDelivery = Box::new(move |written| {
            if let Err(error) = &written {
                crate::warn_limited!(topic = %to, %error, "dead letter not written");
            }
            let mut counts = counts.lock();
            counts.delivered += u64::from(written.is_ok());
            counts.failed += u64::from(written.is_err());
        });
        let mut letter: BaseRecord<'_, [u8], [u8], Box<OnDelivery>> =
            BaseRecord::with_opaque_to(&self.topic, Box::new(on_delivery)).headers(headers);
        // A null value means that the key was deleted.
        if !record.headers.is_tombstone() {
            letter = letter.payload(record.payload);
        }
        if let Some(key) = record.key {
            letter = letter.key(key);
        }
        if let Err((error, _)) = self.producer.send(letter) {
            crate::warn_limited!(topic = %self.topic, %error, "dead letter not written");
            self.counts.lock().dropped += 1;
        }
    }

    /// Adds the brokers again if the client has lost them. Call it regularly.
    pub fn rebootstrap(&self) {
        ClientCallbacks::rebootstrap(self.producer.client());
    }

    /// The counts so far.
    pub fn counts(&self) -> DeadLetterCounts {
        *self.counts.lock()
    }

    /// Waits for queued dead letters, at most `timeout`. Returns whether the queue is empty.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.producer.flush(timeout).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::native::Message;
    use super::*;
    use crate::kafka::headers::{Headers, Parts};
    use crate::kafka::mock::{broker, reader};

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_tombstone_is_a_tombstone_among_the_dead_letters() {
        let (_mock, mut options) = broker("dead");
        options.dead_letter = Some("dead".to_owned());
        let letters = DeadLetter::new(&options).expect("a producer");
        let letters = letters.expect("it has a topic");
        for tombstone in [true, false] {
            let parts = Parts {
                headers: vec![("null".to_owned(), None), ("".to_owned(), Some(Vec::new()))],
                tombstone,
            };
            let record = Record {
                offset: 5,
                key: Some(b"k"),
                headers: Headers::of_owned(&parts),
                ..Record::default()
            };
            letters.send("t", &record, "malformed", "no object");
        }
        assert!(letters.flush(PATIENCE));
        let consumer = reader(&options, "dead");
        for tombstone in [true, false] {
            let message = consumer.poll(PATIENCE).expect("a record").expect("sound");
            let message = Message::of(&message);
            assert_eq!(message.is_tombstone(), tombstone);
            assert_eq!(message.key(), Some(&b"k"[..]));
            assert_eq!(message.header(0), Some(("null", None)));
            assert_eq!(message.header(1), Some(("", Some(&b""[..]))));
        }
    }
}
