//! Records sent to a real Kafka broker, in order and with none lost.

use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

/// A producer that counts.
pub struct Sender {
    producer: BaseProducer,
    /// Records handed over.
    pub sent: u64,
}

impl Sender {
    pub fn new(producer: BaseProducer) -> Sender {
        Sender { producer, sent: 0 }
    }

    /// Queues one record, waiting when the queue is full.
    pub fn send(&mut self, topic: &str, partition: i32, payload: &[u8]) {
        let record = BaseRecord::to(topic).partition(partition);
        self.queue(record.payload(payload));
    }

    /// The same with a timestamp.
    pub fn send_at(&mut self, topic: &str, partition: i32, time_ms: i64, payload: &[u8]) {
        let record = BaseRecord::to(topic).partition(partition);
        self.queue(record.timestamp(time_ms).payload(payload));
    }

    fn queue(&mut self, mut record: BaseRecord<'_, (), [u8]>) {
        self.sent += 1;
        loop {
            match self.producer.send(record) {
                Ok(()) => return,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    record = back;
                    self.producer.poll(Duration::from_millis(10));
                }
                Err((error, _)) => panic!("record {} was not taken: {error}", self.sent),
            }
        }
    }

    /// Queues one record without a value.
    pub fn send_tombstone(&mut self, topic: &str, partition: i32, key: &str) {
        let record = BaseRecord::to(topic).partition(partition);
        self.queue_keyed(record.key(key));
    }

    /// Queues one record with a key.
    pub fn send_keyed(&mut self, topic: &str, partition: i32, key: &str, payload: &[u8]) {
        let record = BaseRecord::to(topic).partition(partition);
        self.queue_keyed(record.key(key).payload(payload));
    }

    fn queue_keyed(&mut self, record: BaseRecord<'_, str, [u8]>) {
        self.sent += 1;
        let taken = self.producer.send(record).map_err(|(error, _)| error);
        taken.expect("room in the queue");
    }

    /// Begins a transaction.
    pub fn begin(&self) {
        self.producer.begin_transaction().expect("a transaction");
    }

    /// Ends the transaction: its records are read, or never.
    pub fn end(&self, commit: bool) {
        let within = Duration::from_secs(30);
        match commit {
            true => self.producer.commit_transaction(within),
            false => self.producer.abort_transaction(within),
        }
        .expect("the transaction ends");
    }

    /// Waits until the broker has all of it.
    pub fn flush(&self) {
        self.producer
            .flush(Duration::from_secs(120))
            .expect("the broker takes every record");
    }
}
