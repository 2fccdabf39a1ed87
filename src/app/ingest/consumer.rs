//! One source of a consumer group member: its records, its assignments and its errors.
//!
//! A [`SourceConsumer`] has the consumer, and a [`SourceReader`] with what a source needs from one
//! poll to the next. For one poll a [`SourceHandler`] borrows the reader and the [`Topology`], and
//! the consumer calls the handler.
//!
//! A record whose schema is not known yet waits in the [queue](super::schema_queue), with all that
//! follows it in its partition. A record of a partition that was given up after the record was
//! fetched belongs to the next owner: it is not counted here.

mod membership;
mod reader;
mod rivals;
mod unread;

pub use membership::close;
pub use reader::{Hold, SourceReader};

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::contest::{self, Contest};
use super::decode_threads::{DecodeThreads, Rows};
use super::record::{RecordReader, decoder_of};
use super::schema_queue::{Item, Reading};
use crate::app::clock;
use crate::app::cluster::topology::Topology;
use crate::app::error::AppError;
use crate::app::pool::Pool;
use crate::app::setup::source_error;
use crate::config::{Input, SourceOptions};
use crate::kafka::{
    Begin, Brokers, Consumer, DeadLetter, Handler, KafkaError, OwnedRecord, Partition, Record,
};
use crate::monitor::PartitionEvent;
use crate::registry::Registry;

/// Pause before a failed consumer is recreated.
const RECREATE_AFTER: Duration = Duration::from_secs(5);
/// How long the group may take to assign to this process the partitions of a process that has to
/// stop.
const GIVE_BACK: Duration = Duration::from_secs(10);
/// Longest part of the time between two polls that counts towards [`GIVE_BACK`]: a frozen process
/// learned nothing in that time.
const STEP_MAX: Duration = Duration::from_secs(1);

/// One consumer and its source.
pub struct SourceConsumer {
    /// Its configuration, from which it can be recreated.
    options: SourceOptions,
    brokers: Arc<dyn Brokers>,
    /// The group member.
    pub consumer: Consumer,
    /// Takes its records to the engine.
    pub source: SourceReader,
    /// When to recreate the consumer after a fatal error.
    recreate_at: Option<Instant>,
    /// Another process has taken its `instance`.
    fenced: bool,
    /// It is taking its `instance` back, and the group has not answered yet.
    returning: bool,
    /// The contest with another process for what only one may hold.
    contest: Option<Contest>,
    /// When it was last polled.
    polled: Instant,
    /// Why this process must stop, because another one was first.
    displaced: Option<String>,
    /// The group has accepted the member at least once.
    ready: bool,
    /// The last error since the group threw this process out.
    trouble: Option<String>,
    paused: bool,
    /// The log says that it is paused.
    pause_logged: bool,
    /// When the schema queue became full, while it is not empty again.
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
        records.learned = threads.as_ref().map(|_| Vec::new());
        let failed = |error: KafkaError| source_error(&options, &error);
        let consumer = Consumer::new(&options.kafka, brokers.as_ref()).map_err(failed)?;
        records.dead_letters = DeadLetter::new(&options.kafka).map_err(failed)?;
        Ok(SourceConsumer {
            source: SourceReader::new(options.input, records, threads),
            options,
            brokers,
            consumer,
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
            source.release_overdue(topology, passed.min(STEP_MAX), after);
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
            // A consumer that was fenced while it took its `instance` back waits again.
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

/// Why unread records are gone, and the remedy.
fn loss(input: Input) -> &'static str {
    match input {
        Input::Kafka => {
            "records were deleted by the broker before they were read; lengthen the topic's retention, or read sooner"
        }
        Input::Http => {
            "posted events are gone from the event log that no snapshot in use has; do not delete files in `events` of \
             the state directory, and bring it back as a whole"
        }
    }
}

/// A source and the topology that counts its records, borrowed for one poll.
pub struct SourceHandler<'a> {
    /// The source.
    pub source: &'a mut SourceReader,
    /// What counts its records.
    pub topology: &'a mut Topology,
}

impl SourceHandler<'_> {
    /// Processes queued records whose schema has arrived.
    pub fn drain_queue(&mut self) {
        if self.source.queue.is_empty() {
            return;
        }
        let mut queue = std::mem::take(&mut self.source.queue);
        queue.drain(|partition, item| match item {
            Item::Record(owned) => self.read(partition, &owned.record(), None),
            Item::Event(what) => {
                self.on_partition(partition, *what);
                Reading::Done
            }
        });
        self.source.queue = queue;
    }

