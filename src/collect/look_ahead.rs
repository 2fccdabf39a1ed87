//! Looks the keys of joined records up before their turn; see [`super::join`], `joiner/ahead.rs`.
//!
//! Keys are made of all records first: hashing an id is a long chain of its own, between look-ups it
//! would keep them from waiting together.

use super::collector::Collector;
use super::event::{Event, Label, PartitionId};
use super::join::Key;

impl Collector {
    /// The key of a prediction, if its source is joined.
    pub fn key_of_event(&self, source: u16, event: &Event<'_>) -> Option<Key> {
        let plan = self.joins().plan(self.joins().role(source)?.join);
        let key = Key::new(plan.by_model.then_some(event.model), event.id);
        Some(key.of_version(event.version))
    }

    /// The key of an outcome, if its source is joined.
    pub fn key_of_label(&self, source: u16, label: &Label<'_>) -> Option<Key> {
        let plan = self.joins().plan(self.joins().role(source)?.join);
        let name = plan.by_model.then_some(label.model.unwrap_or_default());
        Some(Key::new(name, label.id))
    }

    /// Brings what a look-up of this key reads into the caches.
    #[inline]
    pub fn touch(&self, at: PartitionId, key: Key) {
        if let Some(role) = self.joins().role(at.source) {
            self.joins().touch(role.join, at.partition, key);
        }
    }
}
