//! One source of a consumer group member: its records, its assignments and its errors.
//!
//! A [`SourceConsumer`] has the consumer, and a [`SourceReader`] with what a source needs from one
//! poll to the next. For the length of one poll a [`SourceHandler`] borrows the reader together
//! with the [`Topology`], and the consumer calls the handler.
//!
//! A record whose schema is not known yet waits in the [`SchemaQueue`], with all that follows it in
//! its partition. A record of a partition that was given up after the record was fetched belongs to
//! the next owner: it is not counted here.

mod handler;
mod membership;
mod rivals;
mod unread;

pub use membership::close;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::handler::SourceHandler;
use super::contest::{self, Contest};
use super::decode_threads::DecodeThreads;
use super::record::{RecordReader, decoder_of};
use super::schema_queue::SchemaQueue;
use crate::app::clock;
use crate::app::cluster::topology::Topology;
use crate::app::error::AppError;
use crate::app::pool::Pool;
use crate::app::setup::source_error;
use crate::config::SourceOptions;
use crate::kafka::{Brokers, Consumer, DeadLetter, Handler, KafkaError, Partition};
use crate::registry::Registry;

/// Pause before a failed consumer is recreated.
const RECREATE_AFTER: Duration = Duration::from_secs(5);
/// How long the group may take to give this process the partitions of one that has to stop.
const GIVE_BACK: Duration = Duration::from_secs(10);
/// Longest part of the time between two polls that counts towards [`GIVE_BACK`]: a frozen process
/// got no news.
const STEP_MAX: Duration = Duration::from_secs(1);

/// One consumer and its source.
pub struct SourceConsumer {
    /// Its configuration, from which it can be recreated.
    options: SourceOptions,
    brokers: Arc<dyn Brokers>,
    /// The group member.
    pub consumer: Consumer,
    /// From its records to the engine.
    pub source: SourceReader,
    /// When to recreate the consumer after a fatal error.
    recreate_at: Option<Instant>,
    /// Another process has taken the `instance`.
    fenced: bool,
    /// It takes the `instance` back, and the group has not answered yet.
    returning: bool,
    /// Another process is where there may be one.
    contest: Option<Contest>,
    /// When it was last polled.
    polled: Instant,
    /// Why this process must stop: another one was there first.
    displaced: Option<String>,
    /// The group has accepted the member at least once.
    ready: bool,
    /// The last error since the group threw this process out.
    trouble: Option<String>,
    paused: bool,
    /// The log says that it is paused.
    pause_logged: bool,
    /// Since when the schema queue is behind: it was full and is not empty yet.
    schemas_behind: Option<Instant>,
}

impl SourceConsumer {
    /// Creates the consumer, which begins to join its group. `base` is the number of its first
    /// topic. The threads of `pool` share the decoding.
    pub fn new(
        options: SourceOptions,
        base: u16,
        registry: Option<&Arc<Registry>>,
        brokers: Arc<dyn Brokers>,
        pool: &Pool,
    ) -> Result<SourceConsumer, AppError> {
        let mut records = RecordReader::new(&options, base, registry)?;
        let threads = DecodeThreads::new(pool, || decoder_of(&options))?;
        let failed = |error: KafkaError| source_error(&options, &error);
        let consumer = Consumer::new(&options.kafka, brokers.as_ref()).map_err(failed)?;
        records.dead_letters = DeadLetter::new(&options.kafka).map_err(failed)?;
        Ok(SourceConsumer {
            options,
            brokers,
            consumer,
            source: SourceReader {
                threads,
                ..SourceReader::new(records)
            },
            recreate_at: None,
            fenced: false,
            returning: false,
            contest: None,
            polled: Instant::now(),
            displaced: None,
            ready: false,
            trouble: None,
            paused: false,
            pause_logged: false,
            schemas_behind: None,
        })
    }

    /// See [`SourceOptions::outcomes_of`].
    pub fn outcomes_of(&self, topic: &str) -> Option<&str> {
        self.options.outcomes_of(topic)
    }

