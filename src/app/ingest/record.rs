//! From the records of one source to the engine: decode, count, report what is rejected.
//!
//! Every decoded record passes [`dispatch`], the one way into the engine, whichever input it came
//! from: it is observed, joined or counted as rejected, the statistics of a replay are taken, and
//! the caller learns whether the record has to be reported as rejected. A record of a partition
//! that this process does not own never comes here and is not counted: its owner counts it.
//!
//! A [`RecordReader`] serves a member of a consumer group and a replay of a topic range alike. A
//! record that is no event costs one counter and, where a topic is configured for them, one dead
//! letter. So does a record that the engine rejects for its content, such as a class that the model
//! does not have.
//!
//! A record with several rows is as many events in the counters, and a record that cannot be opened
//! is one. All rows are counted within one call, so no snapshot lies between them, and the position
//! moves once. At most one dead letter is written for the record; it describes the first rejected
//! row.

use super::decode_threads::Rows;
use super::models::{Models, shown};
use super::schema_queue::Reading;
use crate::app::error::AppError;
use crate::app::replay::stats::ReplayStats;
use crate::app::setup::source_error;
use crate::collect::{Disposition, Origin, PartitionId, Reason, Refusal};
use crate::config::SourceOptions;
use crate::decode::{
    Content, Format, HeaderMap, Needed, Raw, Rejection, SchemaText, SourceDecoder,
};
use crate::kafka::{DeadLetter, Headers, Partition, Record};
use crate::monitor::RecordSink;
use crate::registry::{Lookup, Registry, SchemaKind};
use crate::telemetry::facts::LastRejection;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads the records of one source.
pub struct RecordReader {
    /// Number of the source's first topic. Topics are numbered over all sources, in configured
    /// order.
    base: u16,
    topics: Vec<String>,
    models: Models,
    decoder: SourceDecoder,
    /// Schemas that this decoder has learned and the others have not; `None` if it is the only
    /// one.
    pub learned: Option<Vec<(Needed, SchemaText)>>,
    registry: Option<Arc<Registry>>,
    /// Where rejected records go; `None` where no topic is configured.
    pub dead_letters: Option<DeadLetter>,
    /// Statistics of a replay; `None` in `run`.
    pub stats: Option<ReplayStats>,
    /// By topic the last record that was rejected.
    pub last_rejections: Vec<Option<Arc<LastRejection>>>,
    /// The latest possible arrival of records that are read now; `None` in a replay, where only the
    /// timestamps of the records give it.
    pub reading_ms: Option<i64>,
}

impl RecordReader {
    /// A reader of the source whose first topic has the number `base`, without dead letters.
    pub fn new(
        source: &SourceOptions,
        base: u16,
        registry: Option<&Arc<Registry>>,
    ) -> Result<RecordReader, AppError> {
        Ok(RecordReader {
            base,
            last_rejections: vec![None; source.kafka.topics.len()],
            topics: source.kafka.topics.clone(),
            models: Models::new(&source.models),
            decoder: decoder_of(source)?,
            learned: None,
            registry: registry.cloned(),
            dead_letters: None,
            stats: None,
            reading_ms: None,
        })
    }

    /// Names of the topics of the source.
    pub fn topics(&self) -> &[String] {
        &self.topics
    }

    /// Name of a topic, counted within the source.
    pub fn topic(&self, topic: u16) -> &str {
        let name = self.topics.get(usize::from(topic));
        name.map_or("", String::as_str)
    }

    /// Names of the topics of the source, and their numbers over all sources.
    pub fn numbered(&self) -> impl Iterator<Item = (&str, u16)> {
        self.topics.iter().map(String::as_str).zip(self.base..)
    }

    /// The number among all sources of a partition that the consumer counts within this source.
    pub fn partition_id(&self, partition: Partition) -> PartitionId {
        (self.base + partition.topic, partition.partition).into()
    }

    /// The reverse of [`partition_id`](RecordReader::partition_id); `None` for another source.
    pub fn partition(&self, id: PartitionId) -> Option<Partition> {
        let topic = id.source.checked_sub(self.base)?;
        let known = usize::from(topic) < self.topics.len();
        known.then_some((topic, id.partition).into())
    }

    /// Requests the schema of a record that waits behind others.
    pub fn ask_ahead(&self, record: &Record<'_>) {
        if let Some(registry) = &self.registry
            && let Some(needed) = self.decoder.lacks(record.topic, record.payload)
        {
            registry.fetch_ahead(needed.id);
        }
    }

    /// Counts a record in `sink`, which counts its partition, unless its schema is still being
    /// fetched.
    pub fn read(&mut self, sink: &mut (impl RecordSink + ?Sized), record: &Record<'_>) -> Reading {
        self.read_at(sink, record, None)
    }

