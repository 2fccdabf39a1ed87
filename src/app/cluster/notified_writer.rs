//! Writes what people were notified of between two checkpoints of a judge partition.
//!
//! A notification does not wait for a checkpoint of all streams. What comes while others are being
//! written is written next. What could not be written is tried again, until two checkpoints have
//! superseded it.

use crate::app::worker::{Background, Worker};
use crate::kafka::{KafkaError, WriteState};
use crate::store::checkpoint::KeyedRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the broker may take no record before writing is called failed.
const WRITE: Duration = Duration::from_secs(10);

/// How long it waits after a failure.
const AGAIN: Duration = Duration::from_secs(5);

/// Records by partition of the topic and key.
type Batch = BTreeMap<(i32, String), Option<Vec<u8>>>;

/// See the module.
pub(super) struct NotifiedWriter {
    writer: Arc<dyn WriteState>,
    /// What could not be written comes back.
    writing: Background<Result<(), (KafkaError, Batch)>>,
    /// What is to be written next.
    next: Batch,
    /// When writing failed last, and how long it waits after that.
    failed: Option<Instant>,
    pub(super) again: Duration,
}

impl NotifiedWriter {
    /// Writes with a client of its own: one that fails drops all that it was given.
    pub fn new(writer: Arc<dyn WriteState>, worker: Box<dyn Worker>) -> NotifiedWriter {
        NotifiedWriter {
            writer,
            writing: Background::new(worker),
            next: Batch::new(),
            failed: None,
            again: AGAIN,
        }
    }

    /// Takes a record of this partition of the topic.
    pub fn put(&mut self, partition: i32, (key, value): KeyedRecord) {
        self.next.insert((partition, key), value);
    }

    /// Nobody needs the records with these keys of a partition any more.
    pub fn drop_superseded(
        &mut self,
        partition: i32,
        keys: impl Iterator<Item = BTreeSet<String>>,
    ) {
        self.settle();
        for key in keys.flatten() {
            self.next.remove(&(partition, key));
        }
    }

    /// Takes back what could not be written; what came later for the same key stays.
    fn settle(&mut self) {
        let Some(Err((error, batch))) = self.writing.result() else {
            return;
        };
        crate::warn_limited!(
            %error,
            "what people were notified of is not written; until it is, or the next checkpoint, who takes over \
             notifies again"
        );
        self.failed = Some(Instant::now());
        for (key, value) in batch {
            self.next.entry(key).or_insert(value);
        }
    }

    /// Begins to write what came, unless earlier records are being written.
    pub fn write(&mut self) {
        self.settle();
        let waits = self.failed.is_some_and(|at| at.elapsed() < self.again);
        if waits || self.writing.busy() || self.next.is_empty() {
            return;
        }
        let (batch, writer) = (std::mem::take(&mut self.next), Arc::clone(&self.writer));
        self.writing.start(move || {
            let records = batch.iter();
            let records = records.map(|((of, key), value)| (*of, (key.clone(), value.clone())));
            let records: Vec<(i32, KeyedRecord)> = records.collect();
            let records: Vec<_> = records.iter().map(|(of, keyed)| (*of, keyed)).collect();
            let written = writer.put(&records, WRITE, &|| {});
            written.map(drop).map_err(|error| (error, batch))
        });
    }
}
