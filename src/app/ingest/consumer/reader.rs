//! What a source needs from one poll to the next.

use crate::app::ingest::decode_threads::DecodeThreads;
use crate::app::ingest::record::RecordReader;
use crate::app::ingest::schema_queue::SchemaQueue;
use crate::config::Input;
use crate::kafka::{KafkaError, Partition};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Whether an unassigned partition holds the others back: the watermark waits for records that it
/// may still have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It holds them back for a while, and has done so for this long.
    For(Duration),
    /// It holds them back until it is assigned.
    UntilAssigned,
    /// It no longer holds them back.
    Over,
}

/// The state of a source between polls.
pub struct SourceReader {
    /// Where its records come from.
    pub input: Input,
    /// Decodes and counts its records.
    pub records: RecordReader,
    /// Threads that help to decode batches, if there are any.
    pub threads: Option<DecodeThreads>,
    /// Records that wait for their schema.
    pub queue: SchemaQueue,
    /// Partitions that are not read because they are shorter than what was read of them, each with
    /// the reason.
    pub stopped: BTreeMap<Partition, String>,
    /// By topic, the number of offsets that were deleted before they were read.
    pub lost: Vec<u64>,
    /// The consumer failed for good and has to be recreated.
    pub needs_consumer: bool,
    /// Another process has taken the `instance` since the flag was last cleared.
    pub fenced: bool,
    /// The assignment changed since the flag was last cleared.
    pub assignment_changed: bool,
    /// Partitions start, continue or stay unread at positions that are not stored yet.
    pub begun: bool,
    /// Unassigned partitions, and whether each holds the others back.
    pub unassigned: BTreeMap<Partition, Hold>,
    /// Partitions that were logged as gone.
    pub gone: BTreeSet<Partition>,
    /// The offset of each partition up to which its records are stored, so that it may be
    /// committed.
    pub stored: BTreeMap<Partition, i64>,
    /// When the group removed this process (it revoked all partitions, or the consumer failed), if
    /// no assignment has come since.
    pub lost_since: Option<Instant>,
    /// The last error. An error that needs an operator is not replaced by its consequences.
    pub last_error: Option<KafkaError>,
}

impl SourceReader {
    /// A source without an assignment.
    pub fn new(
        input: Input,
        records: RecordReader,
        threads: Option<DecodeThreads>,
    ) -> SourceReader {
        SourceReader {
            input,
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
            threads,
            records,
        }
    }

    /// Topics and partitions of this process whose reading stopped, with the reason.
    pub fn stopped(&self) -> impl Iterator<Item = (&str, i32, &str)> {
        let all = self.stopped.iter().map(|(p, why)| (self.name_of(*p), why));
        all.map(|((topic, partition), why)| (topic, partition, why.as_str()))
    }

    /// Topic name and number of a partition, for the log.
    pub(super) fn name_of(&self, partition: Partition) -> (&str, i32) {
        (self.records.topic(partition.topic), partition.partition)
    }

    /// Forgets the state of a partition whose assignment changes.
    pub(super) fn reset(&mut self, partition: Partition) {
        self.assignment_changed = true;
        self.stopped.remove(&partition);
        self.queue.clear(partition);
    }
}
