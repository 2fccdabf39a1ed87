//! From the bytes of a record to a checked event.

use super::event::{Event, Reason};
use super::options::{DecodeOptions, DecodeOptionsError};

/// Why a record is not an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The counter it goes to.
    pub reason: Reason,
    /// The field, its value and the remedy, for the dead letter and the log.
    pub detail: String,
}

/// A compiled [`DecodeOptions`]; reuses its buffers.
pub struct Decoder {
    options: DecodeOptions,
}

impl Decoder {
    /// Compiles the paths.
    pub fn new(options: &DecodeOptions) -> Result<Decoder, DecodeOptionsError> {
        Ok(Decoder {
            options: options.clone(),
        })
    }

    /// Decodes one JSON record. `key` and `timestamp_ms` are the Kafka record's.
    pub fn decode<'a>(
        &'a mut self,
        payload: &'a [u8],
        _key: Option<&'a [u8]>,
        _timestamp_ms: Option<i64>,
    ) -> Result<Event<'a>, Rejection> {
        Err(Rejection {
            reason: Reason::Malformed,
            detail: format!("{} {}", payload.len(), self.options.outcome),
        })
    }
}
