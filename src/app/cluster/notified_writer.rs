//! Writes what people were notified of between two checkpoints of a judge partition.
//!
//! A notification does not wait for a checkpoint of all streams, and its delivery does not wait for
//! the engine's thread, which may judge thousands of streams first: the thread of a sink hands over
//! what was delivered ([`NotifiedWriter::delivered`]). If the process is killed before the record
//! is written, the next owner sends the notification again.
//!
//! Records that come during a write are written next. Records that could not be written are tried
//! again until two checkpoints have superseded them.

use crate::app::worker::{Background, Worker};
use crate::kafka::{KafkaError, WriteState};
use crate::monitor::repartition::judge_partition;
use crate::notify::{Delivered, fingerprint_of};
use crate::store::checkpoint::{self, KeyedRecord, Notified};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the broker may accept no record before the write counts as failed.
const WRITE: Duration = Duration::from_secs(10);

/// Pause after a failed write.
pub(super) const RETRY: Duration = Duration::from_secs(5);

/// Records, by partition of the topic and key.
type Batch = BTreeMap<(i32, String), Option<Vec<u8>>>;

/// Writes notifications between checkpoints. See the module.
pub(super) struct NotifiedWriter {
    /// How many judge partitions there are.
    partitions: i32,
    writer: Arc<dyn WriteState>,
    /// The records to write next.
    next: Arc<Mutex<Batch>>,
    state: Mutex<State>,
}

struct State {
    /// The write under way; on failure it returns its records.
    writing: Background<Result<(), (KafkaError, Batch)>>,
    /// When a write last failed.
    failed: Option<Instant>,
    held: BTreeMap<i32, Held>,
}

/// A judge partition that this process has.
struct Held {
    prefix: String,
    epoch: i64,
    /// Number of the last checkpoint that was begun.
    begun: u64,
    /// Keys of the records, by number of the last checkpoint that was begun before them.
    keys: BTreeMap<u64, BTreeSet<String>>,
    /// By alert, what was delivered and the engine's thread has not put yet.
    delivered: BTreeMap<String, Notified>,
}

impl Held {
    /// The record of what people were notified of after the last checkpoint was begun; `None` if it
    /// would be too large.
    fn record(&mut self, notified: &Notified) -> Option<KeyedRecord> {
        let record = checkpoint::notified_record(&self.prefix, (self.epoch, self.begun), notified)?;
        let keys = self.keys.entry(self.begun).or_default();
        keys.insert(record.0.clone());
        Some(record)
    }
}

