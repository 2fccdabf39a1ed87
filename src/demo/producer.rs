//! The demo's producers: one thread that generates the events of all models at a fixed rate.
//!
//! Every 20 ms it generates the events of each model that are due by the wall clock, stamps them
//! with their due time, and sends them to the partitions of the model's topic in turn. Round robin,
//! unlike the sticky default, keeps the watermarks of the partitions close together. When the queue
//! of the producer is full the thread waits: events are delayed but never dropped, so the same
//! seed, start and rate give the same events.
//!
//! The mock broker keeps 5 MiB per partition and then silently drops its oldest records (hard-coded
//! in `rdkafka_mock.c`). At the default rate a partition of the larger topic grows by 0.35 MiB a
//! second, so a delayed consumer has about fifteen seconds to catch up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use super::config::{self, PARTITIONS};
use super::models::{MODELS, Model, Shape};
use crate::app::clock;
use crate::stats::rng::Rng;

/// Pause between two rounds: short compared with a slide of 2 s, long compared with a round's cost.
const ROUND: Duration = Duration::from_millis(20);

/// The running thread.
#[derive(Debug)]
pub struct Producers {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, KafkaError>>,
}

impl Producers {
    /// Starts to produce `rate` events per second of each model, beginning at `start_ms`.
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
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("demo-producers".to_owned())
            .spawn(move || Generator::new(producer, rate, seed, start_ms).run(&stopped))
            .map_err(|_| KafkaError::ClientCreation("no thread for the producers".to_owned()))?;
        Ok(Producers { stop, thread })
    }

    /// Stops the thread, and returns the number of events.
    pub fn stop(self) -> Result<u64, KafkaError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(Err(KafkaError::Canceled))
    }
}

struct ModelEvents {
    model: Model,
    draws: Rng,
    /// Number of events so far.
    count: u64,
}

/// Generates and sends the events of all models.
struct Generator {
    producer: BaseProducer,
    models: Vec<ModelEvents>,
    rate: u32,
    start_ms: i64,
    text: String,
}

impl Generator {
    fn new(producer: BaseProducer, rate: u32, seed: u64, start_ms: i64) -> Generator {
        let events = |(index, model): (usize, &Model)| ModelEvents {
            model: *model,
            draws: Rng::new(seed.wrapping_mul(1_000).wrapping_add(index as u64)),
            count: 0,
        };
        Generator {
            producer,
            models: MODELS.iter().enumerate().map(events).collect(),
            rate,
            start_ms,
            text: String::new(),
        }
    }

    fn run(mut self, stop: &AtomicBool) -> Result<u64, KafkaError> {
        while !stop.load(Ordering::Relaxed) {
            let since_ms = u64::try_from(clock::now_ms() - self.start_ms).unwrap_or(0);
            let due = since_ms * u64::from(self.rate) / 1000;
            for index in 0..self.models.len() {
                while self.models[index].count < due {
                    self.produce(index)?;
                }
            }
            self.producer.poll(Duration::ZERO);
            thread::sleep(ROUND);
        }
        self.producer.flush(Duration::from_secs(2))?;
        Ok(self.models.iter().map(|m| m.count).sum())
    }

    /// Generates and sends the next event of a model.
    fn produce(&mut self, index: usize) -> Result<(), KafkaError> {
        let events = &mut self.models[index];
        // The product stays below 2⁶³ for ten thousand years at 20,000 events per second.
        let since_ms = (events.count * 1000 / u64::from(self.rate)) as i64;
        let time_ms = self.start_ms + since_ms;
        self.text.clear();
        (events.model).event(since_ms, time_ms, &mut events.draws, &mut self.text);
        let topic = match events.model.shape() {
            Shape::Score => config::SCORES,
            Shape::Vector => config::CLASSES,
        };
        let partition = (events.count % u64::from(PARTITIONS)) as i32;
        events.count += 1;
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
