//! Floor 5: wiring.
//!
//! [`engine`] joins the pure stages; the rest ties it to the world. A [`Setup`] (what the configuration
//! says) becomes an [`App`] that is bound but not running: its state directory is locked, its snapshot
//! read, its port taken, its consumers made. What can fail at the start fails there, with a message;
//! [`App::run`] then only ends when it is told to. A [`Reloader`] takes over what may change meanwhile.
//!
//! ```text
//!  Kafka ─► consumer(s) ─► intake ─► engine ─► publisher ─► Published ─► HTTP
//!           └──────── one thread, "engine" ────────────┘        (tokio, one thread)
//!                            ▲ schemas ◄─ registry client (one thread, HTTP), where records need them
//!                              ├► alarms ─► notices (one thread, disk) ─► sinks (a thread each)
//!                              │          └► records (one thread, disk)
//!                              └► snapshot keeper (one thread, disk) ─► commit
//! ```
//!
//! With a topic for state the engine is a row of [`lanes`], one a partition, which a [`depot`] takes over and
//! gives up as the group moves partitions between processes. Where one process judges what many count, it has a
//! [`panel`] of their parcels, which a [`fleet`] follows. [`engines`] hides which of the three it is.

pub mod alarms;
pub mod backtest;
mod begin;
pub mod berth;
pub mod clock;
pub mod depot;
pub mod engine;
pub mod engines;
mod fault;
mod files;
pub mod fleet;
pub mod homes;
pub mod intake;
pub mod laid;
pub mod lanes;
pub mod panel;
mod parked;
pub mod passage;
mod publish;
pub mod range;
pub mod records;
mod reload;
pub mod replay;
mod run;
mod setup;
pub mod snapshots;
mod stop;
pub mod vectors;
pub mod watch;
pub mod witness;
pub mod work;

pub use fault::Fault;
pub use reload::Reloader;
pub use run::App;
pub use setup::{Setup, Source};
pub use stop::Stop;
