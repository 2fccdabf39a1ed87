//! Alerts on their way to people: Alertmanager, webhooks, Slack, a Kafka topic.
//!
//! ```text
//!  engine's thread            "notices"                    one thread a sink
//!  change ─► desk ─try_send─► ledger (fsync) ─► queue ───► receiver ─► the world
//!            told already?    alerts.journal    bounded    retried, in order
//!            silenced?             ▲ what was delivered ◄────────┘
//! ```
//!
//! [`notice`] is what is told, made at the moment of a change; [`desk`] decides whether it has to be told;
//! [`ledger`] remembers on disk what was told, to whom, and what people said back; [`sink`] holds a queue
//! and a thread for each [`receiver`], and [`notifier`] all of them.
//!
//! What holds always:
//! * The engine's thread never waits: not for a sink, not for the disk. What a full channel or queue refuses is counted.
//! * A sink gets its notices in the order in which they were made, the next only when the one before was taken or
//!   refused for good. So one sink that is away delays nobody else.
//! * Each change is delivered once to each sink, across restarts too. A crash between an answer and its line in the ledger
//!   sends it again; it has the same `key`, by which the receiver knows it.
//!
//! **Why a ledger and not the snapshot.** A snapshot may be half a minute old, and the engine reads on from it as if nothing had been:
//! after a crash it makes the same changes again. What was said to people cannot be unsaid, so it is remembered by a file
//! that is synced before anything is sent. State of alerts (firing since when) is in the snapshot with the sums that it rests on;
//! what was told, undelivered notices, silences and acknowledgements are in the ledger.
//!
//! Bounds: [`notifier::CHANNEL_MAX`] notices before the ledger, `queue_max` for each sink, one request at a time for each, its
//! `timeout`, pauses from [`sink::PAUSE_MIN`] to the sink's `retry_max`.

pub mod alertmanager;
pub mod desk;
pub mod ledger;
pub mod notice;
pub mod notifier;
pub mod options;
mod post;
pub mod receiver;
pub mod sink;
mod slack;
pub mod template;
pub mod webhook;

pub use desk::Desk;
pub use ledger::{LEDGER, Ledger};
pub use notice::{Notice, Status};
pub use notifier::{Arrival, Clerk, Notifier, SinkCounts};
pub use options::{Kind, NotifyOptions, SinkOptions, Texts};
pub use receiver::{Carrier, Failure, Receiver};
pub use template::Template;