    fn read(
        &mut self,
        partition: Partition,
        record: &Record<'_>,
        rows: Option<Rows<'_>>,
    ) -> Reading {
        let records = &mut self.source.records;
        match self.topology.sink_of(records.partition_id(partition)) {
            Some(sink) => records.read_at(sink, record, rows),
            None => Reading::Done,
        }
    }

    /// Counts a record or queues it; `rows` has its rows if they are decoded already.
    fn admit(&mut self, record: &Record<'_>, rows: Option<Rows<'_>>) {
        let partition = record.in_partition();
        let waits = self.source.queue.has(partition);
        if waits || self.read(partition, record, rows) == Reading::AwaitingSchema {
            if waits {
                self.source.records.ask_ahead(record);
            } else {
                // The partition holds the others back from now on, even if its end was reported.
                self.on_partition(partition, PartitionEvent::Grown);
            }
            let item = Item::Record(OwnedRecord::of(record));
            self.source.queue.push(partition, item);
        }
    }

    fn on_partition(&mut self, partition: Partition, what: PartitionEvent) {
        let id = self.source.records.partition_id(partition);
        self.topology.on_partition(id, what);
    }

    /// Applies an event of a partition once its records that wait for a schema are counted: they
    /// came before the event.
    fn after_queued(&mut self, partition: Partition, what: PartitionEvent) {
        if self.source.queue.has(partition) {
            self.source.queue.push(partition, Item::Event(what));
        } else {
            self.on_partition(partition, what);
        }
    }
}

