//! Writes what people were notified of between two checkpoints of a judge partition.
//!
//! A notification does not wait for a checkpoint of all streams. What comes while others are being
//! written is written next. If writing fails, it is left to the next checkpoint.

use crate::app::worker::{Background, Worker};
use crate::kafka::{KafkaError, WriteState};
use crate::store::checkpoint::KeyedRecord;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long the broker may take no record before writing is called failed.
const WRITE: Duration = Duration::from_secs(10);

/// See the module.
pub(super) struct NotifiedWriter {
    writer: Arc<dyn WriteState>,
    writing: Background<Result<(), KafkaError>>,
    /// What is to be written next, by partition of the topic and key.
    next: BTreeMap<(i32, String), Option<Vec<u8>>>,
}

impl NotifiedWriter {
    /// Writes with a client of its own: one that fails drops all that it was given.
    pub fn new(writer: Arc<dyn WriteState>, worker: Box<dyn Worker>) -> NotifiedWriter {
        NotifiedWriter {
            writer,
            writing: Background::new(worker),
            next: BTreeMap::new(),
        }
    }

    /// Takes a record of this partition of the topic.
    pub fn put(&mut self, partition: i32, (key, value): KeyedRecord) {
        self.next.insert((partition, key), value);
    }

    /// Another process writes for this partition from now on.
    pub fn forget(&mut self, partition: i32) {
        self.next.retain(|(of, _), _| *of != partition);
    }

    /// Begins to write what came, unless earlier records are being written.
    pub fn write(&mut self) {
        if let Some(Err(error)) = self.writing.result() {
            crate::warn_limited!(
                %error,
                "what people were notified of is not written between checkpoints; who takes over before the next one \
                 notifies again"
            );
        }
        if self.writing.busy() || self.next.is_empty() {
            return;
        }
        let (next, writer) = (std::mem::take(&mut self.next), Arc::clone(&self.writer));
        self.writing.start(move || {
            let records = next.into_iter();
            let records = records.map(|((partition, key), value)| (partition, (key, value)));
            let records: Vec<(i32, KeyedRecord)> = records.collect();
            let records: Vec<_> = records.iter().map(|(of, keyed)| (*of, keyed)).collect();
            writer.put(&records, WRITE, &|| {}).map(drop)
        });
    }
}
