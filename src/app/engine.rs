//! The engine: records in, changes and reports out; no clock, no thread, no file.

use crate::collect::{Counters, Disposition, Event, Origin, Reason};
use crate::judge::{Change, StreamReport};
use std::fmt;

pub use crate::judge::{Caps, ModelPlan, Plan};
pub use crate::store::Snapshot;

/// The engine. See the module.
#[derive(Debug)]
pub struct Engine {
    plan: Plan,
    counters: Counters,
    reports: Vec<StreamReport>,
}

/// Why a snapshot cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreError {
    /// A part of the snapshot contradicts another.
    Corrupt(String),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Corrupt(what) => write!(f, "snapshot is corrupt: {what}"),
        }
    }
}

impl std::error::Error for RestoreError {}

impl Engine {
    /// An engine without state.
    pub fn new(plan: Plan) -> Engine {
        Engine {
            plan,
            counters: Counters::default(),
            reports: Vec::new(),
        }
    }

    /// Takes a decoded record.
    pub fn observe(&mut self, origin: Origin, _event: &Event<'_>) -> Disposition {
        let end = Disposition::Observed;
        self.counters.source_mut(origin.source).count(end);
        end
    }

    /// Takes a record that could not be decoded.
    pub fn reject(&mut self, origin: Origin, reason: Reason) -> Disposition {
        let end = Disposition::Rejected(reason);
        self.counters.source_mut(origin.source).count(end);
        end
    }

    /// The partition has nothing more to read for now: it no longer holds others back.
    pub fn end_of_partition(&mut self, _source: u16, _partition: i32) {}

    /// A partition is to be read; returns the offset to seek to, where one is known.
    pub fn assign(&mut self, _source: u16, _partition: i32) -> Option<i64> {
        None
    }

    /// A partition is no longer read here.
    pub fn revoke(&mut self, _source: u16, _partition: i32) {}

    /// Tells the time: withdraws what is stale, lets go of what expired. Returns all changes since
    /// the last call.
    pub fn tick(&mut self, _now_ms: i64) -> Vec<Change> {
        Vec::new()
    }

    /// The input has ended: seals and judges everything. Returns all changes since the last tick.
    pub fn finish(&mut self) -> Vec<Change> {
        Vec::new()
    }

    /// The latest report of each stream.
    pub fn reports(&self) -> impl Iterator<Item = &StreamReport> {
        self.reports.iter()
    }

    /// Where every record went.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What is monitored.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// All state, to be restored by [`Engine::restore`].
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }

    /// An engine that goes on from a snapshot. Streams whose cells or windows are not the plan's any
    /// more are dropped and counted.
    pub fn restore(plan: Plan, _snapshot: Snapshot) -> Result<Engine, RestoreError> {
        Ok(Engine::new(plan))
    }

    /// The next offset of each partition that was read.
    pub fn positions(&self) -> Vec<Origin> {
        Vec::new()
    }

    /// Heap bytes of all state.
    pub fn bytes(&self) -> usize {
        0
    }
}
