//! From one source's records to the engine: decode, observe or reject, dead-letter.
//!
//! The [`Handler`] that a consumer calls. It borrows the engine for the length of one poll. A record
//! that is no event costs one counter and, where a topic is set for them, one dead letter; one that the
//! engine refuses for what it says (a class the model has not, a vector of the wrong length) likewise.
//!
//! A record that needs a schema which is not at hand yet waits in [`Parked`], with all that follows it in its
//! partition. A record that holds several events is as many in the counters: *records* are then its rows,
//! and a record that cannot be opened, or has no row, is one. Its rows are counted within one call, so no
//! snapshot lies between them, and its offset is passed once.
//!
//! Sources are numbered over all topics, in the order of the configuration: [`Origin::source`] is that
//! number, and [`Intake::base`] the number of the source's first topic.

use super::engines::Engines;
use super::fault::Fault;
use super::parked::{Item, Parked, Raised};
use super::setup::Source;
use super::witness::Witness;
use crate::collect::{Disposition, Origin, Reason};
use crate::decode::{
    DecodeOptionsError, Decoder, Format, HeaderMap, LabelDecoder, Raw, Rejection, SchemaText,
};
use crate::kafka::{DeadLetter, Handler, Headers, KafkaError, Owned, Partition, Record};
use crate::registry::{Lookup, Registry, SchemaKind};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What a source keeps from one poll to the next.
pub struct Intake {
    /// Number of the source's first topic.
    pub base: u16,
    /// Names of its topics.
    pub topics: Vec<String>,
    /// Compiled fields.
    pub decoder: Decoder,
    /// Outcomes that come apart, where they do.
    pub labels: Option<Labels>,
    /// Whether every record is one plain JSON object and one event.
    pub plain: bool,
    /// Whom to ask for schemas, where records need them.
    pub registry: Option<Arc<Registry>>,
    /// Records that wait for their schema.
    pub parked: Parked,
    /// Where broken records go.
    pub dead: Option<DeadLetter>,
    /// Partitions that the broker has less of than was read, each with the reason why it is not read on.
    pub stopped: BTreeMap<Partition, String>,
    /// By topic, offsets that the broker deleted before they were read.
    pub lost: Vec<u64>,
    /// A failure after which the consumer has to be made anew.
    pub fatal: bool,
    /// Partitions were given or taken since the flag was last cleared.
    pub moved: bool,
    /// Who notes what passes, in a replay.
    pub witness: Option<Witness>,
    /// What went wrong last. Refused credentials are not hidden by the failures that follow from them.
    pub trouble: Option<KafkaError>,
}

/// How outcomes come that come apart from their predictions.
pub struct Labels {
    /// Compiled fields.
    pub decoder: LabelDecoder,
    /// Index of the first topic of outcomes; `None` where the topics carry both.
    pub first: Option<u16>,
}

/// What is wrong with a source.
pub fn wrong(source: &Source, error: &dyn std::fmt::Display) -> Fault {
    Fault::Config(format!("source {}: {error}", source.kafka.topics.join(",")))
}

impl Intake {
    /// The intake of a source whose first topic has the number `base`, without a place for dead letters.
    pub fn of(
        source: &Source,
        base: u16,
        registry: Option<&Arc<Registry>>,
    ) -> Result<Intake, Fault> {
        let wrong = |error: DecodeOptionsError| wrong(source, &error);
        let labels = match &source.join {
            None => None,
            Some(join) => Some(Labels {
                decoder: LabelDecoder::new(&join.labels).map_err(wrong)?,
                first: match join.topics.len() {
                    0 => None,
                    n => Some((source.kafka.topics.len() - n) as u16),
                },
            }),
        };
        let decoder = Decoder::new(&source.decode).map_err(wrong)?;
        Ok(Intake {
            plain: decoder.is_plain() && labels.as_ref().is_none_or(|l| l.decoder.is_plain()),
            registry: registry.cloned(),
            parked: Parked::default(),
            labels,
            base,
            topics: source.kafka.topics.clone(),
            stopped: BTreeMap::new(),
            lost: vec![0; source.kafka.topics.len()],
            decoder,
            dead: None,
            fatal: false,
            moved: false,
            witness: None,
            trouble: None,
        })
    }

    /// Newest event time that the witness saw.
    pub fn newest_ms(&self) -> Option<i64> {
        self.witness.as_ref()?.newest_ms
    }

    /// Lends the engine for one poll.
    pub fn with<'a>(&'a mut self, engine: &'a mut Engines) -> Lent<'a> {
        Lent {
            intake: self,
            engine,
        }
    }

    fn origin(&self, record: &Record<'_>) -> Origin {
        Origin {
            source: self.base + record.topic,
            partition: record.partition,
            offset: record.offset,
        }
    }

