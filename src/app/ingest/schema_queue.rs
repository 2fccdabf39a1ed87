//! Records whose schema is not known yet, kept in order until it is.
//!
//! A record that cannot be decoded *yet* must neither be lost nor passed: the engine's position of a
//! partition says that all before it is counted. So what follows such a record in its partition waits
//! behind it, other partitions go on, and when more than [`PARKED_BYTES_MAX`] waits the consumer is
//! paused (a batch that was fetched by then, of at most 1024 records, still comes on top). Nothing of it is
//! in a snapshot: the positions are still before the first record that waits, so after a stop, a crash
//! or a rebalance all of it is read again.

use crate::config::bounds::PARKED_BYTES_MAX;
use crate::kafka::{Owned, Partition};
use std::collections::{BTreeMap, VecDeque};

/// What became of a record for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raised {
    /// It has been counted.
    Taken,
    /// Its schema is being fetched.
    Waiting,
}

/// What a record or an end costs besides its bytes.
const ITEM_BYTES: usize = 128;

/// Something that waits.
#[derive(Debug)]
pub enum Item {
    /// A record.
    Record(Owned),
    /// The end of the partition, as of then.
    End,
    /// The log is another from here on, and is read from this offset.
    Rewind(i64),
}

impl Item {
    fn bytes(&self) -> usize {
        ITEM_BYTES
            + match self {
                Item::Record(owned) => owned.bytes(),
                Item::End | Item::Rewind(_) => 0,
            }
    }
}

/// All that waits of one source. A partition of which nothing waits has no queue.
#[derive(Debug, Default)]
pub struct Parked {
    queues: BTreeMap<Partition, VecDeque<Item>>,
    bytes: usize,
    records: u64,
}

impl Parked {
    /// Whether something of the partition waits.
    pub fn has(&self, partition: Partition) -> bool {
        !self.queues.is_empty() && self.queues.contains_key(&partition)
    }

    /// Puts something behind what waits.
    pub fn push(&mut self, partition: Partition, item: Item) {
        self.bytes += item.bytes();
        self.records += u64::from(matches!(item, Item::Record(_)));
        self.queues.entry(partition).or_default().push_back(item);
    }

    /// Forgets what waits of a partition: it is read again by whoever has it next.
    pub fn forget(&mut self, partition: Partition) {
        for item in self.queues.remove(&partition).into_iter().flatten() {
            self.left(&item);
        }
    }

    /// Hands out what waits, each partition in its order, as far as `take` will have it.
    pub fn release(&mut self, mut take: impl FnMut(Partition, &Item) -> Raised) {
        let mut queues = std::mem::take(&mut self.queues);
        for (&partition, queue) in &mut queues {
            while let Some(item) = queue.front() {
                if take(partition, item) == Raised::Waiting {
                    break;
                }
                if let Some(item) = queue.pop_front() {
                    self.left(&item);
                }
            }
        }
        queues.retain(|_, queue| !queue.is_empty());
        self.queues = queues;
    }

    fn left(&mut self, item: &Item) {
        self.bytes -= item.bytes();
        self.records -= u64::from(matches!(item, Item::Record(_)));
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether so much waits that no more should be read.
    pub fn is_full(&self) -> bool {
        self.bytes > PARKED_BYTES_MAX
    }

    /// Records that wait.
    pub fn records(&self) -> u64 {
        self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::{Headers, Record};

    fn record(partition: i32, offset: i64) -> Record<'static> {
        Record {
            topic: 0,
            partition,
            offset,
            timestamp_ms: None,
            key: Some(b"k"),
            payload: b"value",
            headers: Headers::default(),
        }
    }

    #[test]
    fn what_waits_leaves_in_its_order_and_one_partition_does_not_hold_another() {
        let mut parked = Parked::default();
        let p = |partition| Partition {
            topic: 0,
            partition,
        };
        for (partition, offset) in [(1, 5), (2, 1), (1, 6)] {
            parked.push(
                p(partition),
                Item::Record(Owned::of(&record(partition, offset))),
            );
        }
        parked.push(p(2), Item::End);
        parked.push(p(2), Item::Rewind(0));
        assert!(parked.has(p(1)) && !parked.has(p(0)));
        assert_eq!(parked.records(), 3);
        let mut seen = Vec::new();
        parked.release(|partition, item| match item {
            Item::Record(r) if r.record().offset == 6 => Raised::Waiting,
            Item::Record(r) => {
                seen.push((partition.partition, r.record().offset));
                Raised::Taken
            }
            Item::End => {
                seen.push((partition.partition, -1));
                Raised::Taken
            }
            Item::Rewind(offset) => {
                seen.push((partition.partition, *offset));
                Raised::Taken
            }
        });
        assert_eq!(seen, [(1, 5), (2, 1), (2, -1), (2, 0)]);
        assert!(parked.has(p(1)) && !parked.has(p(2)));
        parked.forget(p(1));
        assert!(parked.is_empty() && parked.bytes == 0 && parked.records() == 0);
    }
}
