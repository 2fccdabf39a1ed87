//! Records whose schema is not known yet, in order, until it is.
//!
//! A record that cannot be decoded *yet* must be neither lost nor skipped: the engine's position of
//! a partition says that every record before it is counted. So everything after such a record in
//! its partition waits behind it, while other partitions continue. When the queue holds more than
//! [`SCHEMA_QUEUE_BYTES_MAX`] bytes the consumer is paused; a batch of at most 1024 records that
//! was already fetched still comes on top. Nothing of the queue is in a snapshot. Positions lie
//! before the first waiting record, so all of them are read again after a stop, a crash or a
//! rebalance.

use crate::config::bounds::SCHEMA_QUEUE_BYTES_MAX;
use crate::kafka::{OwnedRecord, Partition};
use crate::monitor::PartitionEvent;
use std::collections::{BTreeMap, VecDeque};

/// Whether a record has been processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It has been counted.
    Done,
    /// Its schema is being fetched.
    AwaitingSchema,
}

/// Memory of an item in addition to its bytes.
const ITEM_BYTES: usize = 128;

/// What waits in the queue.
#[derive(Debug)]
pub enum Item {
    /// A record.
    Record(OwnedRecord),
    /// What happened to the partition after the records before this item.
    Event(PartitionEvent),
}

impl Item {
    fn bytes(&self) -> usize {
        ITEM_BYTES
            + match self {
                Item::Record(owned) => owned.bytes(),
                Item::Event(_) => 0,
            }
    }
}

/// The queues of one source, by partition. A partition without waiting items has no queue.
#[derive(Debug, Default)]
pub struct SchemaQueue {
    queues: BTreeMap<Partition, VecDeque<Item>>,
    bytes: usize,
    records: u64,
}

impl SchemaQueue {
    /// Whether items of the partition are waiting.
    pub fn has(&self, partition: Partition) -> bool {
        !self.queues.is_empty() && self.queues.contains_key(&partition)
    }

    /// Appends an item to the queue of its partition. A record that follows a queued end removes
    /// that end: otherwise the watermark would pass the records that wait behind it.
    pub fn push(&mut self, partition: Partition, item: Item) {
        let outdated = |last: &Item| match (&item, last) {
            (Item::Record(_), Item::Event(last)) => !matches!(last, PartitionEvent::Rewound(_)),
            (Item::Event(PartitionEvent::Grown), Item::Event(last)) => {
                matches!(last, PartitionEvent::Ended | PartitionEvent::Passed(_))
            }
            _ => false,
        };
        let queue = self.queues.entry(partition).or_default();
        while queue.back().is_some_and(outdated)
            && let Some(last) = queue.pop_back()
        {
            self.bytes -= last.bytes();
        }
        self.bytes += item.bytes();
        self.records += u64::from(matches!(item, Item::Record(_)));
        queue.push_back(item);
    }

    /// Drops the items of a partition; its next owner reads them again.
    pub fn clear(&mut self, partition: Partition) {
        for item in self.queues.remove(&partition).into_iter().flatten() {
            self.removed(&item);
        }
    }

    /// Passes the items of each partition to `process`, in order, up to the first that must wait.
    pub fn drain(&mut self, mut process: impl FnMut(Partition, &Item) -> Reading) {
        let mut queues = std::mem::take(&mut self.queues);
        for (&partition, queue) in &mut queues {
            while let Some(item) = queue.front() {
                if process(partition, item) == Reading::AwaitingSchema {
                    break;
                }
                if let Some(item) = queue.pop_front() {
                    self.removed(&item);
                }
            }
        }
        queues.retain(|_, queue| !queue.is_empty());
        self.queues = queues;
    }

    fn removed(&mut self, item: &Item) {
        self.bytes -= item.bytes();
        self.records -= u64::from(matches!(item, Item::Record(_)));
    }

    /// Number of waiting records of a partition.
    pub fn records_of(&self, partition: Partition) -> u64 {
        let queue = self.queues.get(&partition).into_iter().flatten();
        queue.filter(|item| matches!(item, Item::Record(_))).count() as u64
    }

    /// Whether no item waits.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether the source should pause.
    pub fn is_full(&self) -> bool {
        self.bytes > SCHEMA_QUEUE_BYTES_MAX
    }

    /// Number of waiting records.
    pub fn records(&self) -> u64 {
        self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::Record;

    fn record(partition: i32, offset: i64) -> Record<'static> {
        Record {
            partition,
            offset,
            key: Some(b"k"),
            payload: b"value",
            ..Record::default()
        }
    }

    #[test]
    fn items_leave_in_order_and_one_partition_does_not_block_another() {
        let mut queue = SchemaQueue::default();
        let p = |partition| Partition::from((0, partition));
        for (partition, offset) in [(1, 5), (2, 1), (1, 6)] {
            queue.push(
                p(partition),
                Item::Record(OwnedRecord::of(&record(partition, offset))),
            );
        }
        queue.push(p(2), Item::Event(PartitionEvent::Ended));
        queue.push(p(2), Item::Event(PartitionEvent::Rewound(0)));
        assert!(queue.has(p(1)) && !queue.has(p(0)));
        assert_eq!(queue.records(), 3);
        let mut seen = Vec::new();
        queue.drain(|partition, item| match item {
            Item::Record(r) if r.record().offset == 6 => Reading::AwaitingSchema,
            Item::Record(r) => {
                seen.push((partition.partition, r.record().offset));
                Reading::Done
            }
            Item::Event(what) => {
                let offset = match what {
                    PartitionEvent::Rewound(offset) => *offset,
                    _ => -1,
                };
                seen.push((partition.partition, offset));
                Reading::Done
            }
        });
        assert_eq!(seen, [(1, 5), (2, 1), (2, -1), (2, 0)]);
        assert!(queue.has(p(1)) && !queue.has(p(2)));
        let ends = |queue: &mut SchemaQueue| {
            let mut ends = 0;
            queue.drain(|_, item| {
                ends += usize::from(matches!(item, Item::Event(PartitionEvent::Ended)));
                Reading::Done
            });
            (ends, queue.bytes)
        };
        queue.push(p(1), Item::Event(PartitionEvent::Ended));
        queue.push(p(1), Item::Event(PartitionEvent::Grown));
        queue.push(p(1), Item::Record(OwnedRecord::of(&record(1, 7))));
        queue.push(p(1), Item::Event(PartitionEvent::Ended));
        assert_eq!(ends(&mut queue), (1, 0), "the last end alone");
        queue.push(p(1), Item::Event(PartitionEvent::Ended));
        queue.push(p(1), Item::Event(PartitionEvent::Passed(9)));
        queue.push(p(1), Item::Event(PartitionEvent::Grown));
        assert_eq!(ends(&mut queue), (0, 0), "none once the log has grown");
        queue.push(p(1), Item::Record(OwnedRecord::of(&record(1, 8))));
        queue.clear(p(1));
        assert!(queue.is_empty() && queue.bytes == 0 && queue.records() == 0);
    }
}
