//! A store of pending predictions in memory, which checks that entries come in order.

use std::collections::BTreeMap;
use trueline::collect::join::{SpillBackend, SpillEntries, SpillError, SpillTable};

/// The table of a join in memory.
#[derive(Debug, Default)]
pub struct MemoryTable(BTreeMap<Vec<u8>, Vec<u8>>);

impl SpillTable for MemoryTable {
    fn write(&mut self, entries: &mut SpillEntries<'_>) -> Result<(), SpillError> {
        let mut last: Option<Vec<u8>> = None;
        for (name, value) in entries {
            assert!(last.as_deref() < Some(name), "ascending, no name twice");
            last = Some(name.to_vec());
            match value {
                Some(value) => self.0.insert(name.to_vec(), value.to_vec()),
                None => self.0.remove(name),
            };
        }
        Ok(())
    }

    fn read(&mut self, name: &[u8], value: &mut Vec<u8>) -> Result<bool, SpillError> {
        value.clear();
        value.extend(self.0.get(name).into_iter().flatten());
        Ok(self.0.contains_key(name))
    }
}

/// A table for each that opens one.
#[derive(Debug)]
pub struct MemoryBackend;

impl SpillBackend for MemoryBackend {
    fn open(&self) -> Result<Box<dyn SpillTable>, SpillError> {
        Ok(Box::new(MemoryTable::default()))
    }
}