    fn holds(&self, record: &Record<'_>) -> Holds {
        match &self.labels {
            None => Holds::Event,
            Some(labels) => match labels.first {
                None => Holds::Either,
                Some(first) if record.topic >= first => Holds::Outcome,
                Some(_) => Holds::Event,
            },
        }
    }

    /// Learns the schema of a record, if it needs one. An error is why it never will be decoded.
    fn prepare(&mut self, record: &Record<'_>) -> Result<Raised, Rejection> {
        let holds = self.holds(record);
        let events = !matches!(holds, Holds::Outcome);
        let outcomes = !matches!(holds, Holds::Event);
        if events && let Some(id) = self.decoder.lacks(record.payload) {
            match ask(self.registry.as_deref(), id)? {
                Some(schema) => self.decoder.learn(id, &schema),
                None => return Ok(Raised::Waiting),
            }
        }
        if outcomes
            && let Some(labels) = &mut self.labels
            && let Some(id) = labels.decoder.lacks(record.payload)
        {
            match ask(self.registry.as_deref(), id)? {
                Some(schema) => labels.decoder.learn(id, &schema),
                None => return Ok(Raised::Waiting),
            }
        }
        Ok(Raised::Taken)
    }

    /// Topics and partitions that are ours and shorter than what was read of them, with the reason.
    pub fn stopped(&self) -> impl Iterator<Item = (&str, i32, &str)> {
        let one = |(p, why)| {
            let (p, why): (&Partition, &String) = (p, why);
            (self.name(p.topic), p.partition, why.as_str())
        };
        self.stopped.iter().map(one)
    }

    fn name(&self, topic: u16) -> &str {
        let name = self.topics.get(usize::from(topic));
        name.map_or("", String::as_str)
    }

    fn bury(&mut self, record: &Record<'_>, reason: Reason, detail: &str) {
        let topic = self
            .topics
            .get(usize::from(record.topic))
            .map_or("", String::as_str);
        if let Some(witness) = &mut self.witness {
            let (partition, offset) = (record.partition, record.offset);
            let place = || format!("{topic}/{partition} offset {offset}");
            witness.rejected(reason, detail, place);
        }
        crate::warn_limited!(
            topic,
            partition = record.partition,
            offset = record.offset,
            reason = reason.as_str(),
            detail,
            "record rejected"
        );
        if let Some(dead) = &self.dead {
            dead.send(topic, record, reason.as_str(), detail);
        }
    }
}

impl HeaderMap for Headers<'_> {
    fn header(&self, name: &str) -> Option<&[u8]> {
        self.get(name)
    }
}

/// Whether what was no event has not even the shape of one: an outcome, or nothing.
fn is_no_event(decoder: &Decoder, rejection: &Rejection) -> bool {
    rejection.reason == Reason::MissingField && !decoder.saw_prediction()
}

/// The schema of an id, `None` while it is being fetched.
fn ask(registry: Option<&Registry>, id: u32) -> Result<Option<SchemaText>, Rejection> {
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

/// An intake with the engine in its hands.
pub struct Lent<'a> {
    intake: &'a mut Intake,
    engine: &'a mut Engines,
}

/// What a record can be.
enum Holds {
    /// A prediction, maybe with its outcome.
    Event,
    /// An outcome alone.
    Outcome,
    /// One or the other.
    Either,
}

