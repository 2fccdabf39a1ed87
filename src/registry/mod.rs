//! A client of a Confluent-compatible schema registry: from the id in a record to the text of its schema.
//!
//! Whoever reads records must never wait for HTTP: the engine's thread ticks, snapshots and keeps its
//! place in the consumer group. So [`Registry::ask`] answers at once with what is known, and what is not
//! known is fetched by a thread of this module, while the asker holds the record back and asks again.
//!
//! ```text
//!  ask(id) ─► known ──────────────────────────► Known(schema)      kept for good: ids are never reused
//!          ─► absent, told within a minute ───► Absent(why)        asked again after that
//!          ─► wanted ── thread ── GET ──┬─────► Waiting
//!                                       ├ 200 ► known
//!                                       ├ 404 with the registry's own code 40403 ► absent
//!                                       └ all else: failed; again after a pause that doubles
//! ```
//!
//! What holds: only the registry itself, answering in its own words, can call a schema unknown. A
//! registry that is away, refuses the credentials, or is not a registry at all (a proxy's 404) costs
//! waiting, a log line and a count, and no record.
//!
//! Bounds: one request at a time, each within the configured timeout; pauses from [`PAUSE_MIN`] to
//! [`PAUSE_MAX`]; [`KNOWN_MAX`] schemas, [`REFERENCES_MAX`] references each, answers of at most
//! [`BODY_MAX`] bytes. (Confluent, "Schema Registry API Reference"; Karapace, Apicurio and Redpanda answer
//! alike.)

mod client;
mod fetch;

pub use client::{Answer, Counts, Registry};
pub use fetch::{BODY_MAX, FetchError, REFERENCES_MAX, RegistryOptions, Schema, SchemaKind, probe};

use std::time::Duration;

/// First pause after a failure: a registry that is restarted is back within seconds.
pub const PAUSE_MIN: Duration = Duration::from_millis(250);
/// Longest pause between two tries: what an outage may outlast itself by.
pub const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long the registry's word that it has no such schema is taken. A producer registers before it
/// sends, but a replica of the registry may lag.
pub const ABSENT_FOR: Duration = Duration::from_secs(60);
/// Schemas kept, and ids known to be absent; beyond, all are forgotten and fetched again as needed.
pub const KNOWN_MAX: usize = 10_000;
