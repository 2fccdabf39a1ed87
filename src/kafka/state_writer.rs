//! Writing to the state topic.

use super::client::{StateRecord, WriteState};
use super::client_callbacks::{OnDelivery, Written, settings};
use super::producer::IdempotentProducer;
use super::{KafkaError, KafkaOptions};
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError as Native, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer, PurgeConfig};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(5);

/// Longest time between two calls of `alive`.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Writes to the topic, for one caller at a time: records that could not be written in time are
/// dropped.
pub struct StateWriter {
    topic: String,
    producer: IdempotentProducer,
}

impl StateWriter {
    /// A writer that preserves order and writes no duplicates.
    pub fn new(options: &KafkaOptions, topic: &str) -> Result<StateWriter, KafkaError> {
        Ok(StateWriter {
            producer: IdempotentProducer::new("state topic", config(options), options)?,
            topic: topic.to_owned(),
        })
    }

    fn try_put(
        &self,
        records: &[(i32, &StateRecord)],
        within: Duration,
        alive: &dyn Fn(),
    ) -> Result<Vec<i64>, KafkaError> {
        let mut moved = Instant::now();
        let producer = self.producer.client();
        let (results, deliveries) = channel();
        let (mut offsets, mut open) = (vec![0; records.len()], records.len());
        let mut take = |(index, written): (usize, Written)| -> Result<_, KafkaError> {
            let (_, offset) = written.map_err(|error| self.failed(&error))?;
            offsets[index] = offset;
            Ok(Instant::now())
        };
        for (index, (partition, (key, value))) in records.iter().enumerate() {
            let results = results.clone();
            let on_delivery: OnDelivery = Box::new(move |written: Written| {
                // The caller may have stopped waiting.
                let _ = results.send((index, written));
            });
            let mut record: BaseRecord<'_, str, [u8], Box<OnDelivery>> =
                BaseRecord::with_opaque_to(&self.topic, Box::new(on_delivery))
                    .partition(*partition)
                    .key(key);
            if let Some(value) = value {
                record = record.payload(value);
            }
            loop {
                match producer.send(record) {
                    Ok(()) => break,
                    Err((Native::MessageProduction(RDKafkaErrorCode::QueueFull), back))
                        if moved.elapsed() < within =>
                    {
                        record = back;
                        alive();
                        for delivered in deliveries.try_iter() {
                            moved = take(delivered)?;
                            open -= 1;
                        }
                        std::thread::sleep(QUEUE_FULL_PAUSE);
                    }
                    Err((error, _)) => return Err(error.into()),
                }
            }
        }
        drop(results);
        while open > 0 {
            let left = within.saturating_sub(moved.elapsed());
            match deliveries.recv_timeout(left.min(SILENCE_MAX)) {
                Ok(delivered) => {
                    moved = take(delivered)?;
                    open -= 1;
                    alive();
                }
                Err(RecvTimeoutError::Timeout) if left > SILENCE_MAX => alive(),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.failed(&format!("no response within {within:?}")));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.failed("the client ended")),
            }
        }
        Ok(offsets)
    }

    fn failed(&self, why: &str) -> KafkaError {
        KafkaError::Other(format!("writing to state topic {}: {why}", self.topic))
    }
}

impl WriteState for StateWriter {
    fn put(
        &self,
        records: &[(i32, &StateRecord)],
        within: Duration,
        alive: &dyn Fn(),
    ) -> Result<Vec<i64>, KafkaError> {
        self.producer.renew()?;
        let written = self.try_put(records, within, alive);
        if written.is_err() {
            // The next attempt would wait behind these records. A claim must not be written later,
            // when another process may have claimed.
            let producer = self.producer.client();
            producer.purge(PurgeConfig::default().queue().inflight());
        }
        written
    }
}

fn config(options: &KafkaOptions) -> ClientConfig {
    let mut c = settings(options);
    c.set("compression.type", "lz4")
        .set("linger.ms", "2")
        // A deleted topic is reported this long after a write, not after 30 s.
        .set("topic.metadata.propagation.max.ms", "5000")
        // A large batch may wait for a quota; the caller decides how long a pause may last.
        .set("message.timeout.ms", "0")
        .set("queue.buffering.max.kbytes", "262144");
    c
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::mock::broker;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::DefaultProducerContext;
    use std::cell::Cell;

    #[test]
    fn who_waits_for_a_broker_that_is_away_shows_that_it_lives() {
        let options = KafkaOptions {
            brokers: "127.0.0.1:1".to_owned(),
            ..KafkaOptions::default()
        };
        let writer = StateWriter::new(&options, "state").expect("a client");
        let (record, within) = (("k".to_owned(), None), Duration::from_millis(2900));
        let beats = Cell::new(0);
        let put = writer.put(&[(0, &record)], within, &|| beats.set(beats.get() + 1));
        assert!(put.is_err());
        assert!(beats.get() >= 1, "{}", beats.get());
    }

    /// A broker that takes this long for each request, and a writer to one of its topics.
    fn slow(
        answers_after: Duration,
    ) -> (MockCluster<'static, DefaultProducerContext>, StateWriter) {
        let (mock, options) = broker("state");
        let writer = StateWriter::new(&options, "state").expect("a client");
        let first = ("k".to_owned(), None);
        let put = writer.put(&[(0, &first)], Duration::from_secs(30), &|| {});
        assert_eq!(put, Ok(vec![0]));
        mock.broker_round_trip_time(1, answers_after)
            .expect("taken");
        (mock, writer)
    }

    /// A record that fills a request; five requests are under way at a time.
    fn large() -> StateRecord {
        ("k".to_owned(), Some(vec![0; 900 << 10]))
    }

    #[test]
    fn a_batch_may_take_longer_than_the_broker_may_be_silent() {
        let (_mock, writer) = slow(Duration::from_millis(500));
        let (record, begun) = (large(), Instant::now());
        let within = Duration::from_millis(1500);
        let put = writer.put(&[(0, &record); 30], within, &|| {});
        assert_eq!(put, Ok((1..=30).collect()));
        assert!(begun.elapsed() > within, "{:?}", begun.elapsed());
    }

    #[test]
    fn the_next_attempt_does_not_wait_behind_what_was_given_up() {
        let (mock, writer) = slow(Duration::from_secs(5));
        let record = large();
        let put = writer.put(&[(0, &record); 30], Duration::from_secs(1), &|| {});
        let said = put.expect_err("no answer in time").to_string();
        assert!(said.contains("no response within 1s"), "{said}");
        mock.broker_round_trip_time(1, Duration::ZERO)
            .expect("taken");
        let put = writer.put(&[(0, &record)], Duration::from_secs(30), &|| {});
        let offset = put.expect("it answers again")[0];
        assert!(offset < 30, "at offset {offset}");
    }
}
