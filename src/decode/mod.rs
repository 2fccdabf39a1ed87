//! From bytes to checked events.
//!
//! Here records of other people's making become [`Event`](crate::collect::Event)s, or a [`Rejection`] that says what is wrong
//! with them and how to mend it. The shape of a record is configuration ([`DecodeOptions`]), so the
//! decoder is compiled from it at start: a tree of wanted keys and one pass over the bytes. A generic
//! parser would build a value for each field and then look up the few that are wanted, at five times the
//! cost (feasibility: 108 ns an event against 540 for a `Value`, 238 for a struct fixed at compile
//! time).
//!
//! What holds: an accepted record is valid JSON in every byte; its score has the bits of the decimal in
//! the record; its time, score, vector, classes and outcome are in range; nothing was clamped, rounded
//! or guessed. Both are tested against serde_json on generated records.

mod decoder;
mod file;
mod number;
mod options;
mod path;
mod rejection;
mod scan;
pub mod scores;
mod shape;
mod time;
pub mod vectors;

pub use decoder::{Decoder, LabelDecoder};
pub use file::{FileError, FileReader, Row};
pub use options::{
    AHEAD_MS_MAX, DecodeOptions, DecodeOptionsError, FieldOrConst, IdField, LabelOptions,
    PredictionField, RECORD_BYTES_MAX, TIME_EARLIEST_MS, TIME_LATEST_MS, TimeField, TimeUnit,
};
pub use rejection::Rejection;