impl Handler for SourceHandler<'_> {
    fn records(&mut self, batch: &[Record<'_>]) {
        match self.source.threads.take() {
            None => batch.iter().for_each(|record| self.admit(record, None)),
            Some(mut threads) => {
                let learned = self.source.records.learned.replace(Vec::new());
                let learned = learned.unwrap_or_default();
                threads.each(&learned, batch, |record, rows| self.admit(record, rows));
                self.source.threads = Some(threads);
            }
        }
    }

    fn assigning(&mut self) {
        self.source.lost_since = None;
        self.topology.assigning();
    }

    fn missing(&mut self, topic: u16) {
        let first = (topic, 0).into();
        let id = self.source.records.partition_id(first);
        let mut joins = self.topology.joins().iter();
        // Without their outcomes, predictions would mature as if nothing had happened. So the
        // watermark waits for the first partition of outcomes until it is assigned.
        let is_outcomes = joins.any(|j| j.outcomes == id.source && j.predictions != id.source);
        if is_outcomes && self.topology.await_partition(id) {
            self.source.unassigned.insert(first, Hold::UntilAssigned);
        }
    }

    fn assigned(&mut self, partition: Partition) -> Option<i64> {
        self.source.reset(partition);
        self.source.unassigned.remove(&partition);
        let id = self.source.records.partition_id(partition);
        let offset = self.topology.assign(id);
        if let Some(offset) = offset {
            // A restored offset is stored; the offset of one engine that has read since is not.
            let stored = self.source.stored.entry(partition).or_insert(offset);
            if self.topology.may_move() {
                *stored = offset;
            }
        }
        let (topic, partition) = self.source.name_of(partition);
        tracing::info!(topic, partition, offset, "partition assigned");
        if let Some(error) = self.topology.take_trouble() {
            // The consumer rejoins the group and tries again.
            self.error(KafkaError::Fatal(error.to_string()));
        }
        offset
    }

    fn stored(&self, partition: Partition) -> Option<i64> {
        self.source.stored.get(&partition).copied()
    }

    fn was_read(&self, topic: u16) -> bool {
        let id = self.source.records.partition_id((topic, 0).into());
        self.topology.was_read(id.source)
    }

    fn begins(&mut self, partition: Partition, begin: Begin) {
        self.source.begun = true;
        self.source.stopped.remove(&partition);
        self.on_partition(partition, PartitionEvent::Rewound(begin.offset));
        let (topic, partition) = self.source.name_of(partition);
        let offset = begin.offset;
        match begin.without_sums_of {
            None => tracing::info!(topic, partition, offset, "partition begins"),
            Some(read) => tracing::warn!(
                topic,
                partition,
                offset,
                read,
                "the group has read the partition before and its sums are missing; windows begin empty here, as \
                 `on_missing_state` or `--from` says"
            ),
        }
    }

    fn is_suspended(&self, partition: Partition) -> bool {
        let id = self.source.records.partition_id(partition);
        self.topology.suspends(id)
    }

    fn truncated_at(&self, partition: Partition) -> Option<i64> {
        let id = self.source.records.partition_id(partition);
        self.topology.truncated_at(id)
    }

    fn revoking(&mut self, partitions: &[Partition]) {
        self.source.releasing(partitions, self.topology);
    }

    fn revoked(&mut self, partition: Partition, lost: bool) {
        self.source.reset(partition);
        self.source.release(partition, self.topology, lost);
        if lost {
            self.source.lose();
        }
        let (topic, partition) = self.source.name_of(partition);
        tracing::info!(topic, partition, lost, "partition revoked");
    }

    fn passed(&mut self, partition: Partition, offset: i64) {
        self.after_queued(partition, PartitionEvent::Passed(offset));
    }

    fn end_of_partition(&mut self, partition: Partition) {
        self.after_queued(partition, PartitionEvent::Ended);
    }

    fn grown(&mut self, partition: Partition) {
        self.after_queued(partition, PartitionEvent::Grown);
    }

    fn hidden(&mut self, partition: Partition, offset: i64, waited: Duration) {
        let (topic, number) = self.source.name_of(partition);
        tracing::error!(
            topic,
            partition = number,
            offset,
            seconds = waited.as_secs(),
            "a transaction that stays open hides the records of the partition; verdicts go on without it"
        );
        self.after_queued(partition, PartitionEvent::LeftOut);
    }

    fn lost(&mut self, partition: Partition, offsets: Range<i64>) {
        let lost = u64::try_from(offsets.end - offsets.start).unwrap_or(0);
        if let Some(all) = self.source.lost.get_mut(usize::from(partition.topic)) {
            *all += lost;
        }
        let ((topic, partition), Range { start, end }) = (self.source.name_of(partition), offsets);
        tracing::error!(
            topic,
            partition,
            from = start,
            to = end,
            lost,
            "{}",
            loss(self.source.input)
        );
    }

    fn rewound(&mut self, partition: Partition, offset: i64) {
        self.source.begun = true;
        self.after_queued(partition, PartitionEvent::Rewound(offset));
        let (topic, partition) = self.source.name_of(partition);
        tracing::error!(
            topic,
            partition,
            offset,
            "partition is shorter than what was read of it; reading continues here, as `on_truncated` says"
        );
    }

    fn truncated(&mut self, partition: Partition, end: i64) {
        // Stored at once, because the log may grow beyond the position: a restart must not continue
        // there.
        self.source.begun = true;
        self.on_partition(partition, PartitionEvent::Truncated(end));
    }

    fn suspended(&mut self, partition: Partition, why: &str) {
        let (topic, number) = self.source.name_of(partition);
        tracing::error!(
            topic,
            partition = number,
            why,
            "partition is no longer read"
        );
        self.source.assignment_changed = true;
        self.source.stopped.insert(partition, why.to_owned());
        // It must not hold the watermark back, even after its records that wait for a schema are
        // counted.
        self.after_queued(partition, PartitionEvent::LeftOut);
    }

    fn gone(&mut self, partition: Partition) {
        self.on_partition(partition, PartitionEvent::LeftOut);
        if !self.source.gone.insert(partition) {
            return;
        }
        let (topic, partition) = self.source.name_of(partition);
        tracing::error!(
            topic,
            partition,
            "partition does not exist, though the group assigns it: its topic was made again with fewer; nothing waits \
             for it"
        );
    }

    fn error(&mut self, error: KafkaError) {
        if matches!(error, KafkaError::Fenced(_)) {
            self.source.fenced = true;
            tracing::error!(%error, "kafka consumer was fenced");
        } else if error.is_fatal() {
            self.source.needs_consumer = true;
            tracing::error!(%error, "kafka consumer failed and is recreated");
        } else if error.needs_operator() {
            tracing::error!(%error, "kafka");
        } else {
            tracing::warn!(%error, "kafka");
        }
        let known = self.source.last_error.as_ref();
        if !known.is_some_and(KafkaError::needs_operator) || error.needs_operator() {
            self.source.last_error = Some(error);
        }
    }
}
