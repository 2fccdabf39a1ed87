//! What the consumer calls during a poll: records go to the engine, news of partitions to the
//! topology.

use super::SourceReader;
use crate::app::cluster::topology::Topology;
use crate::app::ingest::decode_threads::Rows;
use crate::app::ingest::schema_queue::{Item, Reading};
use crate::kafka::{Begin, Handler, KafkaError, Owned, Partition, Record};
use crate::monitor::PartitionEvent;
use std::ops::Range;
use std::time::Duration;

/// A source that borrows what counts its records for one poll.
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

    /// Counts a record, whose rows may be decoded already, or queues it.
    fn admit(&mut self, record: &Record<'_>, rows: Option<Rows<'_>>) {
        let partition = record.in_partition();
        let waits = self.source.queue.has(partition);
        if waits || self.read(partition, record, rows) == Reading::AwaitingSchema {
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
        self.topology.on_partition(id, what);
    }

    /// The same once the records of the partition that wait for a schema are counted: they came
    /// before it, and hold the partition until then.
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
        let learned = std::mem::take(&mut self.source.records.learned);
        match self.source.threads.take() {
            None => batch.iter().for_each(|record| self.admit(record, None)),
            Some(mut threads) => {
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
        // Without their outcomes predictions would mature as if those had not happened. So nothing
        // passes the first partition until it is assigned.
        let is_outcomes = joins.any(|j| j.outcomes == id.source && j.predictions != id.source);
        if is_outcomes && self.topology.expect(id) {
            self.source.unassigned.insert(first, None);
        }
    }

    fn assigned(&mut self, partition: Partition) -> Option<i64> {
        self.source.reset(partition);
        self.source.unassigned.remove(&partition);
        let id = self.source.records.partition_id(partition);
        let offset = self.topology.assign(id);
        if let Some(offset) = offset {
            // What was restored is stored; what one engine has read since is not.
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
            "records were deleted by the broker before they were read; lengthen the topic's retention, or read sooner"
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
        // Stored at once: a restart must not read on where the log has grown beyond the position.
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
        // It must not hold the watermark of the others back.
        self.on_partition(partition, PartitionEvent::LeftOut);
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
