//! Decodes the records of one source: predictions, outcomes, or topics that carry both.
//!
//! A record in a format other than JSON needs its schema first: [`SourceDecoder::lacks`] names it
//! and [`SourceDecoder::learn`] takes it. A record may hold several rows, each of which is an event
//! or an outcome of its own.

use super::decoder::{Decoder, OutcomeDecoder};
use super::fields::Raw;
use super::file::Content;
use super::frame::SchemaText;
use super::options::{DecodeOptions, DecodeOptionsError, Envelope, OutcomeOptions};
use super::rejection::Rejection;
use crate::collect::Reason;

/// The compiled fields of a source.
pub struct SourceDecoder {
    events: Decoder,
    outcomes: Option<Outcomes>,
    /// Every record is one plain JSON object with one row.
    plain: bool,
    /// Path of the outcome of an event.
    outcome: String,
    /// The envelope needs the headers of a record.
    needs_headers: bool,
}

/// The schema that a record needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needed {
    /// The id of the schema.
    pub id: u32,
    /// The schema is for outcomes.
    pub of_outcomes: bool,
}

/// The decoder of separate outcomes.
struct Outcomes {
    decoder: OutcomeDecoder,
    /// Index within the source of the first topic of outcomes; `None` if all topics carry both
    /// kinds.
    first_topic: Option<u16>,
    /// Why the current record could not be opened as outcomes, if topics carry both kinds.
    fault: Option<Rejection>,
}

/// The kind of records on a topic.
#[derive(Clone, Copy)]
enum Expected {
    /// Predictions, with or without their outcomes.
    Event,
    /// Only outcomes.
    Outcome,
    Either,
}

impl SourceDecoder {
    /// Compiles the fields of a source. `outcomes` has the fields of separate outcomes, and the
    /// index within the source of their first topic; `None` if all topics carry both kinds.
    pub fn new(
        events: &DecodeOptions,
        outcomes: Option<(&OutcomeOptions, Option<u16>)>,
    ) -> Result<SourceDecoder, DecodeOptionsError> {
        let (outcome, envelope) = (events.outcome.clone(), events.packing.envelope);
        let events = Decoder::new(events)?;
        let outcomes = match outcomes {
            None => None,
            Some((options, first_topic)) => Some(Outcomes {
                decoder: OutcomeDecoder::new(options)?,
                first_topic,
                fault: None,
            }),
        };
        let plain = events.is_plain() && outcomes.as_ref().is_none_or(|o| o.decoder.is_plain());
        Ok(SourceDecoder {
            events,
            outcomes,
            plain,
            outcome,
            needs_headers: envelope == Envelope::CloudEvents,
        })
    }

    /// Names the outcome's field in the engine's rejection of an event that has no outcome.
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

    /// Whether decoding needs the headers of records.
    pub fn needs_headers(&self) -> bool {
        self.needs_headers
    }

    /// The schema that a record needs and that is not known yet.
    #[inline]
    pub fn lacks(&self, topic: u16, payload: &[u8]) -> Option<Needed> {
        if self.plain {
            return None;
        }
        let expected = self.expected(topic);
        if !matches!(expected, Expected::Outcome)
            && let Some(id) = self.events.lacks(payload)
        {
            let of_outcomes = false;
            return Some(Needed { id, of_outcomes });
        }
        let outcomes = self.outcomes.as_ref();
        let outcomes = outcomes.filter(|_| !matches!(expected, Expected::Event))?;
        let (id, of_outcomes) = (outcomes.decoder.lacks(payload)?, true);
        Some(Needed { id, of_outcomes })
    }

    /// Stores a schema. If it is unusable, its records are rejected with the reason.
    pub fn learn(&mut self, needed: Needed, schema: &SchemaText) {
        match &mut self.outcomes {
            Some(outcomes) if needed.of_outcomes => outcomes.decoder.learn(needed.id, schema),
            _ => self.events.learn(needed.id, schema),
        }
    }

    /// Decodes a record that lacks no schema and calls `take` with each of its rows, in order.
    /// Returns the number of rows; a record that cannot be opened counts as one rejected row. Rows
    /// are passed on and not returned, because copying one costs a thirtieth of the time per
    /// record.
    #[inline]
    pub fn decode(
        &mut self,
        topic: u16,
        raw: &Raw<'_>,
        mut take: impl FnMut(usize, &mut Result<Content<'_>, Rejection>),
    ) -> usize {
        let expected = self.expected(topic);
        if self.plain {
            self.row(expected, raw, None, |decoded| take(0, decoded));
            return 1;
        }
        match self.open(expected, raw) {
            Ok(rows) => {
                for row in 0..rows {
                    self.row(expected, raw, Some(row), |decoded| take(row, decoded));
                }
                rows
            }
            Err(rejection) => {
                take(0, &mut Err(rejection));
                1
            }
        }
    }

    /// Opens a record and returns the number of its rows.
    fn open(&mut self, expected: Expected, raw: &Raw<'_>) -> Result<usize, Rejection> {
        match (expected, &mut self.outcomes) {
            (Expected::Outcome, Some(outcomes)) => outcomes.decoder.open(raw),
            (Expected::Either, Some(outcomes)) => {
                // Outcomes have other paths, but the same rows.
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
        take: impl FnOnce(&mut Result<Content<'_>, Rejection>),
    ) {
        let events = &mut self.events;
        let mut decoded = match (expected, &mut self.outcomes) {
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
        take(&mut decoded);
    }
}

#[inline]
fn event<'a>(
    decoder: &'a mut Decoder,
    raw: &Raw<'a>,
    row: Option<usize>,
) -> Result<Content<'a>, Rejection> {
    match row {
        None => decoder.decode_as(raw.payload, raw.key, raw.timestamp_ms, Content::Event),
        Some(row) => decoder.event(raw, row).map(Content::Event),
    }
}

fn outcome<'a>(
    decoder: &'a mut OutcomeDecoder,
    raw: &Raw<'a>,
    row: Option<usize>,
) -> Result<Content<'a>, Rejection> {
    let record = match row {
        None => decoder.decode(raw.payload, raw.key, raw.timestamp_ms),
        Some(row) => decoder.outcome_record(raw, row),
    };
    record.map(Content::Outcome)
}
