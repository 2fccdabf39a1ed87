//! Layer 2: the two stages as two types, and every way to place them.
//!
//! A [`Shard`] counts the records of its partitions; a [`Monitor`] judges; a [`Delta`] is all that
//! passes between them. Both are pure: no clock, no thread of their own, no file, no broker.
//!
//! | placed as | what it is |
//! |---|---|
//! | one process | [`Engine`]: one shard over all partitions, and a monitor |
//! | a process of a group | [`Shards`]: a shard and its windows for each partition, and a monitor |
//! | a worker | [`Shards`] without a monitor; deltas leave in checkpoints ([`delta_log`]) |
//! | the judge of all workers | [`Aggregator`]: checkpoints of remote shards, and a monitor |
//! | one of several judges | an [`Aggregator`] for each judge partition, over shares of checkpoints ([`repartition`]) |
//!
//! In reading order: [`delta`]; [`shard`] with [`vector_counts`]; [`monitor`](mod@monitor) with
//! [`vectors`]; [`version`] and [`versions`]; [`engine`]; for partitions that move [`retained`],
//! [`local_shard`], [`shards`], [`delta_log`], [`aggregator`], [`repartition`], [`liveness`] and
//! [`watchdog`]; [`snapshot`], [`restore`] and [`reset`].
//!
//! Few methods change a stage. A view ([`ShardView`], [`MonitorView`]) has the methods that read
//! it. [`ShardUpkeep`] has what the holder of a shard does besides giving it records.
//!
//! The monitor, not the shard, owns the windows: a process with one shard would otherwise hold them
//! twice. A shard keeps windows of its own only if its partition may move ([`retained`]), because
//! its checkpoint must be complete.

pub mod activity;
pub mod aggregator;
mod carry_over;
pub mod delta;
pub mod delta_log;
pub mod engine;
pub mod liveness;
pub mod local_shard;
#[expect(clippy::module_inception, reason = "the room is named after its stage")]
pub mod monitor;
pub mod repartition;
pub mod reset;
pub mod restore;
pub mod retained;
pub mod shard;
pub mod shards;
pub mod snapshot;
pub mod vector_counts;
pub mod vectors;
pub mod version;
pub mod versions;
pub mod views;
pub mod watchdog;

pub use crate::collect::Caps;
pub use crate::judge::{ModelPlan, Plan};
pub use aggregator::Aggregator;
pub use delta::Delta;
pub use engine::Engine;
pub use local_shard::LocalShard;
pub use monitor::{Monitor, MonitorView};
pub use restore::RestoreError;
pub use shard::{PartitionEvent, RecordSink, Shard, ShardUpkeep, ShardView};
pub use shards::Shards;
pub use snapshot::{Snapshot, VerdictState};