impl NotifiedWriter {
    /// Writes with its own client, because a client that fails drops all records that it was given.
    pub fn new(
        partitions: i32,
        writer: Arc<dyn WriteState>,
        worker: Box<dyn Worker>,
    ) -> NotifiedWriter {
        NotifiedWriter {
            partitions,
            writer,
            next: Arc::default(),
            state: Mutex::new(State {
                writing: Background::new(worker),
                failed: None,
                held: BTreeMap::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It is whole between any two statements.
        self.state.lock()
    }

    /// Notes that a judge partition, whose keys have this prefix, was taken over under this epoch.
    pub fn hold(&self, partition: i32, prefix: String, epoch: i64) {
        let held = Held {
            prefix,
            epoch,
            begun: 0,
            keys: BTreeMap::new(),
            delivered: BTreeMap::new(),
        };
        self.state().held.insert(partition, held);
    }

    /// Forgets a partition that now belongs to another process. Waiting records are still written:
    /// our epoch is in their keys, and the next owner may not have read the topic yet.
    pub fn release(&self, partition: i32) {
        self.state().held.remove(&partition);
    }

    /// Notes that the checkpoint of this number is begun. It includes what the engine's thread has
    /// put.
    pub fn begin_checkpoint(&self, partition: i32, number: u64) {
        let mut state = self.state();
        let Some(held) = state.held.get_mut(&partition) else {
            return;
        };
        held.begun = number;
        for notified in std::mem::take(&mut held.delivered).into_values() {
            let record = held.record(&notified);
            self.add(partition, record);
        }
    }

    /// Takes what people were notified of an alert, to be written next; returns whether it is too
    /// large for a record.
    pub fn put(&self, partition: i32, notified: &Notified) -> bool {
        let mut state = self.state();
        let Some(held) = state.held.get_mut(&partition) else {
            return false;
        };
        if let Some(alert) = fingerprint_of(&notified.text)
            && let Some(delivered) = held.delivered.remove(&alert)
            && delivered.text == notified.text
        {
            // The sink's thread has handed it over already.
            return false;
        }
        let record = held.record(notified);
        !self.add(partition, record)
    }

    /// Writes at once what was delivered of an alert, if it is judged here. Later the engine's
    /// thread puts the same, which is not written again, or something newer.
    pub fn delivered(&self, of: Delivered) {
        let partition = judge_partition(&of.stream.model, self.partitions);
        let mut state = self.state();
        let Some(held) = state.held.get_mut(&partition) else {
            return;
        };
        let notified = Notified {
            stream: of.stream,
            text: of.text,
        };
        if let Some(record) = held.record(&notified) {
            held.delivered.insert(of.fingerprint, notified);
            self.add(partition, Some(record));
        }
        drop(state);
        self.write(Instant::now());
    }

    /// Returns whether there was a record to add.
    fn add(&self, partition: i32, record: Option<KeyedRecord>) -> bool {
        let Some((key, value)) = record else {
            return false;
        };
        self.next.lock().insert((partition, key), value);
        true
    }

    /// Keys of the records of a partition that were put before the checkpoint of this number was
    /// begun.
    pub fn keys_before(&self, partition: i32, number: u64) -> Vec<String> {
        let state = self.state();
        let held = state.held.get(&partition).into_iter();
        let keys = held.flat_map(|held| held.keys.range(..number));
        keys.flat_map(|(_, keys)| keys).cloned().collect()
    }

    /// Forgets the keys of records that were put before the checkpoint of this number was begun,
    /// and drops those records that still wait.
    pub fn drop_before(&self, partition: i32, number: u64) {
        let mut state = self.state();
        self.settle(&mut state);
        let Some(held) = state.held.get_mut(&partition) else {
            return;
        };
        let kept = held.keys.split_off(&number);
        let superseded = std::mem::replace(&mut held.keys, kept);
        let mut next = self.next.lock();
        for key in superseded.into_values().flatten() {
            next.remove(&(partition, key));
        }
    }

    /// Takes back records that could not be written, unless a newer record has the same key.
    fn settle(&self, state: &mut State) {
        let Some(Err((error, batch))) = state.writing.result() else {
            return;
        };
        crate::warn_limited!(
            %error,
            "what people were notified of is not written; until it is, or the next checkpoint, who takes over \
             notifies again"
        );
        state.failed = Some(Instant::now());
        let mut next = self.next.lock();
        for (key, value) in batch {
            next.entry(key).or_insert(value);
        }
    }

    /// Starts writing the waiting records. If a write is under way, it continues with them.
    pub fn write(&self, now: Instant) {
        let mut state = self.state();
        self.settle(&mut state);
        let waits = state
            .failed
            .is_some_and(|at| now.duration_since(at) < RETRY);
        if waits || state.writing.busy() || self.next.lock().is_empty() {
            return;
        }
        let (writer, next) = (Arc::clone(&self.writer), Arc::clone(&self.next));
        state
            .writing
            .start(move || write_all(writer.as_ref(), &next));
    }
}

/// Writes until nothing is left; after a failure, returns the records that were not written.
fn write_all(writer: &dyn WriteState, next: &Mutex<Batch>) -> Result<(), (KafkaError, Batch)> {
    loop {
        let batch = std::mem::take(&mut *next.lock());
        if batch.is_empty() {
            return Ok(());
        }
        let records = batch.iter();
        let records = records.map(|((of, key), value)| (*of, (key.clone(), value.clone())));
        let records: Vec<_> = records.collect();
        let records: Vec<_> = records.iter().map(|(of, keyed)| (*of, keyed)).collect();
        if let Err(error) = writer.put(&records, WRITE, &|| {}) {
            return Err((error, batch));
        }
    }
}
