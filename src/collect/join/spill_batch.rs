//! What is written to a spill table at once.

use super::cohort::Cohort;
use super::spill_backend::{SpillError, SpillTable};
use super::spill_record::{Name, RecordPlace, encode};
use std::ops::Range;

/// Bytes of values at which a batch should be written.
const BATCH_BYTES: usize = 16 << 20;

/// Deletions that may wait for the next write.
const DELETIONS_MAX: usize = 1 << 16;

/// A name with its value in the batch; empty if the name is to be deleted.
#[derive(Debug, Clone, Copy)]
struct Entry {
    name: Name,
    from: u32,
    len: u32,
}

/// Names with their new values, and names to delete.
#[derive(Debug, Default)]
pub(super) struct SpillBatch {
    entries: Vec<Entry>,
    values: Vec<u8>,
}

impl SpillBatch {
    /// Bytes of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether the batch should be written.
    pub fn is_full(&self) -> bool {
        self.values.len() >= BATCH_BYTES
    }

    /// Whether so many deletions wait that the batch should be written.
    pub fn has_many_deletions(&self) -> bool {
        self.entries.len() >= DELETIONS_MAX
    }

    /// Appends the record of a row to the values.
    pub fn append(&mut self, cohort: &Cohort, row: u32, at: RecordPlace) {
        encode(cohort, row, at, &mut self.values);
    }

    /// Appends an encoded record to the values.
    pub fn append_encoded(&mut self, record: &[u8]) {
        self.values.extend_from_slice(record);
    }

    /// Appends a part of the values again.
    pub fn repeat(&mut self, values: Range<usize>) {
        self.values.extend_from_within(values);
    }

    /// Gives a name a part of the values.
    pub fn put(&mut self, name: Name, value: Range<usize>) {
        self.entries.push(Entry {
            name,
            from: value.start as u32,
            len: value.len() as u32,
        });
    }

    /// Deletes a name.
    pub fn delete(&mut self, name: Name) {
        self.put(name, 0..0);
    }

    /// Writes everything; the batch is empty afterwards.
    pub fn write(&mut self, table: &mut dyn SpillTable) -> Result<(), SpillError> {
        // A name that is deleted and written again stays.
        self.entries
            .sort_unstable_by_key(|e| (e.name, e.len == 0, e.from));
        self.entries.dedup_by_key(|e| e.name);
        let value = |e: &Entry| &self.values[e.from as usize..][..e.len as usize];
        let entries = self.entries.iter();
        let mut entries = entries.map(|e| (&e.name[..], (e.len > 0).then(|| value(e))));
        let written = table.write(&mut entries);
        self.entries.clear();
        self.values.clear();
        self.entries.shrink_to(DELETIONS_MAX);
        self.values.shrink_to(BATCH_BYTES / 16);
        written
    }

    /// Drops the deletions, because the table itself is dropped.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Heap bytes.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.values.capacity()
    }
}
