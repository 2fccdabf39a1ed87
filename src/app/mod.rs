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
//!                              └► snapshot keeper (one thread, disk) ─► commit
//! ```

pub mod clock;
pub mod engine;
mod fault;
pub mod intake;
mod parked;
mod publish;
mod reload;
pub mod replay;
mod run;
mod setup;
pub mod snapshots;
mod stop;
pub mod table;
pub mod work;

pub use fault::Fault;
pub use reload::Reloader;
pub use run::App;
pub use setup::{Setup, Source};
pub use stop::Stop;
