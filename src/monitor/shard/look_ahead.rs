//! What joins will look up, before its turn.

use super::Shard;
use crate::collect::join::Key;
use crate::collect::{Event, Label, PartitionId};

impl Shard {
    /// See [`Collector::key_of_event`](crate::collect::collector::Collector::key_of_event).
    pub fn key_of_event(&self, source: u16, event: &Event<'_>) -> Option<Key> {
        self.collector.key_of_event(source, event)
    }

    /// See [`Collector::key_of_label`](crate::collect::collector::Collector::key_of_label).
    pub fn key_of_label(&self, source: u16, label: &Label<'_>) -> Option<Key> {
        self.collector.key_of_label(source, label)
    }

    /// See [`Collector::touch`](crate::collect::collector::Collector::touch).
    #[inline]
    pub fn touch(&self, at: PartitionId, key: Key) {
        self.collector.touch(at, key);
    }
}
