//! Processes that share the partitions of a consumer group.
//!
//! | file | holds |
//! |---|---|
//! | [`topology`] | how this process is placed: by itself, with others, or as the judge of others |
//! | [`assignment`] | the shards of this process, taken over and given up as the group assigns partitions |
//! | [`checkpoint_store`] | the topic of checkpoints, written; `checkpoint_batch`: one batch; `cursor`: how far each partition is stored; `foreign`: claims of other processes |
//! | [`follower`] | the judge of all workers; [`reader`]: the topic of checkpoints, read in order |
//!
//! What is counted and judged is decided by the pure types of [`crate::monitor`].

pub mod assignment;
mod checkpoint_batch;
pub mod checkpoint_store;
mod cursor;
pub mod follower;
mod foreign;
pub mod reader;
mod restored;
pub mod topology;
