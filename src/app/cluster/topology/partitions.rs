//! Partitions that are assigned to a process and revoked from it.

use super::Topology;
use crate::collect::{Origin, PartitionId};
use crate::kafka::KafkaError;
use crate::monitor::{Engine, PartitionEvent, RecordSink};

impl Topology {
    /// Begins a rebalance that assigns partitions: [`Topology::assign`] follows for each.
    pub fn assigning(&mut self) {
        if let Topology::Sharded(m) = self {
            m.assigning();
        }
    }

    /// Begins a rebalance that revokes these partitions: [`Topology::revoke`] follows for each.
    pub fn revoking(&mut self, all: impl Iterator<Item = PartitionId>) {
        if let Topology::Sharded(m) = self {
            m.revoking(all);
        }
    }

    /// Starts reading a partition, taking it over if partitions may move; returns the offset to
    /// seek to, if known.
    pub fn assign(&mut self, at: PartitionId) -> Option<i64> {
        match self {
            Topology::Single(engine) => engine.assign(at),
            Topology::Sharded(m) => m.assign(at),
            Topology::Judges(_) => None,
        }
    }

    /// Makes the watermark wait for an unassigned partition that may be assigned soon, until it is
    /// revoked. Returns `false` if other processes may own it at once.
    pub fn await_partition(&mut self, at: PartitionId) -> bool {
        let Topology::Single(engine) = self else {
            return false;
        };
        engine.assign(at);
        true
    }

    /// Whether an engine over all partitions has positions of a topic. Where partitions move, a
    /// process cannot know what others have read.
    pub fn was_read(&self, source: u16) -> bool {
        let is = |o: Origin| o.source == source;
        let known = |engine: &Engine| engine.shard().partitions().positions().any(is);
        matches!(self, Topology::Single(engine) if known(engine))
    }

    /// Whether a partition that is assigned must not be read.
    pub fn suspends(&self, at: PartitionId) -> bool {
        matches!(self, Topology::Sharded(m) if m.suspends(at))
    }

    /// Whether partitions may move, and this process holds none: it has nothing to save.
    pub fn is_without_shards(&self) -> bool {
        matches!(self, Topology::Sharded(m) if m.shards().all().is_empty())
    }

    /// Where the log of a partition ended when it was found shorter than what was read of it, if it
    /// is not read for that reason.
    pub fn truncated_at(&self, at: PartitionId) -> Option<i64> {
        match self {
            Topology::Single(engine) => engine.shard().partitions().truncated_at(at),
            Topology::Sharded(m) => {
                let mut shards = m.shards().all().iter();
                shards.find_map(|s| s.view().partitions().truncated_at(at))
            }
            Topology::Judges(_) => None,
        }
    }

    /// Partitions that are assigned and not read until somebody acts, by topic, each with the
    /// reason.
    pub fn suspended(&self) -> impl Iterator<Item = (&str, i32, &str)> {
        let sharded = match self {
            Topology::Sharded(m) => Some(m),
            Topology::Single(_) | Topology::Judges(_) => None,
        };
        sharded.into_iter().flat_map(|m| m.suspended())
    }

    /// Returns once why a partition could not be taken over for now.
    pub fn take_trouble(&mut self) -> Option<KafkaError> {
        let Topology::Sharded(m) = self else {
            return None;
        };
        m.take_trouble()
    }

    /// Why the partitions of these topics must be taken over again, if they must.
    pub fn must_claim_again(&self, ours: impl Fn(u16) -> bool) -> Option<String> {
        let Topology::Sharded(m) = self else {
            return None;
        };
        m.must_claim_again(ours)
    }

    /// Gives up a partition. If it has checkpoints, a last one is written, unless the group has
    /// already given the partition away (`lost`).
    pub fn revoke(&mut self, at: PartitionId, lost: bool) {
        match self {
            Topology::Single(engine) => engine.on_partition(at, PartitionEvent::Revoked),
            Topology::Sharded(m) => m.revoke(at, lost),
            Topology::Judges(_) => {}
        }
    }

    /// Drops an unassigned partition that no longer exists.
    pub fn drop_gone(&mut self, at: PartitionId) {
        match self {
            Topology::Single(engine) => engine.on_partition(at, PartitionEvent::Gone),
            Topology::Sharded(_) | Topology::Judges(_) => self.revoke(at, true),
        }
    }
}
