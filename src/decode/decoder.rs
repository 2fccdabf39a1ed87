//! From the bytes of a record to a checked event.
//!
//! Two steps: [`super::fields`] checks the form of the record and finds the wanted fields; the checks of
//! [`super::shape`] go over those. The event borrows its names and its id from the record. After the
//! first records nothing is allocated, except for a wanted string of JSON that holds an escape (that one
//! is undone by serde_json into a buffer of its own) and by what reads Protobuf.
//!
//! A record in another format than JSON needs its schema. [`Decoder::lacks`] says which; the caller, who
//! may talk to a registry, gives it to [`Decoder::learn`]. A decoder itself asks nobody.

use super::fields::{Fields, Raw};
use super::frame::SchemaText;
use super::options::{DecodeOptions, DecodeOptionsError, LabelOptions};
use super::path::Paths;
use super::rejection::Rejection;
use super::scan::Kind;
use super::shape::{Buffers, Shape};
use crate::collect::{Event, Label};

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
        let max = options.record_bytes_max;
        Ok(Decoder {
            fields: Fields::new(paths, shape.prediction, &options.packing, max)?,
            shape,
            buffers: Buffers::default(),
        })
    }

    /// Decodes a record that is one plain JSON object and one event, whatever the options say of its
    /// packing. `key` and `timestamp_ms` are the Kafka record's.
    #[inline]
    pub fn decode<'a>(
        &'a mut self,
        payload: &'a [u8],
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
    ) -> Result<Event<'a>, Rejection> {
        let value = self.fields.find(payload)?;
        self.shape
            .event(value, &mut self.buffers, key, timestamp_ms)
    }

    /// Whether [`Decoder::decode`] is all that the options ask for.
    pub fn is_plain(&self) -> bool {
        self.fields.packing.is_plain()
    }

    /// The schema that has to be learnt before the record can be opened.
    pub fn lacks(&self, payload: &[u8]) -> Option<u32> {
        self.fields.lacks(payload)
    }

    /// Takes the schema of an id. Where it cannot be used, records of it are rejected, saying why.
    pub fn learn(&mut self, id: u32, schema: &SchemaText) {
        self.fields.learn(id, schema);
    }

    /// Looks at a record as a whole; answers the number of its events, at least 1. An error is that of
    /// the record, of which nothing can be used.
    pub fn open(&mut self, raw: &Raw<'_>) -> Result<usize, Rejection> {
        self.fields.open(raw)
    }

    /// One event of the record that was opened; an error is that of the event alone.
    pub fn event<'a>(&'a mut self, raw: &Raw<'a>, row: usize) -> Result<Event<'a>, Rejection> {
        let value = self.fields.row(raw.payload, row)?;
        self.shape
            .event(value, &mut self.buffers, raw.key, raw.timestamp_ms)
    }

    /// Whether the record or row last decoded had anything where the prediction should be.
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
        let max = options.record_bytes_max;
        Ok(LabelDecoder {
            fields: Fields::new(paths, shape.prediction, &options.packing, max)?,
            shape,
        })
    }

    /// See [`Decoder::decode`].
    pub fn decode<'a>(
        &'a mut self,
        payload: &'a [u8],
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
    ) -> Result<Label<'a>, Rejection> {
        let value = self.fields.find(payload)?;
        self.shape.label(value, key, timestamp_ms)
    }

    /// See [`Decoder::is_plain`].
    pub fn is_plain(&self) -> bool {
        self.fields.packing.is_plain()
    }

    /// See [`Decoder::lacks`].
    pub fn lacks(&self, payload: &[u8]) -> Option<u32> {
        self.fields.lacks(payload)
    }

    /// See [`Decoder::learn`].
    pub fn learn(&mut self, id: u32, schema: &SchemaText) {
        self.fields.learn(id, schema);
    }

    /// See [`Decoder::open`].
    pub fn open(&mut self, raw: &Raw<'_>) -> Result<usize, Rejection> {
        self.fields.open(raw)
    }

    /// One outcome of the record that was opened; an error is that of the outcome alone.
    pub fn label<'a>(&'a mut self, raw: &Raw<'a>, row: usize) -> Result<Label<'a>, Rejection> {
        let value = self.fields.row(raw.payload, row)?;
        self.shape.label(value, raw.key, raw.timestamp_ms)
    }
}
