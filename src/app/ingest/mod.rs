//! From the records of a source to the engine.
//!
//! ```text
//!  Kafka ──► consumer (handler) ───────────┐
//!                │ schema_queue            │
//!  topic range (replay) ──────────────────►├─► record ─► decoder ─► dispatch ─► Engine
//!  files (replay) ───────────────────────────────────────────────────────►┘
//! ```
//!
//! [`record::dispatch`] is the only way in: every decoded record passes it, whichever input it came
//! from. [`record`] decodes the records of a topic, for a consumer and for a replay alike;
//! [`decode_threads`], if any, decode ahead of it in a batch of a consumer. [`consumer`] adds what
//! a member of a consumer group needs: assignments, records that wait for a schema, and errors.
//! [`models`] names the model of an event that no configured model takes.

pub mod consumer;
pub mod contest;
pub mod decode_threads;
mod decoded;
pub mod models;
pub mod record;
pub mod schema_queue;

/// The configuration in a text, for tests.
#[cfg(test)]
pub(super) fn config(text: &str) -> crate::config::Config {
    let outside = crate::config::value::Outside {
        variable: &|_| None,
        directory: ".".into(),
    };
    crate::config::Config::parse(text, "test", &outside).expect("valid")
}

/// The configuration in a text that lacks the brokers, for tests.
#[cfg(test)]
fn kafka_config(text: &str) -> crate::config::Config {
    let brokers = "version = 1\n[kafka]\nbrokers = \"localhost:1\"\ngroup = \"g\"\n";
    config(&[brokers, text].concat())
}
