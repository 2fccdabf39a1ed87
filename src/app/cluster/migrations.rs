//! Streams that came to this process or left it with their partitions.

use crate::judge::StreamId;
use crate::monitor::VerdictState;
use std::collections::BTreeMap;

/// Streams that came to this process or left it since these were last taken.
#[derive(Debug, Default)]
pub struct Migrations {
    /// The verdicts of the streams that came, in order.
    pub came: Vec<VerdictState>,
    /// Streams that have no partition left here.
    pub left: Vec<StreamId>,
}

impl Migrations {
    /// Adds what people were notified of, for alerts that came and are not known to the notifier
    /// yet.
    pub fn add_notified(&self, all: &mut BTreeMap<StreamId, String>) {
        all.extend(self.came.iter().filter_map(VerdictState::notified));
    }
}