impl Lent<'_> {
    /// Takes what waited for its schema, as far as that has come.
    pub fn release(&mut self) {
        if self.intake.parked.is_empty() {
            return;
        }
        let mut parked = std::mem::take(&mut self.intake.parked);
        parked.release(|partition, item| match item {
            Item::Record(owned) => self.raise(&owned.record()),
            Item::End => {
                self.end(partition);
                Raised::Taken
            }
            Item::Rewind(offset) => {
                self.rewind(partition, *offset);
                Raised::Taken
            }
        });
        self.intake.parked = parked;
    }

    /// Takes a record whose turn it is, if its schema is known.
    fn raise(&mut self, record: &Record<'_>) -> Raised {
        if !self.intake.plain {
            match self.intake.prepare(record) {
                Ok(Raised::Taken) => self.take_packed(record),
                Ok(Raised::Waiting) => return Raised::Waiting,
                Err(rejection) => self.refuse(record, rejection),
            }
            return Raised::Taken;
        }
        let origin = self.intake.origin(record);
        let taken = match self.intake.holds(record) {
            Holds::Outcome => self.outcome(origin, record),
            Holds::Event => self.event(origin, record),
            Holds::Either => match self.event(origin, record) {
                Err(rejection) if is_no_event(&self.intake.decoder, &rejection) => {
                    self.outcome(origin, record)
                }
                taken => taken,
            },
        };
        if let Some((reason, detail)) = self.settle(origin, taken) {
            self.intake.bury(record, reason, &detail);
        }
        Raised::Taken
    }

    fn event(&mut self, origin: Origin, record: &Record<'_>) -> Result<Disposition, Rejection> {
        let (payload, key, time) = (record.payload, record.key, record.timestamp_ms);
        let event = self.intake.decoder.decode(payload, key, time)?;
        if let Some(witness) = &mut self.intake.witness {
            witness.event(event.time_ms);
        }
        Ok(self.engine.observe(origin, &event))
    }

    fn outcome(&mut self, origin: Origin, record: &Record<'_>) -> Result<Disposition, Rejection> {
        let (payload, key, time) = (record.payload, record.key, record.timestamp_ms);
        match &mut self.intake.labels {
            Some(labels) => {
                let label = labels.decoder.decode(payload, key, time)?;
                if let Some(witness) = &mut self.intake.witness {
                    witness.outcome(label.time_ms);
                }
                Ok(self.engine.label(origin, &label))
            }
            None => Ok(self.engine.reject(origin, Reason::MissingField)),
        }
    }

    /// A record of another form than one plain JSON object: as many events as it has rows, each counted,
    /// one position, and at most one dead letter, which tells of the first row that was rejected.
    fn take_packed(&mut self, record: &Record<'_>) {
        let raw = Raw {
            payload: record.payload,
            key: record.key,
            timestamp_ms: record.timestamp_ms,
            headers: &record.headers,
        };
        let holds = self.intake.holds(record);
        let opened = match (&holds, &mut self.intake.labels) {
            (Holds::Outcome, Some(labels)) => labels.decoder.open(&raw),
            (Holds::Either, Some(labels)) => {
                // Outcomes have other paths, in the same rows.
                let _ = labels.decoder.open(&raw);
                self.intake.decoder.open(&raw)
            }
            _ => self.intake.decoder.open(&raw),
        };
        let rows = match opened {
            Ok(rows) => rows,
            Err(rejection) => return self.refuse(record, rejection),
        };
        let origin = self.intake.origin(record);
        let (mut bad, mut first) = (0, None);
        let mut replayed = false;
        for row in 0..rows {
            if row > 0 && !replayed {
                self.engine.next_row(origin);
            }
            let taken = self.row(&holds, origin, &raw, row);
            replayed |= matches!(taken, Ok(Disposition::Replayed));
            if let Some((reason, detail)) = self.settle(origin, taken) {
                bad += 1;
                first.get_or_insert((row, reason, detail));
            }
        }
        match first {
            Some((_, reason, detail)) if rows == 1 => self.intake.bury(record, reason, &detail),
            Some((row, reason, detail)) => {
                let detail = format!(
                    "row {} of {rows}, {bad} of them rejected: {detail}",
                    row + 1
                );
                self.intake.bury(record, reason, &detail);
            }
            None => {}
        }
    }

    fn row(
        &mut self,
        holds: &Holds,
        origin: Origin,
        raw: &Raw<'_>,
        row: usize,
    ) -> Result<Disposition, Rejection> {
        let (intake, engine) = (&mut *self.intake, &mut *self.engine);
        let witness = &mut intake.witness;
        let mut outcome = |labels: &mut Option<Labels>, witness: &mut Option<Witness>| match labels
        {
            Some(labels) => {
                let label = labels.decoder.label(raw, row)?;
                if let Some(witness) = witness {
                    witness.outcome(label.time_ms);
                }
                Ok(engine.label(origin, &label))
            }
            None => Ok(engine.reject(origin, Reason::MissingField)),
        };
        if let Holds::Outcome = holds {
            return outcome(&mut intake.labels, witness);
        }
        match intake.decoder.event(raw, row) {
            Ok(event) => {
                if let Some(witness) = witness {
                    witness.event(event.time_ms);
                }
                Ok(engine.observe(origin, &event))
            }
            Err(rejection) => match holds {
                Holds::Either if is_no_event(&intake.decoder, &rejection) => {
                    outcome(&mut intake.labels, witness)
                }
                _ => Err(rejection),
            },
        }
    }

    /// A record none of which can be used.
    fn refuse(&mut self, record: &Record<'_>, rejection: Rejection) {
        let origin = self.intake.origin(record);
        if let Some((reason, detail)) = self.settle(origin, Err(rejection)) {
            self.intake.bury(record, reason, &detail);
        }
    }

    /// Counts what could not be decoded; answers why a record belongs with the dead letters.
    fn settle(
        &mut self,
        origin: Origin,
        taken: Result<Disposition, Rejection>,
    ) -> Option<(Reason, String)> {
        match taken {
            Ok(Disposition::Rejected(reason)) => Some((reason, reason.words().to_owned())),
            Ok(Disposition::Refused(cap)) => {
                let cap = cap.as_str();
                crate::warn_limited!(cap, "good record refused by a cap; see [limits]");
                None
            }
            Ok(_) => None,
            Err(rejection) => match self.engine.reject(origin, rejection.reason) {
                // Read again after a restart: its dead letter was written the first time.
                Disposition::Replayed => None,
                _ => Some((rejection.reason, rejection.detail)),
            },
        }
    }

    fn rewind(&mut self, partition: Partition, offset: i64) {
        let source = self.intake.base + partition.topic;
        self.engine.rewind(source, partition.partition, offset);
    }

    fn end(&mut self, partition: Partition) {
        self.engine
            .end_of_partition(self.intake.base + partition.topic, partition.partition);
    }
}