    /// Reads what the broker has, waiting at most `wait` for it. Returns the number of records.
    pub fn poll(&mut self, topology: &mut Topology, wait: Duration) -> usize {
        let source = &mut self.source;
        source.records.reading_ms = Some(clock::reading_ms());
        let passed = std::mem::replace(&mut self.polled, Instant::now()).elapsed();
        if self.contest.as_ref().is_none_or(|c| c.reached) {
            let session = Duration::from_millis(self.options.kafka.session_ms());
            let after = contest::grace(session) + GIVE_BACK;
            source.let_go(topology, passed.min(STEP_MAX), after);
        }
        let mut handler = SourceHandler { source, topology };
        handler.drain_queue();
        if let Some(dead_letters) = &handler.source.records.dead_letters {
            dead_letters.rebootstrap();
        }
        let records = &handler.source.records;
        let ours = |source: u16| records.numbered().any(|(_, number)| number == source);
        if let Some(why) = handler.topology.must_claim_again(ours)
            && self.recreate_at.is_none()
        {
            handler.error(KafkaError::Fatal(why));
        }
        if std::mem::take(&mut handler.source.needs_consumer) {
            self.recreate_at = Some(Instant::now() + RECREATE_AFTER);
        }
        if std::mem::take(&mut handler.source.fenced) {
            self.fenced = true;
            // Who was fenced while it took the `instance` back waits again.
            (self.returning, self.contest) = (false, None);
            self.give_up(topology);
            return 0;
        }
        match self.recreate_at.filter(|_| !self.fenced) {
            None if !self.fenced => return self.consumer.poll(wait, &mut handler),
            Some(at) if Instant::now() >= at => self.recreate(topology),
            _ => std::thread::sleep(wait),
        }
        0
    }
}

/// The state of a source between polls.
pub struct SourceReader {
    /// Decodes and counts its records.
    pub records: RecordReader,
    /// Threads that decode batches with it, where there are any.
    pub threads: Option<DecodeThreads>,
    /// Records that wait for their schema.
    pub queue: SchemaQueue,
    /// Partitions that are shorter than what was read of them, each with the reason why reading
    /// stopped.
    pub stopped: BTreeMap<Partition, String>,
    /// By topic, the number of offsets that the broker deleted before they were read.
    pub lost: Vec<u64>,
    /// The consumer failed for good and has to be recreated.
    pub needs_consumer: bool,
    /// Another process has taken the `instance` since the flag was last cleared.
    pub fenced: bool,
    /// The assignment changed since the flag was last cleared.
    pub assignment_changed: bool,
    /// Partitions begin, go on or stay unread at positions that are not stored yet.
    pub begun: bool,
    /// Unassigned partitions, each with how long it has held others back so far; `None` if it no
    /// longer does, or does until it is assigned.
    pub unassigned: BTreeMap<Partition, Option<Duration>>,
    /// Partitions that the log has named as gone.
    pub gone: BTreeSet<Partition>,
    /// The offset of each partition up to which its records are stored, and may be committed.
    pub stored: BTreeMap<Partition, i64>,
    /// When the group threw this process out: it took all partitions away, or the consumer failed,
    /// and no assignment has come since.
    pub lost_since: Option<Instant>,
    /// The last error. An error that needs an operator is not replaced by those that follow from
    /// it.
    pub last_error: Option<KafkaError>,
}

impl SourceReader {
    /// A source without an assignment.
    pub fn new(records: RecordReader) -> SourceReader {
        SourceReader {
            queue: SchemaQueue::default(),
            stopped: BTreeMap::new(),
            lost: vec![0; records.topics().len()],
            needs_consumer: false,
            fenced: false,
            assignment_changed: false,
            begun: false,
            unassigned: BTreeMap::new(),
            gone: BTreeSet::new(),
            stored: BTreeMap::new(),
            lost_since: None,
            last_error: None,
            threads: None,
            records,
        }
    }

    /// Topics and partitions of this process whose reading stopped, with the reason.
    pub fn stopped(&self) -> impl Iterator<Item = (&str, i32, &str)> {
        let all = self.stopped.iter().map(|(p, why)| (self.name_of(*p), why));
        all.map(|((topic, partition), why)| (topic, partition, why.as_str()))
    }

    /// Topic and number of a partition, for the log.
    fn name_of(&self, partition: Partition) -> (&str, i32) {
        (self.records.topic(partition.topic), partition.partition)
    }

    /// Drops what is known of a partition whose assignment changes.
    fn reset(&mut self, partition: Partition) {
        self.assignment_changed = true;
        self.stopped.remove(&partition);
        self.queue.clear(partition);
    }
}
