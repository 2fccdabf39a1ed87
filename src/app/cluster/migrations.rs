//! Streams that came to this process and that left it, as their partitions moved.

use crate::judge::StreamId;
use crate::monitor::VerdictState;
use std::collections::BTreeMap;

/// See the module.
#[derive(Debug, Default)]
pub struct Migrations {
    /// Streams that came with what was known of them, in order.
    pub came: Vec<VerdictState>,
    /// Streams that have no partition left here.
    pub left: Vec<StreamId>,
}

impl Migrations {
    /// Adds what people were notified of, for alerts that came and that the notifier does not know
    /// yet.
    pub fn add_notified(&self, all: &mut BTreeMap<StreamId, String>) {
        all.extend(self.came.iter().filter_map(VerdictState::notified));
    }
}
