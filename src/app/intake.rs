//! From one source's records to the engine: decode, observe or reject, dead-letter.
//!
//! The [`Handler`] that a consumer calls. It borrows the engine for the length of one poll. A record
//! that is no event costs one counter and, where a topic is set for them, one dead letter; one that the
//! engine refuses for what it says (a class the model has not, a vector of the wrong length) likewise.
//!
//! Sources are numbered over all topics, in the order of the configuration: [`Origin::source`] is that
//! number, and [`Intake::base`] the number of the source's first topic.

use super::engine::Engine;
use crate::collect::{Disposition, Origin, Reason};
use crate::decode::{Decoder, LabelDecoder, Rejection};
use crate::kafka::{DeadLetter, Handler, KafkaError, Partition, Record};

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
    /// Where broken records go.
    pub dead: Option<DeadLetter>,
    /// A failure after which the consumer has to be made anew.
    pub fatal: bool,
    /// Partitions were given or taken since the flag was last cleared.
    pub moved: bool,
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

impl Intake {
    /// Lends the engine for one poll.
    pub fn with<'a>(&'a mut self, engine: &'a mut Engine) -> Lent<'a> {
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

    fn bury(&self, record: &Record<'_>, reason: Reason, detail: &str) {
        let topic = self
            .topics
            .get(usize::from(record.topic))
            .map_or("", String::as_str);
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

/// An intake with the engine in its hands.
pub struct Lent<'a> {
    intake: &'a mut Intake,
    engine: &'a mut Engine,
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
    fn event(&mut self, origin: Origin, record: &Record<'_>) -> Result<Disposition, Rejection> {
        let (payload, key, time) = (record.payload, record.key, record.timestamp_ms);
        let event = self.intake.decoder.decode(payload, key, time)?;
        Ok(self.engine.observe(origin, &event))
    }

    fn outcome(&mut self, origin: Origin, record: &Record<'_>) -> Result<Disposition, Rejection> {
        let (payload, key, time) = (record.payload, record.key, record.timestamp_ms);
        match &mut self.intake.labels {
            Some(labels) => {
                let label = labels.decoder.decode(payload, key, time)?;
                Ok(self.engine.label(origin, &label))
            }
            None => Ok(self.engine.reject(origin, Reason::MissingField)),
        }
    }
}

impl Handler for Lent<'_> {
    fn record(&mut self, record: Record<'_>) {
        let origin = self.intake.origin(&record);
        let taken = match self.intake.holds(&record) {
            Holds::Outcome => self.outcome(origin, &record),
            Holds::Event => self.event(origin, &record),
            Holds::Either => match self.event(origin, &record) {
                Err(rejection) if !self.intake.decoder.saw_prediction() => {
                    // Not even the shape of an event: an outcome, or nothing.
                    let missing = rejection.reason == Reason::MissingField;
                    if missing {
                        self.outcome(origin, &record)
                    } else {
                        Err(rejection)
                    }
                }
                taken => taken,
            },
        };
        let (reason, detail) = match taken {
            Ok(Disposition::Rejected(reason)) => (reason, reason.words().to_owned()),
            Ok(Disposition::Refused(cap)) => {
                let cap = cap.as_str();
                crate::warn_limited!(cap, "good record refused by a cap; see [limits]");
                return;
            }
            Ok(_) => return,
            Err(rejection) => match self.engine.reject(origin, rejection.reason) {
                // Read again after a restart: its dead letter was written the first time.
                Disposition::Replayed => return,
                _ => (rejection.reason, rejection.detail),
            },
        };
        self.intake.bury(&record, reason, &detail);
    }

    fn assigned(&mut self, partition: Partition) -> Option<i64> {
        self.intake.moved = true;
        let offset = self
            .engine
            .assign(self.intake.base + partition.topic, partition.partition);
        tracing::info!(
            topic = self.intake.topics.get(usize::from(partition.topic)),
            partition = partition.partition,
            offset,
            "partition assigned"
        );
        offset
    }

    fn revoked(&mut self, partition: Partition, lost: bool) {
        self.intake.moved = true;
        self.engine
            .revoke(self.intake.base + partition.topic, partition.partition);
        tracing::info!(
            topic = self.intake.topics.get(usize::from(partition.topic)),
            partition = partition.partition,
            lost,
            "partition revoked"
        );
    }

    fn end_of_partition(&mut self, partition: Partition) {
        self.engine
            .end_of_partition(self.intake.base + partition.topic, partition.partition);
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
