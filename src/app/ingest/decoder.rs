//! Decodes the records of one source: predictions, outcomes, or topics that carry both.
//!
//! A record in another format than JSON needs its schema first; [`RecordDecoder::prepare`] asks the
//! registry for it and never waits. A record may hold several rows, each of which is an event or an
//! outcome of its own.

use super::schema_queue::Progress;
use crate::app::error::AppError;
use crate::app::setup::source_error;
use crate::collect::Reason;
use crate::config::SourceOptions;
use crate::decode::{
    Content, DecodeOptionsError, Decoder, Envelope, Format, HeaderMap, LabelDecoder, Raw,
    Rejection, SchemaText,
};
use crate::kafka::{Headers, Record};
use crate::registry::{Lookup, Registry, SchemaKind};

/// The compiled fields of a source.
pub(in crate::app) struct RecordDecoder {
    events: Decoder,
    outcomes: Option<Outcomes>,
    /// Every record is one plain JSON object and holds one row.
    plain: bool,
    /// Path of the outcome of an event.
    outcome: String,
    /// The envelope needs the headers of a record.
    needs_headers: bool,
}

/// A schema that a decoder has learnt.
pub(in crate::app) struct Learned {
    id: u32,
    schema: SchemaText,
    /// It is that of outcomes.
    of_outcomes: bool,
}

/// Outcomes in records of their own.
struct Outcomes {
    decoder: LabelDecoder,
    /// The first topic of outcomes, counted within the source; `None` where all topics carry both.
    first_topic: Option<u16>,
    /// Why the current record holds no outcomes, where topics carry both.
    fault: Option<Rejection>,
}

/// What the records of a topic hold.
#[derive(Clone, Copy)]
enum Expected {
    /// Predictions, with or without their outcomes.
    Event,
    /// Outcomes alone.
    Outcome,
    /// One or the other.
    Either,
}

impl RecordDecoder {
    /// Compiles the fields of a source. An error names the source and the field.
    pub fn new(source: &SourceOptions) -> Result<RecordDecoder, AppError> {
        let failed = |e: DecodeOptionsError| source_error(source, &e);
        let events = Decoder::new(&source.decode).map_err(failed)?;
        let outcomes = match &source.join {
            None => None,
            Some(join) => Some(Outcomes {
                decoder: LabelDecoder::new(&join.labels).map_err(failed)?,
                first_topic: match join.topics.len() {
                    0 => None,
                    n => Some((source.kafka.topics.len() - n) as u16),
                },
                fault: None,
            }),
        };
        let plain = events.is_plain() && outcomes.as_ref().is_none_or(|o| o.decoder.is_plain());
        Ok(RecordDecoder {
            events,
            outcomes,
            plain,
            outcome: source.decode.outcome.clone(),
            needs_headers: source.decode.packing.envelope == Envelope::CloudEvents,
        })
    }

    /// Says of an event that the engine rejects which of its fields is wrong.
    #[cold]
    pub fn name_field(&self, rejection: &mut Rejection) {
        if rejection.reason == Reason::MissingField
            && rejection.detail == Reason::MissingField.words()
        {
            rejection.detail = format!(
                "field `{}` is missing or null; every record must carry the outcome, or it comes later, by \
                 [source.outcomes]",
                self.outcome
            );
        }
    }

    fn expected(&self, topic: u16) -> Expected {
        match &self.outcomes {
            None => Expected::Event,
            Some(outcomes) => match outcomes.first_topic {
                None => Expected::Either,
                Some(first) if topic >= first => Expected::Outcome,
                Some(_) => Expected::Event,
            },
        }
    }

    /// Whether records cannot be decoded without their headers.
    pub fn needs_headers(&self) -> bool {
        self.needs_headers
    }

    /// Whether a record can be decoded without asking for a schema.
    pub fn knows_schema(&self, record: &Record<'_>) -> bool {
        self.plain || self.lacks(record).is_none()
    }

