//! Decodes records into checked events.
//!
//! A record becomes an [`Event`](crate::collect::Event), or a [`Rejection`] that names the problem
//! and its remedy. The shape of a record is configuration ([`DecodeOptions`]). The decoder compiles
//! it at startup into a tree of wanted keys, and scans the bytes once. A generic parser would build
//! a value for each field and then look up the few wanted ones. If a producer writes the same bytes
//! between the values of its records, the decoder remembers that layout and scans only the values.
//!
//! Other formats, frames, envelopes and arrays of events are unpacked before the same checks. An
//! Avro or Protobuf record yields the same event as the equivalent JSON, to the bit. `cargo bench
//! --bench decode` measures the cost of each.
//!
//! | file | holds |
//! |---|---|
//! | `options` | the configured shape of a record |
//! | `source`, `decoder` | the records of one source; one record, from bytes to an event |
//! | `fields`, `path` | the wanted fields of a record, in any format and envelope |
//! | `scan`, `layout`, `words` | JSON: the scanner, remembered layouts, eight bytes at a time |
//! | `frame`, `avro`, `avro_schema`, `protobuf`, `sink` | the other formats, written as JSON values |
//! | `value`, `number`, `time`, `classes` | values, and their meaning |
//! | `shape`, `rejection` | the checks, and why a record fails them |
//! | `file`, `columnar` | files of events for `replay` and `backtest`; Parquet and Arrow |
//! | `line_ends`, `quotes`, `row_limit` | CSV: line ends of Windows, open quotes, long rows |
//! | `rows`, [`columns`], `headers`, `unique` | the rows and columns that `evaluate` reads |
//! | [`scores`], [`vectors`], `scores_error` | the samples that `evaluate` makes of them |
//!
//! Invariants: an accepted record is well formed in every byte. Its score is the double nearest to
//! the number in the record. Its time, score, vector, classes and outcome are in range. Nothing is
//! clamped, rounded or guessed. Tests compare the decoder with serde_json and with the libraries of
//! the formats on generated records.

mod avro;
mod avro_schema;
mod classes;
mod columnar;
pub mod columns;
mod decoder;
mod fields;
mod file;
mod frame;
mod headers;
mod layout;
mod line_ends;
mod number;
mod options;
mod path;
mod protobuf;
mod quotes;
mod rejection;
mod row_limit;
mod rows;
mod scan;
pub mod scores;
mod scores_error;
mod shape;
mod sink;
#[cfg(test)]
mod slow;
mod source;
mod time;
mod unique;
mod value;
pub mod vectors;
mod words;

pub(crate) use classes::are_numbers;
pub use decoder::{Compiled, Decoder, OutcomeDecoder};
pub use fields::{HeaderMap, Raw};
pub use file::{Content, FileError, FileReader, Row};
pub use frame::SchemaText;
pub use options::{
    DecodeOptions, DecodeOptionsError, Envelope, FieldOrConst, Format, IdField, OutcomeOptions,
    Packing, PredictionField, TimeField, TimeUnit,
};
pub use rejection::Rejection;
pub use scores_error::ScoresError;
pub use source::{Needed, SourceDecoder};
pub use time::{offset as time_offset, parse as parse_time};
