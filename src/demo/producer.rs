//! The demo's producers: one thread that makes the events of all models, at their pace.
//!
//! Every 20 ms it makes as many events of each model as the wall clock says are due, stamps them with
//! the time at which they were due, and hands them to a librdkafka producer, round robin over the
//! partitions of the model's topic. Round robin, and not the sticky default, keeps the partitions'
//! watermarks close together. If the producer's queue is full the thread waits: events are delayed,
//! never dropped, so that for one seed, start and rate the events are the same.
//!
//! The mock broker keeps 5 MiB a partition and then silently forgets its oldest records
//! (`rdkafka_mock.c`, hard-coded). At the default rate a partition of the larger topic takes 0.35 MiB a
//! second, so the consumer has about fifteen seconds to come back from whatever holds it up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use super::chance::Chance;
use super::config::{self, PARTITIONS};
use super::models::{MODELS, Model, Shape};
use crate::app::clock;

/// Pause between two rounds: short against a slide of 2 s, long against the cost of a round.
const ROUND: Duration = Duration::from_millis(20);

/// The running thread; ends when stopped.
#[derive(Debug)]
pub struct Producers {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, KafkaError>>,
}

impl Producers {
    /// Starts to produce `rate` events a second of each model from `start_ms` on.
    pub fn start(
        brokers: &str,
        rate: u32,
        seed: u64,
        start_ms: i64,
    ) -> Result<Producers, KafkaError> {
        let producer: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("linger.ms", "5")
            .set_log_level(rdkafka::config::RDKafkaLogLevel::Emerg)
            .create()?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("demo-producers".to_owned())
            .spawn(move || Workshop::new(producer, rate, seed, start_ms).work(&seen))
            .map_err(|_| KafkaError::ClientCreation("no thread for the producers".to_owned()))?;
        Ok(Producers { stop, thread })
    }

    /// Stops and answers the number of events made.
    pub fn stop(self) -> Result<u64, KafkaError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(Err(KafkaError::Canceled))
    }
}

/// One model at work.
struct Bench {
    model: Model,
    chance: Chance,
    /// Events made so far.
    made: u64,
}

/// All models at work.
struct Workshop {
    producer: BaseProducer,
    benches: Vec<Bench>,
    rate: u32,
    start_ms: i64,
    text: String,
}

impl Workshop {
    fn new(producer: BaseProducer, rate: u32, seed: u64, start_ms: i64) -> Workshop {
        let bench = |(index, model): (usize, &Model)| Bench {
            model: *model,
            chance: Chance::new(seed.wrapping_mul(1_000).wrapping_add(index as u64)),
            made: 0,
        };
        Workshop {
            producer,
            benches: MODELS.iter().enumerate().map(bench).collect(),
            rate,
            start_ms,
            text: String::new(),
        }
    }

    fn work(mut self, stop: &AtomicBool) -> Result<u64, KafkaError> {
        while !stop.load(Ordering::Relaxed) {
            let since_ms = u64::try_from(clock::now_ms() - self.start_ms).unwrap_or(0);
            let due = since_ms * u64::from(self.rate) / 1000;
            for index in 0..self.benches.len() {
                while self.benches[index].made < due {
                    self.make(index)?;
                }
            }
            self.producer.poll(Duration::ZERO);
            thread::sleep(ROUND);
        }
        self.producer.flush(Duration::from_secs(2))?;
        Ok(self.benches.iter().map(|b| b.made).sum())
    }

    /// Makes and sends the next event of a model.
    fn make(&mut self, index: usize) -> Result<(), KafkaError> {
        let bench = &mut self.benches[index];
        // Far below 2⁶³: a rate of 20,000 a second for a million years.
        let since_ms = (bench.made * 1000 / u64::from(self.rate)) as i64;
        let time_ms = self.start_ms + since_ms;
        self.text.clear();
        bench
            .model
            .event(since_ms, time_ms, &mut bench.chance, &mut self.text);
        let topic = match bench.model.shape() {
            Shape::Score => config::SCORES,
            Shape::Vector => config::CLASSES,
        };
        let partition = (bench.made % u64::from(PARTITIONS)) as i32;
        bench.made += 1;
        self.send(topic, partition, time_ms)
    }

    fn send(&self, topic: &str, partition: i32, time_ms: i64) -> Result<(), KafkaError> {
        let mut record = BaseRecord::<(), str>::to(topic)
            .payload(self.text.as_str())
            .partition(partition)
            .timestamp(time_ms);
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    self.producer.poll(Duration::from_millis(10));
                    record = back;
                }
                Err((error, _)) => return Err(error),
            }
        }
    }
}
