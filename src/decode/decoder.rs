//! Decodes the bytes of a record into a checked event or outcome.
//!
//! Two steps: [`super::fields`] checks the form of the record and finds the wanted fields, and
//! [`super::shape`] checks their values. The event borrows its names and its id from the record.
//! After the first records nothing is allocated, except for a wanted JSON string with an escape,
//! which serde_json unescapes into a buffer of its own, and by the Protobuf reader.
//!
//! A record in a format other than JSON needs its schema. [`Compiled::lacks`] returns the id of the
//! missing schema, and the caller, who may query a registry, passes the schema to
//! [`Compiled::learn`].

use super::fields::{Fields, Raw};
use super::frame::SchemaText;
use super::options::{DecodeOptions, DecodeOptionsError, OutcomeOptions};
use super::path::Paths;
use super::rejection::Rejection;
use super::shape::{Buffers, Shape};
use super::value::Kind;
use crate::collect::{Event, OutcomeRecord};

/// Compiled options, with the buffers that decoded values borrow.
pub struct Compiled<B> {
    shape: Shape,
    fields: Fields,
    buffers: B,
}

/// Decodes events: a compiled [`DecodeOptions`].
pub type Decoder = Compiled<Buffers>;

/// Decodes outcomes: a compiled [`OutcomeOptions`].
pub type OutcomeDecoder = Compiled<()>;

impl<B> Compiled<B> {
    /// Whether `decode` alone handles the records of these options.
    pub fn is_plain(&self) -> bool {
        self.fields.packing.is_plain()
    }

    /// Id of the schema that this record needs and that was not learned yet.
    pub fn lacks(&self, payload: &[u8]) -> Option<u32> {
        self.fields.lacks(payload)
    }

    /// Stores the schema of an id. If it is unusable, its records are rejected with the reason.
    pub fn learn(&mut self, id: u32, schema: &SchemaText) {
        self.fields.learn(id, schema);
    }

    /// Opens a record and returns the number of its events or outcomes, at least 1. An error
    /// rejects the whole record.
    pub fn open(&mut self, raw: &Raw<'_>) -> Result<usize, Rejection> {
        self.fields.open(raw)
    }
}

impl Decoder {
    /// Compiles the options. An error names the invalid path and the problem.
    pub fn new(options: &DecodeOptions) -> Result<Decoder, DecodeOptionsError> {
        let mut paths = Paths::new();
        let shape = Shape::new(options, &mut paths)?;
        let max = options.record_bytes_max;
        Ok(Decoder {
            fields: Fields::new(
                paths,
                shape.prediction,
                shape.name_slots(),
                &options.packing,
                max,
            )?,
            shape,
            buffers: Buffers::default(),
        })
    }

    /// Decodes a record that is one JSON object, with or without a frame, and one event, regardless
    /// of the configured packing. `key` and `timestamp_ms` are those of the Kafka record.
    #[inline]
    pub fn decode<'a>(
        &'a mut self,
        payload: &'a [u8],
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
    ) -> Result<Event<'a>, Rejection> {
        self.decode_as(payload, key, timestamp_ms, |event| event)
    }

    /// Like [`Decoder::decode`], but returns what `content` makes of the event.
    #[inline]
    pub fn decode_as<'a, T>(
        &'a mut self,
        payload: &'a [u8],
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
        content: impl FnOnce(Event<'a>) -> T,
    ) -> Result<T, Rejection> {
        let (matched, bytes) = self.fields.find(payload)?;
        if matched.others {
            self.remember_names(bytes);
        }
        let Buffers { segment, vector } = &mut self.buffers;
        let values = self.fields.slots(bytes);
        let known = self.fields.layouts.remembered();
        let names = self
            .shape
            .names_beside(matched.same, known, &values, segment);
        let names = names.map_err(|why| why.explained(bytes))?;
        self.shape
            .event_named(names, values, vector, key, timestamp_ms, content)
            .map_err(|why| why.explained(bytes))
    }

    #[cold]
    fn remember_names(&mut self, bytes: &[u8]) {
        let (values, segment) = (self.fields.slots(bytes), &mut self.buffers.segment);
        let names = self.shape.names(&values, segment);
        if let Ok(names) = names.map(|names| names.map(str::to_owned)) {
            self.fields.remember(bytes, names);
        }
    }

    /// Decodes one event of the opened record. An error rejects only this event.
    pub fn event<'a>(&'a mut self, raw: &Raw<'a>, row: usize) -> Result<Event<'a>, Rejection> {
        let value = self.fields.row(raw.payload, row)?;
        self.shape
            .event(value, &mut self.buffers, raw.key, raw.timestamp_ms)
    }

    /// Whether the last record or row had a value in the field of the prediction.
    pub fn saw_prediction(&self) -> bool {
        let found = self.fields.found.get(self.shape.prediction);
        found.is_some_and(|f| !matches!(f.kind, Kind::Missing | Kind::Null))
    }
}

impl OutcomeDecoder {
    /// Compiles the options. An error names the invalid path and the problem.
    pub fn new(options: &OutcomeOptions) -> Result<OutcomeDecoder, DecodeOptionsError> {
        let mut paths = Paths::new();
        let shape = Shape::of_outcomes(options, &mut paths)?;
        let max = options.record_bytes_max;
        Ok(OutcomeDecoder {
            fields: Fields::new(
                paths,
                shape.prediction,
                shape.name_slots(),
                &options.packing,
                max,
            )?,
            shape,
            buffers: (),
        })
    }

    /// Decodes a record that is one JSON object, with or without a frame, and one outcome,
    /// regardless of the configured packing.
    pub fn decode<'a>(
        &'a mut self,
        payload: &'a [u8],
        key: Option<&'a [u8]>,
        timestamp_ms: Option<i64>,
    ) -> Result<OutcomeRecord<'a>, Rejection> {
        let (_, bytes) = self.fields.find(payload)?;
        let values = self.fields.slots(bytes);
        let outcome = self.shape.outcome_record(values, key, timestamp_ms);
        outcome.map_err(|why| why.explained(bytes))
    }

    /// Decodes one outcome of the opened record. An error rejects only this outcome.
    pub fn outcome_record<'a>(
        &'a mut self,
        raw: &Raw<'a>,
        row: usize,
    ) -> Result<OutcomeRecord<'a>, Rejection> {
        let value = self.fields.row(raw.payload, row)?;
        self.shape.outcome_record(value, raw.key, raw.timestamp_ms)
    }
}