impl Handler for Lent<'_> {
    fn record(&mut self, record: Record<'_>) {
        let partition = Partition {
            topic: record.topic,
            partition: record.partition,
        };
        let waits = self.intake.parked.has(partition);
        if waits || self.raise(&record) == Raised::Waiting {
            let item = Item::Record(Owned::of(&record));
            self.intake.parked.push(partition, item);
        }
    }

    fn assigned(&mut self, partition: Partition) -> Option<i64> {
        self.intake.moved = true;
        self.intake.stopped.remove(&partition);
        self.intake.parked.forget(partition);
        let offset = self
            .engine
            .assign(self.intake.base + partition.topic, partition.partition);
        tracing::info!(
            topic = self.intake.topics.get(usize::from(partition.topic)),
            partition = partition.partition,
            offset,
            "partition assigned"
        );
        if let Some(error) = self.engine.take_trouble() {
            // It is tried again with a new membership.
            self.error(KafkaError::Fatal(error.to_string()));
        }
        offset
    }

    fn bars(&self, partition: Partition) -> bool {
        let source = self.intake.base + partition.topic;
        self.engine.bars(source, partition.partition)
    }

    fn revoked(&mut self, partition: Partition, lost: bool) {
        self.intake.moved = true;
        self.intake.stopped.remove(&partition);
        self.intake.parked.forget(partition);
        self.engine.revoke(
            self.intake.base + partition.topic,
            partition.partition,
            lost,
        );
        tracing::info!(
            topic = self.intake.topics.get(usize::from(partition.topic)),
            partition = partition.partition,
            lost,
            "partition revoked"
        );
    }

    fn end_of_partition(&mut self, partition: Partition) {
        if self.intake.parked.has(partition) {
            self.intake.parked.push(partition, Item::End);
        } else {
            self.end(partition);
        }
    }

    fn lost(&mut self, partition: Partition, offsets: Range<i64>) {
        let lost = u64::try_from(offsets.end - offsets.start).unwrap_or(0);
        if let Some(all) = self.intake.lost.get_mut(usize::from(partition.topic)) {
            *all += lost;
        }
        tracing::error!(
            topic = self.intake.name(partition.topic),
            partition = partition.partition,
            from = offsets.start,
            to = offsets.end,
            lost,
            "records were deleted by the broker before they were read; lengthen the topic's retention, or read sooner"
        );
    }

    fn rewound(&mut self, partition: Partition, offset: i64) {
        if self.intake.parked.has(partition) {
            // What waits is of the log before, and is still to be counted.
            self.intake.parked.push(partition, Item::Rewind(offset));
        } else {
            self.rewind(partition, offset);
        }
        tracing::error!(
            topic = self.intake.name(partition.topic),
            partition = partition.partition,
            offset,
            "partition is shorter than what was read of it, and is read from here on as `on_truncated` says"
        );
    }

    fn stopped(&mut self, partition: Partition, why: &str) {
        tracing::error!(
            topic = self.intake.name(partition.topic),
            partition = partition.partition,
            why,
            "partition is not read any more"
        );
        self.intake.moved = true;
        self.intake.stopped.insert(partition, why.to_owned());
        // It holds no other back.
        self.end(partition);
    }

    fn error(&mut self, error: KafkaError) {
        if error.is_fatal() {
            self.intake.fatal = true;
            tracing::error!(%error, "kafka consumer cannot go on and is made anew");
        } else if error.needs_hand() {
            tracing::error!(%error, "kafka");
        } else {
            tracing::warn!(%error, "kafka");
        }
        let known = self.intake.trouble.as_ref();
        if !known.is_some_and(KafkaError::needs_hand) || error.needs_hand() {
            self.intake.trouble = Some(error);
        }
    }
}