    /// Counts a record in `sink`; waits for its schema, at most this long.
    pub fn read_within(
        &mut self,
        sink: &mut impl RecordSink,
        record: &Record<'_>,
        within: Duration,
    ) -> Result<(), AppError> {
        let since = Instant::now();
        while self.read(sink, record) == Reading::AwaitingSchema {
            if since.elapsed() >= within {
                return Err(AppError::Unavailable(format!(
                    "the schema of the record at {}/{} offset {} did not arrive within {within:?}; \
                     check [registry]",
                    self.topic(record.topic),
                    record.partition,
                    record.offset
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Counts a record in `sink`, unless its schema is still being fetched. `decoded` has its rows
    /// if threads have decoded them.
    pub fn read_at(
        &mut self,
        sink: &mut (impl RecordSink + ?Sized),
        record: &Record<'_>,
        decoded: Option<Rows<'_>>,
    ) -> Reading {
        let id = self.partition_id(record.in_partition());
        let (origin, arrival_ms) = (id.at(record.offset), self.arrival_ms(record));
        let (stats, models) = (&mut self.stats, &mut self.models);
        let topic = self.topics.get(usize::from(record.topic));
        let topic = topic.map_or("", String::as_str);
        let (mut replayed, mut rejected, mut first) = (false, 0, None);
        let mut each = |row: usize, decoded: &mut Result<Content<'_>, Rejection>| {
            if row > 0 && !replayed {
                sink.next_row(origin);
            }
            match dispatch(sink, stats.as_mut(), origin, arrival_ms, decoded) {
                RecordResult::Counted => {}
                RecordResult::Replayed => replayed = true,
                RecordResult::Refused(cap) => {
                    refused(cap, topic, record.partition, record.offset, decoded);
                }
                RecordResult::Rejected(rejection) => {
                    rejected += 1;
                    first.get_or_insert_with(|| (row, models.name(rejection, decoded)));
                }
            }
        };
        let deleted = record.payload.is_empty() && record.headers.is_tombstone();
        let shared = match deleted {
            true => {
                each(0, &mut Err(Rejection::of(Reason::Tombstone)));
                Some(1)
            }
            false => decoded.and_then(|rows| rows.each(&mut each)),
        };
        let rows = match shared {
            Some(rows) => rows,
            None => {
                let learn = |needed: Needed, schema: &SchemaText| {
                    if let Some(learned) = &mut self.learned {
                        learned.push((needed, schema.clone()));
                    }
                };
                let (topic, registry) = (record.topic, self.registry.as_deref());
                match prepare(&mut self.decoder, topic, record.payload, registry, learn) {
                    Ok(Reading::Done) => self.decoder.decode(topic, &raw(record), &mut each),
                    Ok(Reading::AwaitingSchema) => return Reading::AwaitingSchema,
                    Err(rejection) => {
                        each(0, &mut Err(rejection));
                        1
                    }
                }
            }
        };
        if let Some((row, mut rejection)) = first {
            self.decoder.name_field(&mut rejection);
            if rows > 1 {
                let (row, detail) = (row + 1, rejection.detail);
                rejection.detail =
                    format!("row {row} of {rows}, {rejected} of them rejected: {detail}");
            }
            self.report(record, &rejection);
        }
        Reading::Done
    }

    /// When a record arrived: at its timestamp, but no later than now, because a producer's clock
    /// may have set it.
    #[inline]
    fn arrival_ms(&self, record: &Record<'_>) -> Option<i64> {
        // A timestamp of 0 is not a real one.
        let at_ms = record.timestamp_ms.filter(|ms| *ms > 0);
        at_ms.into_iter().chain(self.reading_ms).min()
    }

    /// Reports a rejected record: in the statistics, in the log, and as a dead letter.
    #[cold]
    fn report(&mut self, record: &Record<'_>, rejection: &Rejection) {
        let topic = self.topics.get(usize::from(record.topic));
        let topic = topic.map_or("", String::as_str);
        let (partition, offset) = (record.partition, record.offset);
        if let Some(stats) = &mut self.stats {
            stats.rejected(rejection, || format!("{topic}/{partition} offset {offset}"));
        }
        let (reason, detail) = (rejection.reason.as_str(), rejection.detail.as_str());
        if rejection.reason != Reason::Tombstone {
            let last = self.last_rejections.get_mut(usize::from(record.topic));
            if let Some(last) = last {
                *last = Some(Arc::new(LastRejection {
                    at_ms: self.reading_ms,
                    partition,
                    offset,
                    reason,
                    detail: detail.to_owned(),
                }));
            }
            crate::warn_limited!(topic, partition, offset, reason, detail, "record rejected");
        }
        if let Some(dead_letters) = &self.dead_letters {
            dead_letters.send(topic, record, reason, detail);
        }
    }
}

/// What became of a record, or of a row of it.
#[derive(Debug, PartialEq, Eq)]
pub enum RecordResult {
    /// The engine has counted it.
    Counted,
    /// The engine had counted it before a restart.
    Replayed,
    /// It is counted as refused by this cap.
    Refused(Refusal),
    /// It is counted as rejected, for this reason.
    Rejected(Rejection),
}

/// Hands one decoded record, or one row of it, to `sink`, which counts its partition. `arrival_ms`
/// is when it arrived, if known.
#[inline]
pub fn dispatch(
    sink: &mut (impl RecordSink + ?Sized),
    stats: Option<&mut ReplayStats>,
    origin: Origin,
    arrival_ms: Option<i64>,
    decoded: &mut Result<Content<'_>, Rejection>,
) -> RecordResult {
    let disposition = match decoded {
        Ok(Content::Event(event)) => {
            event.arrival_ms = arrival_ms;
            if let Some(stats) = stats {
                stats.event(event.time_ms);
            }
            sink.observe(origin, event)
        }
        Ok(Content::Outcome(record)) => {
            record.arrival_ms = arrival_ms;
            if let Some(stats) = stats {
                stats.outcome(record.time_ms);
            }
            sink.observe_outcome(origin, record)
        }
        Err(rejection) => return reject(sink, origin, arrival_ms, rejection),
    };
    match disposition {
        Disposition::Replayed => RecordResult::Replayed,
        Disposition::Rejected(reason) => RecordResult::Rejected(Rejection::of(reason)),
        Disposition::Refused(cap) => RecordResult::Refused(cap),
        _ => RecordResult::Counted,
    }
}

/// Logs a valid record that a cap refused, with model and version. Its place is topic, partition
/// and offset; for a file: path, 0 and line.
#[cold]
pub fn refused(
    cap: Refusal,
    topic: impl Display,
    partition: i32,
    offset: i64,
    decoded: &Result<Content<'_>, Rejection>,
) {
    let (model, version) = match decoded {
        Ok(Content::Event(event)) => (event.model, event.version),
        Ok(Content::Outcome(record)) => (record.model.unwrap_or_default(), ""),
        Err(_) => ("", ""),
    };
    match cap {
        Refusal::Pending => crate::warn_limited!(
            %topic,
            partition,
            offset,
            model = %shown(model),
            version = %shown(version),
            "good record refused: `pending_max` of [source.outcomes] is reached, or the store of pending predictions \
             has failed"
        ),
        cap => crate::warn_limited!(
            %topic,
            partition,
            offset,
            model = %shown(model),
            version = %shown(version),
            cap = cap.as_str(),
            "good record refused by a cap; see [limits]"
        ),
    }
}

/// Counts a record that could not be decoded.
#[cold]
fn reject(
    sink: &mut (impl RecordSink + ?Sized),
    origin: Origin,
    arrival_ms: Option<i64>,
    rejection: &Rejection,
) -> RecordResult {
    match sink.reject(origin, arrival_ms, rejection.reason) {
        Disposition::Replayed => RecordResult::Replayed,
        _ => RecordResult::Rejected(rejection.clone()),
    }
}

/// Compiles the fields of a source. An error names the source and the field.
pub fn decoder_of(source: &SourceOptions) -> Result<SourceDecoder, AppError> {
    let outcomes = source.join.as_ref().map(|join| {
        let first_topic = match join.topics.len() {
            0 => None,
            n => Some((source.kafka.topics.len() - n) as u16),
        };
        (&join.outcomes, first_topic)
    });
    let decoder = SourceDecoder::new(&source.decode, outcomes);
    decoder.map_err(|error| source_error(source, &error))
}

/// Learns the schemas that a record needs, if any, and passes each to `each`. An error means that
/// the record can never be decoded.
pub fn prepare(
    decoder: &mut SourceDecoder,
    topic: u16,
    payload: &[u8],
    registry: Option<&Registry>,
    mut each: impl FnMut(Needed, &SchemaText),
) -> Result<Reading, Rejection> {
    // One for events, and one for outcomes.
    while let Some(needed) = decoder.lacks(topic, payload) {
        let Some(schema) = schema(registry, needed.id)? else {
            return Ok(Reading::AwaitingSchema);
        };
        decoder.learn(needed, &schema);
        each(needed, &schema);
    }
    Ok(Reading::Done)
}

/// The parts of a record that decoding reads.
fn raw<'a>(record: &'a Record<'_>) -> Raw<'a> {
    Raw {
        payload: record.payload,
        key: record.key,
        timestamp_ms: record.timestamp_ms,
        headers: &record.headers,
    }
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
mod tests;
