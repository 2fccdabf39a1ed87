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

pub mod berth;
pub mod clock;
pub mod depot;
pub mod engine;
pub mod engine_loop;
pub mod engines;
mod fault;
pub mod fleet;
pub mod homes;
pub mod ingest;
pub mod laid;
pub mod lanes;
pub mod outputs;
pub mod panel;
mod reload;
pub mod replay;
mod restore;
mod run;
mod setup;
mod stop;
pub mod table;
pub mod vectors;
pub mod watch;

pub use fault::Fault;
pub use reload::Reloader;
pub use run::App;
pub use setup::{Setup, Source};
pub use stop::Stop;
