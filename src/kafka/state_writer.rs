//! Writing to the state topic.

use super::client::{StateRecord, WriteState};
use super::quiet::{Quiet, Then, Written, create, settings};
use super::{KafkaError, KafkaOptions};
use rdkafka::error::{KafkaError as Native, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer, PurgeConfig, ThreadedProducer};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Pause after a full queue.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(5);

/// Longest wait without a sign that the caller is alive.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Writes to the topic. Threads can share it.
pub struct StateWriter {
    options: KafkaOptions,
    topic: String,
    /// Records that were not written in time are dropped.
    drops: bool,
    producer: RwLock<ThreadedProducer<Quiet>>,
}

impl StateWriter {
    /// A writer that preserves order and writes no duplicates.
    pub fn new(options: &KafkaOptions, topic: &str) -> Result<StateWriter, KafkaError> {
        Ok(StateWriter {
            producer: RwLock::new(producer(options)?),
            options: options.clone(),
            topic: topic.to_owned(),
            drops: false,
        })
    }

    /// A writer of claims. A claim that was not written in time must not be written later, when
    /// another process may have claimed.
    pub fn of_claims(options: &KafkaOptions, topic: &str) -> Result<StateWriter, KafkaError> {
        let mut writer = StateWriter::new(options, topic)?;
        writer.drops = true;
        Ok(writer)
    }

    fn try_put(
        &self,
        records: &[(i32, &StateRecord)],
        within: Duration,
        alive: &dyn Fn(),
    ) -> Result<Vec<i64>, KafkaError> {
        let start = Instant::now();
        let producer = self.producer.read().unwrap_or_else(PoisonError::into_inner);
        let (results, deliveries) = channel();
        for (index, (partition, (key, value))) in records.iter().enumerate() {
            let results = results.clone();
            let then: Then = Box::new(move |written: Written| {
                // The caller may have given up.
                let _ = results.send((index, written));
            });
            let mut record: BaseRecord<'_, str, [u8], Box<Then>> =
                BaseRecord::with_opaque_to(&self.topic, Box::new(then))
                    .partition(*partition)
                    .key(key);
            if let Some(value) = value {
                record = record.payload(value);
            }
            loop {
                match producer.send(record) {
                    Ok(()) => break,
                    Err((Native::MessageProduction(RDKafkaErrorCode::QueueFull), back))
                        if start.elapsed() < within =>
                    {
                        record = back;
                        alive();
                        std::thread::sleep(QUEUE_FULL_PAUSE);
                    }
                    Err((error, _)) => return Err(KafkaError::from_native(error)),
                }
            }
        }
        drop(results);
        let mut offsets = vec![0; records.len()];
        let mut open = records.len();
        while open > 0 {
            let left = within.saturating_sub(start.elapsed());
            match deliveries.recv_timeout(left.min(SILENCE_MAX)) {
                Ok((index, Ok((_, offset)))) => {
                    offsets[index] = offset;
                    open -= 1;
                    alive();
                }
                Ok((_, Err(error))) => return Err(self.failed(&error)),
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

    /// Replaces a producer with a fatal error.
    fn renew_producer(&self) -> Result<(), KafkaError> {
        let dead = {
            let now = self.producer.read().unwrap_or_else(PoisonError::into_inner);
            Quiet::rebootstrap(now.client());
            now.client().fatal_error().is_some()
        };
        if dead {
            let new = producer(&self.options)?;
            *self
                .producer
                .write()
                .unwrap_or_else(PoisonError::into_inner) = new;
        }
        Ok(())
    }
}

impl WriteState for StateWriter {
    fn put(
        &self,
        records: &[(i32, &StateRecord)],
        within: Duration,
        alive: &dyn Fn(),
    ) -> Result<Vec<i64>, KafkaError> {
        self.renew_producer()?;
        let written = self.try_put(records, within, alive);
        if written.is_err() && self.drops {
            let producer = self.producer.read().unwrap_or_else(PoisonError::into_inner);
            producer.purge(PurgeConfig::default().queue().inflight());
        }
        written
    }
}

fn producer(options: &KafkaOptions) -> Result<ThreadedProducer<Quiet>, KafkaError> {
    let mut c = settings(options);
    c.set("enable.idempotence", "true")
        .set("compression.type", "lz4")
        .set("linger.ms", "2")
        // A topic that was deleted is reported this long after a write, not after 30 s.
        .set("topic.metadata.propagation.max.ms", "5000")
        .set("queue.buffering.max.kbytes", "262144");
    create(&c, options)
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
