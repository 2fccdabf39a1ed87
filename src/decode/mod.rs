//! From bytes to checked events.

mod decoder;
mod event;
mod file;
mod options;
pub mod scores;

pub use decoder::{Decoder, Rejection};
pub use event::{Event, Outcome, Prediction, Reason};
pub use file::{FileError, FileReader};
pub use options::{
    AHEAD_MS_MAX, DecodeOptions, DecodeOptionsError, FieldOrConst, IdField, PredictionField,
    RECORD_BYTES_MAX, TIME_EARLIEST_MS, TIME_LATEST_MS, TimeField, TimeUnit,
};
