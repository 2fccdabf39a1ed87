//! From the bytes of a JSON record to a checked event.
//!
//! Three steps: UTF-8 of the whole record; one scan that checks the grammar and notes where the wanted
//! fields lie; the checks of [`super::shape`] on those. The event borrows its names and its id from the
//! record. After the first records nothing is allocated, except for a wanted string that holds an
//! escape: that one is undone by serde_json into a buffer of its own.

use super::options::{DecodeOptions, DecodeOptionsError, LabelOptions};
use super::path::Paths;
use super::rejection::Rejection;
use super::scan::{Found, Kind, Scanner, unescape};
use super::shape::{Buffers, Shape, Value};
use crate::collect::{Event, Label, Reason};

/// A compiled [`DecodeOptions`], with the buffers that its events borrow.
pub struct Decoder {
    shape: Shape,
    fields: Fields,
    buffers: Buffers,
}

impl Decoder {
    /// Compiles the paths; an error names the path and what is wrong with it.
    pub fn new(options: &DecodeOptions) -> Result<Decoder, DecodeOptionsError> {
        let mut paths = Paths::new();
        let shape = Shape::new(options, &mut paths)?;
        Ok(Decoder {
            shape,
            fields: Fields::new(paths, options.record_bytes_max),
            buffers: Buffers::default(),
        })
    }

    /// Decodes one JSON record. `key` and `timestamp_ms` are the Kafka record's.
    pub fn decode<'a>(
        &'a mut self,
        payload: &'a [u8],
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
    ) -> Result<Event<'a>, Rejection> {
        let value = self.fields.find(payload, self.shape.prediction)?;
        self.shape
            .event(value, &mut self.buffers, key, timestamp_ms)
    }

    /// Whether the record last decoded had anything where the prediction should be.
    pub fn saw_prediction(&self) -> bool {
        let found = self.fields.found.get(self.shape.prediction);
        found.is_some_and(|f| !matches!(f.kind, Kind::Missing | Kind::Null))
    }
}

/// A compiled [`LabelOptions`].
pub struct LabelDecoder {
    shape: Shape,
    fields: Fields,
}

impl LabelDecoder {
    /// Compiles the paths; an error names the path and what is wrong with it.
    pub fn new(options: &LabelOptions) -> Result<LabelDecoder, DecodeOptionsError> {
        let mut paths = Paths::new();
        let shape = Shape::of_labels(options, &mut paths)?;
        Ok(LabelDecoder {
            shape,
            fields: Fields::new(paths, options.record_bytes_max),
        })
    }

    /// Decodes one JSON record. `key` and `timestamp_ms` are the Kafka record's.
    pub fn decode<'a>(
        &'a mut self,
        payload: &'a [u8],
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
    ) -> Result<Label<'a>, Rejection> {
        let value = self.fields.find(payload, self.shape.prediction)?;
        self.shape.label(value, key, timestamp_ms)
    }
}

/// The wanted fields of one record after another.
struct Fields {
    paths: Paths,
    found: Vec<Found>,
    /// One a slot; filled only where a string had escapes.
    unescaped: Vec<String>,
    record_bytes_max: usize,
}

impl Fields {
    fn new(paths: Paths, record_bytes_max: usize) -> Fields {
        let slots = paths.names.len();
        Fields {
            paths,
            found: vec![Found::MISSING; slots],
            unescaped: vec![String::new(); slots],
            record_bytes_max,
        }
    }

    /// Checks the record and finds the values of the slots.
    #[inline]
    fn find<'a>(
        &'a mut self,
        payload: &'a [u8],
        prediction: usize,
    ) -> Result<impl Fn(usize) -> Value<'a>, Rejection> {
        if payload.len() > self.record_bytes_max {
            return Err(Rejection::new(
                Reason::TooLarge,
                format!(
                    "the record has {} bytes, more than `record_bytes_max` = {}; shorten it or raise the limit",
                    payload.len(),
                    self.record_bytes_max
                ),
            ));
        }
        let text =
            std::str::from_utf8(payload).map_err(|e| Rejection::not_utf8(e.valid_up_to()))?;
        self.found.fill(Found::MISSING);
        Scanner::record(payload, &mut self.paths, prediction, &mut self.found)
            .map_err(|f| Rejection::fault(f, payload))?;
        for (found, plain) in self.found.iter().zip(&mut self.unescaped) {
            if found.kind == Kind::EscapedText {
                *plain = unescape(&payload[found.start..found.end]);
            }
        }
        let (found, unescaped) = (&self.found, &self.unescaped);
        Ok(move |slot: usize| {
            let f = found[slot];
            let span = &text[f.start..f.end];
            match f.kind {
                Kind::Missing => Value::Missing,
                Kind::Null => Value::Null,
                Kind::True => Value::Bool(true),
                Kind::False => Value::Bool(false),
                Kind::Number => Value::Number(span),
                Kind::NotFinite => Value::NotFinite(span),
                Kind::Text => Value::Text(span),
                Kind::EscapedText => Value::Text(&unescaped[slot]),
                Kind::Array => Value::Array(span),
                Kind::Object => Value::Object(span),
            }
        })
    }
}
