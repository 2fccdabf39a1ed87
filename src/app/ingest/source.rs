//! The source of a consumer group member: its records, its assignments and its errors.
//!
//! A [`SourceReader`] keeps what a source needs from one poll to the next. For the length of one
//! poll a [`SourceHandler`] borrows it together with the [`Topology`], and the consumer calls the
//! handler.
//!
//! A record whose schema is not known yet waits in the [`SchemaQueue`], with all that follows it in
//! its partition. A record of a partition that was given up after the record was fetched belongs to
//! the next owner: it is not counted here.

use super::record::RecordReader;
use super::schema_queue::{Item, Progress, SchemaQueue};
use crate::app::cluster::topology::Topology;
use crate::kafka::{Begin, Handler, KafkaError, Owned, Partition, Record};
use crate::monitor::PartitionEvent;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The state of a source between polls.
pub struct SourceReader {
    /// Decodes and counts its records.
    pub records: RecordReader,
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
    /// Partitions begin at positions that are not stored yet.
    pub begun: bool,
    /// Unassigned partitions, each with how long it has held others back so far; `None` if it no
    /// longer does.
    pub unassigned: BTreeMap<Partition, Option<Duration>>,
    /// The offset of each partition up to which its records are stored, and may be committed.
    pub stored: BTreeMap<Partition, i64>,
    /// Since when the group has this process thrown out: it took all partitions away, or the
    /// consumer failed, and no assignment has come since.
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
            stored: BTreeMap::new(),
            lost_since: None,
            last_error: None,
            records,
        }
    }

    /// Topics and partitions of this process whose reading stopped, with the reason.
    pub fn stopped(&self) -> impl Iterator<Item = (&str, i32, &str)> {
        let all = self.stopped.iter().map(|(p, why)| (self.place(*p), why));
        all.map(|((topic, partition), why)| (topic, partition, why.as_str()))
    }

    /// Topic and number of a partition, for the log.
    fn place(&self, partition: Partition) -> (&str, i32) {
        (self.records.topic(partition.topic), partition.partition)
    }

    /// Drops what is known of a partition whose assignment changes.
    fn reset(&mut self, partition: Partition) {
        self.assignment_changed = true;
        self.stopped.remove(&partition);
        self.queue.clear(partition);
    }

    /// Releases a partition that is no longer assigned. A group may assign partitions in two rounds
    /// and give the same ones back. If no other process can count the partition, it holds the
    /// others back for a while; otherwise its remaining records would be late when it comes back.
    pub fn release(&mut self, partition: Partition, engines: &mut Topology, lost: bool) {
        let id = self.records.partition_id(partition);
        if self.unassigned.contains_key(&partition) {
            return;
        }
        if engines.expect(id) {
            self.unassigned.insert(partition, Some(Duration::ZERO));
        } else {
            engines.revoke(id, lost);
        }
    }

    /// The partitions are lost: there is none until the group assigns some again.
    pub fn lose(&mut self) {
        self.lost_since.get_or_insert_with(Instant::now);
    }

    /// These partitions are released next.
    pub fn releasing(&self, all: &[Partition], engines: &mut Topology) {
        engines.revoking(all.iter().map(|p| self.records.partition_id(*p)));
    }

    /// Adds the time that has passed to each partition that is held, and lets those go that have
    /// been held for `after`.
    pub fn let_go(&mut self, engines: &mut Topology, passed: Duration, after: Duration) {
        for (partition, held) in &mut self.unassigned {
            let Some(time) = held else {
                continue;
            };
            *time += passed;
            if *time >= after {
                *held = None;
                engines.revoke(self.records.partition_id(*partition), true);
            }
        }
    }
}

/// A source that borrows the engines for one poll.
pub struct SourceHandler<'a> {
    /// The source.
    pub source: &'a mut SourceReader,
    /// The engines.
    pub engines: &'a mut Topology,
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
            Item::End => {
                self.on_partition(partition, PartitionEvent::Ended);
                Progress::Done
            }
            Item::Wake => {
                self.on_partition(partition, PartitionEvent::Grown);
                Progress::Done
            }
            Item::LeaveOut => {
                self.on_partition(partition, PartitionEvent::LeftOut);
                Progress::Done
            }
            Item::Rewind(offset) => {
                self.on_partition(partition, PartitionEvent::Rewound(*offset));
                Progress::Done
            }
        });
        self.source.queue = queue;
    }

    fn read(
        &mut self,
        partition: Partition,
        record: &Record<'_>,
        place: Option<usize>,
    ) -> Progress {
        let records = &mut self.source.records;
        match self.engines.sink_of(records.partition_id(partition)) {
            Some(sink) => records.read_at(sink, record, place),
            None => Progress::Done,
        }
    }

    /// Counts a record, at this place of its batch, or queues it.
    fn take(&mut self, record: &Record<'_>, place: Option<usize>) {
        let partition = Partition {
            topic: record.topic,
            partition: record.partition,
        };
        let waits = self.source.queue.has(partition);
        if waits || self.read(partition, record, place) == Progress::AwaitingSchema {
            if waits {
                self.source.records.ask_ahead(record);
            } else {
                // It holds the others from now on, also where its end was reported.
                self.on_partition(partition, PartitionEvent::Grown);
            }
            let item = Item::Record(Owned::of(record));
            self.source.queue.push(partition, item);
        }
    }

    fn on_partition(&mut self, partition: Partition, what: PartitionEvent) {
        let id = self.source.records.partition_id(partition);
        self.engines.on_partition(id, what);
    }
}

