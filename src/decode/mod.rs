//! From bytes to checked events.
//!
//! Here records of other people's making become [`Event`](crate::collect::Event)s, or a [`Rejection`] that says what is wrong
//! with them and how to mend it. The shape of a record is configuration ([`DecodeOptions`]), so the
//! decoder is compiled from it at start: a tree of wanted keys and one pass over the bytes. A generic
//! parser would build a value for each field and then look up the few that are wanted, at five times the
//! cost (108 ns an event against 540 for a `Value`, 238 for a struct fixed at compile time).
//!
//! Other formats, frames, envelopes and arrays of events are taken off before the same checks: a record
//! of Avro or Protobuf gives the event that it would give as JSON, to the bit. What each costs is
//! measured by `cargo bench --bench decode`.
//!
//! What holds: an accepted record is well formed, of JSON in every byte; its score has the bits of the
//! number in the record; its time, score, vector, classes and outcome are in range; nothing was clamped,
//! rounded or guessed. This is tested against serde_json and the formats' own libraries on generated
//! records.

mod avro;
mod avro_schema;
mod decoder;
mod fields;
mod file;
mod frame;
mod number;
mod options;
mod path;
mod protobuf;
mod rejection;
mod scan;
pub mod scores;
mod shape;
mod sink;
mod time;
pub mod vectors;

pub use decoder::{Decoder, LabelDecoder};
pub use fields::{HeaderMap, Raw};
pub use file::{Content, FileError, FileReader, Row};
pub use frame::SchemaText;
pub use options::{
    AHEAD_MS_MAX, DecodeOptions, DecodeOptionsError, Envelope, FieldOrConst, Format, IdField,
    LabelOptions, Packing, PredictionField, RECORD_BYTES_MAX, TIME_EARLIEST_MS, TIME_LATEST_MS,
    TimeField, TimeUnit,
};
pub use rejection::Rejection;
pub use time::parse as parse_time;