    /// The schema that a record needs and that is not known: its id, and whether it is that of
    /// outcomes.
    fn lacks(&self, record: &Record<'_>) -> Option<(u32, bool)> {
        let expected = self.expected(record.topic);
        if !matches!(expected, Expected::Outcome)
            && let Some(id) = self.events.lacks(record.payload)
        {
            return Some((id, false));
        }
        let outcomes = self.outcomes.as_ref();
        let outcomes = outcomes.filter(|_| !matches!(expected, Expected::Event))?;
        Some((outcomes.decoder.lacks(record.payload)?, true))
    }

    /// Asks the registry for the schema of a record that waits behind others.
    pub fn ask_ahead(&self, record: &Record<'_>, registry: &Registry) {
        if let Some((id, _)) = self.lacks(record).filter(|_| !self.plain) {
            registry.fetch_ahead(id);
        }
    }

    /// Learns the schemas of a record, if it needs any, and tells `each` of them. An error means
    /// that it will never be decoded.
    pub fn prepare(
        &mut self,
        record: &Record<'_>,
        registry: Option<&Registry>,
        mut each: impl FnMut(&Learned),
    ) -> Result<Progress, Rejection> {
        if self.plain {
            return Ok(Progress::Done);
        }
        // One of events, and one of outcomes.
        while let Some((id, of_outcomes)) = self.lacks(record) {
            let Some(schema) = schema(registry, id)? else {
                return Ok(Progress::AwaitingSchema);
            };
            let learned = Learned {
                id,
                schema,
                of_outcomes,
            };
            self.learn(&learned);
            each(&learned);
        }
        Ok(Progress::Done)
    }

    /// Stores a schema. If it is unusable, its records are rejected with the reason.
    pub fn learn(&mut self, learned: &Learned) {
        match &mut self.outcomes {
            Some(outcomes) if learned.of_outcomes => {
                outcomes.decoder.learn(learned.id, &learned.schema);
            }
            _ => self.events.learn(learned.id, &learned.schema),
        }
    }

    /// Decodes a prepared record and calls `take` with each of its rows, in order. Returns the
    /// number of rows; a record that cannot be opened counts as one rejected row.
    #[inline]
    pub fn decode(
        &mut self,
        record: &Record<'_>,
        mut take: impl FnMut(usize, Result<Content<'_>, Rejection>),
    ) -> usize {
        let raw = Raw {
            payload: record.payload,
            key: record.key,
            timestamp_ms: record.timestamp_ms,
            headers: &record.headers,
        };
        let expected = self.expected(record.topic);
        if self.plain {
            self.row(expected, &raw, None, |decoded| take(0, decoded));
            return 1;
        }
        match self.open(expected, &raw) {
            Ok(rows) => {
                for row in 0..rows {
                    self.row(expected, &raw, Some(row), |decoded| take(row, decoded));
                }
                rows
            }
            Err(rejection) => {
                take(0, Err(rejection));
                1
            }
        }
    }

    /// Opens a record and returns the number of its rows.
    fn open(&mut self, expected: Expected, raw: &Raw<'_>) -> Result<usize, Rejection> {
        match (expected, &mut self.outcomes) {
            (Expected::Outcome, Some(outcomes)) => outcomes.decoder.open(raw),
            (Expected::Either, Some(outcomes)) => {
                // Outcomes have other paths, in the same rows.
                outcomes.fault = outcomes.decoder.open(raw).err();
                self.events.open(raw)
            }
            _ => self.events.open(raw),
        }
    }

    /// Decodes one row of an opened record; `None` stands for a record that is one plain JSON
    /// object.
    #[inline]
    fn row(
        &mut self,
        expected: Expected,
        raw: &Raw<'_>,
        row: Option<usize>,
        take: impl FnOnce(Result<Content<'_>, Rejection>),
    ) {
        let events = &mut self.events;
        let decoded = match (expected, &mut self.outcomes) {
            (Expected::Outcome, Some(outcomes)) => outcome(&mut outcomes.decoder, raw, row),
            (Expected::Either, Some(outcomes)) => match event(events, raw, row) {
                Err(rejection) => {
                    let no_event = rejection.reason == Reason::MissingField;
                    match &outcomes.fault {
                        _ if !no_event || events.saw_prediction() => Err(rejection),
                        Some(fault) => Err(fault.clone()),
                        None => outcome(&mut outcomes.decoder, raw, row),
                    }
                }
                event => event,
            },
            _ => event(events, raw, row),
        };
        take(decoded);
    }
}

#[inline]
fn event<'a>(
    decoder: &'a mut Decoder,
    raw: &Raw<'a>,
    row: Option<usize>,
) -> Result<Content<'a>, Rejection> {
    let event = match row {
        None => decoder.decode(raw.payload, raw.key, raw.timestamp_ms),
        Some(row) => decoder.event(raw, row),
    };
    event.map(Content::Event)
}