impl Handler for SourceHandler<'_> {
    fn record(&mut self, record: Record<'_>) {
        self.take(&record, None);
    }

    fn records(&mut self, batch: &[Record<'_>]) {
        self.source.records.decode(batch);
        for (place, record) in batch.iter().enumerate() {
            self.take(record, Some(place));
        }
    }

    fn assigning(&mut self) {
        self.source.lost_since = None;
        self.engines.assigning();
    }

    fn assigned(&mut self, partition: Partition) -> Option<i64> {
        self.source.reset(partition);
        self.source.unassigned.remove(&partition);
        let id = self.source.records.partition_id(partition);
        let offset = self.engines.assign(id);
        if let Some(offset) = offset {
            // What was restored is stored; what one engine has read since is not.
            let stored = self.source.stored.entry(partition).or_insert(offset);
            if self.engines.may_move() {
                *stored = offset;
            }
        }
        let (topic, partition) = self.source.place(partition);
        tracing::info!(topic, partition, offset, "partition assigned");
        if let Some(error) = self.engines.take_trouble() {
            // The consumer rejoins the group and tries again.
            self.error(KafkaError::Fatal(error.to_string()));
        }
        offset
    }

    fn stored(&self, partition: Partition) -> Option<i64> {
        self.source.stored.get(&partition).copied()
    }

    fn was_read(&self, topic: u16) -> bool {
        let partition = 0;
        let id = self
            .source
            .records
            .partition_id(Partition { topic, partition });
        self.engines.was_read(id.source)
    }

    fn begins(&mut self, partition: Partition, begin: Begin) {
        self.source.begun = true;
        self.source.stopped.remove(&partition);
        self.on_partition(partition, PartitionEvent::Rewound(begin.offset));
        let (topic, partition) = self.source.place(partition);
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
        self.engines.suspends(id)
    }

    fn revoking(&mut self, partitions: &[Partition]) {
        self.source.releasing(partitions, self.engines);
    }

    fn revoked(&mut self, partition: Partition, lost: bool) {
        self.source.reset(partition);
        self.source.release(partition, self.engines, lost);
        if lost {
            self.source.lose();
        }
        let (topic, partition) = self.source.place(partition);
        tracing::info!(topic, partition, lost, "partition revoked");
    }

    fn end_of_partition(&mut self, partition: Partition) {
        if self.source.queue.has(partition) {
            self.source.queue.push(partition, Item::End);
        } else {
            self.on_partition(partition, PartitionEvent::Ended);
        }
    }

    fn grown(&mut self, partition: Partition) {
        if self.source.queue.has(partition) {
            self.source.queue.push(partition, Item::Wake);
        } else {
            self.on_partition(partition, PartitionEvent::Grown);
        }
    }

    fn hidden(&mut self, partition: Partition, offset: i64, waited: Duration) {
        let (topic, number) = self.source.place(partition);
        tracing::error!(
            topic,
            partition = number,
            offset,
            seconds = waited.as_secs(),
            "a transaction that stays open hides the records of the partition; verdicts go on without it"
        );
        if self.source.queue.has(partition) {
            // Records before it wait for a schema, and hold the partition until that came.
            self.source.queue.push(partition, Item::LeaveOut);
            return;
        }
        self.on_partition(partition, PartitionEvent::LeftOut);
    }

    fn lost(&mut self, partition: Partition, offsets: Range<i64>) {
        let lost = u64::try_from(offsets.end - offsets.start).unwrap_or(0);
        if let Some(all) = self.source.lost.get_mut(usize::from(partition.topic)) {
            *all += lost;
        }
        let ((topic, partition), Range { start, end }) = (self.source.place(partition), offsets);
        tracing::error!(
            topic,
            partition,
            from = start,
            to = end,
            lost,
            "records were deleted by the broker before they were read; lengthen the topic's retention, or read sooner"
        );
    }

    fn rewound(&mut self, partition: Partition, offset: i64) {
        if self.source.queue.has(partition) {
            // Queued records are of the log before the rewind and still have to be counted.
            self.source.queue.push(partition, Item::Rewind(offset));
        } else {
            self.on_partition(partition, PartitionEvent::Rewound(offset));
        }
        let (topic, partition) = self.source.place(partition);
        tracing::error!(
            topic,
            partition,
            offset,
            "partition is shorter than what was read of it; reading continues here, as `on_truncated` says"
        );
    }

    fn suspended(&mut self, partition: Partition, why: &str) {
        let (topic, number) = self.source.place(partition);
        tracing::error!(
            topic,
            partition = number,
            why,
            "partition is no longer read"
        );
        self.source.assignment_changed = true;
        self.source.stopped.insert(partition, why.to_owned());
        // It must not hold the watermark of the others back.
        self.on_partition(partition, PartitionEvent::LeftOut);
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
