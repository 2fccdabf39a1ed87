//! A client of a Confluent-compatible schema registry: from the id in a record to the text of its
//! schema.
//!
//! The engine thread must never wait for HTTP, because it also ticks, takes snapshots and
//! heartbeats in the consumer group. So [`Registry::get`] returns at once what is known. A thread
//! of this module fetches unknown schemas, while the caller queues the record and asks again.
//!
//! ```text
//!  get(id) ─► known ──────────────────────────► Known(schema)      kept forever: ids are never reused
//!          ─► absent, for less than a minute ─► Absent(why)        fetched again after that
//!          ─► wanted ── thread ── GET ──┬─────► Waiting
//!                                       ├ 200 ► known
//!                                       ├ 404 with the registry's own code 40403 ► absent
//!                                       └ else ► failed, retried after a pause that doubles
//! ```
//!
//! Always: a schema counts as absent only if the registry says so with its own error code. A
//! registry that is down, refuses the credentials, or is not a registry (the 404 of a proxy) costs
//! waiting, a log line and a count, but no record.
//!
//! Limits: one request at a time, within the configured timeout; pauses from [`PAUSE_MIN`] to
//! [`PAUSE_MAX`]; [`KNOWN_MAX`] schemas with [`REFERENCES_MAX`] references each; responses of at
//! most [`BODY_MAX`] bytes. The API is that of Confluent ("Schema Registry API Reference"), which
//! Karapace, Apicurio and Redpanda implement too.

mod client;
mod fetch;

pub use client::{ABSENT_FOR, KNOWN_MAX, Lookup, PAUSE_MAX, PAUSE_MIN, Registry, RequestCounts};
pub use fetch::{BODY_MAX, FetchError, REFERENCES_MAX, RegistryOptions, Schema, SchemaKind, probe};
