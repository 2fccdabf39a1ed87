//! Processes that share the partitions of a consumer group.
//!
//! | file | holds |
//! |---|---|
//! | [`topology`] | how this process is placed: by itself, with others, or as the judge of others |
//! | [`assignment`] | the shards of this process, taken over and given up as the group assigns partitions; [`migrations`]: their streams that came and left |
//! | [`checkpoint_store`] | the topic of checkpoints, written; `checkpoint_batch`: one batch; `checkpoint_records`: its records; `cursor`: how far each partition is stored; `foreign`: claims of other processes; `revocation`: how long giving partitions up may take |
//! | [`judges`] | the judge of what others count: `judge_task`: what judges; [`reader`]: the topic of checkpoints, read in order; `lengths`: how long the topics of the sources are |
//! | [`follower`] | what feeds one judge of all workers |
//! | [`options`] | the options of all of them |
//! | [`judge_group`] | what feeds one of several judges; [`judge_topic`]: what workers write for them; `judge_member`: how it handles assigned and revoked judge partitions, `unserved`: those that no broker serves; `judge_store`: the checkpoints of judges; `notified_writer`: what people were notified of between checkpoints |
//!
//! What is counted and judged is decided by the pure types of [`crate::monitor`].

pub mod assignment;
mod checkpoint_batch;
mod checkpoint_records;
pub mod checkpoint_store;
mod cursor;
pub mod follower;
mod foreign;
pub mod judge_group;
mod judge_member;
mod judge_store;
mod judge_task;
pub mod judge_topic;
pub mod judges;
mod lengths;
pub mod migrations;
mod notified_writer;
pub mod options;
pub mod reader;
mod restored;
mod revocation;
#[cfg(test)]
mod tests;
pub mod topology;
mod unserved;