fn outcome<'a>(
    decoder: &'a mut LabelDecoder,
    raw: &Raw<'a>,
    row: Option<usize>,
) -> Result<Content<'a>, Rejection> {
    let label = match row {
        None => decoder.decode(raw.payload, raw.key, raw.timestamp_ms),
        Some(row) => decoder.label(raw, row),
    };
    label.map(Content::Outcome)
}

impl HeaderMap for Headers<'_> {
    fn header(&self, name: &str) -> Option<&[u8]> {
        self.get(name)
    }
}

/// The schema with this id; `None` while it is being fetched.
fn schema(registry: Option<&Registry>, id: u32) -> Result<Option<SchemaText>, Rejection> {
    let unknown = |why: &str| Rejection {
        reason: Reason::UnknownSchema,
        detail: format!("schema {id}: {why}"),
    };
    let Some(registry) = registry else {
        return Err(unknown("there is no [registry] to ask; configure one"));
    };
    match registry.get(id) {
        Lookup::Waiting => Ok(None),
        Lookup::Absent(why) => Err(unknown(&why)),
        Lookup::Known(schema) => Ok(Some(SchemaText {
            format: match schema.kind {
                SchemaKind::Avro => Format::Avro,
                SchemaKind::Json => Format::Json,
                SchemaKind::Protobuf => Format::Protobuf,
            },
            text: schema.text.clone(),
            references: schema.references.clone(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::ingest::config;

    const CONFIG: &str = r#"
version = 1
[kafka]
brokers = "localhost:1"
[[source]]
topics = ["both"]
envelope = "cloudevents"
fields = { id = "id", score = "score", outcome = "y" }
outcomes = { maturity = "5m", outcome = "label" }
"#;

    #[test]
    fn an_outcome_among_predictions_is_checked_as_a_whole() {
        let config = config(CONFIG);
        let mut decoder = RecordDecoder::new(&config.sources[0]).expect("valid");
        let mut decode = |data: &str| {
            let payload = format!("{{\"specversion\":\"1.0\",\"data\":{data}}}");
            let record = Record {
                topic: 0,
                partition: 0,
                offset: 0,
                timestamp_ms: Some(1_760_000_000_000),
                key: None,
                payload: payload.as_bytes(),
                headers: Headers::default(),
            };
            let mut read = Vec::new();
            decoder.decode(&record, |_, decoded| {
                read.push(match decoded {
                    Ok(Content::Event(_)) => Ok("a prediction"),
                    Ok(Content::Outcome(_)) => Ok("an outcome"),
                    Err(rejection) => Err(rejection.reason),
                });
            });
            read
        };
        let good = r#"{"id":"a","label":1}"#;
        assert_eq!(decode(good), [Ok("an outcome")]);
        let twice = r#"{"id":"a","label":0,"label":1}"#;
        assert_eq!(decode(twice), [Err(Reason::Malformed)]);
        assert_eq!(decode(good), [Ok("an outcome")]);
        // Of a prediction it is not wanted.
        let event = r#"{"model":"m","id":"a","score":0.5,"label":0,"label":1}"#;
        assert_eq!(decode(event), [Ok("a prediction")]);
    }
}
