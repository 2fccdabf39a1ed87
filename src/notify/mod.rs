//! Sends alerts to people: Alertmanager, PagerDuty, Opsgenie, Slack, Teams, webhooks, a Kafka
//! topic.
//!
//! ```text
//!  engine thread           "notifications"                   one thread per sink
//!  change ─► dedup ─try_send─► journal (fsync) ─► queue ───► receiver ─► the world
//!            already sent?     alerts.journal     bounded    retries, in order
//!            silenced?              ▲ deliveries ◄───────────────┘
//! ```
//!
//! [`grouping`] joins the streams of a model in one alert. [`notification`] is the message, made
//! when an alert changes. [`dedup`] decides whether it must be sent. [`journal`] records on disk,
//! in lines of [`entry`], what was sent to whom, and what people answered. [`missed`] has what did
//! not reach a sink, [`journal_updates`] what the journal reports to the engine's thread, and
//! [`delivered`] what another process must know at once. [`sink`] holds a queue and a thread for
//! each [`receiver`]. [`dispatch`] feeds the sinks, [`notifier`] is the handle of the engine's
//! thread, and [`control`] is the handle for silences and acknowledgements. The work of the threads
//! is cut into [`steps`], which a [`host`] runs.
//!
//! Invariants:
//! * The engine's thread never waits for a sink or for the disk. What a full channel or queue drops
//!   is counted.
//! * A sink gets its notifications in the order in which they were made, and the next one only
//!   after the previous one was accepted or rejected permanently. A sink that is down delays no
//!   other sink.
//! * Each change is delivered once to each sink, across restarts too. A crash between a response
//!   and its line in the journal sends the change again with the same `key`, by which the receiver
//!   recognises it.
//! * An alert that fires is offered again to a sink that missed it: once the sink has room, or an
//!   hour after its receiver refused it permanently ([`missed::REFUSED_AGAIN_MS`]).
//! * When a sink is removed from the configuration, notifications that it has not sent are given
//!   up.
//! * If an alert moves to another process, the notifications that sinks still need move too. The
//!   previous owner holds them, also after a restart, and sends them only if the alert returns and
//!   no other process has delivered them.
//!
//! **Why a journal and not the snapshot.** A snapshot may be half a minute old. After a crash the
//! engine resumes from it and makes the same changes again, but a message to people cannot be taken
//! back. So what was sent is recorded in a file that is synced before anything is sent. The state
//! of the alerts (since when they fire) is part of the snapshot, with the sums that it is based on.
//! The journal holds what was sent, what is undelivered, silences and acknowledgements.
//!
//! Bounds: [`dispatch::CHANNEL_MAX`] notifications before the journal, `queue_max` for each sink
//! and as many ends again, one request at a time per sink, its `timeout`, pauses from
//! [`sink::PAUSE_MIN`] to its `retry_max`, or up to [`sink::ASKED_MAX`] if the receiver asks for it
//! (if it needs firing alerts again, at most twice `resend`).

pub mod alertmanager;
pub mod control;
pub mod dedup;
mod delivered;
pub mod dispatch;
pub mod entry;
pub mod grouping;
pub mod host;
pub mod journal;
pub mod journal_updates;
pub mod missed;
mod moved;
pub mod notification;
mod notified;
pub mod notifier;
pub mod opsgenie;
pub mod options;
pub mod pagerduty;
mod post;
pub mod receiver;
mod receivers;
pub mod sink;
mod slack;
pub mod steps;
mod teams;
pub mod template;
#[cfg(test)]
pub(crate) mod tests;
pub mod webhook;

pub use control::AlertControl;
pub use dedup::Deduplicator;
pub use delivered::{Delivered, DeliveryListener, fingerprint_of};
pub use grouping::GroupBy;
pub use host::{Host, Running, Threads};
pub use journal::{AlertJournal, JOURNAL};
pub use notification::{Notification, Status};
pub use notifier::{AlertHandover, Notifier, Transfers};
pub use options::{Kind, NotifyOptions, SinkOptions, Texts};
pub use receiver::{Failure, Receiver, TopicSink};
pub use steps::{Again, Bell, Steps};
pub use template::Template;
