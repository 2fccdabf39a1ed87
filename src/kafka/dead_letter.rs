//! Where records go that could not be decoded.
//!
//! A dead letter is the record as it came, key, value and headers untouched, with what is known about its failure
//! in headers, so that it can be mended and sent again by a program that knows nothing of this one:
//!
//! | header | value |
//! |---|---|
//! | `trueline.reason` | the name of the counter, `score_out_of_range` |
//! | `trueline.detail` | field, value and remedy in words |
//! | `trueline.topic`, `trueline.partition`, `trueline.offset` | its origin |
//! | `trueline.timestamp_ms` | the record's own Kafka timestamp, where it had one |
//!
//! Writing never waits: the queue is librdkafka's, bounded, and what it cannot take is counted as
//! dropped. A broker that is away thus costs dead letters, never consumption.

use super::lifeline::Lifeline;
use super::token::TokenFile;
use super::{KafkaError, KafkaOptions, Record};
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError as Native;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{
    BaseRecord, DeliveryResult, NoCustomPartitioner, Producer, ProducerContext, ThreadedProducer,
};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many dead letters were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeadLetterCounts {
    /// Acknowledged by the broker.
    pub delivered: u64,
    /// Given up by the client, after its retries.
    pub failed: u64,
    /// Not even queued: the queue was full, or the record larger than a message may be.
    pub dropped: u64,
}

/// Writes records to the dead-letter topic; never waits. Its own thread serves deliveries.
pub struct DeadLetter {
    producer: ThreadedProducer<Deliveries>,
    counts: Arc<Counts>,
    topic: String,
}

#[derive(Default)]
struct Counts {
    delivered: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

struct Deliveries {
    counts: Arc<Counts>,
    token: TokenFile,
    lifeline: Lifeline,
}

impl ClientContext for Deliveries {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.token.token()
    }

    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "librdkafka, dead letters");
    }

    fn error(&self, error: Native, reason: &str) {
        self.lifeline.note(&error);
        // The consumer tells the same of the same broker; what is lost here is counted.
        tracing::debug!(%error, reason, "dead letters");
    }
}

impl ProducerContext<NoCustomPartitioner> for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let count = match result {
            Ok(_) => &self.counts.delivered,
            Err(_) => &self.counts.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl DeadLetter {
    /// A producer for [`KafkaOptions::dead_letter`]; `None` when that is not set.
    pub fn new(options: &KafkaOptions) -> Result<Option<DeadLetter>, KafkaError> {
        let Some(topic) = options.dead_letter.clone() else {
            return Ok(None);
        };
        let counts = Arc::new(Counts::default());
        let producer = options
            .producer_config()
            .create_with_context(Deliveries {
                counts: Arc::clone(&counts),
                token: options.token(),
                lifeline: options.lifeline(),
            })
            .map_err(KafkaError::from_native)?;
        Ok(Some(DeadLetter {
            producer,
            counts,
            topic,
        }))
    }

    /// Queues the record as it came, with its origin (`topic` by name) and the reason in headers.
    pub fn send(&self, topic: &str, record: &Record<'_>, reason: &str, detail: &str) {
        let (partition, offset) = (record.partition.to_string(), record.offset.to_string());
        let mut headers = OwnedHeaders::new();
        for (key, value) in record.headers.iter() {
            headers = headers.insert(Header {
                key,
                value: Some(value),
            });
        }
        for (key, value) in [
            ("trueline.reason", reason),
            ("trueline.detail", detail),
            ("trueline.topic", topic),
            ("trueline.partition", &partition),
            ("trueline.offset", &offset),
        ] {
            headers = headers.insert(Header {
                key,
                value: Some(value),
            });
        }
        if let Some(t) = record.timestamp_ms {
            headers = headers.insert(Header {
                key: "trueline.timestamp_ms",
                value: Some(&t.to_string()),
            });
        }
        let mut letter: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&self.topic)
            .payload(record.payload)
            .headers(headers);
        if let Some(key) = record.key {
            letter = letter.key(key);
        }
        if self.producer.send(letter).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Brings the brokers back where the client has lost them; to be called now and then.
    pub fn tend(&self) {
        let client = self.producer.client();
        client.context().lifeline.hold(client);
    }

    /// Counts so far.
    pub fn counts(&self) -> DeadLetterCounts {
        let c = &self.counts;
        DeadLetterCounts {
            delivered: c.delivered.load(Ordering::Relaxed),
            failed: c.failed.load(Ordering::Relaxed),
            dropped: c.dropped.load(Ordering::Relaxed),
        }
    }

    /// Waits for what is queued, at most `timeout`; answers whether the queue is empty.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.producer.flush(timeout).is_ok()
    }
}
