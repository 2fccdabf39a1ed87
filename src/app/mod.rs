//! Layer 5: wiring.
//!
//! [`crate::monitor`] connects the pure stages; this layer connects them to brokers, disks and
//! HTTP. A [`Setup`] (from the configuration) becomes an [`App`] that is bound but does not run
//! yet: its state directory is locked, its snapshot restored, its port taken, its consumers
//! created. Errors at the start appear there, with a message. After that, [`App::run`] ends only
//! when it is stopped. A [`Reloader`] applies live changes of the configuration.
//!
//! ```text
//!  Kafka ─► consumer(s) ─► ingest ─► engine ─► outputs ─► Published ─► HTTP
//!           └─────── one thread, "engine" ────────┘       (tokio, one thread)
//!                             └ decodes and judges with a pool of threads
//!                             ▲ schemas ◄─ registry client (one thread, HTTP), where records need them
//!                               ├► alerts ─► notifications (one thread, disk) ─► sinks (a thread each)
//!                               ├► audit log (one thread, disk)
//!                               └► snapshots (one thread, disk) ─► commit
//! ```
//!
//! [`events`] takes posted events to a log on disk, which is read like a topic. [`ingest`] takes
//! records to the engine, [`outputs`] publishes, notifies and saves, [`engine_loop`] runs both, and
//! [`replay`] feeds past records to an engine.
//!
//! Records are counted and judged by the pure types of [`crate::monitor`]. With a state topic a
//! process has a shard per partition, and may leave judging to another process: see [`cluster`],
//! whose [`topology`](cluster::topology) hides these differences.

mod candidates;
pub mod clock;
pub mod cluster;
mod dropped;
pub mod engine_loop;
mod error;
pub mod events;
pub mod ingest;
mod journal_prefetch;
pub mod outputs;
mod pool;
mod reload;
pub mod replay;
mod restore;
mod run;
pub mod sample;
mod setup;
mod stop;
#[cfg(test)]
mod testing;
mod timers;
mod worker;

pub use dropped::READ_AGAIN;
pub use error::AppError;
pub use reload::Reloader;
pub use run::App;
pub use setup::Setup;
pub use stop::Stop;
pub use worker::{Job, Threads, Worker, Workers};
