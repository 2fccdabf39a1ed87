//! A client of a Confluent-compatible schema registry: from the id in a record to the text of its
//! schema.
//!
//! The engine thread must never wait for HTTP, because it also ticks, takes snapshots and
//! heartbeats in the consumer group. So [`Registry::get`] returns at once. A thread of this module
//! fetches unknown schemas, while the caller queues the record and asks again.
//!
//! ```text
//!  get(id) ─► known ──────────────────────────► Known(schema)      kept forever: ids are never reused
//!          ─► absent, for less than a minute ─► Absent(why)        fetched again after that
//!          ─► wanted ── thread ── GET ──┬─────► Waiting
//!                                       ├ 200 ► known
//!                                       ├ 404 with the registry's own code 40403 ► absent
//!                                       ├ another 4xx twice, and it answers probes ► absent
//!                                       ├ 403, 5xx, no schema, and it answers probes, for half a minute ► absent
//!                                       ├ none, 408, 429, and it answers probes, for ten minutes ► absent
//!                                       └ else ► failed, retried after a pause of its own that doubles
//! ```
//!
//! One id must not block its partition permanently: a garbage record that looks like a frame has an
//! id that no registry has, and servers answer such requests with various statuses. So an error
//! concerns only this id if the registry answers another request. A registry that is down, refuses
//! the credentials (401), asks to wait (408, 429) or is not a registry (a proxy that answers 404 to
//! everything) delays records, with a log line and a count, but rejects none. Ids of records that
//! wait behind others are fetched in advance, so that several bad ids block their partition at the
//! same time and not one after the other.
//!
//! The thread's work is [`Fetches`]. A [`Host`] runs it, and makes the requests over HTTP. So a
//! test may do both with its own clock.
//!
//! Limits: one request at a time, within the configured timeout; pauses from [`PAUSE_MIN`] to
//! [`PAUSE_MAX`]; [`AHEAD_MAX`] ids ahead of their use; [`KNOWN_MAX`] schemas with
//! [`REFERENCES_MAX`] references each; responses of at most [`BODY_MAX`] bytes. The API is that of
//! Confluent ("Schema Registry API Reference"), which Karapace, Apicurio and Redpanda implement
//! too.

mod client;
mod fetch;
mod host;

pub use client::{
    ABSENT_FOR, AHEAD_MAX, DOUBTFUL_FOR, KNOWN_MAX, Lookup, PAUSE_MAX, PAUSE_MIN, Registry,
    UNANSWERED_FOR,
};
pub use fetch::{
    BODY_MAX, Connection, FetchError, REFERENCES_MAX, RegistryOptions, Schema, SchemaKind, probe,
};
pub use host::{Fetches, Host, Threads};
